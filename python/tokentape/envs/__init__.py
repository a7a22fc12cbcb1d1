"""Environments and the runner that collects their groups."""

from __future__ import annotations

from tokentape.envs.collect import Collection, collect, stream
from tokentape.envs.environment import PAUSE, Collected, Environment
from tokentape.envs.progress import Progress, Status

__all__ = ["PAUSE", "Collected", "Collection", "Environment", "Progress", "Status", "collect", "stream"]
