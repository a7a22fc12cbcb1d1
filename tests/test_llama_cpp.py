"""The llama.cpp policy against the real server: literal ids, their own logprobs, and nothing that is not proved."""

from __future__ import annotations

import asyncio
import copy
import gc
import tracemalloc

import numpy as np
import pytest

import servers
import tokentape as tt
from tokentape.demo.llama import llama_server
from tokentape.demo.small_chat import small_chat
from tokentape.policies import LlamaCpp
from tokentape.policies.distribution import sampled_logprob
from tokentape.policies.llama_reply import field_of, read_reply
from tokentape.types import Policy, Sampling

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # a policy that is not closed is no failure


def tokens(url, text):
    return servers.ask(url, "/tokenize", {"content": text, "add_special": False, "parse_special": True})["tokens"]


@pytest.fixture(scope="module")
def chat_prompt(llama):
    return tokens(llama.url, "<|im_start|>user\nSay hi.<|im_end|>\n<|im_start|>assistant\n")


@pytest.fixture(scope="module")
def emoji_prompt(llama):
    return tokens(llama.url, "Here are emojis and Chinese: 🙂 🚀 🎉 你好 世界 🙂 🚀")


def model_logprobs(url, prefix):
    """The model's own logprobs of all tokens behind a prefix, as the server tells them."""
    [letter] = tokens(url, "a")
    body = {"prompt": prefix, "n_predict": 1, "n_probs": 10**6, "logit_bias": [[letter, 1e6]], "temperature": 0}
    [entry] = servers.ask(url, "/completion", body)["completion_probabilities"]
    return {one["id"]: one["logprob"] for one in entry["top_logprobs"]}


async def test_ids_and_logprobs_are_those_of_the_raw_reply(llama, chat_prompt):
    with servers.recording_proxy(llama.url) as proxy:
        policy = LlamaCpp(proxy.url, policy_version=3)
        assert isinstance(policy, Policy)
        reply = await policy.complete(np.array(chat_prompt, np.int32), sampling=Sampling(max_tokens=6, seed=1))
        await policy.close()
    [exchange] = proxy.completions()
    assert exchange.request["prompt"] == chat_prompt
    assert reply.token_ids.tolist() == exchange.reply["tokens"]
    raw = [entry["logprob"] for entry in exchange.reply["completion_probabilities"]]
    np.testing.assert_array_equal(reply.logprobs, np.float32(raw))
    assert (reply.finish_reason, reply.policy_version, reply.logprob_kind) == ("length", 3, "raw")


async def test_seeds_repeat_and_a_group_is_its_seeds(llama, chat_prompt):
    async with LlamaCpp(llama.url) as policy:
        sampling = Sampling(max_tokens=5, seed=40)
        group = await policy.complete_many(chat_prompt, 3, sampling=sampling)
        for index, member in enumerate(group):
            alone = await policy.complete(chat_prompt, sampling=Sampling(max_tokens=5, seed=40 + index))
            assert alone.token_ids.tolist() == member.token_ids.tolist()
            assert member.metadata["seed"] == 40 + index
        assert len({tuple(member.token_ids.tolist()) for member in group}) == 3


async def test_the_end_token_stays_and_other_stop_ids_cut(llama, chat_prompt):
    async with LlamaCpp(llama.url) as policy:
        sampling = Sampling(max_tokens=40, temperature=0)
        whole = await policy.complete(chat_prompt, sampling=sampling)
        assert whole.finish_reason == "stop"
        assert whole.token_ids[-1] == tokens(llama.url, "<|im_end|>")[0]
        third = int(whole.token_ids[2])
        cut = await policy.complete(chat_prompt, sampling=sampling, stop_token_ids=[third])
        end = whole.token_ids.tolist().index(third) + 1
        assert cut.token_ids.tolist() == whole.token_ids[:end].tolist()
        np.testing.assert_array_equal(cut.logprobs, whole.logprobs[:end])
        assert cut.finish_reason == "stop"


