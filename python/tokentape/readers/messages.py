"""Logs of messages without ids: ART's Parquet log and TRL's log of completions. No ids can be recovered from them."""

from __future__ import annotations

from pathlib import Path

from tokentape.batch.files import pyarrow
from tokentape.readers.sample import TruncatedError

__all__ = ["message_log"]

LOGS = {"art": {"group_index", "messages"}, "trl": {"prompt", "completion"}}


def message_log(path: Path) -> tuple[str, int] | None:
    """The framework whose log of messages a Parquet file is, and its number of rows; None if it is none.

    Raises:
        TruncatedError: The file is cut short or damaged.
    """
    if path.suffix != ".parquet" or not path.is_file():
        return None
    try:
        with pyarrow("pyarrow.parquet").ParquetFile(path) as file:
            names, rows = set(file.schema_arrow.names), int(file.metadata.num_rows)
    except (pyarrow().ArrowException, OSError, ValueError) as error:
        raise TruncatedError(f"the file is cut short or damaged: {error}") from None
    found = next((name for name, columns in LOGS.items() if columns <= names), None)
    return None if found is None else (found, rows)
