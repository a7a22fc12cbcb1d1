"""Measures time: that of policies, without touching what they return, and that of blocks of code.

*Invariant*: a metered policy returns the object that the policy returned.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokentape.types import Completion, Policy, TokenIds

__all__ = ["Meter", "Stopwatch", "metered"]


@dataclass(slots=True)
class Meter:
    """Calls and their time.

    Attributes:
        calls: Completions asked for.
        seconds: The sum of the calls' times; calls overlap.
        busy_seconds: Wall time in which at least one call was out.
    """

    calls: int = 0
    seconds: float = 0.0
    busy_seconds: float = 0.0
    _out: int = 0
    _busy_since: float = 0.0

    def begin(self) -> float:
        """Note that a call goes out; returns the time."""
        now = time.monotonic()
        self.calls += 1
        if self._out == 0:
            self._busy_since = now
        self._out += 1
        return now

    def end(self, began: float) -> None:
        """Note that a call has come back."""
        now = time.monotonic()
        self.seconds += now - began
        self._out -= 1
        if self._out == 0:
            self.busy_seconds += now - self._busy_since


class _Metered:
    """Stands before a policy; everything but `complete` is the policy's own."""

    def __init__(self, policy: Policy, meter: Meter) -> None:
        self._policy = policy
        self._meter = meter

    async def complete(self, token_ids: TokenIds, **settings: Any) -> Completion:
        began = self._meter.begin()
        try:
            return await self._policy.complete(token_ids, **settings)
        finally:
            self._meter.end(began)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)


def metered(policies: Policy | Mapping[str, Policy]) -> tuple[Meter, dict[str, Policy]]:
    """One meter, and the policies that it measures, by name."""
    meter = Meter()
    named = policies if isinstance(policies, Mapping) else {"default": policies}
    return meter, {name: _Metered(policy, meter) for name, policy in named.items()}


class Stopwatch:
    """Runs inside `with` blocks, which hold no `await`.

    Attributes:
        seconds: The time of all blocks so far.

    Example:
        >>> stopwatch = Stopwatch()
        >>> with stopwatch:
        ...     pass
        >>> stopwatch.seconds > 0
        True
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds += time.perf_counter() - self._began
