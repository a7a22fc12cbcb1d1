"""Recording keeps what a policy returned, replay gives it again, and says what differs where it cannot."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokentape as tt
from tokentape.policies import Record, Recording, Replay
from tokentape.types import Completion, Policy, Sampling


def record(prompt, ids, *, seed=None, logprobs=None) -> Record:
    return Record(np.asarray(prompt, np.int32), Completion(ids, logprobs), Sampling(seed=seed))


async def test_replay_gives_the_recorded_completions_in_order():
    policy = Replay([record([1, 2], [5]), record([1, 2], [6]), record([1], [7])])
    assert isinstance(policy, Policy)
    assert (await policy.complete([1, 2])).token_ids.tolist() == [5]
    assert (await policy.complete(np.array([1, 2], np.int64))).token_ids.tolist() == [6]
    assert (await policy.complete([1])).token_ids.tolist() == [7]
    with pytest.raises(tt.PolicyError, match="recorded 1 times and is now asked once more"):
        await policy.complete([1])


async def test_a_recorded_seed_is_found_whenever_it_is_asked():
    policy = Replay([record([1], [5], seed=10), record([1], [6], seed=11)])
    for _ in range(2):
        assert (await policy.complete([1], sampling=Sampling(seed=11))).token_ids.tolist() == [6]
    assert (await policy.complete([1], sampling=Sampling(seed=12))).token_ids.tolist() == [5]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ([1, 2, 9, 4], "differs first at token 2, asked 9, recorded 3"),
        ([1, 2], "differs first at token 2, asked the end, recorded 3"),
        ([1, 2, 3, 4, 5], "differs first at token 4, asked 5, recorded the end"),
    ],
)
async def test_an_unknown_prompt_names_the_first_token_that_differs(asked, message):
    policy = Replay([record([1, 2, 3, 4], [5]), record([8], [5])])
    with pytest.raises(tt.PolicyError, match=message):
        await policy.complete(asked)
    with pytest.raises(tt.PolicyError, match="no records at all"):
        await Replay([]).complete(asked)


async def test_a_recording_replays_from_its_file(tmp_path):
    path = tmp_path / "completions.jsonl"
    source = Replay([record([1], [5, 2], logprobs=[-0.1, -1e-7]), record([2], [6])])
    recording = Recording(source, path)
    replies = [await recording.complete([n], sampling=Sampling(seed=n), stop_token_ids=[2]) for n in (1, 2)]
    recording.close()
    assert [one.completion for one in recording.records] == replies
    again = Replay(path)
    for number, reply in enumerate(replies, 1):
        replayed = await again.complete([number])
        assert replayed.to_json() == reply.to_json()
    recording.save(tmp_path / "saved.jsonl")
    assert (tmp_path / "saved.jsonl").read_text() == path.read_text()
    with pytest.raises(tt.PolicyError):
        await recording.complete([9])
    assert len(recording.records) == 2  # an error leaves no record


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.floats(-1000, 0, width=32)), max_size=20))
def test_completions_survive_json(pairs):
    ids, logprobs = [token for token, _ in pairs], [value for _, value in pairs]
    completion = Completion(ids, logprobs, finish_reason="length", policy_version=3, logprob_kind="raw")
    again = Completion(**json.loads(json.dumps(completion.to_json())))
    assert again.token_ids.tolist() == ids
    np.testing.assert_array_equal(again.logprobs, completion.logprobs)
    assert (again.finish_reason, again.policy_version, again.logprob_kind) == ("length", 3, "raw")


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"prompt_token_ids": [1], "completion": {"token_ids": [1.5]}}'])
def test_a_broken_line_is_named(tmp_path, line):
    path = tmp_path / "completions.jsonl"
    path.write_text(json.dumps(record([1], [2]).to_json()) + "\n" + line + "\n")
    with pytest.raises(tt.PolicyError, match="line 2: not a recorded completion"):
        Replay(path)


@pytest.mark.parametrize(
    ("ids", "logprobs", "message"),
    [
        ([1, 2], [-0.1], "2 ids but logprobs of shape"),
        ([1], [float("nan")], "logprob 0 of a completion is nan"),
        ([1, 2], [-0.5, None], "logprob 1 of a completion is nan"),
        ([1], [float("-inf")], "is -inf"),
        ([1], ["x"], "not numbers"),
        ([1.5], None, "integers"),
        ([[1]], None, "one dimension"),
        ([-1], None, "int32 from 0"),
        ([2**31], None, "int32 from 0"),
    ],
)
def test_completions_that_cannot_be(ids, logprobs, message):
    with pytest.raises(tt.PolicyError, match=message):
        Completion(ids, logprobs)


def test_a_completion_copies_and_is_read_only():
    ids, logprobs = np.array([1, 2], np.int32), np.array([-1, -2], np.float32)
    completion = Completion(ids, logprobs)
    ids[0] = logprobs[0] = 7
    assert completion.token_ids.tolist() == [1, 2]
    assert completion.logprobs.tolist() == [-1, -2]
    with pytest.raises(ValueError, match="read-only"):
        completion.token_ids[0] = 3


@pytest.mark.parametrize(
    "settings", [{"max_tokens": 0}, {"temperature": -1}, {"temperature": float("nan")}, {"top_p": 0}, {"top_k": -1}]
)
def test_sampling_out_of_range(settings):
    with pytest.raises(tt.ArgumentError, match=next(iter(settings))):
        Sampling(**settings)
