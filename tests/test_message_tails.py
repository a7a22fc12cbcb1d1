"""A sampled tool call without `message=`: its text and its message must have one tail, or `observe` says so."""

from __future__ import annotations

import json
from collections import Counter

import pytest

import corpus
import prefix
import small
import tokentape as tt
from test_observe import CHATML, USER, chat_of

CALLS = "{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function|tojson }}</tool_call>{% endfor %}"
PLAIN = CHATML.replace("{{ m.content }}", CALLS)
NAMING = PLAIN.replace(
    "{{ m.content }}",
    "{% if m.role == 'tool' %}{{ (messages[loop.index0 - 1].tool_calls or [{'function': {'name': '?'}}])[0]"
    ".function.name }}: {% endif %}{{ m.content }}",
    1,
)
CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call><|im_end|>'
RESULT = [{"role": "tool", "content": "7"}]


def test_a_call_needs_no_message_where_the_tail_is_one():
    chat = chat_of(PLAIN)
    trajectory = chat.start(USER)
    trajectory.act(chat.encode(CALL))
    trajectory = trajectory.observe(RESULT)
    assert chat.decode(trajectory.token_ids).endswith("\n<|im_start|>tool\n7<|im_end|>\n<|im_start|>assistant\n")


def test_a_call_is_refused_where_the_tail_depends_on_it():
    chat = chat_of(NAMING)
    trajectory = chat.start(USER)
    turn = trajectory.act(chat.encode(CALL))
    before = trajectory.token_ids.tolist()
    with pytest.raises(tt.BridgeError, match=r"turn 0: .*\?: 7.*f: 7.*message=chat.parse"):
        trajectory.observe(RESULT)
    assert (trajectory.token_ids.tolist(), trajectory.stage) == (before, "acted")
    # Without a result behind it, nothing depends on the call.
    assert chat.decode(trajectory.fork().observe(USER).token_ids).endswith(
        "user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    for message, name in ((chat.parse(turn.token_ids), "f"), ({"role": "assistant", "content": CALL}, "?")):
        told = chat.start(USER)
        told.act(chat.encode(CALL), message=message)
        assert f"tool\n{name}: 7" in chat.decode(told.observe(RESULT).token_ids)


def tail(
    chat: tt.Chat, prompt: list, ids: list[int], following: list, tools: object, message: object
) -> list[int] | str:
    """The ids behind a turn, or the class of what was raised."""
    trajectory = chat.start(prompt, tools=tools, trusted_roles=("assistant",))
    trajectory.act(ids, message=message)
    try:
        return trajectory.observe(following).token_ids.tolist()
    except (tt.BridgeError, tt.RenderError) as error:
        return type(error).__name__


def test_over_the_corpus_nothing_is_guessed():
    corpus.require()
    scenario = prefix.scenarios()["tool"]
    messages, tools = scenario["messages"], scenario["tools"]
    turn = next(index for index, message in enumerate(messages) if message.get("tool_calls"))
    prompt, following = messages[:turn], messages[turn + 1 : turn + 2]
    options = {"tools": tools, "trusted_roles": ("assistant",), "control_tokens": "template", "seams": "rollout"}
    counts: Counter[str] = Counter()
    tokenizer = json.loads(small.tokenizer().to_str())
    for name in sorted({template for template, _ in prefix.audit()}):
        source = corpus.template(name)
        text = prefix.with_markers(tokenizer, prefix.markers(source))
        try:
            chat = tt.Chat(text, source, special_tokens=corpus.SPECIAL_TOKENS)
            ids, _ = prefix.canonical(chat, messages[: turn + 1], options)
            message = chat.parse(ids, tools)
        except (tt.RenderError, tt.ArgumentError):
            continue
        if not any(call.status == "ok" for call in message.tool_calls):
            continue
        raw = tail(chat, prompt, ids, following, tools, None)
        content = chat.decode(ids[:-1] if ids[-1] in chat.stop_token_ids else ids)
        plain = tail(chat, prompt, ids, following, tools, {"role": "assistant", "content": content})
        parsed = tail(chat, prompt, ids, following, tools, message)
        if raw == "BridgeError":
            counts["refused"] += 1
            assert plain != parsed, name
        else:
            counts["one tail"] += 1
            assert raw == parsed or isinstance(parsed, str), name
    print("tool calls without a message, by template:", dict(counts))
    assert counts["one tail"] > 50
    assert counts["refused"] >= 1
