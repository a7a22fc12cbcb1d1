"""Plan and fill against the installed peers, in one process; prints medians and ratios.

Run `python benches/bench_pack.py`. Peers are skipped where they are not installed (`pip install lightbinpack
seqpacker`, `pip install --no-deps trl`). Shared cores make absolute times noisy: read the ratios.
"""

# A program of measurements; peers are imported where they are installed.

from __future__ import annotations

import contextlib
import gc
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import tokentape as tt
from tokentape import _core

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import prefix_tree

REPEATS = 5
BUDGET = 32_768


def median(*works, repeats=REPEATS):
    """The median seconds of each work, in turns so that a slow moment strikes all; garbage is collected in between."""
    times = [[] for _ in works]
    for _ in range(repeats):
        for work, spent in zip(works, times, strict=True):
            gc.collect()
            gc.disable()
            start = time.perf_counter()
            work()
            spent.append(time.perf_counter() - start)
            gc.enable()
    return [statistics.median(spent) for spent in times]


def distributions(count):
    """The three of the evidence: long-tailed agents, short mathematics, groups over a shared prompt."""
    generator = np.random.default_rng(0)
    agent = generator.lognormal(np.log(4000), 1.1, count).clip(200, 32768)
    maths = generator.lognormal(np.log(500), 0.6, count).clip(100, 2000)
    prompts = np.repeat(generator.uniform(500, 4000, count // 8 + 1), 8)[:count]
    groups = prompts + generator.lognormal(np.log(800), 0.8, count).clip(50, 8000)
    return {
        f"agent 32k, {count:,}": (agent.astype(np.int32), 32768),
        f"maths 16k, {count:,}": (maths.astype(np.int32), 16384),
        f"groups 16k, {count:,}": (groups.astype(np.int32), 16384),
    }


def planners():
    """The planners that take a numpy array of lengths."""
    found = {"tokentape": lambda lengths, budget: plan(lengths, budget)[1]}
    with contextlib.suppress(ImportError):
        import lightbinpack

        found["lightbinpack obfd"] = lambda lengths, budget: len(lightbinpack.obfd(lengths, budget))
        found["lightbinpack obfdp"] = lambda lengths, budget: len(lightbinpack.obfdp(lengths, budget))
    with contextlib.suppress(ImportError):
        import seqpacker

        for strategy in ("obfd", "ffd"):
            found[f"seqpacker {strategy}"] = lambda lengths, budget, strategy=strategy: flat_bins(
                seqpacker.Packer(strategy=strategy, capacity=budget).pack_flat(lengths)
            )
    return found


def flat_bins(flat):
    """The number of bins of seqpacker's flat form: indices and offsets."""
    return len(flat[-1]) + 1


def plan(lengths, budget):
    return _core.plan_bins(lengths, token_budget=budget, ranks=1, max_segments=None, work=(1.0, 0.0))


def bench_plan():
    print("\nplan: milliseconds (bins over the lower bound)")
    for count in (10_000, 100_000, 1_000_000):
        for name, (lengths, budget) in distributions(count).items():
            bound = -(-int(lengths.sum(dtype=np.int64)) // budget)
            works = planners()
            times = median(*[lambda w=w: w(lengths, budget) for w in works.values()], repeats=3)
            cells = [
                f"{peer} {1e3 * spent:.1f} ({work(lengths, budget) / bound:.4f}, {spent / times[0]:.1f}x)"
                for (peer, work), spent in zip(works.items(), times, strict=True)
            ]
            print(f"  {name}: " + "; ".join(cells))


def bound_of(lengths, budget, ranks):
    """What no plan undercuts: modelled time over that of ranks that never wait.

    Any j micro-steps hold at most j * ranks * budget tokens. So the j-th longest of them takes at least as long as the
    row behind so many tokens of the longest rows, and the others have at least the work that is left beside those rows.
    """
    lengths = np.sort(lengths.astype(np.float64))[::-1]
    costs = 24_576 * lengths + lengths**2
    tokens, work, room = lengths.cumsum(), costs.cumsum(), ranks * budget
    best, slowest = work[-1] / ranks, 0.0
    for step in range(int(tokens[-1] // room) + 1):
        slowest += costs[np.searchsorted(tokens, step * room, side="right")]
        held = np.interp((step + 1) * room, np.append(0, tokens), np.append(0, work))
        best = max(best, slowest + (work[-1] - held) / ranks)
    return best * ranks / work[-1]


def bench_balance():
    """Modelled time over ranks that never wait, and the bound that the rows set, on long-tailed rows."""
    print("\nbalance: modelled time over that of ranks that never wait (bound)")
    for count, ranks, budget in [(1024, 8, 32_768), (1024, 64, 32_768), (8192, 8, 32_768), (8192, 64, 32_768)]:
        lengths = np.random.default_rng(0).lognormal(np.log(4000), 1.1, count).clip(200, 32_768).astype(np.int32)
        rows = (
            {"token_ids": np.zeros(length, np.int32), "sampled_mask": np.ones(length, np.uint8)} for length in lengths
        )
        report = tt.pack(tt.Batch.from_rows(rows, validate=False), token_budget=budget, ranks=ranks).report
        print(f"  {count:,} rows, {ranks} ranks: {report.imbalance:.3f} ({bound_of(lengths, budget, ranks):.3f})")


def flat_columns(lengths):
    total = int(lengths.sum())
    generator = np.random.default_rng(1)
    return {
        "input_ids": generator.integers(0, 150_000, total, dtype=np.int32),
        "sampled_mask": np.ones(total, np.uint8),
        "loss_mask": np.ones(total, np.uint8),
        "logprobs": -generator.random(total, dtype=np.float32),
        "advantages": generator.standard_normal(total, dtype=np.float32),
    }


def batch_of(lengths, columns):
    ends = np.cumsum(lengths)
    rows = (
        {("token_ids" if name == "input_ids" else name): values[end - length : end] for name, values in columns.items()}
        for length, end in zip(lengths, ends, strict=True)
    )
    return tt.Batch.from_rows(rows, validate=False)


def with_tokentape(batch):
    """Plans, fills, and looks at every packed batch."""
    for packed in tt.pack(batch, token_budget=BUDGET):
        packed.input_ids  # noqa: B018  (what a trainer touches first)


def filled_again(packing):
    for packed in packing:
        packed.input_ids  # noqa: B018


def with_numpy(lengths, columns, bins):
    """The same seven columns by slices of flat arrays, bin by bin; the plan is given."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    for rows in bins:
        total = int(lengths[rows].sum())
        out = {name: np.empty(total, values.dtype) for name, values in columns.items()}
        positions, segments = np.empty(total, np.int32), np.empty(total, np.int32)
        at = 0
        for segment, row in enumerate(rows):
            source, place = slice(starts[row], starts[row + 1]), slice(at, at + lengths[row])
            for name, values in columns.items():
                out[name][place] = values[source]
            positions[place] = np.arange(lengths[row], dtype=np.int32)
            segments[place] = segment
            out["loss_mask"][at] = 0
            at = place.stop


def tensor_of():
    """What turns a list into what is trained on: `torch.tensor` where torch is installed, else `numpy.array`."""
    with contextlib.suppress(ImportError):
        import torch

        return torch.tensor, "Python lists and torch.tensor"
    return np.array, "Python lists and numpy.array"


def tensors_of():
    """What makes tensors of lists and of columns: of torch where it is installed, else arrays of numpy."""
    with contextlib.suppress(ImportError):
        import torch

        return torch.tensor, torch.from_dlpack, "tensors of torch"
    return np.array, np.asarray, "arrays of numpy"


def with_lists(lists, lengths, bins, tensor):
    """Python lists that grow by extend, turned into tensors at the end: what trainers without a native packer do."""
    for rows in bins:
        out = {name: [] for name in lists}
        positions, segments = [], []
        for segment, row in enumerate(rows):
            for name, values in lists.items():
                out[name].extend(values[row])
            positions.extend(range(lengths[row]))
            segments.extend([segment] * lengths[row])
        for values in (*out.values(), positions, segments):
            tensor(values)


def trl_packer(lengths, columns):
    """TRL's best-fit packer on equal columns, or None."""
    try:
        from datasets import Dataset
        from trl.data_utils import pack_dataset
    except ImportError as error:
        print(f"  (TRL skipped: {error})")
        return None
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    table = pa.table({name: pa.ListArray.from_arrays(offsets, pa.array(v)) for name, v in columns.items()})
    return lambda: pack_dataset(Dataset(table), BUDGET, "bfd", {"batch_size": None, "load_from_cache_file": False})


def bench_fill():
    lengths = np.random.default_rng(0).lognormal(np.log(4000), 1.1, 1000).clip(200, 32768).astype(np.int32)
    columns = flat_columns(lengths)
    batch = batch_of(lengths, columns)
    bin_of, count, _ = plan(lengths, BUDGET)
    bins = [np.flatnonzero(bin_of == index) for index in range(count)]
    packing = tt.pack(batch, token_budget=BUDGET)
    filled_again(packing)
    width = sum(values.dtype.itemsize for values in columns.values()) + 8
    total = int(lengths.sum())
    source = np.ones(total * width, np.uint8)
    target = np.empty_like(source)
    works = {
        "fill, pooled buffers": lambda: filled_again(packing),
        "pack + fill": lambda: with_tokentape(batch),
        "memcpy of the output": lambda: np.copyto(target, source),
        "numpy from flat arrays": lambda: with_numpy(lengths, columns, bins),
    }
    if trl := trl_packer(lengths, columns):
        works["TRL pack_dataset (five columns)"] = trl
    print(f"\nfill: {total:,} tokens into seven columns, {count} bins, {total * width / 1e6:.0f} MB")
    times = dict(zip(works, median(*works.values()), strict=True))
    starts = np.cumsum(lengths) - lengths
    lists = {n: [v[s : s + k].tolist() for s, k in zip(starts, lengths, strict=True)] for n, v in columns.items()}
    tensor, name = tensor_of()
    times[name] = median(lambda: with_lists(lists, lengths.tolist(), bins, tensor), repeats=1)[0]
    for name, spent in times.items():
        speed = total / spent / 1e6
        print(f"  {name}: {1e3 * spent:.1f} ms, {speed:.0f} Mtok/s, {spent / times['fill, pooled buffers']:.2f}x")


def bench_transport():
    """A group of 16 rollouts of 8,192 tokens on its way to tensors: Arrow IPC against the JSON of Atropos.

    JSON carries ids, masks, logprobs and advantages, as `ScoredDataGroup` has them; Arrow also a second mask and the
    messages of tokens.
    """
    import json

    lengths = np.full(16, 8192, np.int32)
    columns = flat_columns(lengths)
    batch = batch_of(lengths, columns)
    starts = range(0, 16 * 8192, 8192)
    rows = [
        {("token_ids" if n == "input_ids" else n): v[i : i + 8192].tolist() for n, v in columns.items()} for i in starts
    ]
    wire = {"tokens": "token_ids", "masks": "token_ids", "inference_logprobs": "logprobs", "advantages": "advantages"}
    group = {name: [row[column] for row in rows] for name, column in wire.items()} | {"scores": [1.0] * 16}
    from_list, from_array, name = tensors_of()

    def arrived(stream):
        table = _core.Table.from_stream(stream)
        return [from_array(table.column(name)) for name in ("token_ids", "loss_mask", "logprobs", "advantages")]

    def parsed():
        found = json.loads(json.dumps(group))
        return [from_list(row) for name in wire for row in found[name]]

    works = {
        "Arrow IPC, from buffers": lambda: arrived(batch.core.to_stream()),
        "Arrow IPC, from lists": lambda: arrived(tt.Batch.from_rows(rows).core.to_stream()),
        "JSON": parsed,
    }
    times = dict(zip(works, median(*works.values(), repeats=15), strict=True))
    # JSON leaves cold caches to what runs behind it; a run sends one group after another, each of its own memory.
    streamed = [batch_of(lengths, flat_columns(lengths)) for _ in range(16)]
    streams = [np.frombuffer(one.core.to_stream(), np.uint8).copy() for one in streamed]
    copies = np.empty_like(streams[0])

    def sent():
        for one in streamed:  # each is let go before the next comes, as a step of training does
            arrived(one.core.to_stream())

    in_turn = {
        "Arrow IPC, from buffers, group after group": sent,
        "memcpy of the bytes, group after group": lambda: [np.copyto(copies, one) for one in streams],
    }
    spent = median(*in_turn.values(), repeats=15)
    times |= {name: seconds / len(streamed) for name, seconds in zip(in_turn, spent, strict=True)}
    print(f"\ntransport: a group of 16 x 8,192 tokens, encoded, decoded, and as {name}")
    for name, spent in times.items():
        print(f"  {name}: {1e3 * spent:.2f} ms, JSON takes {times['JSON'] / spent:.0f}x")


def batch_of_rows(ids, mask):
    """Rows that nobody checks, as no builder of trees does."""
    return tt.Batch.from_rows(({"token_ids": row, "sampled_mask": mask} for row in ids), validate=False)


def areal_builder():
    """What AReaL builds trees with, and what it is given: padded tensors of ids and their mask. None without it."""
    try:
        import torch

        from trainers import AREAL, standing_in

        with standing_in(*AREAL):
            from areal.models.tree_attn import tree
    except ImportError as error:
        print(f"  (AReaL skipped: {error})")
        return None

    def build(ids):
        ids = torch.as_tensor(np.stack(ids))
        data = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        return lambda: tree._greedy_build_tries(data, ids.numel())  # noqa: SLF001

    return build


def bench_tree():
    """Trees of groups, conversion included: from arrays, lists and a batch, against AReaL's builder and a plain one."""
    print("\ntree: milliseconds, one group in one bin")
    areal = areal_builder()
    for size, length in [(64, 2800), (128, 4000)]:
        generator = np.random.default_rng(0)
        prompt = generator.integers(0, 50_000, length // 2)
        ids = [
            np.append(prompt, generator.integers(0, 50_000, length - length // 2)).astype(np.int32) for _ in range(size)
        ]
        mask = np.repeat([0, 1], [length // 2, length - length // 2]).astype(np.uint8)
        lists, masks = [row.tolist() for row in ids], mask.tolist()
        batch = tt.Batch.from_rows([{"token_ids": row, "sampled_mask": mask} for row in ids])

        def from_arrays():
            return packed(batch_of_rows(ids, mask))

        def packed(batch):
            return tt.pack(batch, token_budget=size * length, share_prefixes=True)[0].segment_parent

        def from_lists():
            return packed(batch_of_rows(lists, masks))

        works = {"tokentape, from a batch": lambda: packed(batch), "tokentape, from lists": from_lists}
        works["tokentape, from arrays"] = from_arrays
        works["Python, from lists"] = lambda: prefix_tree.compressed(lists)
        if areal:
            works["AReaL, from tensors"] = areal(ids)
        times = dict(zip(works, median(*works.values()), strict=True))
        peer = times["AReaL, from tensors" if areal else "Python, from lists"]
        cells = [f"{name} {1e3 * spent:.2f} ({peer / spent:.0f}x)" for name, spent in times.items()]
        print(f"  {size} x {length}: " + "; ".join(cells))


def main():
    if _core.build_profile == "debug":
        sys.exit("a debug build tells nothing about speed: run `maturin develop --release`")
    bench_plan()
    bench_balance()
    bench_fill()
    bench_transport()
    bench_tree()


if __name__ == "__main__":
    main()
