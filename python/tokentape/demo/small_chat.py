"""A small tokenizer and a ChatML template, made on the spot: the demo needs no model for them.

*Invariant*: the same text gives the same ids on every machine, since training breaks ties by the pair itself.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from tokentape import Chat

__all__ = ["TEMPLATE", "bpe_tokenizer", "small_chat"]

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""Prefix-stable: a longer conversation prints the shorter one first."""

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = 200
TRAINING_TEXT = """\
system user assistant tool
You solve sums with a calculator. Ask it with CALC(expression) and nothing else. It answers with the result.
Then give the answer in one sentence.
What is 12 + 30? What is 7 * 8? What is 95 - 41? How much is the sum? How much is the product?
CALC(12 + 30) CALC(7 * 8) CALC(95 - 41) The answer is 42. The answer is 56. The answer is 54.
error: the calculator understands whole numbers with +, - and *
"""


@cache
def small_chat() -> Chat:
    """The chat of the demo: byte-level BPE of a few hundred tokens under ChatML.

    Example:
        >>> chat = small_chat()
        >>> chat.decode(chat.encode("What is 12 + 30?"))
        'What is 12 + 30?'
    """
    return Chat(bpe_tokenizer(TRAINING_TEXT), TEMPLATE, special_tokens={"eos_token": "<|im_end|>"})


def bpe_tokenizer(text: str, merges: int = MERGES, special: Sequence[str] = SPECIAL) -> str:
    """The `tokenizer.json` of a byte-level BPE tokenizer trained on a text.

    Args:
        text: What to learn merges from.
        merges: How many, at most.
        special: Texts of the special tokens, which have the first ids.
    """
    learned = _learn(text, merges)
    tokens = [*special, *sorted(_byte_characters()), *("".join(pair) for pair in learned)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return json.dumps(
        {
            "version": "1.0",
            "added_tokens": [
                {"id": token_id, "content": token, **flags, "special": True} for token_id, token in enumerate(special)
            ],
            "normalizer": None,
            "pre_tokenizer": byte_level,
            "post_processor": None,
            "decoder": byte_level,
            "model": {
                "type": "BPE",
                "vocab": {token: token_id for token_id, token in enumerate(tokens)},
                "merges": [list(pair) for pair in learned],
            },
        }
    )


def _learn(text: str, merges: int) -> list[tuple[str, str]]:
    """The most frequent pairs, one after another; of equal ones the smallest in code point order."""
    characters = _byte_characters_by_byte()
    words = Counter(re.findall(r" ?[A-Za-z]+| ?[^\sA-Za-z0-9]+| ?\d|\s+", text))
    pieces = {word: [characters[byte] for byte in word.encode()] for word in words}
    learned: list[tuple[str, str]] = []
    while len(learned) < merges:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, parts in pieces.items():
            for pair in itertools.pairwise(parts):
                pairs[pair] += words[word]
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        learned.append(best)
        pieces = {word: _merge(parts, best) for word, parts in pieces.items()}
    return learned


def _merge(parts: Sequence[str], pair: tuple[str, str]) -> list[str]:
    merged: list[str] = []
    for part in parts:
        if merged and (merged[-1], part) == pair:
            merged[-1] += part
        else:
            merged.append(part)
    return merged


def _byte_characters() -> Iterable[str]:
    return _byte_characters_by_byte().values()


@cache
def _byte_characters_by_byte() -> dict[int, str]:
    """The printable character that stands for each byte in byte-level BPE, as GPT-2 chose them."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(0x100 + n) for n, byte in enumerate(others)}
