"""`tokentape pack`: how trajectories fill bins of a token budget, and the packed file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import cast

from tokentape import ArgumentError, Batch, Packing, pack
from tokentape.batch.files import atomic, pyarrow
from tokentape.cli.inputs import Subparsers

__all__ = ["add_parser", "run", "write_bins"]

EPILOG = """\
examples:
  tokentape pack run.tape --token-budget 32768                       the report alone
  tokentape pack run.tape --token-budget 32768 --ranks 8 --out packed.arrow
  tokentape pack run.tape --token-budget 32768 --share-prefixes      how many tokens groups have in common
"""


def add_parser(commands: Subparsers) -> argparse.ArgumentParser:
    """The command's options."""
    parser = commands.add_parser(
        "pack",
        help="how trajectories fill bins of a token budget; writes the packed file",
        description="Plan the packing of a file, run folder or glob, print the report, and write the bins if asked to.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", help="a .arrow or .parquet file, a folder NAME.tape, or a glob")
    parser.add_argument("--token-budget", type=int, required=True, help="tokens of a bin, at most")
    parser.add_argument("--ranks", type=int, default=1, help="workers that run at the same time")
    parser.add_argument("--overlong", default="error", choices=("error", "drop", "truncate", "truncate_turn"))
    parser.add_argument("--align", type=int, help="the length of a bin becomes a multiple of this")
    parser.add_argument("--pad-token-id", type=int, help="the id of padding, needed with --align")
    parser.add_argument("--max-segments", type=int, help="rows of a bin, at most")
    parser.add_argument("--share-prefixes", action="store_true", help="rows that begin alike hold common tokens once")
    parser.add_argument("--out", help="the packed file to write, .arrow: one row a bin")
    return cast("argparse.ArgumentParser", parser)


def run(arguments: argparse.Namespace) -> None:
    """Print the report and write the bins."""
    target = Path(arguments.out) if arguments.out else None
    if target and target.suffix != ".arrow":
        raise ArgumentError(
            f"packed bins are written as Arrow IPC: give --out a name that ends in .arrow, not {target}"
        )
    packing = pack(
        Batch.read(arguments.path),
        token_budget=arguments.token_budget,
        ranks=arguments.ranks,
        overlong=arguments.overlong,
        align=arguments.align,
        pad_token_id=arguments.pad_token_id,
        max_segments=arguments.max_segments,
        share_prefixes=bool(arguments.share_prefixes),
    )
    print(packing.report)
    if target:
        write_bins(packing, target)


def write_bins(packing: Packing, target: Path) -> None:
    """Write the bins of a packing as Arrow IPC, one row a bin."""
    with atomic(target) as temporary:
        reader = pyarrow().RecordBatchReader.from_stream(packing)
        with pyarrow("pyarrow.ipc").new_file(str(temporary), reader.schema) as file:
            for bins in reader:
                file.write_batch(bins)
