"""SkyRL: a `GeneratorOutput` as JSON: columns over sequences, or over the steps of sequences.

With `step_wise_trajectories` a row is a step, whose prompt is rendered from messages again. Where the ids of a step do
not begin with those of the step before, the history drifted. Once merged, a file holds a drifted trajectory as several
rows on purpose: it is told apart by the rows that were merged, which hold several turns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tokentape.batch import Row
from tokentape.readers import response
from tokentape.readers.sample import Finding, Items, Place, Sample, floats, turns
from tokentape.readers.source import Source, as_dict, as_list

__all__ = ["FILLER", "KEEPS", "NAME", "NEEDS_LOGPROBS", "detect", "read", "write"]

NAME = "skyrl"
FILLER = 0.0
NEEDS_LOGPROBS = False
KEEPS = {"group_id", "rollout_id", "token_ids", "loss_mask", "logprobs", "reward"}
NAMES = ("prompt_token_ids", "response_ids")
PER_ROW = ("prompt_token_ids", "response_ids", "loss_masks", "rollout_logprobs", "stop_reasons", "rewards")


def detect(source: Source, first: Any) -> bool:
    """Whether the file is of this format."""
    return source.kind == "json" and isinstance(first, dict) and {"prompt_token_ids", "response_ids"} <= first.keys()


def read(source: Source) -> Items:
    """The rows, in order."""
    output = as_dict(source.value(), "the file")
    count = len(as_list(output.get("response_ids"), "`response_ids`"))
    for name in PER_ROW:
        if output.get(name) is not None and len(as_list(output[name], f"`{name}`")) != count:
            message = f"`{name}` has {len(output[name])} rows, `response_ids` has {count}"
            yield Finding("column-length-mismatch", message, Place(field=name))
            return
    samples = [
        _sample(row, {name: (output.get(name) or [None] * count)[row] for name in PER_ROW}) for row in range(count)
    ]
    names = output.get("trajectory_ids")
    known = as_list(names, "`trajectory_ids`") if names is not None else []
    if len(known) == count:
        for sample, name in zip(samples, known, strict=True):
            sample.columns |= _identity(name)
        _check_history(samples, [json.dumps(name) for name in known])
    yield from samples


def _sample(row: int, cells: dict[str, Any]) -> Sample:
    reason = cells["stop_reasons"]
    sample = response.build(
        row,
        cells["prompt_token_ids"],
        cells["response_ids"],
        response_mask=cells["loss_masks"],
        logprobs=cells["rollout_logprobs"],
        names=NAMES,
        finish_reason=reason if isinstance(reason, str) else "",
    )
    rewards = cells["rewards"]
    if isinstance(rewards, int | float):
        sample.columns["reward"] = float(rewards)
    elif rewards is not None:
        sample.columns["reward"] = float(floats(rewards, "rewards").sum())
    return sample


def _identity(name: Any) -> dict[str, str]:
    if not isinstance(name, dict):
        return {"rollout_id": str(name)}
    known = as_dict(name, "an id")
    group = str(known.get("instance_id", ""))
    return {"group_id": group, "rollout_id": f"{group}/{known.get('repetition_id', '')}"}


def _check_history(samples: list[Sample], names: list[str]) -> None:
    pairs = [(a, b) for a, b, one, two in zip(samples, samples[1:], names, names[1:], strict=False) if one == two]
    lengths = [_shared(a, b) for a, b in pairs]
    extends = [length == len(a.columns["token_ids"]) for (a, _), length in zip(pairs, lengths, strict=True)]
    merged = any(len(turns(sample.columns["sampled_mask"])) > 1 for sample in samples)
    if merged and not any(extends):
        return
    for (_, sample), length, extended in zip(pairs, lengths, extends, strict=True):
        if not extended:
            message = "the prompt leaves the ids of the step before: its history was rendered and encoded again"
            sample.say("history-drift", message, length, NAMES[0])


def _shared(before: Sample, after: Sample) -> int:
    """How many ids of a row the prompt of the next begins with."""
    one, two = before.columns["token_ids"], after.columns["token_ids"][: after.pieces[0].length]
    length = min(len(one), len(two))
    differs = np.flatnonzero(one[:length] != two[:length])
    return int(differs[0]) if len(differs) else length


def write(rows: Iterable[Row]) -> Iterator[str]:
    """The one dict of all rows.

    Raises:
        SchemaError: Nothing of a row is trained.
    """
    output: dict[str, Any] = {name: [] for name in (*PER_ROW, "trajectory_ids")}
    for row in rows:
        prompt, answer, mask, logprobs = response.split(row)
        reason = row.turns[-1]["finish_reason"] if row.turns else "stop"
        cells = (prompt, answer, mask, logprobs, reason, row.reward)
        for name, value in zip(PER_ROW, cells, strict=True):
            output[name].append(value)
        instance, _, repetition = row.rollout_id.rpartition("/")
        output["trajectory_ids"].append({"instance_id": instance or row.group_id, "repetition_id": repetition})
    if any(values is None for values in output["rollout_logprobs"]):
        output["rollout_logprobs"] = None
    yield json.dumps(output)
