"""Verify: stored rollouts of ours proven again with their model, and all that lint knows."""

from __future__ import annotations

from collections.abc import Callable

from tokentape import _core
from tokentape.chat import Chat
from tokentape.checks.fault import Report
from tokentape.checks.lint import Check, Input

__all__ = ["proving", "verify"]


def verify(source: Input, chat: Chat, *, format: str | None = None, max_length: int | None = None) -> Report:  # noqa: A002
    """Proves rollouts: lint, and each row of ours derived again from its own messages and provenance.

    The prompt is what the template writes for the messages before the first turn. What stands behind each turn is what
    the template wrote there at the time, so each turn ends once and text of others is where it belongs. What was
    sampled is what the messages record.

    `notes` say, of rows that hold, where they leave a render of all their messages, and
    why: `retokenised`, `thinking-stripped`, `tool-result-merged`, `seam`, `history-rewritten`,
    `generation-prompt-rewritten`, `content-rewritten`.

    Rows of other frameworks hold no messages to derive from; for them it is lint with the markers of the model.

    Args:
        source: A batch; a file, run folder or glob of ours; or a file of another framework.
        chat: The model that the rows were made with.
        format: The framework, where its files are not to be recognised by their content.
        max_length: The most tokens that a row may have.

    Raises:
        SchemaError: The file is of no known format, or a pickle, which is never loaded.
        FileNotFoundError: Nothing is there.

    Example:
        >>> import tokentape as tt
        >>> from tokentape.demo.small_chat import small_chat
        >>> trajectory = small_chat().start([{"role": "user", "content": "What is 7 * 8?"}])
        >>> _ = trajectory.act(small_chat().encode("56<|im_end|>"))
        >>> trajectory.reward = 1.0
        >>> batch = tt.Batch.from_groups([tt.Group([trajectory])])
        >>> tt.verify(batch, small_chat()).ok
        True
    """
    return proving(source, chat, format=format, max_length=max_length).run()


def proving(
    source: Input,
    chat: Chat,
    *,
    format: str | None = None,  # noqa: A002
    max_length: int | None = None,
    progress: Callable[[Report], None] | None = None,
) -> Check:
    """The check behind `verify`, which yields faults one by one."""
    prover = _core.Prover(chat)
    return Check(source, chat=chat, format=format, max_length=max_length, prover=prover, progress=progress)
