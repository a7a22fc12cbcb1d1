"""`tokentape stats`: lengths, rewards and groups of a file in numbers."""

from __future__ import annotations

import argparse
import json
from typing import Any, cast

import numpy as np

from tokentape import Batch
from tokentape.batch import drop_zero_variance, rollout_rewards
from tokentape.cli.inputs import Subparsers

__all__ = ["add_parser", "run", "statistics"]

PERCENTILES = (0, 25, 50, 75, 95, 100)


def add_parser(commands: Subparsers) -> argparse.ArgumentParser:
    """The command's options."""
    parser = commands.add_parser(
        "stats",
        help="lengths, rewards and groups of a file in numbers, as JSON",
        description="Print statistics of a file, run folder or glob of trajectories as one JSON object.",
        epilog="examples:\n  tokentape stats run.tape\n  tokentape stats demo/trajectories.arrow | jq .reward",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", help="a .arrow or .parquet file, a folder NAME.tape, or a glob")
    return cast("argparse.ArgumentParser", parser)


def run(arguments: argparse.Namespace) -> None:
    """Print the statistics."""
    print(json.dumps(statistics(Batch.read(arguments.path)), indent=2))


def statistics(batch: Batch) -> dict[str, Any]:
    """Counts, percentiles of tokens a row, and rewards per rollout, which may have several rows.

    Returns:
        `rows`, `groups`, `rollouts`; `tokens`, `sampled`, `loss` (sums); `row_tokens` (percentiles); `reward` (mean and
        sample standard deviation over rollouts); `zero_variance_groups`: groups whose rollouts all have one reward.

    Example:
        >>> statistics(Batch.from_rows([{"token_ids": [1, 2], "reward": 1.0, "rollout_id": "a"}]))["reward"]
        {'mean': 1.0, 'std': 0.0, 'rollouts': 1}
    """
    rows = list(batch.rows())
    groups = rollout_rewards(batch)
    values = np.array([reward for group in groups.values() for reward in group.values()], np.float64)
    lengths = [len(row) for row in rows]
    return {
        "rows": len(rows),
        "groups": len({row.group_id for row in rows}),
        "rollouts": len({(row.group_id, row.rollout_id) for row in rows}),
        "tokens": sum(lengths),
        "sampled": sum(int(row.sampled_mask.sum()) for row in rows),
        "loss": sum(int(row.loss_mask.sum()) for row in rows),
        "row_tokens": {f"p{p}": float(np.percentile(lengths, p)) for p in PERCENTILES} if lengths else {},
        "reward": {
            "mean": float(values.mean()) if len(values) else None,
            "std": float(values.std(ddof=1)) if len(values) > 1 else 0.0,
            "rollouts": len(values),
        },
        "zero_variance_groups": len(drop_zero_variance(batch)[1]),
    }
