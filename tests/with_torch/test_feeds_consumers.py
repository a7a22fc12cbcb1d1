"""The installed consumers take what the feeds give, for one step, and compute the loss of the rows one by one."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import types

import numpy as np
import pytest

import tokentape as tt

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.torch


def group_rows(seed: int = 0, *, groups: int = 2, size: int = 3) -> list[dict]:
    """Groups of one prompt each; advantages differ by row."""
    draw = np.random.default_rng(seed)
    rows = []
    for group in range(groups):
        prompt = draw.integers(3, 61, 6 + group)
        for rollout in range(size):
            reply = draw.integers(3, 61, 4 + rollout)
            reply[0] = 3 + rollout  # rollouts leave each other at once
            mask = np.repeat([0, 1], [len(prompt), len(reply)]).astype(np.uint8)
            advantage = float(np.float32(draw.normal()))
            rows.append({
                "token_ids": np.concatenate([prompt, reply]).astype(np.int32), "sampled_mask": mask,
                "logprobs": np.where(mask, -1.5, 0.0).astype(np.float32),
                "advantages": (mask * advantage).astype(np.float32), "reward": advantage,
                "group_id": f"item-{group}", "rollout_id": f"{group}-{rollout}",
            })  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=61, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, use_cache=False
    )
    return transformers.LlamaForCausalLM(config).eval()


def supervised_loss(model, rows) -> float:
    """The mean over trained tokens of the cross entropy, row by row."""
    total, count = 0.0, 0
    with torch.no_grad():
        for row in rows:
            labels = torch.as_tensor(np.where(row["sampled_mask"], row["token_ids"], -100).astype(np.int64))[None]
            labels[0, 0] = -100
            trained = int((labels != -100).sum())
            ids = torch.as_tensor(row["token_ids"], dtype=torch.int64)[None]
            total += model(input_ids=ids, labels=labels).loss.item() * trained
            count += trained
    return total / count


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_trl_trains_on_packed_bins(tmp_path, model):
    trl = pytest.importorskip("trl")
    datasets = pytest.importorskip("datasets")
    rows = group_rows()
    (packed,) = tt.pack(tt.Batch.from_rows(rows), token_budget=256)
    row = tt.feeds.to_trl_sft(packed)
    config = trl.SFTConfig(
        str(tmp_path), max_steps=1, per_device_train_batch_size=1, report_to=[], save_strategy="no", use_cpu=True,
        padding_free=True, packing=False, max_length=None, dataset_kwargs={"skip_prepare_dataset": True},
        learning_rate=1e-3, logging_steps=1, bf16=False, remove_unused_columns=False,
    )  # fmt: skip
    expected = supervised_loss(model, rows)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    tokenizer = small_tokenizer()
    trainer = trl.SFTTrainer(model, config, train_dataset=datasets.Dataset.from_list([row]), processing_class=tokenizer)
    inputs = trainer.data_collator([row])
    assert "attention_mask" not in inputs
    assert torch.equal(inputs["position_ids"][0], torch.as_tensor(packed.position_ids.astype(np.int64)))
    assert torch.equal(inputs["cu_seq_lens_q"], torch.as_tensor(packed.cu_seqlens.copy()))
    assert trainer.train().training_loss == pytest.approx(expected, rel=1e-4)
    moved = [not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True)]
    assert any(moved)
    with torch.no_grad():
        for parameter, old in zip(model.parameters(), before, strict=True):
            parameter.copy_(old)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_trl_takes_a_grpo_step_on_rollouts(tmp_path, model, monkeypatch):
    trl = pytest.importorskip("trl")
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    rows = group_rows(groups=1, size=4)
    for row in rows:  # logprobs of the model itself: the policy that sampled
        ids = torch.as_tensor(row["token_ids"], dtype=torch.int64)[None]
        with torch.no_grad():
            own = model(input_ids=ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        row["logprobs"][1:] = own.numpy() * row["sampled_mask"][1:]
    config = trl.GRPOConfig(
        str(tmp_path), max_steps=1, per_device_train_batch_size=4, num_generations=4, report_to=[], save_strategy="no",
        use_cpu=True, bf16=False, max_completion_length=64, beta=0.0, loss_type="dapo", learning_rate=1e-3,
    )  # fmt: skip
    trainer = trl.GRPOTrainer(
        model, reward_funcs=[lambda completions, reward, **_: reward], args=config, processing_class=small_tokenizer(),
        train_dataset=datasets.Dataset.from_list([{"prompt": "t5"}] * 4),
        rollout_func=lambda prompts, _: tt.feeds.to_trl_rollout(tt.Batch.from_rows(rows), prompts=prompts),
    )  # fmt: skip
    compute, seen = trainer._compute_loss, []

    def watched(policy, inputs):
        loss = compute(policy, inputs)
        seen.append((loss.item(), torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)))
        return loss

    trainer._compute_loss = watched
    before = [parameter.detach().clone() for parameter in model.parameters()]
    trainer.train()
    after = [parameter.detach().clone() for parameter in model.parameters()]
    with torch.no_grad():
        for parameter, old in zip(model.parameters(), before, strict=True):
            parameter.copy_(old)
    assert any(not torch.equal(old, new) for old, new in zip(before, after, strict=True))
    rewards = np.array([row["reward"] for row in rows])
    advantages = (rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4)
    total = torch.zeros(())
    for row, advantage in zip(rows, advantages, strict=True):
        ids = torch.as_tensor(row["token_ids"], dtype=torch.int64)[None]
        own = model(input_ids=ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        ratio = torch.exp(own - own.detach()) * torch.as_tensor(row["sampled_mask"][1:].astype(np.float32))
        total = total - float(advantage) * ratio.sum()
    total = total / sum(int(row["sampled_mask"].sum()) for row in rows)
    ((loss, gradients),) = seen
    assert loss == pytest.approx(total.item(), abs=1e-5)
    for found, wanted in zip(gradients, torch.autograd.grad(total, list(model.parameters())), strict=True):
        assert torch.allclose(found, wanted, atol=1e-5)


def small_tokenizer():
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {f"t{index}": index for index in range(61)}
    engine = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="t0"))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=engine, pad_token="t0", eos_token="t1")


def test_the_tree_equals_the_tree_row_of_trl():
    packing_module = pytest.importorskip("trl.experimental.async_grpo.packing")
    rows = group_rows(groups=3, size=4)
    (packed,) = tt.pack(tt.Batch.from_rows(rows), token_budget=1024, share_prefixes="single_next")
    tree = packing_module.TreeRow()
    for index in packed.leaf_row.tolist():
        row = rows[index]
        tree.add({
            "input_ids": torch.as_tensor(row["token_ids"]), "completion_mask": torch.as_tensor(row["sampled_mask"]),
            "old_log_probs": torch.as_tensor(row["logprobs"]), "advantage": row["reward"], "group_id": row["group_id"],
        })  # fmt: skip
    expected, found = tree.pack(), tt.feeds.to_trl_tree(packed)
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name].dtype == value.dtype, name
        assert torch.equal(found[name], value), name


def test_the_loss_of_the_tree_row_is_that_of_the_rows(model):
    rows = group_rows(groups=2, size=3)
    (packed,) = tt.pack(tt.Batch.from_rows(rows), token_budget=1024, share_prefixes="single_next")
    tensors = tt.feeds.to_trl_tree(packed)
    mask = torch.as_tensor(tt.feeds.tree_mask(packed))[None, None]
    with torch.no_grad():
        logits = model(input_ids=tensors["input_ids"][None], position_ids=tensors["position_ids"][None],
                       attention_mask=mask).logits[0]  # fmt: skip
    labels = tensors["shift_labels"][tensors["token_index"]]
    logprobs = logits.log_softmax(-1)[tensors["token_index"]].gather(1, labels[:, None])[:, 0]
    expected = 0.0
    for row in rows:
        ids = torch.as_tensor(row["token_ids"], dtype=torch.int64)[None]
        with torch.no_grad():
            own = model(input_ids=ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        expected += float((own * torch.as_tensor(row["advantages"][1:])).sum())
    assert float((logprobs * tensors["advantages"]).sum()) == pytest.approx(expected, rel=1e-4)


def atropos_data():
    """The module of Atropos' example trainer that makes its batches; the rest of the trainer is not imported."""
    found = importlib.util.find_spec("example_trainer")
    if found is None or not found.submodule_search_locations:
        pytest.skip("atroposlib is not installed")
    package, api = types.ModuleType("atropos_trainer"), types.ModuleType("atropos_trainer.api")
    package.__path__, api.get_batch = list(found.submodule_search_locations), None
    sys.modules |= {"atropos_trainer": package, "atropos_trainer.api": api}
    return importlib.import_module("atropos_trainer.data")


