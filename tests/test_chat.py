"""Chat: where its parts come from, what it encodes and renders, and what it refuses."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import corpus
import prefix
import small
import tokentape as tt

if TYPE_CHECKING:
    from pathlib import Path

USER, ASSISTANT, END = 257, 258, 259
MESSAGES = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model folder as it is saved today."""
    (tmp_path / "tokenizer.json").write_text(small.tokenizer().to_str())
    config = {"eos_token": {"content": "<end>", "lstrip": False}, "bos_token": None, "image_token": "<user>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "chat_template.jinja").write_text(small.TEMPLATE)
    return tmp_path


# Where the parts come from


def test_a_folder_is_read_as_transformers_reads_it(folder: Path):
    chat = tt.Chat.from_pretrained(folder)
    assert chat.special_tokens == {"eos_token": "<end>", "image_token": "<user>"}
    assert chat.templates == {"default": small.TEMPLATE}
    assert chat.stop_tokens == [(END, "<end>", ["tokenizer", "template"])]
    rendered = tt.Chat.from_pretrained(str(folder)).render(MESSAGES)
    assert rendered.text == "<user>Hi<end>\n<assistant>Yo<end>\n"
    encode = chat.encode
    ids = [USER, *encode("Hi"), END, *encode("\n"), ASSISTANT, *encode("Yo"), END, *encode("\n")]
    assert rendered.token_ids.tolist() == ids


def test_the_generation_config_names_stop_tokens(folder: Path):
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [END, USER]}))
    chat = tt.Chat.from_pretrained(folder)
    assert chat.stop_token_ids == [USER, END]
    assert [sources for *_, sources in chat.stop_tokens] == [
        ["generation_config"],
        ["generation_config", "tokenizer", "template"],
    ]


def test_named_templates_are_chosen_as_transformers_does(folder: Path):
    (folder / "chat_template.jinja").unlink()
    config = {"chat_template": [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}]}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    chat = tt.Chat.from_pretrained(folder)
    assert chat.render(MESSAGES).text == "D"
    assert chat.render(MESSAGES, tools=[]).text == "T"
    assert chat.render(MESSAGES, chat_template="tool_use").text == "T"
    with pytest.raises(tt.RenderError, match='no chat template named "x", only: default, tool_use'):
        chat.render(MESSAGES, chat_template="x")


def test_template_files_go_before_the_configuration(folder: Path):
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "tool_use.jinja").write_text("T")
    config = {"chat_template": "C"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    assert tt.Chat.from_pretrained(folder).templates == {"default": small.TEMPLATE, "tool_use": "T"}


def test_older_files_name_special_tokens(folder: Path):
    (folder / "special_tokens_map.json").write_text(json.dumps({"bos_token": {"content": "<user>"}}))
    assert tt.Chat.from_pretrained(folder).special_tokens.items() >= {("bos_token", "<user>")}
    config = {"added_tokens_decoder": {}, "eos_token": "<end>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    assert tt.Chat.from_pretrained(folder).special_tokens == {"eos_token": "<end>"}


def test_added_tokens_of_the_configuration_are_added(folder: Path):
    entry = {"content": "<think>", "special": False, "lstrip": False, "rstrip": False, "single_word": False}
    config = {"added_tokens_decoder": {"260": {**entry, "normalized": False}}}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    assert tt.Chat.from_pretrained(folder).encode("<think>").tolist() == [260]


def test_a_live_tokenizer_is_read_as_it_is():
    live = small.tokenizer()
    live.add_tokens(["<new>"])
    chat = tt.Chat.from_tokenizer(live, template=small.TEMPLATE)
    assert chat.encode("<new>").tolist() == [260]
    assert chat.vocab_size == 261
    with pytest.raises(tt.ArgumentError, match="a list is no tokenizer"):
        tt.Chat.from_tokenizer([])


def test_a_transformers_tokenizer_and_a_processor():
    transformers = pytest.importorskip("transformers")
    live = transformers.PreTrainedTokenizerFast(tokenizer_object=small.tokenizer(), eos_token="<end>")
    live.chat_template = small.TEMPLATE
    chat = tt.Chat.from_tokenizer(live)
    assert chat.render(MESSAGES).token_ids.tolist() == live.apply_chat_template(MESSAGES, return_dict=False)
    processor = SimpleNamespace(tokenizer=live, chat_template="P")
    assert tt.Chat.from_tokenizer(processor).render(MESSAGES).text == "P"


@pytest.mark.parametrize(
    "name", ["./no/model", "no/such/model", "../model", "/no/model", "model", ".hidden", "a\\b", "~/no-model"]
)
def test_a_mistyped_path_is_an_error_and_no_network_call(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=None))
    with pytest.raises(tt.ArgumentError, match="no such model folder"):
        tt.Chat.from_pretrained(name)


def test_a_name_in_a_folder_that_exists_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "models" / "qwen").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=None))
    with pytest.raises(tt.ArgumentError, match=r"there is no 'qwem'; folders there: qwen"):
        tt.Chat.from_pretrained("models/qwem")


