"""Returns, advantages, and tokens that several rows share."""

import pickle

import numpy as np
import pytest

import tokentape as tt


def played(*rewards, **options):
    trajectories = []
    for reward in rewards:
        trajectory = tt.Trajectory.from_prompt([1, 2], **options)
        trajectory.act([3, 4])
        trajectory.reward = reward
        trajectories.append(trajectory)
    return trajectories


@pytest.mark.parametrize(
    ("how", "options", "expected"),
    [
        ("grpo", {}, [0.7071067811865476, -0.7071067811865476]),
        ("grpo", {"ddof": 0}, [1.0, -1.0]),
        ("grpo", {"ddof": 0, "eps": 0.5}, [0.5, -0.5]),
        ("dr_grpo", {}, [0.5, -0.5]),
        ("rloo", {}, [1.0, -1.0]),
        (lambda returns: returns * 2, {}, [2.0, 0.0]),
    ],
)
def test_estimators_by_hand(how, options, expected):
    group = tt.Group(played(1.0, 0.0), id="a").with_advantages(how, **options)
    assert group.advantages == pytest.approx(expected, abs=1e-12)
    assert group.zero_variance is False


def test_a_rollout_of_three_rows_counts_once():
    parts = played(1.0)
    parts += [played(1.0, rollout=parts[0])[0] for _ in range(2)]
    group = tt.Group([*parts, *played(0.0)], id="p0").with_advantages("dr_grpo")
    assert (group.rollouts, group.trajectories, len(group)) == (2, 4, 4)
    assert group.returns.tolist() == [1.0, 0.0]
    assert group.advantages.tolist() == [0.5, -0.5]


@pytest.mark.parametrize("rewards", [[1.0] * 4, [0.3], [0.1] * 3])
@pytest.mark.parametrize("how", ["grpo", "dr_grpo", "rloo"])
def test_equal_returns_teach_nothing(rewards, how):
    group = tt.Group(played(*rewards)).with_advantages(how)
    assert group.advantages.tolist() == [0.0] * len(rewards)
    assert group.zero_variance is True


def test_turn_rewards_add_up_unless_the_trajectory_has_its_own():
    trajectory = tt.Trajectory.from_prompt([1])
    for reward in (0.25, 0.5):
        trajectory.act([2]).reward = reward
        trajectory.append([3])
    assert tt.Group([trajectory]).returns.tolist() == [0.75]
    trajectory.reward = 2.0
    assert tt.Group([trajectory]).returns.tolist() == [2.0]


def test_a_missing_reward_is_named():
    trajectories = played(1.0, None)
    group = tt.Group(trajectories, id="item-7")
    with pytest.raises(tt.TrajectoryError, match=f"group 'item-7': trajectory '{trajectories[1].id}' has no reward"):
        group.with_advantages()
    with pytest.raises(tt.TrajectoryError, match=r"turn 0 of trajectory .* has no reward; per_turn"):
        group.with_advantages(per_turn=True)


def test_agents_share_the_reward_and_are_compared_by_name():
    trajectories = []
    for reward in (1.0, 0.0):
        player = played(reward)[0]
        judge = tt.Trajectory.from_prompt([9], rollout=player, agent="judge")
        judge.act([8])
        trajectories += [player, judge]
    trajectories[1].reward = 5.0
    group = tt.Group(trajectories).with_advantages("dr_grpo")
    assert group.rollouts == 2
    assert group.returns.tolist() == [1.0, 5.0, 0.0, 0.0]
    assert group.advantages.tolist() == [0.5, 2.5, -0.5, -2.5]


def test_bad_groups():
    with pytest.raises(tt.TrajectoryError, match="no trajectories"):
        tt.Group([])
    one = played(1.0)[0]
    with pytest.raises(tt.TrajectoryError, match="given twice"):
        tt.Group([one, one])
    group = tt.Group([one])
    with pytest.raises(tt.ArgumentError, match="'gae' is none of"):
        group.with_advantages("gae")
    with pytest.raises(tt.ArgumentError, match="share_credit: 'max'"):
        group.with_advantages(share_credit="max")
    with pytest.raises(tt.TrajectoryError, match="2 advantages for 1 returns"):
        group.with_advantages(lambda _: [1.0, 2.0])
    with pytest.raises(tt.TrajectoryError, match="NaN is not a finite"):
        group.with_advantages(lambda _: [np.nan])
    with pytest.raises(ZeroDivisionError):
        group.with_advantages(lambda _: 1 / 0)
    with pytest.raises(TypeError):
        tt.Group([3])


def test_a_group_is_a_snapshot():
    trajectory = played(1.0)[0]
    group = tt.Group([trajectory])
    trajectory.append([5])
    assert group[0].token_ids.tolist() == [1, 2, 3, 4]
    assert [row.id for row in group] == [trajectory.id]
    with pytest.raises(IndexError):
        group[1]


