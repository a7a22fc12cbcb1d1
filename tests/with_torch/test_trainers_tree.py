"""AReaL, ART and verl's prefix grouper on rows and on shared prefixes: their trees, their masks, and their losses."""

from __future__ import annotations

import types

import numpy as np
import pytest

import tokentape as tt
from table_rows import full_row
from trainers import AREAL, VERL, assert_same_step, clipped, group_rows, own_logprobs, trainer

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

ART = ("PIL", "dotenv", "litellm", "nest_asyncio", "peft", "weave", "tblib")

ROWS = [full_row(index, prompt=3 + index, turns=(4,) * (1 + index % 3)) for index in range(6)]
BATCH = tt.Batch.from_rows(ROWS)


def tree_logits(model, packed):
    """The model's logits over a bin, each token attending to its own beginning; padding to itself."""
    mask = torch.as_tensor(tt.feeds.tree_mask(packed))[None, None]
    ids, places = (torch.as_tensor(array.astype(np.int64))[None] for array in (packed.input_ids, packed.position_ids))
    return model(input_ids=ids, position_ids=places, attention_mask=mask).logits


def areal_loss(logprobs, data):
    """The loss of AReaL's actor, with the options of plain clipping."""
    actor = trainer("areal.trainer.ppo.actor", *AREAL)
    return actor.grpo_loss_fn(
        logprobs, torch.zeros_like(logprobs), data, eps_clip=0.2, eps_clip_higher=None, c_clip=None
    )


def areal_data(rows):
    """What AReaL's actor makes of the feed: masks and logprobs rolled by one, the reward on all trained tokens."""
    actor = trainer("areal.trainer.ppo.actor", *AREAL)
    settings = types.SimpleNamespace(overlong_reward_penalty=False, use_decoupled_loss=False, recompute_logprob=False)
    self = types.SimpleNamespace(
        config=settings, reward_bias=0.0, reward_scaling=1.0, reward_clip=100.0, reward_norm=None, kl_ctl=0.0,
        kl_estimator=lambda left, _: torch.zeros_like(left), mask_no_eos_with_zero=False, discount=1.0, gae_lambda=1.0,
        adv_norm=None,
    )  # fmt: skip
    return actor.PPOActor._compute_advantages(self, tt.feeds.to_areal(tt.Batch.from_rows(rows)))


def test_areal_computes_advantages_and_the_clipped_loss(model, rows):
    data = areal_data(rows)
    logits = model(input_ids=data["input_ids"], attention_mask=data["attention_mask"].long()).logits
    next_ids = torch.roll(data["input_ids"], -1, dims=-1)
    logprobs = logits.log_softmax(-1).gather(2, next_ids[..., None])[..., 0]
    assert_same_step(model, areal_loss(logprobs, data), clipped(model, rows, [row["reward"] for row in rows]))


def test_the_tree_is_that_of_areals_builder_node_by_node(rows):
    builder = trainer("areal.models.tree_attn.tree", *AREAL)
    ends = [row | {"token_ids": row["token_ids"][:-2], "sampled_mask": row["sampled_mask"][:-2]} for row in rows[:2]]
    given = [{"token_ids": row["token_ids"], "sampled_mask": row["sampled_mask"]} for row in [*rows, *ends, rows[0]]]
    width = max(len(row["token_ids"]) for row in given)
    lengths = torch.tensor([len(row["token_ids"]) for row in given])
    data = {
        "input_ids": torch.stack([
            torch.as_tensor(np.pad(row["token_ids"], (0, width - len(row["token_ids"])))) for row in given
        ]),
        "attention_mask": torch.arange(width)[None] < lengths[:, None],
    }  # fmt: skip
    ((trie,), (count,)) = builder._greedy_build_tries(data, 4096)
    (packed,) = tt.pack(tt.Batch.from_rows(given), token_budget=4096, share_prefixes=True)
    assert count == len(packed)
    ranges = tt.feeds.areal_sequence_ranges(packed)
    assert len(trie.nodes) == len(packed.seq_lens)
    places = {}
    for index, node in enumerate(trie.nodes):
        first, end = packed.cu_seqlens[index : index + 2].tolist()
        assert packed.input_ids[first:end].tolist() == node.tokens
        assert sorted(row for row, path in ranges.items() if (first, end - 1) in path) == sorted(set(node.sequence_ids))
        parent = int(packed.segment_parent[index])
        assert parent == (places[node.ancestors[-1].tree_indices] if node.ancestors else -1)
        places[node.tree_indices] = index
    for row in range(len(given)):
        theirs = [places[path] for path in trie.get_sequence_tree_indices(row)]
        ours = [int(np.searchsorted(packed.cu_seqlens, first, side="right")) - 1 for first, _ in ranges[row]]
        assert ours == theirs


