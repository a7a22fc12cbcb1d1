"""Packing: the invariants, and equality with the plain-Python twin."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import tokentape as tt
from table_rows import full_row, rows

FILLED = ("loss_weight", "logprobs", "advantages", "policy_versions")


@st.composite
def packable(draw: st.DrawFn) -> list[dict]:
    """Rows of which all or none have logprobs and advantages."""
    drawn = draw(st.lists(rows(max_tokens=30), max_size=25))
    for name, value in (("logprobs", -0.5), ("advantages", 1.5)):
        present = draw(st.booleans())
        for row in drawn:
            given = row[name] or [value] * len(row["token_ids"])
            row[name] = given if present else None
    return drawn


def as_lists(table: pa.Table) -> list[dict]:
    return table.to_pylist()


@given(
    given_rows=packable(),
    budget=st.integers(30, 70),
    align=st.sampled_from([None, 1, 4, 7]),
    max_segments=st.none() | st.integers(1, 4),
)
def test_equals_the_twin(given_rows, budget, align, max_segments):
    options = {"align": align, "pad_token_id": 3, "max_segments": max_segments, "overlong": "truncate"}
    packing = tt.pack(tt.Batch.from_rows(given_rows), token_budget=budget, **options)
    expected, left_out = reference.pack(given_rows, budget, **options | {"align": align or 1})
    assert packing.to_pyarrow().to_pylist() == [
        {name: row[name] for name in packing.to_pyarrow().column_names} for row in expected
    ]
    assert [(row.row, row.reason) for row in packing.report.left_out] == left_out
    assert packing.report.padding == sum((np.array(row["row"]) == -1) @ row["seq_lens"] for row in expected)


@pytest.mark.long
def test_equals_the_twin_for_a_long_time():
    settings(max_examples=100_000, deadline=None)(test_equals_the_twin)()


@given(
    given_rows=packable(), budget=st.integers(1, 40), overlong=st.sampled_from(["drop", "truncate", "truncate_turn"])
)
def test_overlong_policies_equal_the_twin(given_rows, budget, overlong):
    packing = tt.pack(tt.Batch.from_rows(given_rows), token_budget=budget, overlong=overlong)
    expected, left_out = reference.pack(given_rows, budget, overlong=overlong)
    assert [(row.row, row.reason) for row in packing.report.left_out] == left_out
    assert [packed.input_ids.tolist() for packed in packing] == [row["input_ids"] for row in expected]
    cut = {row.row: row.kept for row in packing.report.truncated}
    for row, kept in cut.items():
        assert kept + packing.report.truncated[0].removed >= kept
        assert kept < len(given_rows[row]["token_ids"])


@given(given_rows=packable(), budget=st.integers(30, 60), ranks=st.integers(1, 5), align=st.sampled_from([None, 8]))
def test_the_invariants_hold_for_any_ranks(given_rows, budget, ranks, align):
    packing = tt.pack(tt.Batch.from_rows(given_rows), token_budget=budget, ranks=ranks, align=align, pad_token_id=0,
                      overlong="truncate")  # fmt: skip
    dealt = [list(packing.rank(rank)) for rank in range(ranks)]
    assert {len(bins) for bins in dealt} == {packing.micro_steps}
    seen: dict[int, int] = {}
    for rank, bins in enumerate(dealt):
        for step, packed in enumerate(bins):
            assert (packed.rank, packed.micro_step) == (rank, step)
            assert 0 < len(packed) <= budget
            assert align is None or len(packed) % align == 0
            check_one(packed, given_rows, seen)
    left_out = {row.row for row in packing.report.left_out}
    assert sorted([*seen, *left_out]) == list(range(len(given_rows)))
    cut = {row.row: row.kept for row in packing.report.truncated}
    assert all(seen[row] == cut.get(row, len(given_rows[row]["token_ids"])) for row in seen)
    assert packing.report.tokens == sum(seen.values())


def check_one(packed: tt.PackedBatch, given_rows: list[dict], seen: dict[int, int]) -> None:
    ends = packed.cu_seqlens
    assert ends.dtype == np.int32
    assert ends[0] == 0
    assert ends[-1] == len(packed.input_ids)
    assert (np.diff(ends) == packed.seq_lens).all()
    assert (packed.seq_lens > 0).all()
    for index, row in enumerate(packed.row.tolist()):
        place = slice(ends[index], ends[index + 1])
        assert packed.position_ids[place].tolist() == list(range(packed.seq_lens[index]))
        assert packed.loss_mask[place][0] == 0
        if row == -1:
            assert index == len(packed.row) - 1
            assert not packed.loss_mask[place].any()
            continue
        assert row not in seen
        seen[row] = int(packed.seq_lens[index])
        assert packed.input_ids[place].tolist() == given_rows[row]["token_ids"][: seen[row]]


ROWS = [full_row(index, prompt=3 + index, turns=(4,) * (1 + index % 3)) for index in range(20)]


def test_packing_the_same_rows_again_gives_the_same_bins():
    batch = tt.Batch.from_rows(ROWS)
    first = tt.pack(batch, token_budget=64, ranks=3).to_pyarrow()
    assert first.equals(tt.pack(batch, token_budget=64, ranks=3).to_pyarrow())
    halves = tt.Batch.concat([batch[:7], batch[7:]])
    assert first.equals(tt.pack(halves, token_budget=64, ranks=3).to_pyarrow())
    assert first.equals(pickle.loads(pickle.dumps(tt.pack(batch, token_budget=64, ranks=3))).to_pyarrow())


def test_a_packed_batch_is_an_arrow_row():
    packed = next(iter(tt.pack(tt.Batch.from_rows(ROWS), token_budget=64)))
    record = pa.record_batch(packed)
    record.validate(full=True)
    assert record.schema.metadata[b"tokentape.schema"] == b"tokentape.packed"
    assert record.to_pylist()[0]["input_ids"] == packed.input_ids.tolist()
    offset = 4 * record.column("input_ids").offset
    assert record.column("input_ids").flatten().buffers()[1].address + offset <= packed.input_ids.ctypes.data


def test_what_is_held_never_changes_while_buffers_are_used_again():
    batch = tt.Batch.from_rows([full_row(index % 50, prompt=40) for index in range(3000)])
    packing = tt.pack(batch, token_budget=100)
    first = next(iter(packing))
    held = (first.input_ids, pa.record_batch(first), memoryview(first.logprobs))
    copies = (held[0].copy(), held[1].to_pylist(), bytes(held[2]))
    addresses = set()
    for packed in packing:
        addresses.add(packed.input_ids.ctypes.data)
    assert len(addresses) < len(packing)
    assert held[0].ctypes.data not in addresses
    assert (held[0] == copies[0]).all()
    assert held[1].to_pylist() == copies[1]
    assert bytes(held[2]) == copies[2]


def test_arrays_are_read_only():
    packed = next(iter(tt.pack(tt.Batch.from_rows(ROWS), token_budget=64)))
    with pytest.raises(ValueError, match="read-only"):
        packed.loss_mask[0] = 1


def test_what_first_tokens_lose_is_counted():
    sampled = {"token_ids": [1, 2], "sampled_mask": [1, 1]}
    packing = tt.pack(tt.Batch.from_rows([sampled] * 3), token_budget=8)
    assert packing.report.loss_cleared == 3
    assert next(iter(packing)).loss_mask.tolist() == [0, 1] * 3


def test_rows_without_loss_and_empty_rows_are_named():
    rows_ = [{"token_ids": [1, 2], "trajectory_id": "silent"}, {"token_ids": [], "trajectory_id": "empty"},
             {"token_ids": [1], "sampled_mask": [1], "trajectory_id": "single"}]  # fmt: skip
    packing = tt.pack(tt.Batch.from_rows(rows_), token_budget=8)
    assert [(row.trajectory_id, row.reason, row.tokens) for row in packing.report.left_out] == [
        ("silent", "no_loss", 2), ("empty", "empty", 0), ("single", "no_loss", 1),
    ]  # fmt: skip
    assert list(packing) == []
    assert packing.to_pyarrow().num_rows == 0
    assert "left out, no_loss: 2 rows, 3 tokens" in str(packing.report)


def test_an_empty_batch_gives_no_bins_and_the_schema():
    packing = tt.pack(tt.Batch.from_rows([]), token_budget=8)
    assert len(packing) == 0
    assert "cu_seqlens" in packing.to_pyarrow().column_names
    assert packing.report.padding_saved == 0.0


def test_fewer_rows_than_ranks_gives_fillers_without_loss():
    packing = tt.pack(tt.Batch.from_rows(ROWS[:1]), token_budget=64, ranks=3, align=4, pad_token_id=9)
    fillers = [packed for rank in range(3) for packed in packing.rank(rank) if packed.row.tolist() == [-1]]
    assert [filler.input_ids.tolist() for filler in fillers] == [[9] * 4] * 2
    assert not any(filler.loss_mask.any() for filler in fillers)


@pytest.mark.parametrize("ranks", [8, 64])
def test_ranks_finish_together_on_long_tails(ranks):
    lengths = np.random.default_rng(0).lognormal(np.log(4000), 1.1, 4096).clip(200, 32768).astype(np.int32)
    bins, count, imbalance = tt._core.plan_bins(
        lengths, token_budget=32768, ranks=ranks, max_segments=None, work=(24576.0, 1.0)
    )
    assert count % ranks == 0
    assert np.bincount(bins, lengths, minlength=count).max() <= 32768
    work = np.bincount(bins, 24576.0 * lengths + lengths.astype(float) ** 2, minlength=count).reshape(-1, ranks)
    assert work.max(axis=1).sum() / work.mean(axis=1).sum() == pytest.approx(imbalance)
    assert imbalance <= 1.05
    assert work.sum(axis=0).max() / work.sum(axis=0).mean() <= 1.05


def least_imbalance(lengths: np.ndarray, ranks: int, budget: int) -> float:
    """What no plan can stay below: the ranks wait for the heaviest row, beside which one micro-step holds so much."""
    work = lambda length: 24576.0 * length + float(length) ** 2  # noqa: E731
    falling = sorted(lengths.tolist(), reverse=True)
    ideal = sum(map(work, falling)) / ranks
    beside = sum(map(work, falling[:ranks]))
    room = ranks * budget - sum(falling[:ranks])
    for length in falling[ranks:]:
        if length <= budget // 2:  # a bin holds one longer row at most, and the longest of those are counted already
            beside += work(length) * min(1.0, room / length)
            room -= min(room, length)
    return max(1.0, (work(falling[0]) + ideal - beside / ranks) / ideal)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("rows_", "ranks"), [(1024, 8), (1024, 64), (8192, 64)])
def test_ranks_wait_little_longer_than_they_must(rows_, ranks, seed):
    lengths = np.random.default_rng(seed).lognormal(np.log(4000), 1.1, rows_).clip(200, 32768).astype(np.int32)
    bins, count, imbalance = tt._core.plan_bins(
        lengths, token_budget=32768, ranks=ranks, max_segments=None, work=(24576.0, 1.0)
    )
    assert np.bincount(bins, lengths, minlength=count).max() <= 32768
    assert imbalance <= max(1.05, 1.01 * least_imbalance(lengths, ranks, 32768))


@settings(max_examples=20)
@given(st.lists(st.integers(1, 100), min_size=1, max_size=300), st.integers(100, 200), st.none() | st.integers(1, 9))
def test_the_plan_equals_the_twin(lengths, budget, max_segments):
    bins, count, _ = tt._core.plan_bins(
        np.array(lengths, np.int32), token_budget=budget, ranks=1, max_segments=max_segments, work=(1.0, 0.0)
    )
    expected = reference.best_fit_decreasing(lengths, budget, max_segments)
    assert count == len(expected)
    assert all(set(bins[rows_]) == {index} for index, rows_ in enumerate(expected))


def test_bins_are_near_the_lower_bound():
    generator = np.random.default_rng(0)
    for drawn, budget in [
        (generator.lognormal(np.log(4000), 1.1, 10_000).clip(200, 32768), 32768),
        (generator.lognormal(np.log(500), 0.6, 10_000).clip(100, 2000), 8192),
    ]:
        lengths = drawn.astype(np.int32)
        _, count, _ = tt._core.plan_bins(lengths, token_budget=budget, ranks=1, max_segments=None, work=(1.0, 0.0))
        assert count <= 1.005 * -(-int(lengths.sum()) // budget)


BAD = {
    "row over budget": ({"token_budget": 10}, tt.BudgetError, r"row 1 .*trajectory-1.* the budget is 10"),
    "budget 0": ({"token_budget": 0}, tt.ArgumentError, "token_budget"),
    "budget negative": ({"token_budget": -1}, tt.ArgumentError, "negative"),
    "budget too large": ({"token_budget": 2**31}, tt.ArgumentError, "2147483647"),
    "ranks 0": ({"ranks": 0}, tt.ArgumentError, "ranks"),
    "max_segments 0": ({"max_segments": 0}, tt.ArgumentError, "max_segments"),
    "align without pad": ({"align": 8}, tt.ArgumentError, "needs pad_token_id"),
    "align over budget": ({"align": 128, "pad_token_id": 0}, tt.ArgumentError, "align=128"),
    "unknown policy": ({"overlong": "cut"}, tt.ArgumentError, "overlong"),
    "unknown work": ({"work": "flops"}, tt.ArgumentError, "work='flops'"),
    "work of another length": ({"work": [1.0]}, tt.ArgumentError, "1 values for 20 rows"),
    "work NaN": ({"work": [float("nan")] * 20}, tt.ArgumentError, "of row 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name):
    options, error, message = BAD[name]
    with pytest.raises(error, match=message):
        tt.pack(tt.Batch.from_rows(ROWS), **{"token_budget": 64} | options)


@pytest.mark.parametrize("name", ["logprobs", "advantages"])
def test_rows_with_and_without_values_do_not_mix(name):
    mixed = [*ROWS[:3], ROWS[3] | {name: None}]
    with pytest.raises(tt.SchemaError, match=f"row 3 has no {name} while other rows have them"):
        tt.pack(tt.Batch.from_rows(mixed), token_budget=64)


def test_ragged_rows_that_nobody_validated_are_refused():
    table = tt.Batch.from_rows(ROWS).to_pyarrow()
    masks = table.column("loss_mask").to_pylist()
    masks[5] = masks[5][:-1]
    broken = table.set_column(10, "loss_mask", pa.array(masks, pa.list_(pa.uint8())))
    with pytest.raises(tt.SchemaError, match="row 5: `loss_mask` has"):
        tt.pack(tt.Batch.from_arrow(broken, validate=False), token_budget=64)
