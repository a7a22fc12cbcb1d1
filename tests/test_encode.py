"""Text to ids in Python: which path encodes, threads and forks, streams, and bad input."""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

import corpus
import small
import tokentape as tt

WORKERS = 8


def texts(seed: int, count: int) -> list[str]:
    """Words, spaces, other scripts, control tokens and their beginnings, and a text that comes again and again."""
    generator = random.Random(seed)
    parts = [
        "the ",
        "tool",
        "<end>",
        "<en",
        "\n\n",
        "  ",
        "日本",
        "é",
        "e\u0301",
        "👩‍👩",
        "12345",
        "we'll",
        "\x00",
        "=" * 40,
        # Long enough to be kept when it comes again.
        "<end>" + "the tool is called " * 40 + "<end>",
    ]
    return ["".join(generator.choices(parts, k=generator.randrange(40))) for _ in range(count)]


def library_ids(text: str) -> list[int]:
    return small.tokenizer().encode(text, add_special_tokens=False).ids


def test_the_engine_says_which_path_encodes_and_why():
    assert small.chat().engine.startswith("fast: byte-level BPE")
    words = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    assert tt.Chat(words).engine.startswith("reference: ")


def test_ids_are_read_only_int32_of_any_length():
    for length in (0, 1, 255, 256, 257, 5_000):
        ids = small.chat().encode("a" * length)
        assert (ids.dtype, ids.shape, ids.flags.writeable) == (np.int32, (length,), False)
        with pytest.raises(ValueError, match="read-only"):
            ids[:] = 0


def test_threads_get_the_ids_of_the_library():
    expected = {text: library_ids(text) for text in texts(1, 300)}
    chat = tt.Chat(small.tokenizer())

    def work(seed: int) -> None:
        order = list(expected)
        random.Random(seed).shuffle(order)
        for text in order:
            assert chat.encode(text).tolist() == expected[text]

    with ThreadPoolExecutor(WORKERS) as threads:
        list(threads.map(work, range(WORKERS)))


def encode_in_child(chat: tt.Chat, given: list[str], queue: Any) -> None:
    conversations = [[{"role": "user", "content": text}] for text in given[:20]]
    rendered = [one.token_ids.tolist() for one in chat.render_batch(conversations)]
    queue.put(([ids.tolist() for ids in chat.encode_batch(given)], rendered))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_forked_processes_encode_batches_as_their_parent_does():
    chat = tt.Chat(small.tokenizer(), small.TEMPLATE)
    given = texts(2, 200)
    expected = [ids.tolist() for ids in chat.encode_batch(given)]
    assert expected == [library_ids(text) for text in given]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=encode_in_child, args=(chat, given, queue)) for _ in range(WORKERS)]
    for child in children:
        child.start()
    results = [queue.get(timeout=50) for _ in children]
    for child in children:
        child.join(10)
    assert all(ids == expected for ids, _ in results)
    assert all(rendered == results[0][1] for _, rendered in results)


@pytest.mark.parametrize("skip", [False, True])
def test_a_stream_gives_the_text_of_all_ids_wherever_they_are_cut(skip: bool):
    chat = small.chat()
    generator = random.Random(3)
    for text in texts(4, 100):
        ids = chat.encode(text)
        for part in (ids, ids[generator.randrange(len(ids) + 1) :]):
            stream = chat.text_stream(skip_special_tokens=skip)
            pushed = "".join(stream.push(int(token_id)) for token_id in part)
            expected = chat.decode(part, skip_special_tokens=skip)
            assert pushed + stream.finish() == expected
            assert stream.push(part) + stream.finish() == expected


def test_a_stream_waits_for_the_rest_of_a_character_and_refuses_what_is_no_token():
    stream = small.chat().text_stream()
    pushed = [stream.push(token_id) for token_id in small.chat().encode("é😀")]
    assert pushed == ["", "é", "", "", "", "😀"]
    stream.push(small.chat().encode("é")[:1])
    with pytest.raises(tt.TokenizerError, match="token 7"):
        stream.push(10**6)
    assert stream.finish() == "\ufffd"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model": {"type": "Nonsense"}}', '{"model": {"type": "BPE"}}'])
def test_a_broken_tokenizer_is_an_error(content: str):
    with pytest.raises(tt.TokenizerError, match=r"tokenizer\.json"):
        tt.Chat(content)


def change(path: str, value: Any) -> str:
    """The small tokenizer with one value changed; the path has dots between keys."""
    tokenizer = json.loads(small.tokenizer().to_str())
    *keys, last = path.split(".")
    place = tokenizer
    for key in keys:
        place = place[key]
    place[last] = value
    return json.dumps(tokenizer)


