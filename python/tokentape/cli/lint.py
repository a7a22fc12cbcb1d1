"""`tokentape lint`: what stored rollouts say about themselves."""

from __future__ import annotations

import argparse
from typing import cast

from tokentape.checks import Check
from tokentape.cli.checked import Progress, add_options, run_check
from tokentape.cli.inputs import Subparsers, load_chat

__all__ = ["add_parser", "run"]

EPILOG = """\
The exit code is 0 where there is no fault, 1 where there is one, 2 where the file cannot be read. A pickle is refused:
loading it could run code.

examples:
  tokentape lint run.tape
  tokentape lint rollouts.jsonl                        Atropos, verifiers, verl, tinker, ... are known by their content
  tokentape lint batch.pt --model path/to/model        with the stop tokens and the text of a model
  tokentape lint run.tape --json --all | jq .kind | sort | uniq -c
"""


def add_parser(commands: Subparsers) -> argparse.ArgumentParser:
    """The command's options."""
    parser = commands.add_parser(
        "lint",
        help="find silent corruption in rollouts, ours and those of other frameworks",
        description="Check lengths, values and masks of stored rollouts, and what tells that they were corrupted: "
        "zero-filled logprobs, masks on tool text, stop tokens that are doubled or never trained, copies.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)
    parser.add_argument("--model", help="a model folder: its stop tokens, padding and vocabulary, and text in reports")
    return cast("argparse.ArgumentParser", parser)


def run(arguments: argparse.Namespace) -> int:
    """Check and print."""
    progress = Progress()
    check = Check(
        arguments.path,
        chat=load_chat(arguments.model) if arguments.model else None,
        format=arguments.format,
        max_length=arguments.max_length,
        progress=progress,
    )
    return run_check(check, arguments, progress)
