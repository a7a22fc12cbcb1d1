"""`tokentape verify`: stored rollouts proven again with their model."""

from __future__ import annotations

import argparse
from typing import cast

from tokentape.checks import proving
from tokentape.cli.checked import Progress, add_options, run_check
from tokentape.cli.inputs import Subparsers, load_chat

__all__ = ["add_parser", "run"]

EPILOG = """\
The exit code is 0 where every row holds, 1 where there is a fault, 2 where the file cannot be read.

examples:
  tokentape verify run.tape --model path/to/model
  tokentape verify run.tape --model path/to/model --all      also where rows leave a render of all their messages
  tokentape verify run.tape --model path/to/model --json | jq .summary
"""


def add_parser(commands: Subparsers) -> argparse.ArgumentParser:
    """The command's options."""
    parser = commands.add_parser(
        "verify",
        help="prove with a model that stored rollouts are token-exact",
        description="Derive each row again from its own messages and provenance: the prompt, what stands behind each "
        "turn, and what was sampled against what the messages record; and everything that `lint` checks.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)
    parser.add_argument("--model", required=True, help="the model folder that the rows were made with")
    parser.add_argument("--template", help="another template file than the model's")
    return cast("argparse.ArgumentParser", parser)


def run(arguments: argparse.Namespace) -> int:
    """Prove and print."""
    progress = Progress()
    chat = load_chat(arguments.model, arguments.template)
    check = proving(arguments.path, chat, format=arguments.format, max_length=arguments.max_length, progress=progress)
    return run_check(check, arguments, progress)
