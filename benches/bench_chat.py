"""Render and tokenise against transformers' `apply_chat_template`, in one process, alternating, the same ids checked.

    python benches/bench_chat.py MODEL_FOLDER [--rounds 15] [--qwen3]

Warm: every timed call sees messages that the process has not seen before, of the same kind as those it has; caches of
words are filled, a cache of whole texts would not help. Figures are medians; the ratio is that of the medians.
"""

from __future__ import annotations

import argparse
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


def compare(chat: tt.Chat, tokenizer: Any, peer: Any, size: int, rounds: int) -> list[float]:
    """Median seconds of each, calls alternating, all on conversations that are new."""
    source = Chats(size)
    for _ in range(5):
        chat.render(source.chat(size, tools=False))
    times: list[list[float]] = [[], [], []]
    for _ in range(rounds):
        messages = source.chat(size, tools=False)
        took, rendered = seconds(chat.render, messages, add_generation_prompt=True)
        times[0].append(took)
        took, ids = seconds(tokenizer.apply_chat_template, messages, add_generation_prompt=True, return_dict=False)
        times[1].append(took)
        assert rendered.token_ids.tolist() == ids, "the ids differ"
        if peer:
            took, theirs = seconds(peer.render_ids, messages, add_generation_prompt=True)
            times[2].append(took)
            assert theirs == ids, "the ids of renderers differ"
    return [statistics.median(times_) for times_ in times if times_]


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
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--qwen3", action="store_true", help="the model is a Qwen3: measure renderers 0.1.12 too")
    arguments = parser.parse_args()
    if _core.build_profile != "release":
        parser.error("this is a debug build; its figures mean nothing")
    chat = tt.Chat.from_pretrained(arguments.model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.model)
    peer = peer_renderer(tokenizer) if arguments.qwen3 else None
    print(f"tokentape {tt.__version__}, transformers {transformers.__version__}, {arguments.model}, {chat.engine}")
    print(f"{'conversation':>12}  tokentape ms  transformers ms   ratio     renderers ms   ratio")
    for name, size in SIZES.items():
        ours, *others = compare(chat, tokenizer, peer, size, arguments.rounds)
        columns = [f"{other * 1e3:16.3f} {other / ours:7.1f}" for other in others]
        print(f"{name:>12} {ours * 1e3:13.3f} {''.join(columns)}")


if __name__ == "__main__":
    main()
