"""Literal-token trajectories for reinforcement learning: exact chat templates, masks and Arrow packing."""

from __future__ import annotations

from tokentape import feeds
from tokentape._core import (
    AssistantSpans,
    Divergence,
    Group,
    Rendered,
    Seam,
    Span,
    Trajectory,
    Turn,
    __version__,
    merge,
)
from tokentape.batch import Batch, PackedBatch, Packing, PackingReport, Row, RunWriter, pack
from tokentape.chat import Chat
from tokentape.errors import (
    ArgumentError,
    BridgeError,
    BudgetError,
    PolicyError,
    RenderError,
    SchemaError,
    TemplateError,
    TokenizerError,
    TokentapeError,
    TrajectoryError,
)

__all__ = [
    "ArgumentError",
    "AssistantSpans",
    "Batch",
    "BridgeError",
    "BudgetError",
    "Chat",
    "Divergence",
    "Group",
    "PackedBatch",
    "Packing",
    "PackingReport",
    "PolicyError",
    "RenderError",
    "Rendered",
    "Row",
    "RunWriter",
    "SchemaError",
    "Seam",
    "Span",
    "TemplateError",
    "TokenizerError",
    "TokentapeError",
    "Trajectory",
    "TrajectoryError",
    "Turn",
    "__version__",
    "feeds",
    "merge",
    "pack",
]
