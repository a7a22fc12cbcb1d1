"""Feeds: packed batches and rows in the names, types and conventions of their consumers.

*Invariant*: no copy that is not needed; labels, shifts and fillers follow the consumer's convention and nothing else.
Everything before a feed is aligned to the token itself; where a feed shifts, its name says so. A feed imports its
consumer only when it is called.
"""

from __future__ import annotations

from tokentape.feeds.areal import areal_sequence_ranges, to_areal
from tokentape.feeds.art import to_art
from tokentape.feeds.atropos import from_atropos, to_atropos
from tokentape.feeds.hf import to_hf_flattening
from tokentape.feeds.openrlhf import to_openrlhf
from tokentape.feeds.padded import bucketed, to_torch_padded
from tokentape.feeds.prime_rl import to_prime_rl
from tokentape.feeds.skyrl import to_skyrl
from tokentape.feeds.slime import to_slime
from tokentape.feeds.tinker import to_tinker_shifted
from tokentape.feeds.torch import PackedDataset, PackedIterable, to_torch
from tokentape.feeds.tree import flex_mask, subtree_ends, to_torch_tree, to_trl_tree, tree_mask
from tokentape.feeds.trl import to_trl_rollout, to_trl_sft
from tokentape.feeds.verl import to_verl, to_verl_tensors, verl_prefix_groups

__all__ = [
    "PackedDataset",
    "PackedIterable",
    "areal_sequence_ranges",
    "bucketed",
    "flex_mask",
    "from_atropos",
    "subtree_ends",
    "to_areal",
    "to_art",
    "to_atropos",
    "to_hf_flattening",
    "to_openrlhf",
    "to_prime_rl",
    "to_skyrl",
    "to_slime",
    "to_tinker_shifted",
    "to_torch",
    "to_torch_padded",
    "to_torch_tree",
    "to_trl_rollout",
    "to_trl_sft",
    "to_trl_tree",
    "to_verl",
    "to_verl_tensors",
    "tree_mask",
    "verl_prefix_groups",
]
