"""Rewards of rollouts, which may have several rows, and the groups that teach nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tokentape.batch.table import Batch

__all__ = ["drop_zero_variance", "rollout_rewards"]

#: Rewards whose standard deviation is below this do not differ, as in the estimators of a group.
ZERO_VARIANCE = 1e-6


def rollout_rewards(batch: Batch) -> dict[str, dict[str, float]]:
    """By group the reward of each rollout that has one; a rollout of several rows counts once, with its last row's.

    Example:
        >>> import tokentape as tt
        >>> rows = [{"token_ids": [1], "group_id": "a", "rollout_id": name, "reward": 1.0} for name in ("x", "x", "y")]
        >>> rollout_rewards(tt.Batch.from_rows(rows))
        {'a': {'x': 1.0, 'y': 1.0}}
    """
    table: Any = batch.to_pyarrow().select(["group_id", "rollout_id", "reward"])
    found: dict[str, dict[str, float]] = {}
    columns: list[list[Any]] = [table.column(name).to_pylist() for name in table.column_names]
    for group, rollout, reward in zip(*columns, strict=True):
        if reward is not None:
            found.setdefault(group, {})[rollout] = reward
    return found


def drop_zero_variance(batch: Batch) -> tuple[Batch, list[str]]:
    """The rows of groups whose rollouts differ in reward, and the names of the groups that were dropped.

    A group without rewards stays: nothing is known of it.

    Example:
        >>> import tokentape as tt
        >>> rewards = {"a": (1.0, 0.0), "b": (1.0, 1.0)}
        >>> rows = [
        ...     {"token_ids": [1], "group_id": group, "rollout_id": str(number), "reward": reward}
        ...     for group, pair in rewards.items()
        ...     for number, reward in enumerate(pair)
        ... ]
        >>> kept, dropped = drop_zero_variance(tt.Batch.from_rows(rows))
        >>> len(kept), dropped
        (2, ['b'])
    """
    rewards = rollout_rewards(batch)
    dropped = [group for group, found in rewards.items() if float(np.std(list(found.values()))) < ZERO_VARIANCE]
    if not dropped:
        return batch, []
    groups = batch.to_pyarrow().column("group_id").to_pylist()
    gone = set(dropped)
    return batch.filter(np.array([group not in gone for group in groups], bool)), dropped
