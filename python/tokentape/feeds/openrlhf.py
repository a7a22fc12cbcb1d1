"""OpenRLHF: rows as what its agent executor returns."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tokentape.feeds.rollouts import rollouts

if TYPE_CHECKING:
    from tokentape.batch import Batch, Row

__all__ = ["to_openrlhf"]


def to_openrlhf(batch: Batch) -> list[dict[str, Any]]:
    """`observation_tokens` (all ids), `action_ranges` (sampled runs as (start, end), the end excluded),
    `rollout_log_probs` (over all ids, 0.0 filler; None if never recorded), `reward` and `scores`.

    Raises:
        SchemaError: A row has no sampled token, or a rollout has several rows.

    Example:
        >>> import tokentape as tt
        >>> row = {"token_ids": [1, 2, 3, 4, 5], "sampled_mask": [0, 1, 1, 0, 1], "reward": 1.0}
        >>> to_openrlhf(tt.Batch.from_rows([row]))[0]["action_ranges"]
        [(1, 3), (4, 5)]
    """  # noqa: D205  (what it gives is the summary)
    return [
        {
            "observation_tokens": row.token_ids.tolist(),
            "action_ranges": _runs(row),
            "rollout_log_probs": None if row.logprobs is None else row.logprobs.tolist(),
            "reward": row.reward,
            "scores": row.reward,
        }
        for row, _ in rollouts(batch, "OpenRLHF")
    ]


def _runs(row: Row) -> list[tuple[int, int]]:
    """The runs of sampled tokens."""
    mask: list[int] = [0, *row.sampled_mask.tolist(), 0]
    edges = [place for place, (left, right) in enumerate(pairwise(mask)) if left != right]
    return list(zip(edges[::2], edges[1::2], strict=True))
