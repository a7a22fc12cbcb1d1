"""Advantages over a whole batch."""

from __future__ import annotations

import numpy as np
import pytest

import tokentape as tt
from table_rows import full_row

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
        BATCH.with_advantages("gae")
    with pytest.raises(tt.ArgumentError, match="not finite"):
        BATCH.with_advantages([float("nan")] * 6)
    with pytest.raises(tt.SchemaError, match=r"row 1 .* has no reward"):
        tt.Batch.from_rows([ROWS[0], ROWS[1] | {"reward": None}]).with_advantages("reinforce_pp")
    with pytest.raises(tt.SchemaError, match=r"row 0 .* has no advantages"):
        tt.Batch.from_rows([ROWS[0] | {"advantages": None}]).with_advantages("whiten")
