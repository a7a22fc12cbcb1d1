"""OpenRLHF: rows as what its agent executor returns."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tokentape.feeds.rollouts import rollouts

if TYPE_CHECKING:
    from tokentape.batch import Batch, Row

__all__ = ["to_openrlhf"]


def to_openrlhf(batch: Batch) -> list[dict[str, Any]]:
    """`observation_tokens` (all ids), `action_ranges` (runs of the loss mask as (start, end), the end excluded),
    `rollout_log_probs` (over all ids, 0.0 filler; None if never recorded), `reward`, `scores`, `truncated`, and what it
    demands besides: `prompt` (for its logs: the group's id), `label`, `images`, `mm_train_inputs`, `extra_logs`.

    OpenRLHF shifts `action_ranges` and logprobs by one itself.

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
            "truncated": bool(row.turns) and row.turns[-1]["finish_reason"] == "length",
            "prompt": row.group_id,
            "label": "",
            "images": None,
            "mm_train_inputs": None,
            "extra_logs": {},
        }
        for row, _ in rollouts(batch, "OpenRLHF")
    ]


def _runs(row: Row) -> list[tuple[int, int]]:
    """The runs of trained tokens."""
    mask: list[int] = [0, *row.loss_mask.tolist(), 0]
    edges = [place for place, (left, right) in enumerate(pairwise(mask)) if left != right]
    return list(zip(edges[::2], edges[1::2], strict=True))
