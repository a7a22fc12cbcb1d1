"""Templates from a grammar: what jinja2 gives through transformers, `ChatTemplate` gives too.

A case is a template with a conversation. Compiling takes jinja2 most of the time, so each template is rendered with
several conversations. `python tests/test_template_generated.py SEED TEMPLATES` compares more, and prints the counts.
"""

from __future__ import annotations

import gc
import os
import re
import warnings
from collections import Counter
from typing import Any

import pytest

from template_conversations import Conversations
from template_grammar import STATEMENTS, Grammar

pytest.importorskip("transformers")
from template_reference import ENVIRONMENT, compiled, expected, given, parsed, steady

CONVERSATIONS = 8
# `lipsum` writes random text, and the methods left out change their object, which is an error of its own.
CHANGING = (
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "reverse",
    "setdefault",
    "sort",
    "update",
)
UNUSED = {"function lipsum", *(f"method {name}" for name in CHANGING)}


@pytest.fixture(autouse=True)
def clock():
    with steady():
        yield


def addresses(result: tuple[str, Any]) -> bool:
    """Whether a text shows objects by their address, which no engine can repeat."""
    return result[0] == "text" and bool(re.search(" at 0x|built-in method", result[1][0], re.IGNORECASE))


def compare(seed: int, templates: int) -> tuple[Counter[str], Counter[str], list[str]]:
    """Counts of outcomes and, by template, of features; and what differs."""
    grammar, conversations, outcomes, wrong = Grammar(seed), Conversations(seed), Counter(), []
    for _ in range(templates):
        source = grammar.template()
        theirs, ours = compiled(source), parsed(source)
        for _ in range(1 if isinstance(theirs, Exception) else CONVERSATIONS):
            messages, arguments = conversations.draw()
            result = expected(theirs, messages, arguments)
            if addresses(result):
                outcomes["address"] += 1
                continue
            outcomes[result[0]] += 1
            found = given(ours, messages, arguments)
            if found != result:
                wrong.append(f"{source!r} {messages} {arguments}\n   {found}\n   expected {result}")
                break
    return outcomes, grammar.features, wrong


def required() -> set[str]:
    """Every statement, filter, test, function and method that the reference has and a template can mean."""
    statements = {"elif", "else", "for-if", "for-else", "break", "continue", *STATEMENTS}
    names = {"statement": statements, "filter": ENVIRONMENT.filters, "function": ENVIRONMENT.globals}
    names["method"] = {name for kind in (str, dict, list, tuple) for name in dir(kind) if not name.startswith("_")}
    names["test"] = ENVIRONMENT.tests
    return {f"{kind} {name}" for kind, all_names in names.items() for name in all_names} - UNUSED


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::SyntaxWarning")
@pytest.mark.parametrize("seed", range(4))
def test_generated_templates_agree(seed: int):
    outcomes, _, wrong = compare(seed, 100)
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:3])
    assert outcomes["text"] >= 0.6 * (outcomes["text"] + outcomes["error"])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::SyntaxWarning")
def test_many_generated_templates_agree():
    count = int(os.environ.get("TOKENTAPE_GENERATED", "200000"))
    outcomes, features, wrong = compare(1_000_000, -(-count // CONVERSATIONS))
    assert not wrong, f"{len(wrong)} of {count} differ\n" + "\n".join(wrong[:5])
    assert not {name: features[name] for name in required() if features[name] < count / 2000}
    assert outcomes["text"] >= 0.6 * (outcomes["text"] + outcomes["error"])


def main(seed: int, templates: int) -> None:
    """Compares, and prints counts and the first differences."""
    warnings.simplefilter("ignore")
    gc.disable()
    with steady():
        outcomes, features, wrong = compare(seed, templates)
    print(*(f"{features[name]:6} {name}" for name in sorted(features)), sep="\n")
    print("never:", *sorted(required() - set(features)))
    print(dict(outcomes), len(wrong), "differ")
    print("\n".join(wrong[:500]))


if __name__ == "__main__":
    import sys

    main(int(sys.argv[1]), int(sys.argv[2]))
