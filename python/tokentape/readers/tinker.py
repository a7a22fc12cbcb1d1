"""tinker: `Datum`s as JSON lines.

`target_tokens` are one ahead of the inputs, and position t of `logprobs`, `advantages` and `mask` speaks about the
token after input t. A sequence is the inputs and the last target.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokentape.batch import Row
from tokentape.errors import SchemaError
from tokentape.readers.sample import Finding, Items, Piece, Sample, attempt, floats, ids, mask
from tokentape.readers.source import Source, as_dict, as_list

__all__ = ["FILLER", "KEEPS", "NAME", "NEEDS_LOGPROBS", "detect", "read", "write"]

NAME = "tinker"
FILLER = 0.0
NEEDS_LOGPROBS = False
KEEPS = {"token_ids", "loss_mask", "logprobs", "advantages"}


def detect(source: Source, first: Any) -> bool:
    """Whether the file is of this format."""
    return source.kind == "lines" and isinstance(first, dict) and {"model_input", "loss_fn_inputs"} <= first.keys()


def read(source: Source) -> Items:
    """The datums, in order."""
    for row, item in enumerate(source.lines()):
        yield item if isinstance(item, Finding) else attempt(row, _sample, item[1])


def _sample(row: int, item: Any) -> Sample:
    datum = as_dict(item, "the line")
    inputs = _inputs(as_dict(datum.get("model_input"), "`model_input`"))
    columns = as_dict(datum.get("loss_fn_inputs"), "`loss_fn_inputs`")
    targets = ids(_data(columns, "target_tokens"), "target_tokens")
    sample = Sample(row, {}, (Piece(1, "model_input"), Piece(len(targets), "target_tokens")))
    _check_shift(sample, inputs, targets)
    first, last = inputs[:1], targets[-1:]
    sample.columns["token_ids"] = np.concatenate([inputs, last])
    if len(inputs) != len(targets):
        message = f"{len(targets)} targets for {len(inputs)} inputs"
        sample.say("column-length-mismatch", message, min(len(inputs), len(targets)), "target_tokens")
    before = np.zeros(len(first), np.uint8)
    weights = next((name for name in ("mask", "weights") if name in columns), None)
    sampled = np.ones(len(targets), np.uint8) if weights is None else mask(_data(columns, weights), weights)
    sample.columns["sampled_mask"] = np.concatenate([before, sampled])
    for name in ("logprobs", "advantages"):
        if name in columns:
            values = floats(_data(columns, name), name)
            sample.columns[name] = np.concatenate([before.astype(np.float32), values])
    return sample


def _inputs(found: dict[str, Any]) -> NDArray[np.int32]:
    chunks = as_list(found.get("chunks"), "`chunks`")
    return np.concatenate([np.empty(0, np.int32), *(_chunk(chunk) for chunk in chunks)])


def _chunk(chunk: Any) -> NDArray[np.int32]:
    tokens = as_dict(chunk, "a chunk").get("tokens")
    if tokens is None:
        raise SchemaError("a chunk holds no tokens: only text is read")
    return ids(tokens, "tokens")


def _data(columns: dict[str, Any], name: str) -> Any:
    return as_dict(columns.get(name), f"`{name}`").get("data")


def _check_shift(sample: Sample, inputs: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
    length = min(len(inputs), len(targets))
    wrong = np.flatnonzero(inputs[1:length] != targets[: length - 1]) if length else np.empty(0)
    if not len(wrong):
        return
    if (inputs[:length] == targets[:length]).all():
        message = "the targets are the inputs, not the tokens after them"
        sample.say("targets-not-shifted", message, 0, "target_tokens")
    else:
        at = int(wrong[0])
        message = f"the target is {targets[at]}, the next input {inputs[at + 1]}"
        sample.say("columns-disagree", message, at, "target_tokens")


def write(rows: Iterable[Row]) -> Iterator[str]:
    """One datum a line.

    Raises:
        SchemaError: A row has fewer than two tokens.
    """
    for row in rows:
        if len(row) < 2:  # noqa: PLR2004  (an input and a target)
            raise SchemaError(f"row {row.index} has {len(row)} tokens: a datum needs an input and a target")
        trained = row.loss_mask[1:]
        data = {"target_tokens": ("int64", row.token_ids[1:]), "mask": ("float32", trained.astype(np.float32))}
        for name in ("logprobs", "advantages"):
            values = getattr(row, name)
            if values is not None:
                data[name] = ("float32", np.where(trained == 1, values[1:], 0.0))
        inputs = {"chunks": [{"tokens": row.token_ids[:-1].tolist(), "type": "encoded_text"}]}
        yield json.dumps(
            {"loss_fn_inputs": {name: _tensor(*cell) for name, cell in data.items()}, "model_input": inputs}
        )


def _tensor(dtype: str, values: NDArray[Any]) -> dict[str, Any]:
    return {"data": values.tolist(), "dtype": dtype, "shape": [len(values)]}
