"""The table of trajectories: every library reads it, and what goes in comes out."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokentape as tt
from table_rows import as_lists, full_row, rows

ROWS = [full_row(index, turns=tuple(range(1, 2 + index % 3))) for index in range(7)]


def lists_of(batch: tt.Batch) -> list[dict]:
    return [as_lists(row) for row in batch.rows()]


@given(st.lists(rows(), max_size=6))
def test_any_rows_survive_every_way_out_and_in(given_rows):
    batch = tt.Batch.from_rows(given_rows)
    assert lists_of(batch) == given_rows
    assert lists_of(pickle.loads(pickle.dumps(batch))) == given_rows
    assert lists_of(tt.Batch.from_arrow(batch.to_pyarrow())) == given_rows
    assert lists_of(tt.Batch.from_arrow(pa.record_batch(batch))) == given_rows


@pytest.mark.parametrize("name", ["a.arrow", "a.parquet"])
def test_a_file_gives_the_rows_that_were_written(tmp_path, name):
    tt.Batch.from_rows(ROWS).write(tmp_path / name)
    assert lists_of(tt.Batch.read(tmp_path / name)) == ROWS
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_compressed_file_is_read_too(tmp_path, compression):
    tt.Batch.from_rows(ROWS).write(tmp_path / "a.arrow", compression=compression)
    assert lists_of(tt.Batch.read(tmp_path / "a.arrow")) == ROWS


def test_an_unknown_extension_is_refused(tmp_path):
    with pytest.raises(tt.ArgumentError, match=r"\.arrow or \.parquet"):
        tt.Batch.from_rows(ROWS).write(tmp_path / "a.json")


def test_pyarrow_reads_the_file_and_the_metadata_is_name_and_version(tmp_path):
    tt.Batch.from_rows(ROWS).write(tmp_path / "a.arrow")
    table = pa.ipc.open_file(tmp_path / "a.arrow").read_all()
    table.validate(full=True)
    assert table.to_pylist() == ROWS
    assert table.schema.metadata == {
        b"tokentape.schema": b"tokentape.trajectories", b"tokentape.schema_version": b"1",
    }  # fmt: skip


def test_polars_reads_every_column_of_the_file(tmp_path):
    polars = pytest.importorskip("polars")
    tt.Batch.from_rows(ROWS).write(tmp_path / "a.arrow")
    frame = polars.read_ipc(tmp_path / "a.arrow")
    assert frame.to_dicts() == ROWS
    assert polars.scan_ipc(tmp_path / "a.arrow").select(polars.col("token_ids").list.len()).collect().height == 7
    assert lists_of(tt.Batch.from_arrow(frame)) == ROWS


def test_datasets_reads_every_column_of_the_file(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    tt.Batch.from_rows(ROWS).write(tmp_path / "a.arrow")
    dataset = datasets.load_dataset("arrow", data_files=str(tmp_path / "a.arrow"), split="train")
    assert dataset.to_list() == ROWS
    assert lists_of(tt.Batch.from_arrow(dataset)) == ROWS


def test_polars_takes_the_batch_itself():
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(tt.Batch.from_rows(ROWS)).to_dicts() == ROWS


def addresses(table: pa.Table, name: str) -> list[int]:
    return [chunk.values.buffers()[1].address + 4 * chunk.values.offset for chunk in table.column(name).chunks]


def test_values_are_shared_not_copied_in_both_directions():
    table = tt.Batch.from_rows(ROWS).to_pyarrow()
    again = tt.Batch.from_arrow(table).to_pyarrow()
    assert addresses(table, "token_ids") == addresses(again, "token_ids")
    large = table.set_column(8, "token_ids", table.column("token_ids").cast(pa.large_list(pa.int32())))
    assert addresses(tt.Batch.from_arrow(large).to_pyarrow(), "token_ids") == addresses(large, "token_ids")


def test_columns_without_nulls_share_one_offsets_buffer():
    batch = tt.Batch.from_rows(ROWS).to_pyarrow().to_batches()[0]
    names = ["token_ids", "sampled_mask", "loss_mask", "logprobs", "advantages", "message_index"]
    assert len({batch.column(name).buffers()[1].address for name in names}) == 1
    assert all(batch.column(name).values.buffers()[1].address % 64 == 0 for name in names)


def test_columns_go_by_dlpack_without_a_copy():
    batch = tt.Batch.from_rows(ROWS)
    column = batch.column("token_ids")
    values = np.from_dlpack(column)
    address = batch.to_pyarrow().column("token_ids").chunk(0).values.buffers()[1].address
    assert values.ctypes.data == np.asarray(column).ctypes.data == address
    assert values.tolist() == [token for row in ROWS for token in row["token_ids"]]
    assert np.from_dlpack(batch.column("sampled_mask")).dtype == np.uint8
    assert np.from_dlpack(batch.column("logprobs")).dtype == np.float32
    assert np.from_dlpack(batch.column("reward")).tolist() == [row["reward"] for row in ROWS]
    del batch, column
    assert values[0] == ROWS[0]["token_ids"][0]


def test_dlpack_capsules_old_new_dropped_and_copied():
    column = tt.Batch.from_rows([{"token_ids": range(100_000)}]).column("token_ids")
    assert (column.__dlpack_device__(), len(column)) == ((1, 0), 100_000)
    assert "dltensor_versioned" in repr(column.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(column.__dlpack__())
    for version in (None, (1, 0)):  # dropped capsules free what they hold
        for _ in range(3000):
            column.__dlpack__(max_version=version, copy=True)
    copied = np.from_dlpack(column, copy=True)
    assert copied.ctypes.data != np.from_dlpack(column).ctypes.data
    with pytest.raises(BufferError, match="main memory"):
        column.__dlpack__(dl_device=(2, 0))
    assert np.asarray(column, dtype=np.int64).dtype == np.int64


def test_columns_without_flat_values_are_refused():
    batch = tt.Batch.from_rows(ROWS)
    for name in ("loss_weight", "turns", "messages", "nothing"):
        with pytest.raises(tt.SchemaError, match=f"'{name}' has no flat values"):
            batch.column(name)
    halves = tt.Batch.concat([batch[:3], batch[3:]])
    assert np.asarray(halves.column("token_ids")).tolist() == np.asarray(batch.column("token_ids")).tolist()
    assert np.asarray(batch[2:4].column("token_ids")).tolist() == ROWS[2]["token_ids"] + ROWS[3]["token_ids"]


def test_a_pickle_may_travel_beside_its_buffers():
    batch = tt.Batch.from_rows(ROWS)
    beside: list[pickle.PickleBuffer] = []
    small = pickle.dumps(batch, protocol=5, buffer_callback=beside.append)
    assert len(small) < 300
    assert lists_of(pickle.loads(small, buffers=beside)) == ROWS
    assert lists_of(pickle.loads(pickle.dumps(batch, protocol=4))) == ROWS


@pytest.mark.parametrize("wrong", [[1.5], ["a"], [2**40], [None], [[1]]])
def test_lists_of_other_things_than_ids_are_refused(wrong):
    with pytest.raises(tt.SchemaError, match="row 0: `token_ids` cannot be read"):
        tt.Batch.from_rows([{"token_ids": wrong}])
    with pytest.raises(tt.SchemaError, match="row 0: `loss_mask` cannot be read"):
        tt.Batch.from_rows([{"token_ids": [1], "loss_mask": [256]}])


def test_lists_tuples_and_arrays_give_the_same_rows():
    ids, mask, logprobs = [3, 4], [False, True], [0.0, -1]
    kinds = (list, tuple, np.array)
    given_rows = [{"token_ids": kind(ids), "sampled_mask": kind(mask), "logprobs": kind(logprobs)} for kind in kinds]
    read = [tt.Batch.from_rows([row]) for row in given_rows]
    assert len({str(lists_of(batch)) for batch in read}) == 1


def test_arrays_of_a_row_are_read_only_views():
    batch = tt.Batch.from_rows(ROWS)
    ids = batch.row(2).token_ids
    assert ids.dtype == np.int32
    assert batch.row(2).sampled_mask.dtype == np.uint8
    with pytest.raises(ValueError, match="read-only"):
        ids[0] = 1
    del batch
    assert ids.tolist() == ROWS[2]["token_ids"]


@pytest.mark.parametrize("start", range(8))
@pytest.mark.parametrize("stop", [5, 7])
def test_sliced_input_keeps_its_rows(start, stop):
    table = tt.Batch.from_rows(ROWS).to_pyarrow()
    expected = ROWS[start:stop]
    sliced = table.slice(start, max(0, stop - start))
    assert lists_of(tt.Batch.from_arrow(sliced)) == expected
    assert lists_of(tt.Batch.from_rows(ROWS)[start:stop]) == expected


def test_sliced_polars_and_datasets_keep_their_rows():
    polars, datasets = pytest.importorskip("polars"), pytest.importorskip("datasets")
    frame = polars.DataFrame(tt.Batch.from_rows(ROWS))
    assert lists_of(tt.Batch.from_arrow(frame[2:5])) == ROWS[2:5]
    assert lists_of(tt.Batch.from_arrow(frame.filter(polars.col("reward") > 3))) == ROWS[4:]
    dataset = datasets.Dataset(tt.Batch.from_rows(ROWS).to_pyarrow())
    assert lists_of(tt.Batch.from_arrow(dataset.select(range(1, 4)))) == ROWS[1:4]
    assert lists_of(tt.Batch.from_arrow(dataset.select([5, 1, 1]))) == [ROWS[5], ROWS[1], ROWS[1]]


def test_other_list_and_string_kinds_are_accepted():
    table = tt.Batch.from_rows(ROWS).to_pyarrow()
    fields = []
    for field in table.schema:
        kind = field.type
        if pa.types.is_list(kind) and not pa.types.is_struct(kind.value_type):
            kind = pa.large_list(pa.field("element", kind.value_type, nullable=True))
        fields.append(pa.field(field.name, pa.large_string() if pa.types.is_string(kind) else kind))
    assert lists_of(tt.Batch.from_arrow(table.cast(pa.schema(fields)))) == ROWS


def test_fixed_size_lists_are_accepted_sliced_too():
    same = [full_row(index, turns=(4,)) for index in range(5)]
    table = tt.Batch.from_rows(same).to_pyarrow()
    names = ["token_ids", "sampled_mask", "loss_mask", "message_index"]
    for name in names:
        place = table.schema.get_field_index(name)
        fixed = pa.list_(table.schema.field(name).type.value_type, 7)
        table = table.set_column(place, name, table.column(name).cast(fixed))
    assert lists_of(tt.Batch.from_arrow(table.slice(1, 3))) == same[1:4]


def test_unknown_columns_and_missing_nullable_ones():
    table = tt.Batch.from_rows(ROWS).to_pyarrow().drop_columns(["logprobs", "agent"])
    table = table.append_column("difficulty", pa.array([1.5] * 7))
    batch = tt.Batch.from_arrow(table)
    assert batch.to_pyarrow().column("difficulty").to_pylist() == [1.5] * 7
    assert batch.row(0).logprobs is None
    joined = tt.Batch.concat([batch, tt.Batch.from_rows(ROWS)])
    assert joined.to_pyarrow().column("difficulty").to_pylist() == [1.5] * 7 + [None] * 7


def test_selection():
    batch = tt.Batch.from_rows(ROWS)
    assert lists_of(batch.filter(lambda row: row.reward > 3)) == ROWS[4:]
    assert lists_of(batch.filter(np.arange(7) % 2 == 0)) == ROWS[::2]
    assert lists_of(batch.take([6, 0, 0])) == [ROWS[6], ROWS[0], ROWS[0]]
    assert lists_of(tt.Batch.concat(batch.split(3))) == ROWS
    assert lists_of(batch.sample(3, seed=1)) == lists_of(batch.sample(3, seed=1))
    assert lists_of(tt.Batch.concat([])) == []
    assert lists_of(tt.Batch.concat([batch, batch]).take([7, 0])) == [ROWS[0], ROWS[0]]
    with pytest.raises(tt.ArgumentError, match="mask has 2 values"):
        batch.filter([True, False])
    with pytest.raises(IndexError, match="7 rows"):
        batch.row(7)
    assert repr(batch) == f"Batch(7 rows, {batch.tokens} tokens)"


def test_a_pickled_slice_is_compact():
    batch = tt.Batch.from_rows([{"token_ids": np.arange(100_000)}] * 10)
    assert len(pickle.dumps(batch[3:4])) < 1_100_000


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_dropped_capsule_releases_its_array():
    program = (
        "import tokentape as tt\n"
        "batch = tt.Batch.from_rows([{'token_ids': [1] * 1_000_000}])\n"
        "for _ in range(2000): batch[0:1].__arrow_c_stream__(); tt.Batch.concat([batch]).__arrow_c_array__()\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"  # KiB
    )
    peak = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert int(peak) < 500_000


def test_parquet_keeps_types_and_metadata(tmp_path):
    tt.Batch.from_rows(ROWS).write(tmp_path / "a.parquet")
    assert pq.read_schema(tmp_path / "a.parquet").metadata[b"tokentape.schema_version"] == b"1"
