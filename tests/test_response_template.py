"""Response templates of transformers: what they declare is read as transformers' own parser reads it."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import parse_round_trips as trips
import small
import tokentape as tt
from tokentape.response_template import response_grammar

FUNCTION = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
REASONING = {"open": "<think>", "close_pattern": r"</think>\s*"}
CONTENT = {"close_pattern": r"(?:<end>|<pad>)\s*|$"}
TEMPLATES: dict[str, tuple[dict[str, Any], str]] = {
    "one JSON object": (
        {
            "open": "<call>",
            "close_pattern": r"</call>\s*",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        '<call>{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}</call>',
    ),
    "JSON under other names": (
        {
            "open": "<call>",
            "close": "</call>",
            "repeats": True,
            "content": "json",
            "transform": {"function": {"name": "{content.tool}", "arguments": "{content.given}"}},
        },
        '<call>{"tool": "get_weather", "given": {"city": "Oslo"}}</call>',
    ),
    "a name before JSON": (
        {
            "open_pattern": r"<call>\s*(?P<name>\w+)<sep>",
            "close_pattern": r"</call>\s*",
            "repeats": True,
            "content": "json",
            "transform": FUNCTION,
        },
        '<call>get_weather<sep>{"city": "Oslo", "days": 3}</call>',
    ),
    "tags": (
        {
            "open_pattern": r"<call>\s*<tool=(?P<name>[^\n>]+)>",
            "close_pattern": r"</call>\s*",
            "repeats": True,
            "content": "xml-inline",
            "content_args": {
                "tag_pattern": r"<key=(?P<key>[^>\n]+)>\s*(?P<value>.*?)\s*</key>",
                "value_parser": {"name": "text"},
            },
            "transform": FUNCTION,
        },
        "<call>\n<tool=get_weather>\n<key=city>\nOslo\n</key>\n<key=days>\n3\n</key>\n</tool>\n</call>",
    ),
    "bare keys": (
        {
            "open_pattern": r"<call>call:(?P<name>\w+)",
            "close_pattern": r"</call>\s*",
            "repeats": True,
            "content": "json",
            "content_args": {"string_delims": [["<q>", "<q>"]], "unquoted_keys": True},
            "transform": FUNCTION,
        },
        "<call>call:get_weather{city:<q>Oslo<q>,days:3}</call>",
    ),
    "assignments": (
        {
            "open_pattern": r"(?:<call>\[|,\s*)(?P<name>\w+)\(",
            "close_pattern": r"\)(?:\]</call>)?\s*",
            "repeats": True,
            "content": "xml-inline",
            "content_args": {
                "tag_pattern": r"(?P<key>\w+)=(?P<value>'[^']*'|[^,)]*)",
                "value_parser": {"name": "json", "args": {"string_delims": [["'", "'"]], "allow_non_json": True}},
            },
            "transform": FUNCTION,
        },
        "<call>[get_weather(city='Oslo', days=3)]</call>",
    ),
}


def template(calls: dict[str, Any]) -> dict[str, Any]:
    return {
        "defaults": {"role": "assistant"},
        "start_anchor": "<assistant>",
        "fields": {"reasoning_content": REASONING, "tool_calls": calls, "content": CONTENT},
    }


def chat() -> tt.Chat:
    made = small.tokenizer()
    made.add_tokens(["<think>", "</think>", "<call>", "</call>"])
    source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}"
    return tt.Chat(made, source, special_tokens={"eos_token": "<end>"})


@pytest.mark.parametrize("form", TEMPLATES)
@pytest.mark.parametrize(
    "around", ["{}<end>", "<think>why</think>\n{}<end>", "Look: {}<end>", "<think>a</think>b{}{}<end>"]
)
def test_what_the_peer_reads(form: str, around: str) -> None:
    parser = pytest.importorskip("transformers.utils.chat_parsing.response_parser")
    calls, shown = TEMPLATES[form]
    text = around.replace("{}", shown)
    wanted = parser.parse_response(text, template(calls), prefix="<assistant>", tools=trips.TOOLS)
    used = chat()
    found = used.parse(used.encode(text), trips.TOOLS, "<assistant>", grammar=template(calls))
    assert found.finished
    assert found.content == (wanted.get("content") or "").strip()
    assert (found.reasoning or "") == wanted.get("reasoning_content", "").strip()
    assert [(call.name, call.arguments, call.status) for call in found.tool_calls] == [
        (call["function"]["name"], call["function"]["arguments"], "ok") for call in wanted["tool_calls"]
    ]


def test_a_schema_that_is_no_data_is_an_error_where_its_types_are_needed() -> None:
    calls, shown = TEMPLATES["tags"]
    used = chat()
    days = {"type": "integer", "description": "\ud800"}
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {"properties": {"days": days}}}}]
    with pytest.raises(tt.RenderError, match="surrogate"):
        used.parse(used.encode(shown + "<end>"), tools, grammar=template(calls))
    assert used.parse(used.encode("Hello.<end>"), tools, grammar=template(calls)).content == "Hello."


def test_a_folder_and_a_live_tokenizer_carry_one(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    given = template(TEMPLATES["one JSON object"][0])
    (tmp_path / "tokenizer.json").write_text(small.tokenizer().to_str())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"response_template": given}))
    used = tt.Chat.from_pretrained(tmp_path)
    assert used.response_template == given
    assert pickle.loads(pickle.dumps(used)).response_template == given
    message = used.parse(
        used.encode('<call>{"name": "f", "arguments": {}}</call><end>'), grammar=used.response_template
    )
    assert [call.name for call in message.tool_calls] == ["f"]
    live = transformers.PreTrainedTokenizerFast(tokenizer_object=small.tokenizer(), response_template=given)
    assert tt.Chat.from_tokenizer(live).response_template == given
    assert chat().response_template is None


def test_reasoning_that_the_prompt_opens() -> None:
    given = template(TEMPLATES["one JSON object"][0])
    given["start_anchor_pattern"] = r"<assistant>\n?<think>(?:\n|</think>)?"
    del given["start_anchor"]
    given["fields"]["reasoning_content"] = {"open_pattern": r"(?=[\s\S]*?</think>)", "close_pattern": r"</think>\s*"}
    used = chat()
    message = used.parse(used.encode("why</think>Yes.<end>"), grammar=given)
    assert (message.reasoning, message.content, message.reasoning_complete) == ("why", "Yes.", True)


def test_parts_with_headers() -> None:
    fields = {
        "thinking": {"open": "<chan>analysis<msg>", "close": "<part>"},
        "content": {"open": "<chan>final<msg>", "close": "<end>"},
        "tool_calls": {
            "open_pattern": r"to=functions\.(?P<name>\S+?)<chan>calls<msg>",
            "close": "<stop>",
            "content": "json",
            "transform": FUNCTION,
        },
    }
    used = chat()
    given = {"start_anchor": "<start>assistant", "fields": fields}
    said = '<chan>analysis<msg>why<part><start>assistant to=functions.ping<chan>calls<msg>{"a": 1}<stop>'
    message = used.parse(used.encode(said), prompt="<start>assistant", grammar=given)
    assert (message.reasoning, message.content, message.finished) == ("why", "", True)
    assert [(call.name, call.arguments, call.status) for call in message.tool_calls] == [("ping", {"a": 1}, "ok")]
    message = used.parse(used.encode("<chan>final<msg>Yes.<end>"), prompt="<start>assistant", grammar=given)
    assert (message.reasoning, message.content, message.tool_calls) == (None, "Yes.", ())


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("content", {"close_pattern": r"<[a-z]+>"}, "content"),
        ("reasoning_content", {"open_pattern": r"<think>+", "close": "x"}, "reasoning_content"),
        ("tool_calls", {"open": "<call>", "close": "</call>", "content": "xml"}, "tool_calls"),
        ("tool_calls", {"open_pattern": r"<call>(?P<name>\w+", "close": "x", "content": "json"}, "open"),
        ("images", {"open": "<image>", "close": "</image>"}, "images"),
    ],
)
def test_what_is_no_mark_is_refused_by_name(field: str, value: dict[str, Any], named: str) -> None:
    given = template(TEMPLATES["tags"][0])
    given["fields"][field] = value
    with pytest.raises(tt.ArgumentError, match=f"response_template.*{named}"):
        response_grammar(given)
    with pytest.raises(tt.ArgumentError, match="response_template"):
        chat().parse([1], grammar=given)
