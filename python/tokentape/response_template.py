"""A `response_template` of transformers as a grammar of sampled turns.

*Invariant*: what is read is read exactly; a pattern that says more than marks around a field is refused by name, never
guessed at. White space in patterns is free, as it is in grammars.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tokentape.errors import ArgumentError

__all__ = ["response_grammar"]

REASONING = ("reasoning_content", "thinking", "reasoning")
TAG = re.compile(r"</?[^<>\s]+>|\[/?[A-Z_]+\]")
KEY = re.compile(r'"(\w+)":')
PLACE = re.compile(r"\{content\.(\w+)\}")


def response_grammar(template: Mapping[str, Any]) -> dict[str, Any]:
    """The grammar that a response template declares.

    Args:
        template: The `response_template` of a tokenizer, as transformers 5.13 and newer keep it: `start_anchor`, and
            `fields` with `open`, `close` and `content`.

    Returns:
        A dict of the form of `Chat.grammar`, which `Chat.parse` takes.

    Raises:
        ArgumentError: The template matches more than marks around fields; the message names the field.

    Example:
        >>> fields = {
        ...     "content": {"close": "<end>"},
        ...     "tool_calls": {"open": "<call>", "close": "</call>", "content": "json"},
        ... }
        >>> grammar = response_grammar({"start_anchor": "<assistant>", "fields": fields})
        >>> grammar["calls"][0]["open"], grammar["stops"]
        ('<call>', ['<end>'])
    """
    fields = _fields(template)
    header = _anchors("template", template, "start_anchor")[0].strip()
    content = fields.pop("content", {})
    grammar: dict[str, Any] = {"header": header, "stops": _stops("content", content)}
    if "open" in content:
        return grammar | _addressed(header, content, fields)
    for name, field in fields.items():
        if name in REASONING:
            grammar |= _reasoning(name, field, header)
        elif name == "tool_calls":
            grammar["calls"] = [_calls(field)]
        else:
            raise ArgumentError(f"response_template: the field {name!r} is neither content, reasoning nor tool_calls")
    return grammar


def _fields(template: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    fields: Any = template.get("fields")
    if not isinstance(fields, Mapping) or not all(isinstance(field, Mapping) for field in fields.values()):  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        raise ArgumentError("response_template: fields is no dict of dicts")
    return dict(fields)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _stops(name: str, field: Mapping[str, Any]) -> list[str]:
    return [stop for close in _anchors(name, field, "close") if (stop := close.strip())]


def _addressed(header: str, content: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Parts with headers: content has a mark of its own, whose end begins the body of every part."""
    opened = _anchors("content", content, "open")[0].strip()
    body = TAG.findall(opened)[-1:]
    if not body or not opened.endswith(body[0]):
        raise ArgumentError("response_template: what opens content does not end with a mark; declare a grammar")
    parts = {"header": header, "body": body[0], "content": opened.removesuffix(body[0])}
    stops = _stops("content", content)
    for name, field in fields.items():
        if name in REASONING:
            reasoning = _anchors(name, field, "open")[0].strip()
            parts |= {"reasoning": reasoning.removesuffix(body[0]), "ends": _stops(name, field)}
        else:
            before = _literals(name, str(field.get("open_pattern", "")).partition("(?P<name>")[0])[0]
            parts["recipient"] = before.split()[-1] if before.strip() else ""
            stops += _stops(name, field)
    return {"stops": stops, "parts": parts}


def _reasoning(name: str, field: Mapping[str, Any], header: str) -> dict[str, Any]:
    """The frame of reasoning; a pattern that only looks ahead says that the prompt opens it."""
    close = _anchors(name, field, "close")[0]
    if not str(field.get("open_pattern", "")).startswith("(?="):
        return {"reasoning": {"open": _anchors(name, field, "open")[0].strip(), "close": close.strip()}}
    tags = TAG.findall(header)
    if not tags or not header.endswith(tags[-1]):
        raise ArgumentError(f"response_template: nothing opens the field {name!r}, and no mark ends start_anchor")
    header = header.removesuffix(tags[-1]).strip()
    return {"header": header, "prefill": tags[-1], "reasoning": {"open": tags[-1], "close": close.strip()}}


