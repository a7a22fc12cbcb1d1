# ruff: noqa: RUF001 -- marks of a format are written with other bars
"""Sampled ids to a message, against the installed peer; prints medians, ratios, and time against length.

Run `python benches/bench_parse.py`; it needs the corpus. The peer is `renderers` 0.1.12 (`parse_response`), for the
families whose tokenizer the corpus has. Both read the same ids, in turn, a few calls each, and must find the same
content, reasoning and calls, which are read within the time. The peer takes lists; tokentape takes the int32 arrays
that it hands out, and lists too. A turn without tokens tells the price of a call. Times are those of the processor,
which others on the same cores change least.
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

ROUNDS = 60
CALLS = 20
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


def timed(times, work, *arguments, calls=1):
    """Runs work a few times, and notes the seconds of one."""
    start = time.thread_time()
    for _ in range(calls):
        result = work(*arguments)
    times.append((time.thread_time() - start) / calls)
    return result


def fields(message, reasoning):
    """Reads all that a message says: content, reasoning and calls."""
    calls = [(call.name, call.arguments) for call in message.tool_calls]
    return message.content.strip(), (getattr(message, reasoning) or "").strip(), calls


def ours(chat, ids, prompt):
    return fields(chat.parse(ids, TOOLS, prompt), "reasoning")


def theirs(peer, ids, prompt):
    return fields(peer.parse_response(ids, tools=TOOLS, prompt_ids=prompt), "reasoning_content")


def family(name):
    """One family: medians and ratios, with ids as each side has them and with lists for both."""
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
    listed, listed_prompt = ids.tolist(), prompt.tolist()
    calls, arrays, lists, empty, peers = [], [], [], [], []
    for _ in range(ROUNDS):
        timed(calls, chat.parse, ids, TOOLS, prompt, calls=CALLS)
        found = timed(arrays, ours, chat, ids, prompt, calls=CALLS)
        again = timed(lists, ours, chat, listed, listed_prompt, calls=CALLS)
        timed(empty, ours, chat, ids[:0], None, calls=CALLS)
        wanted = timed(peers, theirs, peer, listed, listed_prompt, calls=CALLS)
    same = "same result" if found == again == wanted else f"DIFFERENT: {found} {again} {wanted}"
    call, array, list_, none, other = (statistics.median(t) * 1e6 for t in (calls, arrays, lists, empty, peers))
    print(f"{name:12} {len(ids):4} tokens  renderers {other:6.1f} us  {same}")
    shown = f"arrays {array:5.1f} us, {other / array:5.1f} x;  lists {list_:5.1f} us, {other / list_:5.1f} x"
    print(f"    tokentape: {shown};  the call alone {call:4.1f} us;  no tokens {none:4.2f} us")


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