def test_the_example_trainer_of_atropos_computes_the_loss_of_the_rows(model):
    rows = group_rows()
    groups = tt.feeds.to_atropos(tt.Batch.from_rows(rows))
    wire = [json.loads(json.dumps(group | {"overrides": None})) for group in groups]  # the server adds the key
    data = atropos_data()
    tokens, labels, advantages, _, logprobs = data.pad_data_to_good_offset({"batch": wire}, batch_size=2)
    found = 0.0
    for ids, label, advantage, behaviour in zip(tokens, labels, advantages, logprobs, strict=True):
        trained = label != -100
        assert (behaviour[trained] == -1.5).all()
        with torch.no_grad():
            scores = model(input_ids=ids).logits.log_softmax(-1).gather(2, label.clamp(min=0)[..., None])[..., 0]
        found += float((scores * trained * advantage).sum())
    expected = 0.0
    for place, row in enumerate(rows):
        rewards = np.array([other["reward"] for other in rows[place // 3 * 3 : place // 3 * 3 + 3]])
        advantage = (row["reward"] - rewards.mean()) / rewards.std()
        ids = torch.as_tensor(row["token_ids"], dtype=torch.int64)[None]
        with torch.no_grad():
            own = model(input_ids=ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        expected += float((own * torch.as_tensor(row["sampled_mask"][1:]) * advantage).sum())
    assert found == pytest.approx(expected, rel=1e-4)


def test_verl_tensors_compute_the_same_logprobs(model):
    rows = group_rows()
    tensors = tt.feeds.to_verl_tensors(tt.Batch.from_rows(rows), pad_token_id=0)
    with torch.no_grad():
        names = ("input_ids", "attention_mask", "position_ids")
        logits = model(**{name: tensors[name] for name in names}).logits
    width = tensors["responses"].shape[1]
    logprobs = logits[:, -width - 1 : -1].log_softmax(-1).gather(2, tensors["responses"][..., None])[..., 0]
    loss = -(logprobs * tensors["response_mask"]).sum() / tensors["response_mask"].sum()
    assert loss.item() == pytest.approx(supervised_loss(model, rows), rel=1e-4)
    assert tensors["token_level_scores"].sum(1).tolist() == pytest.approx([row["reward"] for row in rows])
    assert tensors["rollout_log_probs"].shape == tensors["responses"].shape


def test_tinker_data_compute_the_same_loss(model):
    rows = group_rows()
    total, count = 0.0, 0.0
    for datum in tt.feeds.to_tinker_shifted(tt.Batch.from_rows(rows)):
        inputs = {name: torch.as_tensor(value) for name, value in datum["loss_fn_inputs"].items()}
        with torch.no_grad():
            logits = model(input_ids=torch.as_tensor(datum["model_input"], dtype=torch.int64)[None]).logits[0]
        chosen = logits.log_softmax(-1).gather(1, inputs["target_tokens"][:, None])[:, 0]
        total, count = total - float((chosen * inputs["mask"]).sum()), count + float(inputs["mask"].sum())
    assert total / count == pytest.approx(supervised_loss(model, rows), rel=1e-4)


@pytest.mark.parametrize("side", ["left", "right"])
def test_buckets_of_neighbours_in_length_compute_the_same_loss(model, side):
    rows = group_rows(groups=4)
    total, count, seen = 0.0, 0, []
    for places, tensors in tt.feeds.bucketed(tt.Batch.from_rows(rows), tokens=40, pad_token_id=0, side=side,
                                             with_labels=True):  # fmt: skip
        assert tensors["input_ids"].numel() <= 40
        seen += places
        names = ("input_ids", "position_ids", "attention_mask", "labels")
        trained = int((tensors["labels"] != -100).sum())
        with torch.no_grad():
            total += model(**{name: tensors[name].long() for name in names}).loss.item() * trained
        count += trained
    assert sorted(seen) == list(range(len(rows)))
    assert total / count == pytest.approx(supervised_loss(model, rows), rel=1e-4)
    with pytest.raises(tt.BudgetError, match="row"):
        list(tt.feeds.bucketed(tt.Batch.from_rows(rows), tokens=3, pad_token_id=0))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterable_gives_every_bin_once_to_several_workers(tmp_path, workers):
    rows = group_rows(groups=5)
    tt.Batch.from_rows(rows).write(tmp_path / "a.arrow")
    dataset = tt.feeds.PackedIterable(tmp_path / "a.arrow", token_budget=32)
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=None, num_workers=workers, multiprocessing_context="spawn" if workers else None
    )
    found = sorted(tensors["input_ids"].tolist() for tensors in loader)
    assert found == sorted(p.input_ids.tolist() for p in tt.pack(tt.Batch.from_rows(rows), token_budget=32))
