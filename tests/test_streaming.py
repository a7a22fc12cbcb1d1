"""Files and packings of more rows than memory holds, and what goes wrong while they are written and read."""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokentape as tt
from table_rows import as_lists, full_row, rows

ROWS = [full_row(index, turns=(2,) * (1 + index % 3)) for index in range(9)]
NAMES = [("a.arrow", None), ("a.arrow", "zstd"), ("a.arrow", "lz4"), ("a.parquet", None)]


def lists_of(batch: tt.Batch) -> list[dict]:
    return [as_lists(row) for row in batch.rows()]


@pytest.mark.parametrize(("name", "compression"), NAMES)
def test_what_is_written_batch_by_batch_is_read_part_by_part(tmp_path, name, compression):
    batch = tt.Batch.from_rows(ROWS)
    with tt.BatchWriter(tmp_path / name, compression=compression) as file:
        for part in batch.split(3):
            file.write(part)
        assert not (tmp_path / name).exists()
    assert file.rows == 9
    assert lists_of(tt.Batch.read(tmp_path / name)) == ROWS
    parts = list(tt.Batch.stream(tmp_path / name))
    assert [row for part in parts for row in lists_of(part)] == ROWS
    assert len(parts) == 3
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_of_no_batches_has_no_rows(tmp_path):
    for name in ("a.arrow", "a.parquet"):
        with tt.BatchWriter(tmp_path / "a.arrow"):
            pass
        tt.Batch.from_rows([]).write(tmp_path / name)
        assert len(tt.Batch.read(tmp_path / name)) == 0


@pytest.mark.parametrize(("name", "compression"), NAMES)
def test_an_error_inside_the_block_leaves_the_older_file(tmp_path, name, compression):
    tt.Batch.from_rows(ROWS[:1]).write(tmp_path / name, compression=compression)
    with pytest.raises(RuntimeError), tt.BatchWriter(tmp_path / name, compression=compression) as file:  # noqa: PT012
        file.write(tt.Batch.from_rows(ROWS))
        raise RuntimeError
    assert lists_of(tt.Batch.read(tmp_path / name)) == ROWS[:1]
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(("name", "compression"), NAMES)
def test_a_batch_with_other_columns_is_refused(tmp_path, name, compression):
    table = tt.Batch.from_rows(ROWS).to_pyarrow()
    other = tt.Batch.from_arrow(table.append_column("difficulty", table.column("reward")))
    with (  # noqa: PT012
        pytest.raises(tt.SchemaError, match=r"columns|schema"),
        tt.BatchWriter(tmp_path / name, compression=compression) as file,
    ):
        file.write(tt.Batch.from_rows(ROWS))
        file.write(other)
    assert not list(tmp_path.iterdir())
    with pytest.raises(tt.SchemaError, match="not open"):
        file.write(other)


FULL_DISK = """
import resource, signal, sys, numpy as np, tokentape as tt
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
random = np.random.default_rng(0).random
batch = tt.Batch.from_rows([{"token_ids": [7] * 100_000, "logprobs": -random(100_000)} for _ in range(20)])
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
path, compression = sys.argv[1], sys.argv[2] or None
try:
    batch.write(path, compression=compression)
except OSError as error:
    print("refused:", error)
"""


@pytest.mark.parametrize(("name", "compression"), NAMES)
def test_a_disk_that_fills_up_leaves_the_older_file(tmp_path, name, compression):
    tt.Batch.from_rows(ROWS).write(tmp_path / name, compression=compression)
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / name), compression or ""]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.startswith("refused:"), found
    assert lists_of(tt.Batch.read(tmp_path / name)) == ROWS
    assert [path.name for path in tmp_path.iterdir()] == [name]


