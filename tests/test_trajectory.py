"""The state machine of a trajectory, and what it refuses."""

import math
import pickle
import threading

import numpy as np
import pytest

import tokentape as tt


def started(**options):
    return tt.Trajectory.from_prompt([1, 2, 3], vocab_size=200, **options)


def test_sampled_and_appended_ids_stay_apart():
    trajectory = started()
    turn = trajectory.act([10, 11], [-0.2, -0.3], finish_reason="stop")
    trajectory.append([99])
    assert trajectory.token_ids.tolist() == [1, 2, 3, 10, 11, 99]
    assert trajectory.sampled_mask.tolist() == [False, False, False, True, True, False]
    assert trajectory.loss_mask.tolist() == trajectory.sampled_mask.tolist()
    assert trajectory.logprobs == pytest.approx([0, 0, 0, -0.2, -0.3, 0])
    assert (turn.start, turn.end, turn.token_ids.tolist(), turn.finish_reason) == (3, 5, [10, 11], "stop")


@pytest.mark.parametrize(
    "ids",
    [
        [10, 11],
        (10, 11),
        np.array([10, 11], dtype=np.int32),
        np.array([10, 11], dtype=np.int64),
        np.array([10, 0, 11, 0], dtype=np.uint16)[::2],
        memoryview(np.array([10, 11], dtype=np.int32)),
    ],
    ids=["list", "tuple", "int32", "int64", "strided", "buffer"],
)
def test_ids_come_as_any_sequence_of_integers(ids):
    trajectory = started()
    trajectory.act(ids, np.array([-0.25, -0.5]))
    assert trajectory.token_ids.dtype == np.int32
    assert trajectory.token_ids.tolist() == [1, 2, 3, 10, 11]


def test_arrays_are_snapshots_that_nobody_can_write():
    trajectory = started()
    before = trajectory.token_ids
    trajectory.act([10])
    assert before.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        before[0] = 7


def test_a_partial_rollout_is_one_turn_with_versions_as_runs():
    trajectory = tt.Trajectory.from_prompt([1, 2])
    trajectory.act([10, 11], [-0.1, -0.2], finish_reason="abort", policy_version=7)
    left = [trajectory.remaining(7)]
    trajectory.act([12], [-0.3], finish_reason="abort", policy_version=8, continues=True)
    left.append(trajectory.remaining(7))
    trajectory.act([13, 99], [-0.4, -0.5], policy_version=8, continues=True)
    left.append(trajectory.remaining(7))
    assert left == [3, 2, 0]
    assert len(trajectory.turns) == 1
    assert (trajectory.turns[0].end, trajectory.turns[0].finish_reason) == (7, "stop")
    assert trajectory.logprobs == pytest.approx([0, 0, -0.1, -0.2, -0.3, -0.4, -0.5])


BAD_ACTS = {
    "empty": (([], []), {}, "turn 0: the completion is empty"),
    "id too large": (([10, 200], None), {}, "turn 0, token 1: the id 200 is outside the vocabulary of 200"),
    "id negative": (([-1], None), {}, "turn 0, token 0: the id -1"),
    "id beyond int32": (([2**40], None), {}, "token 0: the id 1099511627776"),
    "one logprob too many": (([10, 11], [-1, -1, -1]), {}, "turn 0: 3 logprobs for 2 sampled ids; the length"),
    "one logprob too few": (([10, 11], [-1]), {}, "turn 0: 1 logprobs for 2"),
    "no logprob at all": (([10], []), {}, "turn 0: 0 logprobs for 1"),
    "null": (([10, 11], [-1, None]), {}, "turn 0, token 1: the logprob NaN is NaN or null"),
    "NaN": (([10], [math.nan]), {}, "turn 0, token 0: the logprob NaN"),
    "-inf": (([10], [-math.inf]), {}, "-inf"),
    "inf": (([10], [math.inf]), {}, "above zero"),
    "sentinel": (([10], [-9999.0]), {}, "turn 0, token 0: the logprob -9999 is a value that engines write"),
    "above zero": (([10], [0.5]), {}, "above zero"),
    "continues nothing": (([10], None), {"continues": True}, "no turn is open"),
}


