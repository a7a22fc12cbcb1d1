"""Render and tokenise against transformers' `apply_chat_template`, in one process, alternating, the same ids checked.

    python benches/bench_chat.py MODEL_FOLDER [--rounds 15]

Warm: every timed call sees messages that the process has not seen before, of the same kind as those it has; caches of
words are filled, a cache of whole texts would not help. Figures are medians; the ratio is that of the medians.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import transformers

import tokentape as tt
from tokentape import _core

TEXT = (
    "the model writes a short answer about rivers and numbers when you ask it to look something up in a table of "
    "results that another tool returned; it must count 12 or 3141 items, quote “names”, and say why each step follows"
)
WORDS = TEXT.split()
SIZES = {"1 KB": 1_000, "8 KB": 8_000, "50 KB": 50_000}


def conversation(random_: random.Random, size: int) -> list[dict[str, str]]:
    """Turns of some hundred characters, together of about `size` bytes."""
    messages: list[dict[str, str]] = []
    total = 0
    while total < size:
        words = [random_.choice(WORDS) for _ in range(random_.randint(20, 120))]
        text = " ".join(words).capitalize() + f". Item {random_.randrange(10**6)}."
        messages.append({"role": ("user", "assistant")[len(messages) % 2], "content": text})
        total += len(text.encode())
    return messages


def seconds(work: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[float, Any]:
    """The time of one call, and its result."""
    start = time.perf_counter()
    result = work(*arguments, **options)
    return time.perf_counter() - start, result


def compare(chat: tt.Chat, tokenizer: Any, size: int, rounds: int) -> tuple[float, float]:
    """Median seconds of both, calls alternating; each on its own fresh conversation object."""
    random_ = random.Random(size)
    for _ in range(5):
        chat.render(conversation(random_, size))
    ours, theirs = [], []
    for _ in range(rounds):
        messages = conversation(random_, size)
        took, rendered = seconds(chat.render, messages, add_generation_prompt=True)
        ours.append(took)
        took, ids = seconds(tokenizer.apply_chat_template, messages, add_generation_prompt=True, return_dict=False)
        theirs.append(took)
        assert rendered.token_ids.tolist() == ids, "the ids differ"
    return statistics.median(ours), statistics.median(theirs)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    if _core.build_profile != "release":
        parser.error("this is a debug build; its figures mean nothing")
    chat = tt.Chat.from_pretrained(arguments.model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.model)
    print(f"tokentape {tt.__version__}, transformers {transformers.__version__}, {arguments.model}")
    print(f"{'conversation':>12} {'tokentape ms':>13} {'transformers ms':>16} {'ratio':>7}")
    for name, size in SIZES.items():
        ours, theirs = compare(chat, tokenizer, size, arguments.rounds)
        print(f"{name:>12} {ours * 1e3:13.3f} {theirs * 1e3:16.3f} {theirs / ours:7.1f}")


if __name__ == "__main__":
    main()
