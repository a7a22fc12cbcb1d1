"""Advantages over a whole batch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokentape as tt
from table_rows import finite, full_row

ROWS = [full_row(index, turns=(2,) * (1 + index % 3)) for index in range(6)]
BATCH = tt.Batch.concat([tt.Batch.from_rows(ROWS[:2]), tt.Batch.from_rows(ROWS[2:])])


def flat(batch: tt.Batch, name: str) -> np.ndarray:
    return np.concatenate([np.asarray(getattr(row, name)) for row in batch.rows()])


def test_reinforce_pp_is_the_whitened_reward():
    found = BATCH.with_advantages("reinforce_pp")
    sampled = flat(BATCH, "sampled_mask").astype(bool)
    rewards = np.repeat([row["reward"] for row in ROWS], [len(row["token_ids"]) for row in ROWS])
    expected = (rewards - rewards[sampled].mean()) / rewards[sampled].std(ddof=1)
    assert flat(found, "advantages") == pytest.approx(np.where(sampled, expected, 0.0), abs=1e-6)
    assert flat(found, "token_ids").tolist() == flat(BATCH, "token_ids").tolist()


def test_whiten_uses_tokens_with_loss_and_writes_sampled_ones():
    rows = [row | {"loss_mask": [0] * 5 + row["loss_mask"][5:]} for row in ROWS]
    batch = tt.Batch.from_rows([row for row in rows if any(row["loss_mask"])])
    found, before = flat(batch.with_advantages("whiten"), "advantages"), flat(batch, "advantages")
    loss, sampled = flat(batch, "loss_mask").astype(bool), flat(batch, "sampled_mask").astype(bool)
    expected = (before - before[loss].mean()) / before[loss].std(ddof=1)
    assert found == pytest.approx(np.where(sampled, expected, 0.0), abs=1e-6)


def test_equal_rewards_give_zeros():
    batch = tt.Batch.from_rows([row | {"reward": 2.0} for row in ROWS]).with_advantages("reinforce_pp")
    assert not flat(batch, "advantages").any()


def test_given_values_by_row_and_by_token_and_by_function():
    by_row = BATCH.with_advantages([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    sampled = flat(BATCH, "sampled_mask")
    lengths = [len(row["token_ids"]) for row in ROWS]
    assert flat(by_row, "advantages").tolist() == (np.repeat(np.arange(1.0, 7.0), lengths) * sampled).tolist()
    tokens = np.arange(sum(lengths), dtype=np.float64)
    assert flat(BATCH.with_advantages(lambda _: tokens), "advantages").tolist() == (tokens * sampled).tolist()


def test_bad_input():
    with pytest.raises(tt.ArgumentError, match=r"7 advantages for .* tokens"):
        BATCH.with_advantages([0.0] * 7)
    with pytest.raises(tt.ArgumentError, match="is none of"):
        BATCH.with_advantages("ppo")
    with pytest.raises(tt.ArgumentError, match="not finite"):
        BATCH.with_advantages([float("nan")] * 6)
    with pytest.raises(tt.SchemaError, match=r"row 1 .* has no reward"):
        tt.Batch.from_rows([ROWS[0], ROWS[1] | {"reward": None}]).with_advantages("reinforce_pp")
    with pytest.raises(tt.SchemaError, match=r"row 0 .* has no advantages"):
        tt.Batch.from_rows([ROWS[0] | {"advantages": None}]).with_advantages("whiten")


def slow_to_come(rewards, values, sampled, discount, trace):
    """Generalised advantage estimation as its equation says it, over the sampled tokens of one row."""
    own, places = [], [token for token, one in enumerate(sampled) if one]
    for start, end in zip(places, [*places[1:], len(sampled)], strict=True):
        own.append(sum(rewards[start:end]))
    deltas = []
    for number, place in enumerate(places):
        after = values[places[number + 1]] if number + 1 < len(places) else 0.0
        deltas.append(own[number] + discount * after - values[place])
    found = [0.0] * len(sampled)
    for number, place in enumerate(places):
        found[place] = sum((discount * trace) ** ahead * delta for ahead, delta in enumerate(deltas[number:]))
    return found


@given(st.data(), st.floats(0, 1), st.floats(0, 1))
def test_gae_equals_its_equation(data, discount, trace):
    lengths = [len(row["token_ids"]) for row in ROWS]
    draw = lambda: np.array(data.draw(st.lists(finite, min_size=sum(lengths), max_size=sum(lengths))), np.float32)  # noqa: E731
    rewards, values = draw(), draw()
    found = flat(
        BATCH.with_advantages("gae", rewards=rewards, values=values, discount=discount, trace=trace), "advantages"
    )
    expected = []
    for row, end in zip(ROWS, np.cumsum(lengths), strict=True):
        place = slice(end - len(row["token_ids"]), end)
        own = (rewards[place].astype(float), values[place].astype(float))
        expected += slow_to_come(*own, row["sampled_mask"], discount, trace)
    assert found == pytest.approx(np.array(expected), rel=1e-4, abs=1e-2)


def test_rewards_of_turns_and_rows():
    turns = [turn | {"reward": 1.0} for turn in ROWS[1]["turns"]]
    batch = tt.Batch.from_rows([ROWS[1] | {"turns": turns, "reward": 4.0}])
    sampled = flat(batch, "sampled_mask").astype(bool)
    zeros = np.zeros(len(sampled))
    by_turn = batch.with_advantages("gae", rewards="turns", values=zeros, discount=0.5)
    assert flat(by_turn, "advantages")[sampled].tolist() == [0.5 + 0.125, 1.25, 0.5, 1.0]
    by_row = batch.with_advantages("gae", values=zeros, discount=0.5)
    assert flat(by_row, "advantages")[sampled].tolist() == [0.5, 1.0, 2.0, 4.0]


def test_a_discount_comes_before_the_whitening():
    found = flat(BATCH.with_advantages("reinforce_pp", discount=0.9), "advantages")
    to_come = flat(BATCH.with_advantages("gae", values=np.zeros(len(found)), discount=0.9), "advantages")
    sampled = flat(BATCH, "sampled_mask").astype(bool)
    expected = (to_come - to_come[sampled].mean()) / to_come[sampled].std(ddof=1)
    assert found[sampled] == pytest.approx(expected[sampled], abs=1e-5)


def test_the_baseline_is_the_mean_of_the_groups_rollouts():
    found = flat(BATCH.with_advantages("reinforce_pp_baseline"), "advantages")
    sampled = flat(BATCH, "sampled_mask").astype(bool)
    lengths = [len(row["token_ids"]) for row in ROWS]
    centred = np.repeat([row["reward"] - (row["reward"] // 2 * 2 + 0.5) for row in ROWS], lengths)
    expected = (centred - centred[sampled].mean()) / centred[sampled].std(ddof=1)
    assert found[sampled] == pytest.approx(expected[sampled], abs=1e-5)


def test_bad_input_over_time():
    tokens = sum(len(row["token_ids"]) for row in ROWS)
    with pytest.raises(tt.ArgumentError, match="needs values="):
        BATCH.with_advantages("gae")
    with pytest.raises(tt.ArgumentError, match=f"3 values for {tokens} tokens"):
        BATCH.with_advantages("gae", values=[0.0] * 3)
    with pytest.raises(tt.ArgumentError, match=f"2 rewards for {tokens} tokens"):
        BATCH.with_advantages("reinforce_pp", rewards=[0.0] * 2)
    with pytest.raises(tt.ArgumentError, match=r"discount=1\.5"):
        BATCH.with_advantages("reinforce_pp", discount=1.5)
    with pytest.raises(tt.ArgumentError, match='rewards="steps"'):
        BATCH.with_advantages("reinforce_pp", rewards="steps")
    with pytest.raises(tt.SchemaError, match="no reward of turn 1"):
        tt.Batch.from_rows([ROWS[1]]).with_advantages("reinforce_pp", rewards="turns")
