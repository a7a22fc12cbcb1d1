"""A run: a folder of immutable segments that grows while trajectories arrive."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from tokentape.batch.files import TEMPORARY
from tokentape.batch.table import Batch
from tokentape.errors import ArgumentError

if TYPE_CHECKING:
    import os
    from types import TracebackType
    from typing import Self

__all__ = ["RunWriter"]


class RunWriter:
    """Writes batches into a folder `NAME.tape/` of segments `00000.arrow`, `00001.arrow` and so on.

    A segment is written under a temporary name, synced and renamed, so a crash loses at most what was added since the
    last segment and never damages what is there. Opening an existing folder continues behind its last segment:
    `group_ids` says which groups are already safe.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp(suffix=".tape")
        >>> with RunWriter(folder, every_groups=2) as run:
        ...     for number in range(3):
        ...         run.write(Batch.from_rows([{"token_ids": [1], "group_id": f"item-{number}"}]))
        >>> run.segments, len(Batch.read(folder))
        (2, 3)
    """

    def __init__(self, folder: str | os.PathLike[str], *, every_groups: int = 64, every_seconds: float = 60.0) -> None:
        """Opens or continues a run.

        Args:
            folder: The folder, made if it is missing; its name ends in `.tape`.
            every_groups: A segment is closed once it holds so many groups.
            every_seconds: A segment is closed by the first `write` so many seconds after the segment began.

        Raises:
            ArgumentError: The name has another ending, or a limit is not positive.
            SchemaError: A segment that is already there cannot be read.
        """
        self.folder = Path(folder)
        if self.folder.suffix != ".tape":
            raise ArgumentError(f"a run is a folder whose name ends in .tape, not {self.folder.name!r}")
        if every_groups < 1 or every_seconds <= 0:
            raise ArgumentError(f"every_groups={every_groups} and every_seconds={every_seconds} must be positive")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._limits = (every_groups, every_seconds)
        self._pending: list[Batch] = []
        self._pending_ids: set[str] = set()
        self._begun = time.monotonic()
        self._stored_ids, self.segments = self._scan()

    def _scan(self) -> tuple[set[str], int]:
        """The groups of the segments that are there, and the number of the next segment."""
        for leftover in self.folder.glob(f"{TEMPORARY}*"):
            leftover.unlink()
        segments = sorted(self.folder.glob("*.arrow"))
        if not segments:
            return set(), 0
        return _groups(Batch.read(self.folder, validate=False)), int(segments[-1].stem) + 1

    @property
    def group_ids(self) -> frozenset[str]:
        """The groups that are safely in segments; those added since the last segment are not among them."""
        return frozenset(self._stored_ids)

    def write(self, batch: Batch) -> None:
        """Adds the rows of one or more whole groups; closes the segment if it is due.

        Raises:
            SchemaError: A row breaks a rule of the contract; nothing of `batch` is added.
            OSError: The segment cannot be written; its rows stay pending, and `flush` tries again.
        """
        batch.validate()
        if not self._pending:
            self._begun = time.monotonic()
        self._pending.append(batch)
        self._pending_ids |= _groups(batch)
        every_groups, every_seconds = self._limits
        if len(self._pending_ids) >= every_groups or time.monotonic() - self._begun >= every_seconds:
            self.flush()

    def flush(self) -> None:
        """Closes the segment now; does nothing if no row is pending."""
        if not self._pending:
            return
        Batch(Batch.concat(self._pending).core.combined()).write(self.folder / f"{self.segments:05d}.arrow")
        self.segments += 1
        self._stored_ids |= self._pending_ids
        self._pending, self._pending_ids = [], set()

    def close(self) -> None:
        """Writes what is pending."""
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the run, after an error too: what was collected is kept."""
        self.close()

    def __repr__(self) -> str:
        return f"RunWriter({str(self.folder)!r}, segments={self.segments}, pending={len(self._pending_ids)} groups)"


def _groups(batch: Batch) -> set[str]:
    return set(batch.to_pyarrow().column("group_id").unique().to_pylist())
