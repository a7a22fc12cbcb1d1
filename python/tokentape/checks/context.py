"""The text around a token, as a report shows it."""

from __future__ import annotations

from typing import Any

from tokentape.chat import Chat

__all__ = ["around"]

BEFORE, INSIDE, AFTER = 6, 8, 4


def around(token_ids: Any, token: int | None, end: int | None, chat: Chat | None) -> str | None:
    """The tokens before, between `[` and `]`, and after; as text where there is a chat, else as ids.

    Args:
        token_ids: The ids of the row, or None.
        token: The first token that is meant; None: there is nothing to show.
        end: One past the last.
        chat: Decodes.

    Example:
        >>> around([5, 6, 7, 8], 1, 3, None)
        '5 [6 7] 8'
    """
    if token_ids is None or token is None or not 0 <= token <= len(token_ids):
        return None
    stop = min(token + 1 if end is None else end, len(token_ids))
    shown = min(stop, token + INSIDE)
    before, inside = token_ids[max(token - BEFORE, 0) : token], token_ids[token:shown]
    after = token_ids[stop : stop + AFTER]
    dots = " ..." if shown < stop else ""
    return _spaced(_text(before, chat), f"[{_text(inside, chat)}{dots}]", _text(after, chat), chat)


def _spaced(before: str, inside: str, after: str, chat: Chat | None) -> str:
    return (" " if chat is None else "").join(part for part in (before, inside, after) if part)


def _text(token_ids: Any, chat: Chat | None) -> str:
    if chat is None:
        return " ".join(str(int(token)) for token in token_ids)
    size = chat.vocab_size
    parts = [chat.decode([int(token)]) if 0 <= token < size else f"<{int(token)}?>" for token in token_ids]
    known = all(0 <= token < size for token in token_ids)
    text = chat.decode([int(token) for token in token_ids]) if known else "".join(parts)
    return repr(text)[1:-1]