def test_a_truncated_or_impossible_file_is_an_error():
    whole = small.tokenizer().to_str()
    for size in (10, len(whole) // 2, len(whole) - 1):
        with pytest.raises(tt.TokenizerError):
            tt.Chat(whole[:size])
    for path, value in [
        ("pre_tokenizer", {"type": "Unheard"}),
        ("model.merges", [["nowhere", "to be found"]]),
        ("model.merges", [["a"]]),
        ("model.vocab", {"a": -1}),
        ("model.vocab", {"a": 2**40}),
    ]:
        with pytest.raises(tt.TokenizerError):
            tt.Chat(change(path, value))


def test_two_tokens_of_one_id_encode_as_in_the_library():
    vocabulary = json.loads(small.tokenizer().to_str())["model"]["vocab"]
    changed = change("model.vocab", {**vocabulary, "ab": vocabulary["a"]})
    chat, library = tt.Chat(changed), Tokenizer.from_str(changed)
    assert chat.encode("abc a").tolist() == library.encode("abc a", add_special_tokens=False).ids


def test_text_that_is_no_unicode_is_refused():
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        small.chat().encode("a\ud800b")


@pytest.mark.parametrize("part", ["a", " ", "\n\n", "=", "é", "<end>", "<", "\x00", "1"])
def test_one_character_many_times_takes_no_quadratic_time(part: str):
    ids = small.chat().encode(part * 1_000_000)
    assert ids.tolist() == library_ids(part * 4) * 250_000


@pytest.mark.long
def test_a_string_of_100_mb():
    text = "The tool said <end> it's 42.\n" * (100_000_000 // 29)
    ids = small.chat().encode(text)
    assert small.chat().decode(ids) == text


def resident() -> int:
    """The bytes of memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def grown(chat: tt.Chat, megabytes: int) -> int:
    """The memory that encoding random text has added."""
    generator = random.Random(5)
    before = resident()
    for _ in range(megabytes):
        chat.encode(generator.randbytes(500_000).hex())
    return resident() - before


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_random_text_does_not_grow_the_cache():
    chat = tt.Chat.from_pretrained(corpus.tokenizer_folder("qwen3"))
    grown(chat, 3)
    assert grown(chat, 12) < 10_000_000


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_gigabyte_of_random_text_does_not_grow_the_cache():
    chat = tt.Chat.from_pretrained(corpus.tokenizer_folder("qwen3"))
    grown(chat, 3)
    assert grown(chat, 1_000) < 10_000_000


def own_tokenizer(extra: dict[str, int], *, ignore_merges: bool = False) -> Tokenizer:
    """One token a byte, the merge of `q` and `z`, and more words of the vocabulary."""
    made = small.tokenizer()
    alphabet = {character: id_ for id_, character in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    made.model = models.BPE(alphabet | {"qz": 256} | extra, [("q", "z")], ignore_merges=ignore_merges)
    return made


@pytest.mark.parametrize("largest", [300, 2**21 - 2049, 2**21 - 2048, 2**21 - 2, 2**21 - 1, 2**21])
def test_ids_of_any_size_end_a_pretoken(largest: int):
    made = own_tokenizer({"qz": largest})
    chat = tt.Chat(made, small.TEMPLATE)
    assert chat.engine.startswith("fast") == (largest < 2**21 - 1)
    for text in ("qz", "xqz", "qzx", "xxqz qz", "qzqz"):
        assert chat.encode(text).tolist() == made.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("ignore_merges", [False, True])
def test_an_empty_word_of_the_vocabulary_is_never_met(ignore_merges: bool):
    made = own_tokenizer({"": 300, "日": 301}, ignore_merges=ignore_merges)
    chat = tt.Chat(made, small.TEMPLATE)
    for text in ("", "qz a", "日"):
        assert chat.encode(text).tolist() == made.encode(text, add_special_tokens=False).ids


def test_a_panic_of_the_library_is_an_error():
    made = small.tokenizer()
    made.add_tokens([AddedToken("'s", rstrip=True), AddedToken(" ", lstrip=True)])
    with pytest.warns(UserWarning, match="panics"):
        chat = tt.Chat(made, small.TEMPLATE)
    with pytest.raises(tt.TokenizerError, match="the tokenizers library panics on this text"):
        chat.encode("it's  so")
    assert chat.encode("it's").tolist() == made.encode("it's", add_special_tokens=False).ids