@pytest.mark.parametrize("settings", [{"temperature": 0.5}, {"top_k": 3}, {"top_p": 0.7}, {"temperature": 2.0}])
async def test_raw_and_processed_logprobs_are_of_the_distribution_they_name(llama, chat_prompt, settings):
    sampling = Sampling(max_tokens=1, seed=11, **settings)
    expected = model_logprobs(llama.url, chat_prompt)
    async with LlamaCpp(llama.url) as raw, LlamaCpp(llama.url, logprobs="processed") as processed:
        one, other = [await policy.complete(chat_prompt, sampling=sampling) for policy in (raw, processed)]
    [token] = one.token_ids.tolist()
    assert other.token_ids.tolist() == [token]
    assert one.logprobs[0] == pytest.approx(expected[token], abs=2e-3)
    assert other.logprobs[0] == pytest.approx(sampled_logprob(expected, token, sampling), abs=2e-3)
    assert (one.logprob_kind, other.logprob_kind, one.temperature) == ("raw", "processed", sampling.temperature)


@pytest.mark.parametrize(("kind", "settings"), [("raw", {}), ("processed", {"temperature": 0.9, "top_k": 400})])
async def test_logprobs_that_the_server_leaves_out_inside_characters(llama, emoji_prompt, kind, settings):
    sampling = Sampling(max_tokens=12, seed=5, **settings)
    with servers.recording_proxy(llama.url) as proxy:
        async with LlamaCpp(proxy.url, logprobs=kind) as policy:
            reply = await policy.complete(emoji_prompt, sampling=sampling)
    first = proxy.completions()[0].reply
    ids = reply.token_ids.tolist()
    assert ids == first["tokens"]
    missing = reply.metadata["rescored"]
    left = [token for at, token in enumerate(ids) if at not in missing]
    assert left == [entry["id"] for entry in first["completion_probabilities"]]
    assert len(missing) >= 2
    for at in missing:
        distribution = model_logprobs(llama.url, emoji_prompt + ids[:at])
        expected = distribution[ids[at]] if kind == "raw" else sampled_logprob(distribution, ids[at], sampling)
        assert reply.logprobs[at] == pytest.approx(expected, abs=2e-3)


async def test_64_at_once_equal_one_after_another(llama, chat_prompt, emoji_prompt):
    prompts = [(chat_prompt if index % 2 else emoji_prompt)[: -1 - index % 5] for index in range(64)]

    async def play(policy, index):
        first = await policy.complete(prompts[index], sampling=Sampling(max_tokens=3, seed=index))
        further = [*prompts[index], *first.token_ids.tolist(), 1]
        second = await policy.complete(further, sampling=Sampling(max_tokens=2, seed=1000 + index))
        return [*first.token_ids.tolist(), *second.token_ids.tolist()], [*first.logprobs, *second.logprobs]

    async with LlamaCpp(llama.url) as policy:
        together = await asyncio.gather(*(play(policy, index) for index in range(64)))
        alone = [await play(policy, index) for index in range(32)]
        server_bytes = servers.resident_bytes(llama.process.pid)
        tracemalloc.start()
        alone += [await play(policy, index) for index in range(32, 64)]
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        grown = servers.resident_bytes(llama.process.pid) - server_bytes
    assert [ids for ids, _ in together] == [ids for ids, _ in alone]
    for (_, one), (_, other) in zip(together, alone, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-3)
    assert len({tuple(ids) for ids, _ in alone}) > 50
    assert kept < 500_000
    assert grown < 64_000_000


async def test_a_long_completion_comes_in_chunks(llama, chat_prompt):
    sampling = Sampling(max_tokens=10, seed=21)
    with servers.recording_proxy(llama.url) as proxy:
        async with LlamaCpp(proxy.url, chunk=4) as policy:
            reply = await policy.complete(chat_prompt, sampling=sampling)
            again = await policy.complete(chat_prompt, sampling=sampling)
    chunks = proxy.completions()[:3]
    assert [chunk.request["n_predict"] for chunk in chunks] == [4, 4, 2]
    assert len({chunk.request["seed"] for chunk in chunks}) == 3
    assert reply.token_ids.tolist() == [token for chunk in chunks for token in chunk.reply["tokens"]]
    assert chunks[2].request["prompt"] == chat_prompt + reply.token_ids[:8].tolist()
    assert (reply.finish_reason, reply.metadata["seed"]) == ("length", 21)
    assert again.token_ids.tolist() == reply.token_ids.tolist()


async def test_a_stop_id_ends_a_completion_with_its_chunk(llama, chat_prompt):
    sampling = Sampling(max_tokens=300, temperature=0)
    with servers.recording_proxy(llama.url) as proxy:
        async with LlamaCpp(proxy.url, chunk=4) as policy:
            second = int(
                (await policy.complete(chat_prompt, sampling=Sampling(max_tokens=2, temperature=0))).token_ids[1]
            )
            reply = await policy.complete(chat_prompt, sampling=sampling, stop_token_ids=[second])
    assert (len(reply.token_ids), reply.finish_reason) == (2, "stop")
    assert len(proxy.completions()) == 2


