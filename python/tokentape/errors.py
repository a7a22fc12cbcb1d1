"""The exception family: every error says what happened, where, and what to do.

Each class also inherits the builtin that a user would guess, so `except ValueError` works as expected.
"""

from __future__ import annotations

__all__ = [
    "ArgumentError",
    "BridgeError",
    "BudgetError",
    "HistoryWarning",
    "PolicyError",
    "RenderError",
    "SchemaError",
    "TemplateError",
    "TokenizerError",
    "TokentapeError",
    "TrajectoryError",
]


class TokentapeError(Exception):
    """The base class of every error of this package."""


class ArgumentError(TokentapeError, ValueError):
    """An argument is out of range or of the wrong form."""


class TemplateError(TokentapeError, ValueError):
    """A chat template does not compile.

    Attributes:
        kind: The name of the exception class that transformers raises for the same template.
        line: The line of the template, counted from 1, or None.
    """

    kind: str | None = None
    line: int | None = None
    message_index: int | None = None


class RenderError(TokentapeError, ValueError):
    """A chat template cannot render this input.

    Attributes:
        kind: The name of the exception class that transformers raises for the same input, for example
            `"TemplateError"` for `raise_exception` or `"UndefinedError"`.
        line: The line of the template, counted from 1, or None.
        message_index: The message that was being handled, counted from 0, or None.
    """

    kind: str | None = None
    line: int | None = None
    message_index: int | None = None


class TokenizerError(TokentapeError, ValueError):
    """A tokenizer does not load, or cannot encode or decode this input."""


class TrajectoryError(TokentapeError, ValueError):
    """A trajectory or group refuses what it is given, or what it is asked in its present state."""


class BridgeError(TrajectoryError):
    """The tokens between a sampled turn and the next prompt cannot be determined without guessing."""


class BudgetError(TokentapeError, ValueError):
    """A row is longer than the token budget."""


class SchemaError(TokentapeError, ValueError):
    """A table or file has another shape or version than the contract says."""


class PolicyError(TokentapeError, RuntimeError):
    """A policy or its server did not give a usable completion.

    Attributes:
        transient: Whether another try may help; the runner tries again only then.
    """

    transient: bool = True


class HistoryWarning(UserWarning):
    """A trajectory only appends, and its chat template prints earlier turns otherwise once the conversation goes on.

    The policy then goes on with what it saw, not with what the template would print. Said once for each chat; where
    that is meant, silence it with `warnings.simplefilter("ignore", tokentape.HistoryWarning)`.
    """
