"""Shared prefixes in a small model, in float64: logits, loss and gradients are those of the rows one by one."""

from __future__ import annotations

import numpy as np
import pytest

import tokentape as tt

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def model():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=61, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, use_cache=False, attn_implementation="sdpa",
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    for layer in [*model.model.layers, model.model]:  # the model's own norm computes in float32 whatever it is given
        for name in ("input_layernorm", "post_attention_layernorm", "norm"):
            if hasattr(layer, name):
                setattr(layer, name, torch.nn.RMSNorm(32, eps=1e-6))
    return model.double().eval()


def fork_rows(seed: int = 0) -> list[dict]:
    """Two groups: prompts in common, then turns, forks inside a turn, and rewards that differ by branch."""
    draw = np.random.default_rng(seed)
    rows = []
    for group in range(2):
        prompt = draw.integers(0, 61, 9)
        turn, observed = draw.integers(0, 61, 6), draw.integers(0, 61, 4)
        for branch in range(4):
            cut = (6, 6, 3, 0)[branch]  # the last two leave inside the turn, and before it
            tail = draw.integers(0, 61, 5 + branch)
            parts = [(prompt, 0), (turn[:cut], 1), *([(observed, 0)] if cut == 6 else []), (tail, 1)]
            ids = np.concatenate([part for part, _ in parts])
            mask = np.concatenate([np.full(len(part), sampled) for part, sampled in parts]).astype(np.uint8)
            rows.append({
                "token_ids": ids, "sampled_mask": mask, "logprobs": np.where(mask, -1.5, 0.0),
                "advantages": np.where(mask, float(draw.normal()), 0.0), "group_id": f"item-{group}",
            })  # fmt: skip
    return rows


def one_by_one(model, rows):
    """The policy-gradient loss of all rows, and the logits of each."""
    loss, logits = torch.zeros((), dtype=torch.float64), []
    for row in rows:
        ids = torch.as_tensor(np.asarray(row["token_ids"]), dtype=torch.int64)[None]
        found = model(input_ids=ids).logits[0]
        logits.append(found.detach())
        chosen = found[:-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        weight = torch.as_tensor(row["sampled_mask"] * row["advantages"])[1:]
        loss = loss - (weight * chosen).sum()
    return loss, logits


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def tree_loss(model, packed):
    tensors = tt.feeds.to_torch_tree(packed)
    names = ("input_ids", "position_ids", "attention_mask")
    logits = model(**{name: tensors[name] for name in names}).logits[0]
    logprobs = logits[tensors["predicted_from"]].log_softmax(-1).gather(1, tensors["targets"][:, None])[:, 0]
    weights = tensors["weights"].double() * tensors["advantages"].double()
    return -(weights * logprobs).sum(), logits


@pytest.mark.parametrize("mode", [True, "single_next"])
@pytest.mark.parametrize("seed", range(3))
def test_logits_loss_and_gradients_equal_the_rows_one_by_one(model, mode, seed):
    rows = fork_rows(seed)
    for row in rows:  # float32 in the table: the same number on both sides
        row["advantages"] = row["advantages"].astype(np.float32).astype(np.float64)
    expected, logits = one_by_one(model, rows)
    expected_gradients = gradients(model, expected)
    packing = tt.pack(tt.Batch.from_rows(rows), token_budget=60, share_prefixes=mode, align=4, pad_token_id=0)
    assert len(packing) > 1
    assert packing.report.shared > 0
    loss = torch.zeros((), dtype=torch.float64)
    for packed in packing:
        found, tree_logits = tree_loss(model, packed)
        loss = loss + found
        paths = tt.feeds.tree.segment_paths(packed)
        for row, leaf in zip(packed.leaf_row.tolist(), packed.leaf_segment.tolist(), strict=True):
            places = torch.as_tensor(paths[leaf])
            assert torch.allclose(tree_logits[places], logits[row], rtol=0, atol=1e-9)
    # A merged advantage is a mean in float32; its rounding is the only difference.
    tolerance = 1e-9 if packing.report.merged == 0 else 1e-5
    assert abs(loss.item() - expected.item()) <= tolerance
    for found, wanted in zip(gradients(model, loss), expected_gradients, strict=True):
        assert torch.allclose(found, wanted, rtol=0, atol=tolerance)


def test_a_fork_whose_branches_have_other_rewards_is_exact(model):
    """Each sampled token has its loss in one row, as groups write it: nothing is rounded, so all agrees to 1e-9."""
    rows = fork_rows()
    seen: set[tuple] = set()
    for row in rows:
        row["advantages"] = row["advantages"].astype(np.float32).astype(np.float64)
        loss = row["sampled_mask"].copy()
        for place in range(len(loss)):
            key = tuple(row["token_ids"][: place + 1])
            loss[place] &= key not in seen
            seen.add(key)
        row["loss_mask"], row["sampled_mask"] = loss, loss
        row["logprobs"] = np.where(loss, -1.5, 0.0)
        row["advantages"] = np.where(loss, row["advantages"], 0.0)
    expected, _ = one_by_one(model, rows)
    expected_gradients = gradients(model, expected)
    packing = tt.pack(tt.Batch.from_rows(rows), token_budget=1000, share_prefixes=True)
    assert packing.report.merged == 0
    loss = sum(tree_loss(model, packed)[0] for packed in packing)
    assert abs(loss.item() - expected.item()) <= 1e-9
    for found, wanted in zip(gradients(model, loss), expected_gradients, strict=True):
        assert torch.allclose(found, wanted, rtol=0, atol=1e-9)


def test_the_flex_mask_is_the_exact_mask():
    attention = pytest.importorskip("torch.nn.attention.flex_attention")
    (packed,) = tt.pack(tt.Batch.from_rows(fork_rows()), token_budget=1000, share_prefixes=True)
    count = len(packed)
    found = attention.create_mask(tt.feeds.flex_mask(packed), 1, 1, count, count, device="cpu")
    assert torch.equal(found[0, 0], torch.as_tensor(tt.feeds.tree_mask(packed)))
    query, key, value = torch.randn(3, 1, 2, count, 16, dtype=torch.float64)
    block = attention.create_block_mask(tt.feeds.flex_mask(packed), None, None, count, count, device="cpu")
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=found)
    with pytest.warns(UserWarning, match="flex_attention"):
        flexible = attention.flex_attention(query, key, value, block_mask=block)
    assert torch.allclose(flexible, expected, atol=1e-12)


def test_dlpack_gives_torch_the_same_memory():
    batch = tt.Batch.from_rows(fork_rows())
    tensor = torch.from_dlpack(batch.column("token_ids"))
    assert tensor.data_ptr() == np.asarray(batch.column("token_ids")).ctypes.data
    assert torch.from_dlpack(batch.column("sampled_mask")).view(torch.bool).dtype == torch.bool
    (packed,) = tt.pack(batch, token_budget=1000)
    ids = torch.from_dlpack(packed.column("input_ids"))
    expected = packed.input_ids.tolist()
    del packed, batch
    assert ids.tolist() == expected
