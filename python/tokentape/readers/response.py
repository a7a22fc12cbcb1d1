"""What the formats of prompt and response share: a sequence is two lists, and all columns are over the second.

*Invariant*: the response begins where sampling first began; its columns are as long as it is, or wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokentape.batch import Row
from tokentape.errors import SchemaError
from tokentape.readers.sample import Piece, Sample, floats, ids, mask, turns

__all__ = ["build", "split"]


def build(
    row: int,
    prompt: Any,
    response: Any,
    *,
    response_mask: Any,
    logprobs: Any,
    names: tuple[str, str] = ("prompt_ids", "response_ids"),
    finish_reason: str = "",
) -> Sample:
    """A sequence from its two lists.

    Args:
        row: Its number in the file.
        prompt: Ids.
        response: Ids.
        response_mask: 1 where the policy produced a token of the response; None: everywhere.
        logprobs: Of the response; None: none were recorded.
        names: What the file calls the two lists.
        finish_reason: Why the last turn ended, if the file says so.
    """
    asked, answered = ids(prompt, names[0]), ids(response, names[1])
    sampled = np.ones(len(answered), np.uint8) if response_mask is None else mask(response_mask, "mask")
    nothing = np.zeros(len(asked), np.uint8)
    columns: dict[str, Any] = {
        "token_ids": np.concatenate([asked, answered]),
        "sampled_mask": np.concatenate([nothing, sampled]),
    }
    if logprobs is not None:
        columns["logprobs"] = np.concatenate([nothing.astype(np.float32), floats(logprobs, "logprobs")])
    if finish_reason and len(sampled) == len(answered):
        columns["turns"] = turns(columns["sampled_mask"], finish_reason)
    return Sample(row, columns, (Piece(len(asked), names[0]), Piece(len(answered), names[1])))


def split(row: Row) -> tuple[list[int], list[int], list[int], list[float] | None]:
    """Prompt, response, mask and logprobs of a row of ours; the response begins with the first trained token.

    Raises:
        SchemaError: Nothing of the row is trained.
    """
    trained = row.loss_mask
    if not trained.any():
        raise SchemaError(f"row {row.index} (trajectory {row.trajectory_id!r}) has no trained token: leave it out")
    start = int(np.argmax(trained))
    logprobs = None if row.logprobs is None else np.where(trained == 1, row.logprobs, 0.0)[start:].tolist()
    return row.token_ids[:start].tolist(), row.token_ids[start:].tolist(), trained[start:].tolist(), logprobs