def test_a_hub_id_needs_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(tt.ArgumentError, match=r"tokentape\[hub\]"):
        tt.Chat.from_pretrained("no-such-owner/no-such-model")


def test_a_hub_id_is_downloaded_with_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch):
    asked = []

    def download(name: str, **options: object) -> str:
        asked.append((name, options["revision"]))
        return str(folder)

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=download))
    assert tt.Chat.from_pretrained("owner-x/model-y", revision="v1").stop_token_ids == [END]
    assert asked == [("owner-x/model-y", "v1")]


def test_a_folder_without_a_tokenizer_says_what_it_holds(tmp_path: Path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(tt.TokenizerError, match=r"holds no tokenizer\.json, only: config\.json"):
        tt.Chat.from_pretrained(tmp_path)


@pytest.mark.parametrize("name", ["tokenizer_config.json", "generation_config.json", "tokenizer.json"])
def test_a_broken_file_is_named(folder: Path, name: str):
    (folder / name).write_text("{")
    with pytest.raises(tt.TokenizerError, match=name.removesuffix(".json")):
        tt.Chat.from_pretrained(folder)


def test_a_broken_template_says_where():
    with pytest.raises(tt.TemplateError, match="line 2") as caught:
        tt.Chat(small.tokenizer(), "{% for m in messages %}\n{% if %}")
    assert caught.value.line == 2


def test_stop_tokens_of_the_caller_must_exist():
    assert tt.Chat(small.tokenizer(), stop_tokens=["<user>", 65]).stop_token_ids == [65, USER]
    with pytest.raises(tt.ArgumentError, match='"<nope>" is no token'):
        tt.Chat(small.tokenizer(), stop_tokens=["<nope>"])
    with pytest.raises(tt.ArgumentError, match="the id 9999 is outside"):
        tt.Chat(small.tokenizer(), stop_tokens=[9999])
    with pytest.raises(tt.ArgumentError, match="is one text"):
        tt.Chat(small.tokenizer(), stop_tokens="<user>")


# Encoding


def test_encode_and_decode():
    chat = small.chat()
    ids = chat.encode("é<end>")
    assert ids.dtype == np.int32
    assert not ids.flags.writeable
    assert chat.decode(ids) == "é<end>"
    assert chat.decode(ids, skip_special_tokens=True) == "é"
    assert chat.decode(ids[:1]) == "\ufffd"
    assert chat.token_bytes(int(ids[0])) == "é".encode()[:1]
    assert [list(ids) for ids in chat.encode_batch(["a", "", "<user>"])] == [chat.encode("a").tolist(), [], [USER]]
    assert chat.token_id("<end>") == END
    assert chat.token_id("nothing") is None


def test_ids_outside_the_vocabulary_are_refused():
    chat = small.chat()
    with pytest.raises(tt.TokenizerError, match="999"):
        chat.decode([1, 999])
    with pytest.raises(tt.ArgumentError, match="999 is no token id"):
        chat.token_bytes(999)
    with pytest.raises(UnicodeEncodeError):
        chat.encode("\ud800")


# Rendering


def test_a_chat_without_a_template_refuses_only_to_render():
    chat = tt.Chat(small.tokenizer())
    assert chat.encode("a").size == 1
    assert chat.stop_token_ids == []
    with pytest.raises(tt.RenderError, match="there is no chat template") as caught:
        chat.render(MESSAGES)
    assert caught.value.kind == "ValueError"


@pytest.mark.parametrize(
    ("messages", "pattern"),
    [
        ([], "the conversation is empty"),
        ([1], "message"),
        (["text"], "message"),
        (7, "messages"),
        ("text", "JSON|messages"),
        ({"role": "user"}, "messages"),
    ],
)
def test_what_is_no_conversation_is_refused(messages: object, pattern: str):
    with pytest.raises((tt.RenderError, tt.ArgumentError, TypeError), match=pattern):
        small.chat().render(messages)


def test_a_template_refuses_a_role_in_its_own_words():
    source = "{% if messages[0].role != 'user' %}{{ raise_exception('no ' ~ messages[0].role) }}{% endif %}"
    with pytest.raises(tt.RenderError) as caught:
        tt.Chat(small.tokenizer(), source).render([{"role": "wizard", "content": ""}])
    assert (str(caught.value), caught.value.kind, caught.value.line) == ("no wizard", "TemplateError", 1)


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"control_tokens": "some"}, 'control_tokens is "some": it is one of "all", "template"'),
        ({"seams": "none"}, "seams is"),
        ({"now": "today"}, "now is a str: give a datetime"),
        ({"trusted_roles": "assistant"}, "trusted_roles is a text"),
    ],
)
def test_options_with_other_values_are_refused(options: dict[str, object], pattern: str):
    with pytest.raises(tt.ArgumentError, match=pattern):
        small.chat().render(MESSAGES, **options)


