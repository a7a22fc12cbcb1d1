"""Every Arrow library takes a batch and gives it back: the same rows, and where the format allows the same memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tokentape as tt
from table_rows import as_lists, full_row

ROWS = [full_row(index, turns=(2,) * (1 + index % 3)) for index in range(8)]
NAMES = ("token_ids", "sampled_mask", "loss_mask", "logprobs", "advantages", "message_index")


def lists_of(batch: tt.Batch) -> list[dict]:
    return [as_lists(row) for row in batch.rows()]


def addresses(data: object) -> list[int]:
    """Where the values of the per-token columns begin."""
    table = pa.table(data)
    found = []
    for name in NAMES:
        (chunk,) = table.column(name).chunks
        values = chunk.flatten()
        found.append(values.buffers()[1].address + values.offset * values.type.bit_width // 8)
    return found


@pytest.mark.parametrize("part", [slice(0, 8), slice(2, 6), slice(7, 8), slice(3, 3)])
def test_arro3_shares_the_memory_both_ways(part):
    core = pytest.importorskip("arro3.core")
    batch = tt.Batch.from_rows(ROWS)[part]
    table = core.Table.from_arrow(batch)
    again = tt.Batch.from_arrow(table)
    assert lists_of(again) == ROWS[part]
    if len(batch):
        assert addresses(again) == addresses(table) == addresses(batch)
        assert addresses(tt.Batch.from_arrow(core.RecordBatch.from_arrow(pa.record_batch(batch)))) == addresses(batch)


@pytest.mark.parametrize("part", [slice(0, 8), slice(2, 6), slice(7, 8)])
def test_nanoarrow_shares_the_memory_both_ways(part):
    nanoarrow = pytest.importorskip("nanoarrow")
    batch = tt.Batch.from_rows(ROWS)[part]
    array = nanoarrow.Array(batch)
    again = tt.Batch.from_arrow(array)
    assert lists_of(again) == ROWS[part]
    assert addresses(again) == addresses(batch)
    assert [row["trajectory_id"] for row in array.to_pylist()] == [row["trajectory_id"] for row in ROWS[part]]
    stream = nanoarrow.ArrayStream(batch)
    assert lists_of(tt.Batch.from_arrow(stream)) == ROWS[part]


@pytest.mark.parametrize("part", [slice(0, 8), slice(2, 6), slice(7, 8)])
def test_duckdb_reads_and_gives_the_rows(part):
    duckdb = pytest.importorskip("duckdb")
    batch = tt.Batch.from_rows(ROWS)[part]
    rows = batch.to_pyarrow()  # found by its name in the query
    assert rows.num_rows == len(ROWS[part])
    with duckdb.connect() as connection:
        (counted,) = connection.execute("select sum(len(token_ids)), count(*) from rows").fetchall()
        assert counted == (sum(len(row["token_ids"]) for row in ROWS[part]), len(ROWS[part]))
        assert lists_of(tt.Batch.from_arrow(connection.sql("select * from rows"))) == ROWS[part]
        best = connection.sql("select * from rows where reward > 3 order by reward desc")
        assert lists_of(tt.Batch.from_arrow(best)) == [row for row in ROWS[part][::-1] if row["reward"] > 3]


def test_pyarrow_and_polars_share_the_memory_of_slices():
    polars = pytest.importorskip("polars")
    batch = tt.Batch.from_rows(ROWS)
    table = batch.to_pyarrow()
    assert addresses(tt.Batch.from_arrow(table.slice(3, 2))) == addresses(batch[3:5])
    frame = polars.DataFrame(batch)
    column = frame["token_ids"].to_arrow()
    values = column.flatten()
    assert values.buffers()[1].address + 4 * values.offset == addresses(batch)[0]
    assert addresses(tt.Batch.from_arrow(frame))[0] == addresses(batch)[0]


def test_an_import_that_was_dropped_leaves_the_values():
    core = pytest.importorskip("arro3.core")
    table = core.Table.from_arrow(tt.Batch.from_rows(ROWS))
    ids = tt.Batch.from_arrow(table).row(5).token_ids
    del table
    assert ids.tolist() == ROWS[5]["token_ids"]
    assert ids.dtype == np.int32
