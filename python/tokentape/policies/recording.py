"""A policy that stands before another one and keeps every completion exactly as it was given.

*Invariant*: what `complete` returns is the very object that the inner policy returned, and it is in `records` before
it is returned.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
import numpy.typing as npt

from tokentape.errors import PolicyError
from tokentape.types import Completion, Policy, Sampling, TokenIds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Record", "Recording", "read_records", "write_records"]


@dataclass(frozen=True, slots=True)
class Record:
    """One request and its completion.

    Attributes:
        prompt_token_ids: The prompt, int32 of shape (n,).
        completion: What the policy returned.
        sampling: How it was asked to sample.
        stop_token_ids: The stop ids that were asked for.
    """

    prompt_token_ids: npt.NDArray[np.int32]
    completion: Completion
    sampling: Sampling = Sampling()
    stop_token_ids: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The record as a mapping of JSON values: one line of a replay file."""
        return {
            "prompt_token_ids": self.prompt_token_ids.tolist(),
            "sampling": self.sampling.to_json(),
            "stop_token_ids": list(self.stop_token_ids),
            "completion": self.completion.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        """The record that `to_json` made; `sampling` and `stop_token_ids` may be absent."""
        return cls(
            np.asarray(data["prompt_token_ids"], dtype=np.int32),
            Completion(**data["completion"]),
            Sampling(**data.get("sampling", {})),
            tuple(data.get("stop_token_ids", ())),
        )


class Recording:
    """Wraps a policy and keeps every reply: for tests, and to make files that `Replay` reads.

    Args:
        policy: The policy that samples.
        path: A JSONL file that each record is appended to as soon as it exists; None keeps them in memory only.

    Example:
        >>> import asyncio
        >>> class Constant:
        ...     async def complete(self, token_ids, *, sampling=Sampling(), stop_token_ids=()):
        ...         return Completion([2], [-0.5])
        >>> recording = Recording(Constant())
        >>> reply = asyncio.run(recording.complete([1, 5]))
        >>> recording.records[0].completion is reply
        True
    """

    def __init__(self, policy: Policy, path: str | Path | None = None) -> None:
        """Begin to record; nothing is opened before the first completion."""
        self.policy = policy
        self.records: list[Record] = []
        self._path = None if path is None else Path(path)
        self._file: TextIO | None = None

    async def complete(
        self, token_ids: TokenIds, *, sampling: Sampling = Sampling(), stop_token_ids: Sequence[int] = ()
    ) -> Completion:
        """Ask the inner policy and keep its answer; its errors pass through and leave no record."""
        prompt = np.array(token_ids, dtype=np.int32)
        completion = await self.policy.complete(token_ids, sampling=sampling, stop_token_ids=stop_token_ids)
        record = Record(prompt, completion, sampling, tuple(int(token) for token in stop_token_ids))
        self.records.append(record)
        self._append(record)
        return completion

    def save(self, path: str | Path) -> None:
        """Write all records so far as a replay file."""
        write_records(path, self.records)

    def close(self) -> None:
        """Close the file, if there is one; recording may go on and opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, record: Record) -> None:
        if self._path is None:
            return
        if self._file is None:
            self._file = self._path.open("a", encoding="utf-8")
        self._file.write(json.dumps(record.to_json()) + "\n")
        self._file.flush()


def write_records(path: str | Path, records: Iterable[Record]) -> None:
    """Write records as JSONL, one a line."""
    text = "".join(json.dumps(record.to_json()) + "\n" for record in records)
    Path(path).write_text(text, encoding="utf-8")


def read_records(path: str | Path) -> list[Record]:
    """Read the records of a JSONL file; an error names the line.

    Raises:
        PolicyError: a line is no record.
        FileNotFoundError: there is no such file.
    """
    with Path(path).open(encoding="utf-8") as file:
        return [_parse(line, f"{path}, line {number}") for number, line in enumerate(file, 1) if line.strip()]


def _parse(line: str, where: str) -> Record:
    try:
        return Record.from_json(json.loads(line))
    except (ValueError, TypeError, KeyError, PolicyError) as error:
        detail = f"no field {error}" if isinstance(error, KeyError) else str(error)
        msg = f"{where}: not a recorded completion ({detail}); policies.Recording writes such files"
        raise PolicyError(msg) from None
