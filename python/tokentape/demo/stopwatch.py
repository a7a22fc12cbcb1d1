"""Adds up the time of stretches of code that do not overlap."""

from __future__ import annotations

import time
from types import TracebackType

__all__ = ["Stopwatch"]


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
