"""Tokenizers from GGUF files: ids equal llama.cpp's own, and what cannot be read is refused by name."""

from __future__ import annotations

import functools
import json
import random
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

import corpus
import gguf_files
import servers
import small
import tokentape as tt
from tokentape.gguf import read_metadata
from tokentape.gguf_patterns import PATTERNS

MANY_SERVERS = Path(__file__).parent / "tools" / "many_servers.py"
CONTROL, USER_DEFINED, BYTE = 3, 4, 6
TEXTS = [
    "Hello, world! It's a test; I'LL go, we'Ve been, they'd say 'twas.  don't DON'T Don\u2019t",
    "1 12 123 1234 12345 1234567 3.14159 1,000,000 a1b22c333",
    "\u00b2\u00b3 \u2166 \uff11\uff12\uff13\uff14 \u0661\u0662\u0663",
    "camelCase PascalCase HTTPServer XMLHttpRequest iPhone McDonald's \u00c9cole \u0130stanbul \u01c5ungla STRASSE",
    "  leading\n\n\n  indented\n\ttab\t\ttabs \r\nwindows\r\n\r\n end   \n \n  ",
    "a\u00a0b\u2003c\u3000d\u2028e\u0085f\u200bg\ufeffh\x0bi\x0cj\x1fk",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u3053\u3093\u306b\u3061\u306f\u30ab\u30bf\u30ab\u30ca",
    "\uc548\ub155\ud558\uc138\uc694 123\u4e2d\u6587abc",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0650\u0633\u0652\u0645\u0650",
    "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd \u0928\u092e\u0938\u094d\u0924\u0947\u0964",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u1019\u103c\u1014\u103a\u1019\u102c",
    "e\u0301a\u0308o\u0302 \u0301x n\u0303 \u1e9b\u0323 \ufb01 \u017ft 's\u017f '\u017f",
    "\U0001f642\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f \U0001f1e9\U0001f1ea \U0001f44d\U0001f3fd",
    "def f(x):\n    return x**2 + 3*y  # comment\n\nif (a && b) || !c { x[0] = '\\n'; }",
    '!!! ... --- /// // /path/to/file \\\\server\\share $100 \u20ac5 50% a+b=c <tag attr="v">~^|`</tag>',
    "(parens, and|pipes) what?! \u2026 yes\u3002no\u3001\u060c\u06d4 one.two,three",
    "<s> text <|end|> more<tool>inside</tool> </s><|end|><|end|> x",
    "\ue000\U0010ffff\u0378 private and unassigned \x00\x01 controls",
    "",
    " ",
    "\n",
    "a",
]


def texts() -> list[str]:
    """The texts above, single characters of all blocks between others, and random mixtures."""
    source = random.Random(5)
    around = [f"a{chr(point)}b {chr(point)}{chr(point)}1" for point in range(0x80, 0x3400, 41)]
    alphabet = sorted(set("".join(TEXTS)))
    mixtures = ["".join(source.choices(alphabet, k=source.randint(1, 40))) for _ in range(60)]
    return [*TEXTS, *("".join(around[at : at + 12]) for at in range(0, len(around), 12)), *mixtures]


