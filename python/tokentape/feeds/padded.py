"""Rows as padded rectangles of torch, for trainers that do not pack."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tokentape.errors import ArgumentError, BudgetError
from tokentape.feeds.labels import IGNORED
from tokentape.feeds.torch import moved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tokentape.batch import Batch

__all__ = ["bucketed", "to_torch_padded"]

_PER_TOKEN = {"input_ids": 0, "sampled_mask": 0, "loss_mask": 0, "loss_weight": 0.0, "logprobs": 0.0, "advantages": 0.0}


def to_torch_padded(
    batch: Batch,
    *,
    pad_token_id: int,
    side: Literal["left", "right"] = "right",
    multiple_of: int = 1,
    device: Any = None,
    with_labels: bool = False,
) -> dict[str, Any]:
    """Rows as a padded rectangle, for trainers that do not pack.

    Args:
        batch: The rows; take neighbours in length (`batch.take(np.argsort(lengths))`) to pad little.
        pad_token_id: The id of padding.
        side: Where padding stands.
        multiple_of: The width becomes a multiple of this.
        device: Where the tensors go; None leaves them on the CPU.
        with_labels: Adds `labels`: int64, aligned to the token itself, -100 where the loss mask is 0.

    Returns:
        `input_ids`, `position_ids` (int32), `attention_mask`, `sampled_mask`, `loss_mask` (bool), each of shape
        (rows, width), and `loss_weight`, `logprobs`, `advantages` (float32) if every row has them. A row's first token
        carries no loss.
    """
    if side not in {"left", "right"}:
        raise ArgumentError(f"side={side!r} is neither 'left' nor 'right'")
    arrays = _padded(batch, pad_token_id, side, multiple_of)
    if with_labels:
        arrays["labels"] = np.where(arrays["loss_mask"], arrays["input_ids"], IGNORED).astype(np.int64)
    return moved({name: importlib.import_module("torch").from_numpy(array) for name, array in arrays.items()}, device)


def _padded(batch: Batch, pad_token_id: int, side: str, multiple_of: int) -> dict[str, NDArray[Any]]:
    rows = list(batch.rows())
    width = -(-max((len(row) for row in rows), default=0) // multiple_of) * multiple_of
    present = [name for name in _PER_TOKEN if rows and all(getattr(row, name, True) is not None for row in rows)]
    fillers = _PER_TOKEN | {"input_ids": pad_token_id}
    kinds = {"input_ids": np.int32, "sampled_mask": np.bool_, "loss_mask": np.bool_}
    arrays = {name: np.full((len(rows), width), fillers[name], kinds.get(name, np.float32)) for name in present}
    arrays |= {"position_ids": np.zeros((len(rows), width), np.int32)}
    arrays |= {"attention_mask": np.zeros((len(rows), width), np.bool_)}
    for index, row in enumerate(rows):
        place = slice(width - len(row), width) if side == "left" else slice(0, len(row))
        for name in present:
            arrays[name][index, place] = row.token_ids if name == "input_ids" else getattr(row, name)
        arrays["position_ids"][index, place] = np.arange(len(row))
        arrays["attention_mask"][index, place] = True
        for name in {"loss_mask", "loss_weight"} & set(present):
            arrays[name][index, place.start : place.start + 1] = 0
    return arrays


def bucketed(
    batch: Batch, *, tokens: int, pad_token_id: int, **options: Any
) -> Iterator[tuple[list[int], dict[str, Any]]]:
    """Padded rectangles of neighbours in length: each of at most `tokens` places, so that little of it is padding.

    Args:
        batch: The rows.
        tokens: Rows times width of a rectangle, at most.
        pad_token_id: The id of padding.
        **options: What else `to_torch_padded` takes.

    Yields:
        The rows of the batch that a rectangle holds, longest first, and its tensors.

    Raises:
        BudgetError: A row alone is wider than `tokens`.
    """
    multiple = options.get("multiple_of", 1)
    lengths = [len(row) for row in batch.rows()]
    places: list[int] = []
    width = 0
    for row in sorted(range(len(lengths)), key=lambda row: (-lengths[row], row)):
        own = -(-lengths[row] // multiple) * multiple
        if own > tokens:
            raise BudgetError(f"row {row} has {own} tokens, a rectangle has room for {tokens}: raise tokens")
        if places and width * (len(places) + 1) > tokens:
            yield places, to_torch_padded(batch.take(places), pad_token_id=pad_token_id, **options)
            places = []
        width = width if places else own
        places = [*places, row]
    if places:
        yield places, to_torch_padded(batch.take(places), pad_token_id=pad_token_id, **options)
