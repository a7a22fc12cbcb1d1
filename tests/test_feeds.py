"""Feeds that need no torch: TRL and Atropos."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokentape as tt
from table_rows import full_row

ROWS = [full_row(index) for index in range(4)]


def test_trl_rollout_splits_at_the_first_sampled_token():
    rollout = tt.feeds.to_trl_rollout(tt.Batch.from_rows(ROWS), prompts=["p"] * 4)
    assert rollout["prompt_ids"][1] == ROWS[1]["token_ids"][:3]
    assert rollout["completion_ids"][1] == ROWS[1]["token_ids"][3:]
    assert rollout["env_mask"][1] == [1, 1, 1, 1, 0, 0, 1, 1]
    assert rollout["logprobs"][1] == ROWS[1]["logprobs"][3:]
    assert rollout["reward"] == [0.0, 1.0, 2.0, 3.0]
    assert all(type(token) is int for token in rollout["prompt_ids"][0])


def test_trl_refuses_what_it_would_pass_over_silently():
    batch = tt.Batch.from_rows(ROWS)
    with pytest.raises(tt.ArgumentError, match="4 rows for 5 prompts"):
        tt.feeds.to_trl_rollout(batch, prompts=["p"] * 5)
    with pytest.raises(tt.SchemaError, match="rollout 'rollout-0' has several rows"):
        tt.feeds.to_trl_rollout(tt.Batch.from_rows([ROWS[0], ROWS[0]]))
    with pytest.raises(tt.SchemaError, match="no logprobs"):
        tt.feeds.to_trl_rollout(tt.Batch.from_rows([ROWS[0] | {"logprobs": None}]))
    with pytest.raises(tt.SchemaError, match="no sampled token"):
        tt.feeds.to_trl_rollout(tt.Batch.from_rows([{"token_ids": [1, 2]}]))


def test_atropos_groups_obey_its_rules():
    first, second = tt.feeds.to_atropos(tt.Batch.from_rows(ROWS))
    assert first["scores"] == [0.0, 1.0]
    assert second["tokens"][0] == ROWS[2]["token_ids"]
    for tokens, masks, logprobs in zip(first["tokens"], first["masks"], first["inference_logprobs"], strict=True):
        assert all(mask in (-100, token) for mask, token in zip(masks, tokens, strict=True))
        assert all((mask == -100) == (value == 1.0) for mask, value in zip(masks, logprobs, strict=True))


@given(st.data())
def test_atropos_and_back_keeps_ids_masks_scores_and_trained_logprobs(data):
    masks = data.draw(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=12), min_size=1, max_size=4))
    rows = [
        {"token_ids": np.arange(len(mask)) + 5, "sampled_mask": mask, "reward": float(index), "group_id": "g",
         "logprobs": [-0.5 * m for m in mask]}
        for index, mask in enumerate(masks)
    ]  # fmt: skip
    batch = tt.Batch.from_rows(rows)
    again = tt.feeds.from_atropos(tt.feeds.to_atropos(batch))
    for name in ("token_ids", "sampled_mask", "loss_mask", "logprobs", "reward"):
        assert [np.asarray(getattr(row, name)).tolist() for row in again.rows()] == [
            np.asarray(getattr(row, name)).tolist() for row in batch.rows()
        ]


GROUP = {"tokens": [[5, 6]], "masks": [[-100, 6]], "scores": [1.0], "inference_logprobs": [[1.0, -0.5]]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"masks": [[-100]]}, "group 0, row 0: `masks` has 1 values, `tokens` has 2"),
        ({"masks": [[-100, 7]]}, "group 0, row 0: the mask is neither -100 nor the token's id, at token 1"),
        ({"inference_logprobs": [[1.0, 1.0]]}, "group 0, row 0: a trained token has no logprob.*, at token 1"),
        ({"scores": [1.0, 2.0]}, "group 0: `scores` has 2 entries, `tokens` has 1"),
    ],
)
def test_a_broken_atropos_group_is_refused(change, message):
    with pytest.raises(tt.SchemaError, match=message):
        tt.feeds.from_atropos([GROUP | change])


def test_a_row_without_reward_has_no_score():
    with pytest.raises(tt.SchemaError, match="has no reward"):
        tt.feeds.to_atropos(tt.Batch.from_rows([{"token_ids": [1]}]))
