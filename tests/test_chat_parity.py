"""Text and ids of nine real tokenizers with their own templates equal transformers', or the errors do."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import corpus
import tokentape as tt

NOW = dt.datetime(2026, 11, 30, 9, 5, 7)


class FrozenDatetime(dt.datetime):
    """The clock of transformers, stopped."""

    @classmethod
    def now(cls, tz: Any = None):
        return cls(*NOW.timetuple()[:6], tzinfo=tz)


@pytest.fixture
def utilities(monkeypatch: pytest.MonkeyPatch):
    """transformers, with its clock stopped."""
    module = pytest.importorskip("transformers.utils.chat_template_utils")
    monkeypatch.setattr(module, "datetime", FrozenDatetime)
    return module


def load(name: str) -> tuple[tt.Chat, Any]:
    transformers = pytest.importorskip("transformers")
    folder = corpus.tokenizer_folder(name)
    return tt.Chat.from_pretrained(folder), transformers.AutoTokenizer.from_pretrained(folder)


def options(conversation: dict[str, Any], add_generation_prompt: bool) -> dict[str, Any]:
    kwargs = {name: value for name, value in conversation["kwargs"].items() if name != "__no_special__"}
    named = {name: conversation[name] for name in ("tools", "documents", "continue_final_message")}
    return {**named, "add_generation_prompt": add_generation_prompt, **kwargs}


def reference(tokenizer: Any, messages: Any, given: dict[str, Any]) -> tuple[Any, ...]:
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, **given)
        return text, tokenizer.apply_chat_template(messages, return_dict=False, **given)
    except Exception as error:
        return ("error", type(error).__name__)


def ours(chat: tt.Chat, messages: Any, given: dict[str, Any]) -> tuple[Any, ...]:
    try:
        rendered = chat.render(messages, now=NOW, **given)
    except tt.RenderError as error:
        return ("error", error.kind)
    return rendered.text, rendered.token_ids.tolist()


@pytest.mark.filterwarnings("ignore:the chat template never reads")
@pytest.mark.parametrize("name", corpus.TOKENIZERS)
def test_text_and_ids_equal_transformers(name: str, utilities: Any):
    del utilities
    chat, tokenizer = load(name)
    wrong: list[str] = []
    for id_, conversation in corpus.conversations().items():
        for prompt in (False, True):
            given = options(conversation, prompt)
            expected = reference(tokenizer, conversation["messages"], given)
            found = ours(chat, conversation["messages"], given)
            if found != expected:
                wrong.append(f"{id_} prompt={prompt}: {str(found)[:300]} instead of {str(expected)[:300]}")
    corpus.ran("conversations rendered and encoded as transformers does", 2 * len(corpus.conversations()))
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong)
