"""Padded tensors, as trainers keep batches: checked before a row is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tokentape.errors import SchemaError

__all__ = ["column", "padding", "table"]


def table(batch: Mapping[str, Any], name: str, *, like: NDArray[Any] | None = None) -> NDArray[Any]:
    """A tensor of two dimensions; as wide as `like`, where that is given.

    Raises:
        SchemaError: It is missing, or has another shape.
    """
    found = cast("NDArray[Any] | None", batch.get(name))
    if not isinstance(found, np.ndarray) or found.ndim != 2:  # noqa: PLR2004  (rows and tokens)
        raise SchemaError(f"`{name}` is missing, or no tensor of two dimensions")
    if like is not None and found.shape[1] != like.shape[1]:
        raise SchemaError(f"`{name}` is {found.shape[1]} wide, the ids are {like.shape[1]}")
    return found


def padding(token_ids: NDArray[Any], attention: NDArray[Any]) -> list[int]:
    """The ids that stand where nothing is attended to."""
    if token_ids.shape != attention.shape:
        return []
    return [int(token) for token in np.unique(token_ids[attention == 0])]


def column(values: Sequence[Any], row: int) -> Any:
    """The value of a row.

    Raises:
        SchemaError: There are fewer values than rows.
    """
    if row >= len(values):
        raise SchemaError(f"a column has {len(values)} values and no row {row}")
    return values[row]
