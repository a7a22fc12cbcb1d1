"""One tool turn bridged from Python, against re-rendering and the installed peer; prints medians and ratios.

Run `python benches/bench_bridge.py [FOLDER]`, FOLDER with the tokenizer and template of a Qwen3 model (by default that
of the corpus). Every timed call sees a conversation that the process has not seen before. The peer is `renderers`
0.1.12 (`bridge_to_next_turn`), skipped where it is not installed. Shared cores make absolute times noisy: read ratios.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from transformers import AutoTokenizer

import tokentape as tt

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import corpus

ROUNDS = 40
PARAMETERS = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
TOOLS = [{"type": "function", "function": {"name": "search", "description": "Searches.", "parameters": PARAMETERS}}]


def history(number, size):
    """A conversation of tool turns with about `size` characters, other in every round."""
    messages = [{"role": "user", "content": f"Question {number}: who wrote page {number * 7919}?"}]
    while sum(len(message["content"]) for message in messages) < size:
        place = len(messages)
        call = {"type": "function", "function": {"name": "search", "arguments": {"query": f"page {number} {place}"}}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        body = " ".join(f"word{(number * 31 + place * 17 + step) % 9973} is here" for step in range(40))
        messages.append({"role": "tool", "content": body})
    return messages


def median(times):
    """The median in microseconds."""
    return statistics.median(times) * 1e6


def timed(times, work, *arguments, **options):
    """Runs work, and notes the seconds."""
    start = time.perf_counter()
    result = work(*arguments, **options)
    times.append(time.perf_counter() - start)
    return result


def bench_turn(folder, size):
    """The three ways to the next prompt, in turns."""
    chat = tt.Chat.from_pretrained(folder)
    reference = AutoTokenizer.from_pretrained(folder)
    peer = peer_renderer(reference)
    options = {"tools": TOOLS, "add_generation_prompt": True, "tokenize": True, "return_dict": False}
    text = '<tool_call>\n{"name": "search", "arguments": {"query": "x"}}\n</tool_call>'
    completion = chat.encode(text + "<|im_end|>").tolist()
    ours, rendered, theirs = [], [], []
    for number in range(ROUNDS):
        messages = history(number, size)
        trajectory = chat.start(messages, tools=TOOLS)
        prompt = trajectory.token_ids.tolist()
        new = [{"role": "tool", "content": f"result {number} of the search, with a few words more"}]
        trajectory.act(completion)
        timed(ours, trajectory.observe, new)
        whole = [*messages, {"role": "assistant", "content": text}, *new]
        timed(rendered, reference.apply_chat_template, whole, **options)
        if peer:
            bridged = timed(theirs, peer.bridge_to_next_turn, prompt, completion, new, tools=TOOLS)
            assert bridged.token_ids == trajectory.token_ids.tolist(), "the ids differ"
    print(f"history of {size} characters: {median(ours):.0f} us", end="")
    print(f"; transformers {median(rendered):.0f} us, {median(rendered) / median(ours):.0f}x", end="")
    print(f"; renderers {median(theirs):.0f} us, {median(theirs) / median(ours):.1f}x" if theirs else "")


def peer_renderer(tokenizer):
    """The hand-written renderer of the family, if it is installed."""
    try:
        from renderers import create_renderer
        from renderers.configs import Qwen3RendererConfig
    except ImportError as error:
        print(f"renderers: {error}")
        return None
    return create_renderer(tokenizer, Qwen3RendererConfig())


def bench_turns(folder):
    """The time of each observation over a long conversation, first turns against last."""
    chat = tt.Chat.from_pretrained(folder)
    trajectory = chat.start([{"role": "user", "content": "begin"}], tools=TOOLS)
    times = []
    for turn in range(64):
        trajectory.act(chat.encode(f"step {turn}<|im_end|>"))
        new = [{"role": "tool", "content": " ".join(f"item{turn * 100 + step}" for step in range(60))}]
        timed(times, trajectory.observe, new)
    first, last = median(times[:10]), median(times[-10:])
    print(
        f"64 turns, {len(trajectory)} tokens: "
        f"an observation of the first ten {first:.0f} us, of the last ten {last:.0f} us"
    )


if __name__ == "__main__":
    model = sys.argv[1] if len(sys.argv) > 1 else corpus.tokenizer_folder("qwen3")
    for characters in (1000, 8000, 32000):
        bench_turn(model, characters)
    bench_turns(model)
