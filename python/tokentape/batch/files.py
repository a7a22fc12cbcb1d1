"""Files that are either whole or absent: written under a temporary name, synced, renamed."""

from __future__ import annotations

import contextlib
import glob
import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokentape.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["TEMPORARY", "atomic", "expand", "pyarrow", "sync"]

#: The start of the name of a file that is not whole yet; readers pass over it.
TEMPORARY = ".partial-"


def pyarrow(module: str = "pyarrow") -> Any:
    """A module of pyarrow, imported when it is first needed; it ships no types."""
    return importlib.import_module(module)


@contextlib.contextmanager
def atomic(path: Path) -> Generator[Path]:
    """Yields a temporary name in the folder of `path`; what is written there becomes `path` at the end.

    After an error the temporary file is removed and a file that stood at `path` is as it was.

    Raises:
        OSError: The folder does not exist, the disk is full, or the like.

    Example:
        >>> import tempfile, pathlib
        >>> target = pathlib.Path(tempfile.mkdtemp()) / "note.txt"
        >>> with atomic(target) as temporary:
        ...     _ = temporary.write_text("whole")
        >>> target.read_text()
        'whole'
    """
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{path.name}")
    try:
        yield temporary
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Waits until a file, or the names in a folder, would last through a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def expand(source: str | os.PathLike[str]) -> list[Path]:
    """The files that `source` names: one file, the segments of a run folder, or a glob; in order of their names.

    Raises:
        FileNotFoundError: Nothing is there.
        SchemaError: A folder holds no segment.
    """
    path = Path(source)
    if path.is_dir():
        segments = sorted(p for p in path.glob("*.arrow") if not p.name.startswith(TEMPORARY))
        if not segments:
            raise SchemaError(
                f"{path} holds no segment `00000.arrow`: pass a run folder that RunWriter wrote, or a file"
            )
        return segments
    if path.exists():
        return [path]
    matches = sorted(Path(match) for match in glob.glob(os.fspath(path), recursive=True))  # noqa: PTH207  (Path.glob takes no absolute pattern)
    if not matches:
        raise FileNotFoundError(f"no file, run folder or glob match at {os.fspath(source)!r}")
    return [file for match in matches for file in (expand(match) if match.is_dir() else [match])]
