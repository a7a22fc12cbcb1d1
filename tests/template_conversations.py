"""Conversations and template arguments drawn by chance, for rendering one compiled template with many."""

from __future__ import annotations

import random
from typing import Any

from template_words import WORDS

ROLES = ("system", "user", "assistant", "tool", "assistant")
NUMBERS = (7, 0, -3, 1, 255, 10**20, 2.5, -0.5, 1e-7, 1e22, True)
ARGUMENTS: dict[str, Any] = {
    "t": "Hello World",
    "u": "é<b>\n'q\"",
    "i": 7,
    "f": 2.5,
    "l": [3, 1, 2],
    "w": ["b", "A", "c", "a"],
    "n": None,
    "y": True,
    "m": {"b": 1, "a": "x", "items": 5, "n": None},
    "r": [{"k": 1, "n": "x"}, {"k": 2}, {"k": 1, "z": [1]}],
}


class Conversations:
    """Draws one conversation after another.

    Args:
        seed: Where the draws begin.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def draw(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Messages, and the arguments beside them: the usual ones, or some of another value and type."""
        messages = [self.message() for _ in range(self.random.randint(1, 4))]
        return messages, ARGUMENTS | self.others()

    def word(self) -> str:
        return self.random.choice(WORDS)

    def number(self) -> Any:
        return self.random.choice(NUMBERS)

    def message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": self.random.choice(ROLES), "content": self.word()}
        kind = self.random.random()
        if kind < 0.1:
            message["content"] = [{"type": "text", "text": self.word()}, {"type": "image"}]
        elif kind < 0.2 and message["role"] == "assistant":
            call = {"name": "f", "arguments": {self.word(): self.number()}}
            message |= {"content": None, "tool_calls": [{"type": "function", "function": call}]}
        elif kind < 0.3:
            message[self.random.choice(("reasoning_content", "thinking", "reasoning", "name"))] = self.word()
        return message

    def others(self) -> dict[str, Any]:
        drawn = {
            "t": self.word,
            "u": self.word,
            "i": lambda: self.random.choice((0, 1, 7, -3, 12, 10**20)),
            "f": lambda: self.random.choice((0.0, 2.5, -0.5, 1e-7, 3.0, 1e22)),
            "l": lambda: [self.random.randint(-2, 9) for _ in range(self.random.randint(0, 4))],
            "w": lambda: [self.word() for _ in range(self.random.randint(1, 4))],
            "n": lambda: self.random.choice((None, None, 0, "", [])),
            "y": lambda: self.random.choice((True, False, 1, "yes", 0.0)),
            "m": lambda: {"b": self.number(), "a": self.word(), self.word(): self.number(), "items": None},
            "r": lambda: [{"k": self.random.randint(0, 2), "n": self.word()} for _ in range(self.random.randint(1, 3))],
        }
        chosen = self.random.sample(list(drawn), self.random.randint(0, 4))
        return {name: drawn[name]() for name in chosen}
