"""TRL: what a `rollout_func` of `GRPOTrainer` returns, and examples of `SFTTrainer`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokentape.errors import ArgumentError
from tokentape.feeds.labels import labels
from tokentape.feeds.rollouts import rollouts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokentape.batch import Batch, PackedBatch

__all__ = ["to_trl_rollout", "to_trl_sft"]


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
    for one in rollouts(batch, "TRL"):
        one.require_logprobs("TRL")
        row, start = one
        rollout["prompt_ids"].append(row.token_ids[:start].tolist())
        rollout["completion_ids"].append(row.token_ids[start:].tolist())
        rollout["logprobs"].append(row.logprobs[start:].tolist())
        rollout["env_mask"].append(row.sampled_mask[start:].tolist())
    rows = list(batch.rows())
    if all(row.reward is not None for row in rows):
        rollout["reward"] = [row.reward for row in rows]
    return rollout


def to_trl_sft(packed: PackedBatch) -> dict[str, list[int]]:
    """A packed batch as one example of a packed data set: `input_ids`, `labels` (-100 where untrained), `seq_lengths`.

    For `SFTTrainer` with `padding_free=True` and a prepared data set (`skip_prepare_dataset`); its collator makes
    positions and boundaries from `seq_lengths`.

    Example:
        >>> import tokentape as tt
        >>> batch = tt.Batch.from_rows([{"token_ids": [7, 8, 9], "sampled_mask": [0, 1, 1]}] * 2)
        >>> to_trl_sft(next(iter(tt.pack(batch, token_budget=8))))
        {'input_ids': [7, 8, 9, 7, 8, 9], 'labels': [-100, 8, 9, -100, 8, 9], 'seq_lengths': [3, 3]}
    """
    if packed.parent is not None:
        raise ArgumentError("SFTTrainer reads whole rows: pack with share_prefixes=False")
    return {
        "input_ids": packed.input_ids.tolist(),
        "labels": labels(packed.input_ids, packed.loss_mask).tolist(),
        "seq_lengths": packed.seq_lens.tolist(),
    }