# Calls ----------------------------------------------------------------------------------------------------------------


def _calls(field: Mapping[str, Any]) -> dict[str, Any]:
    """The way of writing calls."""
    before, named, rest = str(field.get("open_pattern", "")).partition("(?P<name>")
    kind, arguments = field.get("content", "text"), field.get("content_args", {})
    if named:
        return _named(before, rest, field)
    if kind != "json" or arguments:
        message = f"tool_calls without a name in open_pattern are read from plain JSON, not from {kind!r}"
        raise ArgumentError(f"response_template: {message}")
    opened, closed = _anchors("tool_calls", field, "open")[0], _tagged(_anchors("tool_calls", field, "close"))
    return {"open": opened.strip(), "close": closed.strip(), "body": _json(field.get("transform"))}


def _named(before: str, rest: str, field: Mapping[str, Any]) -> dict[str, Any]:
    """Calls whose name stands in what opens them: what is before it, and the pattern from the name on."""
    kind, arguments = field.get("content"), field.get("content_args", {})
    opened, behind = _tagged(_literals("tool_calls", before)), _literals("tool_calls", _after_group(rest))[0].strip()
    if opened.startswith("{"):
        return {"body": {"form": "json", "name": KEY.findall(opened)[-1:], "arguments": KEY.findall(behind)[-1:]}}
    tag = TAG.match(opened)
    mark, lead = (tag[0], opened[tag.end() :].strip()) if tag else (opened.strip(), "")
    calls = {"open": mark, "close": _close_tag(_anchors("tool_calls", field, "close")), "lead": lead}
    if kind == "xml-inline":
        return calls | _inline(lead, behind, arguments)
    if kind != "json":
        raise ArgumentError(f"response_template: arguments of tool_calls written as {kind!r} are not read")
    if arguments.get("unquoted_keys") or arguments.get("string_delims"):
        quotes = [{"open": start, "close": end} for start, end in arguments.get("string_delims", [])]
        body = {"form": "literal", "open": "{", "assign": ":", "close": "}", "quotes": quotes[0] if quotes else None}
        return calls | {"body": body}
    return calls | {"body": {"form": "named", "separators": [behind] if behind else []}}


def _json(transform: object) -> dict[str, Any]:
    """Where name and arguments stand in JSON that holds both."""
    shown = str(transform)
    places = PLACE.findall(shown)
    if not places:
        return {"form": "json", "name": ["name"], "arguments": ["arguments"]}
    by_name = re.search(r"'name': '\{content\.(\w+)\}'", shown)
    by_arguments = re.search(r"'arguments': '\{content\.(\w+)\}'", shown)
    if by_name is None or by_arguments is None:
        raise ArgumentError(f"response_template: the transform of tool_calls names no name and arguments: {shown}")
    return {"form": "json", "name": [by_name[1]], "arguments": [by_arguments[1]]}


