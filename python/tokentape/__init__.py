"""Literal-token trajectories for reinforcement learning: exact chat templates, masks and Arrow packing."""

from __future__ import annotations

from tokentape._core import Group, Trajectory, Turn, __version__
from tokentape.batch import Batch, Row, RunWriter
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
    "Batch",
    "BridgeError",
    "BudgetError",
    "Group",
    "PolicyError",
    "RenderError",
    "Row",
    "RunWriter",
    "SchemaError",
    "TemplateError",
    "TokenizerError",
    "TokentapeError",
    "Trajectory",
    "TrajectoryError",
    "Turn",
    "__version__",
]
