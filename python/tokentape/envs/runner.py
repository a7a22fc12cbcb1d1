"""Plays items with bounded concurrency and yields what became of each, in the order in which they end.

*Invariants*: at most `concurrency` items are in work; while the consumer is busy with an outcome none is started
(back-pressure); each started item yields exactly one outcome unless the run is cancelled; when the generator is closed
no task is left.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from tokentape import Group
from tokentape.envs import attempt
from tokentape.envs.environment import Collected, Environment
from tokentape.envs.source import Source, Work
from tokentape.errors import TrajectoryError

__all__ = ["Outcome", "Settings", "outcomes"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The limits of a run.

    Attributes:
        concurrency: Items in work at once.
        timeout: Seconds for one try at an item; None has no limit.
        retries: How failed items and rollouts are tried again.
        groups: Stop once this many groups are there; None plays all items.
    """

    concurrency: int = 16
    timeout: float | None = None
    retries: attempt.Retries = attempt.Retries()
    groups: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an item: groups, a reason why there are none, or an error.

    Attributes:
        key: The item's key.
        groups: Finished groups.
        backlog: Further items with their keys.
        dropped: Why the environment gave no group.
        error: What failed in the last try.
        rollout_drops: Reasons of single rollouts that are missing in the groups.
        seconds: From the first try to the end.
    """

    key: str
    groups: Sequence[Group] = ()
    backlog: Sequence[Work] = ()
    dropped: str | None = None
    error: Exception | None = None
    rollout_drops: Sequence[str] = field(default_factory=list[str])
    seconds: float = 0.0


async def outcomes(
    env: Environment[Any], source: Source, settings: Settings, *, groups_so_far: int = 0
) -> AsyncGenerator[Outcome, None]:
    """Play the items of a source; close the generator to cancel what is in work."""
    playing: set[asyncio.Task[Outcome]] = set()
    fetching: asyncio.Task[Work | None] | None = None
    groups = groups_so_far
    try:
        while True:
            wanted = _wanted(settings, groups) - len(playing)
            if fetching is None and wanted > 0 and source.has_more:
                fetching = asyncio.ensure_future(source.next())
            waiting: set[asyncio.Task[Any]] = playing | ({fetching} if fetching else set())
            if not waiting or _wanted(settings, groups) <= 0:
                return
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if fetching in done:
                if (work := fetching.result()) is not None:
                    playing.add(asyncio.ensure_future(_play(env, work, settings)))
                fetching = None
            for task in done & playing:
                playing.discard(task)
                outcome = task.result()
                groups += len(outcome.groups)
                source.add_backlog(outcome.backlog)
                yield outcome
    finally:
        await _cancel(playing | ({fetching} if fetching else set()))


def _wanted(settings: Settings, groups: int) -> int:
    """How many items should be in work: no more than the groups that are still missing."""
    if settings.groups is None:
        return settings.concurrency
    return min(settings.concurrency, settings.groups - groups)


async def _play(env: Environment[Any], work: Work, settings: Settings) -> Outcome:
    """Try an item until it ends, and say how; only cancellation passes through."""
    began = time.monotonic()
    item = attempt.Attempt(work.key, settings.retries)

    async def once() -> Any:
        item.reason = None
        item.rollout_drops.clear()
        async with asyncio.timeout(settings.timeout):
            return await env.collect_trajectories(work.item)

    with attempt.enter(item):
        try:
            groups, backlog = _unpack(await settings.retries.run(once))
        except attempt.ExhaustedError as error:
            cause = error.__cause__
            failure = cause if isinstance(cause, Exception) else error
            return Outcome(work.key, error=failure, rollout_drops=item.rollout_drops, seconds=time.monotonic() - began)
        except Exception as error:  # noqa: BLE001 -- told by the outcome
            if isinstance(error, TimeoutError) and not str(error):
                error = TimeoutError(f"the item took longer than {settings.timeout} s")
            return Outcome(work.key, error=error, rollout_drops=item.rollout_drops, seconds=time.monotonic() - began)
    works = [Work(f"{work.key}/{index}", further) for index, further in enumerate(backlog)]
    dropped = None if groups else item.reason or attempt.NO_REASON
    return Outcome(work.key, groups, works, dropped, None, item.rollout_drops, time.monotonic() - began)


def _unpack(result: object) -> tuple[Sequence[Group], Sequence[Any]]:
    """The groups and the backlog of whatever `collect_trajectories` may return."""
    match result:
        case None:
            return (), ()
        case Group():
            return (result,), ()
        case Collected():
            collected = cast("Collected[Any]", result)
            return _groups(collected.groups), collected.backlog
        case _:
            return _groups(result), ()


def _groups(result: object) -> Sequence[Group]:
    members = cast("Sequence[object]", result) if isinstance(result, Sequence) else [result]
    if all(isinstance(member, Group) for member in members):
        return cast("Sequence[Group]", members)
    msg = (
        f"collect_trajectories returned {type(cast('Any', result)).__name__}: return a Group, a sequence of groups, "
        "Collected(groups, backlog), or None to drop the item"
    )
    raise TrajectoryError(msg)


async def _cancel(tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
