"""One trajectory in the terminal: who wrote each token, what is trained, where turns end.

*Invariant*: the view shows the literal ids in their order, each exactly once; with colour off it is plain text that
says the same by marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from tokentape import Chat, Trajectory
from tokentape.view.content import content_flags

__all__ = ["LEGEND", "show_row", "show_trajectory", "styled"]

STYLES = {
    "sampled": "\x1b[1;32m",  # bold green
    "untrained": "\x1b[33m",  # yellow
    "observed": "\x1b[36m",  # cyan
    "scaffold": "\x1b[2m",  # faint
    "end": "\x1b[1;31m",  # bold red
}
MARKS = {"sampled": ("⟦", "⟧"), "untrained": ("⦅", "⦆"), "observed": ("⟨", "⟩"), "scaffold": ("", ""), "end": ("", "")}
RESET = "\x1b[0m"
LEGEND = {
    "sampled": "sampled by the policy and trained",
    "untrained": "sampled, not trained",
    "observed": "written by messages",
    "scaffold": "written by the template",
    "end": "end of a turn",
}
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def show_trajectory(trajectory: Trajectory, chat: Chat | None = None, *, colour: bool = False) -> str:
    """A live trajectory as text.

    Args:
        trajectory: What to show.
        chat: Gives tokens their text; without it ids are shown.
        colour: Whether to use ANSI colours; otherwise marks say the same: `LEGEND`.
    """
    ends = [(turn.end, turn.finish_reason) for turn in trajectory.turns]
    return _show(trajectory, trajectory.sampled_mask, ends, chat, colour=colour)


def show_row(row: Any, chat: Chat | None = None, *, colour: bool = False) -> str:
    """A stored row (`tokentape.Row`) as text; arguments as for `show_trajectory`."""
    ends = [(int(turn["end"]), str(turn["finish_reason"])) for turn in row.turns]
    return _show(row, row.sampled_mask, ends, chat, colour=colour)


def _show(
    row: Any, sampled: npt.NDArray[Any], ends: Sequence[tuple[int, str]], chat: Chat | None, *, colour: bool
) -> str:
    token_ids: npt.NDArray[np.int32] = row.token_ids
    content = content_flags(
        chat,
        row.messages,
        row.tools,
        token_ids=token_ids,
        message_index=row.message_index,
        sampled=sampled.astype(bool),
    )
    kinds = [_kind(*facts) for facts in zip(sampled, row.loss_mask, content, strict=True)]
    reasons = dict(ends)
    text = _text(chat)
    parts: list[str] = []
    for kind, start, end in _runs(kinds, cuts=set(reasons)):
        parts.append(styled(kind, text(token_ids[start:end]), colour=colour))
        if end in reasons:
            parts.append(styled("end", f"◂{reasons[end]}", colour=colour))
    return "".join(parts)


def _kind(is_sampled: bool, is_trained: bool, is_content: bool) -> str:  # noqa: FBT001 -- three facts of one token
    if is_sampled:
        return "sampled" if is_trained else "untrained"
    return "observed" if is_content else "scaffold"


def _runs(kinds: Sequence[str], cuts: set[int]) -> Iterator[tuple[str, int, int]]:
    """Runs of one kind as half-open ranges, cut also where a turn ends."""
    turn = 0
    keys: list[tuple[str, int]] = []
    for index, kind in enumerate(kinds):
        turn += index in cuts
        keys.append((kind, turn))
    start = 0
    for (kind, _), run in groupby(keys):
        end = start + len(list(run))
        yield kind, start, end
        start = end


def _text(chat: Chat | None) -> Callable[[npt.NDArray[np.int32]], str]:
    if chat is None:
        return lambda ids: " ".join(str(token) for token in ids.tolist()) + " "
    return lambda ids: CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", chat.decode(ids))


def styled(kind: str, text: str, *, colour: bool) -> str:
    """Text of a kind that `LEGEND` names: in its colour, or between its marks."""
    if not text:
        return ""
    if colour:  # line by line, so that a pager which cuts lines keeps colours
        return "\n".join(f"{STYLES[kind]}{line}{RESET}" if line else "" for line in text.split("\n"))
    left, right = MARKS[kind]
    return f"{left}{text}{right}"