async def test_a_cancelled_task_asks_for_no_more(llama, chat_prompt):
    cancelled = chat_prompt[:3]

    def asked():
        return sum(exchange.request["prompt"][:3] == cancelled for exchange in proxy.completions())

    with servers.recording_proxy(llama.url) as proxy:
        async with LlamaCpp(proxy.url, chunk=2) as policy:
            sampling = Sampling(max_tokens=900, seed=3, temperature=1.5)
            task = asyncio.create_task(policy.complete(cancelled, sampling=sampling))
            async with asyncio.timeout(100):
                while asked() < 2:  # noqa: ASYNC110 -- the proxy lives in threads
                    await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            before = asked()
            await policy.complete(chat_prompt[1:], sampling=Sampling(max_tokens=8))
    assert asked() <= before + 1  # the one that was out when the task was cancelled


async def test_the_check_tells_another_model(llama):
    async with LlamaCpp(llama.url) as policy:
        with pytest.raises(tt.PolicyError, match=r"holds another model than the chat: .Hello"):
            await policy.check(small_chat())


@pytest.mark.parametrize(
    ("prompt", "message"),
    [([10**6], "invalid tokens"), ([5] * 3000, "exceeds the available context size"), ([], "must not be empty")],
)
async def test_what_the_server_refuses_is_said_and_not_tried_again(llama, prompt, message):
    async with LlamaCpp(llama.url) as policy:
        with pytest.raises(tt.PolicyError, match=f"llama.cpp server at {llama.url}: .*{message}") as caught:
            await policy.complete(prompt)
    assert caught.value.transient is False


def test_arguments():
    with pytest.raises(tt.ArgumentError, match="no URL"):
        LlamaCpp("localhost:8080")
    with pytest.raises(tt.ArgumentError, match="raw"):
        LlamaCpp("http://localhost", logprobs="exact")


async def test_seeds_that_llama_cpp_cannot_have():
    with pytest.raises(tt.ArgumentError, match="seeds from 0"):
        await LlamaCpp("http://127.0.0.1:9").complete([1], sampling=Sampling(seed=2**32))


# Replies that prove nothing -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exchange(llama, chat_prompt):
    """A real exchange, to be spoiled."""
    with servers.recording_proxy(llama.url) as proxy:
        asyncio.run(LlamaCpp(proxy.url).complete(chat_prompt, sampling=Sampling(max_tokens=4, seed=1)))
    return proxy.completions()[0]


def put(*path, value):
    def spoil(reply):
        for key in path[:-1]:
            reply = reply[key]
        reply[path[-1]] = value

    return spoil


def drop(*path):
    def spoil(reply):
        for key in path[:-1]:
            reply = reply[key]
        del reply[path[-1]]

    return spoil


PROBS = "completion_probabilities"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (drop("tokens"), "no `tokens`: text alone is no use"),
        (put("tokens", value=[]), "no `tokens`"),
        (put("tokens", 0, value=1.5), "no integers"),
        (put("tokens", 1, value=7), "the one numbered"),
        (put(PROBS, value="high"), "str, not a list"),
        (put(PROBS, 1, "id", value=7), "the one numbered 1 is of token 7"),
        (put(PROBS, 1, "logprob", value=None), "logprob of sampled token 1 is None"),
        (put(PROBS, 1, "logprob", value=float("nan")), "logprob of sampled token 1 is nan"),
        (put(PROBS, 1, "logprob", value=float("-inf")), "must be finite"),
        (put(PROBS, 1, "logprob", value=0.5), "not above 0"),
        (put("tokens_evaluated", value=3), "read 3 tokens of a prompt of"),
        (put("truncated", value=True), "dropped the beginning of its context"),
        (drop("generation_settings"), "no `generation_settings`"),
        (put("generation_settings", "temperature", value=0.8), "temperature 0.8 where 1.0"),
        (put("generation_settings", "top_k", value=40), "top_k 40 where 0"),
        (drop("generation_settings", "min_p"), "min_p None where 0.0"),
        (put("generation_settings", "samplers", value=["min_p"]), "samplers"),
        (put("generation_settings", "seed", value=2), "seed 2 where 1"),
        (put("generation_settings", "n_probs", value=0), "n_probs 0 where 1"),
    ],
)
def test_a_reply_that_proves_nothing_is_refused(exchange, spoil, message):
    def fail(what):
        raise tt.PolicyError(what)

    assert read_reply(exchange.reply, exchange.request, 0, fail).ids == exchange.reply["tokens"]
    reply = copy.deepcopy(exchange.reply)
    spoil(reply)
    with pytest.raises(tt.PolicyError, match=message):
        read_reply(reply, exchange.request, 0, fail)


