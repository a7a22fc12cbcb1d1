"""Literal-token trajectories for reinforcement learning: exact chat templates, masks and Arrow packing."""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from tokentape import _core, feeds
from tokentape._core import (
    AssistantSpans,
    Audit,
    ChatTemplate,
    Divergence,
    Group,
    Message,
    ParseStream,
    Rendered,
    RenderedText,
    Seam,
    Span,
    ToolCall,
    Trajectory,
    Turn,
    __version__,
    merge,
)
from tokentape.batch import (
    Batch,
    BatchWriter,
    PackedBatch,
    Packing,
    PackingReport,
    Row,
    RunWriter,
    pack,
    pack_stream,
)
from tokentape.chat import Chat
from tokentape.errors import (
    ArgumentError,
    BridgeError,
    BudgetError,
    HistoryWarning,
    PolicyError,
    RenderError,
    SchemaError,
    TemplateError,
    TokenizerError,
    TokentapeError,
    TrajectoryError,
)
from tokentape.training import training_batch
from tokentape.types import Completion, Policy, Sampling

if TYPE_CHECKING:
    from tokentape import envs, policies, view
    from tokentape.checks import Fault, Report, lint, verify
    from tokentape.envs import PAUSE, Collected, Collection, Environment, collect, stream

_LAZY: dict[str, str] = dict.fromkeys(
    ("PAUSE", "Collected", "Collection", "Environment", "collect", "stream"), "tokentape.envs"
)
_LAZY.update(dict.fromkeys(("Fault", "Report", "lint", "verify"), "tokentape.checks"))
"""Names of floors above `feeds`, loaded when they are first used."""
_LAZY_MODULES = frozenset({"envs", "policies", "view"})

if _core.build_profile != "release":
    warnings.warn(
        "this is a debug build of tokentape, many times slower than a release build: use `make build`",
        RuntimeWarning,
        stacklevel=2,
    )

__all__ = [
    "PAUSE",
    "ArgumentError",
    "AssistantSpans",
    "Audit",
    "Batch",
    "BatchWriter",
    "BridgeError",
    "BudgetError",
    "Chat",
    "ChatTemplate",
    "Collected",
    "Collection",
    "Completion",
    "Divergence",
    "Environment",
    "Fault",
    "Group",
    "HistoryWarning",
    "Message",
    "PackedBatch",
    "Packing",
    "PackingReport",
    "ParseStream",
    "Policy",
    "PolicyError",
    "RenderError",
    "Rendered",
    "RenderedText",
    "Report",
    "Row",
    "RunWriter",
    "Sampling",
    "SchemaError",
    "Seam",
    "Span",
    "TemplateError",
    "TokenizerError",
    "TokentapeError",
    "ToolCall",
    "Trajectory",
    "TrajectoryError",
    "Turn",
    "__version__",
    "collect",
    "envs",
    "feeds",
    "lint",
    "merge",
    "pack",
    "pack_stream",
    "policies",
    "stream",
    "training_batch",
    "verify",
    "view",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY_MODULES:
        return importlib.import_module(f"tokentape.{name}")
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'tokentape' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