def test_areal_gathers_the_logprobs_of_a_bin_and_computes_the_clipped_loss(model, rows):
    builder = trainer("areal.models.tree_attn.tree", *AREAL)
    functional = trainer("areal.models.tree_attn.functional", *AREAL)
    (packed,) = tt.pack(tt.Batch.from_rows(rows), token_budget=1024, share_prefixes=True, align=128, pad_token_id=0)
    assert len(packed) % 128 == 0
    nodes = {}
    for row, path in sorted(tt.feeds.areal_sequence_ranges(packed).items()):
        for first, last in path:
            tokens = packed.input_ids[first : last + 1].tolist()
            node = builder.TrieNode(tree_id=0, start_idx=first, end_idx=last, tokens=tokens)
            nodes.setdefault(first, node).sequence_ids.append(row)
    trie = builder.TrieNode(tree_id=0, nodes=[nodes[first] for first in sorted(nodes)])
    data = areal_data(rows)
    lengths = data["attention_mask"].sum(1).tolist()
    whole = {
        name: torch.cat([value[row, :length] for row, length in enumerate(lengths)])
        for name, value in data.items()
        if value.ndim == 2
    }
    ids = torch.as_tensor(packed.input_ids.astype(np.int64))
    found = functional._gather_packed_tree_logprobs(tree_logits(model, packed)[0], trie, ids)
    logprobs = torch.cat([found[row][:length] for row, length in enumerate(lengths)])
    for row, length in enumerate(lengths):
        own = own_logprobs(model, rows[row]["token_ids"])
        assert torch.allclose(found[row][: length - 1], own, atol=1e-5)
    assert_same_step(model, areal_loss(logprobs, whole), clipped(model, rows, [row["reward"] for row in rows]))


def test_areal_tensors_pad_on_the_right():
    arrays = tt.feeds.to_areal(BATCH, pad_token_id=5)
    width = max(len(row["token_ids"]) for row in ROWS)
    for index, row in enumerate(ROWS):
        length = len(row["token_ids"])
        assert arrays["input_ids"][index].tolist() == row["token_ids"] + [5] * (width - length)
        assert arrays["attention_mask"][index].tolist() == [True] * length + [False] * (width - length)
        assert arrays["loss_mask"][index, :length].tolist() == row["loss_mask"]
        assert arrays["logprobs"][index, :length].tolist() == row["logprobs"]
        version = row["policy_versions"][0]["version"]
        assert arrays["versions"][index, :length].tolist() == [version if one else -1 for one in row["sampled_mask"]]
        assert not arrays["logprobs"][index, length:].any()
    assert arrays["rewards"].tolist() == [row["reward"] for row in ROWS]


@pytest.mark.parametrize("share", [False, "prompt"])
def test_art_tensors_fill_with_its_own_fillers(share):
    packed = next(iter(tt.pack(BATCH, token_budget=256, share_prefixes=share, align=8, pad_token_id=1)))
    tensors = tt.feeds.to_art(packed, sequence_length=300)
    tokens = int((packed.segment_ids >= 0).sum())
    assert [tensors.pop(name) for name in ("pixel_values", "image_grid_thw")] == [[None], [None]]
    assert {tensor.shape for tensor in tensors.values()} == {(1, 300)}
    for name, filler in (("tokens", -100), ("group_ids", -1), ("parent_ids", -1), ("weights", 0), ("input_pos", 0)):
        assert set(tensors[name][0, tokens:].tolist()) == {filler}
    sampled, logprobs = packed.sampled_mask[:tokens].astype(bool), tensors["logprobs"][0].numpy()[:tokens]
    assert np.isnan(logprobs[~sampled]).all()
    assert (logprobs[sampled] == packed.logprobs[:tokens][sampled]).all()
    for place in range(tokens):
        segment = tensors["group_ids"][0, place]
        above = -1 if packed.segment_parent is None else packed.segment_parent[segment]
        assert tensors["parent_ids"][0, place] == (segment if above < 0 else above)
    with pytest.raises(tt.ArgumentError, match="sequence_length is 8"):
        tt.feeds.to_art(packed, sequence_length=8)


