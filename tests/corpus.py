"""Where the corpus of real templates and tokenizers is, and how tests read it."""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import lzma
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(os.environ.get("TOKENTAPE_CORPUS") or Path(__file__).parents[2] / "shared" / "corpus")
TOKENIZERS = (
    "qwen3",
    "qwen2.5",
    "llama3",
    "llama3.1",
    "llama3.2",
    "deepseek-v3",
    "gemma3",
    "gpt-oss",
    "mistral-tekken-240911",
)
SPECIAL_TOKENS = {"bos_token": "<|bos|>", "eos_token": "<|eos|>", "unk_token": "<|unk|>", "pad_token": "<|pad|>"}


def require() -> Path:
    """The corpus folder; without one the test is skipped, or fails where TOKENTAPE_REQUIRE_CORPUS is set."""
    if not ROOT.is_dir():
        reason = f"no corpus at {ROOT}: set TOKENTAPE_CORPUS"
        pytest.fail(reason) if os.environ.get("TOKENTAPE_REQUIRE_CORPUS") else pytest.skip(reason)
    return ROOT


@functools.cache
def conversations() -> dict[str, dict[str, Any]]:
    """The conversations by id."""
    return {c["id"]: c for c in json.loads((require() / "conversations.json").read_text())}


@functools.cache
def template(name: str) -> str:
    """The source of a template, with its line ends as they are in the file."""
    with (require() / "templates" / name).open(newline="") as file:
        return file.read()


def records(name: str) -> list[dict[str, Any]]:
    """The records of a `.jsonl` or `.jsonl.gz` file, which may hold U+2028 inside a line."""
    path = require() / name
    data = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    return [json.loads(line) for line in data.decode().split("\n") if line]


@functools.cache
def tokenizer_folder(name: str) -> Path:
    """The folder of a tokenizer, unpacked once for each content into the temporary folder of the machine."""
    source = require() / "tokenizers" / name
    packed = (source / "tokenizer.json.xz").read_bytes()
    target = Path(tempfile.gettempdir()) / "tokentape-corpus" / f"{name}-{hashlib.sha256(packed).hexdigest()[:12]}"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        unpacked = Path(tempfile.mkdtemp(dir=target.parent))
        for file in source.iterdir():
            if file.suffix != ".xz":
                shutil.copy(file, unpacked)
        (unpacked / "tokenizer.json").write_bytes(lzma.decompress(packed))
        try:
            unpacked.rename(target)
        except OSError:  # another process was first
            shutil.rmtree(unpacked)
    return target


counts: dict[str, int] = {}


def ran(name: str, count: int) -> None:
    """Counts corpus records that a test ran, for the summary and for the file TOKENTAPE_RECORDS names."""
    counts[name] = counts.get(name, 0) + count
    if path := os.environ.get("TOKENTAPE_RECORDS"):
        with Path(path).open("a") as file:
            file.write(f"python: {count} {name}\n")
