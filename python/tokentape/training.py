"""Supervised fine-tuning from the same engine: given conversations become rows with the masks of a rollout."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tokentape.batch import Batch
from tokentape.chat import Chat

__all__ = ["training_batch"]


def training_batch(chat: Chat, conversations: Iterable[Any], **options: Any) -> Batch:
    """A batch of conversations for supervised fine-tuning, see `Chat.training_sample`.

    Args:
        chat: The template and the tokenizer.
        conversations: A sequence of conversations, or a column of a datasets, Arrow or polars table: each a list of
            messages, or JSON text of one.
        **options: Arguments of `Chat.training_sample`, the same for all.

    Returns:
        One row a conversation, named by its place.

    Raises:
        RenderError: A conversation cannot be rendered; a note says which.
        ArgumentError: It cannot be told what a policy would have sampled of a chosen message.
    """
    rows: list[dict[str, Any]] = []
    for place, conversation in enumerate(conversations):
        try:
            row = chat.training_sample(messages_of(conversation), **options)
        except Exception as error:
            error.add_note(f"conversation {place}")
            raise
        rows.append(row | {"group_id": str(place), "rollout_id": str(place), "trajectory_id": str(place)})
    return Batch.from_rows(rows)


def messages_of(conversation: Any) -> Sequence[Mapping[str, Any]]:
    """The messages of one cell of a column: a list, an Arrow scalar, or JSON text.

    A struct column holds every key in every message, as null where a message lacks it; such keys are left out.
    """
    value = conversation.as_py() if hasattr(conversation, "as_py") else conversation
    messages: Sequence[Mapping[str, Any]] = json.loads(value) if isinstance(value, str) else value
    return [{key: part for key, part in message.items() if part is not None} for message in messages]
