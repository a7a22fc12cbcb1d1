"""ART: tokenized results as JSON lines, packed tensors as raw buffers, and its Parquet log of messages.

The filler of logprobs is NaN. Buffers are named `.pt` and have no header: sequences of one length, int64 but for the
mask (bool) and the floats. A group's prompt is stored once; `parent_ids` says which prompt a segment follows, and
`input_pos` goes back to the end of that prompt. The log holds no ids.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokentape.batch import Row
from tokentape.errors import SchemaError
from tokentape.readers.sample import Finding, Items, Piece, Place, Sample, attempt, floats, ids, mask
from tokentape.readers.source import Source, as_dict

__all__ = ["FILLER", "KEEPS", "NAME", "NEEDS_LOGPROBS", "detect", "read", "write"]

NAME = "art"
FILLER = float("nan")
NEEDS_LOGPROBS = False
KEEPS = {"group_id", "token_ids", "loss_mask", "logprobs", "advantages"}
BUFFERS: dict[str, str] = {
    "tokens": "<i8",
    "group_ids": "<i8",
    "parent_ids": "<i8",
    "input_pos": "<i8",
    "assistant_mask": "?",
    "logprobs": "<f4",
    "advantages": "<f4",
    "weights": "<f4",
}
WIDTHS = (512, 1024, 2048, 4096, 8192, 16384, 32768)


def detect(source: Source, first: Any) -> bool:
    """Whether the file or folder is of this format."""
    if source.kind == "folder":
        return (source.path / "tokens.pt").exists() and (source.path / "group_ids.pt").exists()
    return source.kind == "lines" and isinstance(first, dict) and "assistant_mask" in first


def read(source: Source) -> Items:
    """The results, or the segments of the packed sequences."""
    if source.kind == "folder":
        yield from _packed(source.path)
        return
    for row, item in enumerate(source.lines()):
        yield item if isinstance(item, Finding) else attempt(row, _result, item[1])


def _result(row: int, item: Any) -> Sample:
    found = as_dict(item, "the line")
    tokens = ids(found.get("token_ids"), "token_ids")
    sampled = mask(found.get("assistant_mask"), "assistant_mask")
    sample = Sample(row, {"token_ids": tokens, "sampled_mask": sampled}, (Piece(len(tokens)),))
    if found.get("logprobs") is not None:
        sample.columns["logprobs"] = floats(found["logprobs"], "logprobs")
    if isinstance(advantage := found.get("advantage"), int | float):
        sample.columns["advantages"] = np.where(sampled == 1, advantage, 0.0).astype(np.float32)
    if found.get("prompt_id") is not None:
        sample.columns["group_id"] = f"{NAME}-{found['prompt_id']}"
    if found.get("input_pos") is not None:
        _check_positions(sample, ids(found["input_pos"], "input_pos"), len(tokens))
    return sample


def _check_positions(sample: Sample, positions: NDArray[np.int32], length: int) -> None:
    if len(positions) != length:
        message = f"input_pos has {len(positions)} values for {length} tokens"
        sample.say("column-length-mismatch", message, min(len(positions), length), "input_pos")
        return
    wrong = np.flatnonzero(positions != np.arange(length))
    if len(wrong):
        at = int(wrong[0])
        sample.say("position-ids-restart", f"the position is {positions[at]}, not {at}", at, "input_pos")


def _packed(folder: Path) -> Items:
    count = _buffer_size(folder, "tokens")
    columns: dict[str, NDArray[Any]] = {}
    for name, dtype in BUFFERS.items():
        size, wanted = _buffer_size(folder, name, dtype), count * np.dtype(dtype).itemsize
        if size != count or (folder / f"{name}.pt").stat().st_size != wanted:
            message = f"{name}.pt has {(folder / f'{name}.pt').stat().st_size} bytes, {wanted} belong to {count} tokens"
            yield Finding("truncated-file", message, Place(0, field=f"{name}.pt"))
        else:
            columns[name] = np.fromfile(folder / f"{name}.pt", dtype)
    if not {"tokens", "group_ids", "parent_ids", "assistant_mask", "input_pos"} <= columns.keys():
        return
    width = _width(columns["input_pos"], columns["parent_ids"], count)
    for row in range(count // width):
        yield from _segments(row, {name: values[row * width :][:width] for name, values in columns.items()})


def _buffer_size(folder: Path, name: str, dtype: str = "<i8") -> int:
    path = folder / f"{name}.pt"
    if not path.exists():
        raise SchemaError(f"{folder} lacks {name}.pt")
    return path.stat().st_size // np.dtype(dtype).itemsize


def _width(positions: NDArray[Any], parents: NDArray[Any], count: int) -> int:
    """The length of a sequence, which no file states: the smallest at whose multiples sequences begin."""
    begins = (positions == 0) & (parents != -1)
    fits = [width for width in WIDTHS if count % width == 0 and begins[::width].all()]
    return fits[0] if fits else count


def _segments(row: int, columns: dict[str, NDArray[Any]]) -> Items:
    groups, parents = columns["group_ids"], columns["parent_ids"]
    changes = np.flatnonzero((np.diff(groups) != 0) | (np.diff(parents) != 0)) + 1
    edges = [0, *changes.tolist(), len(groups)]
    prompts: dict[int, tuple[int, int]] = {}
    for start, end in pairwise(edges):
        group, parent = int(groups[start]), int(parents[start])
        if parent == -1:
            trained = np.flatnonzero(columns["assistant_mask"][start:end])
            if len(trained):
                at = start + int(trained[0])
                yield Finding(
                    "pad-token-trained", "padding is marked as trained", Place(row, at, field="assistant_mask")
                )
        elif parent == group:
            prompts[group] = (start, end)
        elif parent not in prompts:
            message = f"segment {group} follows the prompt {parent}, which is not before it"
            yield Finding("broken-parent", message, Place(row, start, field="parent_ids"))
        else:
            yield _segment(row, columns, prompts[parent], (start, end))


def _segment(row: int, columns: dict[str, NDArray[Any]], prompt: tuple[int, int], span: tuple[int, int]) -> Sample:
    places = np.concatenate([np.arange(*prompt), np.arange(*span)])
    found: dict[str, Any] = {
        "token_ids": ids(columns["tokens"][places], "tokens"),
        "sampled_mask": columns["assistant_mask"][places].astype(np.uint8),
        "group_id": f"{NAME}-{row}-{columns['parent_ids'][span[0]]}",
    }
    for name in ("logprobs", "advantages"):
        if name in columns:
            found[name] = columns[name][places]
    pieces = tuple(Piece(end - start, "tokens", None, start) for start, end in (prompt, span))
    sample = Sample(row, found, pieces)
    positions = columns["input_pos"][places]
    wrong = np.flatnonzero(positions != np.arange(len(places)))
    if len(wrong):
        at = int(places[wrong[0]])
        kind = "position-ids-restart" if positions[wrong[0]] < wrong[0] else "position-ids-not-restarted"
        sample.say(kind, f"the position is {positions[wrong[0]]}, not {wrong[0]}", at, "input_pos")
    return sample


def write(rows: Iterable[Row]) -> Iterator[str]:
    """One tokenized result a line; its advantage is the one value of the row.

    Raises:
        SchemaError: The trained tokens of a row have several advantages.
    """
    for row in rows:
        trained = row.loss_mask == 1
        values: set[float] = set() if row.advantages is None else set(row.advantages[trained].tolist())
        if len(values) > 1:
            raise SchemaError(f"row {row.index} has {len(values)} advantages, ART keeps one a row")
        logprobs = np.full(len(row), np.nan) if row.logprobs is None else np.where(trained, row.logprobs, np.nan)
        yield json.dumps(
            {
                "advantage": values.pop() if values else None,
                "token_ids": row.token_ids.tolist(),
                "input_pos": list(range(len(row))),
                "assistant_mask": row.loss_mask.tolist(),
                "logprobs": None if row.logprobs is None else logprobs.tolist(),
                "weight": 1.0,
                "prompt_id": row.group_id,
                "prompt_length": int(np.argmax(trained)),
            }
        )
