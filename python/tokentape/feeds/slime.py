"""slime: rollouts as the fields of a `Sample`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokentape.feeds.rollouts import rollouts

if TYPE_CHECKING:
    from tokentape.batch import Batch, Row

__all__ = ["to_slime"]

#: What slime calls the ways in which a turn ends.
STATUS = {"stop": "completed", "length": "truncated", "abort": "aborted"}


def to_slime(batch: Batch) -> list[dict[str, Any]]:
    """The fields of one `Sample` for each row; masks and logprobs cover the response alone.

    `tokens`, `response_length`, `loss_mask`, `rollout_log_probs` (0.0 filler; None if never recorded), `reward`,
    `weight_versions` (texts, in order, without repeats), `status` and `rollout_id`.

    Raises:
        SchemaError: A row has no sampled token, or a rollout has several rows.

    Example:
        >>> import tokentape as tt
        >>> row = {"token_ids": [1, 2, 3], "sampled_mask": [0, 1, 1], "reward": 0.5}
        >>> (sample,) = to_slime(tt.Batch.from_rows([row]))
        >>> sample["tokens"], sample["response_length"], sample["loss_mask"], sample["status"]
        ([1, 2, 3], 2, [1, 1], 'completed')
    """
    return [
        {
            "tokens": row.token_ids.tolist(),
            "response_length": len(row) - start,
            "loss_mask": row.loss_mask[start:].tolist(),
            "rollout_log_probs": None if row.logprobs is None else row.logprobs[start:].tolist(),
            "reward": row.reward,
            "weight_versions": _versions(row),
            "status": STATUS.get(row.turns[-1]["finish_reason"] if row.turns else "stop", "completed"),
            "rollout_id": row.rollout_id,
        }
        for row, start in rollouts(batch, "slime")
    ]


def _versions(row: Row) -> list[str]:
    return list(dict.fromkeys(str(run["version"]) for run in row.policy_versions or ()))
