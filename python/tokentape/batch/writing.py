"""Tables to files: whole at once, or batch by batch.

*Invariant*: a reader sees a whole file or none; after an error an older file is as it was.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokentape import _core
from tokentape.batch.files import atomic, pyarrow
from tokentape.errors import ArgumentError, SchemaError

if TYPE_CHECKING:
    import os
    from types import TracebackType
    from typing import Self

    from tokentape.batch.table import Batch

__all__ = ["BatchWriter"]


class BatchWriter:
    """A file that grows batch by batch and holds none of them in memory; it appears when the block ends.

    The first batch fixes the columns. An error inside the block leaves no file, and an older one as it was. For
    results that have to outlive a crash, batch by batch, use `RunWriter`.

    Example:
        >>> import tempfile, tokentape as tt
        >>> path = tempfile.mkdtemp() + "/rows.arrow"
        >>> with tt.BatchWriter(path) as file:
        ...     for number in range(3):
        ...         file.write(tt.Batch.from_rows([{"token_ids": [number]}]))
        >>> len(tt.Batch.read(path))
        3
    """

    def __init__(self, path: str | os.PathLike[str], *, compression: str | None = None) -> None:
        """Says where and how; nothing is written before the block is entered.

        Args:
            path: `.arrow` for Arrow IPC, `.parquet` for Parquet.
            compression: For Arrow IPC None (so that readers map it without a copy), "lz4" or "zstd"; for Parquet any
                codec of pyarrow, "zstd" if None.

        Raises:
            ArgumentError: The extension is another.
        """
        self.path = Path(path)
        if self.path.suffix not in {".arrow", ".parquet"}:
            raise ArgumentError(f"cannot tell the format of {self.path.name!r}: use the extension .arrow or .parquet")
        self.rows = 0
        self._compression = compression
        self._stack = ExitStack()
        self._temporary: Path | None = None
        self._file: Any = None

    def __enter__(self) -> Self:
        self._temporary = self._stack.enter_context(atomic(self.path))
        return self

    def write(self, batch: Batch) -> None:
        """Adds the rows of a batch.

        Raises:
            SchemaError: The batch has other columns than the first.
            OSError: The disk is full, or the like.
        """
        if self._temporary is None:
            raise SchemaError(f"{self.path} is not open: write inside `with BatchWriter(...) as file`")
        if self._file is None:
            self._file = _open(self._temporary, batch, self._compression)
        self._file.write(batch.core)
        self.rows += len(batch)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the file; after an error it is removed."""
        try:
            if kind is None:
                self._finish()
        except BaseException as failed:
            if not self._stack.__exit__(type(failed), failed, failed.__traceback__):
                raise
        else:
            self._stack.__exit__(kind, error, trace)
        finally:
            self._temporary = self._file = None

    def _finish(self) -> None:
        if self._file is None:
            if self._temporary is not None:  # no batch: a file without rows
                _core.TableWriter(self._temporary, _core.Table.concat([])).finish()
        else:
            self._file.finish()

    def __repr__(self) -> str:
        return f"BatchWriter({str(self.path)!r}, rows={self.rows})"


def _open(path: Path, like: Batch, compression: str | None) -> Any:
    if path.suffix == ".arrow" and not compression:
        return _core.TableWriter(path, like.core)
    return _ByPyarrow(path, like, compression)


class _ByPyarrow:
    """What pyarrow writes: Parquet, and compressed Arrow IPC."""

    def __init__(self, path: Path, like: Batch, compression: str | None) -> None:
        schema = pyarrow().schema(like.core)
        if path.suffix == ".parquet":
            self._file = pyarrow("pyarrow.parquet").ParquetWriter(path, schema, compression=compression or "zstd")
        else:
            options = pyarrow().ipc.IpcWriteOptions(compression=compression)
            self._file = pyarrow().ipc.new_file(path, schema, options=options)

    def write(self, table: _core.Table) -> None:
        try:
            for batch in pyarrow().table(table).to_batches():  # a row group each: readers hold one at a time
                self._file.write_batch(batch)
        except pyarrow().ArrowInvalid as error:
            raise SchemaError(f"the batch cannot be added to the file: {error}") from error
        except ValueError as error:
            raise SchemaError(f"the batch has other columns than the file: {error}") from error

    def finish(self) -> None:
        self._file.close()
