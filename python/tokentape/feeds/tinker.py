"""tinker: rows as the fields of a `Datum`, whose targets are shifted to the left by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokentape.feeds.rollouts import require

if TYPE_CHECKING:
    from tokentape.batch import Batch

__all__ = ["to_tinker_shifted"]


def to_tinker_shifted(batch: Batch) -> list[dict[str, Any]]:
    """One `Datum` for each row: place `t` of the input predicts place `t` of the target, which is token `t + 1`.

    `model_input` (int32: all tokens but the last), and under `loss_fn_inputs`, of the same length, `target_tokens`
    (int64), `logprobs`, `advantages` and `mask` (float32; 0.0 where the target carries no loss).

    Raises:
        SchemaError: A row has no logprobs or no advantages.

    Example:
        >>> import tokentape as tt
        >>> row = {"token_ids": [1, 2, 3], "sampled_mask": [0, 1, 1], "logprobs": [0, -1, -2], "advantages": [0, 1, 1]}
        >>> (datum,) = to_tinker_shifted(tt.Batch.from_rows([row]))
        >>> datum["model_input"].tolist(), datum["loss_fn_inputs"]["target_tokens"].tolist()
        ([1, 2], [2, 3])
        >>> datum["loss_fn_inputs"]["logprobs"].tolist()
        [-1.0, -2.0]
    """
    data: list[dict[str, Any]] = []
    for row in batch.rows():
        require(row, "logprobs", "tinker")
        require(row, "advantages", "tinker")
        mask = row.loss_mask[1:].astype(np.float32)
        inputs = {
            "target_tokens": row.token_ids[1:].astype(np.int64),
            "logprobs": np.where(mask > 0, row.logprobs[1:], 0.0).astype(np.float32),
            "advantages": np.where(mask > 0, row.advantages[1:], 0.0).astype(np.float32),
            "mask": mask,
        }
        data.append({"model_input": row.token_ids[:-1].copy(), "loss_fn_inputs": inputs})
    return data
