"""Atropos: `ScoredDataGroup`s as JSON lines, and as its API serves them.

A group is columns over sequences. A mask is -100 or the token's own id, unshifted; a logprob is 1.0 where the mask is
-100. Unused columns are null or empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tokentape.batch import Row
from tokentape.errors import SchemaError
from tokentape.readers.sample import Finding, Items, Piece, Sample, attempt, floats, ids
from tokentape.readers.source import Source, as_dict, as_list

__all__ = ["FILLER", "KEEPS", "NAME", "NEEDS_LOGPROBS", "detect", "read", "write"]

NAME = "atropos"
FILLER = 1.0
NEEDS_LOGPROBS = True
KEEPS = {"group_id", "token_ids", "loss_mask", "logprobs", "advantages", "reward", "messages"}
IGNORED = -100
PER_SEQUENCE = ("masks", "scores", "inference_logprobs", "advantages", "ref_logprobs", "messages")


def detect(source: Source, first: Any) -> bool:
    """Whether the file is of this format."""
    if source.kind == "json" and isinstance(first, dict) and "batch" in first:
        return True
    return source.kind in {"lines", "json"} and isinstance(first, dict) and {"tokens", "masks"} <= first.keys()


def read(source: Source) -> Items:
    """The sequences of all groups, in file order."""
    row = 0
    for number, item in enumerate(_groups(source)):
        if isinstance(item, Finding):
            yield item
            continue
        group = as_dict(item, f"group {number}")
        tokens = as_list(group.get("tokens"), f"`tokens` of group {number}")
        for index in range(len(tokens)):
            yield attempt(row, _sample, number, index, group, len(tokens))
            row += 1


def _groups(source: Source) -> Iterator[Any]:
    if source.kind == "lines":
        yield from (item if isinstance(item, Finding) else item[1] for item in source.lines())
        return
    value = source.value()
    if isinstance(value, dict) and "batch" in value:
        value = value["batch"] or []  # pyright: ignore[reportUnknownVariableType]
    yield from (value if isinstance(value, list) else [value])  # pyright: ignore[reportUnknownVariableType]


def _sample(row: int, number: int, index: int, group: dict[str, Any], count: int) -> Sample:
    tokens = ids(group["tokens"][index], "tokens")
    sample = Sample(row, {"token_ids": tokens}, (Piece(len(tokens)),), number, index)
    columns = sample.columns
    columns["group_id"] = f"{NAME}-{number}"
    cells = {name: _cell(sample, group, name, index, count) for name in PER_SEQUENCE}
    labels = ids(cells["masks"], "masks") if cells["masks"] is not None else np.full(len(tokens), IGNORED)
    _check_labels(sample, labels, tokens)
    columns["sampled_mask"] = (labels != IGNORED).astype(np.uint8)
    for name, column in (("inference_logprobs", "logprobs"), ("advantages", "advantages")):
        if cells[name] is not None:
            columns[column] = floats(cells[name], name)
    if isinstance(cells["scores"], int | float):
        columns["reward"] = float(cells["scores"])
    if cells["messages"] is not None:
        columns["messages"] = json.dumps(cells["messages"])
    return sample


def _cell(sample: Sample, group: dict[str, Any], name: str, index: int, count: int) -> Any:
    if not group.get(name):
        return None
    column = as_list(group[name], f"`{name}`")
    if len(column) != count:
        if index == 0:
            sample.say("column-length-mismatch", f"`{name}` is not one value for each of {count} sequences", None, name)
        return column[index] if index < len(column) else None
    return column[index]


def _check_labels(sample: Sample, labels: Any, tokens: Any) -> None:
    length = min(len(labels), len(tokens))
    wrong = (labels[:length] != IGNORED) & (labels[:length] != tokens[:length])
    if wrong.any():
        at = int(np.argmax(wrong))
        message = f"the label is {labels[at]}, neither {IGNORED} nor the token {tokens[at]}"
        sample.say("label-differs-from-token", message, at, "masks")


def write(rows: Iterable[Row]) -> Iterator[str]:
    """One line a group, in the order of the rows; the rows of a group stand together.

    Raises:
        SchemaError: A row has no reward.
    """
    group: list[Row] = []
    for row in rows:
        if group and group[0].group_id != row.group_id:
            yield json.dumps(_group(group))
            group = []
        group.append(row)
    if group:
        yield json.dumps(_group(group))


def _group(rows: list[Row]) -> dict[str, Any]:
    trained = [row.loss_mask.astype(bool) for row in rows]
    pairs = list(zip(rows, trained, strict=True))
    if any(row.reward is None for row in rows):
        raise SchemaError(f"group {rows[0].group_id!r} has rows without a reward, which Atropos needs as scores")
    whole = all(row.logprobs is not None for row in rows)
    credited = all(row.advantages is not None for row in rows)
    return {
        "tokens": [row.token_ids.tolist() for row in rows],
        "masks": [np.where(mask, row.token_ids, IGNORED).tolist() for row, mask in pairs],
        "scores": [row.reward for row in rows],
        "inference_logprobs": [np.where(mask, row.logprobs, FILLER).tolist() for row, mask in pairs] if whole else None,
        "advantages": [np.where(mask, row.advantages, 0.0).tolist() for row, mask in pairs] if credited else None,
        "messages": [row.messages for row in rows],
        "ref_logprobs": None,
        "overrides": None,
        "group_overrides": {},
    }
