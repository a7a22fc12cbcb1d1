"""OpenRLHF: one dict a line. There is no mask: `action_ranges` are half-open ranges over `observation_tokens`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from tokentape.batch import Row
from tokentape.errors import SchemaError
from tokentape.readers.sample import Finding, Items, Piece, Sample, attempt, floats, ids, span_mask, turns
from tokentape.readers.source import Source, as_dict, as_list

__all__ = ["FILLER", "KEEPS", "NAME", "NEEDS_LOGPROBS", "detect", "read", "write"]

NAME = "openrlhf"
FILLER = 0.0
NEEDS_LOGPROBS = False
KEEPS = {"token_ids", "loss_mask", "logprobs", "reward"}


def detect(source: Source, first: Any) -> bool:
    """Whether the file is of this format."""
    return source.kind == "lines" and isinstance(first, dict) and "observation_tokens" in first


def read(source: Source) -> Items:
    """The sequences, in order."""
    for row, item in enumerate(source.lines()):
        yield item if isinstance(item, Finding) else attempt(row, _sample, item[1])


def _sample(row: int, item: Any) -> Sample:
    found = as_dict(item, "the line")
    tokens = ids(found.get("observation_tokens"), "observation_tokens")
    sample = Sample(row, {"token_ids": tokens}, (Piece(len(tokens)),))
    spans = [_span(item) for item in as_list(found.get("action_ranges"), "`action_ranges`")]
    _check(sample, spans, len(tokens))
    sample.columns["sampled_mask"] = span_mask(len(tokens), spans)
    if found.get("rollout_log_probs") is not None:
        sample.columns["logprobs"] = floats(found["rollout_log_probs"], "rollout_log_probs")
    if found.get("truncated") is True:
        sample.columns["turns"] = turns(sample.columns["sampled_mask"], "length")
    if isinstance(found.get("reward"), int | float):
        sample.columns["reward"] = float(found["reward"])
    return sample


def _span(item: Any) -> tuple[int, int]:
    match item:
        case [int(start), int(end)] | (int(start), int(end)):
            return start, end
        case _:
            raise SchemaError("`action_ranges` holds something else than pairs of integers")


def _check(sample: Sample, spans: list[tuple[int, int]], length: int) -> None:
    for start, end in spans:
        if not 0 <= start <= end <= length:
            at = length if end > length else start
            message = f"the range {start}..{end} is not inside the {length} tokens"
            sample.say("range-out-of-bounds", message, at, "action_ranges")
    for (_, end), (start, _) in pairwise(spans):
        if start < end:
            sample.say(
                "ranges-overlap", f"a range begins at {start}, before the last ends at {end}", start, "action_ranges"
            )


def write(rows: Iterable[Row]) -> Iterator[str]:
    """One dict a line."""
    for row in rows:
        spans = [[turn["start"], turn["end"]] for turn in turns(row.loss_mask)]
        logprobs = None if row.logprobs is None else np.where(row.loss_mask == 1, row.logprobs, 0.0).tolist()
        reason = row.turns[-1]["finish_reason"] if row.turns else ""
        yield json.dumps(
            {
                "prompt": "",
                "label": None,
                "reward": row.reward,
                "scores": row.reward,
                "observation_tokens": row.token_ids.tolist(),
                "action_ranges": spans,
                "rollout_log_probs": logprobs,
                "truncated": reason == "length",
                "extra_logs": {},
            }
        )
