"""Files of other frameworks to rows of ours, and back: what a format cannot keep is named.

*Invariant*: a sequence that has a fault is not converted: nothing is padded, cut or filled in.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tokentape.batch import Batch, Row
from tokentape.batch.files import atomic
from tokentape.errors import ArgumentError, SchemaError
from tokentape.readers import FORMATS, Finding, Format, Sample, detect, message_log
from tokentape.readers.sample import turns

__all__ = ["Lost", "read_foreign", "write_foreign"]

ROWS = 512
"""Rows that become a batch together."""

#: What a column holds where it says nothing.
EMPTY: dict[str, tuple[Any, ...]] = {"metrics": ({},), "messages": ([],), "tools": ([], None), "provenance": ({},)}


@dataclass(frozen=True, slots=True)
class Lost:
    """What a conversion leaves out: columns of ours that hold something, and rows of them that do."""

    format: str
    columns: dict[str, int]

    def __str__(self) -> str:
        if not self.columns:
            return f"{self.format} keeps everything"
        return f"{self.format} has no place for " + ", ".join(f"{name} ({n} rows)" for name, n in self.columns.items())


def read_foreign(path: str | Path, *, format: str | None = None) -> Iterator[Batch]:  # noqa: A002
    """The sequences of a file of another framework, as batches of ours.

    Raises:
        SchemaError: The file is of no known format, holds messages without ids, or a sequence is faulty; the message
            names it.

    Example:
        >>> import json, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.jsonl"
        >>> group = {"tokens": [[5, 6]], "masks": [[-100, 6]], "scores": [1.0], "inference_logprobs": [[1.0, -0.5]]}
        >>> _ = path.write_text(json.dumps(group))
        >>> next(read_foreign(path)).row(0).logprobs.tolist()
        [0.0, -0.5]
    """
    place = Path(path)
    log = message_log(place)
    if log is not None:
        raise SchemaError(f"{path} is {log[0]}'s log of messages: it holds no ids, and none can be recovered from it")
    module, source = detect(place, format)
    rows = (_row(module, number, item) for number, item in enumerate(module.read(source)))
    while part := list(itertools.islice(rows, ROWS)):
        yield Batch.from_rows(part)


def _row(module: Format, number: int, item: Sample | Finding) -> dict[str, Any]:
    findings = [item] if isinstance(item, Finding) else item.findings
    if findings or isinstance(item, Finding):
        found = findings[0]
        raise SchemaError(f"row {found.place.row}: {found.kind}: {found.message}; `tokentape lint` shows all faults")
    row = dict(item.columns)
    sampled = row["sampled_mask"]
    for name in ("sampled_mask", "logprobs", "advantages"):
        values = row.get(name)
        if values is not None and len(values) != len(row["token_ids"]):
            raise SchemaError(f"row {item.row}: `{name}` has {len(values)} values for {len(row['token_ids'])} tokens")
    if row.get("logprobs") is not None:
        _refuse_filler(module, item.row, sampled, row["logprobs"])
        row["logprobs"] = np.where(sampled == 1, row["logprobs"], np.float32(0))
    name = f"{module.NAME}-{number}"
    defaults = {"group_id": name, "rollout_id": name, "trajectory_id": name, "turns": turns(sampled)}
    return defaults | {key: value for key, value in row.items() if not (isinstance(value, str) and not value)}


def _refuse_filler(module: Format, row: int, sampled: Any, logprobs: Any) -> None:
    """A filler other than zero on a sampled token says that there is no logprob."""
    filler = np.isnan(logprobs) if np.isnan(module.FILLER) else logprobs == module.FILLER
    wrong = (sampled == 1) & filler
    if module.FILLER != 0.0 and wrong.any():
        at = int(np.argmax(wrong))
        raise SchemaError(f"row {row}: sampled token {at} has no logprob; `tokentape lint` shows all faults")


def write_foreign(batches: Iterable[Batch], path: str | Path, format: str) -> Lost:  # noqa: A002
    """Writes rows of ours as a file of another framework.

    Returns:
        What the format has no place for.

    Raises:
        ArgumentError: There is no such format.
        SchemaError: A row lacks what the format needs; nothing is written.
    """
    if format not in FORMATS:
        raise ArgumentError(f"format={format!r} is none of {', '.join(map(repr, FORMATS))}")
    module, target = FORMATS[format], Path(path)
    lost: dict[str, int] = {}
    with atomic(target) as temporary, temporary.open("wb") as file:
        for item in module.write(_counted(batches, module, lost)):
            file.write(item if isinstance(item, bytes) else item.encode() + b"\n")
    return Lost(format, lost)


def _counted(batches: Iterable[Batch], module: Format, lost: dict[str, int]) -> Iterator[Row]:
    """The rows, while what they hold beside what the format keeps is counted."""
    for row in itertools.chain.from_iterable(batch.rows() for batch in batches):
        columns = row.to_dict()
        for name in columns.keys() - module.KEEPS:
            if _says(row, name):
                lost[name] = lost.get(name, 0) + 1
        yield row


def _says(row: Row, name: str) -> bool:
    value = getattr(row, name)
    if name == "sampled_mask":
        return bool((value != row.loss_mask).any())
    if name == "message_index":
        return bool((value >= 0).any())
    if name == "turns":
        return any(turn["message"] >= 0 or turn["reward"] is not None or turn["finish_reason"] for turn in value)
    if name in EMPTY:
        return value not in EMPTY[name]
    return value is not None and not (isinstance(value, str | list) and not value)
