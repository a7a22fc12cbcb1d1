"""`tokentape convert`: trajectories from one file format into another."""

from __future__ import annotations

import argparse
import sys
from typing import cast

from tokentape import Batch
from tokentape.cli.inputs import Subparsers

__all__ = ["add_parser", "run"]

EPILOG = """\
examples:
  tokentape convert run.tape all.parquet              a run folder as one compressed file
  tokentape convert all.parquet all.arrow             back to a file that is mapped into memory
  tokentape convert 'runs/*.tape' all.arrow --compression zstd
"""


def add_parser(commands: Subparsers) -> argparse.ArgumentParser:
    """The command's options."""
    parser = commands.add_parser(
        "convert",
        help="trajectories between Arrow IPC and Parquet; a run folder into one file",
        description="Read a file, run folder or glob of trajectories and write it as one file.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", help="a .arrow or .parquet file, a folder NAME.tape, or a glob")
    parser.add_argument("target", help="the file to write: .arrow or .parquet")
    parser.add_argument("--compression", help="lz4 or zstd; default: none for .arrow, zstd for .parquet")
    return cast("argparse.ArgumentParser", parser)


def run(arguments: argparse.Namespace) -> None:
    """Convert the file."""
    batch = Batch.read(arguments.path)
    batch.write(arguments.target, compression=arguments.compression)
    print(f"{arguments.target}: {batch}", file=sys.stderr)
