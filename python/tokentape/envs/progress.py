"""What a run tells while it goes on: a bar with the extra `progress` (rich), one plain line on standard error without.

*Invariant*: nothing is printed on standard output, and nothing at all when progress is off.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TextIO

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Line", "Progress", "Silent", "Status", "choose"]

LINE_SECONDS = 10.0
"""How often the plain line is printed where it cannot be overwritten (a pipe, a log file)."""


@dataclass(slots=True)
class Status:
    """The figures of a run so far.

    Attributes:
        groups: Finished groups.
        total: How many are wanted, if that is known.
        trajectories: Rows in them.
        tokens: Tokens in them.
        sampled: Tokens that a policy produced.
        reward: The sum of the rewards of all trajectories that have one.
        rewarded: How many have one.
        dropped: Items without a group, by reason.
        failed: Items whose last try ended in an error, by reason.
        rollouts_dropped: Single rollouts missing in groups, by reason.
        seconds: Since the run began.
    """

    groups: int = 0
    total: int | None = None
    trajectories: int = 0
    tokens: int = 0
    sampled: int = 0
    reward: float = 0.0
    rewarded: int = 0
    dropped: Counter[str] = field(default_factory=Counter[str])
    failed: Counter[str] = field(default_factory=Counter[str])
    rollouts_dropped: Counter[str] = field(default_factory=Counter[str])
    seconds: float = 0.0

    @property
    def mean_reward(self) -> float | None:
        """The mean reward, or None while there is none."""
        return self.reward / self.rewarded if self.rewarded else None

    def line(self) -> str:
        """The figures in one line."""
        total = "" if self.total is None else f"/{self.total}"
        parts = [
            f"{self.groups}{total} groups",
            f"{self.trajectories:,} trajectories",
            f"{self.sampled:,} sampled tokens",
        ]
        if self.mean_reward is not None:
            parts.append(f"reward {self.mean_reward:.3f}")
        for word, counts in (("dropped", self.dropped), ("failed", self.failed)):
            if counts:
                parts.append(f"{counts.total()} {word}")
        return ", ".join([*parts, f"{self.seconds:.0f} s"])


class Progress(Protocol):
    """Shows a run; write your own to send the figures elsewhere."""

    def update(self, status: Status) -> None:
        """Show new figures; called after each item."""
        ...

    def close(self) -> None:
        """The run has ended."""
        ...


class Silent:
    """Shows nothing."""

    def update(self, status: Status) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Line:
    """One line that is overwritten on a terminal; elsewhere a new one every ten seconds and at the end.

    Args:
        file: Where to write; standard error by default.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        """Write nothing before the first update."""
        self._file = file or sys.stderr
        self._overwrites = self._file.isatty()
        self._written_at = -LINE_SECONDS
        self._latest: str | None = None

    def update(self, status: Status) -> None:
        """Overwrite the line, or write a new one when the last is old enough."""
        self._latest = status.line()
        if self._overwrites:
            self._file.write(f"\r\x1b[K{self._latest}")
            self._file.flush()
        elif time.monotonic() - self._written_at >= LINE_SECONDS:
            self._write_line()

    def close(self) -> None:
        """Leave the last figures standing."""
        if self._overwrites and self._latest is not None:
            self._file.write("\n")
        elif self._latest is not None:
            self._write_line()

    def _write_line(self) -> None:
        self._written_at = time.monotonic()
        self._file.write(f"{self._latest}\n")
        self._file.flush()
        self._latest = None


class Bar:
    """A bar of rich, which must be installed; on standard error.

    Raises:
        ImportError: rich is not installed.
    """

    def __init__(self) -> None:
        """Start the bar; it appears with the first update."""
        from rich.console import Console  # noqa: PLC0415 -- an extra
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn  # noqa: PLC0415

        columns: Sequence[Any] = (SpinnerColumn(), BarColumn(bar_width=24), TextColumn("{task.description}"))
        self._bar = Progress(*columns, console=Console(stderr=True))
        self._task = self._bar.add_task("starting", total=None)
        self._bar.start()

    def update(self, status: Status) -> None:
        """Move the bar."""
        self._bar.update(self._task, description=status.line(), completed=status.groups, total=status.total)

    def close(self) -> None:
        """Leave the last figures standing."""
        self._bar.stop()


def choose(progress: Progress | bool | None) -> Progress:  # noqa: FBT001 -- the caller's own argument
    """The display for what a caller gave: None shows a run on a terminal only, True always, False never."""
    if progress is False or (progress is None and not sys.stderr.isatty()):
        return Silent()
    if progress is None or progress is True:
        return _best()
    return progress


def _best() -> Progress:
    if not sys.stderr.isatty():
        return Line()
    try:
        return Bar()
    except ImportError:
        return Line()
