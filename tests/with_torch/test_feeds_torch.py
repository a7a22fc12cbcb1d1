"""Feeds for torch: no copies, the consumer's own conventions, and the loss of the unpacked computation."""

from __future__ import annotations

import numpy as np
import pytest

import tokentape as tt
from table_rows import full_row

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ROWS = [full_row(index, prompt=3 + index, turns=(4,) * (1 + index % 3)) for index in range(6)]
for _row in ROWS:
    _row["token_ids"] = [(7 * token + 3) % 97 for token in _row["token_ids"]]


def packed_of(rows, **options):
    return next(iter(tt.pack(tt.Batch.from_rows(rows), **{"token_budget": 256} | options)))


def test_tensors_share_the_memory_and_outlive_the_packed_batch():
    packed = packed_of(ROWS)
    arrays = {
        name: getattr(packed, name) for name in ("input_ids", "loss_mask", "logprobs", "advantages", "cu_seqlens")
    }
    tensors = tt.feeds.to_torch(packed)
    assert {name: tensors[name].data_ptr() for name in arrays} == {n: a.ctypes.data for n, a in arrays.items()}
    expected = packed.input_ids.tolist()
    del packed, arrays
    assert tensors["input_ids"].tolist() == expected


def test_types_and_shapes():
    tensors = tt.feeds.to_torch(packed_of(ROWS), with_labels=True, with_shifted_labels=True)
    kinds = {name: tensor.dtype for name, tensor in tensors.items() if name != "max_seqlen"}
    assert kinds == {
        "input_ids": torch.int32, "position_ids": torch.int32, "segment_ids": torch.int32,
        "sampled_mask": torch.bool, "loss_mask": torch.bool, "loss_weight": torch.float32, "logprobs": torch.float32,
        "advantages": torch.float32, "policy_version": torch.int64, "cu_seqlens": torch.int32,
        "seq_lens": torch.int32, "labels": torch.int64, "shifted_labels": torch.int64,
    }  # fmt: skip
    assert tensors["max_seqlen"] == tensors["seq_lens"].max()
    assert torch.equal(tensors["shifted_labels"][:-1], tensors["labels"][1:])
    assert torch.equal(tensors["labels"] >= 0, tensors["loss_mask"])
    assert "attention_mask" not in tensors


def test_a_tensor_held_while_iterating_to_the_end_stays_equal():
    packing = tt.pack(tt.Batch.from_rows([full_row(index % 50, prompt=40) for index in range(2000)]), token_budget=100)
    first = tt.feeds.to_torch(next(iter(packing)))
    copies = {name: tensor.clone() for name, tensor in first.items() if name != "max_seqlen"}
    for packed in packing:
        tt.feeds.to_torch(packed)
    assert all(torch.equal(first[name], copy) for name, copy in copies.items())


def test_hf_equals_the_collator_of_transformers():
    transformers = pytest.importorskip("transformers")
    packed = packed_of(ROWS)
    features = [
        {"input_ids": ROWS[row]["token_ids"],
         "labels": np.where(ROWS[row]["loss_mask"], ROWS[row]["token_ids"], -100).tolist()}
        for row in packed.row.tolist()
    ]  # fmt: skip
    collator = transformers.DataCollatorWithFlattening(return_flash_attn_kwargs=True, return_seq_idx=True)
    expected, found = collator(features), tt.feeds.to_hf_flattening(packed)
    assert set(found) == set(expected)
    for name, value in expected.items():
        if isinstance(value, torch.Tensor):
            assert found[name].dtype == value.dtype
            assert torch.equal(found[name], value), name
        else:
            assert found[name] == value


@pytest.fixture(scope="module")
def model():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=97, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4
    )
    config.use_cache = False
    return transformers.LlamaForCausalLM(config).eval()


def test_the_loss_of_a_packed_batch_equals_the_unpacked_one(model):
    inputs = tt.feeds.to_hf_flattening(packed_of(ROWS))
    assert inputs["cu_seq_lens_q"][-1] == inputs["input_ids"].shape[1]
    packed_loss = model(**{name: inputs[name] for name in ("input_ids", "position_ids", "labels")}).loss
    total, count = 0.0, 0
    for row in ROWS:
        labels = torch.tensor([[-100, *np.where(row["loss_mask"], row["token_ids"], -100)[1:]]])
        trained = int((labels != -100).sum())
        total += model(input_ids=torch.tensor([row["token_ids"]]), labels=labels).loss.item() * trained
        count += trained
    assert packed_loss.item() == pytest.approx(total / count, rel=1e-5)


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_loss_of_a_padded_batch_equals_the_packed_one(model, side):
    padded = tt.feeds.to_torch_padded(tt.Batch.from_rows(ROWS), pad_token_id=0, side=side, with_labels=True)
    names = ("input_ids", "position_ids", "attention_mask", "labels")
    inputs = tt.feeds.to_hf_flattening(packed_of(ROWS))
    packed_loss = model(**{name: inputs[name] for name in ("input_ids", "position_ids", "labels")}).loss
    loss = model(**{name: padded[name].long() for name in names}).loss
    assert loss.item() == pytest.approx(packed_loss.item(), rel=1e-5)


def test_padding_stands_where_it_was_asked_for():
    batch = tt.Batch.from_rows([{"token_ids": [1, 2, 3], "sampled_mask": [1, 1, 1]}, {"token_ids": [4]}])
    left = tt.feeds.to_torch_padded(batch, pad_token_id=9, side="left", multiple_of=4)
    assert left["input_ids"].tolist() == [[9, 1, 2, 3], [9, 9, 9, 4]]
    assert left["attention_mask"].int().tolist() == [[0, 1, 1, 1], [0, 0, 0, 1]]
    assert left["loss_mask"].int().tolist() == [[0, 0, 1, 1], [0, 0, 0, 0]]
    assert "logprobs" not in left


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_gives_every_bin_once(tmp_path, workers):
    tt.Batch.from_rows(ROWS * 4).write(tmp_path / "a.arrow")
    dataset = tt.feeds.PackedDataset(tmp_path / "a.arrow", token_budget=64)
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=None, num_workers=workers, multiprocessing_context="spawn" if workers else None
    )
    found = sorted(tensors["input_ids"].tolist() for tensors in loader)
    assert found == sorted(p.input_ids.tolist() for p in tt.pack(tt.Batch.from_rows(ROWS * 4), token_budget=64))


def test_a_trainer_of_transformers_takes_a_step(tmp_path, model):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    packing = tt.pack(tt.Batch.from_rows(ROWS), token_budget=64)
    features = [
        {n: v for n, v in tt.feeds.to_hf_flattening(packed).items() if n in {"input_ids", "labels", "position_ids"}}
        for packed in packing
    ]
    arguments = transformers.TrainingArguments(
        tmp_path, max_steps=1, per_device_train_batch_size=1, report_to=[], save_strategy="no", use_cpu=True
    )
    trainer = transformers.Trainer(model, arguments, train_dataset=features, data_collator=lambda given: given[0])
    assert trainer.train().training_loss > 0
