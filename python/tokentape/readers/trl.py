"""TRL: the dict of a `rollout_func`, what its GRPO trainer makes of it, and the log of completions.

The dict is columns over sequences: `prompt_ids`, `completion_ids`, `logprobs`, and `env_mask` or `tool_mask` where the
environment wrote a part. In tensors prompts are padded left and completions right; `tool_mask` pads with 1, so that the
trained tokens are `completion_mask * tool_mask`. The log holds messages only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tokentape.batch import Row
from tokentape.errors import SchemaError
from tokentape.readers import response
from tokentape.readers.sample import Finding, Items, Place, Sample
from tokentape.readers.source import Source, as_dict, as_list
from tokentape.readers.table import padding, table

__all__ = ["FILLER", "KEEPS", "NAME", "NEEDS_LOGPROBS", "detect", "pads", "read", "write"]

NAME = "trl"
FILLER = 0.0
NEEDS_LOGPROBS = False
KEEPS = {"token_ids", "loss_mask", "logprobs", "reward"}
MASKS = ("env_mask", "tool_mask")
NAMES = ("prompt_ids", "completion_ids")


def detect(source: Source, first: Any) -> bool:
    """Whether the file is of this format."""
    return source.kind in {"json", "tensors"} and isinstance(first, dict) and "completion_ids" in first


def read(source: Source) -> Items:
    """The completions of a rollout, or the rows of the tensors."""
    if source.kind == "tensors":
        yield from _tensors(as_dict(source.tensors(), "the file"))
        return
    yield from _rollout(as_dict(source.value(), "the file"))


def pads(source: Source) -> list[int]:
    """The ids that pad the tensors."""
    if source.kind != "tensors":
        return []
    batch = source.tensors()
    found = padding(table(batch, "completion_ids"), table(batch, "completion_mask"))
    return found + padding(table(batch, "prompt_ids"), table(batch, "prompt_mask"))


def _rollout(rollout: dict[str, Any]) -> Items:
    completions = as_list(rollout.get("completion_ids"), "`completion_ids`")
    mask = next((name for name in MASKS if rollout.get(name) is not None), None)
    lists = {name: rollout.get(name) for name in ("prompt_ids", "logprobs", mask or "env_mask")}
    for name, values in lists.items():
        if values is not None and len(as_list(values, f"`{name}`")) != len(completions):
            message = f"`{name}` has {len(values)} sequences, `completion_ids` has {len(completions)}"
            yield Finding("column-length-mismatch", message, Place(field=name))
            return
    for row, completion in enumerate(completions):
        cells = {name: None if values is None else values[row] for name, values in lists.items()}
        sample = response.build(
            row,
            cells["prompt_ids"],
            completion,
            response_mask=cells[mask or "env_mask"],
            logprobs=cells["logprobs"],
            names=NAMES,
        )
        _reward(sample, rollout, row)
        yield sample


def _reward(sample: Sample, rollout: dict[str, Any], row: int) -> None:
    for name in ("reward", "rewards", "score", "scores"):
        if rollout.get(name) is not None:
            values = as_list(rollout[name], f"`{name}`")
            if row < len(values) and isinstance(values[row], int | float):
                sample.columns["reward"] = float(values[row])
            return


def _tensors(batch: dict[str, Any]) -> Iterator[Sample]:
    prompts, completions = table(batch, "prompt_ids"), table(batch, "completion_ids")
    prompt_mask = table(batch, "prompt_mask", like=prompts)
    completion_mask = table(batch, "completion_mask", like=completions)
    tool_mask = table(batch, "tool_mask", like=completions) if "tool_mask" in batch else np.ones_like(completion_mask)
    logprobs = next(
        (batch[name] for name in ("sampling_per_token_logps", "old_per_token_logps") if name in batch), None
    )
    advantages = np.atleast_1d(cast("NDArray[Any]", batch.get("advantages", np.empty(0))))
    for row in range(len(prompts)):
        length = int(np.flatnonzero(completion_mask[row]).max(initial=-1)) + 1
        sample = response.build(
            row,
            prompts[row][prompt_mask[row] != 0],
            completions[row][:length],
            response_mask=(completion_mask[row] * tool_mask[row])[:length],
            logprobs=None if logprobs is None else logprobs[row][:length],
            names=NAMES,
        )
        if advantages.ndim == 1 and row < len(advantages):
            sampled = sample.columns["sampled_mask"]
            sample.columns["advantages"] = np.where(sampled == 1, advantages[row], 0.0).astype(np.float32)
        yield sample


def write(rows: Iterable[Row]) -> Iterator[str]:
    """The one dict of all rows.

    Raises:
        SchemaError: Nothing of a row is trained, or a row has no logprobs.
    """
    rollout: dict[str, list[Any]] = {
        "prompt_ids": [],
        "completion_ids": [],
        "env_mask": [],
        "logprobs": [],
        "reward": [],
    }
    for row in rows:
        prompt, completion, mask, logprobs = response.split(row)
        if logprobs is None:
            raise SchemaError(f"row {row.index} has no logprobs, which TRL needs")
        for name, value in zip(rollout, (prompt, completion, mask, logprobs, row.reward), strict=True):
            rollout[name].append(value)
    yield json.dumps(rollout)
