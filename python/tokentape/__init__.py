"""Literal-token trajectories for reinforcement learning: exact chat templates, masks and Arrow packing."""

from __future__ import annotations

from tokentape._core import Group, Trajectory, Turn, __version__
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
    "BridgeError",
    "BudgetError",
    "Group",
    "PolicyError",
    "RenderError",
    "SchemaError",
    "TemplateError",
    "TokenizerError",
    "TokentapeError",
    "Trajectory",
    "TrajectoryError",
    "Turn",
    "__version__",
]
