"""The demo: a calculator environment that runs anywhere, from prompts to packed batches."""

from __future__ import annotations

from tokentape.demo.environment import Calculator, Question
from tokentape.demo.small_chat import small_chat
from tokentape.demo.stage import Stage, stage

__all__ = ["Calculator", "Question", "Stage", "small_chat", "stage"]
