"""The items of a run: fetched from the environment, named, and skipped if an earlier run has finished them.

*Invariant*: a key is given out once; the same environment that gives the same items gives them the same keys.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokentape.envs.environment import PAUSE, Environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Source", "Work"]

PAUSE_SECONDS = 0.2
"""How long a source that said PAUSE is left alone."""


@dataclass(frozen=True, slots=True)
class Work:
    """One item and its key."""

    key: str
    item: Any


class Source:
    """Gives items one after another, backlog first.

    Args:
        env: Where items come from.
        is_done: Whether an earlier run has finished the item of a key.
        backlog: Items of an earlier run that wait.
    """

    def __init__(self, env: Environment[Any], is_done: Callable[[str], bool], backlog: Iterable[Work] = ()) -> None:
        """Nothing is fetched before `next`."""
        self._env = env
        self._is_done = is_done
        self._backlog = deque(backlog)
        self._seen: Counter[str] = Counter()
        self._fetched = 0
        self.finished = False

    @property
    def has_more(self) -> bool:
        """Whether `next` may give an item."""
        return bool(self._backlog) or not self.finished

    def add_backlog(self, works: Iterable[Work]) -> None:
        """Queue items before those that are still to be fetched."""
        self._backlog.extend(works)

    async def next(self) -> Work | None:
        """Give the next item that is not done, or None when the environment has no more."""
        while not self.finished or self._backlog:
            if self._backlog:
                return self._backlog.popleft()
            work = await self._fetch()
            if work is not None and not self._is_done(work.key):
                return work
        return None

    async def _fetch(self) -> Work | None:
        item = await self._env.get_item()
        if item is None:
            self.finished = True
            return None
        if item is PAUSE:
            await asyncio.sleep(PAUSE_SECONDS)
            return None
        return Work(self._key(item), item)

    def _key(self, item: Any) -> str:
        """The item's id, numbered from its second occurrence on; items without an id are numbered as they come."""
        self._fetched += 1
        name = self._env.item_id(item)
        if name is None:
            return f"#{self._fetched}"
        self._seen[name] += 1
        return name if self._seen[name] == 1 else f"{name}#{self._seen[name]}"
