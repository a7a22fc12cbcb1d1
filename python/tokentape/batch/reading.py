"""One file to tables: mapped or read whole, or part by part."""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING, Any

from tokentape import _core
from tokentape.batch.files import pyarrow
from tokentape.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


__all__ = ["read_table", "stream_tables"]


def read_table(file: Path, *, validate: bool) -> _core.Table:
    """Reads one Arrow IPC or Parquet file; an uncompressed Arrow file is mapped into memory.

    Raises:
        SchemaError: The file is cut short, of a newer schema version, or another table; the message begins with its
            name.
    """
    try:
        if file.suffix == ".parquet":
            return _read_parquet(file, validate=validate)
        return _read_ipc(file, validate=validate)
    except SchemaError as error:
        raise SchemaError(f"{file}: {error}") from error.__cause__


def stream_tables(file: Path, *, validate: bool) -> Iterator[_core.Table]:
    """Reads one file part by part; memory holds one record batch of Arrow IPC, or one row group of Parquet.

    Raises:
        SchemaError: As `read_table`, when the part at fault is reached.
    """
    parts = _parquet_parts(file) if file.suffix == ".parquet" else _ipc_parts(file)
    while True:
        try:
            part = _pyarrow(lambda: next(parts, None))
            if part is None:
                return
            table = _core.Table.from_arrow(part, validate=validate)
        except SchemaError as error:
            raise SchemaError(f"{file}: {error}") from error.__cause__
        yield table


def _ipc_parts(file: Path) -> Iterator[Any]:
    with pyarrow().OSFile(str(file)) as source:
        reader = pyarrow().ipc.open_file(source)
        for index in range(reader.num_record_batches):
            batch = reader.get_batch(index)
            batch.validate(full=True)  # pyarrow reads a damaged file without looking: offsets that lead anywhere
            yield batch


def _parquet_parts(file: Path) -> Iterator[Any]:
    with pyarrow("pyarrow.parquet").ParquetFile(file) as reader:
        for group in range(reader.num_row_groups):
            yield reader.read_row_group(group)


def _read_ipc(file: Path, *, validate: bool) -> _core.Table:
    with file.open("rb") as handle:
        if os.fstat(handle.fileno()).st_size == 0:
            raise SchemaError("the file is empty: writing it was cut short")
        table = _core.Table.from_file(mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ), validate=validate)
    if table is not None:
        return table
    with pyarrow().OSFile(str(file)) as source:
        return _core.Table.from_arrow(_pyarrow(lambda: _whole(source)), validate=validate)


def _whole(source: Any) -> Any:
    table = pyarrow().ipc.open_file(source).read_all()
    table.validate(full=True)
    return table


def _read_parquet(file: Path, *, validate: bool) -> _core.Table:
    return _core.Table.from_arrow(_pyarrow(lambda: pyarrow("pyarrow.parquet").read_table(file)), validate=validate)


def _pyarrow(read: Callable[[], Any]) -> Any:
    """Runs a reader of pyarrow; what it refuses is a damaged file."""
    try:
        return read()
    except FileNotFoundError:
        raise
    except (pyarrow().ArrowException, OSError, ValueError) as error:
        raise SchemaError(f"the file is cut short or damaged: {error}") from error
