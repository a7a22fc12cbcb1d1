"""What the demo runs on: a real model behind a real server where they are installed, recorded completions elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass

from tokentape.demo.environment import Calculator, questions
from tokentape.demo.replay import GROUP_SIZE, ITEMS, replay_policy
from tokentape.demo.small_chat import small_chat
from tokentape.types import Policy

__all__ = ["Stage", "stage"]


@dataclass(frozen=True, slots=True)
class Stage:
    """An environment, the policy that plays it, and what to tell about them."""

    env: Calculator
    policy: Policy
    told: str


@contextlib.contextmanager
def stage(*, replay: bool = False) -> Generator[Stage]:  # noqa: ARG001
    """Set the stage for one run of the demo.

    Args:
        replay: Use recorded completions even where a model is at hand.
    """
    env = Calculator(small_chat(), questions(ITEMS), group_size=GROUP_SIZE)
    yield Stage(env, replay_policy(), "replay: recorded completions of a scripted policy, no model")
