"""Rollout files of existing frameworks: every fault of the manifest is found where it is, and none on good files."""

from __future__ import annotations

import pytest

import corpus
import rollouts
import tokentape as tt

ENTRIES = rollouts.entries()


@pytest.fixture(params=ENTRIES, ids=lambda entry: entry["file"])
def entry(request):
    return request.param


def test_there_is_a_manifest():
    if not ENTRIES:
        corpus.require()
        pytest.skip(f"no rollouts in {rollouts.folder()}")
    corpus.ran("rollout files", len(ENTRIES))


@pytest.mark.parametrize("with_model", [True, False], ids=["model", "alone"])
def test_every_fault_is_found_and_none_invented(entry, with_model):
    path = rollouts.folder() / entry["file"]
    if rollouts.refused(entry):
        with pytest.raises(tt.SchemaError, match="is a pickle"):
            tt.lint(path)
        return
    report = tt.lint(path, chat=rollouts.chat(entry["framework"]) if with_model else None)
    assert report.format == entry["framework"] or report.counts["truncated-file"]
    for fault in entry["faults"]:
        assert rollouts.is_found(fault, report.faults), (fault, [str(found) for found in report.faults])
    rows = {fault["row"] for fault in entry["faults"]}
    invented = [str(fault) for fault in report.faults if fault.row not in rows and None not in rows]
    assert not invented


def test_no_reading_is_repaired(entry):
    """What convert takes has the ids of the file, and what has a fault is refused by name."""
    path = rollouts.folder() / entry["file"]
    if entry["kind"] != "good" or path.suffix in {".pkl", ".parquet"}:
        return
    batches = list(tt.checks.read_foreign(path))
    assert sum(len(batch) for batch in batches) > 0
    for batch in batches:
        assert tt.lint(batch).ok
        batch.validate()
