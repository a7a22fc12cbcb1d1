"""Good rollouts of ours, made through the public API: several turns, tools, cut turns, odd segmentations, forks."""

from __future__ import annotations

import random
from typing import Any

import tokentape as tt

WORDS = ("seven", "eleven", "twelve", "answer", "sum", "the", "of", "is", "and", "then", "add", "again", "see")


def rollouts(chat: tt.Chat, groups: int, *, seed: int = 0, size: int = 4, history: str = "keep") -> list[tt.Group]:
    """Groups of rollouts with rewards, logprobs, versions and advantages."""
    rng = random.Random(seed)
    return [group(chat, rng, f"item-{seed}-{number}", size, history) for number in range(groups)]


def group(chat: tt.Chat, rng: random.Random, name: str, size: int, history: str) -> tt.Group:
    question = f"What is {rng.randrange(1000)} + {rng.randrange(1000)}?"
    played = [play(chat, rng, question, history) for _ in range(size)]
    if rng.random() < 0.3:
        played += branch(chat, rng)
    for trajectory in played:
        trajectory.reward = rng.random()
    return tt.Group(played, id=name, env="sums").with_advantages("grpo")


def branch(chat: tt.Chat, rng: random.Random) -> list[Any]:
    """Two rollouts that share their first turn."""
    trajectory = chat.start([{"role": "user", "content": sentence(rng)}])
    act(chat, rng, trajectory)
    other = trajectory.fork()
    for one in (trajectory, other):
        act(chat, rng, one.observe([{"role": "user", "content": sentence(rng)}]))
    return [trajectory, other]


def play(chat: tt.Chat, rng: random.Random, question: str, history: str) -> Any:
    messages = [{"role": "user", "content": question}]
    if rng.random() < 0.5:
        messages.insert(0, {"role": "system", "content": sentence(rng)})
    trajectory = chat.start(messages, history=history)
    for turn in range(rng.randrange(1, 4)):
        if turn:
            role = "tool" if rng.random() < 0.5 and SUPPORTS_TOOL else "user"
            trajectory = trajectory.observe([{"role": role, "content": str(rng.randrange(10**6))}])
        act(chat, rng, trajectory)
    return trajectory


SUPPORTS_TOOL = True


def act(chat: tt.Chat, rng: random.Random, trajectory: Any) -> None:
    ids = segments(chat, rng, sentence(rng))
    cut = rng.random() < 0.15
    if not cut:
        ids.append(turn_end(chat))
    logprobs = [-rng.random() * 2 - 1e-3 for _ in ids]
    trajectory.act(ids, logprobs, finish_reason="length" if cut else "stop", policy_version=rng.randrange(3))


def turn_end(chat: tt.Chat) -> int:
    """The stop that the template itself writes."""
    sources = chat.stop_tokens
    return next(token for token, _, why in sources if "template" in why)


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(6, 24))) + "."


def segments(chat: tt.Chat, rng: random.Random, text: str) -> list[int]:
    """The ids of a text, sometimes cut where the tokenizer would not cut."""
    if rng.random() < 0.5:
        return chat.encode(text).tolist()
    cut = rng.randrange(1, len(text))
    return [*chat.encode(text[:cut]).tolist(), *chat.encode(text[cut:]).tolist()]
