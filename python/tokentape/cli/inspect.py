"""`tokentape inspect`: what a file of trajectories holds."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import cast

from tokentape import ArgumentError, Batch, Row
from tokentape.cli.inputs import Subparsers, add_colour, load_chat, wants_colour
from tokentape.view import LEGEND, show_row
from tokentape.view.terminal import styled

__all__ = ["add_parser", "run"]

EPILOG = """\
examples:
  tokentape inspect run.tape                        schema and counts
  tokentape inspect demo/trajectories.arrow --row 0 one row, by token ids
  tokentape inspect run.tape --row 0 --row 5 --model path/to/model
"""


def add_parser(commands: Subparsers) -> argparse.ArgumentParser:
    """The command's options."""
    parser = commands.add_parser(
        "inspect",
        help="what a file or run folder holds: schema, counts, rows in colour",
        description="Print schema and counts of a file, folder or glob of trajectories, and rows by author and mask.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", help="a .arrow or .parquet file, a folder NAME.tape, or a glob")
    parser.add_argument("--row", action="append", type=int, default=[], help="show this row too; may be repeated")
    parser.add_argument("--model", help="a model folder or GGUF file: rows are then shown as text")
    add_colour(parser)
    return cast("argparse.ArgumentParser", parser)


def run(arguments: argparse.Namespace) -> None:
    """Print schema, counts and rows."""
    batch = Batch.read(arguments.path)
    print(summary(batch))
    chat = load_chat(arguments.model) if arguments.model else None
    colour = wants_colour(arguments.color)
    for index in arguments.row:
        if not -len(batch) <= index < len(batch):
            raise ArgumentError(f"there is no row {index}: {arguments.path} has {len(batch)} rows")
        row = batch.row(index % len(batch))
        print(f"\n{heading(row)}\n{show_row(row, chat, colour=colour)}")
    if arguments.row:
        print("\n" + legend(colour=colour))


def summary(batch: Batch) -> str:
    """Schema and counts of a batch, a line each."""
    table = batch.to_pyarrow()
    rows = list(batch.rows())
    sampled = sum(int(row.sampled_mask.sum()) for row in rows)
    trained = sum(int(row.loss_mask.sum()) for row in rows)
    tokens = sum(len(row) for row in rows)
    reasons = Counter(turn["finish_reason"] for row in rows for turn in row.turns)
    rewards = [row.reward for row in rows if row.reward is not None]
    lines = [
        (
            f"rows {len(rows):,}, groups {len({row.group_id for row in rows}):,}, rollouts "
            f"{len({row.rollout_id for row in rows}):,}, environments {sorted({row.env for row in rows})}"
        ),
        (
            f"tokens {tokens:,}, sampled {sampled:,} ({_share(sampled, tokens)}), trained {trained:,} "
            f"({_share(trained, tokens)})"
        ),
        f"turns {reasons.total():,}, ended by "
        + (", ".join(f"{r} {n}" for r, n in reasons.most_common()) or "nothing"),
        f"rewards {len(rewards):,} of {len(rows):,}"
        + (f", mean {sum(rewards) / len(rewards):.3f}, {min(rewards):g} to {max(rewards):g}" if rewards else ""),
        "",
        *(f"  {field.name:<16} {field.type}" for field in table.schema),
    ]
    return "\n".join(lines)


def heading(row: Row) -> str:
    """What a row is, in one line."""
    reward = "none" if row.reward is None else f"{row.reward:g}"
    return f"row {row.index}: group {row.group_id}, trajectory {row.trajectory_id}, {len(row)} tokens, reward {reward}"


def legend(*, colour: bool) -> str:
    """What colours and marks mean."""
    return "  ".join(styled(kind, meaning, colour=colour) for kind, meaning in LEGEND.items())


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "0%"
