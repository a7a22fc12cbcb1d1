"""Which tokens of a trajectory a message's own fields wrote, and which the template.

A row stores to which message a token belongs, not by which field; the template of the chat tells it again.

*Invariant*: the flags of a message come from a render in which it has the very same ids; where there is none, only
control tokens count to the template.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokentape import Chat, TokentapeError

__all__ = ["content_flags"]


def content_flags(
    chat: Chat | None,
    messages: Any,
    tools: Any,
    *,
    token_ids: npt.NDArray[np.int32],
    message_index: npt.NDArray[np.int32],
    sampled: npt.NDArray[np.bool_],
) -> npt.NDArray[np.bool_]:
    """Whether each token is written by a message's own fields, bool of shape (n,).

    Args:
        chat: The chat of the model; without it every token of a message counts to its fields.
        messages: The conversation.
        tools: The tools that the template saw.
        token_ids: The ids, int32 of shape (n,).
        message_index: The message of each token, int32 of shape (n,); -1 is the frame.
        sampled: Whether the policy produced it, bool of shape (n,); of those the flags say nothing.
    """
    flags: npt.NDArray[np.bool_] = message_index >= 0
    if chat is None:
        return flags
    flags &= ~np.isin(message_index, message_index[sampled & flags])  # what is left of a turn, the template closed
    flags &= ~np.isin(token_ids, np.array(chat.stop_token_ids, np.int32))
    try:
        rendered = chat.render(messages, tools=tools, control_tokens="template")
    except (TokentapeError, TypeError, ValueError):
        return flags
    for index in np.unique(message_index[flags]):
        here, there = message_index == index, rendered.message_index == index
        known, size = rendered.token_ids[there], int(here.sum())
        if size <= len(known) and np.array_equal(token_ids[here], known[:size]):
            flags[here] = rendered.is_content[there][:size]
    return flags
