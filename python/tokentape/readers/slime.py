"""slime: the samples of a debug dump, as `.pt` or JSON.

`tokens` is prompt and response; `loss_mask` and `rollout_log_probs` cover the last `response_length` of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from tokentape.batch import Row
from tokentape.readers import response
from tokentape.readers.sample import Items, Piece, Sample, attempt
from tokentape.readers.source import Source, as_dict, as_list

__all__ = ["FILLER", "KEEPS", "NAME", "NEEDS_LOGPROBS", "detect", "read", "write"]

NAME = "slime"
FILLER = 0.0
NEEDS_LOGPROBS = False
KEEPS = {"group_id", "token_ids", "loss_mask", "logprobs", "reward"}
REASONS = {"truncated": "length", "completed": "stop", "aborted": "abort"}


def detect(source: Source, first: Any) -> bool:
    """Whether the file is of this format."""
    return source.kind in {"json", "tensors"} and isinstance(first, dict) and "samples" in first


def read(source: Source) -> Items:
    """The samples, in order."""
    found = as_dict(source.tensors() if source.kind == "tensors" else source.value(), "the file")
    for row, item in enumerate(as_list(found.get("samples"), "`samples`")):
        yield attempt(row, _sample, item)


def _sample(row: int, item: Any) -> Sample:
    found = as_dict(item, "a sample")
    tokens = as_list(found.get("tokens"), "`tokens`")
    mask, logprobs = found.get("loss_mask"), found.get("rollout_log_probs")
    stated = found.get("response_length")
    length = _response_length(stated, mask, logprobs, len(tokens))
    start = len(tokens) - length
    sample = response.build(
        row,
        tokens[:start],
        tokens[start:],
        response_mask=mask,
        logprobs=logprobs,
        names=("tokens", "response"),
        finish_reason=REASONS.get(str(found.get("status")), ""),
    )
    sample.pieces = (Piece(start, "tokens"), Piece(length, "response"))
    if stated != length:
        message = f"response_length is {stated}, the mask and the logprobs cover {length} tokens"
        sample.say("response-length-wrong", message, None, "response_length")
    reward = found.get("reward")
    if isinstance(reward, int | float):
        sample.columns["reward"] = float(reward)
    if isinstance(found.get("group_index"), int):
        sample.columns["group_id"] = f"{NAME}-{found['group_index']}"
    return sample


def _response_length(stated: Any, mask: Any, logprobs: Any, tokens: int) -> int:
    """The stated length, unless all columns agree on another, or it cannot be."""
    lengths = {len(as_list(values, "a column")) for values in (mask, logprobs) if values is not None}
    if isinstance(stated, int) and 0 <= stated <= tokens and (len(lengths) != 1 or stated in lengths):
        return stated
    agreed = lengths.pop() if len(lengths) == 1 else 0
    return min(agreed, tokens)


def write(rows: Iterable[Row]) -> Iterator[str]:
    """The one dict of all rows, as JSON.

    Raises:
        SchemaError: Nothing of a row is trained.
    """
    numbers: dict[str, int] = {}
    samples = [_dict(index, numbers.setdefault(row.group_id, len(numbers)), row) for index, row in enumerate(rows)]
    yield json.dumps({"rollout_id": 0, "samples": samples})


def _dict(index: int, group: int, row: Row) -> dict[str, Any]:
    prompt, answer, mask, logprobs = response.split(row)
    reason = row.turns[-1]["finish_reason"] if row.turns else "stop"
    return {
        "group_index": group,
        "index": index,
        "prompt": "",
        "tokens": prompt + answer,
        "response": "",
        "response_length": len(answer),
        "label": None,
        "reward": row.reward,
        "loss_mask": mask,
        "rollout_log_probs": logprobs,
        "status": "truncated" if reason == "length" else "completed",
        "metadata": {},
    }
