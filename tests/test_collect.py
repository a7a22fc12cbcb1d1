"""The runner: every item ends as groups, a drop or a failure; finished groups survive whatever happens."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

import tokentape as tt
from tokentape.envs import PAUSE, Collected, Environment, collect, stream
from tokentape.envs.attempt import Retries
from tokentape.types import Completion, Sampling


class Echo:
    """A policy whose completion tells the prompt's last id."""

    def __init__(self):
        self.out = self.most = self.calls = 0

    async def complete(self, token_ids, *, sampling=Sampling(), stop_token_ids=()):
        self.calls += 1
        self.out += 1
        self.most = max(self.most, self.out)
        await asyncio.sleep(0.001)
        self.out -= 1
        return Completion([int(token_ids[-1]), 2], [-0.5, -0.25])


class Numbers(Environment[int]):
    """Items 0..count-1; each rollout samples the item's number."""

    def __init__(self, count: int, *, group_size: int = 2):
        super().__init__(group_size=group_size)
        self.items = iter(range(count))
        self.played: list[int] = []

    async def get_item(self):
        return next(self.items, None)

    async def collect_trajectory(self, item):
        self.played.append(item)
        trajectory = tt.Trajectory.from_prompt([1, 10 + item])
        reply = await self.policy.complete(trajectory.token_ids, sampling=self.sampling)
        trajectory.act(reply.token_ids, reply.logprobs)
        trajectory.reward = float(item)
        return trajectory


def sampled(path) -> list[int]:
    """The item numbers of all rows of a file or folder, sorted."""
    return sorted(int(row.token_ids[2]) - 10 for row in tt.Batch.read(path).rows())


async def test_all_items_become_groups_and_are_counted():
    policy = Echo()
    collection = await collect(Numbers(5), policy)
    assert sorted(int(group[0].token_ids[2]) for group in collection.groups) == [10, 11, 12, 13, 14]
    status = collection.status
    assert (status.groups, status.trajectories, status.tokens, status.sampled) == (5, 10, 40, 20)
    assert collection.metrics["reward"] == 2.0
    assert collection.metrics["policy_calls"] == policy.calls == 10
    assert 0 < collection.metrics["policy_busy_share"] <= 1
    assert all(group.env == "Numbers" for group in collection.groups)


async def test_concurrency_is_bounded():
    policy = Echo()
    await collect(Numbers(20, group_size=1), policy, concurrency=3)
    assert policy.most == 3


async def test_a_stream_starts_nothing_while_its_consumer_is_busy():
    env = Numbers(50, group_size=1)
    groups = stream(env, Echo(), concurrency=2)
    await anext(groups)
    await asyncio.sleep(0.1)
    assert len(env.played) <= 4
    await groups.aclose()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_groups_limits_the_run():
    env = Numbers(50)
    collection = await collect(env, Echo(), groups=7, concurrency=4)
    assert collection.status.groups == 7
    assert len(set(env.played)) == 7


class Picky(Numbers):
    async def collect_trajectories(self, item):
        if item % 3 == 0:
            return self.drop("divisible by three")
        if item % 3 == 1:
            return None
        return await super().collect_trajectories(item)


async def test_drops_are_counted_by_reason(tmp_path):
    collection = await collect(Picky(9), Echo(), path=tmp_path / "run.tape")
    assert collection.status.dropped == {"divisible by three": 3, "returned None": 3}
    assert sampled(tmp_path / "run.tape") == [2, 2, 5, 5, 8, 8]
    again = await collect(Picky(9), Echo(), path=tmp_path / "run.tape")
    assert again.status.dropped == {"divisible by three": 3, "returned None": 3}
    assert again.status.groups == 3


class Branching(Numbers):
    async def collect_trajectories(self, item):
        group = await super().collect_trajectories(item)
        return Collected([group], backlog=[item + 100] if item < 100 else [])


async def test_backlog_items_are_played_too(tmp_path):
    await collect(Branching(3, group_size=1), Echo(), path=tmp_path / "run.tape")
    assert sampled(tmp_path / "run.tape") == [0, 1, 2, 100, 101, 102]


async def test_waiting_backlog_survives_an_interruption(tmp_path):
    collection = await collect(Branching(3, group_size=1), Echo(), path=tmp_path / "run.tape", groups=2, concurrency=1)
    assert collection.status.groups == 2
    await collect(Branching(3, group_size=1), Echo(), path=tmp_path / "run.tape")
    assert sampled(tmp_path / "run.tape") == [0, 1, 2, 100, 101, 102]


class Paused(Numbers):
    pauses = 2

    async def get_item(self):
        self.pauses -= 1
        return PAUSE if self.pauses >= 0 else await super().get_item()