CONSTANT = """
import sys, numpy as np, tokentape as tt
def peak():  # in MiB; getrusage would count what the parent had before this program began
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) // 1024
def batches():
    for number in range(24):
        ids = np.full(200_000, number, np.int32)
        ones = np.ones(200_000, np.uint8)
        yield tt.Batch.from_rows([{"token_ids": ids, "sampled_mask": ones}] * 5)
with tt.BatchWriter(sys.argv[1]) as file:  # the first pass loads what everything needs
    for batch in batches(): file.write(batch); break
sum(len(part) for part in tt.Batch.stream(sys.argv[1]))
for packing in tt.pack_stream(batches(), token_budget=400_000, window=4): [len(bin) for bin in packing]; break
before = peak()
with tt.BatchWriter(sys.argv[1]) as file:
    for batch in batches(): file.write(batch)
tokens = sum(part.tokens for part in tt.Batch.stream(sys.argv[1]))
stream = tt.pack_stream(tt.Batch.stream(sys.argv[1]), token_budget=400_000, window=4)
packed = sum(len(bin) for packing in stream for bin in packing)
print(tokens, packed, peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", ["a.arrow", "a.parquet"])
def test_memory_does_not_grow_with_the_rows(tmp_path, name):
    command = [sys.executable, "-c", CONSTANT, str(tmp_path / name)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    tokens, packed, grown = map(int, found.stdout.split())
    assert tokens == packed == 24_000_000
    assert grown < 150  # MiB; the rows have 240


@settings(max_examples=40)
@given(
    given_rows=st.lists(rows(), max_size=30), window=st.integers(1, 4), ranks=st.integers(1, 3), parts=st.integers(1, 5)
)
def test_windows_pack_every_row_once(given_rows, window, ranks, parts):
    cleared = [row | {"logprobs": None, "advantages": None} for row in given_rows]
    batch = tt.Batch.from_rows(cleared)
    expected = tt.pack(batch, token_budget=60, ranks=ranks)
    packings = list(tt.pack_stream(batch.split(parts), token_budget=60, window=window, ranks=ranks))
    assert sum(packing.report.tokens for packing in packings) == expected.report.tokens
    left_out = sum(len(packing.report.left_out) for packing in packings)
    assert left_out == len(expected.report.left_out)
    segments = [tuple(ids) for packing in packings for ids in segments_of(packing)]
    assert sorted(segments) == sorted(map(tuple, segments_of(expected)))
    assert all(len(packing) % ranks == 0 for packing in packings)


def segments_of(packing: tt.Packing) -> list[list[int]]:
    found = []
    for index in range(len(packing)):
        packed = packing[index]
        ends = packed.cu_seqlens.tolist()
        places = zip(packed.row.tolist(), ends[:-1], ends[1:], strict=True)
        found += [packed.input_ids[start:end].tolist() for row, start, end in places if row != -1]
    return found


def test_windows_are_nearly_as_full_as_one_plan():
    lengths = np.random.default_rng(0).lognormal(np.log(400), 1.1, 900).clip(20, 3276).astype(int)
    batches = (
        tt.Batch.from_rows([{"token_ids": np.arange(length), "sampled_mask": np.ones(length, np.uint8)}])
        for length in lengths
    )
    bins = sum(len(packing) for packing in tt.pack_stream(batches, token_budget=3277, window=24))
    assert bins <= 1.02 * -(-int(lengths.sum()) // 3277) + 1


def test_bad_windows():
    with pytest.raises(tt.ArgumentError, match="window=0"):
        tt.pack_stream([], token_budget=8, window=0)
    assert list(tt.pack_stream([], token_budget=8)) == []


@settings(max_examples=150, deadline=None)
@given(st.data())
@pytest.mark.parametrize("name", ["a.arrow", "a.parquet"])
def test_hostile_files_are_refused_or_read_never_a_crash(tmp_path_factory, name, data):
    folder = tmp_path_factory.getbasetemp() / "hostile"
    folder.mkdir(exist_ok=True)
    whole = folder / f"whole-{name}"
    if not whole.exists():
        tt.Batch.from_rows(ROWS).write(whole)
    content = bytearray(whole.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    damaged = folder / name
    damaged.write_bytes(bytes(content[: data.draw(st.integers(len(content) - 3, len(content)))]))
    with contextlib.suppress(tt.SchemaError):
        lists_of(tt.Batch.read(damaged))
    with contextlib.suppress(tt.SchemaError):
        sum(part.tokens for part in tt.Batch.stream(damaged))


def test_more_values_than_int32_offsets_count_are_split_or_refused():
    import pyarrow as pa

    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        pytest.skip("address space is limited")
    half = 2**30 + 5
    table = tt.Batch.from_rows([{"token_ids": [1]}, {"token_ids": [1]}]).to_pyarrow()
    for lengths, parts in ([half, half], 2), ([2**31, 1], None):
        offsets = pa.array(np.cumsum([0, *lengths]), pa.int64())
        for name in ("token_ids", "sampled_mask", "loss_mask", "message_index"):
            kind = table.schema.field(name).type.value_type
            values = pa.array(np.zeros(sum(lengths), kind.to_pandas_dtype()))  # pages that are never touched
            column = pa.LargeListArray.from_arrays(offsets, values)
            table = table.set_column(table.schema.get_field_index(name), name, column)
        if parts is None:
            with pytest.raises(tt.SchemaError, match="a row has more than 2147483647 values"):
                tt.Batch.from_arrow(table, validate=False)
            continue
        batch = tt.Batch.from_arrow(table, validate=False)
        assert (len(batch), batch.tokens, len(batch.to_pyarrow().to_batches())) == (2, 2 * half, parts)
