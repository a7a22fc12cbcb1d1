"""Every example runs: as its first lines say, on the real server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import servers
import tokentape as tt

EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = {"guess": "guess:Guess", "judge": "judge:Slogans", "base_model": "base_model:Facts"}


def test_every_example_is_tested_and_says_how_to_run_it():
    files = {path.stem: path.read_text() for path in EXAMPLES.glob("*.py")}
    assert files.keys() == NAMES.keys()
    for stem, name in NAMES.items():
        assert f"tokentape collect {name} --model model.gguf --llama-cpp" in files[stem]


@pytest.fixture(scope="module", params=NAMES)
def example(request, llama, tmp_path_factory):
    """The name of an example, its rows, and the completions that were recorded."""
    folder = tmp_path_factory.mktemp(request.param)
    command = [
        sys.executable, "-m", "tokentape", "collect", NAMES[request.param],
        "--model", servers.model_file(), "--llama-cpp", llama.url, "--groups", "1",
        "--path", folder / "run.tape", "--record", folder / "completions.jsonl",
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, cwd=EXAMPLES, check=False)
    assert result.returncode == 0, result.stderr
    assert "1 groups" in result.stderr
    return request.param, list(tt.Batch.read(folder / "run.tape").rows()), folder / "completions.jsonl"


def test_an_example_writes_what_was_sampled(example):
    name, rows, recorded = example
    turns = sum(len(row.turns) for row in rows)
    assert turns == len(recorded.read_text().splitlines()) >= 2
    for row in rows:
        assert row.reward is not None
        assert row.advantages is not None
        assert row.sampled_mask.sum() == sum(turn["end"] - turn["start"] for turn in row.turns)
        assert (row.logprobs[row.sampled_mask != 0] < 0).any()
        assert row.provenance["policy"]["server"] == "llama.cpp"
    if name == "judge":
        assert [row.agent for row in rows] == ["writer", "judge"] * 3
        assert len({row.rollout_id for row in rows}) == 3
    if name == "base_model":
        assert all(row.turns[0]["start"] == rows[0].turns[0]["start"] for row in rows)
        assert np.array_equal(rows[0].token_ids[:20], rows[1].token_ids[:20])
