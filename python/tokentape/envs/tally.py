"""Counts of finished groups, kept in the journal so that a resumed run knows what came before it.

*Invariant*: tallies add up: the tally of two lists of groups is the sum of theirs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tokentape import Group

__all__ = ["Tally"]


@dataclass(slots=True)
class Tally:
    """How much finished groups hold.

    Attributes:
        groups: Groups.
        trajectories: Rows.
        tokens: Tokens in them.
        sampled: Tokens that a policy produced.
        reward: The sum of the rewards.
        rewarded: How many trajectories have one.
    """

    groups: int = 0
    trajectories: int = 0
    tokens: int = 0
    sampled: int = 0
    reward: float = 0.0
    rewarded: int = 0

    def add(self, groups: Sequence[Group]) -> None:
        """Count groups."""
        trajectories = [trajectory for group in groups for trajectory in group]
        rewards = [trajectory.reward for trajectory in trajectories if trajectory.reward is not None]
        self.groups += len(groups)
        self.trajectories += len(trajectories)
        self.tokens += sum(len(trajectory.token_ids) for trajectory in trajectories)
        self.sampled += sum(int(trajectory.sampled_mask.sum()) for trajectory in trajectories)
        self.reward += sum(rewards)
        self.rewarded += len(rewards)

    def to_json(self) -> dict[str, float]:
        """The counts as a mapping of JSON values."""
        return asdict(self)

    @classmethod
    def total(cls, tallies: Iterable[Mapping[str, float]]) -> Tally:
        """The sum of tallies that `to_json` made."""
        total = cls()
        for tally in tallies:
            for name, value in tally.items():
                setattr(total, name, getattr(total, name) + value)
        return total
