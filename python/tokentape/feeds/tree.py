"""Packed batches with shared prefixes: attention masks and loss terms, and the layouts that trainers read.

*Invariant*: a token attends to its own tokens from the root on and to nothing else, and is predicted from its parent.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tokentape.errors import ArgumentError
from tokentape.feeds.labels import IGNORED

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tokentape.batch import PackedBatch

__all__ = ["flex_mask", "require_tree", "segment_paths", "subtree_ends", "to_torch_tree", "to_trl_tree", "tree_mask"]


def require_tree(packed: PackedBatch) -> NDArray[np.int32]:
    """The parents of the tokens.

    Raises:
        ArgumentError: The packing shares no prefixes.
    """
    if packed.parent is None:
        raise ArgumentError("the packed batch shares no prefixes: pack with share_prefixes=True")
    return packed.parent


def subtree_ends(packed: PackedBatch) -> NDArray[np.int32]:
    """One past the last token below each token, int32 of shape (tokens,).

    Tokens stand in depth-first order, so that token `q` sees token `k` exactly if `k <= q < subtree_ends[k]`: two
    comparisons, which is what a mask function of FlexAttention can compute.

    Example:
        >>> import tokentape as tt
        >>> rows = [{"token_ids": [5, last], "sampled_mask": [0, 1]} for last in (6, 7)]
        >>> packed = next(iter(tt.pack(tt.Batch.from_rows(rows), token_budget=8, share_prefixes=True)))
        >>> packed.input_ids.tolist(), subtree_ends(packed).tolist()
        ([5, 6, 7], [3, 2, 3])
    """
    require_tree(packed)
    lengths, parents = packed.seq_lens, _segment_parents(packed)
    last = packed.cu_seqlens[1:].copy()
    for segment in range(len(lengths) - 1, -1, -1):  # children stand behind their parents
        if parents[segment] >= 0:
            last[parents[segment]] = max(last[parents[segment]], last[segment])
    return np.repeat(last, lengths)


def tree_mask(packed: PackedBatch) -> NDArray[np.bool_]:
    """Which token (row) sees which (column), bool of shape (tokens, tokens): the exact mask, to test against.

    As `attn_mask` of `torch.nn.functional.scaled_dot_product_attention` it computes a tree on any device; memory
    grows with the square of the tokens.
    """
    places = np.arange(len(packed))
    return (places[None, :] <= places[:, None]) & (places[:, None] < subtree_ends(packed)[None, :])


def flex_mask(packed: PackedBatch, *, device: Any = None) -> Callable[..., Any]:
    """The `mask_mod` of FlexAttention for a packed batch: of `create_block_mask(mask, None, None, tokens, tokens)`."""
    torch = importlib.import_module("torch")
    ends = torch.as_tensor(subtree_ends(packed), device=device)

    def mask(_batch: Any, _head: Any, query: Any, key: Any) -> Any:
        return (key <= query) & (query < ends[key])

    return mask


def to_torch_tree(packed: PackedBatch, *, device: Any = None) -> dict[str, Any]:
    """A packed batch with shared prefixes as tensors, with its loss terms.

    Returns:
        `input_ids`, `position_ids` (int64, (1, tokens)), `attention_mask` (bool, (1, 1, tokens, tokens), for SDPA);
        and by trained token `predicted_from` (int64, the place whose logits predict it), `targets` (int64),
        `weights` (float32: the sum over rows), and `logprobs`, `advantages` (float32) where the packing has them.

    Example:
        >>> import tokentape as tt
        >>> rows = [{"token_ids": [5, last], "sampled_mask": [0, 1]} for last in (6, 7)]
        >>> packed = next(iter(tt.pack(tt.Batch.from_rows(rows), token_budget=8, share_prefixes=True)))
        >>> tensors = to_torch_tree(packed)
        >>> tensors["predicted_from"].tolist(), tensors["targets"].tolist()
        ([0, 0], [6, 7])
    """
    torch = importlib.import_module("torch")
    parent = require_tree(packed)
    trained = np.flatnonzero(packed.loss_mask)
    weights = packed.loss_mask.astype(np.float32) if packed.loss_weight is None else packed.loss_weight
    arrays: dict[str, Any] = {
        "input_ids": packed.input_ids.astype(np.int64)[None],
        "position_ids": packed.position_ids.astype(np.int64)[None],
        "attention_mask": tree_mask(packed)[None, None],
        "predicted_from": parent[trained].astype(np.int64),
        "targets": packed.input_ids[trained].astype(np.int64),
        "weights": weights[trained],
    }
    for name, values in (("logprobs", packed.logprobs), ("advantages", packed.advantages)):
        if values is not None:
            arrays[name] = values[trained]
    return {name: torch.as_tensor(array, device=device) for name, array in arrays.items()}


def _segment_parents(packed: PackedBatch) -> NDArray[np.int32]:
    """The parent of each segment; a padding tail is a root."""
    parents = packed.segment_parent
    if parents is None:
        raise ArgumentError("the packed batch shares no prefixes: pack with share_prefixes=True")
    return parents


def segment_paths(packed: PackedBatch) -> list[NDArray[Any]]:
    """The places of the tokens from the root to the end of each segment."""
    ends: list[int] = packed.cu_seqlens.tolist()
    paths: list[Any] = []
    for segment, parent in enumerate(_segment_parents(packed).tolist()):
        own = np.arange(ends[segment], ends[segment + 1])
        paths.append(own if parent < 0 else np.append(paths[parent], own))
    return paths


def to_trl_tree(packed: PackedBatch, *, device: Any = None) -> dict[str, Any]:
    """The tensors of a `TreeRow` of TRL's asynchronous GRPO, from a packing with `share_prefixes="single_next"`.

    Equal to `TreeRow.pack()` over the rows of the bin up to the order of branches, for rows that train no token twice.
    A token that several rows train is one term with the sum of their weights times advantages: TRL has no weights.

    Returns:
        `input_ids`, `position_ids`, `shift_labels` (next token, -100 where it is not trained), `tree_kv_index`,
        `tree_max_seqlens`, `token_index`, `segment_id` (int64), `tree_cu_seqlens_q`, `tree_cu_seqlens_k` (int32),
        `old_log_probs`, `advantages` (float32).

    Raises:
        ArgumentError: The packing shares no prefixes, or a token has two next tokens.
        SchemaError: The rows have no logprobs or advantages.
    """
    torch = importlib.import_module("torch")
    parent = require_tree(packed)
    trained = np.flatnonzero(packed.loss_mask)
    labels = np.full(len(packed), IGNORED, np.int64)
    labels[parent[trained]] = packed.input_ids[trained]
    if (labels[parent[trained]] != packed.input_ids[trained]).any():
        raise ArgumentError('a token has two next tokens: pack with share_prefixes="single_next"')
    paths = segment_paths(packed)
    rows = {int(row): index for index, row in enumerate(packed.leaf_row if packed.leaf_row is not None else ())}
    owner = np.array([rows.get(int(row), -1) for row in packed.row], np.int64)
    advantages = packed.column("advantages").__array__()[trained]
    if packed.loss_weight is not None:
        advantages = advantages * packed.loss_weight[trained]
    arrays: dict[str, Any] = {
        "input_ids": packed.input_ids.astype(np.int64),
        "position_ids": packed.position_ids.astype(np.int64),
        "shift_labels": labels,
        "tree_kv_index": np.concatenate(paths).astype(np.int64),
        "tree_cu_seqlens_q": packed.cu_seqlens.copy(),
        "tree_cu_seqlens_k": np.cumsum([0, *map(len, paths)]).astype(np.int32),
        "tree_max_seqlens": np.array([packed.max_seqlen, max(map(len, paths))]),
        "token_index": parent[trained].astype(np.int64),
        "old_log_probs": packed.column("logprobs").__array__()[trained],
        "advantages": advantages,
        "segment_id": owner[np.searchsorted(packed.cu_seqlens, trained, side="right") - 1],
    }
    return {name: torch.as_tensor(array, device=device) for name, array in arrays.items()}
