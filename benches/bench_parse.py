# ruff: noqa: RUF001 -- marks of a format are written with other bars
"""Sampled ids to a message, against the installed peer; prints medians, ratios, and time against length.

Run `python benches/bench_parse.py`; it needs the corpus. The peer is `renderers` 0.1.12 (`parse_response`), for the
families whose tokenizer the corpus has. Both are given the same ids, in turn, and must find the same content, reasoning
and calls. Shared cores make absolute times noisy: read ratios.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from pathlib import Path

from transformers import AutoTokenizer

import tokentape as tt

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import corpus

ROUNDS = 200
WORDS = " ".join(f"word{number} is here, and" for number in range(60))
ARGUMENTS = '{"city": "Paris", "note": "' + " ".join(f"line {number}" for number in range(30)) + '"}'
FAMILIES = {
    "qwen3": (
        "qwen3",
        "trl_qwen3_training.jinja",
        ("renderers.qwen3", "Qwen3Renderer"),
        (
            f"<think>\n{WORDS}\n</think>\n\nI look.\n"
            f'<tool_call>\n{{"name": "get_weather", "arguments": {ARGUMENTS}}}\n</tool_call><|im_end|>'
        ),
    ),
    "qwen3.5": (
        "qwen3",
        "hfjs_qwen_qwen3.5_4b.jinja",
        ("renderers.qwen35", "Qwen35Renderer"),
        (
            f"{WORDS}\n</think>\n\nI look.\n\n<tool_call>\n<function=get_weather>\n"
            f"<parameter=city>\nParis\n</parameter>\n<parameter=note>\n{WORDS}\n</parameter>\n</function>\n</tool_call><|im_end|>"
        ),
    ),
    "deepseek-v3": (
        "deepseek-v3",
        "axolotl_deepseek_v3.jinja",
        ("renderers.deepseek_v3", "DeepSeekV3Renderer"),
        (
            f"I look: {WORDS}<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
            f"{ARGUMENTS}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>"
        ),
    ),
    "llama3.2": (
        "llama3.2",
        "trl_llama3_2.jinja",
        ("renderers.llama_3", "Llama3Renderer"),
        f'{{"name": "get_weather", "parameters": {ARGUMENTS}}}<|eot_id|>',
    ),
}
TEXT = {"type": "string"}
PARAMETERS = {"type": "object", "properties": {"city": TEXT, "note": TEXT}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "w", "parameters": PARAMETERS}}]


def timed(times, work, *arguments, **options):
    """Runs work, and notes the seconds."""
    start = time.perf_counter()
    result = work(*arguments, **options)
    times.append(time.perf_counter() - start)
    return result


def ours(message):
    calls = [(call.name, call.arguments) for call in message.tool_calls]
    return message.content.strip(), (message.reasoning or "").strip(), calls


def theirs(response):
    calls = [(call.name, call.arguments) for call in response.tool_calls]
    return response.content.strip(), (response.reasoning_content or "").strip(), calls


def family(name):
    """One family: the medians of both, and their ratio."""
    tokenizer, template, (module, peer_name), text = FAMILIES[name]
    folder = corpus.tokenizer_folder(tokenizer)
    chat = tt.Chat((folder / "tokenizer.json").read_bytes(), corpus.template(template))
    prompt = chat.render([{"role": "user", "content": "Hi"}], tools=TOOLS, add_generation_prompt=True).token_ids
    ids = chat.encode(text)
    try:
        peer = getattr(importlib.import_module(module), peer_name)(AutoTokenizer.from_pretrained(folder))
    except Exception as error:
        print(f"{name:12} no peer: {error}")
        return
    given, given_prompt = ids.tolist(), prompt.tolist()
    mine, peers = [], []
    for _ in range(ROUNDS):
        message = timed(mine, chat.parse, given, TOOLS, given_prompt)
        response = timed(peers, peer.parse_response, given, tools=TOOLS, prompt_ids=given_prompt)
    same = "same result" if ours(message) == theirs(response) else f"DIFFERENT: {ours(message)} {theirs(response)}"
    one, other = statistics.median(mine) * 1e6, statistics.median(peers) * 1e6
    figures = f"tokentape {one:8.1f} us  renderers {other:9.1f} us  {other / one:6.1f} x"
    print(f"{name:12} {len(given):5} tokens  {figures}  {same}")


def lengths():
    """Time for each token, as the turn grows."""
    folder = corpus.tokenizer_folder("qwen3")
    chat = tt.Chat((folder / "tokenizer.json").read_bytes(), corpus.template("trl_qwen3_training.jinja"))
    call = chat.encode('<tool_call>\n{"name": "f", "arguments": {"a": "some text, and more"}}\n</tool_call>\n').tolist()
    for count in (100, 1000, 10000):
        ids = call * count
        whole, streamed = [], []
        for _ in range(5):
            timed(whole, chat.parse, ids)

            def stream(ids=ids):
                state = chat.parse_stream()
                for id_ in ids:
                    state.push([id_])
                return state.finish()

            timed(streamed, stream)
        each = [statistics.median(times) / len(ids) * 1e9 for times in (whole, streamed)]
        print(f"{len(ids):8} tokens: whole {each[0]:6.1f} ns a token, streamed one by one {each[1]:7.1f} ns a token")


if __name__ == "__main__":
    for name in FAMILIES:
        family(name)
    lengths()
