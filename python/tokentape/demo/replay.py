"""What the demo needs where no model is at hand: recorded completions of its own questions."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tokentape.policies import Replay

__all__ = ["COMPLETIONS", "GROUP_SIZE", "ITEMS", "replay_policy"]

COMPLETIONS: Final = Path(__file__).with_name("completions.jsonl")
ITEMS: Final = 12
GROUP_SIZE: Final = 4


def replay_policy() -> Replay:
    """The policy that gives the recorded completions."""
    return Replay(COMPLETIONS)