async def test_pause_asks_again():
    assert (await collect(Paused(2), Echo())).status.groups == 2


class Flaky(Numbers):
    """Each rollout of item 1 fails twice before it passes; item 2 always fails in its second rollout."""

    def __init__(self, count: int):
        super().__init__(count)
        self.failures: dict[int, int] = {}

    async def collect_trajectory(self, item):
        tries = self.failures[item] = self.failures.get(item, 0) + 1
        if item == 1 and tries <= 2:
            raise ConnectionError("not yet")
        if item == 2 and tries != 1:
            raise ConnectionError("never")
        return await super().collect_trajectory(item)


async def test_rollouts_are_retried_and_the_rest_of_a_group_stays(monkeypatch):
    monkeypatch.setattr(Retries.__init__, "__defaults__", (2, 0.001, 0.01))
    collection = await collect(Flaky(3), Echo())
    by_item = {int(group[0].token_ids[2]) - 10: len(group) for group in collection.groups}
    assert by_item == {0: 2, 1: 2, 2: 1}
    assert collection.status.rollouts_dropped == {"ConnectionError: never": 1}


class Broken(Numbers):
    async def collect_trajectory(self, item):
        if item >= 2:
            return {}["missing"]
        return await super().collect_trajectory(item)


async def test_failures_that_do_not_cease_end_the_run_and_keep_what_is_finished(tmp_path, caplog):
    with pytest.raises(KeyError) as raised:
        await collect(Broken(100), Echo(), path=tmp_path / "run.tape", retries=0, give_up=3, concurrency=1)
    assert "3 items in a row" in raised.value.__notes__[0]
    assert "run again to go on" in raised.value.__notes__[0]
    assert sampled(tmp_path / "run.tape") == [0, 0, 1, 1]
    assert len([r for r in caplog.records if r.levelname == "WARNING"]) == 1  # one kind of failure is told once
    await collect(Numbers(4), Echo(), path=tmp_path / "run.tape")  # what failed is tried again
    assert sampled(tmp_path / "run.tape") == [0, 0, 1, 1, 2, 2, 3, 3]


class Slow(Numbers):
    async def collect_trajectory(self, item):
        if item == 0:
            await asyncio.sleep(60)
        return await super().collect_trajectory(item)


async def test_an_item_that_takes_too_long_is_counted_as_failed():
    collection = await collect(Slow(3), Echo(), timeout=0.05, retries=0)
    assert collection.status.groups == 2
    assert collection.status.failed == {"TimeoutError: the item took longer than 0.05 s": 1}


async def test_a_wrong_return_value_is_named():
    class Wrong(Numbers):
        async def collect_trajectories(self, item):
            return [[1, 2, 3]]

    with pytest.raises(tt.TrajectoryError, match="returned list: return a Group"):
        await collect(Wrong(3), Echo(), give_up=1)


async def test_cancellation_keeps_finished_groups_and_leaves_no_task(tmp_path):
    class Stuck(Numbers):
        async def collect_trajectory(self, item):
            if item == 3:
                stuck.set()
                await asyncio.sleep(60)
            return await super().collect_trajectory(item)

    stuck = asyncio.Event()
    task = asyncio.ensure_future(collect(Stuck(4, group_size=1), Echo(), path=tmp_path / "run.tape", concurrency=1))
    await stuck.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sampled(tmp_path / "run.tape") == [0, 1, 2]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_one_file(tmp_path):
    path = tmp_path / "all.arrow"
    collection = await collect(Numbers(3), Echo(), path=path)
    assert collection.path == path
    assert sampled(path) == [0, 0, 1, 1, 2, 2]
    assert [entry.name for entry in tmp_path.iterdir()] == ["all.arrow"]
    with pytest.raises(tt.ArgumentError, match="there already"):
        await collect(Numbers(3), Echo(), path=path)


async def test_one_file_goes_on_after_an_error(tmp_path):
    path = tmp_path / "all.arrow"
    with pytest.raises(KeyError):
        await collect(Broken(9), Echo(), path=path, retries=0, give_up=1, concurrency=1)
    assert sampled(path) == [0, 0, 1, 1]
    await collect(Numbers(4), Echo(), path=path)
    assert sampled(path) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [entry.name for entry in tmp_path.iterdir()] == ["all.arrow"]