def test_prompt_and_continuation_exclude_each_other():
    with pytest.raises(tt.RenderError, match="exclude each other") as caught:
        small.chat().render(MESSAGES, add_generation_prompt=True, continue_final_message=True)
    assert caught.value.kind == "ValueError"
    assert small.chat().render(MESSAGES, continue_final_message=True).text == "<user>Hi<end>\n<assistant>Yo"


def test_an_argument_that_is_never_read_warns_with_near_names():
    chat = tt.Chat(small.tokenizer(), "{{ enable_thinking }}")
    with pytest.warns(UserWarning, match=r'never reads the argument "enable_thinkin"; it reads enable_thinking'):
        chat.render(MESSAGES, enable_thinkin=True)
    assert chat.render(MESSAGES, enable_thinking=False).text == "False"
    assert chat.render(MESSAGES, template_kwargs={"enable_thinking": 1}).text == "1"
    assert chat.render(MESSAGES, template_kwargs={"enable_thinking": 1}, enable_thinking=2).text == "2"


def test_the_clock_is_an_argument():
    chat = tt.Chat(small.tokenizer(), "{{ strftime_now('%Y-%m-%d %H:%M:%S') }}")
    now = dt.datetime(2024, 2, 29, 23, 59, 58)
    assert chat.render(MESSAGES, now=now).text == "2024-02-29 23:59:58"


def test_batches_equal_single_renderings_and_name_what_fails():
    chat = small.chat()
    conversations = [[{"role": "user", "content": str(number)}] for number in range(50)]
    batch = chat.render_batch(conversations, add_generation_prompt=True)
    single = [chat.render(conversation, add_generation_prompt=True) for conversation in conversations]
    assert [rendered.text for rendered in batch] == [rendered.text for rendered in single]
    with pytest.raises(tt.RenderError, match="conversation 1: the conversation is empty"):
        chat.render_batch([MESSAGES, []])


def test_inputs_stay_as_they_are():
    messages = [{"role": "assistant", "content": None, "reasoning": "r", "extra": [1, {"a": (1, 2)}]}]
    before = pickle.dumps(messages)
    small.chat().render(messages)
    assert pickle.dumps(messages) == before


def test_chats_and_renderings_pickle():
    chat = pickle.loads(pickle.dumps(small.chat()))
    assert type(chat) is tt.Chat
    assert chat.stop_tokens == small.chat().stop_tokens
    rendered = chat.render(MESSAGES)
    again = pickle.loads(pickle.dumps(rendered))
    for name in ("text", "spans", "assistant_spans", "seams", "generation_spans"):
        assert getattr(again, name) == getattr(rendered, name)
    for name in ("token_ids", "message_index", "is_content", "assistant_mask", "token_starts"):
        assert np.array_equal(getattr(again, name), getattr(rendered, name))
    assert repr(chat) == repr(small.chat()) == "Chat(vocabulary of 260, template of 122 characters)"
    named = pickle.loads(pickle.dumps(tt.Chat(small.tokenizer(), {"default": "D", "x": "X"})))
    assert named.render(MESSAGES, chat_template="x").text == "X"


def test_chats_of_one_content_are_restored_once():
    chat = small.chat()
    first, second = (pickle.loads(pickle.dumps(chat)) for _ in range(2))
    assert first is second
    assert first is not chat


def test_stop_tokens_are_what_a_policy_samples_last():
    corpus.require()
    chat = tt.Chat.from_pretrained(corpus.tokenizer_folder("gpt-oss"))
    stops = {text: sources for _, text, sources in chat.stop_tokens}
    # <|end|> closes a turn in history, and the analysis before an answer: a policy that stopped there never answers.
    assert set(stops) == {"<|return|>", "<|call|>"}
    assert stops["<|call|>"] == ["template"]
    source = corpus.template("llcpp_meetkai_functionary_medium_v3.1.jinja")
    tokenizer = prefix.with_markers(json.loads(small.tokenizer().to_str()), prefix.markers(source))
    chat = tt.Chat(tokenizer, source, special_tokens=corpus.SPECIAL_TOKENS)
    assert {"<|eot_id|>", "<|eom_id|>"} <= {text for _, text, _ in chat.stop_tokens}
