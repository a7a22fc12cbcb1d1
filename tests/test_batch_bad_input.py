"""What a table is refused for: each error says what, where, and what to do."""

from __future__ import annotations

import contextlib
import errno
import os

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokentape as tt
from table_rows import full_row

ROWS = [full_row(index) for index in range(3)]


def changed(**columns):
    return [ROWS[0], ROWS[1] | columns, ROWS[2]]


BROKEN = {
    "ragged": ({"sampled_mask": [1]}, r"row 1 .*`sampled_mask` has 1 values, `token_ids` has 11"),
    "ragged logprobs": ({"logprobs": [0.0]}, r"row 1 .*`logprobs` has 1 values"),
    "negative id": ({"token_ids": [-1] + [0] * 10}, r"row 1 .*`token_ids` is -1 at token 0"),
    "mask of 2": ({"loss_mask": [0, 2] + [0] * 9}, r"row 1 .*`loss_mask` is 2 at token 1"),
    "NaN advantage": ({"advantages": [float("nan")] * 11}, r"row 1 .*`advantages` is NaN at token 0"),
    "positive logprob": ({"logprobs": [1.0] * 11}, r"row 1 .*`logprobs` is 1 at sampled token 3"),
    "-inf logprob": ({"logprobs": [-float("inf")] * 11}, r"row 1 .*`logprobs` is -inf at sampled token 3"),
    "message -2": ({"message_index": [-2] * 11}, r"row 1 .*`message_index` is -2 at token 0"),
    "turn outside": (
        {"turns": [{"start": 3, "end": 12, "message": 1, "finish_reason": "stop", "reward": None}]},
        r"row 1 .*turn 0 spans tokens 3\.\.12",
    ),
    "versions not all": (
        {"policy_versions": [{"start": 3, "end": 5, "version": 1}]},
        r"row 1 .*`policy_versions` covers 2 of 6 sampled",
    ),
    "versions elsewhere": (
        {"policy_versions": [{"start": 0, "end": 5, "version": 1}]},
        r"row 1 .*policy version run 0 spans tokens 0\.\.5",
    ),
    "not JSON": ({"metrics": "{"}, r"row 1 .*`metrics` is not JSON"),
    "float ids": ({"token_ids": [0.5] * 11}, r"row 1: `token_ids` cannot be read: expected integers"),
    "id too large": ({"token_ids": [2**31] * 11}, r"row 1: `token_ids` cannot be read: a value does not fit"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_row_is_named(name):
    columns, message = BROKEN[name]
    with pytest.raises(tt.SchemaError, match=message):
        tt.Batch.from_rows(changed(**columns))


def test_a_null_inside_a_list_is_named():
    table = tt.Batch.from_rows(ROWS).to_pyarrow()
    ids = pa.array([[1, 2], [3, None], [4]], type=pa.list_(pa.int32()))
    table = table.set_column(8, "token_ids", ids)
    with pytest.raises(tt.SchemaError, match=r"null inside the list of row 1, at 1"):
        tt.Batch.from_arrow(table)


def test_a_null_list_where_the_contract_has_none():
    table = tt.Batch.from_rows(ROWS).to_pyarrow()
    table = table.set_column(8, "token_ids", pa.array([[1], None, [4]], type=pa.list_(pa.int32())))
    with pytest.raises(tt.SchemaError, match="`token_ids` is null in row 1"):
        tt.Batch.from_arrow(table)


@pytest.mark.parametrize("item", [pa.int64(), pa.float32(), pa.bool_()])
def test_a_column_of_another_type_says_cast(item):
    table = tt.Batch.from_rows(ROWS).to_pyarrow()
    masks = pa.array([[1] * 11] * 3, type=pa.list_(pa.int32())).cast(pa.list_(item))
    with pytest.raises(tt.SchemaError, match=r"`sampled_mask` is .*cast the column first"):
        tt.Batch.from_arrow(table.set_column(9, "sampled_mask", masks))


@pytest.mark.parametrize("name", ["env", "note"])
@pytest.mark.parametrize("kind", [pa.utf8(), pa.large_utf8()])
def test_texts_that_are_no_utf8_are_refused(name, kind):
    table = pa.table(tt.Batch.from_rows(ROWS))
    damaged = pa.array([b"fine", b"\xa8", b""], pa.large_binary() if kind == pa.large_utf8() else pa.binary()).view(
        kind
    )
    table = (
        table.set_column(table.schema.get_field_index(name), name, damaged)
        if name == "env"
        else table.append_column(name, damaged)
    )
    with pytest.raises(tt.SchemaError, match=f"`{name}` holds what it must not"):
        tt.Batch.from_arrow(table)


def test_a_foreign_table_names_what_it_lacks():
    with pytest.raises(tt.SchemaError, match=r"lacks the columns `group_id`.*it has the columns `a`, `b`"):
        tt.Batch.from_arrow(pa.table({"a": [1], "b": [2]}))


@pytest.mark.parametrize("data", [[1, 2], {"a": 1}, None, pa.array([1, 2]), pa.chunked_array([[1]])])
def test_what_is_no_table_is_refused(data):
    with pytest.raises(tt.SchemaError, match="cannot read a table from"):
        tt.Batch.from_arrow(data)


def test_a_newer_version_says_upgrade(tmp_path):
    table = tt.Batch.from_rows(ROWS).to_pyarrow()
    metadata = {**table.schema.metadata, b"tokentape.schema_version": b"2"}
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema.with_metadata(metadata)) as file:
        file.write_table(table)
    with pytest.raises(tt.SchemaError, match=r"a\.arrow: the table has version 2 .*upgrade tokentape"):
        tt.Batch.read(tmp_path / "a.arrow")


@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
def test_a_file_cut_anywhere_is_refused(tmp_path, suffix):
    whole = tmp_path / f"whole{suffix}"
    tt.Batch.from_rows(ROWS).write(whole)
    content = whole.read_bytes()
    cut = tmp_path / f"cut{suffix}"
    for length in [0, 3, 7, 100, len(content) // 2, len(content) - 1]:
        cut.write_bytes(content[:length])
        with pytest.raises(tt.SchemaError, match=f"cut{suffix}: "):
            tt.Batch.read(cut)


@settings(max_examples=200)
@given(st.data())
def test_hostile_bytes_are_refused_or_read_never_a_crash(data):
    content = bytearray(tt._core.Table.from_rows(ROWS, validate=True).to_stream())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(tt.SchemaError):
        tt._core.Table.from_stream(bytes(content)).validate()


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.arrow"):
        tt.Batch.read(tmp_path / "nothing.arrow")
    with pytest.raises(tt.SchemaError, match="no segment"):
        tt.Batch.read(tmp_path)


def test_an_error_while_writing_leaves_the_older_file(tmp_path, monkeypatch):
    target = tmp_path / "a.arrow"
    tt.Batch.from_rows(ROWS).write(target)
    before = target.read_bytes()

    def full(_path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tokentape.batch.files.sync", full)
    with pytest.raises(OSError, match="No space left"):
        tt.Batch.from_rows(ROWS[:1]).write(target)
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_disk_is_an_oserror():
    with pytest.raises(OSError, match="No space left"):
        tt._core.Table.from_rows([{"token_ids": [1] * 1_000_000}], validate=True).write_file("/dev/full")
