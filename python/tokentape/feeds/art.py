"""ART: a packed batch as `PackedTensors`, one row of the given length."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tokentape.errors import ArgumentError

if TYPE_CHECKING:
    from tokentape.batch import PackedBatch

__all__ = ["to_art"]

_PAD = -100


def to_art(packed: PackedBatch, *, sequence_length: int) -> dict[str, Any]:
    """`tokens`, `group_ids`, `parent_ids`, `input_pos` (int64), `assistant_mask` (bool), `logprobs` (float32, NaN where
    the token is not sampled), `advantages`, `weights` (float32), tensors of torch of shape (1, sequence_length), and
    `pixel_values`, `image_grid_thw` (`[None]`).

    A group is a segment, or with shared prefixes a node; its parent is the node it goes on from, a root is its own. In
    ART a token sees its group and the parent, and a place predicts the next one: so trees have prompts and branches and
    nothing deeper, as a packing with `share_prefixes="prompt"` makes them. Advantages and weights are those of the
    rows; what ART's own packing makes of them is not repeated.

    Raises:
        ArgumentError: The bin is longer than `sequence_length`, has a tree of more than two levels, or one in which
            the token before a trained token is not the one that predicts it.

    Example:
        >>> import tokentape as tt
        >>> rows = [{"token_ids": [5, last], "sampled_mask": [0, 1]} for last in (6, 7)]
        >>> packed = next(iter(tt.pack(tt.Batch.from_rows(rows), token_budget=8, share_prefixes="prompt")))
        >>> tensors = to_art(packed, sequence_length=5)
        >>> tensors["tokens"].tolist(), tensors["group_ids"].tolist(), tensors["parent_ids"].tolist()
        ([[5, 6, 5, 7, -100]], [[0, 0, 1, 1, -1]], [[0, 0, 1, 1, -1]])
    """  # noqa: D205  (what it gives is the summary)
    tokens = int((packed.segment_ids >= 0).sum())
    if tokens > sequence_length:
        raise ArgumentError(f"the bin has {tokens} tokens, sequence_length is {sequence_length}")
    _require_readable(packed)
    own = slice(0, tokens)
    groups = packed.segment_ids[own].astype(np.int64)
    above = np.arange(len(packed.seq_lens)) if packed.segment_parent is None else packed.segment_parent
    above = np.where(above < 0, np.arange(len(above)), above)
    sampled = packed.sampled_mask[own].astype(bool)
    logprobs = np.full(tokens, np.nan) if packed.logprobs is None else np.where(sampled, packed.logprobs[own], np.nan)
    advantages = np.zeros(tokens) if packed.advantages is None else packed.advantages[own]
    weights = packed.loss_mask[own] if packed.loss_weight is None else packed.loss_weight[own]
    columns: dict[str, tuple[Any, Any, float]] = {
        "tokens": (packed.input_ids[own], np.int64, _PAD),
        "group_ids": (groups, np.int64, -1),
        "parent_ids": (above[groups], np.int64, -1),
        "input_pos": (packed.position_ids[own], np.int64, 0),
        "assistant_mask": (packed.loss_mask[own].astype(bool), np.bool_, 0),
        "logprobs": (logprobs, np.float32, np.nan),
        "advantages": (advantages, np.float32, 0.0),
        "weights": (weights, np.float32, 0.0),
    }
    filled = {name: np.full((1, sequence_length), filler, kind) for name, (_, kind, filler) in columns.items()}
    for name, (values, _, _) in columns.items():
        filled[name][0, own] = values
    torch = importlib.import_module("torch")
    tensors: dict[str, Any] = {name: torch.from_numpy(array) for name, array in filled.items()}
    return tensors | {"pixel_values": [None], "image_grid_thw": [None]}


def _require_readable(packed: PackedBatch) -> None:
    """Refuses trees that ART would read in another way than they are meant."""
    if packed.parent is None or packed.segment_parent is None:
        return
    trained = np.flatnonzero(packed.loss_mask)
    if (packed.parent[trained] != trained - 1).any():
        raise ArgumentError('a trained token does not follow the one that predicts it: use share_prefixes="prompt"')
    inner = packed.segment_parent[packed.segment_parent >= 0]
    if (packed.segment_parent[inner] >= 0).any():
        raise ArgumentError(
            "the tree has more than two levels, ART reads a prompt and its branches: use share_prefixes='prompt'"
        )
