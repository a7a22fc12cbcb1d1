"""The command line `tokentape`: one file a command, each with `add_parser` and `run`.

*Invariant*: what was asked for goes to standard output, everything else to standard error; bad input ends with exit
code 2.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from tokentape import TokentapeError, __version__

__all__ = ["main"]

COMMANDS = ("render", "audit", "inspect", "stats", "collect", "lint", "verify", "pack", "convert", "demo")
"""Modules of this folder, in the order of the help."""

BAD_INPUT = 2
INTERRUPTED = 130

EPILOG = """\
examples:
  tokentape demo                                        a tool environment from prompt to packed batch
  tokentape render MODEL chat.json --ids                a conversation as the model sees it, and its token ids
  tokentape inspect run.tape --model MODEL --row 3      what a file holds, and one row in colour
  tokentape collect my_env:Arithmetic --model MODEL --llama-cpp URL --path run.tape
  tokentape verify run.tape --model MODEL               prove that every row is token-exact

Each command has its own --help. Colour is off in a pipe and where NO_COLOR is set.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: The words after the program's name; those of the process by default.

    Returns:
        The exit code: 0, 2 for bad input, 130 after Ctrl-C.
    """
    parser = _parser()
    parsed = parser.parse_args(arguments)
    try:
        code = parsed.run(parsed)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except (TokentapeError, OSError, UnicodeDecodeError) as error:
        print(f"tokentape {parsed.command}: {_told(error)}", file=sys.stderr)
        return BAD_INPUT
    return code or 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tokentape",
        description="Literal-token trajectories: chat templates, environments, Arrow files.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tokentape {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        module = importlib.import_module(f"tokentape.cli.{name}")
        module.add_parser(commands).set_defaults(run=module.run)
    return parser


def _told(error: BaseException) -> str:
    return "\n".join([str(error), *getattr(error, "__notes__", ())])
