"""The commands over files: pack, stats, convert."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import tokentape as tt
from table_rows import full_row
from tokentape.cli import main

ROWS = [full_row(index, turns=(4,) * (1 + index % 3)) for index in range(6)]


@pytest.fixture
def path(tmp_path):
    tt.Batch.from_rows(ROWS).write(tmp_path / "a.arrow")
    return tmp_path / "a.arrow"


def test_convert_there_and_back(path, tmp_path, monkeypatch):
    monkeypatch.setattr(tt.Batch, "read", lambda *_, **__: pytest.fail("a file is converted part by part"))
    assert main(["convert", str(path), str(tmp_path / "b.parquet")]) == 0
    assert main(["convert", str(tmp_path / "b.parquet"), str(tmp_path / "c.arrow")]) == 0
    monkeypatch.undo()
    assert tt.Batch.read(tmp_path / "c.arrow").to_pyarrow().to_pylist() == ROWS


def test_pack_shares_prefixes(tmp_path, capsys):
    rows = [{"token_ids": [5, 6, last], "sampled_mask": [0, 0, 1]} for last in (7, 8, 9)]
    tt.Batch.from_rows(rows).write(tmp_path / "a.arrow")
    out = tmp_path / "packed.arrow"
    assert main(["pack", str(tmp_path / "a.arrow"), "--token-budget", "8", "--share-prefixes", "--out", str(out)]) == 0
    assert "shared prefixes: 1.80x fewer tokens, 4 saved" in capsys.readouterr().out
    assert pa.ipc.open_file(out).read_all().column("parent").to_pylist() == [[-1, 0, 1, 1, 1]]


def test_pack_prints_the_report_and_writes_the_bins(path, tmp_path, capsys):
    out = tmp_path / "packed.arrow"
    assert main(["pack", str(path), "--token-budget", "40", "--ranks", "2", "--out", str(out)]) == 0
    packing = tt.pack(tt.Batch.read(path), token_budget=40, ranks=2)
    assert capsys.readouterr().out == f"{packing.report}\n"
    assert pa.ipc.open_file(out).read_all().to_pylist() == packing.to_pyarrow().to_pylist()


def test_stats_count_rollouts_and_flat_groups(path, tmp_path, capsys):
    assert main(["stats", str(path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["groups"], found["rollouts"]) == (6, 3, 6)
    assert found["tokens"] == sum(len(row["token_ids"]) for row in ROWS)
    assert found["reward"]["mean"] == 2.5
    assert found["zero_variance_groups"] == 0
    tt.Batch.from_rows([row | {"reward": 1.0} for row in ROWS]).write(tmp_path / "flat.arrow")
    assert main(["stats", str(tmp_path / "flat.arrow")]) == 0
    assert json.loads(capsys.readouterr().out)["zero_variance_groups"] == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pack", "PATH", "--token-budget", "5"], "row 0 (trajectory 'trajectory-0') has"),
        (["pack", "PATH", "--token-budget", "64", "--out", "x.parquet"], "ends in .arrow"),
        (["convert", "PATH", "x.csv"], ".arrow or .parquet"),
        (["stats", "nowhere.arrow"], "no file, run folder or glob match"),
    ],
)
def test_bad_input_ends_with_code_2(path, capsys, words, message):
    assert main([str(path) if word == "PATH" else word for word in words]) == 2
    assert message.replace("'", '"') in capsys.readouterr().err.replace("'", '"')