PROGRAM = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from test_collect import *
import tokentape.envs.output as output
output.SEGMENT_GROUPS = 3
asyncio.run(collect(Numbers(300, group_size=1), Echo(), path={path!r}, concurrency=2))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_run_goes_on_with_nothing_lost_or_doubled(tmp_path, how):
    path = tmp_path / "run.tape"
    program = PROGRAM.format(tests=os.path.dirname(__file__), path=os.fspath(path))  # noqa: PTH120
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
        segments = len(list(path.glob("*.arrow")))
        while process.poll() is None and len(list(path.glob("*.arrow"))) < segments + 4:
            time.sleep(0.002)
        process.send_signal(how)
        process.wait()
        numbers = sampled(path)
        assert len(numbers) == len(set(numbers))
    subprocess.run([sys.executable, "-c", program], check=True)
    assert sampled(path) == list(range(300))


def test_a_commit_that_broke_off_leaves_no_trace(tmp_path):
    path = tmp_path / "run.tape"
    asyncio.run(collect(Numbers(2), Echo(), path=path))
    line = json.dumps({"items": ["#3"], "segment": "00001.arrow", "size": 10})
    with (path / "items.jsonl").open("a") as file:
        file.write(line + "\n" + '{"items": ["#4"]')  # a segment that never came, and half a line
    asyncio.run(collect(Numbers(4), Echo(), path=path))
    assert sampled(path) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_two_processes_do_not_write_one_folder(tmp_path):
    class Nested(Numbers):
        async def setup(self, policies):
            await collect(Numbers(1), Echo(), path=tmp_path / "run.tape")

    with pytest.raises(tt.ArgumentError, match="another process"):
        asyncio.run(collect(Nested(1), Echo(), path=tmp_path / "run.tape"))


async def test_a_folder_without_a_journal_is_refused(tmp_path):
    with tt.RunWriter(tmp_path / "run.tape") as run:
        run.write(tt.Batch.from_rows([{"token_ids": [1], "group_id": "a"}]))
    with pytest.raises(tt.SchemaError, match=r"no items\.jsonl"):
        await collect(Numbers(1), Echo(), path=tmp_path / "run.tape")


@pytest.mark.parametrize(
    "settings", [{"concurrency": 0}, {"groups": 0}, {"timeout": -1.0}, {"retries": -1}, {"give_up": 0}]
)
async def test_settings_out_of_range(settings):
    with pytest.raises(tt.ArgumentError, match=next(iter(settings))):
        await collect(Numbers(1), Echo(), **settings)


async def test_paths_and_policies_that_cannot_be(tmp_path):
    with pytest.raises(tt.ArgumentError, match=r"NAME\.tape"):
        await collect(Numbers(1), Echo(), path=tmp_path / "x.jsonl")
    with pytest.raises(tt.ArgumentError, match="no policies"):
        await collect(Numbers(1), {})
    with pytest.raises(tt.ArgumentError, match="group_size"):
        Numbers(1, group_size=0)
    with pytest.raises(tt.ArgumentError, match="has no chat"):
        _ = Numbers(1).chat


@dataclass
class Named:
    id: str
    number: int


async def test_items_with_an_id_may_come_twice(tmp_path):
    class Epochs(Numbers):
        def __init__(self):
            super().__init__(0)
            self.items = iter([Named("a", 1), Named("b", 2), Named("a", 1)])

        async def collect_trajectory(self, item):
            return await super().collect_trajectory(item.number)

    await collect(Epochs(), Echo(), path=tmp_path / "run.tape")
    assert sampled(tmp_path / "run.tape") == [1, 1, 1, 1, 2, 2]
    await collect(Epochs(), Echo(), path=tmp_path / "run.tape")
    assert sampled(tmp_path / "run.tape") == [1, 1, 1, 1, 2, 2]
    assert {row.group_id for row in tt.Batch.read(tmp_path / "run.tape").rows()} == {"a", "b"}


async def test_several_policies_by_name():
    class Judged(Numbers):
        async def collect_trajectory(self, item):
            await self.policies["judge"].complete([5])
            return await super().collect_trajectory(item)

    student, judge = Echo(), Echo()
    await collect(Judged(1), {"student": student, "judge": judge})
    assert (student.calls, judge.calls) == (2, 2)


class Measured(Numbers):
    """Evaluates itself by one completion, while its policy is still there."""

    async def evaluate(self):
        reply = await self.policy.complete([7])
        return {"last_id": float(reply.token_ids[0])}

    async def close(self):
        self.policy = None


async def test_a_run_ends_with_the_evaluation_of_its_environment():
    collection = await collect(Measured(2), Echo())
    assert collection.metrics["eval/last_id"] == 7
    assert "eval/last_id" not in (await collect(Measured(2), Echo(), evaluate=False)).metrics


async def test_the_time_of_the_output_is_counted(tmp_path):
    collection = await collect(Numbers(2), Echo(), path=tmp_path / "run.tape")
    assert 0 < collection.metrics["output_seconds"] < collection.metrics["seconds"]
