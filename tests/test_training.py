"""Conversations that were given, as rows for supervised fine-tuning."""

import json

import pyarrow as pa
import pytest

import tokentape as tt
from test_observe import CHAT

TALK = [
    {"role": "user", "content": "Hi <|im_end|>"},
    {"role": "assistant", "content": "Yo"},
    {"role": "user", "content": "And?"},
    {"role": "assistant", "content": "Well"},
]


def trained(row):
    return CHAT.decode(row["token_ids"][row["loss_mask"].astype(bool)])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "Yo<|im_end|>Well<|im_end|>"),
        ({"turns": "last"}, "Well<|im_end|>"),
        ({"turns": [1]}, "Yo<|im_end|>"),
        ({"roles": ["user"]}, "Hi <|im_end|>And?"),
    ],
)
def test_loss_lies_on_what_was_chosen(options, text):
    assert trained(CHAT.training_sample(TALK, **options)) == text


def test_ids_and_masks_are_those_of_a_rollout():
    trajectory = CHAT.start(TALK[:1])
    for answer, new in (("Yo", TALK[2:3]), ("Well", [])):
        trajectory.act(CHAT.encode(answer + "<|im_end|>"))
        trajectory = trajectory.observe(new, final=not new)
    row = CHAT.training_sample(TALK)
    assert row["token_ids"].tolist() == trajectory.token_ids.tolist()
    assert row["loss_mask"].astype(bool).tolist() == trajectory.loss_mask.tolist()


def test_a_column_becomes_a_batch():
    padded = [TALK, [{"role": "user", "content": "Q", "name": None}, {"role": "assistant", "content": "A"}]]
    for column in (padded, pa.array(padded), [json.dumps(talk) for talk in padded]):
        batch = tt.training_batch(CHAT, column)
        assert [row.loss_mask.sum() for row in batch.rows()] == [8, 2]
        assert [row.sampled_mask.sum() for row in batch.rows()] == [0, 0]
    assert len(tt.pack(batch, token_budget=200)) == 1


def test_the_conversation_at_fault_is_named():
    with pytest.raises(tt.ArgumentError) as refusal:
        tt.training_batch(CHAT, [TALK, TALK], turns=[9])
    assert refusal.value.__notes__ == ["conversation 0"]
