"""Tools from functions: the schema equals transformers', and what has none is refused."""

from __future__ import annotations

import enum
from typing import Any, Literal, Optional, Union

import pytest

import tokentape as tt
from tokentape.tools import function_schema

reference = pytest.importorskip("transformers.utils.chat_template_utils")


class Unit(enum.Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"
    NONE = None


def plain(a: int, b: str = "x", c: float | None = None) -> str:
    """Do it.

    More words.

    Args:
        a: The first,
            on two lines.
        b (str): The second: with a colon.
        c: The third (choices: ["1.5", "2.5"])

    Returns:
        A text
    """


def rich(
    unit: Unit,
    mode: Literal["a", 1, True],
    items: list[dict[str, int]],
    pair: tuple[int, str],
    anything: Any,
    either: Union[int, str, None],
    both: Optional[Union[list[int], str]],
    bare: dict,
) -> object:
    """Rich.
    Args:
        unit: u
        mode: m
        items: i
        pair: p
        anything: a
        either: e
        both: b
        bare: d

    Raises:
        ValueError: never
    """


class Holder:
    def method(self, x: bool) -> dict[str, list]:
        """Method.

        Args:
            x: yes
        """


@pytest.mark.parametrize("function", [plain, rich, Holder().method], ids=lambda function: function.__name__)
def test_the_schema_is_the_reference(function: Any):
    assert function_schema(function) == reference.get_json_schema(function)


def no_docstring(a: int): ...


def no_hint(a):
    """x

    Args:
        a: b
    """


def no_entry(a: int):
    """x"""


def custom(a: Holder):
    """x

    Args:
        a: b
    """


@pytest.mark.parametrize("function", [no_docstring, no_hint, no_entry, custom], ids=lambda function: function.__name__)
def test_what_has_no_schema_is_refused(function: Any):
    with pytest.raises(Exception) as expected:
        reference.get_json_schema(function)
    with pytest.raises(tt.RenderError) as caught:
        function_schema(function)
    assert caught.value.kind == type(expected.value).__name__


@pytest.mark.parametrize("tools", [["x"], [3], {"a": 1}, [int]], ids=repr)
def test_tools_that_are_none(tools: Any):
    with pytest.raises(tt.RenderError) as caught:
        tt.ChatTemplate("{{ tools }}").render([], tools=tools)
    assert caught.value.kind == "ValueError"


def test_functions_reach_the_template():
    rendered = tt.ChatTemplate("{{ tools[0].function.name }}").render([], tools=[plain])
    assert rendered.text == "plain"
