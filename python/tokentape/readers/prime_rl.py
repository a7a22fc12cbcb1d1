"""prime-rl: training samples and micro batches, msgpack arrays whose fields are known by their place.

A sample is 0 token_ids, 1 mask, 2 logprobs, 3 temperatures, 4 env_name, ..., 12 advantages. A micro batch is
0 input_ids, 1 loss_mask, 2 advantages, 3 inference_logprobs, 4 position_ids, 5 sequence_lengths, 6 temperatures,
7 env_names, 8 seq_lens: segments side by side, and padding at the end, which belongs to the last segment and has no
environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokentape.batch import Row
from tokentape.errors import SchemaError
from tokentape.readers import msgpack
from tokentape.readers.sample import Finding, Items, Piece, Place, Sample, attempt, attempts, floats, ids, mask
from tokentape.readers.source import Source, as_list

__all__ = ["FILLER", "KEEPS", "NAME", "NEEDS_LOGPROBS", "detect", "read", "write"]

NAME = "prime-rl"
FILLER = 0.0
NEEDS_LOGPROBS = False
KEEPS = {"token_ids", "loss_mask", "logprobs", "advantages", "env"}
SAMPLE = {"sampled_mask": 1, "logprobs": 2, "advantages": 12}
MICRO = {"sampled_mask": 1, "advantages": 2, "logprobs": 3}
ENV_NAME, POSITIONS, LENGTHS, ENV_NAMES, SEQ_LENS = 4, 4, 5, 7, 8


def detect(source: Source, first: Any) -> bool:
    """Whether the file is of this format."""
    return source.kind == "msgpack" and isinstance(first, list) and len(as_list(first, "a record")) > ENV_NAME


def read(source: Source) -> Items:
    """The samples, or the segments of the micro batches."""
    for row, item in enumerate(source.items()):
        fields = as_list(item, f"record {row}")
        if len(fields) <= ENV_NAME:
            raise SchemaError(f"record {row} has {len(fields)} fields: it is no training sample")
        if isinstance(fields[ENV_NAME], str):
            yield attempt(row, _sample, fields)
        else:
            yield from attempts(row, _micro_batch, fields)


def _cell(fields: list[Any], place: int) -> Any:
    return fields[place] if place < len(fields) else None


def _columns(fields: list[Any], places: dict[str, int]) -> dict[str, Any]:
    readers = {"sampled_mask": mask, "logprobs": floats, "advantages": floats}
    found = {name: _cell(fields, place) for name, place in places.items()}
    return {name: readers[name](value, name) for name, value in found.items() if value is not None}


def _sample(row: int, fields: list[Any]) -> Sample:
    tokens = ids(fields[0], "token_ids")
    columns = {"token_ids": tokens, "env": fields[ENV_NAME], **_columns(fields, SAMPLE)}
    return Sample(row, columns, (Piece(len(tokens), "token_ids"),))


def _micro_batch(row: int, fields: list[Any]) -> Items:
    tokens = ids(fields[0], "input_ids")
    columns = _columns(fields, MICRO)
    for name, values in columns.items():
        if len(values) != len(tokens):
            kind = {"sampled_mask": "mask-length-mismatch", "logprobs": "logprobs-length-mismatch"}
            place = Place(row, min(len(values), len(tokens)), field=name)
            message = f"`{name}` has {len(values)} values for {len(tokens)} tokens"
            yield Finding(kind.get(name, "column-length-mismatch"), message, place)
            return
    names = _cell(fields, ENV_NAMES)
    real = _real_length(names, len(tokens))
    yield from _check_padding(row, columns["sampled_mask"], real)
    edges, faults = _segments(row, fields, len(tokens))
    yield from faults
    yield from _check_positions(row, fields, edges, real, len(tokens))
    for start, end in pairwise(edges):
        stop = min(end, real)
        part = {name: values[start:stop] for name, values in columns.items()}
        env = str(as_list(names, "env_names")[start]) if isinstance(names, list) else ""
        piece = Piece(stop - start, "input_ids", None, start)
        if stop > start:
            yield Sample(row, {"token_ids": tokens[start:stop], "env": env, **part}, (piece,))


def _real_length(names: Any, length: int) -> int:
    """The tokens before the padding, which has no environment."""
    known = as_list(names, "env_names") if names is not None else []
    if len(known) != length:
        return length
    return max((index + 1 for index, name in enumerate(known) if name), default=length)


def _check_padding(row: int, sampled: NDArray[np.uint8], real: int) -> Iterator[Finding]:
    trained = np.flatnonzero(sampled[real:])
    if len(trained):
        at = real + int(trained[0])
        place = Place(row, at, real + int(trained[-1]) + 1, "loss_mask")
        yield Finding("pad-token-trained", "padding is marked as trained", place)


def _segments(row: int, fields: list[Any], length: int) -> tuple[list[int], list[Finding]]:
    """The edges of the segments, from the lengths that sum to the batch."""
    faults: list[Finding] = []
    edges: list[int] | None = None
    for place, name in ((LENGTHS, "sequence_lengths"), (SEQ_LENS, "seq_lens")):
        found = _cell(fields, place)
        if found is None:
            continue
        lengths = ids(found, name)
        if lengths.sum() == length and (lengths > 0).all():
            edges = edges or [0, *np.cumsum(lengths).tolist()]
        else:
            message = f"{name} is {lengths.tolist()}, which sums to {lengths.sum()} and not to {length}"
            faults.append(Finding("segment-lengths-wrong", message, Place(row, field=name)))
    return edges or [0, length], faults


def _check_positions(row: int, fields: list[Any], edges: list[int], real: int, length: int) -> Iterator[Finding]:
    """Positions count from 0 in each segment, and in the padding go on or count again."""
    positions = ids(fields[POSITIONS], "position_ids")
    if len(positions) != length:
        message = f"position_ids has {len(positions)} values for {length} tokens"
        yield Finding("column-length-mismatch", message, Place(row, min(len(positions), length), field="position_ids"))
        return
    starts = {*edges[:-1]}
    for at in range(real):
        expected = 0 if at in starts else int(positions[at - 1]) + 1
        if positions[at] != expected:
            kind = "position-ids-not-restarted" if at in starts else "position-ids-restart"
            message = f"the position is {positions[at]}, not {expected}"
            yield Finding(kind, message, Place(row, at, at + 1, "position_ids"))
            return


def write(rows: Iterable[Row]) -> Iterator[bytes]:
    """The one list of training samples."""
    samples = [
        [
            row.token_ids.tolist(),
            row.loss_mask.astype(bool).tolist(),
            np.where(row.loss_mask == 1, row.logprobs, 0.0).tolist(),
            [1.0] * len(row),
            row.env,
            *[None] * 7,
            None if row.advantages is None else np.where(row.loss_mask == 1, row.advantages, 0.0).tolist(),
        ]
        for row in _with_logprobs(rows)
    ]
    yield msgpack.dumps(samples)


def _with_logprobs(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        if row.logprobs is None:
            raise SchemaError(f"row {row.index} has no logprobs, which prime-rl needs: nothing is filled in")
        yield row
