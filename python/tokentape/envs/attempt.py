"""The current attempt at an item: what was dropped in it, and how its rollouts are retried.

*Invariant*: tasks that an environment starts for an item see that item's attempt and no other's (context variables are
inherited by tasks).
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

__all__ = ["NO_REASON", "Attempt", "ExhaustedError", "Retries", "drop", "enter", "key", "reason_of", "rollouts"]

T = TypeVar("T")
logger = logging.getLogger("tokentape.envs")

PROGRAMMING_ERRORS = (NameError, AttributeError, TypeError, NotImplementedError, ImportError, AssertionError)
"""Trying again does not help against these."""
NO_REASON = "returned None"
"""The reason of a drop that gave none."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often, and after what pause, something that failed is tried again.

    Attributes:
        count: Further tries after the first.
        pause: Seconds before the first of them; doubled each time, times a random factor in [0.5, 1.5).
        longest: The longest pause in seconds, before the factor.
    """

    count: int = 2
    pause: float = 0.5
    longest: float = 30.0

    async def run(self, call: Callable[[], Awaitable[T]]) -> T:
        """Await `call()`, again while it fails with something that another try may cure; then its last error."""
        for number in range(self.count):
            try:
                return await call()
            except Exception as error:
                if not may_pass(error):
                    raise
                logger.info("try %d failed, trying again: %s", number + 1, reason_of(error))
                await asyncio.sleep(min(self.pause * 2**number, self.longest) * random.uniform(0.5, 1.5))  # noqa: S311
        return await call()


@dataclass(slots=True)
class Attempt:
    """One try at one item."""

    key: str = ""
    retries: Retries = Retries(count=0)
    reason: str | None = None
    rollout_drops: list[str] = field(default_factory=list[str])


class ExhaustedError(Exception):
    """All rollouts of an item failed after their own retries: the item is not tried again; the cause says why."""

    transient = False


_current: contextvars.ContextVar[Attempt | None] = contextvars.ContextVar("tokentape_attempt", default=None)


@contextlib.contextmanager
def enter(attempt: Attempt) -> Generator[Attempt]:
    """Make an attempt the current one inside the `with` block."""
    token = _current.set(attempt)
    try:
        yield attempt
    finally:
        _current.reset(token)


def key() -> str:
    """The key of the item in work, or an empty string outside a run."""
    return current().key


def current() -> Attempt:
    """The attempt of this task; a fresh one outside a run, so that environments can be called by hand."""
    return _current.get() or Attempt()


def drop(reason: str) -> None:
    """Note why the current item or rollout is dropped; the last reason counts."""
    current().reason = reason


async def rollouts(call: Callable[[], Awaitable[T | None]], count: int) -> list[T]:
    """Play `count` rollouts of the current item side by side, with retries, and return those that are not dropped.

    Raises:
        ExhaustedError: every rollout failed with an error; its cause is the last one.
        Exception: a mistake in the program, or, outside a run, whatever a rollout raised.
    """
    tasks = [asyncio.ensure_future(_rollout(call)) for _ in range(count)]
    try:
        played = await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    errors = [one for one in played if isinstance(one, Exception)]
    if len(errors) == count:
        raise ExhaustedError from errors[-1]
    return [one for one in played if one is not None and not isinstance(one, Exception)]


async def _rollout(call: Callable[[], Awaitable[T | None]]) -> T | Exception | None:
    item = _current.get()
    if item is None:
        return await call()
    with enter(Attempt(item.key, item.retries)) as own:
        try:
            played = await item.retries.run(call)
        except Exception as error:
            if isinstance(error, PROGRAMMING_ERRORS):
                raise
            item.rollout_drops.append(reason_of(error))
            return error
    if played is None:
        item.rollout_drops.append(own.reason or NO_REASON)
    return played


def may_pass(error: Exception) -> bool:
    """Whether another try may help: not against mistakes in the program, nor where the error says so itself."""
    return not isinstance(error, PROGRAMMING_ERRORS) and getattr(error, "transient", True) is not False


def reason_of(error: BaseException) -> str:
    """An error as a short reason: its class and the first line of its message."""
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
