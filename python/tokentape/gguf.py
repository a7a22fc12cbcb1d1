"""Reads the metadata of GGUF files, which hold a model and its tokenizer in one file.

*Invariant*: nothing is allocated for a count that the rest of the file cannot hold, so a damaged or hostile file ends
in a `TokenizerError`, not in a lack of memory. The tensors behind the metadata are not touched.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from tokentape.errors import TokenizerError

__all__ = ["read_metadata"]

MAGIC: Final = b"GGUF"
VERSIONS: Final = (2, 3)
SCALARS: Final = {
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    7: "?",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
"""numpy's names of the scalar types, by their numbers in the format."""
STRING, ARRAY = 8, 9
LENGTH: Final = struct.Struct("<Q")
NUMBER: Final = struct.Struct("<I")
WANTED: Final = ("general.", "tokenizer.")
SMALLEST_ENTRY: Final = 8 + 4 + 1
"""Bytes of an entry with an empty key and a value of one byte."""


def read_metadata(path: Path) -> dict[str, Any]:
    """The entries of a GGUF file that tell about the model as a whole and about its tokenizer.

    Args:
        path: The file.

    Returns:
        Numbers, booleans and texts; arrays of numbers as numpy arrays, arrays of texts as lists.

    Raises:
        TokenizerError: It is no GGUF file, of a version that is not read, damaged, or truncated.
        FileNotFoundError: There is no such file.
    """
    with path.open("rb") as file:
        head = file.read(8)
        if head[:4] != MAGIC:
            raise TokenizerError(f"{str(path)!r} is no GGUF file: it begins with {head[:4]!r}, not with {MAGIC!r}")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _Reader(path, content).metadata()


class _Reader:
    """Reads forward through the metadata of one file."""

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self._path = path
        self._content = content
        self._size = len(content)
        self._at = len(MAGIC)

    def metadata(self) -> dict[str, Any]:
        version = self._number()
        if version not in VERSIONS:
            swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
            kind = "big-endian" if swapped in VERSIONS else f"version {version}"
            self._fail(f"is a GGUF file of a form that is not read ({kind}): convert the model again, to version 3")
        self._length()  # of tensors
        count = self._length()
        self._hold(count, SMALLEST_ENTRY, "entries")
        found: dict[str, Any] = {}
        for _ in range(count):
            key = self._text()
            value = self._value(wanted=key.startswith(WANTED))
            if key in found:
                self._fail(f"has the key {key!r} twice")
            if key.startswith(WANTED):
                found[key] = value
        return found

    def _value(self, *, wanted: bool) -> Any:
        kind = self._number()
        if kind == STRING:
            return self._text()
        if kind == ARRAY:
            return self._array(wanted=wanted)
        return self._scalars(kind, 1)[0].item()

    def _array(self, *, wanted: bool) -> Any:
        kind, count = self._number(), self._length()
        if kind != STRING:
            values = self._scalars(kind, count)
            return values.copy() if wanted else None
        self._hold(count, LENGTH.size, "texts")
        if wanted:
            return [self._text() for _ in range(count)]
        for _ in range(count):
            self._take(self._length())
        return None

    def _scalars(self, kind: int, count: int) -> np.ndarray[Any, Any]:
        name = SCALARS.get(kind)
        if name is None:
            self._fail(f"is damaged: there is no value of type {kind} (at byte {self._at})")
        dtype = np.dtype(name)
        self._hold(count, dtype.itemsize, "numbers")
        return np.frombuffer(self._take(count * dtype.itemsize), dtype)

    def _text(self) -> str:
        at = self._at
        try:
            return self._take(self._length()).decode()
        except UnicodeDecodeError as error:
            self._fail(f"is damaged: the text at byte {at} is no UTF-8 ({error.reason})")

    def _number(self) -> int:
        return NUMBER.unpack(self._take(NUMBER.size))[0]

    def _length(self) -> int:
        return LENGTH.unpack(self._take(LENGTH.size))[0]

    def _take(self, count: int) -> bytes:
        start, self._at = self._at, self._at + count
        if self._at > self._size:
            self._fail(
                f"ends inside its metadata, after {self._size:,} bytes: it is truncated; download or copy it again"
            )
        return self._content[start : self._at]

    def _hold(self, count: int, size: int, what: str) -> None:
        """Refuse a count of things that the rest of the file cannot hold."""
        if count * size > self._size - self._at:
            self._fail(
                f"is truncated or damaged: at byte {self._at} it announces {count:,} {what}, and "
                f"{self._size - self._at:,} bytes are left"
            )

    def _fail(self, what: str) -> NoReturn:
        raise TokenizerError(f"{str(self._path)!r} {what}")
