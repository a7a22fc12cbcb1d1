"""Batches: conversion beside rendering changes neither order nor errors."""

from __future__ import annotations

import warnings

import pytest

import small
import tokentape as tt

TEMPLATE = tt.ChatTemplate(
    "{% for m in messages %}{% if m.content == 'no' %}{{ raise_exception('refused') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}{% endfor %}"
)


def conversation(content: object) -> list[dict[str, object]]:
    return [{"role": "user", "content": content}]


@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 33, 2000])
def test_results_come_in_order_from_any_iterable(count: int):
    expected = [f"<user>{number}" for number in range(count)]
    conversations = [conversation(str(number)) for number in range(count)]
    assert [rendered.text for rendered in TEMPLATE.render_batch(conversations)] == expected
    assert [rendered.text for rendered in TEMPLATE.render_batch(iter(conversations))] == expected


@pytest.mark.parametrize(("refused", "unreadable"), [(3, 1900), (1900, 3), (40, 41), (41, 40), (0, 1), (1, 0)])
def test_the_first_conversation_that_fails_is_named(refused: int, unreadable: int):
    conversations: list[object] = [conversation("x") for _ in range(2000)]
    conversations[refused] = conversation("no")
    conversations[unreadable] = 7
    match = f"conversation {refused}: refused" if refused < unreadable else "messages is a int"
    for render_batch in (TEMPLATE.render_batch, tt.Chat(small.tokenizer(), TEMPLATE.source).render_batch):
        for _ in range(5):
            with pytest.raises(tt.RenderError, match=match):
                render_batch(conversations)


def test_errors_of_the_iterable_reach_the_caller():
    def broken():
        yield from (conversation("x") for _ in range(100))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        TEMPLATE.render_batch(broken())
    with pytest.raises(TypeError):
        TEMPLATE.render_batch(7)  # type: ignore[arg-type]


def test_a_warning_that_is_an_error_stops_a_batch():
    conversations = [conversation(str(number)) for number in range(100)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="enable_thinkin"):
            TEMPLATE.render_batch(conversations, enable_thinkin=True)
