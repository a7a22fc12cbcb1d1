"""What `lint` and `verify` share: faults as lines or JSON while a file is read, progress, and a summary."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from tokentape.checks import Check, Fault, Report
from tokentape.readers import FORMATS

__all__ = ["Progress", "add_options", "run_check"]

FOUND = 1
"""The exit code where there is a fault; 2 says that the file could not be read."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of both commands."""
    parser.add_argument(
        "path", metavar="FILE", help="a file, run folder or glob of ours, or a file of another framework"
    )
    parser.add_argument("--format", choices=("tokentape", *FORMATS), help="the framework; default: by the content")
    parser.add_argument("--max-length", type=int, metavar="N", help="rows of more tokens are faults")
    parser.add_argument("--json", action="store_true", help="one JSON object a line: the faults, then the summary")
    parser.add_argument("--all", action="store_true", help="also what only smells, and facts about rows that hold")


class Progress:
    """A line on standard error that says how far a check is; nothing where that is no terminal."""

    def __init__(self) -> None:
        self.shown = sys.stderr.isatty()
        self.begun = self.last = time.monotonic()

    def __call__(self, report: Report) -> None:
        """Shows what was read so far, a few times a second."""
        now = time.monotonic()
        if self.shown and now - self.last > 0.2:  # noqa: PLR2004  (seconds)
            self.last = now
            rate = report.tokens / max(now - self.begun, 1e-9)
            text = f"\r{report.rows:,} rows, {report.tokens:,} tokens, {rate:,.0f} tokens/s "
            print(text, end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Makes room for a line of the report."""
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def run_check(check: Check, arguments: argparse.Namespace, progress: Progress) -> int:
    """Prints the faults while they are found, and the summary; 1 if there is a fault."""
    for fault in check:
        if fault.level == "fault" or arguments.all:
            progress.clear()
            print(json.dumps(fault.to_dict()) if arguments.json else _line(arguments.path, fault))
    progress.clear()
    summary = _summary(check.report)
    print(json.dumps({"summary": summary}) if arguments.json else _words(arguments.path, check.report))
    return 0 if check.report.ok else FOUND


def _line(path: str, fault: Fault) -> str:
    mark = "" if fault.level == "fault" else f" [{fault.level}]"
    return f"{path}: {fault}{mark}"


def _summary(report: Report) -> dict[str, Any]:
    return {
        "format": report.format,
        "rows": report.rows,
        "tokens": report.tokens,
        "ok": report.ok,
        "counts": dict(report.counts),
    }


def _words(path: str, report: Report) -> str:
    return f"{path}: {report}"
