"""Policies: what samples completions. Each server or source is one file; HTTP clients load when they are first used."""

from __future__ import annotations

from tokentape.policies.llama_cpp import LlamaCpp
from tokentape.policies.recording import Record, Recording
from tokentape.policies.replay import Replay

__all__ = ["LlamaCpp", "Record", "Recording", "Replay"]
