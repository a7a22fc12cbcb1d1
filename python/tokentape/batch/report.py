"""What packing did: nothing is left out or cut without a record of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokentape.batch.table import Batch

__all__ = ["LeftOut", "PackingReport", "Truncated", "report"]


class LeftOut(NamedTuple):
    """A row that is in no bin."""

    row: int
    """Its index in the batch."""
    trajectory_id: str
    reason: Literal["empty", "no_loss", "overlong"]
    """No tokens; no token that is kept carries loss (a segment's first never does); longer than the budget."""
    tokens: int


class Truncated(NamedTuple):
    """A row of which only the first tokens are packed."""

    row: int
    trajectory_id: str
    kept: int
    """Tokens packed."""
    removed: int
    """Tokens cut off."""


@dataclass(frozen=True)
class PackingReport:
    """What packing did. `print(packing.report)` shows it in a few lines."""

    rows: int
    """Rows of the batch."""
    bins: int
    """Packed batches, of all ranks."""
    tokens: int
    """Tokens packed, padding aside."""
    padding: int
    """Tokens of padding."""
    token_budget: int
    lower_bound: int
    """The fewest bins that could hold the tokens."""
    longest: int
    """Tokens of the longest row packed."""
    loss_cleared: int
    """Segments whose first token carried loss, which nothing can predict."""
    shared: int
    """With share_prefixes: how many fewer tokens there are, since rows hold their common tokens once."""
    merged: int
    """Shared tokens that carry the loss of more than one row."""
    imbalance: float
    """Modelled time of all micro-steps over the time if all ranks worked equally; 1 is perfect."""
    left_out: tuple[LeftOut, ...]
    truncated: tuple[Truncated, ...]

    @property
    def utilisation(self) -> float:
        """Tokens packed over the tokens that the bins could hold."""
        return self.tokens / (self.bins * self.token_budget) if self.bins else 0.0

    @property
    def padding_saved(self) -> float:
        """The share of a padded batch (every row as long as the longest) that is not computed here."""
        padded = (self.rows - len(self.left_out)) * self.longest
        return 1 - (self.tokens + self.padding) / padded if padded else 0.0

    def __str__(self) -> str:
        lines = [
            f"{self.rows - len(self.left_out):,} of {self.rows:,} rows, {self.tokens:,} tokens",
            f"{self.bins:,} bins of {self.token_budget:,}: {self.utilisation:.1%} full, {self.lower_bound:,} needed",
            f"padding saved: {self.padding_saved:.1%} of a batch padded to {self.longest:,} tokens",
        ]
        if self.shared:
            lines.append(f"shared prefixes: {1 + self.shared / self.tokens:.2f}x fewer tokens, {self.shared:,} saved")
        for reason in sorted({row.reason for row in self.left_out}):
            rows = [row for row in self.left_out if row.reason == reason]
            lines.append(f"left out, {reason}: {len(rows):,} rows, {sum(row.tokens for row in rows):,} tokens")
        if self.truncated:
            removed = sum(row.removed for row in self.truncated)
            lines.append(f"truncated: {len(self.truncated):,} rows, {removed:,} tokens removed")
        return "\n".join(lines)


def report(batch: Batch, token_budget: int, found: dict[str, Any]) -> PackingReport:
    """The report, with the names of rows beside their indices."""

    def name(row: int) -> str:
        return str(batch.row(row).trajectory_id)

    left_out: Sequence[tuple[int, Any, int]] = found.pop("left_out")
    truncated: Sequence[tuple[int, int, int]] = found.pop("truncated")
    return PackingReport(
        token_budget=token_budget,
        left_out=tuple(LeftOut(row, name(row), reason, tokens) for row, reason, tokens in left_out),
        truncated=tuple(Truncated(row, name(row), kept, removed) for row, kept, removed in truncated),
        **found,
    )
