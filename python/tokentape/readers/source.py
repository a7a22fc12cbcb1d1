"""A file of another framework, opened so that nothing in it is executed: JSON, JSON lines, msgpack, tensors, Parquet.

*Invariant*: reading never runs code that the file brings, and a damaged file is a finding or a `SchemaError`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokentape.errors import SchemaError
from tokentape.readers import msgpack, tensors
from tokentape.readers.sample import Finding, Place, TruncatedError

__all__ = ["Source", "as_dict", "as_list"]

LONGEST_LINE = 1 << 30
PICKLE = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
PICKLES = {".pkl", ".pickle", ".joblib", ".p"}


@dataclass(frozen=True, slots=True)
class Source:
    """A path and how its content is laid out.

    Attributes:
        kind: `"lines"`, `"json"`, `"msgpack"`, `"tensors"`, `"parquet"`, `"arrow"` or `"folder"`.
    """

    path: Path
    kind: str

    @classmethod
    def open(cls, path: Path) -> Source:
        """Looks at a file's name and first bytes.

        Raises:
            FileNotFoundError: Nothing is there.
            SchemaError: It is a pickle, which could run code, or of no known layout.
        """
        if path.is_dir():
            return cls(path, "folder")
        with path.open("rb") as file:
            head = file.read(8)
        suffix = path.suffix.lower()
        if suffix in PICKLES or head.startswith(PICKLE):
            raise SchemaError(
                f"{path} is a pickle: loading it runs what its author wrote; save its tensors with torch.save and "
                "its lists as JSON where you trust it, and read those"
            )
        by_name = {".jsonl": "lines", ".ndjson": "lines", ".json": "json", ".msgpack": "msgpack", ".bin": "msgpack"}
        by_name |= {".pt": "tensors", ".pth": "tensors", ".parquet": "parquet", ".arrow": "arrow"}
        kind = by_name.get(suffix)
        if kind is None:
            known = ", ".join(sorted(by_name))
            raise SchemaError(f"{path}: the ending {suffix or 'is missing and'} names no layout; known are {known}")
        return cls(path, kind)

    def lines(self) -> Iterator[tuple[int, Any] | Finding]:
        """The values of a file of JSON lines, each with its number; a line that is no JSON is a finding."""
        with self.path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b"")):
                if not line.strip():
                    continue
                try:
                    yield number, json.loads(line)
                except (ValueError, RecursionError) as error:
                    cut = not line.endswith(b"\n") and not file.read(1)
                    kind = "truncated-line" if cut else "malformed-line"
                    yield Finding(kind, f"the line is no JSON: {_told(error)}", Place(number))

    def value(self) -> Any:
        """The one JSON value of a file.

        Raises:
            TruncatedError: The file ends in the middle of a value.
            SchemaError: It is no JSON.
        """
        data = self.path.read_bytes()
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            complete = data.rstrip().endswith((b"}", b"]")) or isinstance(error, RecursionError)
            kind = SchemaError if complete else TruncatedError
            raise kind(f"the file is cut short or no JSON: {_told(error)}") from None

    def items(self) -> Iterator[Any]:
        """The items of the list that a msgpack file holds.

        Raises:
            SchemaError: The file is cut short, or holds no list; the items before are yielded first.
        """
        return msgpack.items(self.path.read_bytes())

    def tensors(self) -> Any:
        """What a file of `torch.save` holds, with tensors as numpy arrays.

        Raises:
            SchemaError: The file is cut short, or names anything but plain data and tensors.
        """
        return tensors.load(self.path)

    def first(self) -> Any:
        """The first value, by which a format is known; None where there is none.

        Raises:
            TruncatedError: The file ends before it.
            SchemaError: It cannot be read.
        """
        match self.kind:
            case "lines":
                return next((item[1] for item in self.lines() if isinstance(item, tuple)), None)
            case "json":
                return self.value()
            case "msgpack":
                return next(self.items(), None)
            case "tensors":
                return self.tensors()
            case _:
                return None


def _told(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def as_dict(value: Any, what: str) -> dict[str, Any]:
    """The value, which must be an object.

    Raises:
        SchemaError: It is something else.
    """
    if not isinstance(value, dict):
        raise SchemaError(f"{what} is a {type(value).__name__}, not an object")
    return value  # pyright: ignore[reportUnknownVariableType]  (JSON)


def as_list(value: Any, what: str) -> list[Any]:
    """The value, which must be a list.

    Raises:
        SchemaError: It is something else.
    """
    if not isinstance(value, list):
        raise SchemaError(f"{what} is a {type(value).__name__}, not a list")
    return value  # pyright: ignore[reportUnknownVariableType]  (JSON)
