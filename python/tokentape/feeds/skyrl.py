"""SkyRL: rollouts as a `GeneratorOutput`, parallel lists with one entry a row."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from tokentape.feeds.rollouts import require, rollouts

if TYPE_CHECKING:
    from tokentape.batch import Batch

__all__ = ["TrajectoryID", "to_skyrl"]


class TrajectoryID(NamedTuple):
    """Which rollout of which item: what SkyRL reads of its own class of this name."""

    instance_id: str
    repetition_id: int

    def to_string(self) -> str:
        """The text by which SkyRL tells trajectories apart."""
        return f"{self.instance_id}_{self.repetition_id}"


def to_skyrl(batch: Batch) -> dict[str, list[Any] | None]:
    """`prompt_token_ids`, `response_ids`, `rewards` (scalars), `loss_masks`, `rollout_logprobs` (0.0 filler; None if no
    row has them), `stop_reasons`, `trajectory_ids` (the group's id, and the number of the rollout in it),
    `is_last_step`, and `rollout_metrics` (None). SkyRL wants the rows of a group to be neighbours.

    Raises:
        SchemaError: A row has no sampled token or no reward, or a rollout has several rows.

    Example:
        >>> import tokentape as tt
        >>> row = {"token_ids": [1, 2, 3], "sampled_mask": [0, 1, 1], "reward": 0.5, "trajectory_id": "a"}
        >>> output = to_skyrl(tt.Batch.from_rows([row]))
        >>> output["prompt_token_ids"], output["response_ids"], output["loss_masks"], output["rewards"]
        ([[1]], [[2, 3]], [[1, 1]], [0.5])
    """  # noqa: D205  (what it gives is the summary)
    found = rollouts(batch, "SkyRL")
    for row, _ in found:
        require(row, "reward", "SkyRL")
    before: Counter[str] = Counter()
    names: list[TrajectoryID] = []
    for row, _ in found:
        names.append(TrajectoryID(row.group_id, before[row.group_id]))
        before[row.group_id] += 1
    known = bool(found) and all(row.logprobs is not None for row, _ in found)
    return {
        "prompt_token_ids": [row.token_ids[:start].tolist() for row, start in found],
        "response_ids": [row.token_ids[start:].tolist() for row, start in found],
        "rewards": [row.reward for row, _ in found],
        "loss_masks": [row.loss_mask[start:].tolist() for row, start in found],
        "rollout_logprobs": [row.logprobs[start:].tolist() for row, start in found] if known else None,
        "stop_reasons": [row.turns[-1]["finish_reason"] if row.turns else "stop" for row, _ in found],
        "trajectory_ids": names,
        "is_last_step": [True for _ in found],
        "rollout_metrics": None,
    }
