"""The records of other frameworks' files as three lists a sequence, so that one planter serves all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

IGNORED = -100


@dataclass
class Lists:
    """The lists of one sequence, which may be changed; `mask` speaks about the last `len(mask)` of `ids`."""

    ids: list[int]
    mask: list[Any]
    logprobs: list[Any]
    filler: float
    labels: bool = False
    grow: Callable[[], None] = lambda: None

    def trained(self) -> list[bool]:
        return [value != IGNORED if self.labels else value == 1 for value in self.mask]

    def set(self, at: int, trained: bool) -> None:
        on = self.ids[at + self.offset] if self.labels else 1
        self.mask[at] = on if trained else IGNORED if self.labels else 0

    @property
    def offset(self) -> int:
        return len(self.ids) - len(self.mask)

    def runs(self) -> list[tuple[int, int]]:
        found, start = [], None
        for at, trained in enumerate([*self.trained(), False]):
            if trained and start is None:
                start = at
            if not trained and start is not None:
                found.append((start, at))
                start = None
        return found

    def id(self, at: int) -> int:
        return self.ids[at + self.offset]


def sequences(framework: str, path: Path) -> tuple[Any, list[Lists]]:
    """The records of a file, and the lists inside them."""
    text = path.read_text()
    records = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)
    return records, list(READERS[framework](records))


def dump(records: Any, path: Path) -> None:
    lines = records if path.suffix == ".jsonl" else [records]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def atropos(records):
    for group in records["batch"] if isinstance(records, dict) else records:
        for one in zip(group["tokens"], group["masks"], group["inference_logprobs"], strict=True):
            yield Lists(*one, filler=1.0, labels=True)


def trl(records):
    masks = records.setdefault("env_mask", [[1] * len(ids) for ids in records["completion_ids"]])
    for one in zip(records["completion_ids"], masks, records["logprobs"], strict=True):
        yield Lists(*one, filler=0.0)


def verl(records):
    for one in records:
        yield Lists(one["response_ids"], one["response_mask"], one["response_logprobs"], filler=0.0)


def skyrl(records):
    for one in zip(records["response_ids"], records["loss_masks"], records["rollout_logprobs"], strict=True):
        yield Lists(*one, filler=0.0)


def art(records):
    for one in records:
        grow = lambda one=one: one["input_pos"].append(len(one["input_pos"]))  # noqa: E731
        yield Lists(one["token_ids"], one["assistant_mask"], one["logprobs"], filler=float("nan"), grow=grow)


def slime(records):
    for one in records["samples"]:
        grow = lambda one=one: one.update(response_length=one["response_length"] + 1)  # noqa: E731
        yield Lists(one["tokens"], one["loss_mask"], one["rollout_log_probs"], filler=0.0, grow=grow)


READERS = {"atropos": atropos, "trl": trl, "verl": verl, "skyrl": skyrl, "art": art, "slime": slime}
