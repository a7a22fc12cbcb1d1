"""Servers compared with torch: the logprobs of llama.cpp, and a server that gives neither ids nor logprobs."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import numpy as np
import pytest

import corpus
import servers
import small
import tokentape as tt
from tokentape.policies import LlamaCpp
from tokentape.types import Sampling

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

PROMPTS = (
    "Tell me about the sea.",
    "What is 12 + 30?",
    "Write a function that reverses a list.",
    "Name three birds and where they live.",
)


@pytest.mark.filterwarnings("ignore")  # what loading a GGUF file warns of is not ours
def test_the_servers_logprobs_are_those_of_torch_within_the_quantisation(llama):
    pytest.importorskip("gguf")
    path = servers.model_file()
    chat = tt.Chat.from_pretrained(path)
    starts = [chat.start([{"role": "user", "content": prompt}]).token_ids for prompt in PROMPTS]

    async def sample():
        async with LlamaCpp(llama.url) as policy:
            return [await policy.complete_many(ids, 4, sampling=Sampling(max_tokens=40, seed=9)) for ids in starts]

    replies = asyncio.run(sample())
    model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    torch.set_num_threads(1)  # the cores may be shared
    gaps = []
    for prompt, completions in zip(starts, replies, strict=True):
        lengths = [len(completion.token_ids) for completion in completions]
        ids = np.zeros((len(completions), len(prompt) + max(lengths)), np.int64)  # behind the last id stands anything
        for row, completion in zip(ids, completions, strict=True):
            row[: len(prompt) + len(completion.token_ids)] = [*prompt, *completion.token_ids]
        with torch.no_grad():
            logprobs = model(torch.from_numpy(ids)).logits[:, len(prompt) - 1 :].log_softmax(-1).numpy()
        for own, completion, length in zip(logprobs, completions, lengths, strict=True):
            gaps.append(np.abs(own[np.arange(length), completion.token_ids] - completion.logprobs))
    gap = np.concatenate(gaps)
    print(
        f"{len(gap)} tokens, |llama.cpp Q4_1 - torch float32|: mean {gap.mean():.3f}, 99% under "
        f"{np.quantile(gap, 0.99):.2f}, max {gap.max():.2f} nats"
    )
    corpus.ran("sampled tokens whose logprobs were compared with torch", len(gap))
    assert len(gap) >= 500
    assert gap.mean() < 0.1
    assert np.quantile(gap, 0.99) < 0.5


@pytest.fixture(scope="module")
def transformers_server(tmp_path_factory):
    """The server of transformers with a tiny model, and the folder of that model."""
    pytest.importorskip("fastapi")
    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=small.tokenizer(), eos_token="<end>")
    tokenizer.chat_template = small.TEMPLATE
    tokenizer.save_pretrained(folder)
    config = transformers.LlamaConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        vocab_size=len(tokenizer),
        max_position_embeddings=128,
        eos_token_id=tokenizer.eos_token_id,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    program = "import sys; from transformers.cli.transformers import main; sys.argv[1:1] = ['serve']; main()"
    port = servers.free_port()
    command = [sys.executable, "-c", program, "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        url = f"http://127.0.0.1:{port}"
        servers.wait_until_ready(url, process)
        yield url, str(folder)
        process.kill()


def test_a_server_without_ids_and_logprobs_is_refused(transformers_server):
    """It answers 200, drops the request for logprobs without a word, and knows no ids."""
    url, model = transformers_server

    def translate(route, request):
        assert route == "/completion"
        return "/v1/completions", {"model": model, "prompt": "Hi", "max_tokens": 4, "logprobs": request["n_probs"]}

    async def ask(address):
        async with LlamaCpp(address) as policy:
            await policy.complete([1, 2], sampling=Sampling(max_tokens=4))

    with (
        servers.recording_proxy(url, translate) as proxy,
        pytest.raises(tt.PolicyError, match=r"no `generation_settings`|read None tokens") as caught,
    ):
        asyncio.run(ask(proxy.url))
    reply = proxy.exchanges[0].reply
    assert reply["choices"][0]["text"]
    assert "logprobs" not in reply["choices"][0]
    assert caught.value.transient is False
    with pytest.raises(tt.PolicyError, match="HTTP 404"):
        asyncio.run(ask(url))


def test_that_server_refuses_ids_as_a_prompt(transformers_server):
    url, model = transformers_server
    request = {"model": model, "prompt": [1, 2], "max_tokens": 4, "logprobs": 1}
    with (
        servers.recording_proxy(url, lambda route, body: ("/v1/completions", request)) as proxy,
        pytest.raises(tt.PolicyError, match="HTTP 400: prompt must be a string"),
    ):
        asyncio.run(LlamaCpp(proxy.url).complete([1, 2]))
