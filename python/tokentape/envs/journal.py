"""The journal of a run folder: which items are finished, and in which segment their groups are.

*Invariant*: a line counts only if it is whole and its segment exists with the size it names. A line is on disk before
its segment gets its name, so a segment without a line, or a finished item without its groups, cannot be: nothing is
lost or doubled.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokentape.batch.files import atomic
from tokentape.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Journal", "JournalEntry"]

NAME = "items.jsonl"
FORMAT = {"format": "tokentape.items", "version": 1}


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What one commit finished.

    Attributes:
        segment: The file name of the segment, or None when the items gave no groups.
        size: The bytes of the segment.
        items: Keys of the finished items.
        dropped: Reasons by key, for those of them that gave no group.
        backlog: Further items by key, as JSON values.
        status: Figures of this commit's groups, summed over a run.
    """

    items: Sequence[str]
    segment: str | None = None
    size: int = 0
    dropped: Mapping[str, str] = field(default_factory=dict[str, str])
    backlog: Mapping[str, Any] = field(default_factory=dict[str, Any])
    status: Mapping[str, float] = field(default_factory=dict[str, float])

    def to_line(self) -> str:
        """The entry as one line of JSON."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps({name: value for name, value in fields.items() if value or name == "items"}) + "\n"


class Journal:
    """Reads what a run folder holds and adds to it.

    Args:
        folder: The run folder, which exists.

    Raises:
        SchemaError: the folder holds segments but no journal, or the journal of another version.
    """

    def __init__(self, folder: Path) -> None:
        """Read the valid entries, and write the journal anew if a broken-off commit left something behind."""
        self._folder = folder
        self._path = folder / NAME
        self.entries: list[JournalEntry] = []
        if self._path.exists():
            self._read()
        elif any(folder.glob("*.arrow")):
            msg = f"{folder} holds segments but no {NAME}: a run cannot go on there, give another path"
            raise SchemaError(msg)
        self._rewrite()

    def append(self, entry: JournalEntry) -> None:
        """Add an entry and wait until it is on disk."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(entry.to_line())
            file.flush()
            os.fsync(file.fileno())
        self.entries.append(entry)

    @property
    def next_segment(self) -> int:
        """The number of the next segment."""
        numbers = [int(Path(entry.segment).stem) for entry in self.entries if entry.segment]
        return max(numbers, default=-1) + 1

    def _read(self) -> None:
        lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
        if lines and lines[0].endswith("\n") and json.loads(lines[0]) != FORMAT:
            msg = f"{self._path} is no journal of version {FORMAT['version']}: it begins with {lines[0].strip()[:80]!r}"
            raise SchemaError(msg)
        whole = (line for line in lines[1:] if line.endswith("\n"))
        self.entries = [entry for entry in (JournalEntry(**json.loads(line)) for line in whole) if self._counts(entry)]

    def _counts(self, entry: JournalEntry) -> bool:
        if entry.segment is None:
            return True
        path = self._folder / entry.segment
        return path.is_file() and path.stat().st_size == entry.size

    def _rewrite(self) -> None:
        """Write all valid entries under another name and rename, so that the journal is whole at every moment."""
        text = json.dumps(FORMAT) + "\n" + "".join(entry.to_line() for entry in self.entries)
        with atomic(self._path) as temporary:
            temporary.write_text(text, encoding="utf-8")
