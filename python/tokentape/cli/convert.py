"""`tokentape convert`: trajectories from one file format into another, ours and those of other frameworks."""

from __future__ import annotations

import argparse
import sys
from typing import cast

from tokentape import Batch, BatchWriter
from tokentape.checks import read_foreign, write_foreign
from tokentape.cli.inputs import Subparsers
from tokentape.readers import FORMATS, is_own

__all__ = ["add_parser", "run"]

EPILOG = """\
examples:
  tokentape convert run.tape all.parquet              a run folder as one compressed file
  tokentape convert all.parquet all.arrow             back to a file that is mapped into memory
  tokentape convert 'runs/*.tape' all.arrow --compression zstd
  tokentape convert rollouts.jsonl all.arrow          from another framework, known by the content of its file
  tokentape convert all.arrow groups.jsonl --to atropos

What another format has no place for is said on standard error. A sequence that has a fault is not converted.
"""


def add_parser(commands: Subparsers) -> argparse.ArgumentParser:
    """The command's options."""
    parser = commands.add_parser(
        "convert",
        help="trajectories between Arrow IPC, Parquet and the files of other frameworks",
        description="Read a file, run folder or glob of trajectories and write it as one file.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", help="a .arrow or .parquet file, a folder NAME.tape, a glob, or a framework's file")
    parser.add_argument("target", help="the file to write: .arrow or .parquet, or any with --to")
    parser.add_argument("--compression", help="lz4 or zstd; default: none for .arrow, zstd for .parquet")
    parser.add_argument("--from", dest="source", choices=tuple(FORMATS), help="the framework; default: by the content")
    parser.add_argument("--to", choices=tuple(FORMATS), help="the framework whose file is written")
    return cast("argparse.ArgumentParser", parser)


def run(arguments: argparse.Namespace) -> None:
    """Convert the file part by part, in the memory of one."""
    if arguments.source is None and is_own(arguments.path):
        batches = Batch.stream(arguments.path)
    else:
        batches = read_foreign(arguments.path, format=arguments.source)
    if arguments.to is not None:
        print(f"{arguments.target}: {write_foreign(batches, arguments.target, arguments.to)}", file=sys.stderr)
        return
    tokens = 0
    with BatchWriter(arguments.target, compression=arguments.compression) as file:
        for batch in batches:
            file.write(batch)
            tokens += batch.tokens
    print(f"{arguments.target}: {file.rows:,} rows, {tokens:,} tokens", file=sys.stderr)
