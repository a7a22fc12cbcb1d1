"""Rows as a prompt and a response: what most trainers call a rollout.

The response is everything after the first prompt, the text of tools included; a mask says which of it was sampled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokentape.errors import SchemaError

if TYPE_CHECKING:
    from tokentape.batch import Batch, Row

__all__ = ["Rollout", "require", "rollouts"]


class Rollout(NamedTuple):
    """A row, and where its response begins: at the first sampled token."""

    row: Row
    start: int

    def require_logprobs(self, who: str) -> None:
        """Raises SchemaError where the row has no logprobs."""
        require(self.row, "logprobs", who)


def rollouts(batch: Batch, who: str) -> list[Rollout]:
    """The rows of a batch, each with the place of its first sampled token.

    Raises:
        SchemaError: A row has no sampled token, or a rollout has several rows.
    """
    seen: set[str] = set()
    found: list[Rollout] = []
    for row in batch.rows():
        if row.rollout_id and row.rollout_id in seen:
            raise SchemaError(
                f"row {row.index}: rollout {row.rollout_id!r} has several rows, {who} takes one completion "
                "for a prompt; use history='keep', or pass the last fragment of each rollout"
            )
        seen.add(row.rollout_id)
        if not row.sampled_mask.any():
            raise SchemaError(
                f"row {row.index} (trajectory {row.trajectory_id!r}) has no sampled token to complete with"
            )
        found.append(Rollout(row, int(np.argmax(row.sampled_mask))))
    return found


def require(row: Row, name: str, who: str) -> None:
    """Raises SchemaError where a row has no value in a column that a trainer needs."""
    if getattr(row, name) is None:
        raise SchemaError(f"row {row.index} (trajectory {row.trajectory_id!r}) has no {name}, which {who} needs")
