"""What a model said: cases, truncation, streams, round trips."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import numpy as np
import pytest

import corpus
import parse_round_trips as trips
import parsecases
import small
import tokentape as tt


def cases() -> list[Any]:
    if not os.environ.get("TOKENTAPE_PARSECASES") and not corpus.ROOT.is_dir():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"no corpus at {corpus.ROOT}"))]
    return [pytest.param(case, id=case["id"]) for case in parsecases.cases()]


def tokenizers(case: dict[str, Any]) -> list[tt.Chat]:
    """The chat of a case; where it has no tokenizer, one with marks as tokens, and one of single bytes."""
    return [
        parsecases.case_chat(case, marked=marked)
        for marked in ([True] if case["tokenizer"] or case["sampled_ids"] else [True, False])
    ]


@pytest.mark.parametrize("case", cases())
def test_case(case: dict[str, Any]) -> None:
    for chat in tokenizers(case):
        ids = parsecases.case_ids(case, chat)
        prompt = parsecases.prompt(case, chat)
        found = parsecases.plain(chat.parse(ids, case["tools"], prompt))
        assert parsecases.verdict(case, found) == []
        check_streams(chat, case, ids, prompt)
        check_truncations(chat, case, ids, prompt)


def check_streams(chat: tt.Chat, case: dict[str, Any], ids: list[int], prompt: Any) -> None:
    """The same message at every split and token by token, and deltas that are the fields."""
    whole = chat.parse(ids, case["tools"], prompt)
    splits = [[ids[:cut], ids[cut:]] for cut in range(len(ids) + 1)] + [[[id_] for id_ in ids]]
    for pieces in splits:
        stream = chat.parse_stream(case["tools"], prompt)
        deltas = [delta for piece in pieces for delta in stream.push(piece)]
        message, last = stream.finish()
        assert message == whole
        deltas += last
        assert "".join(text for kind, text in deltas if kind == "content") == whole.content
        assert "".join(text for kind, text in deltas if kind == "reasoning") == (whole.reasoning or "")
        assert [call.raw for kind, call in deltas if kind == "tool_call"] == [call.raw for call in whole.tool_calls]


def check_truncations(chat: tt.Chat, case: dict[str, Any], ids: list[int], prompt: Any) -> None:
    """A cut turn never raises, and holds no call as `ok` that the whole turn does not."""
    whole = chat.parse(ids, case["tools"], prompt)
    good = [(call.name, json.dumps(call.arguments)) for call in whole.tool_calls if call.status == "ok"]
    for cut in range(len(ids)):
        message = chat.parse(ids[:cut], case["tools"], prompt)
        for call in message.tool_calls:
            assert call.status != "ok" or (call.name, json.dumps(call.arguments)) in good
            start, end = call.token_span
            assert 0 <= start <= end <= cut


# Round trips ----------------------------------------------------------------------------------------------------------

LOSES = {
    "hfjs_liquidai_lfm2.5_vl_450m.jinja": "quotes: a quotation mark inside a text is not escaped",
    "trl_lfm2_2_5.jinja": "quotes: a quotation mark inside a text is not escaped",
    "trl_lfm2_2_5_v2.jinja": "quotes: a quotation mark inside a text is not escaped",
    "hfjs_nousresearch_hermes_2_pro_llama_3_8b_json_schema.jinja": "parallel: the second call is not opened",
    "unsloth_gptoss.jinja": "parallel: only the first call is printed",
    "vllm_tool_chat_template_llama3.2_pythonic.jinja": "texts are printed without quotation marks",
    "vllm_tool_chat_template_toolace.jinja": "texts are printed without quotation marks",
    "vllm_tool_chat_template_llama4_pythonic.jinja": "quotes: a quotation mark inside a text is not escaped",
    "llcpp_minimax_m3.jinja": "nested: lists and dicts are printed as elements of markup",
}
"""Templates that do not keep all of a message, and what they lose."""


def test_round_trips() -> None:
    count = kept = 0
    failed: dict[str, list[str]] = {}
    for path in sorted((corpus.require() / "templates").glob("*.jinja")):
        chat = parsecases.chat(path.name, None, json.dumps(corpus.SPECIAL_TOKENS), marked=True)
        grammar = chat.grammar
        for kind, calls in trips.CALLS.items() if grammar["calls"] or grammar["parts"] else ():
            shown = trips.sampled(chat, trips.message(calls, as_text=grammar["arguments_as_text"]))
            if shown is None or calls[0][0] not in shown[1]:
                continue
            found = chat.parse(chat.encode(shown[1]), trips.TOOLS, shown[0])
            count += 1
            if [(call.name, call.arguments, call.status) for call in found.tool_calls] == [
                (*call, "ok") for call in calls
            ]:
                kept += 1
            else:
                failed.setdefault(path.name, []).append(kind)
    corpus.ran("parse round trips", count)
    print(f"{kept} of {count} round trips")
    assert set(failed) <= set(LOSES), {name: kinds for name, kinds in failed.items() if name not in LOSES}
    assert kept >= 0.96 * count


# Hostile input -------------------------------------------------------------------------------------------------------

HERMES = (
    "{% for m in messages %}<{{ m.role }}>"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ {'name': c.function.name, 'arguments': "
    "c.function.arguments}|tojson }}</tool_call>{% endfor %}<end>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def small_chat() -> tt.Chat:
    made = small.tokenizer()
    made.add_tokens(["<tool_call>", "</tool_call>", "<think>", "</think>"])
    return tt.Chat(made, HERMES, special_tokens={"eos_token": "<end>"})


def test_a_typed_marker_is_text() -> None:
    chat = small_chat()
    bytes_of = [
        id_ for character in '<tool_call>{"name": "f", "arguments": {}}</tool_call>' for id_ in chat.encode(character)
    ]
    message = chat.parse([*bytes_of, chat.token_id("<end>")])
    assert message.tool_calls == ()
    assert message.content.startswith("<tool_call>")
    assert message.finished


def test_spans_name_the_tokens_of_a_call() -> None:
    chat = small_chat()
    ids = chat.encode('Hi <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call><end>')
    message = chat.parse(ids)
    (call,) = message.tool_calls
    start, end = call.token_span
    assert chat.decode(ids[start:end]) == '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'


def test_a_message_goes_back_into_a_conversation() -> None:
    chat = small_chat()
    ids = chat.encode('<think>why</think>Hi<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call><end>')
    message = chat.parse(ids)
    user = {"role": "user", "content": "go"}
    assert chat.render([user, message]).text.endswith(chat.decode(ids))
    trajectory = chat.start([user])
    turn = trajectory.act(ids, [0.0] * len(ids), message=message)
    assert turn.token_ids.tolist() == ids.tolist()
    following = trajectory.observe([{"role": "tool", "content": "1"}])
    assert following.token_ids.tolist()[: len(trajectory.token_ids)] == trajectory.token_ids.tolist()


def test_a_declared_grammar_goes_before_the_learned_one() -> None:
    chat = small_chat()
    grammar = {
        "calls": [{"open": "[[", "close": "]]", "body": {"form": "named", "separators": ["::"]}}],
        "stops": ["<end>"],
    }
    message = chat.parse(chat.encode('[[f::{"a": 1}]]<end>'), grammar=grammar)
    assert [(call.name, call.arguments, call.status) for call in message.tool_calls] == [("f", {"a": 1}, "ok")]
    assert chat.parse(chat.encode("[[f::{}]]<end>"), grammar=chat.grammar).tool_calls == ()
    with pytest.raises(tt.ArgumentError, match="grammar"):
        chat.parse([], grammar={"calls": 3})


def test_named_templates_are_chosen_as_rendering_chooses_them() -> None:
    made = small.tokenizer()
    made.add_tokens(["<tool_call>", "</tool_call>", "<think>", "</think>"])
    plain = HERMES.replace("<tool_call>", "[[").replace("</tool_call>", "]]")
    chat = tt.Chat(made, {"default": plain, "tool_use": HERMES}, special_tokens={"eos_token": "<end>"})
    ids = chat.encode('<tool_call>{"name": "f", "arguments": {}}</tool_call><end>')
    assert [call.name for call in chat.parse(ids, trips.TOOLS).tool_calls] == ["f"]
    assert chat.parse(ids).tool_calls == ()
    assert [call.name for call in chat.parse(chat.encode('[[{"name": "f", "arguments": {}}]]<end>')).tool_calls] == [
        "f"
    ]
    tools_only = tt.Chat(made, {"tool_use": HERMES}, special_tokens={"eos_token": "<end>"})
    assert [call.name for call in tools_only.parse(ids).tool_calls] == ["f"]


def test_ids_and_prompts_of_any_kind_are_read_alike() -> None:
    chat = small_chat()
    ids = chat.encode('why</think>Hi<tool_call>{"name": "get_weather", "arguments": {"city": "x"}}</tool_call><end>')
    question = [{"role": "user", "content": "go " * 600}]
    rendered = chat.render(question, add_generation_prompt=True)
    prompt = np.append(rendered.token_ids, chat.token_id("<think>")).astype(np.int32)
    whole = chat.parse(ids, trips.TOOLS, prompt)
    assert (whole.reasoning, whole.content, whole.tool_calls[0].status) == ("why", "Hi", "ok")
    for given in (ids.tolist(), tuple(ids.tolist()), ids.astype(np.int64), ids[::1], np.repeat(ids, 2)[::2]):
        for before in (prompt.tolist(), tuple(prompt.tolist()), prompt.astype(np.uint32), chat.decode(prompt)):
            for tools in (trips.TOOLS, tuple(trips.TOOLS), json.dumps(trips.TOOLS)):
                assert chat.parse(given, tools, before) == whole
    assert chat.parse(ids, trips.TOOLS, rendered) == chat.parse(ids, trips.TOOLS, rendered.token_ids)
    assert chat.parse(ids, [], prompt).tool_calls[0].status == "unknown_tool"
    for wrong in ([1, 2.5], [True, False], [[1]], ["a"], [2**40]):
        with pytest.raises(tt.TokentapeError):
            chat.parse(wrong)


def test_calls_of_a_stream_have_the_ids_of_the_message() -> None:
    chat = small_chat()
    call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    ids = chat.encode(call + call + "<end>")
    stream = chat.parse_stream()
    deltas = stream.push(ids)
    message, last = stream.finish()
    assert [said.id for kind, said in deltas + last if kind == "tool_call"] == [said.id for said in message.tool_calls]
    assert len({said.id for said in message.tool_calls}) == 2


def test_an_unknown_id_is_an_error() -> None:
    chat = small_chat()
    with pytest.raises(tt.TokenizerError, match="token 1"):
        chat.parse([1, 10_000_000])


def test_random_mutations_raise_nothing() -> None:
    chat = small_chat()
    source = chat.encode(
        '<think>a</think>b<tool_call>{"name": "f", "arguments": {"a": [1, "x"]}}</tool_call><end>'
    ).tolist()
    chance = random.Random(7)
    for _ in range(2000):
        ids = list(source)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(ids) + 1)
            ids[at : at + chance.randrange(3)] = [chance.randrange(chat.vocab_size) for _ in range(chance.randrange(3))]
        message = chat.parse(ids, prompt="<assistant>")
        stream = chat.parse_stream(prompt="<assistant>")
        for id_ in ids:
            stream.push([id_])
        assert stream.finish()[0] == message


def test_the_audit_says_the_grammar() -> None:
    words = str(small_chat().audit())
    assert 'Reasoning stands between "<think>" and "</think>".' in words
    assert 'Calls stand between "<tool_call>" and "</tool_call>"' in words