def _inline(lead: str, behind: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that a pattern finds one by one: between tags, or assigned in brackets."""
    pattern = str(arguments.get("tag_pattern"))
    before, key, rest = pattern.partition("(?P<key>")
    between, value, after = _after_group(rest).partition("(?P<value>")
    if not key or not value:
        raise ArgumentError("response_template: tag_pattern of tool_calls has no key and value")
    opened, closed = _literals("tag_pattern", before)[0], _literals("tag_pattern", _after_group(after))[0]
    pieces = _literals("tag_pattern", between)[0].split()
    if pieces in (["="], [":"]) and not opened:
        return {
            "lead": lead.removesuffix("["),
            "body": {"form": "literal", "open": behind, "assign": pieces[0], "close": ")"},
        }
    tag = re.match(r"<([\w:.-]+)[=\s]", lead)
    body = {
        "form": "tagged",
        "name_close": behind,
        "key_open": opened.strip(),
        "key_close": pieces[0] if pieces else "",
        "value_open": " ".join(pieces[1:]),
        "value_close": closed.strip(),
        "line_before": between.endswith(r"\s*"),
        "line_after": _after_group(after).startswith(r"\s*"),
    }
    return {"lead": lead, "trail": f"</{tag[1]}>" if tag else "", "body": body}


def _tagged(alternatives: list[str]) -> str:
    """The alternative that holds a mark; the longest, if several do."""
    return max(alternatives, key=lambda text: (TAG.search(text) is not None, len(text)))


def _close_tag(alternatives: list[str]) -> str:
    """What closes a call, without the bracket before it."""
    closed = _tagged(alternatives)
    tag = TAG.search(closed)
    return closed[tag.start() :].strip() if tag else closed.strip()


# Patterns -------------------------------------------------------------------------------------------------------------


def _anchors(name: str, field: Mapping[str, Any], key: str) -> list[str]:
    """The texts of an anchor: one, several, or what a pattern matches."""
    if isinstance(literal := field.get(key), str):
        return [literal]
    if isinstance(literal, list) and literal:
        return [str(text) for text in literal]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(pattern := field.get(f"{key}_pattern"), str):
        return _literals(name, pattern)
    raise ArgumentError(f"response_template: {name!r} has no {key!r}")


def _literals(name: str, pattern: str) -> list[str]:
    """The texts that a pattern matches, white space free."""
    try:
        return [text for alternative in _split(pattern) for text in _texts(alternative)]
    except ValueError as error:
        raise ArgumentError(f"response_template: {name!r} has the pattern {pattern!r}, which {error}") from error


def _texts(pattern: str) -> list[str]:
    """The texts that one alternative of a pattern matches; with what is optional first."""
    texts = [""]
    for token, suffix in _tokens(pattern):
        if token.startswith("("):
            if not token.startswith("(?:"):
                raise ValueError("captures or looks around")
            choices = [text for alternative in _split(token[3:-1]) for text in _texts(alternative)]
        else:
            choices = [_character(token)]
        if suffix and choices != [" "]:
            if suffix != "?":
                raise ValueError(f"repeats {token!r}")
            choices.append("")
        texts = [text + choice for text in texts for choice in choices]
    return texts


def _tokens(pattern: str) -> Iterator[tuple[str, str]]:
    """The characters, escapes and groups of a pattern, each with what repeats it."""
    at = 0
    while at < len(pattern):
        length = 2 if pattern[at] == "\\" else _group(pattern, at) if pattern[at] == "(" else 1
        token, at = pattern[at : at + length], at + length
        suffix = re.match(r"[*+?]*", pattern[at:])
        found = suffix[0] if suffix else ""
        at += len(found)
        yield token, found


def _character(written: str) -> str:
    """What one character or escape of a pattern matches."""
    if written in (r"\s", r"\n", r"\t", " ", "\n"):
        return " "
    if written == "$":
        return ""
    if written in ".[]{}^*+?" or (written.startswith("\\") and written[1:].isalnum()):
        raise ValueError(f"holds {written!r}")
    return written.removeprefix("\\")


def _group(pattern: str, start: int) -> int:
    """The length of the group that begins at a place."""
    depth, at = 0, start
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] == "[":
            at = pattern.index("]", at + 2)
        else:
            depth += {"(": 1, ")": -1}.get(pattern[at], 0)
        at += 1
        if depth == 0:
            return at - start
    raise ValueError("leaves a group open")


def _after_group(rest: str) -> str:
    """What stands behind the group whose beginning was taken off."""
    try:
        return rest[_group("(" + rest, 0) - 1 :]
    except ValueError as error:
        raise ArgumentError(f"response_template: the pattern {rest!r} {error}") from error


def _split(pattern: str) -> list[str]:
    """The alternatives of a pattern."""
    found, start, at = list[str](), 0, 0
    while at < len(pattern):
        if pattern[at] == "|":
            found.append(pattern[start:at])
            start = at + 1
        at += 2 if pattern[at] == "\\" else _group(pattern, at) if pattern[at] == "(" else 1
    return [*found, pattern[start:]]
