"""Render and tokenise against transformers' `apply_chat_template`, in one process, in turns, the same ids checked.

    python benches/bench_chat.py MODEL_FOLDER [--rounds 20] [--turn 5] [--qwen3]

Warm: every engine has seen a megabyte of other chats of the same kind, and every timed call sees messages that it has
not seen; a cache of whole texts would not help. Engines take turns of so many calls: with `--turn 1` the others' work
empties the processor's caches before every call. Figures are medians; the ratio is that of the medians.

The last line is what repeating saves: a rollout's call with the same system prompt and tools as the one before it, and
a new question, against one whose system prompt begins with another word each time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import transformers

import tokentape as tt
from texts import Chats
from tokentape import _core

SIZES = {"1 KB": 1_000, "8 KB": 8_000, "50 KB": 50_000}


def seconds(work: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[float, Any]:
    """The time of one call, and its result."""
    start = time.perf_counter()
    result = work(*arguments, **options)
    return time.perf_counter() - start, result


Render = Callable[[list[dict[str, Any]]], Any]


def engines(chat: tt.Chat, tokenizer: Any, peer: Any) -> list[Render]:
    """Messages to ids, by each."""
    renders: list[Render] = [
        lambda messages: chat.render(messages, add_generation_prompt=True).token_ids,
        lambda messages: tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False),
    ]
    return [*renders, lambda messages: peer.render_ids(messages, add_generation_prompt=True)] if peer else renders


def compare(renders: list[Render], source: Chats, size: int, rounds: int, turn: int) -> list[float]:
    """Median seconds of each, on conversations that are new."""
    times: list[list[float]] = [[] for _ in renders]
    for _ in range(max(1, rounds // turn)):
        chats = [source.chat(size, tools=False) for _ in range(turn)]
        found: list[list[Any]] = [[] for _ in renders]
        for render, taken, ids in zip(renders, times, found, strict=True):
            for messages in chats:
                took, result = seconds(render, messages)
                taken.append(took)
                ids.append(result)
        for ours, *others in zip(*found, strict=True):
            assert all(ours.tolist() == theirs for theirs in others), "the ids differ"
    return [statistics.median(taken) for taken in times]


def prose(source: Chats, size: int) -> str:
    """So much text, or somewhat less."""
    return "\n".join(message["content"] for message in source.chat(size, tools=False))[:size]


def tool(source: Chats, number: int) -> dict[str, Any]:
    """A tool of some 1,000 bytes."""
    names = ("path", "query", "limit", "offset")
    properties = {name: {"type": "string", "description": prose(source, 80)} for name in names}
    parameters = {"type": "object", "properties": properties, "required": list(names)}
    function = {"name": f"tool_{number}", "description": prose(source, 200), "parameters": parameters}
    return {"type": "function", "function": function}


def repeating(chat: tt.Chat, source: Chats, rounds: int) -> tuple[int, list[float]]:
    """The bytes that repeat, and median seconds of calls where they do and where they do not."""
    prompt, tools = prose(source, 1_000), [tool(source, number) for number in range(5)]
    times: list[list[float]] = [[], []]
    for number in range(rounds):
        for taken, first in zip(times, ("You", str(number)), strict=True):
            messages = [
                {"role": "system", "content": f"{first} {prompt}"},
                {"role": "user", "content": prose(source, 300)},
            ]
            taken.append(seconds(chat.render, messages, tools=tools, add_generation_prompt=True)[0])
    return len(prompt) + len(json.dumps(tools)), [statistics.median(taken) for taken in times]


def peer_renderer(tokenizer: Any) -> Any:
    """The hand-written renderer of the family, if it is installed and there is one."""
    try:
        from renderers import create_renderer
        from renderers.configs import Qwen3RendererConfig

        return create_renderer(tokenizer, Qwen3RendererConfig())
    except Exception as error:
        print(f"renderers: not measured ({error})")
        return None


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=20, help="calls of each engine")
    parser.add_argument("--turn", type=int, default=5, help="calls of one engine in a row")
    parser.add_argument("--qwen3", action="store_true", help="the model is a Qwen3: measure renderers 0.1.12 too")
    arguments = parser.parse_args()
    if _core.build_profile != "release":
        parser.error("this is a debug build; its figures mean nothing")
    chat = tt.Chat.from_pretrained(arguments.model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.model)
    peer = peer_renderer(tokenizer) if arguments.qwen3 else None
    print(f"tokentape {tt.__version__}, transformers {transformers.__version__}, {arguments.model}, {chat.engine}")
    print(f"{'conversation':>12}  tokentape ms  transformers ms   ratio     renderers ms   ratio")
    renders, source = engines(chat, tokenizer, peer), Chats()
    for messages in source.chats(1_000_000, tools=False):
        for render in renders:
            render(messages)
    for name, size in SIZES.items():
        ours, *others = compare(renders, source, size, arguments.rounds, arguments.turn)
        columns = [f"{other * 1e3:16.3f} {other / ours:7.1f}" for other in others]
        print(f"{name:>12} {ours * 1e3:13.3f} {''.join(columns)}")
    size, (again, fresh) = repeating(chat, source, 10 * arguments.rounds)
    print(
        f"{size} bytes of system prompt and tools: {again * 1e6:.1f} us where they repeat, {fresh * 1e6:.1f} us if not"
    )


if __name__ == "__main__":
    main()
