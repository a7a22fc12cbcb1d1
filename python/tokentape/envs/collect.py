"""Collects the groups of an environment: the runner's face.

*Invariants*: every item ends as groups, as a drop with a counted reason, or as a failure that is counted and raised
when failures do not cease; finished groups stay readable however the run ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tokentape.envs import attempt
from tokentape.envs.meter import Stopwatch, metered
from tokentape.envs.output import MemoryOutput, Output, open_output
from tokentape.envs.progress import Progress, Silent, Status, choose
from tokentape.envs.runner import Outcome, Settings, outcomes
from tokentape.envs.source import Source
from tokentape.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path

    from tokentape import Group
    from tokentape.envs.environment import Environment, Policies

__all__ = ["Collection", "collect", "stream"]

logger = logging.getLogger("tokentape.envs")


@dataclass(frozen=True, slots=True)
class Collection:
    """What a run collected.

    Attributes:
        groups: The finished groups, if they were kept in memory (no `path`).
        path: Where they were written.
        status: Counts, rewards and drops, with those of the run that this one continued.
        metrics: Figures by name: `reward`, `sampled_share`, `policy_calls`, `policy_seconds` (summed over calls that
            overlap), `policy_busy_share` (share of the run's wall time in which at least one call was out),
            `output_seconds` (counting and writing groups), `seconds`; those of `Environment.evaluate` as `eval/NAME`.
    """

    groups: list[Group]
    path: Path | None
    status: Status
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])


async def collect(
    env: Environment[Any],
    policies: Policies,
    *,
    path: str | Path | None = None,
    concurrency: int = 16,
    groups: int | None = None,
    timeout: float | None = None,  # noqa: ASYNC109 -- of each item, not of the call
    retries: int = 2,
    give_up: int = 8,
    evaluate: bool = True,
    progress: Progress | bool | None = None,
) -> Collection:
    """Play the items of an environment and keep their groups.

    Ctrl-C, cancellation and errors leave what is finished: with `path`, run the same command again and it goes on,
    with nothing lost or doubled.

    Args:
        env: The environment; its `setup` and `close` are called.
        policies: One policy, or several by name.
        path: `NAME.tape`, a run folder of Arrow segments that can go on after an interruption; `NAME.arrow`, one file;
            None keeps groups in memory.
        concurrency: Items in work at once; each plays its own rollouts side by side.
        groups: Stop once there are this many, those of the run that goes on included; None plays all items.
        timeout: Seconds for one try at an item; None has no limit.
        retries: Further tries of a failed rollout or item, after pauses that grow and vary; mistakes in the program
            are not retried.
        give_up: Stop when this many items in a row have failed.
        evaluate: Whether to call `Environment.evaluate` when all items have been played.
        progress: None shows progress on a terminal, True always, False never; or your own `Progress`.

    Raises:
        ArgumentError: a setting out of range, or a path that cannot be written to.
        Exception: the last failure, when `give_up` items in a row have failed, or what `setup` or `get_item` raised.

    Example:
        >>> import asyncio
        >>> import tokentape as tt
        >>> class Empty(tt.Environment):
        ...     async def get_item(self):
        ...         return None
        >>> asyncio.run(tt.collect(Empty(), tt.policies.Replay([]))).status.groups
        0
    """
    settings = _settings(concurrency, groups, timeout, retries, give_up)
    output = open_output(path, env)
    run = _Run(env, policies, settings=settings, output=output, progress=choose(progress), give_up=give_up)
    run.evaluates = evaluate
    finished = False
    try:
        await run.play()
        finished = True
    finally:
        with run.writing:
            output.close(finished=finished)
    return run.collection()


async def stream(
    env: Environment[Any],
    policies: Policies,
    *,
    concurrency: int = 16,
    timeout: float | None = None,  # noqa: ASYNC109 -- of each item, not of the call
    retries: int = 2,
    give_up: int = 8,
) -> AsyncGenerator[Group, None]:
    """Yield groups as they are finished; while the consumer is busy no new item is started.

    Close the generator (`contextlib.aclosing`) to cancel what is in work. Arguments and errors are those of `collect`.
    """
    settings = _settings(concurrency, None, timeout, retries, give_up)
    run = _Run(env, policies, settings=settings, output=MemoryOutput(), progress=Silent(), give_up=give_up)
    async with contextlib.aclosing(run.outcomes()) as ended:
        async for outcome in ended:
            for group in outcome.groups:
                yield group


class _Run:
    """One run: counts outcomes, gives them to the output, and knows when to give up."""

    def __init__(
        self,
        env: Environment[Any],
        policies: Policies,
        *,
        settings: Settings,
        output: Output,
        progress: Progress,
        give_up: int,
    ) -> None:
        self._env = env
        self._output = output
        self._settings = settings
        self._progress = progress
        self._give_up = give_up
        self._failed_in_a_row = 0
        self._meter, self._policies = metered(policies)
        self.writing = Stopwatch()
        self.evaluates = False
        self._evaluation: Mapping[str, float] = {}
        self._began = time.monotonic()
        self._status = Status(total=settings.groups, dropped=Counter(output.dropped))

    async def play(self) -> None:
        try:
            async with contextlib.aclosing(self.outcomes()) as ended:
                async for outcome in ended:
                    with self.writing:
                        is_due = self._output.add(outcome)
                    if is_due:
                        await _in_thread(self._commit)
                    self._show()
        finally:
            self._show()
            self._progress.close()

    def _commit(self) -> None:
        with self.writing:
            self._output.commit()

    async def outcomes(self) -> AsyncGenerator[Outcome, None]:
        """The outcomes of all items, counted; raises when failures do not cease."""
        env = self._env
        env.bind(self._policies)
        source = Source(env, self._output.is_done, self._output.waiting())
        ended = outcomes(env, source, self._settings, groups_so_far=self._output.tally.groups)
        try:
            await env.setup(env.policies)
            async with contextlib.aclosing(ended):
                async for outcome in ended:
                    self._count(outcome)
                    yield outcome
            if self.evaluates:
                self._evaluation = await env.evaluate()
        finally:
            await env.close()

    def collection(self) -> Collection:
        return Collection(self._output.groups, self._output.path, self._show(), self._metrics())

    def _count(self, outcome: Outcome) -> None:
        self._status.rollouts_dropped.update(outcome.rollout_drops)
        if outcome.dropped is not None:
            self._status.dropped[outcome.dropped] += 1
        if outcome.error is None:
            self._failed_in_a_row = 0
            return
        reason = attempt.reason_of(outcome.error)
        if reason not in self._status.failed:  # each kind of failure is told once, with its traceback
            logger.warning("item %s failed: %s", outcome.key, reason, exc_info=outcome.error)
        self._status.failed[reason] += 1
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= self._give_up:
            outcome.error.add_note(self._farewell())
            raise outcome.error

    def _farewell(self) -> str:
        where = f" in {self._output.path}: run again to go on" if self._output.path else ""
        groups = self._output.tally.groups
        return f"{self._failed_in_a_row} items in a row have failed; {groups} groups are finished{where}"

    def _show(self) -> Status:
        for name, value in self._output.tally.to_json().items():
            setattr(self._status, name, value)
        self._status.seconds = time.monotonic() - self._began
        self._progress.update(self._status)
        return self._status

    def _metrics(self) -> dict[str, float]:
        status = self._status
        metrics = {
            "seconds": status.seconds,
            "sampled_share": status.sampled / status.tokens if status.tokens else 0.0,
            "policy_calls": self._meter.calls,
            "policy_seconds": self._meter.seconds,
            "output_seconds": self.writing.seconds,
            "policy_busy_share": min(self._meter.busy_seconds / status.seconds, 1.0) if status.seconds else 0.0,
        }
        metrics |= {f"eval/{name}": value for name, value in self._evaluation.items()}
        return metrics if status.mean_reward is None else {"reward": status.mean_reward, **metrics}


def _settings(concurrency: int, groups: int | None, timeout: float | None, retries: int, give_up: int) -> Settings:
    """Check the limits of a run."""
    limits = {"concurrency": concurrency, "give_up": give_up, "groups": groups, "timeout": timeout}
    for name, value in limits.items():
        if value is not None and value <= 0:
            msg = f"{name} is {value}: it must be positive"
            raise ArgumentError(msg)
    if retries < 0:
        msg = f"retries is {retries}: 0 tries once"
        raise ArgumentError(msg)
    return Settings(concurrency, timeout, attempt.Retries(count=retries), groups)


async def _in_thread(call: Callable[[], None]) -> None:
    """Run a blocking call beside the event loop; a cancellation waits for its end, so that nothing is half-done."""
    task = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
