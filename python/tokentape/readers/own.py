"""Our own files: record batches of Arrow and Parquet, a part at a time, whatever their size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokentape import _core
from tokentape.batch.files import expand, pyarrow
from tokentape.errors import SchemaError

__all__ = ["is_own", "tables"]

ROWS = 4096
"""Rows that are looked at together."""


def is_own(path: str | os.PathLike[str]) -> bool:
    """Whether a path names trajectories of ours: a run folder, a glob, or a file with their columns."""
    place = Path(path)
    if place.is_dir():
        return any(place.glob("*.arrow"))
    if not place.exists() or place.suffix == ".arrow":
        return True
    if place.suffix != ".parquet":
        return False
    try:
        names = set(pyarrow("pyarrow.parquet").read_schema(place).names)
    except (pyarrow().ArrowException, OSError, ValueError):
        return False
    return {"token_ids", "sampled_mask"} <= names


def tables(path: str | os.PathLike[str]) -> Iterator[_core.Table]:
    """The rows of a file, run folder or glob, in parts, without checks of their values.

    Raises:
        SchemaError: A file is cut short, damaged, or another table; the rows before are yielded first.
    """
    for file in expand(path):
        try:
            for batch in _batches(file):
                for start in range(0, batch.num_rows, ROWS):
                    yield _core.Table.from_arrow(batch.slice(start, ROWS), validate=False)
        except (pyarrow().ArrowException, OSError, ValueError) as error:
            raise SchemaError(f"{file}: the file is cut short or damaged: {error}") from None


def _batches(file: Path) -> Iterator[Any]:
    if file.suffix == ".parquet":
        with pyarrow("pyarrow.parquet").ParquetFile(file, memory_map=False, pre_buffer=False) as parquet:
            yield from parquet.iter_batches(batch_size=ROWS)
        return
    if file.stat().st_size == 0:
        raise SchemaError(f"{file}: the file is empty: writing it was cut short")
    with pyarrow().memory_map(str(file)) as source, pyarrow().ipc.open_file(source) as reader:
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