@pytest.mark.parametrize(
    ("ids", "entries", "known"),
    [
        ([5, 6, 7], [5, 6, 7], [0, 1, 2]),
        ([5, 9, 6], [5, 6], [0, 2]),
        ([9, 8, 6], [6], [2]),
        ([9, 8], [], []),
        ([9, 6, 6], [6], []),  # either may be the one that ended the character
        ([5, 9, 6, 6, 7], [5, 6, 7], [0, 4]),
    ],
)
def test_logprobs_lie_where_they_can_belong_to_no_other_token(exchange, ids, entries, known):
    reply = copy.deepcopy(exchange.reply)
    reply["tokens"], reply[PROBS] = ids, [{"id": token, "logprob": -0.5} for token in entries]
    logprobs = read_reply(reply, exchange.request, 0, pytest.fail).logprobs
    assert [at for at, value in enumerate(logprobs) if value is not None] == known
    assert field_of(5, "x") is None


# Servers that misbehave ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "message", "transient"),
    [
        ("slow", "no answer to /completion within 0.5 s", True),
        ("dies", "connection ended before the answer to /completion was whole", True),
        ("unauthorized", "HTTP 401: Invalid API Key", False),
        ("missing", "HTTP 404: not found", False),
        ("broken", "HTTP 500: out of memory", True),
        ("busy", "HTTP 503: Loading model", True),
        ("page", "is no JSON .*: <html>Welcome to nginx", False),
        ("empty", r"is no JSON .*: \(empty\)", False),
        ("list", "gave 0 completions where 1", False),
        ("text", "", False),
    ],
)
async def test_a_server_that_misbehaves(how, message, transient):
    with servers.bad_server(how) as url:
        async with LlamaCpp(url, timeout=0.5 if how == "slow" else 60) as policy:
            with pytest.raises(tt.PolicyError, match=f"llama.cpp server at {url}: .*{message}") as caught:
                await policy.complete([1, 2, 3])
    assert caught.value.transient is transient


async def test_no_server_at_all():
    async with LlamaCpp("http://127.0.0.1:9") as policy:
        with pytest.raises(tt.PolicyError, match=r"cannot connect .*is it running") as caught:
            await policy.complete([1])
    assert caught.value.transient is True


class Counting(tt.Environment):
    """Asks once an item, and kills the server during the fourth."""

    def __init__(self, process, prompt):
        super().__init__(group_size=1)
        self.process, self.prompt, self.given = process, prompt, 0

    async def get_item(self):
        self.given += 1
        return {"id": f"item-{self.given}"} if self.given <= 6 else None

    async def collect_trajectory(self, item):
        trajectory = tt.Trajectory.from_prompt(self.prompt)
        last = item["id"] == "item-4"
        asked = asyncio.create_task(self.policy.complete(self.prompt, sampling=Sampling(max_tokens=500 if last else 2)))
        if last:
            await asyncio.sleep(0.2)
            self.process.kill()
        reply = await asked
        trajectory.act(reply.token_ids, reply.logprobs)
        trajectory.reward = 1.0
        return trajectory


async def test_a_server_killed_in_mid_reply_leaves_the_finished_groups(tmp_path):
    path = tmp_path / "run.tape"
    with llama_server(servers.model_file(), context=1024, slots=1, threads=1) as server:
        prompt = tokens(server.url, "Once upon a time")
        env = Counting(server.process, prompt)
        with pytest.raises(tt.PolicyError, match=r"cannot connect|connection ended") as caught:
            await tt.collect(env, LlamaCpp(server.url), path=path, concurrency=1, retries=0, give_up=2)
    assert "3 groups are finished in" in caught.value.__notes__[0]
    assert [row.group_id for row in tt.Batch.read(path).rows()] == ["item-1", "item-2", "item-3"]
