"""Tools given as Python functions: their JSON schema from signature and docstring.

*Invariant*: the schema is the one that transformers 5.24 makes of the same function, or an error is raised whose `kind`
is the name of the exception class of transformers.
"""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Callable
from enum import Enum, EnumType
from typing import Any, Literal, NoReturn, Union, cast, get_args, get_origin, get_type_hints

from tokentape.errors import RenderError

__all__ = ["function_schema"]

Schema = dict[str, Any]

_SCALARS: dict[type, str] = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
_PLAIN: dict[Any, Schema] = {
    **{kind: {"type": name} for kind, name in _SCALARS.items()},
    list: {"type": "array"},
    tuple: {"type": "array"},
    dict: {"type": "object"},
    Any: {},
}
_SECTIONS = re.compile("Args:|Returns:|Raises:")
_ARGUMENT = re.compile(r"([ \t]*)(\w+)[ \t]*(?:\([^()]*\))?:(.*)")
_CHOICES = re.compile(r"\(choices:\s*(.*?)\)\s*$", re.IGNORECASE)


def _refuse(kind: str, message: str) -> NoReturn:
    error = RenderError(message)
    error.kind = kind
    raise error


def function_schema(function: Callable[..., Any]) -> Schema:
    """The JSON schema of a function with type hints and a Google-style docstring.

    Args:
        function: A function or method; every parameter but a leading `self` or `cls` has a type hint and an entry in
            the docstring.

    Returns:
        `{"type": "function", "function": {"name", "description", "parameters"}}`, with `"return"` where it has a hint.

    Raises:
        RenderError: It is no function, or a hint or a part of the docstring is missing or has no JSON schema.

    Example:
        >>> from tokentape.tools import function_schema
        >>> def add(a: int, b: int = 0):
        ...     '''Add two numbers.
        ...
        ...     Args:
        ...         a: The first.
        ...         b: The second.
        ...     '''
        >>> function_schema(add)["function"]["parameters"]["required"]
        ['a']
    """
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        _refuse("ValueError", f"a tool is a {type(function).__name__}: give a JSON schema as a dict, or a function")
    name = getattr(function, "__name__", "operation")
    text = (inspect.getdoc(function) or "").strip()
    if not text:
        _refuse("DocstringParsingException", f"the tool {name} has no docstring")
    parameters = _parameters(function, name)
    returned = parameters["properties"].pop("return", None)
    descriptions = _argument_descriptions(text)
    for argument, schema in parameters["properties"].items():
        if argument not in descriptions:
            _refuse("DocstringParsingException", f"the docstring of the tool {name} does not describe {argument!r}")
        _describe(schema, descriptions[argument])
    found: Schema = {
        "name": name,
        "description": _SECTIONS.split(text, maxsplit=1)[0].strip(),
        "parameters": parameters,
    }
    if returned is not None:
        if (described := _return_description(text)) is not None:
            returned["description"] = described
        found["return"] = returned
    return {"type": "function", "function": found}


def _describe(schema: Schema, description: str) -> None:
    """Adds a description; choices at its end become an enum."""
    if choices := _CHOICES.search(description):
        values = json.loads(choices.group(1))
        schema["enum"] = [value.strip() if isinstance(value, str) else value for value in values]
        description = description[: choices.start()].strip()
    schema["description"] = description


def _parameters(function: Callable[..., Any], name: str) -> Schema:
    parameters = inspect.signature(function).parameters
    empty = inspect.Parameter.empty
    receiver = next(iter(parameters), None)
    if receiver not in ("self", "cls") or parameters[receiver].annotation is not empty:
        receiver = None
    required: list[str] = []
    for parameter in parameters.values():
        if parameter.name == receiver:
            continue
        if parameter.annotation is empty:
            _refuse("TypeHintParsingException", f"the parameter {parameter.name} of the tool {name} has no type hint")
        if parameter.default is empty:
            required.append(parameter.name)
    hints = {key: hint for key, hint in get_type_hints(function).items() if key != receiver}
    properties = {key: _hint_schema(hint) for key, hint in hints.items() if key != "return"}
    if "return" in hints and (returned := _return_schema(hints["return"])) is not None:
        properties["return"] = returned
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _return_schema(hint: Any) -> Schema | None:
    """The schema of what a function returns; a hint without one is left out, as nobody generates that value."""
    try:
        return _hint_schema(hint)
    except RenderError:
        return None