@pytest.mark.parametrize(("arguments", "options", "message"), BAD_ACTS.values(), ids=BAD_ACTS.keys())
def test_a_refused_act_changes_nothing(arguments, options, message):
    trajectory = started()
    with pytest.raises(tt.TrajectoryError, match=message.replace("(", r"\(")):
        trajectory.act(*arguments, **options)
    assert trajectory.token_ids.tolist() == [1, 2, 3]
    assert (trajectory.turns, trajectory.stage, trajectory.logprobs) == ([], "prompted", None)


@pytest.mark.parametrize(
    ("ids", "logprobs", "what"),
    [
        ([1.5], None, "float"),
        (["a"], None, "<U1"),
        ([[1, 2]], None, "2 dimensions"),
        ([1], ["x"], "<U1"),
        (3, None, "0 dim"),
    ],
)
def test_other_types_are_argument_errors(ids, logprobs, what):
    trajectory = started()
    with pytest.raises(tt.ArgumentError, match=what):
        trajectory.act(ids, logprobs)
    assert len(trajectory) == 3


def test_logprobs_versions_and_kinds_are_all_or_none():
    recorded = started()
    recorded.act([10], [-0.5], logprob_kind="raw", policy_version=1)
    recorded.append([4])
    with pytest.raises(tt.TrajectoryError, match="turn 1: no logprobs, though earlier turns have them"):
        recorded.act([11], policy_version=1)
    with pytest.raises(tt.TrajectoryError, match=r"turn 1: logprobs of the kind 'processed'.*'raw'"):
        recorded.act([11], [-0.5], logprob_kind="processed", policy_version=1)
    with pytest.raises(tt.TrajectoryError, match="turn 1: no policy_version"):
        recorded.act([11], [-0.5])
    bare = started()
    bare.act([10])
    bare.append([4])
    with pytest.raises(tt.TrajectoryError, match="turn 1: logprobs, though earlier turns have none"):
        bare.act([11], [-0.5])
    assert [len(recorded), len(bare)] == [5, 5]


def test_an_acted_trajectory_waits():
    trajectory = started()
    trajectory.act([10])
    with pytest.raises(tt.TrajectoryError, match="turn 0 waits for an observation"):
        trajectory.act([11])
    trajectory.finish()
    for refused in (lambda: trajectory.append([4]), lambda: trajectory.act([4]), trajectory.fork):
        with pytest.raises(tt.TrajectoryError, match="finished"):
            refused()
    trajectory.reward = 1.0
    assert trajectory.reward == 1.0


def test_forks_share_the_past_and_go_on_alone():
    trajectory = started()
    trajectory.act([10, 11], [-0.1, -0.2])
    trajectory.append([4])
    branch = trajectory.fork()
    branch.act([12], [-0.3])
    trajectory.act([13, 14], [-0.4, -0.5])
    assert branch.token_ids.tolist() == [1, 2, 3, 10, 11, 4, 12]
    assert trajectory.token_ids.tolist() == [1, 2, 3, 10, 11, 4, 13, 14]
    assert (branch.parent_id, branch.fork_at, branch.fork_kind) == (trajectory.id, 6, "branch")
    assert branch.rollout_id != trajectory.rollout_id


def test_truncation_moves_every_column_and_gives_the_move_back():
    trajectory = started()
    first = trajectory.act([10, 11], [-0.1, -0.2])
    trajectory.append([4])
    second = trajectory.act([12, 13], [-0.3, -0.4])
    trajectory.truncate(7)
    assert (trajectory.stage, second.token_ids.tolist()) == ("acted", [12])
    trajectory.truncate(6)
    assert (trajectory.stage, len(trajectory.turns)) == ("prompted", 1)
    with pytest.raises(tt.TrajectoryError, match="no longer there"):
        _ = second.token_ids
    trajectory.act([14], [-0.5])
    assert trajectory.logprobs == pytest.approx([0, 0, 0, -0.1, -0.2, 0, -0.5])
    assert first.token_ids.tolist() == [10, 11]
    with pytest.raises(tt.ArgumentError, match="not between 1 and the 7 tokens"):
        trajectory.truncate(8)


