"""The whole path on the demo: what the policy returned is what the file and the packed batches hold."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import reference
import tokentape as tt
from tokentape.demo import Calculator, small_chat
from tokentape.demo.environment import questions
from tokentape.demo.replay import COMPLETIONS, GROUP_SIZE, ITEMS, replay_policy
from tokentape.policies import Recording

BUDGET = 512


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The file of one run of the demo, and the recording proxy that stood before its policy."""
    path = tmp_path_factory.mktemp("demo") / "trajectories.arrow"
    recording = Recording(replay_policy())
    env = Calculator(small_chat(), questions(ITEMS), group_size=GROUP_SIZE)
    asyncio.run(tt.collect(env, recording, path=path, concurrency=4))
    return path, recording


def rebuilt(row, recording):
    """The ids, mask and logprobs of a row from the proxy's log and the seeds of its turns alone."""
    by_seed = {record.sampling.seed: record for record in recording.records}
    ids, sampled, logprobs = [], [], []
    for seed in row.provenance["seeds"]:
        record = by_seed[seed]
        observed = record.prompt_token_ids.tolist()[len(ids) :]
        reply = record.completion.token_ids.tolist()
        assert record.prompt_token_ids.tolist()[: len(ids)] == ids
        ids += observed + reply
        sampled += [0] * len(observed) + [1] * len(reply)
        logprobs += [0.0] * len(observed) + record.completion.logprobs.tolist()
    return ids, sampled, logprobs


def test_every_sampled_span_is_what_the_policy_returned(run):
    path, recording = run
    rows = list(tt.Batch.read(path).rows())
    assert len(rows) >= 32
    used = set()
    for row in rows:
        assert row.turns
        for turn in row.turns:
            prompt, ids = row.token_ids[: turn["start"]], row.token_ids[turn["start"] : turn["end"]]
            matches = [
                index
                for index, record in enumerate(recording.records)
                if index not in used
                and np.array_equal(record.prompt_token_ids, prompt)
                and np.array_equal(record.completion.token_ids, ids)
                and np.array_equal(record.completion.logprobs, row.logprobs[turn["start"] : turn["end"]])
            ]
            assert matches, f"no reply was {ids.tolist()}"
            used.add(matches[0])
    assert used == set(range(len(recording.records)))  # and no reply is missing in the file


def test_masks_and_packed_batches_equal_what_an_independent_reader_rebuilds(run):
    path, recording = run
    batch = tt.Batch.read(path)
    plain = batch.to_pyarrow().to_pylist()
    for row, columns in zip(batch.rows(), plain, strict=True):
        ids, sampled, logprobs = rebuilt(row, recording)
        assert columns["token_ids"] == ids
        assert columns["sampled_mask"] == columns["loss_mask"] == sampled
        np.testing.assert_array_equal(np.float32(columns["logprobs"]), np.float32(logprobs))
    expected, left_out = reference.pack(plain, BUDGET)
    assert left_out == []
    packed = list(tt.pack(batch, token_budget=BUDGET))
    assert len(packed) == len(expected)
    for ours, theirs in zip(packed, expected, strict=True):
        for name in ("input_ids", "position_ids", "segment_ids", "cu_seqlens", "seq_lens", "sampled_mask", "loss_mask"):
            assert getattr(ours, name).tolist() == list(theirs[name]), name


def test_ids_equal_the_full_render_of_the_messages(run):
    path, _ = run
    chat = small_chat()
    two_turns = 0
    for row in tt.Batch.read(path).rows():
        messages = row.messages
        full = chat.render(messages, control_tokens="template").token_ids
        assert full[: len(row)].tolist() == row.token_ids.tolist()
        two_turns += len(row.turns) == 2
    assert two_turns >= 20


def test_the_file_reads_in_the_libraries_of_the_field(run):
    datasets = pytest.importorskip("datasets")
    path, _ = run
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
        ids = table.column("token_ids").to_pylist()
    frame = pl.read_ipc(path)
    assert frame.columns == table.column_names
    assert frame["token_ids"].to_list() == ids
    dataset = datasets.load_dataset(
        "arrow", data_files=str(path), split="train", cache_dir=str(path.parent / "datasets")
    )
    assert dataset.column_names == table.column_names
    assert [list(row["token_ids"]) for row in dataset] == ids


def test_the_rewards_are_what_the_transcripts_deserve(run):
    path, _ = run
    by_id = {question.id: question for question in questions(ITEMS)}
    for row in tt.Batch.read(path).rows():
        question = by_id[row.group_id]
        said = [message["content"] for message in row.messages if message["role"] == "assistant"][2:]
        asked_right = said[0].startswith(f"CALC({question.expression})")
        told_right = len(said) == 2 and f" {question.answer}." in said[1]
        assert row.reward == 0.5 * asked_right + 0.5 * told_right


def test_advantages_are_zero_in_mean_and_only_on_sampled_tokens(run):
    path, _ = run
    for row in tt.Batch.read(path).rows():
        assert (row.advantages[row.sampled_mask == 0] == 0).all()


def test_the_command(tmp_path):
    command = [sys.executable, "-m", "tokentape", "demo", "--replay", "--path", str(tmp_path), "--color", "always"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "48 trajectories" in result.stdout
    assert "no model" in result.stdout
    assert "padding saved" in result.stdout
    assert "group, write, read, pack" in result.stdout
    assert "\x1b[1;32m" in result.stdout
    batch = tt.Batch.read(tmp_path / "trajectories.arrow")
    assert len(batch) == ITEMS * GROUP_SIZE
    bins = pa.ipc.open_file(tmp_path / "packed.arrow").read_all()
    assert sum(map(len, bins.column("input_ids").to_pylist())) == sum(len(row) for row in batch.rows())


def test_the_recorded_completions_are_small():
    assert COMPLETIONS.stat().st_size < 200_000