@functools.cache
def greedy_vocabulary() -> tuple[list[str], list[str]]:
    """Byte-level tokens and merges that join across all boundaries, so that each split shows in the ids."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=6000, min_frequency=1, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator([*texts(), *texts()], trainer)
    model = json.loads(made.to_str())["model"]
    return sorted(model["vocab"], key=model["vocab"].get), [" ".join(pair) for pair in model["merges"]]


def byte_level(pre: str) -> dict:
    tokens, merges = greedy_vocabulary()
    added = ["<s>", "</s>", "<|end|>", "<tool>", "</tool>"]
    types = [1] * len(tokens) + [CONTROL] * 3 + [USER_DEFINED] * 2
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": [*tokens, *added],
        "tokenizer.ggml.token_type": np.array(types, np.int32),
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": len(tokens),
        "tokenizer.ggml.eos_token_id": len(tokens) + 1,
    }


def pieces(*, prefixed: bool) -> dict:
    """A vocabulary of SentencePiece: control tokens, bytes, characters, and pieces in the order they are joined."""
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.Replace(" ", "\u2581")
    trainer = trainers.BpeTrainer(vocab_size=2500, min_frequency=2, limit_alphabet=300, show_progress=False)
    made.train_from_iterator([*texts(), *texts()], trainer)
    model = json.loads(made.to_str())["model"]
    special = ["<unk>", "<s>", "</s>", "<|end|>", "<tool>", "</tool>"]
    learned = [
        piece
        for piece in sorted(model["vocab"], key=model["vocab"].get)
        if piece not in special and "\x00" not in piece
    ]
    byte_names = [f"<0x{byte:02X}>" for byte in range(256)]
    types = [2, *[CONTROL] * 3, *[USER_DEFINED] * 2, *[BYTE] * 256, *[1] * len(learned)]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [*special, *byte_names, *learned],
        "tokenizer.ggml.scores": np.array([0.0] * 262 + [-float(rank) for rank in range(len(learned))], np.float32),
        "tokenizer.ggml.token_type": np.array(types, np.int32),
        "tokenizer.ggml.add_space_prefix": prefixed,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }


def served(paths):
    """One server for each file."""
    servers.model_file()  # what is needed for it is installed
    command = [sys.executable, str(MANY_SERVERS), *map(str, paths)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    return process, [process.stdout.readline().strip() for _ in paths]


def assert_same_ids(url, chat, samples, name):
    for sample in samples:
        body = {"content": sample, "add_special": False, "parse_special": True}
        theirs = servers.ask(url, "/tokenize", body)["tokens"]
        ours = chat.encode(sample).tolist()
        shown = [[chat.decode([token]) for token in ids] for ids in (ours, theirs)]
        assert ours == theirs, f"{name}: {sample!r}\nours   {shown[0]}\ntheirs {shown[1]}"


KINDS = {
    "glm4": functools.partial(byte_level, "glm4"),
    **{names[0]: functools.partial(byte_level, names[0]) for names in (
        [name for name, own in PATTERNS.items() if own == patterns] for patterns in dict.fromkeys(PATTERNS.values())
    )},
    "pieces": functools.partial(pieces, prefixed=False),
    "prefixed pieces": functools.partial(pieces, prefixed=True),
}  # fmt: skip


def check_against_servers(folder, kinds, samples):
    paths = {name: gguf_files.model(folder / f"{name}.gguf", make()) for name, make in kinds.items()}
    process, urls = served(paths.values())
    with process:
        try:
            for (name, path), url in zip(paths.items(), urls, strict=True):
                assert_same_ids(url, tt.Chat.from_pretrained(path), samples, name)
        finally:
            process.kill()
    corpus.ran("ids of GGUF tokenizers equal to llama.cpp's", len(samples) * len(paths))


def test_every_way_of_splitting_equals_llama_cpp(tmp_path):
    check_against_servers(tmp_path, KINDS, texts())


@pytest.mark.long
def test_every_name_equals_llama_cpp(tmp_path):
    check_against_servers(tmp_path, {name: functools.partial(byte_level, name) for name in PATTERNS}, texts())


REAL = {
    "qwen3": "qwen2",
    "qwen2.5": "qwen2",
    "llama3": "llama-bpe",
    "deepseek-v3": "deepseek-v3",
    "gpt-oss": "gpt-4o",
    "mistral-tekken-240911": "tekken",
}


def from_corpus(name):
    """The metadata that a converter writes for a byte-level tokenizer of the corpus."""
    content = json.loads((corpus.tokenizer_folder(name) / "tokenizer.json").read_text())
    added = {entry["id"]: entry for entry in content["added_tokens"]}
    tokens = {id_: token for token, id_ in content["model"]["vocab"].items()}
    tokens |= {id_: entry["content"] for id_, entry in added.items()}
    types = [1 if id_ not in added else 3 if added[id_]["special"] else 4 for id_ in range(max(tokens) + 1)]
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in content["model"]["merges"]]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": REAL[name],
        "tokenizer.ggml.tokens": [tokens.get(id_, f"[PAD{id_}]") for id_ in range(max(tokens) + 1)],
        "tokenizer.ggml.token_type": np.array(types, np.int32),
        "tokenizer.ggml.merges": merges,
    }


@pytest.mark.long
@pytest.mark.parametrize("name", REAL)
def test_real_vocabularies_equal_llama_cpp(tmp_path, name):
    check_against_servers(tmp_path, {name: functools.partial(from_corpus, name)}, texts())


# The real model -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chat():
    return tt.Chat.from_pretrained(servers.model_file())


def test_the_real_model(chat, llama):
    assert_same_ids(llama.url, chat, texts(), "SmolLM2")
    assert chat.stop_token_ids == chat.encode("<|im_end|>").tolist() == [2]
    assert chat.special_tokens["eos_token"] == chat.decode([2])
    assert chat.decode(chat.encode(TEXTS[5] + TEXTS[9])) == TEXTS[5] + TEXTS[9]


def conversations():
    """Thirty conversations: of one to seven messages, with and without a system message, in several scripts."""
    source = random.Random(7)
    for index in range(30):
        roles = ["system"] * (index % 2) + ["user", "assistant"] * source.randint(1, 3)
        roles = roles if index % 3 else [*roles, "user"]
        yield [{"role": role, "content": source.choice(TEXTS[:11]).strip() or "x"} for role in roles]


def test_prompts_equal_apply_template_and_tokenize(chat, llama):
    for messages in conversations():
        answers = messages[-1]["role"] == "user"  # llama.cpp goes on with a last message of the assistant
        ours = chat.render(messages, add_generation_prompt=answers, continue_final_message=not answers)
        prompt = servers.ask(llama.url, "/apply-template", {"messages": messages})["prompt"]
        assert ours.text == prompt
        request = {"content": prompt, "add_special": False, "parse_special": True}
        assert ours.token_ids.tolist() == servers.ask(llama.url, "/tokenize", request)["tokens"]
    corpus.ran("conversations whose ids equal llama.cpp's /apply-template and /tokenize", 30)


# Files that cannot be read ------------------------------------------------------------------------------------------

TINY = {
    "general.architecture": "llama",
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": ["a", "b", "ab", "<end>"],
    "tokenizer.ggml.token_type": np.array([1, 1, 1, 3], np.int32),
    "tokenizer.ggml.merges": ["a b"],
    "tokenizer.ggml.eos_token_id": 3,
    "tokenizer.chat_template": small.TEMPLATE,
    "llama.rope.freqs": np.zeros(3, np.float32),
    "llama.names": ["x", "y"],
}
WHOLE = gguf_files.head(TINY)


def load(folder, content):
    path = folder / "model.gguf"
    path.write_bytes(content)
    return tt.Chat.from_pretrained(path)


def test_a_tiny_file(tmp_path):
    chat = load(tmp_path, WHOLE)
    assert chat.encode("abb<end>").tolist() == [2, 1, 3]
    assert chat.stop_token_ids == [3]
    assert chat.render([{"role": "user", "content": "ab"}]).text == "<user>ab<end>\n"
    assert read_metadata(tmp_path / "model.gguf").keys() == {key for key in TINY if not key.startswith("llama.")}


def test_templates_by_name(tmp_path):
    named = {"tokenizer.chat_templates": ["tool_use"], "tokenizer.chat_template.tool_use": "tools"}
    chat = load(tmp_path, gguf_files.head(TINY | named))
    assert chat.templates == {"default": small.TEMPLATE, "tool_use": "tools"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokenizer.ggml.model": "bert"}, "of the kind 'bert', which is not read"),
        ({"tokenizer.ggml.model": "t5"}, "of the kind 't5'"),
        ({"tokenizer.ggml.model": 7}, "tokenizer.ggml.model is int, not str"),
        ({"tokenizer.ggml.pre": "kimi-k2"}, "the way 'kimi-k2' .* is not read: pass the model's folder"),
        ({"tokenizer.ggml.tokens": ["a", "b", "ab", "a"]}, "a token twice: 'a' is 0 and 3"),
        ({"tokenizer.ggml.merges": ["a c"]}, "the merge 'a c' is not of two tokens"),
        ({"tokenizer.ggml.merges": ["ab"]}, "the merge 'ab'"),
        ({"tokenizer.ggml.token_type": np.ones(2, np.int32)}, "4 tokens and 2 values"),
        ({"tokenizer.chat_template": 5}, "tokenizer.chat_template is int, not a text"),
    ],
)
def test_what_is_not_read_is_named(tmp_path, changes, message):
    with pytest.raises(tt.TokenizerError, match=f"model.gguf' .*{message}"):
        load(tmp_path, gguf_files.head(TINY | changes))


@pytest.mark.parametrize("missing", ["model", "tokens", "merges"])
def test_what_is_missing_is_named(tmp_path, missing):
    entries = {key: value for key, value in TINY.items() if key != f"tokenizer.ggml.{missing}"}
    with pytest.raises(tt.TokenizerError, match=f"has no tokenizer.ggml.{missing}: of a model in several files"):
        load(tmp_path, gguf_files.head(entries))


HEAD = b"GGUF" + struct.pack("<I", 3)
HUGE = 2**63


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no GGUF file: it begins with b''"),
        (b"PK\x03\x04" + bytes(50), "is no GGUF file"),
        (b"GGUF", "truncated"),
        (gguf_files.head(TINY, version=1), r"not read \(version 1\)"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (HEAD + struct.pack("<QQ", 0, HUGE), "announces 9,223,372,036,854,775,808 entries, and 0 bytes are left"),
        (HEAD + struct.pack("<QQQ", 0, 1, HUGE) + bytes(20), "truncated"),
        (HEAD + struct.pack("<QQ", 0, 1) + gguf_files.text("k") + struct.pack("<IIQ", 9, 4, HUGE), "numbers"),
        (HEAD + struct.pack("<QQ", 0, 1) + gguf_files.text("k") + struct.pack("<IIQ", 9, 8, HUGE), "texts"),
        (HEAD + struct.pack("<QQ", 0, 1) + gguf_files.text("k") + struct.pack("<IIQ", 9, 9, 1) + bytes(9), "type 9"),
        (HEAD + struct.pack("<QQ", 0, 1) + gguf_files.text("k") + struct.pack("<II", 77, 0), "no value of type 77"),
        (HEAD + struct.pack("<QQQ", 0, 1, 1) + b"\xff" + bytes(9), "is no UTF-8"),
        (
            HEAD + struct.pack("<QQ", 0, 2) + 2 * (gguf_files.text("general.k") + gguf_files.value(1)),
            "'general.k' twice",
        ),
    ],
)
def test_files_that_are_no_gguf_or_lie(tmp_path, content, message):
    with pytest.raises(tt.TokenizerError, match=message):
        load(tmp_path, content)


def test_a_file_cut_anywhere_is_refused(tmp_path):
    for length in range(len(WHOLE)):
        with pytest.raises(tt.TokenizerError):
            load(tmp_path, WHOLE[:length])


@given(st.lists(st.tuples(st.integers(4, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_damage_ends_in_an_error_of_ours_or_in_a_chat(tmp_path_factory, damage):
    content = bytearray(WHOLE)
    for at, byte in damage:
        content[at] = byte
    try:
        chat = load(tmp_path_factory.getbasetemp(), bytes(content))
    except tt.TokentapeError:
        return
    assert isinstance(chat, tt.Chat)
