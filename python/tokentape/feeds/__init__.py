"""Feeds: packed batches and rows in the names, types and conventions of their consumers.

*Invariant*: no copy that is not needed; labels, shifts and fillers follow the consumer's convention and nothing else.
Everything before a feed is aligned to the token itself; where a feed shifts, its name says so. A feed imports its
consumer only when it is called.
"""

from __future__ import annotations

from tokentape.feeds.atropos import from_atropos, to_atropos
from tokentape.feeds.hf import to_hf_flattening
from tokentape.feeds.torch import PackedDataset, to_torch, to_torch_padded
from tokentape.feeds.tree import flex_mask, subtree_ends, to_torch_tree, to_trl_tree, tree_mask
from tokentape.feeds.trl import to_trl_rollout

__all__ = [
    "PackedDataset",
    "flex_mask",
    "from_atropos",
    "subtree_ends",
    "to_atropos",
    "to_hf_flattening",
    "to_torch",
    "to_torch_padded",
    "to_torch_tree",
    "to_trl_rollout",
    "to_trl_tree",
    "tree_mask",
]
