"""Where finished groups go: memory, a run folder of immutable segments, or one file made from such a folder.

*Invariant*: what `add` has been given and `commit` has returned for is on disk; after an interruption the folder reads
as a batch of exactly the groups of the finished items.
"""

from __future__ import annotations

import fcntl
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from tokentape import Batch, Group
from tokentape.batch.files import sync
from tokentape.envs.journal import Journal, JournalEntry
from tokentape.envs.source import Work
from tokentape.envs.tally import Tally
from tokentape.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokentape.envs.environment import Environment
    from tokentape.envs.runner import Outcome

__all__ = ["FolderOutput", "MemoryOutput", "Output", "SingleFileOutput", "open_output"]

SEGMENT_GROUPS = 64
SEGMENT_SECONDS = 30.0
"""A segment is closed when it has this many groups or is this old, whichever comes first."""


class Output(Protocol):
    """Takes outcomes and says what earlier runs have finished."""

    groups: list[Group]
    tally: Tally
    dropped: Counter[str]
    """Reasons why items of earlier runs gave no group."""

    @property
    def path(self) -> Path | None:
        """Where the run writes, or None."""
        ...

    def is_done(self, key: str) -> bool:
        """Whether an earlier run finished the item of this key."""
        ...

    def waiting(self) -> Sequence[Work]:
        """Backlog items of an earlier run that are not finished."""
        ...

    def add(self, outcome: Outcome) -> bool:
        """Take an outcome; true when it is time to commit."""
        ...

    def commit(self) -> None:
        """Bring all that was added to its place; safe to call from a thread."""
        ...

    def close(self, *, finished: bool) -> None:
        """Commit, and end the run; `finished` is false after an interruption."""
        ...


class MemoryOutput:
    """Keeps groups in a list."""

    path: Path | None = None

    def __init__(self) -> None:
        """Begin empty."""
        self.groups: list[Group] = []
        self.tally = Tally()
        self.dropped: Counter[str] = Counter()

    def is_done(self, key: str) -> bool:  # noqa: ARG002 -- the protocol's
        """Nothing is done before the run."""
        return False

    def waiting(self) -> Sequence[Work]:
        """Nothing waits before the run."""
        return ()

    def add(self, outcome: Outcome) -> bool:
        """Keep the groups."""
        self.groups.extend(outcome.groups)
        self.tally.add(outcome.groups)
        return False

    def commit(self) -> None:
        """There is nothing to do."""

    def close(self, *, finished: bool) -> None:
        """There is nothing to do."""


