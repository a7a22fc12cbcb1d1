"""Cases of sampled output and the message they say, and how the two are compared."""

from __future__ import annotations

import functools
import json
import os
import re
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer

import corpus
import small
import tokentape as tt

MARK = re.compile(
    r"<[^<>\s'\"{}%=/][^<>\s'\"{}%=]{0,60}>|</[^<>\s'\"{}%=]{1,60}>|\[/?[A-Z_]{2,}\]|\[e~\[|\]~b\]|<\|\"\|>"
)


@functools.cache
def cases() -> list[dict[str, Any]]:
    """The cases of the corpus, or of the file that TOKENTAPE_PARSECASES names."""
    if path := os.environ.get("TOKENTAPE_PARSECASES"):
        return [json.loads(line) for line in Path(path).read_text().split("\n") if line]
    return corpus.records("parsecases.jsonl")


def special_tokens(case: dict[str, Any]) -> dict[str, Any]:
    """The special tokens of a case: the corpus's, unless the case names others."""
    given = {name: value for name, value in case["template_kwargs"].items() if name.endswith("_token")}
    return {**corpus.SPECIAL_TOKENS, **given}


@functools.cache
def marked_tokenizer(source: str, extra: str) -> Tokenizer:
    """A token a byte, and a token for whatever looks like a mark in the template."""
    made = small.tokenizer()
    found = sorted({*MARK.findall(source), *MARK.findall(extra)})
    made.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in found])
    return made


@functools.cache
def chat(name: str, tokenizer: str | None, specials: str, *, marked: bool) -> tt.Chat:
    """The chat of a template with a tokenizer of the corpus, or with one that is made for it."""
    special = json.loads(specials)
    source = corpus.template(name)
    if tokenizer is not None:
        model = (corpus.tokenizer_folder(tokenizer) / "tokenizer.json").read_bytes()
        return tt.Chat(model, source, special_tokens=special)
    extra = " ".join(str(value) for value in special.values())
    made = marked_tokenizer(source, extra) if marked else small.tokenizer()
    return tt.Chat(made, source, special_tokens=special)


def case_chat(case: dict[str, Any], *, marked: bool = True) -> tt.Chat:
    """The chat of a case."""
    return chat(case["template"], case["tokenizer"], json.dumps(special_tokens(case)), marked=marked)


def case_ids(case: dict[str, Any], used: tt.Chat) -> list[int]:
    """The sampled ids."""
    return case["sampled_ids"] or used.encode(case["sampled_text"]).tolist()


def prompt(case: dict[str, Any], used: tt.Chat) -> Any:
    """The rendered prompt of a case, or its end where the engine cannot render it."""
    kwargs = {name: value for name, value in case["template_kwargs"].items() if not name.endswith("_token")}
    try:
        return used.render(
            case["prompt_messages"], tools=case["tools"], add_generation_prompt=True, template_kwargs=kwargs
        ).token_ids
    except tt.RenderError:
        return case["generation_prompt_tail"]


def stripped(text: str | None) -> str:
    return (text or "").strip()


def plain(message: tt.Message) -> dict[str, Any]:
    """A message in the form of the cases."""
    calls = [
        {"name": call.name, "arguments": call.arguments, "raw": call.raw, "status": call.status}
        for call in message.tool_calls
    ]
    return {
        "content": message.content,
        "reasoning_content": message.reasoning,
        "tool_calls": calls,
        "reasoning_complete": message.reasoning_complete,
        "finished": message.finished,
    }


def differences(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """What differs, by the rules of the cases."""
    wrong = [
        f"{name}: {found[name]!r} instead of {expected[name]!r}"
        for name in ("content", "reasoning_content")
        if stripped(expected[name]) != stripped(found[name])
    ]
    wrong += [
        f"{name}: {found[name]}"
        for name in ("reasoning_complete", "finished")
        if name in expected and expected[name] != found[name]
    ]
    if len(expected["tool_calls"]) != len(found["tool_calls"]):
        return [*wrong, f"calls: {found['tool_calls']}"]
    for want, got in zip(expected["tool_calls"], found["tool_calls"], strict=True):
        fits = want["status"] == got["status"]
        fits &= want["name"] is None or want["name"] == got["name"]
        if want.get("arguments") is not None:
            fits &= json.dumps(want["arguments"], sort_keys=True) == json.dumps(got["arguments"], sort_keys=True)
        if want.get("raw") is not None:
            want_raw, got_raw = stripped(want["raw"]), stripped(got["raw"])
            fits &= want_raw in got_raw or got_raw in want_raw
        if not fits:
            wrong.append(f"call: {got} instead of {want}")
    return wrong


def verdict(case: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """What is wrong about a message: nothing if it is the expected one, or another that the case accepts."""
    readings = [case["expected"], *(case.get("accept") or [])]
    wrong = [differences(reading, found) for reading in readings]
    return [] if [] in wrong else wrong[0]
