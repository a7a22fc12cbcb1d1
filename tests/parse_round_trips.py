"""What templates print for messages, read back: what the template keeps of a message must come back."""

from __future__ import annotations

import json
from typing import Any

import tokentape as tt

USER = {"role": "user", "content": "Hello, please help."}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"The tool {name}",
            "parameters": {"type": "object", "properties": properties, "required": []},
        },
    }
    for name, properties in {
        "get_weather": {
            "city": {"type": "string", "description": "c"},
            "days": {"type": "integer", "description": "d"},
        },
        "ping": {},
        "save_note": {
            "text": {"type": "string", "description": "t"},
            "tags": {"type": "array", "items": {"type": "string"}, "description": "t"},
            "meta": {"type": "object", "description": "m"},
            "pinned": {"type": "boolean", "description": "p"},
        },
    }.items()
]
CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "text": [("get_weather", {"city": "São Paulo"})],
    "number": [("get_weather", {"city": "Paris", "days": 3})],
    "empty": [("ping", {})],
    "parallel": [("get_weather", {"city": "Oslo"}), ("ping", {})],
    "nested": [("save_note", {"text": "plain", "tags": ["a, b", "c"], "meta": {"k": {"n": 1.5}}})],
    "quotes": [("save_note", {"text": 'a "q"\nline 2, it\'s <b>'})],
    "boolean": [("save_note", {"text": "x", "pinned": True})],
}


def message(calls: list[tuple[str, dict[str, Any]]], *, content: str = "", as_text: bool = False) -> dict[str, Any]:
    """An assistant message with calls."""

    def call(index: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        given: Any = json.dumps(arguments, ensure_ascii=False) if as_text else arguments
        function = {"name": name, "arguments": given}
        id_ = f"functions.{name}:{index}"
        return {"id": id_, "type": "function", "function": function}

    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [call(index, *entry) for index, entry in enumerate(calls)],
    }


def sampled(chat: tt.Chat, answer: dict[str, Any]) -> tuple[str, str] | None:
    """The prompt and what a policy would have sampled after it, or None if the template refuses."""
    try:
        whole = chat.render([USER, answer], tools=TOOLS)
        prompt = chat.render([USER], tools=TOOLS, add_generation_prompt=True).text
    except tt.RenderError:
        return None
    if whole.text.startswith(prompt):
        return prompt, whole.text[len(prompt) :]
    spans = whole.assistant_spans
    if not spans or not spans[-1].spans:
        return None
    start, end = spans[-1].spans[0][0], spans[-1].spans[-1][1]
    return whole.text[:start], whole.text[start:end]
