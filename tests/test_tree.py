"""Shared prefixes: a bin is a forest, a row is a path in it, and a shared token carries the loss of all its rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokentape as tt
from prefix_tree import compressed, prefixes

MODES = [True, "single_next"]


@st.composite
def group_rows(draw: st.DrawFn) -> list[dict]:
    """Rows over few ids, so that many begin alike; masks, weights and advantages are any."""
    made = []
    weighed = draw(st.booleans())
    for _ in range(draw(st.integers(1, 9))):
        ids = draw(st.lists(st.integers(0, 1), min_size=2, max_size=9))
        per_token = lambda values, ids=ids: draw(st.lists(values, min_size=len(ids), max_size=len(ids)))  # noqa: E731
        small = st.integers(-4, 4).map(float)
        made.append({
            "token_ids": ids, "sampled_mask": [1] * len(ids), "loss_mask": [*per_token(st.integers(0, 1))[:-1], 1],
            "logprobs": [-0.5] * len(ids), "advantages": per_token(small),
            "loss_weight": per_token(small) if weighed else None,
        })  # fmt: skip
    return made


def path(packed: tt.PackedBatch, segment: int) -> list[int]:
    """The places of the tokens from the root to the end of a segment."""
    ends, places = packed.cu_seqlens, []
    while segment != -1:
        places = [*range(ends[segment], ends[segment + 1]), *places]
        segment = packed.segment_parent[segment]
    return places


@pytest.mark.parametrize("mode", MODES)
@given(given_rows=group_rows(), budget=st.integers(9, 40), ranks=st.integers(1, 3), align=st.sampled_from([1, 4]))
def test_every_row_is_a_path_and_the_budget_holds(mode, given_rows, budget, ranks, align):
    batch = tt.Batch.from_rows(given_rows)
    budget = budget // align * align
    packing = tt.pack(batch, token_budget=budget, ranks=ranks, share_prefixes=mode, align=align, pad_token_id=7,
                      overlong="drop")  # fmt: skip
    seen = []
    for index in range(len(packing)):
        packed = packing[index]
        assert 0 < len(packed) <= budget
        assert len(packed) % align == 0
        for row, leaf in zip(packed.leaf_row.tolist(), packed.leaf_segment.tolist(), strict=True):
            places = path(packed, leaf)
            assert packed.input_ids[places].tolist() == given_rows[row]["token_ids"]
            assert packed.position_ids[places].tolist() == list(range(len(places)))
            assert packed.parent[places].tolist() == [-1, *places[:-1]]
            seen.append(row)
        trees = [given_rows[row]["token_ids"] for row in packed.leaf_row]
        assert (packed.segment_ids >= 0).sum() == len(prefixes(trees, single_next=mode == "single_next"))
        starts = zip(packed.row.tolist(), packed.offset.tolist(), packed.cu_seqlens.tolist(), strict=False)
        for row, offset, start in starts:
            assert row == -1 or packed.input_ids[start] == given_rows[row]["token_ids"][offset]
    left_out = [row.row for row in packing.report.left_out]
    assert sorted([*seen, *left_out]) == list(range(len(given_rows)))
    total = sum(len(given_rows[row]["token_ids"]) for row in seen)
    assert packing.report.tokens + packing.report.shared == total


@pytest.mark.parametrize("mode", MODES)
@given(given_rows=group_rows(), budget=st.integers(9, 60))
def test_the_objective_is_that_of_all_rows(mode, given_rows, budget):
    """For every prefix: the sum over rows of weight, and of weight times advantage, of the token that ends it."""
    packing = tt.pack(tt.Batch.from_rows(given_rows), token_budget=budget, share_prefixes=mode)
    for packed in packing:
        expected: dict[tuple, float] = {}
        for row in (given_rows[index] for index in packed.leaf_row.tolist()):
            for place in range(1, len(row["token_ids"])):
                weight = row["loss_weight"][place] if row["loss_weight"] else float(row["loss_mask"][place])
                key = tuple(row["token_ids"][: place + 1])
                product = weight * row["advantages"][place] if row["loss_mask"][place] else 0.0
                expected[key] = expected.get(key, 0.0) + product
        found: dict[tuple, float] = {}
        for leaf in set(packed.segment_ids.tolist()) - {-1}:
            places = path(packed, leaf)
            first = packed.cu_seqlens[leaf]
            for count, place in enumerate(places, 1):
                if place >= first and place != places[0]:
                    weight = packed.loss_mask if packed.loss_weight is None else packed.loss_weight
                    key = tuple(packed.input_ids[places[:count]].tolist())
                    product = float(weight[place]) * float(packed.advantages[place]) * float(packed.loss_mask[place])
                    found[key] = found.get(key, 0.0) + product
        for key in found | expected:
            assert found.get(key, 0.0) == pytest.approx(expected.get(key, 0.0), abs=1e-3), key


@given(st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=8), min_size=1, max_size=8))
def test_the_tree_is_that_of_the_slow_builder_node_by_node(sequences):
    rows = [{"token_ids": ids, "sampled_mask": [1] * len(ids)} for ids in sequences]
    (packed,) = tt.pack(tt.Batch.from_rows(rows), token_budget=1000, share_prefixes=True)
    assert nodes(packed) == compressed(sequences)


def nodes(packed: tt.PackedBatch) -> list[tuple[list[int], int, list[int]]]:
    """Tokens, parent and rows of each node, in depth-first order."""
    rows: list[set[int]] = [set() for _ in packed.seq_lens]
    for row, leaf in zip(packed.leaf_row.tolist(), packed.leaf_segment.tolist(), strict=True):
        segment = leaf
        while segment != -1:
            rows[segment].add(row)
            segment = int(packed.segment_parent[segment])
    ends = packed.cu_seqlens
    return [
        (
            packed.input_ids[ends[index] : ends[index + 1]].tolist(),
            int(packed.segment_parent[index]),
            sorted(rows[index]),
        )
        for index in range(len(rows))
    ]


def grpo_groups(groups: int, size: int, *, seed: int = 0) -> list[dict]:
    """The groups of the evidence: a prompt of 500 to 4000 tokens, long-tailed completions."""
    generator = np.random.default_rng(seed)
    rows = []
    for group in range(groups):
        prompt = generator.integers(0, 50_000, generator.integers(500, 4000))
        for _ in range(size):
            length = int(np.clip(generator.lognormal(np.log(800), 0.8), 50, 8000))
            ids = np.concatenate([prompt, generator.integers(0, 50_000, length)]).astype(np.int32)
            mask = np.repeat([0, 1], [len(prompt), length]).astype(np.uint8)
            rows.append({"token_ids": ids, "sampled_mask": mask, "group_id": f"item-{group}"})
    return rows


def test_groups_take_two_and_a_half_times_fewer_tokens():
    rows = [row for size in (8, 16, 32, 64) for row in grpo_groups(4, size, seed=size)]
    packing = tt.pack(tt.Batch.from_rows(rows), token_budget=32768, share_prefixes=True)
    assert (packing.report.tokens + packing.report.shared) / packing.report.tokens >= 2.5
    assert packing.report.utilisation > 0.9
    assert "fewer tokens" in str(packing.report)
    dealt = tt.pack(tt.Batch.from_rows(rows), token_budget=32768, share_prefixes=True, ranks=4)
    assert dealt.report.imbalance < 1.2
    assert max(dealt.bin_tokens) <= 32768


@given(
    made=st.lists(
        st.tuples(st.lists(st.integers(0, 1), max_size=4), st.lists(st.integers(0, 1), min_size=1, max_size=4)),
        min_size=1, max_size=9,
    ),
    budget=st.integers(9, 40),
)  # fmt: skip
def test_rows_with_one_prompt_share_it_less_its_last_token(made, budget):
    rows = [
        {"token_ids": [7, *prompt, *reply], "sampled_mask": [0] * (1 + len(prompt)) + [1] * len(reply)}
        for prompt, reply in made
    ]
    packing = tt.pack(tt.Batch.from_rows(rows), token_budget=budget, share_prefixes="prompt")
    assert packing.report.merged == 0
    seen = []
    for packed in packing:
        assert len(packed) <= budget
        prompts = {tuple(made[row][0]) for row in packed.leaf_row.tolist()}
        own = sum(len(made[row][1]) + 1 for row in packed.leaf_row.tolist())
        assert len(packed) == own + sum(map(len, prompts))
        inner = packed.segment_parent[packed.segment_parent >= 0]
        assert (packed.segment_parent[inner] == -1).all()
        trained = np.flatnonzero(packed.loss_mask)
        assert (packed.parent[trained] == trained - 1).all()
        for row, leaf in zip(packed.leaf_row.tolist(), packed.leaf_segment.tolist(), strict=True):
            assert packed.input_ids[path(packed, leaf)].tolist() == rows[row]["token_ids"]
            seen.append(row)
    assert sorted(seen) == list(range(len(rows)))


def test_equal_rows_and_rows_that_begin_others():
    ids = [[1, 2], [1, 2], [1, 2, 3], [1], [4]]
    rows = [{"token_ids": [9, *row], "sampled_mask": [1] * (len(row) + 1)} for row in ids]
    (packed,) = tt.pack(tt.Batch.from_rows(rows), token_budget=100, share_prefixes=True)
    assert packed.input_ids.tolist() == [9, 1, 2, 3, 4]
    assert packed.parent.tolist() == [-1, 0, 1, 2, 0]
    assert packed.loss_weight.tolist() == [0.0, 4.0, 3.0, 1.0, 1.0]
    assert packed.leaf_row.tolist() == [3, 0, 1, 2, 4]
    assert packed.leaf_segment.tolist() == [1, 2, 2, 3, 4]


def test_bad_arguments():
    batch = tt.Batch.from_rows(grpo_groups(1, 2))
    with pytest.raises(tt.ArgumentError, match="share_prefixes='trie'"):
        tt.pack(batch, token_budget=99_999, share_prefixes="trie")
    with pytest.raises(tt.ArgumentError, match="max_segments=None"):
        tt.pack(batch, token_budget=99_999, share_prefixes=True, max_segments=3)
    with pytest.raises(tt.BudgetError):
        tt.pack(batch, token_budget=300, share_prefixes=True)
    assert len(tt.pack(tt.Batch.from_rows([]), token_budget=8, share_prefixes=True)) == 0


@settings(max_examples=30)
@given(given_rows=group_rows(), mode=st.sampled_from(MODES))
def test_the_mask_is_the_relation_of_ancestors(given_rows, mode):
    for packed in tt.pack(
        tt.Batch.from_rows(given_rows), token_budget=20, share_prefixes=mode, align=4, pad_token_id=0
    ):
        mask = tt.feeds.tree_mask(packed)
        for query in range(len(packed)):
            ancestors, place = set(), query
            while place != -1:
                ancestors.add(place)
                place = int(packed.parent[place])
            assert set(np.flatnonzero(mask[query]).tolist()) == ancestors
        ends = tt.feeds.subtree_ends(packed)
        keys = np.arange(len(packed))
        assert ((keys[None] <= keys[:, None]) & (keys[:, None] < ends[None]) == mask).all()
