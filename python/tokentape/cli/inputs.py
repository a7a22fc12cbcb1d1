"""What several commands read: models, conversations, output that may be coloured."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO, cast

from tokentape import ArgumentError, Chat

__all__ = ["Subparsers", "load_chat", "read_json", "wants_colour"]

Subparsers = Any
"""The type of `argparse.ArgumentParser.add_subparsers`, which argparse does not name in public."""


def load_chat(model: str, template: str | None = None) -> Chat:
    """The chat of a model folder or GGUF file, with another template file if one is given."""
    if template is None:
        return Chat.from_pretrained(model)
    with Path(template).open(encoding="utf-8", newline="") as file:
        return Chat.from_pretrained(model, template=file.read())


def read_json(path: str) -> Any:
    """The JSON value of a file, or of standard input for `-`.

    Raises:
        ArgumentError: it is no JSON; the message names line and column.
        FileNotFoundError: there is no such file.
    """
    text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    try:
        return cast("object", json.loads(text))
    except json.JSONDecodeError as error:
        where = "standard input" if path == "-" else path
        raise ArgumentError(f"{where} is no JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None


def wants_colour(choice: str, file: TextIO | None = None) -> bool:
    """Whether to colour: `always`, `never`, or `auto`: on a terminal, unless NO_COLOR is set or TERM is dumb."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (file or sys.stdout).isatty()


def add_colour(parser: argparse.ArgumentParser) -> None:
    """The option `--color`."""
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="default: on a terminal")