@pytest.mark.parametrize("share", [False, "prompt"])
def test_art_masks_a_bin_and_computes_its_loss(model, rows, share, tmp_path):
    pack = trainer("art.preprocessing.pack", *ART)
    loss_module = trainer("art.loss", *ART)
    train = trainer("art.unsloth.train", *ART)
    (packed,) = tt.pack(tt.Batch.from_rows(rows), token_budget=512, share_prefixes=share)
    tensors = tt.feeds.to_art(packed, sequence_length=512)
    assert set(tensors) == set(pack.PackedTensors.__annotations__)
    disk = pack.packed_tensors_to_dir(tensors, str(tmp_path))
    inputs = {name: value for name, value in pack.packed_tensors_from_dir(**disk).items() if torch.is_tensor(value)}
    for name, value in inputs.items():
        assert torch.equal(torch.nan_to_num(value), torch.nan_to_num(tensors[name])), name
    groups, parents = inputs["group_ids"], inputs["parent_ids"]
    seen = train.calculate_mask(1, 512, "cpu", groups, parents)
    logits = model(
        input_ids=inputs["tokens"].clamp(min=0), position_ids=inputs["input_pos"], attention_mask=seen[:, None]
    ).logits
    next_ids = loss_module.shift_tensor(inputs["tokens"], 0).clamp(min=0)
    logprobs = logits.log_softmax(-1).gather(2, next_ids[..., None])[..., 0]
    found = loss_module.loss_fn(inputs, logprobs, None, None, {"ppo": True}).policy_loss
    assert_same_step(model, found, clipped(model, rows, [row["reward"] for row in rows]))


def test_a_tree_that_art_would_misread_is_refused(rows):
    (packed,) = tt.pack(tt.Batch.from_rows(rows), token_budget=512, share_prefixes=True)
    with pytest.raises(tt.ArgumentError, match="does not follow"):
        tt.feeds.to_art(packed, sequence_length=512)
    deep = [
        {"token_ids": [1, *middle, last], "sampled_mask": [0] * (1 + len(middle)) + [1]}
        for middle, last in (((2, 3), 4), ((2, 3), 5), ((6, 6), 7))
    ]
    (packed,) = tt.pack(tt.Batch.from_rows([*deep, deep[0] | {"token_ids": [1, 2, 8, 4]}]), token_budget=64,
                        share_prefixes="single_next")  # fmt: skip
    with pytest.raises(tt.ArgumentError, match="two levels"):
        tt.feeds.to_art(packed, sequence_length=64)


def attend_as_flash_attention(_module, query, key, value, valid, scaling=None, **_):
    """What flash attention computes with a mask of padding: queries are the last places of the keys."""
    queries, keys = query.shape[2], key.shape[2]
    causal = torch.arange(keys)[None] <= torch.arange(queries)[:, None] + keys - queries
    mask = causal[None, None] & valid.bool()[:, None, None, :]
    mask |= ~mask.any(-1, keepdim=True)  # padding sees anything, so that nothing is divided by zero
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, mask, scale=scaling).transpose(
        1, 2
    ), None


def test_verls_prefix_grouper_reads_the_groups_and_computes_the_logprobs(model, monkeypatch):
    grouper = trainer("verl.trainer.ppo.prefix_grouper_utils", *VERL)
    patch = trainer("verl.models.transformers.monkey_patch", *VERL)
    attention = trainer("transformers.modeling_utils").ALL_ATTENTION_FUNCTIONS
    rows = group_rows(model, turns=1)  # its builder drops what is not sampled, so that rows have one turn
    batch = tt.Batch.from_rows(rows)
    tensors = tt.feeds.to_verl_tensors(batch, pad_token_id=0)
    micro = tensors | {"uid": [row["group_id"] for row in rows]}
    made = grouper.build_pg_from_micro_batch(micro, pad_token_id=0)
    info = [[group.prefix_len, *group.suffix_lens] for group in made[0].group_info]
    assert info == tt.feeds.verl_prefix_groups(batch)
    name = model.config._attn_implementation
    monkeypatch.setitem(attention, name, patch._create_prefix_grouper_wrapper(attend_as_flash_attention))
    with torch.no_grad():
        logprobs, _, mask = grouper.pg_forward(model, *made)
    monkeypatch.undo()
    for row, found, valid in zip(rows, logprobs, mask.bool(), strict=True):
        own = own_logprobs(model, row["token_ids"])[row["sampled_mask"][1:].astype(bool)]
        assert torch.allclose(found[valid], own, atol=1e-5)