def test_loss_is_a_choice_of_the_right_length():
    trajectory = started()
    trajectory.act([10, 11])
    trajectory.loss_mask = np.array([0, 0, 0, 0, 1])
    trajectory.loss_weight = [0, 0, 0, 0, -1.5]
    assert trajectory.loss_mask.tolist() == [False] * 4 + [True]
    assert trajectory.sampled_mask.tolist() == [False] * 3 + [True] * 2
    assert trajectory.loss_weight.tolist() == [0, 0, 0, 0, -1.5]
    for name, value, message in [
        ("loss_mask", [1], "1 values for 5 tokens"),
        ("loss_mask", [0, 0, 0, 0, 2], "token 4: 2 is neither 0 nor 1"),
        ("loss_weight", [0, 0, 0, 0, math.nan], "token 4: NaN is not finite"),
        ("reward", math.inf, "not a finite float32"),
    ]:
        with pytest.raises(tt.ArgumentError, match=message):
            setattr(trajectory, name, value)
    assert trajectory.loss_mask.tolist() == [False] * 4 + [True]


def test_metrics_and_notes_are_json():
    trajectory = started()
    trajectory.metrics = {"solved": True, "steps": 3}
    trajectory.note({"sampling": {"temperature": 0.7}})
    assert trajectory.metrics == {"solved": True, "steps": 3}
    assert trajectory.provenance["sampling"] == {"temperature": 0.7}
    assert trajectory.provenance["library_version"] == tt.__version__
    with pytest.raises(tt.ArgumentError, match="metrics"):
        trajectory.metrics = {"bad": math.nan}


def test_two_threads_never_interleave():
    trajectory = tt.Trajectory.from_prompt([1])
    refused = []

    def grow(token):
        for _ in range(300):
            try:
                trajectory.append([token] * 50)
            except tt.TrajectoryError as error:
                refused.append(str(error))
            assert len(trajectory.token_ids) % 50 == 1

    threads = [threading.Thread(target=grow, args=(token,)) for token in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = trajectory.token_ids[1:].reshape(-1, 50)
    assert (ids == ids[:, :1]).all()
    assert len(ids) + len(refused) == 600
    assert all("two threads" in message for message in refused)


def test_memory_of_a_finished_trajectory():
    trajectory = tt.Trajectory.from_prompt(np.arange(512), vocab_size=1000)
    for version in range(16):
        trajectory.act(np.arange(400), np.full(400, -0.5), policy_version=version)
        trajectory.append(np.arange(100))
    trajectory.finish()
    assert trajectory.nbytes <= 12 * len(trajectory)


def test_pickling_brings_everything_back():
    trajectory = started()
    trajectory.act([10, 11], [-0.1, -0.2], policy_version=3, logprob_kind="raw").reward = 0.1
    trajectory.append([4])
    trajectory.loss_mask = [0, 0, 0, 0, 1, 0]
    trajectory.metrics = {"solved": True}
    branch = trajectory.fork()
    branch.act([12], [-0.3], policy_version=4)
    branch.reward = 0.3
    copy = pickle.loads(pickle.dumps(branch))
    for name in ("token_ids", "sampled_mask", "loss_mask", "logprobs", "message_index"):
        assert getattr(copy, name).tolist() == getattr(branch, name).tolist(), name
    for name in ("id", "rollout_id", "parent_id", "fork_at", "stage", "reward", "metrics", "provenance"):
        assert getattr(copy, name) == getattr(branch, name), name
    assert [turn.reward for turn in copy.turns] == [0.1, None]
    with pytest.raises(tt.TrajectoryError, match="outside the vocabulary of 200"):
        copy.act([200], [-1], policy_version=4, continues=True)
