"""Sequences as a table, whatever their lists are like: `Batch.from_rows` takes only rows whose columns fit together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokentape import _core
from tokentape.batch.files import pyarrow
from tokentape.readers.sample import Sample

__all__ = ["as_table"]

LISTS: dict[str, Any] = {
    "token_ids": np.int32,
    "sampled_mask": np.uint8,
    "loss_mask": np.uint8,
    "message_index": np.int32,
    "loss_weight": np.float32,
    "logprobs": np.float32,
    "advantages": np.float32,
}
TEXTS = {"metrics": "{}", "messages": "[]", "tools": "[]", "provenance": "{}"}


def as_table(samples: Sequence[Sample]) -> _core.Table:
    """The rows of samples; a column that a sample lacks is null, or empty where the contract has no null."""
    schema = pyarrow().schema(_Schema())
    columns = [_column(field, [sample.columns for sample in samples]) for field in schema]
    return _core.Table.from_arrow(pyarrow().Table.from_arrays(columns, schema=schema), validate=False)


class _Schema:
    """The contract, as pyarrow takes it."""

    def __arrow_c_schema__(self) -> object:
        return _core.trajectories_schema()


def _column(field: Any, rows: list[dict[str, Any]]) -> Any:
    name: str = field.name
    if name in LISTS:
        return _lists([_cell(name, row) for row in rows], LISTS[name], field)
    default = TEXTS.get(name, None if field.nullable else [] if name == "turns" else "")
    return pyarrow().array([row.get(name, default) for row in rows], type=field.type)


def _cell(name: str, row: dict[str, Any]) -> NDArray[Any] | None:
    if name == "loss_mask" and name not in row:
        return row["sampled_mask"]
    if name == "message_index" and name not in row:
        return np.full(len(row["token_ids"]), -1, np.int32)
    return row.get(name)


def _lists(cells: list[NDArray[Any] | None], dtype: Any, field: Any) -> Any:
    present = [np.empty(0, dtype) if cell is None else np.asarray(cell, dtype) for cell in cells]
    offsets = np.concatenate([[0], np.cumsum([len(cell) for cell in present])]).astype(np.int32)
    values = pyarrow().array(np.concatenate([np.empty(0, dtype), *present]))
    absent = np.array([cell is None for cell in cells], bool)
    mask = pyarrow().array(absent) if absent.any() else None
    return pyarrow().ListArray.from_arrays(pyarrow().array(offsets), values, type=field.type, mask=mask)
