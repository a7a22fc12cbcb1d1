"""Msgpack, as much of it as rollout files use: plain data out and in, no extension types.

*Invariant*: a length in the file is never believed before the bytes are there.
"""

# ruff: noqa: PLR2004  (the tags of the format)
from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from tokentape.errors import SchemaError
from tokentape.readers.sample import TruncatedError

__all__ = ["dumps", "items"]

DEEPEST = 100
FLOATS = {0xCA: struct.Struct(">f"), 0xCB: struct.Struct(">d")}
CONSTANTS: dict[int, Any] = {0xC0: None, 0xC2: False, 0xC3: True}


def items(data: bytes) -> Iterator[Any]:
    """The items of the list that `data` is.

    Raises:
        SchemaError: The data is cut short, damaged, or no list; the items before are yielded first.

    Example:
        >>> list(items(dumps([1, "a", [None, 2.5]])))
        [1, 'a', [None, 2.5]]
    """
    reader = _Reader(data)
    tag = reader.byte()
    count = reader.list_length(tag)
    if count is None:
        raise SchemaError("the msgpack file holds no list")
    for _ in range(count):
        yield reader.value(0)


class _Reader:
    """A place in the data."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        found = self.data[self.at : self.at + count]
        if len(found) < count:
            raise TruncatedError(f"the msgpack file is cut short: byte {self.at} promises {count} more")
        self.at += count
        return found

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self, width: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(width), "big", signed=signed)

    def list_length(self, tag: int) -> int | None:
        if 0x90 <= tag <= 0x9F:
            return tag & 0x0F
        return self._plausible(self.number(2 << (tag - 0xDC))) if tag in {0xDC, 0xDD} else None

    def _plausible(self, count: int) -> int:
        if count > len(self.data) - self.at:
            raise TruncatedError(f"the msgpack file is cut short: byte {self.at} promises {count} values")
        return count

    def value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise SchemaError(f"the msgpack file is nested more than {DEEPEST} deep")
        tag = self.byte()
        if tag <= 0x7F:
            return tag
        if tag >= 0xE0:
            return tag - 0x100
        if tag in CONSTANTS:
            return CONSTANTS[tag]
        if tag in FLOATS:
            return FLOATS[tag].unpack(self.take(FLOATS[tag].size))[0]
        if 0xCC <= tag <= 0xD3:
            return self.number(1 << ((tag - 0xCC) % 4), signed=tag >= 0xD0)
        return self._sized(tag, depth)

    def _sized(self, tag: int, depth: int) -> Any:
        count = self.list_length(tag)
        if count is not None:
            return [self.value(depth + 1) for _ in range(count)]
        if 0xA0 <= tag <= 0xBF:
            return self._text(tag & 0x1F)
        if 0xD9 <= tag <= 0xDB:
            return self._text(self.number(1 << (tag - 0xD9)))
        if 0xC4 <= tag <= 0xC6:
            return self.take(self.number(1 << (tag - 0xC4)))
        if 0x80 <= tag <= 0x8F or tag in {0xDE, 0xDF}:
            size = tag & 0x0F if tag <= 0x8F else self._plausible(self.number(2 << (tag - 0xDE)))
            return dict(self._entry(depth) for _ in range(size))
        raise SchemaError(f"the msgpack file has a value of the type 0x{tag:02x} at byte {self.at - 1}: no plain data")

    def _entry(self, depth: int) -> tuple[Any, Any]:
        key = self.value(depth + 1)
        if not isinstance(key, str | int | bytes):
            raise SchemaError(f"the msgpack file has a key that is a {type(key).__name__}, at byte {self.at}")
        return key, self.value(depth + 1)

    def _text(self, count: int) -> str:
        return self.take(count).decode("utf-8", "replace")


def dumps(value: Any) -> bytes:
    """Plain data as msgpack: numbers, texts, bytes, lists, tuples and dicts.

    Raises:
        SchemaError: A value is of another type.
    """
    out = bytearray()
    _write(value, out)
    return bytes(out)


def _write(value: Any, out: bytearray) -> None:
    if value is None or isinstance(value, bool):
        out.append({None: 0xC0, False: 0xC2, True: 0xC3}[value])
    elif isinstance(value, int):
        _write_integer(value, out)
    elif isinstance(value, float):
        out += b"\xcb" + struct.pack(">d", value)
    elif isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        out += (b"\xdb" if isinstance(value, str) else b"\xc6") + len(data).to_bytes(4, "big") + data
    elif isinstance(value, dict):
        out += b"\xdf" + len(value).to_bytes(4, "big")  # pyright: ignore[reportUnknownArgumentType]
        for entry in value.items():  # pyright: ignore[reportUnknownVariableType]
            _write(entry[0], out)
            _write(entry[1], out)
    elif isinstance(value, list | tuple):
        out += b"\xdd" + len(value).to_bytes(4, "big")  # pyright: ignore[reportUnknownArgumentType]
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            _write(item, out)
    else:
        raise SchemaError(f"msgpack has no place for a {type(value).__name__}")


def _write_integer(value: int, out: bytearray) -> None:
    if 0 <= value <= 0x7F:
        out.append(value)
    elif value >= 0:
        out += b"\xcf" + value.to_bytes(8, "big")
    else:
        out += b"\xd3" + value.to_bytes(8, "big", signed=True)
