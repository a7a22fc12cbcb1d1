"""`tokentape audit`: what a chat template does to a conversation."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import cast

from tokentape import ArgumentError, Chat
from tokentape.cli.inputs import Subparsers, load_chat

__all__ = ["add_parser", "run"]

EPILOG = """\
A template file alone has no tokenizer: then there are no stop tokens and no seams.

examples:
  tokentape audit path/to/model
  tokentape audit path/to/model --json | jq .prefix_stable
  tokentape audit chat_template.jinja --special eos_token='<|im_end|>'
"""
NO_VOCABULARY = json.dumps({"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {}, "merges": []}})


def add_parser(commands: Subparsers) -> argparse.ArgumentParser:
    """The command's options."""
    parser = commands.add_parser(
        "audit",
        help="what a chat template does to a conversation",
        description="Say whether a chat template keeps its prefixes, what it strips, moves, merges and injects, where "
        "a turn ends, which tokens stop a policy, and where tokens span a prompt and an answer.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", metavar="MODEL_OR_TEMPLATE", help="a model folder, or a template file (.jinja)")
    parser.add_argument("--name", help="the name of the template, where the model has several")
    parser.add_argument("--json", action="store_true", help="JSON, with the conversations that show each verdict")
    parser.add_argument(
        "--special", action="append", default=[], metavar="NAME=TEXT", help="a special token of a template file"
    )
    return cast("argparse.ArgumentParser", parser)


def run(arguments: argparse.Namespace) -> None:
    """Audit and print."""
    audit = _chat(arguments.source, arguments.special).audit(chat_template=arguments.name)
    print(json.dumps(audit.to_dict(), ensure_ascii=False, indent=2) if arguments.json else str(audit).rstrip())


def _chat(source: str, special: list[str]) -> Chat:
    """The chat of a model folder, or of a template file without any vocabulary."""
    path = Path(source)
    if path.suffix not in {".jinja", ".j2", ".jinja2"} or not path.is_file():
        return load_chat(source)
    with path.open(encoding="utf-8", newline="") as file:
        return Chat(NO_VOCABULARY, file.read(), special_tokens=dict(_special(text) for text in special))


def _special(text: str) -> tuple[str, str]:
    name, separator, token = text.partition("=")
    if not separator:
        raise ArgumentError(f"--special {text!r} has no text: give NAME=TEXT")
    return name, token
