"""The commands lint, verify and convert over files of ours and of other frameworks."""

from __future__ import annotations

import json

import numpy as np
import pytest

import good_rows
import rollouts
import small
import tokentape as tt
from tokentape.checks import read_foreign, write_foreign
from tokentape.cli import main
from tokentape.readers import FORMATS


@pytest.fixture(scope="module")
def batch():
    return tt.Batch.from_groups(good_rows.rollouts(small.chat(), 6, seed=2))


@pytest.fixture
def model(tmp_path):
    small.save_model(tmp_path / "model")
    return str(tmp_path / "model")


def broken(batch):
    rows = [row.to_dict() for row in batch.rows()]
    rows[3]["logprobs"] = rows[3]["logprobs"].copy()
    rows[3]["logprobs"][np.argmax(rows[3]["sampled_mask"])] = 0.5
    return tt.Batch.from_rows(rows, validate=False)


@pytest.mark.parametrize("name", ["a.arrow", "a.parquet", "a.tape"])
def test_good_rows_end_with_code_0(batch, model, tmp_path, capsys, name):
    path = tmp_path / name
    if path.suffix == ".tape":
        with tt.RunWriter(path, every_groups=2) as run:
            for start in range(0, len(batch), 4):
                run.write(batch[start : start + 4])
    else:
        batch.write(path)
    assert main(["lint", str(path)]) == 0
    assert main(["verify", str(path), "--model", model]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{path}: tokentape: {len(batch)} rows")
    assert len(lines) == 2


def test_a_fault_is_a_line_and_code_1(batch, model, tmp_path, capsys):
    path = tmp_path / "a.arrow"
    broken(batch).write(path)
    assert main(["verify", str(path), "--model", model]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(f"{path}: row 3 token ")
    assert "positive-logprob" in first
    assert "<assistant>" in first  # the text around it


def test_json_lines_end_with_a_summary(batch, tmp_path, capsys):
    path = tmp_path / "a.arrow"
    broken(batch).write(path)
    assert main(["lint", str(path), "--json", "--max-length", "10"]) == 1
    *faults, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {fault["kind"] for fault in faults} == {"positive-logprob", "overlong"}
    assert last["summary"]["rows"] == len(batch)
    assert last["summary"]["counts"]["overlong"] == len(batch)
    assert not last["summary"]["ok"]


def test_another_model_is_named(batch, model, tmp_path, capsys):
    path, template = tmp_path / "a.arrow", tmp_path / "other.jinja"
    batch.write(path)
    template.write_text(small.TEMPLATE.replace("\n", "\n\n"))
    assert main(["verify", str(path), "--model", model, "--template", str(template)]) == 1
    assert "template-changed" in capsys.readouterr().out


def test_what_only_smells_is_shown_when_asked(batch, tmp_path, capsys):
    path = tmp_path / "a.arrow"
    tt.Batch.from_rows([row.to_dict() | {"reward": 1.0} for row in batch.rows()]).write(path)
    assert main(["lint", str(path)]) == 0
    assert "[smell]" not in capsys.readouterr().out
    assert main(["lint", str(path), "--all"]) == 0
    assert "constant-reward" in capsys.readouterr().out


def test_a_damaged_file_is_a_fault_and_no_file_is_bad_input(batch, tmp_path, capsys):
    path = tmp_path / "a.arrow"
    batch.write(path)
    path.write_bytes(path.read_bytes()[:-40])
    assert main(["lint", str(path)]) == 2
    assert main(["lint", str(tmp_path / "nowhere.arrow")]) == 2
    assert "no file" in capsys.readouterr().err


COLUMNS = ("token_ids", "loss_mask", "logprobs", "advantages", "reward")
SUFFIXES = {"trl": ".json", "skyrl": ".json", "slime": ".json", "prime-rl": ".msgpack"}


def same(name, one, two):
    if one is None or two is None:
        return one is None and two is None
    if name == "reward":
        return abs(one - two) < 1e-6
    return len(one) == len(two) and np.allclose(one, two, atol=1e-6)


def trained(row):
    return row.advantages[row.loss_mask == 1]


@pytest.mark.parametrize("name", FORMATS)
def test_there_and_back_is_equal_where_the_format_keeps_it(batch, tmp_path, name):
    path = tmp_path / f"a{SUFFIXES.get(name, '.jsonl')}"
    if name == "art":  # one advantage a row
        batch = tt.Batch.from_rows([row.to_dict() for row in batch.rows() if len(set(trained(row).tolist())) == 1])
    lost = write_foreign([batch], path, name)
    back = tt.Batch.concat(list(read_foreign(path)))
    assert len(back) == len(batch)
    keeps = FORMATS[name].KEEPS
    for ours, theirs in zip(batch.rows(), back.rows(), strict=True):
        for column in COLUMNS:
            if column in keeps:
                value = getattr(ours, column)
                if column in {"logprobs", "advantages"}:
                    value = np.where(ours.loss_mask == 1, value, 0.0)
                assert same(column, value, getattr(theirs, column)), column
    assert tt.lint(path).ok, [str(fault) for fault in tt.lint(path).faults]
    assert {"provenance", "policy_versions"} <= lost.columns.keys()
    assert not lost.columns.keys() & keeps
    assert f"{name} has no place for" in str(lost)


def test_a_file_of_another_framework_there_and_back_has_its_ids(tmp_path):
    """Where the corpus is there: each good file, to ours and back, has the same sequences."""
    for entry in rollouts.entries():
        path = rollouts.folder() / entry["file"]
        if entry["kind"] != "good" or path.suffix not in {".json", ".jsonl", ".msgpack"}:
            continue
        first = tt.Batch.concat(list(read_foreign(path)))
        target = tmp_path / f"b{SUFFIXES.get(entry['framework'], '.jsonl')}"
        write_foreign([first], target, entry["framework"])
        second = tt.Batch.concat(list(read_foreign(target)))
        assert [row.token_ids.tolist() for row in first.rows()] == [row.token_ids.tolist() for row in second.rows()]
        assert [row.loss_mask.tolist() for row in first.rows()] == [row.loss_mask.tolist() for row in second.rows()]


def test_convert_says_what_is_lost_and_refuses_faults(batch, tmp_path, capsys):
    source, target = tmp_path / "a.arrow", tmp_path / "a.jsonl"
    batch.write(source)
    assert main(["convert", str(source), str(target), "--to", "atropos"]) == 0
    assert "atropos has no place for" in capsys.readouterr().err
    assert main(["convert", str(target), str(tmp_path / "b.arrow")]) == 0
    group = json.loads(target.read_text().splitlines()[0])
    group["inference_logprobs"][0] = group["inference_logprobs"][0][:-1]
    target.write_text(json.dumps(group) + "\n")
    assert main(["convert", str(target), str(tmp_path / "c.arrow")]) == 2
    assert not (tmp_path / "c.arrow").exists()
