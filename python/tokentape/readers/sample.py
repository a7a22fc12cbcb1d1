"""What a reader yields: sequences as the columns of the contract, and what reading alone shows to be wrong.

*Invariant*: a reader repairs nothing. A list that is too short stays too short, a filler on a sampled token stays
there: that they are wrong is for lint to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from tokentape.errors import SchemaError

__all__ = [
    "NULL",
    "Finding",
    "Items",
    "Piece",
    "Place",
    "Sample",
    "TruncatedError",
    "attempt",
    "attempts",
    "floats",
    "ids",
    "mask",
    "span_mask",
    "turns",
]

NULL = np.array(0x7FC0_0001, np.uint32).view(np.float32)[()]
"""The NaN that stands for a null among logprobs: Arrow lists hold values only."""

INT32 = np.iinfo(np.int32)

MALFORMED = (AttributeError, IndexError, KeyError, OverflowError, RecursionError, SchemaError, TypeError, ValueError)
"""What a record of another form than its format says can raise while it is taken apart."""


class TruncatedError(SchemaError):
    """A file ends before its content does."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a token stands in its file."""

    row: int | None = None
    """The sequence, in file order; for a damaged line, the line."""
    token: int | None = None
    """The index in the list `field`."""
    end: int | None = None
    field: str | None = None
    node: int | None = None
    """The node of a graph, in formats of graphs."""
    group: int | None = None
    index: int | None = None
    """The sequence inside its group."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault that reading shows."""

    kind: str
    message: str
    place: Place = Place()


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a sequence that its file holds as a list of its own."""

    length: int
    field: str | None = None
    node: int | None = None
    offset: int = 0
    """The index in that list of the part's first token."""


@dataclass(slots=True)
class Sample:
    """One sequence of a file."""

    row: int
    columns: dict[str, Any]
    """As `Batch.from_rows` takes them; the lengths may differ."""
    pieces: tuple[Piece, ...] = ()
    group: int | None = None
    index: int | None = None
    findings: list[Finding] = field(default_factory=list[Finding])

    def place(self, token: int | None, end: int | None, column: str | None = None) -> Place:
        """Where a token of the sequence stands in the file."""
        if token is None:
            return Place(self.row, field=column, group=self.group, index=self.index)
        start = 0
        found, at = Piece(0, column), token
        for piece in self.pieces:
            found, at = piece, token - start + piece.offset
            if token < start + piece.length:
                break
            start += piece.length
        length = None if end is None else at + end - token
        return Place(self.row, at, length, found.field or column, found.node, self.group, self.index)

    def say(self, kind: str, message: str, token: int | None = None, name: str | None = None) -> None:
        """Adds a finding about this sequence; `token` is an index in the file's own list."""
        place = Place(self.row, token, None if token is None else token + 1, name, None, self.group, self.index)
        self.findings.append(Finding(kind, message, place))


Items: TypeAlias = Iterator[Sample | Finding]
"""What reading a file yields."""


def attempt(row: int, build: Callable[..., Sample], *arguments: Any) -> Sample | Finding:
    """The sequence that `build` makes of a record; a finding where the record has another form than the format."""
    try:
        return build(row, *arguments)
    except MALFORMED as error:
        return Finding("malformed-record", f"the record cannot be read: {error}", Place(row))


def attempts(row: int, build: Callable[..., Items], *arguments: Any) -> Items:
    """As `attempt`, for a record that is several sequences."""
    try:
        yield from build(row, *arguments)
    except MALFORMED as error:
        yield Finding("malformed-record", f"the record cannot be read: {error}", Place(row))


def ids(values: object, name: str) -> NDArray[np.int32]:
    """Token ids, int32 of shape (tokens,); one that does not fit becomes the largest int32, which is no id.

    Raises:
        SchemaError: They are no list of integers.
    """
    found = _numbers(values, name)
    if found.size and found.dtype.kind not in "iu":
        raise SchemaError(f"`{name}` holds {found.dtype} values, not integers")
    return np.clip(found, INT32.min, INT32.max).astype(np.int32)


def mask(values: object, name: str) -> NDArray[np.uint8]:
    """A mask as uint8; what is neither 0 nor 1 becomes 2."""
    found = _numbers(values, name)
    if found.dtype.kind == "b":
        return found.astype(np.uint8)
    known = (found == 0) | (found == 1)
    return np.where(known, found, 2).astype(np.uint8)


def floats(values: object, name: str) -> NDArray[np.float32]:
    """Floats as float32; a null becomes `NULL`, and a list of one value that value."""
    listed = cast("list[Any]", values) if isinstance(values, list) else []
    if any(value is None or isinstance(value, list) for value in listed):
        listed = [_single(value) for value in listed]
        values = listed
    found = _numbers(values, name)
    with np.errstate(over="ignore", invalid="ignore"):
        single = found.astype(np.float32)
    single[[index for index, value in enumerate(listed) if value is None]] = NULL
    return single


def _single(value: Any) -> Any:
    return next(iter(cast("list[Any]", value)), None) if isinstance(value, list) else value


def _numbers(values: Any, name: str) -> NDArray[Any]:
    if values is None or isinstance(values, str | bytes | dict):
        raise SchemaError(f"`{name}` is {_kind(values)}, not a list of numbers")
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            array = np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise SchemaError(f"`{name}` is not a list of numbers: {error}") from None
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise SchemaError(f"`{name}` is not a flat list of numbers")
    return array


def _kind(value: Any) -> str:
    return "null" if value is None else f"a {type(value).__name__}"


def span_mask(length: int, spans: Iterable[tuple[int, int]]) -> NDArray[np.uint8]:
    """A mask of `length` that is 1 inside the spans."""
    found = np.zeros(length, np.uint8)
    for start, end in spans:
        found[max(start, 0) : max(end, 0)] = 1
    return found


def turns(sampled: NDArray[np.uint8], finish_reason: str = "") -> list[dict[str, Any]]:
    """The sampled runs as `turns`; the reason belongs to the last, since the others went on."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], (sampled != 0).astype(np.int8), [0]))))
    runs = [
        {"start": int(start), "end": int(end), "message": -1, "finish_reason": "", "reward": None}
        for start, end in edges.reshape(-1, 2)
    ]
    if runs:
        runs[-1]["finish_reason"] = finish_reason
    return runs
