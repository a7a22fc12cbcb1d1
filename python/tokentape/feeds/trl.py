"""TRL: what a `rollout_func` of `GRPOTrainer` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokentape.errors import ArgumentError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokentape.batch import Batch, Row

__all__ = ["to_trl_rollout"]


def to_trl_rollout(batch: Batch, *, prompts: Sequence[Any] | None = None) -> dict[str, list[Any]]:
    """Rows as the dict that TRL's `rollout_func` returns, one completion a row, in order.

    A completion is everything after the first prompt, the text of tools included; `env_mask` is 1 where the policy
    produced the token. Further keys reach every reward function as keyword arguments: `reward` if all rows have one.

    Args:
        batch: One row per entry of `prompts`.
        prompts: What TRL passed; it repeats each prompt for each generation. Only its length is checked: TRL passes
            silently over a short list.

    Returns:
        `prompt_ids`, `completion_ids`, `logprobs`, `env_mask` as lists of lists, and `reward`.

    Raises:
        ArgumentError: There are not as many rows as prompts.
        SchemaError: A row has no sampled token or no logprobs, or a rollout has several rows.

    Example:
        >>> import tokentape as tt
        >>> row = {"token_ids": [1, 2, 3], "sampled_mask": [0, 1, 1], "logprobs": [0.0, -0.5, -0.25], "reward": 1.0}
        >>> to_trl_rollout(tt.Batch.from_rows([row]))["completion_ids"]
        [[2, 3]]
    """
    if prompts is not None and len(prompts) != len(batch):
        raise ArgumentError(f"{len(batch)} rows for {len(prompts)} prompts: TRL needs one completion for each entry")
    rollout: dict[str, list[Any]] = {"prompt_ids": [], "completion_ids": [], "logprobs": [], "env_mask": []}
    rows = list(batch.rows())
    _one_row_each(rows)
    for row in rows:
        start = _first_sampled(row)
        rollout["prompt_ids"].append(row.token_ids[:start].tolist())
        rollout["completion_ids"].append(row.token_ids[start:].tolist())
        rollout["logprobs"].append(row.logprobs[start:].tolist())
        rollout["env_mask"].append(row.sampled_mask[start:].tolist())
    if all(row.reward is not None for row in rows):
        rollout["reward"] = [row.reward for row in rows]
    return rollout


def _one_row_each(rows: list[Row]) -> None:
    seen: set[str] = set()
    for row in rows:
        if row.rollout_id and row.rollout_id in seen:
            raise SchemaError(
                f"row {row.index}: rollout {row.rollout_id!r} has several rows, TRL takes one completion for a prompt; "
                "use history='keep', or pass the last fragment of each rollout"
            )
        seen.add(row.rollout_id)


def _first_sampled(row: Row) -> int:
    if not row.sampled_mask.any():
        raise SchemaError(f"row {row.index} (trajectory {row.trajectory_id!r}) has no sampled token to complete with")
    if row.logprobs is None:
        raise SchemaError(f"row {row.index} (trajectory {row.trajectory_id!r}) has no logprobs, which TRL needs")
    return int(np.argmax(row.sampled_mask))