class FolderOutput:
    """Writes segments into a run folder and goes on where an earlier run ended.

    Args:
        path: The folder `NAME.tape`, made if it is not there.
        env: Loads and dumps backlog items.

    Raises:
        ArgumentError: another process writes there.
        SchemaError: the folder is no run folder.
    """

    def __init__(self, path: Path, env: Environment[Any]) -> None:
        """Lock the folder and read its journal."""
        self.path: Path | None = path
        self.groups: list[Group] = []
        self._folder = path
        self._env = env
        path.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(path)
        try:
            shutil.rmtree(path / ".partial", ignore_errors=True)
            self._journal = Journal(path)
        except BaseException:
            self._lock.close()
            raise
        self._done = {key for entry in self._journal.entries for key in entry.items}
        self.tally = Tally.total(entry.status for entry in self._journal.entries)
        self.dropped = Counter(reason for entry in self._journal.entries for reason in entry.dropped.values())
        self._added: list[Outcome] = []
        self._began = time.monotonic()

    def is_done(self, key: str) -> bool:
        """Whether the journal names the key."""
        return key in self._done

    def waiting(self) -> Sequence[Work]:
        """Backlog items that the journal names and no entry finishes."""
        backlog = {key: data for entry in self._journal.entries for key, data in entry.backlog.items()}
        return [Work(key, self._env.load_item(data)) for key, data in backlog.items() if key not in self._done]

    def add(self, outcome: Outcome) -> bool:
        """Take a finished item; one that failed is not finished and is tried again by the next run."""
        if outcome.error is not None:
            return False
        if not self._added:
            self._began = time.monotonic()
        self._added.append(outcome)
        self.tally.add(outcome.groups)
        groups = sum(len(one.groups) for one in self._added)
        return groups >= SEGMENT_GROUPS or time.monotonic() - self._began >= SEGMENT_SECONDS

    def commit(self) -> None:
        """Write one segment and its journal entry."""
        added, self._added = self._added, []
        if not added:
            return
        groups = [group for outcome in added for group in outcome.groups]
        tally = Tally()
        tally.add(groups)
        entry = JournalEntry(
            items=[outcome.key for outcome in added],
            dropped={outcome.key: outcome.dropped for outcome in added if outcome.dropped is not None},
            backlog={work.key: self._env.dump_item(work.item) for outcome in added for work in outcome.backlog},
            status=tally.to_json(),
        )
        self._write(groups, entry)

    def close(self, *, finished: bool) -> None:  # noqa: ARG002 -- the protocol's
        """Commit and unlock."""
        try:
            self.commit()
        finally:
            shutil.rmtree(self._folder / ".partial", ignore_errors=True)
            self._lock.close()

    def _write(self, groups: Sequence[Group], entry: JournalEntry) -> None:
        """Segment under another name, journal entry, then the segment's name, as the journal's invariant needs."""
        if not groups:
            self._journal.append(entry)
            return
        name = f"{self._journal.next_segment:05d}.arrow"
        partial = self._folder / ".partial" / name
        partial.parent.mkdir(exist_ok=True)
        Batch.from_groups(groups).write(partial)
        self._journal.append(
            JournalEntry(entry.items, name, partial.stat().st_size, entry.dropped, entry.backlog, entry.status)
        )
        partial.rename(self._folder / name)
        sync(self._folder)


class SingleFileOutput(FolderOutput):
    """Writes a run folder beside the file, and the file from it when the run ends.

    Args:
        path: The file `NAME.arrow`.
        env: Loads and dumps backlog items.

    Raises:
        ArgumentError: the file is there and no unfinished run of it.
    """

    def __init__(self, path: Path, env: Environment[Any]) -> None:
        """Open the folder `.NAME.arrow.tape`, which an interrupted run leaves behind."""
        folder = path.with_name(f".{path.name}.tape")
        if path.exists() and not folder.exists():
            msg = f"{path} is there already: give another path or remove it first"
            raise ArgumentError(msg)
        super().__init__(folder, env)
        self.path = path
        self._file = path

    def close(self, *, finished: bool) -> None:
        """Write the file; the folder stays after an interruption, so that the next run can go on."""
        super().close(finished=finished)
        segments = any(self._folder.glob("*.arrow"))
        if not finished and not segments:
            return
        (Batch.read(self._folder) if segments else Batch.from_groups([])).write(self._file)
        if finished:
            shutil.rmtree(self._folder)


def open_output(path: str | Path | None, env: Environment[Any]) -> Output:
    """The output for a path: None memory, `.arrow` one file, else a run folder.

    Raises:
        ArgumentError: a path that is neither `NAME.tape` nor `NAME.arrow`.
    """
    if path is None:
        return MemoryOutput()
    path = Path(path)
    if path.suffix == ".arrow":
        return SingleFileOutput(path, env)
    if path.suffix == ".tape":
        return FolderOutput(path, env)
    msg = f"cannot collect into {path}: give NAME.tape (a run folder that can go on) or NAME.arrow (one file)"
    raise ArgumentError(msg)


def _lock(folder: Path) -> TextIO:
    file = (folder / ".lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        msg = f"another process is collecting into {folder}: wait for it or give another path"
        raise ArgumentError(msg) from None
    return file
