"""The fields that each trainer reads, from a reference written here from its conventions alone."""

from __future__ import annotations

import pytest

import tokentape as tt
from table_rows import full_row

ROWS = [full_row(index, prompt=3 + index, turns=(4,) * (1 + index % 3)) for index in range(6)]
BATCH = tt.Batch.from_rows(ROWS)


def parts(row: dict) -> tuple[int, list[int], list[int]]:
    """Where the response begins, the prompt, and the response."""
    start = row["sampled_mask"].index(1)
    return start, row["token_ids"][:start], row["token_ids"][start:]


def test_verl_agent_loop_outputs():
    for row, output in zip(ROWS, tt.feeds.to_verl(BATCH), strict=True):
        start, prompt, response = parts(row)
        assert output == {
            "prompt_ids": prompt, "response_ids": response, "response_mask": row["sampled_mask"][start:],
            "response_logprobs": row["logprobs"][start:], "reward_score": row["reward"], "num_turns": 1,
            "metrics": {},
        }  # fmt: skip


def test_verl_prefix_groups_count_prompts_and_responses():
    prompt = [1, 2, 3]
    rows = [{"token_ids": prompt + [4] * size, "sampled_mask": [0] * 3 + [1] * size} for size in (2, 5)]
    rows.append({"token_ids": [9, 8], "sampled_mask": [0, 1]})
    assert tt.feeds.verl_prefix_groups(tt.Batch.from_rows(rows)) == [[3, 2, 5], [1, 1]]


def test_skyrl_generator_output():
    output = tt.feeds.to_skyrl(BATCH)
    for index, row in enumerate(ROWS):
        start, prompt, response = parts(row)
        assert (output["prompt_token_ids"][index], output["response_ids"][index]) == (prompt, response)
        assert output["loss_masks"][index] == row["loss_mask"][start:]
        assert output["rollout_logprobs"][index] == row["logprobs"][start:]
        assert output["stop_reasons"][index] == row["turns"][-1]["finish_reason"]
        assert output["trajectory_ids"][index].to_string() == f"item-{index // 2}_{index % 2}"
    assert output["rewards"] == [row["reward"] for row in ROWS]
    assert output["is_last_step"] == [True] * 6
    without = tt.Batch.from_rows([row | {"logprobs": None} for row in ROWS])
    assert tt.feeds.to_skyrl(without)["rollout_logprobs"] is None


def test_slime_samples_cover_the_response():
    for row, sample in zip(ROWS, tt.feeds.to_slime(BATCH), strict=True):
        start, _, response = parts(row)
        assert sample["tokens"] == row["token_ids"]
        assert (
            sample["response_length"] == len(response) == len(sample["loss_mask"]) == len(sample["rollout_log_probs"])
        )
        assert sample["loss_mask"] == row["loss_mask"][start:]
        assert sample["weight_versions"] == [str(row["policy_versions"][0]["version"])]
        assert sample["status"] == {"stop": "completed", "length": "truncated"}[row["turns"][-1]["finish_reason"]]


def test_areal_ranges_spell_the_rows():
    prompt = [7, 7, 7]
    rows = [{"token_ids": [*prompt, *end], "sampled_mask": [0, 0, 0] + [1] * len(end)} for end in ([1], [1, 2], [3])]
    (packed,) = tt.pack(tt.Batch.from_rows(rows), token_budget=32, share_prefixes=True, align=16, pad_token_id=0)
    for row, ranges in tt.feeds.areal_sequence_ranges(packed).items():
        spelled = [token for first, last in ranges for token in packed.input_ids[first : last + 1].tolist()]
        assert spelled == rows[row]["token_ids"]


def test_prime_rl_micro_batches():
    packed = next(iter(tt.pack(BATCH, token_budget=256)))
    micro = tt.feeds.to_prime_rl(packed, temperature=0.7, env="arithmetic")
    per_token = (
        "input_ids",
        "loss_mask",
        "advantages",
        "inference_logprobs",
        "position_ids",
        "temperatures",
        "env_names",
    )
    assert {len(micro[name]) for name in per_token} == {len(packed)}
    assert sum(micro["seq_lens"]) == len(packed)
    assert micro["loss_mask"] == packed.loss_mask.astype(bool).tolist()
    tree = next(iter(tt.pack(BATCH, token_budget=256, share_prefixes=True)))
    with pytest.raises(tt.SchemaError, match="share_prefixes=False"):
        tt.feeds.to_prime_rl(tree, temperature=1.0)


def test_tinker_data_are_shifted_by_one():
    for row, datum in zip(ROWS, tt.feeds.to_tinker_shifted(BATCH), strict=True):
        inputs = datum["loss_fn_inputs"]
        assert datum["model_input"].tolist() == row["token_ids"][:-1]
        assert inputs["target_tokens"].tolist() == row["token_ids"][1:]
        for place, token in enumerate(range(1, len(row["token_ids"]))):
            trained = row["loss_mask"][token]
            assert inputs["mask"][place] == trained
            assert inputs["logprobs"][place] == (row["logprobs"][token] if trained else 0.0)
            assert inputs["advantages"][place] == (row["advantages"][token] if trained else 0.0)


def test_openrlhf_ranges_are_the_sampled_runs():
    for row, output in zip(ROWS, tt.feeds.to_openrlhf(BATCH), strict=True):
        assert output["observation_tokens"] == row["token_ids"]
        assert output["action_ranges"] == [(turn["start"], turn["end"]) for turn in row["turns"]]
        assert len(output["rollout_log_probs"]) == len(row["token_ids"])
        assert output["truncated"] == (row["turns"][-1]["finish_reason"] == "length")


def test_a_trainer_with_one_mask_gets_the_choice_not_the_fact():
    row = ROWS[0] | {"loss_mask": [0, 0, 0, 1, 0, 0, 1], "loss_weight": None}
    batch = tt.Batch.from_rows([row])
    assert row["sampled_mask"] == [0, 0, 0, 1, 1, 1, 1]
    assert tt.feeds.to_verl(batch)[0]["response_mask"] == [1, 0, 0, 1]
    assert tt.feeds.to_openrlhf(batch)[0]["action_ranges"] == [(3, 4), (6, 7)]
    assert tt.feeds.to_skyrl(batch)["loss_masks"] == [[1, 0, 0, 1]]
    assert tt.feeds.to_slime(batch)[0]["loss_mask"] == [1, 0, 0, 1]


@pytest.mark.parametrize("name", ["to_verl", "to_skyrl", "to_slime", "to_openrlhf"])
def test_rows_that_are_no_rollout_are_refused(name):
    feed = getattr(tt.feeds, name)
    with pytest.raises(tt.SchemaError, match="no sampled token"):
        feed(tt.Batch.from_rows([ROWS[0] | {"sampled_mask": [0] * 7, "policy_versions": None}]))
    with pytest.raises(tt.SchemaError, match="has several rows"):
        feed(tt.Batch.from_rows([ROWS[0], ROWS[0]]))


@pytest.mark.parametrize(("name", "column"), [
    ("to_areal", "logprobs"), ("to_areal", "reward"), ("to_skyrl", "reward"),
    ("to_tinker_shifted", "logprobs"), ("to_tinker_shifted", "advantages"),
])  # fmt: skip
def test_what_a_trainer_needs_and_a_row_lacks_is_named(name, column):
    with pytest.raises(tt.SchemaError, match=f"row 1 .*trajectory-1.* has no {column}"):
        getattr(tt.feeds, name)(tt.Batch.from_rows([ROWS[0], ROWS[1] | {column: None}]))
