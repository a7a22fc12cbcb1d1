"""Run folders: whole segments, whatever happens while they are written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

import tokentape as tt
from table_rows import full_row


def group(number: int) -> tt.Batch:
    return tt.Batch.from_rows([full_row(2 * number), full_row(2 * number + 1)])


def test_segments_close_every_n_groups_and_at_the_end(tmp_path):
    with tt.RunWriter(tmp_path / "run.tape", every_groups=2) as run:
        for number in range(5):
            run.write(group(number))
        assert run.segments == 2
        assert run.group_ids == {"item-0", "item-1", "item-2", "item-3"}
    names = sorted(path.name for path in (tmp_path / "run.tape").iterdir())
    assert names == ["00000.arrow", "00001.arrow", "00002.arrow"]
    assert [row.trajectory_id for row in tt.Batch.read(tmp_path / "run.tape").rows()] == [
        f"trajectory-{index}" for index in range(10)
    ]


def test_a_segment_closes_when_its_time_is_up(tmp_path):
    run = tt.RunWriter(tmp_path / "run.tape", every_groups=100, every_seconds=1e-9)
    run.write(group(0))
    assert run.segments == 1


def test_an_existing_run_continues_and_leftovers_are_removed(tmp_path):
    folder = tmp_path / "run.tape"
    with tt.RunWriter(folder) as run:
        run.write(group(0))
    (folder / ".partial-1-00001.arrow").write_bytes(b"half")
    assert len(tt.Batch.read(folder)) == 2
    with tt.RunWriter(folder) as run:
        assert run.group_ids == {"item-0"}
        run.write(group(1))
    assert sorted(path.name for path in folder.iterdir()) == ["00000.arrow", "00001.arrow"]
    assert len(tt.Batch.read(str(tmp_path / "*.tape"))) == 4


def test_an_error_inside_the_block_keeps_what_was_collected(tmp_path):
    with pytest.raises(RuntimeError), tt.RunWriter(tmp_path / "run.tape") as run:  # noqa: PT012
        run.write(group(0))
        raise RuntimeError
    assert len(tt.Batch.read(tmp_path / "run.tape")) == 2


def test_a_killed_writer_leaves_whole_segments(tmp_path):
    folder = tmp_path / "run.tape"
    program = (
        "import sys, tokentape as tt\n"
        f"run = tt.RunWriter({os.fspath(folder)!r}, every_groups=1)\n"
        "for number in range(10**9):\n"
        "    run.write(tt.Batch.from_rows([{'token_ids': [number] * 1000, 'group_id': str(number)}]))\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", program])
    while not (folder / "00003.arrow").exists():
        assert writer.poll() is None
        time.sleep(0.01)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    batch = tt.Batch.read(folder)
    assert [row.token_ids[0] for row in batch.rows()] == list(range(len(batch)))
    assert tt.RunWriter(folder).segments == len(batch)


def test_bad_arguments(tmp_path):
    with pytest.raises(tt.ArgumentError, match=r"ends in \.tape"):
        tt.RunWriter(tmp_path / "run")
    with pytest.raises(tt.ArgumentError, match="positive"):
        tt.RunWriter(tmp_path / "run.tape", every_groups=0)
