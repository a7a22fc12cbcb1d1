"""AReaL: rows as right-padded tensors, and trees as the index ranges that its tree training reads."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tokentape.errors import ArgumentError, SchemaError
from tokentape.feeds.rollouts import require
from tokentape.feeds.tree import require_tree

if TYPE_CHECKING:
    from tokentape.batch import Batch, PackedBatch

__all__ = ["areal_sequence_ranges", "to_areal"]


def to_areal(batch: Batch, *, pad_token_id: int = 0) -> dict[str, Any]:
    """`input_ids` (int64), `attention_mask` (bool), `loss_mask` (int64), `logprobs` (float32, 0.0 filler), `versions`
    (int64, -1 where not sampled), tensors of torch of shape (rows, longest), and `rewards` (float32, shape (rows,)).

    Nothing is shifted: the actor of AReaL rolls masks and logprobs by one itself.

    Raises:
        SchemaError: A row has no logprobs or no reward.

    Example:
        >>> import tokentape as tt
        >>> row = {"token_ids": [1, 2], "sampled_mask": [0, 1], "logprobs": [0.0, -0.5], "reward": 1.0}
        >>> to_areal(tt.Batch.from_rows([row, row | {"token_ids": [1, 3]}]))["input_ids"].tolist()
        [[1, 2], [1, 3]]
    """  # noqa: D205  (what it gives is the summary)
    rows = list(batch.rows())
    shape = (len(rows), max(map(len, rows), default=0))
    arrays: dict[str, Any] = {
        "input_ids": np.full(shape, pad_token_id, np.int64),
        "attention_mask": np.zeros(shape, np.bool_),
        "loss_mask": np.zeros(shape, np.int64),
        "logprobs": np.zeros(shape, np.float32),
        "versions": np.full(shape, -1, np.int64),
    }
    for index, row in enumerate(rows):
        require(row, "logprobs", "AReaL")
        require(row, "reward", "AReaL")
        arrays["input_ids"][index, : len(row)] = row.token_ids
        arrays["attention_mask"][index, : len(row)] = True
        arrays["loss_mask"][index, : len(row)] = row.loss_mask
        arrays["logprobs"][index, : len(row)] = np.where(row.sampled_mask, row.logprobs, 0.0)
        for run in row.policy_versions or ():
            arrays["versions"][index, run["start"] : run["end"]] = run["version"]
    arrays["rewards"] = np.array([row.reward for row in rows], np.float32)
    torch = importlib.import_module("torch")
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def areal_sequence_ranges(packed: PackedBatch) -> dict[int, list[tuple[int, int]]]:
    """For each row of a bin the nodes it is made of, as (first token, last token), both inclusive.

    This is what `get_sequence_tree_indices` of AReaL's `TrieNode` gives; its micro-batches are padded to a multiple of
    128: pack with `align=128`.

    Raises:
        ArgumentError: The packing shares no prefixes.

    Example:
        >>> import tokentape as tt
        >>> rows = [{"token_ids": [5, 6, last], "sampled_mask": [0, 0, 1]} for last in (7, 8)]
        >>> packed = next(iter(tt.pack(tt.Batch.from_rows(rows), token_budget=8, share_prefixes=True)))
        >>> areal_sequence_ranges(packed)
        {0: [(0, 1), (2, 2)], 1: [(0, 1), (3, 3)]}
    """
    require_tree(packed)
    if packed.segment_parent is None or packed.leaf_row is None or packed.leaf_segment is None:
        raise ArgumentError("the packed batch shares no prefixes: pack with share_prefixes=True")
    parents, ends = packed.segment_parent.tolist(), packed.cu_seqlens.tolist()
    ranges: dict[int, list[tuple[int, int]]] = {}
    for row, leaf in zip(packed.leaf_row.tolist(), packed.leaf_segment.tolist(), strict=True):
        path: list[tuple[int, int]] = []
        segment = leaf
        while segment >= 0:
            path.insert(0, (ends[segment], ends[segment + 1] - 1))
            segment = parents[segment]
        if row in ranges:
            raise SchemaError(f"row {row} stands twice in the bin")
        ranges[row] = path
    return ranges
