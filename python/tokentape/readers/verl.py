"""verl: `AgentLoopOutput`s as JSON lines, and the tensors of a `DataProto`.

In tensors, prompts are padded left and responses right; `input_ids` is both, `response_mask` 0 on tool text and
padding, and `rm_scores` holds the reward at the last token of the response.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokentape.batch import Row
from tokentape.readers import response
from tokentape.readers.sample import Finding, Items, Sample, attempt
from tokentape.readers.source import Source, as_dict
from tokentape.readers.table import column, padding, table

__all__ = ["FILLER", "KEEPS", "NAME", "NEEDS_LOGPROBS", "detect", "pads", "read", "write"]

NAME = "verl"
FILLER = 0.0
NEEDS_LOGPROBS = False
KEEPS = {"token_ids", "loss_mask", "logprobs", "reward"}


def detect(source: Source, first: Any) -> bool:
    """Whether the file is of this format."""
    if source.kind == "lines":
        return isinstance(first, dict) and {"response_ids", "response_mask"} <= first.keys()
    if source.kind != "tensors" or not isinstance(first, dict):
        return False
    found = as_dict(first, "the file")
    return "responses" in found.get("batch", found)


def read(source: Source) -> Items:
    """The outputs, or the rows of the tensors."""
    if source.kind == "tensors":
        yield from _tensors(source.tensors())
        return
    for row, item in enumerate(source.lines()):
        yield item if isinstance(item, Finding) else attempt(row, _output, item[1])


def _output(row: int, item: Any) -> Sample:
    output = as_dict(item, "the line")
    sample = response.build(
        row,
        output.get("prompt_ids"),
        output.get("response_ids"),
        response_mask=output.get("response_mask"),
        logprobs=output.get("response_logprobs"),
    )
    if isinstance(reward := output.get("reward_score"), int | float):
        sample.columns["reward"] = float(reward)
    return sample


def pads(source: Source) -> list[int]:
    """The ids that pad the tensors."""
    if source.kind != "tensors":
        return []
    batch = source.tensors()
    batch = batch.get("batch", batch)
    return padding(table(batch, "input_ids"), table(batch, "attention_mask"))


def _tensors(found: dict[str, Any]) -> Iterator[Sample]:
    batch = as_dict(found.get("batch", found), "the batch")
    prompts, responses = table(batch, "prompts"), table(batch, "responses")
    attention = table(batch, "attention_mask", like=np.concatenate([prompts, responses], 1))
    masks = table(batch, "response_mask", like=responses)
    logprobs = batch.get("rollout_log_probs")
    for row, (prompt, answer) in enumerate(zip(prompts, responses, strict=True)):
        width = len(prompt)
        asked, answered = attention[row][:width] != 0, attention[row][width:] != 0
        length = int(np.flatnonzero(answered).max(initial=-1)) + 1
        sample = response.build(
            row,
            prompt[asked],
            answer[:length],
            response_mask=masks[row][:length],
            logprobs=None if logprobs is None else table(batch, "rollout_log_probs", like=responses)[row][:length],
            names=("prompts", "responses"),
        )
        if "rm_scores" in batch:
            sample.columns["reward"] = float(table(batch, "rm_scores", like=responses)[row].sum())
        if isinstance(uid := found.get("uid"), list):
            sample.columns["group_id"] = str(column(uid, row))  # pyright: ignore[reportUnknownArgumentType]
        _check_copy(sample, batch, np.concatenate([prompt, answer]), width)
        _check_positions(sample, batch, attention[row], width)
        yield sample


def _check_copy(sample: Sample, batch: dict[str, Any], whole: NDArray[Any], width: int) -> None:
    """`input_ids` is prompt and response."""
    if "input_ids" in batch:
        copy = table(batch, "input_ids", like=whole[None])[sample.row]
        differs = copy != whole
        if differs.any():
            at = int(np.argmax(differs))
            message = f"input_ids is {copy[at]}, prompts and responses say {whole[at]}"
            sample.say("columns-disagree", message, at - width if at >= width else at, "input_ids")


def _check_positions(sample: Sample, batch: dict[str, Any], attention: NDArray[Any], width: int) -> None:
    """`position_ids` counts what is attended to; models of images have several of them, which are passed over."""
    if "position_ids" in batch and batch["position_ids"].ndim == attention.ndim + 1:
        positions = table(batch, "position_ids")[sample.row]
        expected = np.cumsum(attention) - 1
        wrong = (positions != expected) & (attention != 0)
        if wrong.any():
            at = int(np.argmax(wrong))
            message = f"the position is {positions[at]}, not {expected[at]}"
            sample.say("position-ids-restart", message, at - width if at >= width else at, "position_ids")


def write(rows: Iterable[Row]) -> Iterator[str]:
    """One output a line.

    Raises:
        SchemaError: Nothing of a row is trained.
    """
    for row in rows:
        prompt, answer, mask, logprobs = response.split(row)
        yield json.dumps(
            {
                "prompt_ids": prompt,
                "response_ids": answer,
                "response_mask": mask,
                "response_logprobs": logprobs,
                "routed_experts": None,
                "multi_modal_data": {},
                "reward_score": row.reward,
                "num_turns": 2 * len(row.turns),
                "metrics": {},
                "extra_fields": {},
            }
        )
