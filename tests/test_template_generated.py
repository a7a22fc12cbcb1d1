"""Templates from a grammar: what jinja2 gives through transformers, `ChatTemplate` gives too."""

from __future__ import annotations

import datetime
import os
import re
import warnings
from collections import Counter
from typing import Any

import pytest

import tokentape as tt
from template_grammar import CONTEXT, Grammar

reference = pytest.importorskip("transformers.utils.chat_template_utils")
NOW = datetime.datetime(2026, 11, 30, 9, 5, 7)


class Frozen(datetime.datetime):
    @classmethod
    def now(cls, tz: Any = None) -> datetime.datetime:
        return cls(2026, 11, 30, 9, 5, 7)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reference, "datetime", Frozen)


def expected(source: str, messages: list[dict[str, Any]]) -> tuple[str, Any]:
    try:
        compiled = reference._cached_compile_jinja_template(source)
        text, spans = reference._render_with_assistant_indices(
            compiled, messages=messages, tools=None, documents=None, add_generation_prompt=False, **CONTEXT
        )
    except Exception as error:
        return "error", type(error).__name__
    return "text", (text, [tuple(span) for span in spans])


def given(source: str, messages: list[dict[str, Any]]) -> tuple[str, Any]:
    try:
        rendered = tt.ChatTemplate(source).render(messages, now=NOW, template_kwargs=CONTEXT)
    except (tt.TemplateError, tt.RenderError) as error:
        return "error", error.kind
    assert "".join(rendered.text[span.start : span.end] for span in rendered.spans) == rendered.text
    return "text", (rendered.text, rendered.generation_spans)


def addresses(result: tuple[str, Any]) -> bool:
    """Whether a text shows objects by their address, which no engine can repeat."""
    return result[0] == "text" and bool(re.search(" at 0x|built-in method", result[1][0], re.IGNORECASE))


def compare(seed: int, count: int) -> tuple[Counter[str], Counter[str], list[str]]:
    grammar, outcomes, wrong = Grammar(seed), Counter(), []
    for _ in range(count):
        source, messages = grammar.template(), grammar.messages()
        reference_result = expected(source, messages)
        if addresses(reference_result):
            outcomes["address"] += 1
            continue
        outcomes[reference_result[0]] += 1
        result = given(source, messages)
        if result != reference_result:
            wrong.append(f"{source!r} {messages}\n   {result}\n   expected {reference_result}")
    return outcomes, grammar.features, wrong


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::SyntaxWarning")
@pytest.mark.parametrize("seed", range(4))
def test_generated_templates_agree(seed: int):
    outcomes, _, wrong = compare(seed, 150)
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:3])
    assert outcomes["text"] >= 0.5 * outcomes.total()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::SyntaxWarning")
def test_many_generated_templates_agree():
    count = int(os.environ.get("TOKENTAPE_GENERATED", "200000"))
    outcomes, features, wrong = compare(1_000_000, count)
    rare = {name: number for name, number in features.items() if number < count / 2000}
    assert not wrong, f"{len(wrong)} of {count} differ\n" + "\n".join(wrong[:5])
    assert not rare
    assert outcomes["text"] >= 0.6 * outcomes.total()


if __name__ == "__main__":
    import sys

    reference.datetime = Frozen
    warnings.simplefilter("ignore")
    outcomes, _, wrong = compare(int(sys.argv[1]), int(sys.argv[2]))
    print(outcomes, len(wrong), "differ")
    print("\n".join(wrong[: int(sys.argv[3]) if sys.argv[3:] else 10]))