@pytest.mark.parametrize("per_turn", [False, True])
def test_groups_pickle_with_their_advantages(per_turn):
    trajectories = played(1.0, 0.0)
    for trajectory in trajectories:
        trajectory.turns[0].reward = trajectory.reward
    group = tt.Group(trajectories, id="a", env="e").with_advantages("rloo", per_turn=per_turn)
    copy = pickle.loads(pickle.dumps(group))
    assert (copy.id, copy.env, copy.zero_variance) == ("a", "e", False)
    assert rows(copy) == rows(group)


MERGED = {
    "turns that extend": (
        [([1], [2]), ([1, 2, 3], [4]), ([1, 2, 3, 4, 5], [6])],
        [([1, 2, 3, 4, 5, 6], [0, 1, 0, 1, 0, 1], [0, 1, 0, 1, 0, 1])],
    ),
    "a branch trains shared tokens once": (
        [([1], [2, 3]), ([1, 2, 3, 4], [5]), ([1, 2, 3, 7], [8])],
        [([1, 2, 3, 4, 5], [0, 1, 1, 0, 1], [0, 1, 1, 0, 1]), ([1, 2, 3, 7, 8], [0, 1, 1, 0, 1], [0, 0, 0, 0, 1])],
    ),
    "a prompt that was rewritten": (
        [([1, 2], [3]), ([1, 9], [4])],
        [([1, 2, 3], [0, 0, 1], [0, 0, 1]), ([1, 9, 4], [0, 0, 1], [0, 0, 1])],
    ),
}


@pytest.mark.parametrize(("turns", "expected"), MERGED.values(), ids=MERGED.keys())
def test_records_merge_into_the_fewest_trajectories(turns, expected):
    merged = tt.merge([{"prompt_token_ids": prompt, "token_ids": ids} for prompt, ids in turns])
    merged[0].reward = 1.0
    group = tt.Group(merged)
    assert group.rollouts == 1
    assert [(row["token_ids"], row["sampled_mask"], row["loss_mask"]) for row in rows(group)] == expected


def test_a_bad_record_is_named():
    with pytest.raises(tt.TrajectoryError, match="record 1: turn 1, token 0: the id -4"):
        tt.merge([{"prompt_token_ids": [1], "token_ids": [2]}, {"prompt_token_ids": [1, 2, 3], "token_ids": [-4]}])


def test_shared_tokens_carry_loss_in_the_first_row_with_the_mean_advantage():
    first = tt.Trajectory.from_prompt([1])
    first.act([2, 3])
    first.append([4])
    second = first.fork()
    for trajectory, reward in ((first, 1.0), (second, 0.0)):
        trajectory.act([5])
        trajectory.reward = reward
    for share, shared in (("mean", 0.0), ("sum", 0.0), ("first", 0.5)):
        group = tt.Group([first, second]).with_advantages("dr_grpo", share_credit=share)
        one, two = rows(group)
        assert (one["loss_mask"], two["loss_mask"]) == ([0, 1, 1, 0, 1], [0, 0, 0, 0, 1])
        assert one["advantages"] == [0, shared, shared, 0, 0.5]
        assert two["advantages"][4] == -0.5


def rows(group):
    return tt.Batch.from_groups([group]).to_pyarrow().to_pylist()


def test_the_gradient_of_shared_tokens_is_the_mean_of_their_rollouts():
    # A bigram policy: the gradient of the batch is that of the logprobs, each times the mean advantage of its rollouts.
    first = tt.Trajectory.from_prompt([0])
    first.act([1, 2])
    first.append([3])
    branches = [first, first.fork(), first.fork()]
    for trajectory, token, reward in zip(branches, (4, 1, 2), (1.0, 0.0, 0.5), strict=True):
        trajectory.act([token])
        trajectory.reward = reward
    alone = tt.Trajectory.from_prompt([0])
    alone.act([4])
    alone.reward = 3.0
    group = tt.Group([*branches, alone]).with_advantages("dr_grpo")
    logits = np.random.default_rng(0).normal(size=(5, 5))

    def logprob(table, before, token):
        return table[before, token] - np.log(np.exp(table[before]).sum())

    def objective(table):
        total = 0.0
        for row in rows(group):
            ids = row["token_ids"]
            for place in np.flatnonzero(row["loss_mask"]):
                total += row["advantages"][place] * logprob(table, ids[place - 1], ids[place])
        return total

    def credited(table):
        *own, other = group.advantages
        total = np.mean(own) * (logprob(table, 0, 1) + logprob(table, 1, 2)) + other * logprob(table, 0, 4)
        pairs = zip(own, (4, 1, 2), strict=True)
        return total + sum(advantage * logprob(table, 3, token) for advantage, token in pairs)

    assert gradient(objective, logits) == pytest.approx(gradient(credited, logits), abs=1e-6)


def gradient(function, table, step=1e-5):
    found = np.zeros_like(table)
    for place in np.ndindex(table.shape):
        shift = np.zeros_like(table)
        shift[place] = step
        found[place] = (function(table + shift) - function(table - shift)) / (2 * step)
    return found
