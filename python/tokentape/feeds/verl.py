"""verl: rollouts as the fields of `AgentLoopOutput`, and as the padded tensors of a `DataProto`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tokentape.feeds.rollouts import require, rollouts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tokentape.batch import Batch

__all__ = ["to_verl", "to_verl_tensors", "verl_prefix_groups"]


def to_verl(batch: Batch) -> list[dict[str, Any]]:
    """The fields of one `AgentLoopOutput` for each row, as lists.

    `prompt_ids`, `response_ids`, `response_mask` (the loss mask: verl has no other), `response_logprobs` (0.0 where not
    sampled, None if never recorded), `reward_score`, `num_turns` (as verl counts: messages of user and assistant), and
    empty `metrics`, a field that it demands.

    Raises:
        SchemaError: A row has no sampled token, or a rollout has several rows.

    Example:
        >>> import tokentape as tt
        >>> row = {"token_ids": [1, 2, 3], "sampled_mask": [0, 1, 1], "reward": 1.0}
        >>> (output,) = to_verl(tt.Batch.from_rows([row]))
        >>> output["prompt_ids"], output["response_ids"], output["response_mask"], output["reward_score"]
        ([1], [2, 3], [1, 1], 1.0)
    """
    return [
        {
            "prompt_ids": row.token_ids[:start].tolist(),
            "response_ids": row.token_ids[start:].tolist(),
            "response_mask": row.loss_mask[start:].tolist(),
            "response_logprobs": None if row.logprobs is None else row.logprobs[start:].tolist(),
            "reward_score": row.reward,
            "num_turns": sum(message.get("role") in {"user", "assistant"} for message in row.messages),
            "metrics": {},
        }
        for row, start in rollouts(batch, "verl")
    ]


def to_verl_tensors(batch: Batch, *, pad_token_id: int) -> dict[str, Any]:
    """Tensors of a `DataProto`: prompts padded on the left, responses on the right, side by side.

    Returns:
        `prompts`, `responses`, `input_ids`, `attention_mask`, `position_ids`, `response_mask` (int64), and float32 over
        the response `rollout_log_probs` (0.0 filler), `rm_scores` (the reward on the last token, as agent loops give)
        and `token_level_scores` (the same, as estimators of advantages read it).

    Raises:
        SchemaError: A row has no sampled token, no logprobs or no reward, or a rollout has several rows.
    """
    torch = importlib.import_module("torch")
    found = rollouts(batch, "verl")
    for row, _ in found:
        require(row, "logprobs", "verl")
        require(row, "reward", "verl")
    left = _padded([row.token_ids[:start] for row, start in found], pad_token_id, np.int64, left=True)
    right = _padded([row.token_ids[start:] for row, start in found], pad_token_id, np.int64)
    real = np.concatenate(
        [
            _padded([np.ones(start) for _, start in found], 0, np.int64, left=True),
            _padded([np.ones(len(row) - start) for row, start in found], 0, np.int64),
        ],
        axis=1,
    )
    scores = np.zeros(right.shape, np.float32)
    scores[np.arange(len(found)), [len(row) - start - 1 for row, start in found]] = [row.reward for row, _ in found]
    arrays = {
        "prompts": left,
        "responses": right,
        "input_ids": np.concatenate([left, right], axis=1),
        "attention_mask": real,
        "position_ids": np.maximum(real.cumsum(axis=1) - 1, 0),
        "response_mask": _padded([row.loss_mask[start:] for row, start in found], 0, np.int64),
        "rollout_log_probs": _padded([row.logprobs[start:] for row, start in found], 0.0, np.float32),
        "rm_scores": scores,
        "token_level_scores": scores,
    }
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _padded(rows: list[Any], filler: float, kind: Any, *, left: bool = False) -> NDArray[Any]:
    width = max(map(len, rows), default=0)
    array = np.full((len(rows), width), filler, kind)
    for index, row in enumerate(rows):
        array[index, width - len(row) if left else 0 : width if left else len(row)] = row
    return array


def verl_prefix_groups(batch: Batch) -> list[list[int]]:
    """The `group_info` of verl's prefix grouper: for each run of rows with one prompt, its length and those behind it.

    Rows stand in the order of the batch; those of a group have to be neighbours.

    Example:
        >>> import tokentape as tt
        >>> rows = [{"token_ids": [1, 2, *end], "sampled_mask": [0, 0] + [1] * len(end)} for end in ([3], [4, 5])]
        >>> verl_prefix_groups(tt.Batch.from_rows(rows))
        [[2, 1, 2]]
    """
    groups: list[list[int]] = []
    last: bytes | None = None
    for row, start in rollouts(batch, "verl"):
        prompt = row.token_ids[:start].tobytes()
        if prompt != last:
            groups.append([start])
        groups[-1].append(len(row) - start)
        last = prompt
    return groups
