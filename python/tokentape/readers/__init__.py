"""Readers and writers of rollout files: ours, and those of other frameworks, each in a file of its own.

*Invariant*: nothing in a file is executed, and nothing is repaired. What a format cannot keep is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from tokentape.batch import Row
from tokentape.errors import SchemaError
from tokentape.readers import art, atropos, openrlhf, prime_rl, skyrl, slime, tinker, trl, verifiers, verl
from tokentape.readers.messages import message_log
from tokentape.readers.own import is_own, tables
from tokentape.readers.sample import Finding, Items, Place, Sample
from tokentape.readers.source import Source

__all__ = ["FORMATS", "Finding", "Format", "Place", "Sample", "Source", "detect", "is_own", "message_log", "tables"]


class Format(Protocol):
    """The format of a framework: a module of this folder."""

    @property
    def NAME(self) -> str:  # noqa: N802  (a constant of a module)
        """How it is called."""
        ...

    @property
    def FILLER(self) -> float:  # noqa: N802
        """What stands where there is no logprob."""
        ...

    @property
    def NEEDS_LOGPROBS(self) -> bool:  # noqa: N802
        """Whether its trainers cannot do without logprobs."""
        ...

    @property
    def KEEPS(self) -> set[str]:  # noqa: N802
        """The columns of ours that it has a place for."""
        ...

    def detect(self, source: Source, first: Any) -> bool:
        """Whether a file is of this format, by its layout and first value."""
        ...

    def read(self, source: Source) -> Items:
        """The sequences of a file, in order."""
        ...

    def write(self, rows: Iterable[Row]) -> Iterator[str] | Iterator[bytes]:
        """Rows of ours as lines of text, or as the bytes of a file."""
        ...


_ALL: tuple[Format, ...] = (atropos, verifiers, trl, verl, skyrl, prime_rl, slime, art, tinker, openrlhf)

FORMATS: dict[str, Format] = {module.NAME: module for module in _ALL}
"""The formats by name."""


def detect(path: Path, name: str | None = None) -> tuple[Format, Source]:
    """The format of a file, by its content, and the file.

    Args:
        path: A file or folder.
        name: The format's name, where it is known.

    Raises:
        FileNotFoundError: Nothing is there.
        SchemaError: The file is a pickle, cut short before its format shows, or of no known format.
    """
    source = Source.open(path)
    if name is not None:
        if name not in FORMATS:
            raise SchemaError(f"no format {name!r}: known are {', '.join(FORMATS)}")
        return FORMATS[name], source
    first = source.first()
    for module in FORMATS.values():
        if module.detect(source, first):
            return module, source
    raise SchemaError(
        f"{path} is of no format that is known: {', '.join(FORMATS)}, or tokentape's own; or it is damaged"
    )
