"""A policy that answers from a file of recorded completions.

*Invariant*: an answer is a recorded completion of exactly the ids that were asked; nothing is made up, and no unseeded
record answers twice.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokentape.errors import PolicyError
from tokentape.policies.recording import Record, read_records
from tokentape.types import Completion, Sampling, TokenIds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Replay"]


@dataclass(slots=True)
class _Answers:
    """The completions of one prompt in the order of the file; those with a seed are found by it as well."""

    prompt: npt.NDArray[np.int32]
    in_order: list[Completion] = field(default_factory=list[Completion])
    by_seed: dict[int, Completion] = field(default_factory=dict[int, Completion])
    given: int = 0

    def add(self, record: Record) -> None:
        self.in_order.append(record.completion)
        if record.sampling.seed is not None:
            self.by_seed.setdefault(record.sampling.seed, record.completion)

    def next(self, seed: int | None) -> Completion:
        if seed is not None and seed in self.by_seed:
            return self.by_seed[seed]
        if self.given == len(self.in_order):
            msg = (
                f"this prompt of {len(self.prompt)} tokens was recorded {len(self.in_order)} times and is now asked "
                "once more: record more completions, or ask with the seeds that were recorded"
            )
            raise PolicyError(msg)
        self.given += 1
        return self.in_order[self.given - 1]


class Replay:
    """Answers each prompt with the completions recorded for it, in their order; with a recorded seed, with that one.

    Args:
        records: A JSONL file that `Recording` wrote, or the records themselves.

    Raises:
        PolicyError: a line of the file is no record.
        FileNotFoundError: there is no such file.

    Example:
        >>> import asyncio
        >>> from tokentape.policies import Record
        >>> policy = Replay([Record(np.array([1, 5], np.int32), Completion([2], [-0.5]))])
        >>> asyncio.run(policy.complete([1, 5])).token_ids.tolist()
        [2]
    """

    def __init__(self, records: str | Path | Iterable[Record]) -> None:
        """Read all records and sort them by prompt."""
        self.name = str(records) if isinstance(records, str | Path) else "the records"
        self._answers: dict[bytes, _Answers] = {}
        for record in read_records(records) if isinstance(records, str | Path) else records:
            prompt = record.prompt_token_ids
            self._answers.setdefault(prompt.tobytes(), _Answers(prompt)).add(record)

    async def complete(
        self,
        token_ids: TokenIds,
        *,
        sampling: Sampling = Sampling(),
        stop_token_ids: Sequence[int] = (),  # noqa: ARG002 -- the record has ended where it ended
    ) -> Completion:
        """Give the next recorded completion of these ids.

        Raises:
            PolicyError: no such prompt was recorded (the message names the first token that differs from the nearest
                one), or all its completions have been given.
        """
        await asyncio.sleep(0)  # other episodes take their turn here, as they do while a server samples
        prompt = np.asarray(token_ids, dtype=np.int32)
        answers = self._answers.get(prompt.tobytes())
        if answers is None:
            raise PolicyError(self._unknown(prompt))
        return answers.next(sampling.seed)

    def _unknown(self, prompt: npt.NDArray[np.int32]) -> str:
        asked = f"no completion of this prompt of {len(prompt)} tokens is recorded in {self.name}"
        if not self._answers:
            return f"{asked}: it holds no records at all"
        nearest = max((a.prompt for a in self._answers.values()), key=lambda known: _common_prefix(known, prompt))
        index = _common_prefix(nearest, prompt)
        return (
            f"{asked}: the nearest one has {len(nearest)} tokens and differs first at token {index}, "
            f"asked {_at(prompt, index)}, recorded {_at(nearest, index)}; "
            "record again if template, tokenizer or items changed"
        )


def _common_prefix(a: npt.NDArray[np.int32], b: npt.NDArray[np.int32]) -> int:
    shorter = min(len(a), len(b))
    differs = np.flatnonzero(a[:shorter] != b[:shorter])
    return int(differs[0]) if len(differs) else shorter


def _at(ids: npt.NDArray[np.int32], index: int) -> str:
    return str(ids[index]) if index < len(ids) else "the end"