def _hint_schema(hint: Any) -> Schema:  # noqa: PLR0911 -- one return a kind of hint
    """The JSON schema of a type hint."""
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, EnumType):
        return _values_schema([member.value for member in cast("type[Enum]", hint)], str(hint))
    if origin is None:
        return _plain_schema(hint)
    if origin is Union or origin is types.UnionType:
        return _union_schema(arguments)
    if origin is Literal:
        return _values_schema(list(arguments), str(hint))
    if origin is list:
        return {"type": "array", "items": _hint_schema(arguments[0])}
    if origin is tuple:
        return _tuple_schema(hint, arguments)
    if origin is dict:
        return {"type": "object", "additionalProperties": _hint_schema(arguments[1])}
    return _no_schema(hint)


def _no_schema(hint: Any) -> NoReturn:
    _refuse("TypeHintParsingException", f"the type hint {hint!r} has no JSON schema: give the tool's schema as a dict")


def _plain_schema(hint: Any) -> Schema:
    try:
        return dict(_PLAIN[hint])
    except (KeyError, TypeError):
        return _no_schema(hint)


def _values_schema(values: list[Any], hint: str) -> Schema:
    if not values or any(type(value) not in _SCALARS for value in values):
        _refuse(
            "TypeHintParsingException", f"{hint} holds other values than texts, numbers, booleans and None, or none"
        )
    names = list(dict.fromkeys(_SCALARS[type(value)] for value in values))
    return {"type": names[0] if len(names) == 1 else names, "enum": values}


def _union_schema(arguments: tuple[Any, ...]) -> Schema:
    schemas = [_hint_schema(argument) for argument in arguments if argument is not type(None)]
    if len(schemas) == 1:
        union = schemas[0]
    elif all(schema.keys() == {"type"} and isinstance(schema["type"], str) for schema in schemas):
        names = sorted({schema["type"] for schema in schemas})
        union = {"type": names[0] if len(names) == 1 else names}
    else:
        union = {"anyOf": schemas}
    if type(None) in arguments:
        return {**union, "nullable": True}
    return union


def _tuple_schema(hint: Any, arguments: tuple[Any, ...]) -> Schema:
    if not arguments:
        return {"type": "array"}
    if len(arguments) == 1 or ... in arguments:
        _refuse("TypeHintParsingException", f"{hint!r} has no JSON schema: give list[...], or the item itself")
    return {"type": "array", "prefixItems": [_hint_schema(argument) for argument in arguments]}


def _section(text: str, title: str, ends: str) -> str | None:
    """What stands below the line `title`, up to the first of `ends`."""
    start = re.search(rf"\n\s*{title}\n", text)
    if start is None:
        return None
    body = text[start.end() :]
    end = re.search(ends, body)
    return body[: end.start()] if end else body


def _return_description(text: str) -> str | None:
    section = _section(text, "Returns:", "Raises:")
    return None if section is None else section.strip()


def _argument_descriptions(text: str) -> dict[str, str]:
    """The entries below `Args:`. A line indented deeper than the entry before it continues that entry."""
    section = _section(text, "Args:", "Returns:|Raises:") or ""
    found: dict[str, list[str]] = {}
    name, indent = "", None
    for line in filter(str.strip, section.split("\n")):
        entry = _ARGUMENT.match(line)
        deeper = indent is not None and line.startswith((indent + " ", indent + "\t"))
        if entry and not deeper:
            indent, name = entry[1], entry[2]
            found[name] = [entry[3]]
        elif name:
            found[name].append(line)
    return {name: " ".join(filter(None, map(str.strip, lines))) for name, lines in found.items()}
