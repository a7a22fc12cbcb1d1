"""What the demo runs on: a real model behind a real server where they are installed, recorded completions elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from tokentape import Chat
from tokentape.demo.environment import Calculator, questions
from tokentape.demo.llama import HOW_TO_INSTALL, find_model, llama_server
from tokentape.demo.replay import GROUP_SIZE, ITEMS, replay_policy
from tokentape.demo.small_chat import small_chat
from tokentape.policies import LlamaCpp
from tokentape.types import Policy

__all__ = ["REAL_ITEMS", "Stage", "stage"]

REAL_ITEMS = 24
ITEMS_AT_ONCE = 2
SLOTS = ITEMS_AT_ONCE * GROUP_SIZE
SLOT_TOKENS = 512
"""More than the longest episode."""


@dataclass(frozen=True, slots=True)
class Stage:
    """An environment, the policy that plays it, and what to tell about them.

    Attributes:
        env: The environment.
        policy: What samples.
        told: What they are, for people.
        concurrency: Items to play at once.
    """

    env: Calculator
    policy: Policy
    told: str
    concurrency: int = ITEMS_AT_ONCE


@contextlib.contextmanager
def stage(*, replay: bool = False, items: int | None = None) -> Generator[Stage]:
    """Set the stage for one run of the demo; a server that it starts ends with the block.

    Args:
        replay: Use recorded completions even where a model is at hand.
        items: How many questions; by default what takes a minute or two. There are records of a few only.
    """
    found = find_model()
    if replay or not isinstance(found, Path):
        told = "asked for" if replay else f"{found}. For the real model: {HOW_TO_INSTALL}"
        env = Calculator(small_chat(), questions(min(items or ITEMS, ITEMS)), group_size=GROUP_SIZE)
        yield Stage(env, replay_policy(), f"REPLAY of recorded completions of a scripted policy, no model: {told}")
        return
    with llama_server(found, context=SLOTS * SLOT_TOKENS, slots=SLOTS) as server:
        env = Calculator(Chat.from_pretrained(found), questions(items or REAL_ITEMS), group_size=GROUP_SIZE)
        told = f"{found.stem}, sampled token by token by a llama.cpp server at {server.url}"
        yield Stage(env, LlamaCpp(server.url), told)
