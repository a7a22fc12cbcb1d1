"""Rollout files of existing frameworks: a folder with `manifest.json`, in the corpus, or as TOKENTAPE_ROLLOUTS says."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import corpus
import tokentape as tt

MODELS = {"skyrl": "qwen2.5", "art": "qwen2.5"}


def folder() -> Path:
    return Path(os.environ.get("TOKENTAPE_ROLLOUTS") or corpus.ROOT / "rollouts")


def entries() -> list[dict[str, Any]]:
    """The manifest; empty where there is no folder."""
    path = folder() / "manifest.json"
    return json.loads(path.read_text()) if path.exists() else []


@functools.cache
def chat(framework: str) -> tt.Chat:
    """The chat whose ids a framework's files hold."""
    return tt.Chat.from_pretrained(corpus.tokenizer_folder(MODELS.get(framework, "qwen3")))


def refused(entry: dict[str, Any]) -> bool:
    """Whether it is a pickle that names code, which is never loaded."""
    return Path(entry["file"]).suffix in {".pkl", ".pickle"}


def is_found(fault: dict[str, Any], found: list[tt.Fault]) -> bool:
    """Whether a fault of the manifest is reported: its class, at its row, node and token."""
    same = [other for other in found if other.kind == fault["class"]]
    for key in ("row", "node", "token"):
        if fault.get(key) is not None:
            same = [other for other in same if getattr(other, key) == fault[key]]
    return bool(same)
