"""`tokentape demo`: a two-turn tool environment, from prompts to packed batches."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import time
from pathlib import Path
from typing import cast

from tokentape import Batch, PackingReport, pack
from tokentape.cli.inputs import Subparsers, add_colour, wants_colour
from tokentape.cli.inspect import heading, legend
from tokentape.demo import Stage, stage
from tokentape.envs import Collection, collect
from tokentape.view import show_row

__all__ = ["add_parser", "run"]

EPILOG = """\
examples:
  tokentape demo
  tokentape demo --path somewhere/else --replay
"""
TOKEN_BUDGET = 2048


def add_parser(commands: Subparsers) -> argparse.ArgumentParser:
    """The command's options."""
    parser = commands.add_parser(
        "demo",
        help="a tool environment from prompt to packed batch",
        description="Run a two-turn calculator environment, write its trajectories as Arrow, and pack them.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--path", default="demo", help="the folder to write into (default: demo)")
    parser.add_argument("--replay", action="store_true", help="answer from recorded completions, without a model")
    add_colour(parser)
    return cast("argparse.ArgumentParser", parser)


def run(arguments: argparse.Namespace) -> None:
    """Collect, write, pack, print."""
    folder = Path(arguments.path)
    file = folder / "trajectories.arrow"
    folder.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    shutil.rmtree(folder / ".trajectories.arrow.tape", ignore_errors=True)
    with stage(replay=arguments.replay) as scene:
        print(scene.told)
        began = time.perf_counter()
        collection = asyncio.run(collect(scene.env, scene.policy, path=file, progress=True, concurrency=8))
        with scene.env.stopwatch:
            batch = Batch.read(file)
            report = pack(batch, token_budget=TOKEN_BUDGET).report
        seconds = time.perf_counter() - began
    print("\n".join(figures(scene, collection, report, seconds)))
    best = max(batch.rows(), key=lambda row: (row.reward, len(row.turns)))
    colour = wants_colour(arguments.color)
    print(f"\n{heading(best)}\n{show_row(best, scene.env.chat, colour=colour)}\n{legend(colour=colour)}\n\n{file}")


def figures(scene: Stage, collection: Collection, report: PackingReport, seconds: float) -> list[str]:
    """What the demo measured, a line each."""
    status, metrics, own = collection.status, collection.metrics, scene.env.stopwatch.seconds
    return [
        (
            f"{status.groups} groups, {status.trajectories} trajectories, {status.tokens:,} tokens, "
            f"{metrics['sampled_share']:.1%} sampled by the policy, mean reward {metrics.get('reward', 0):.3f}"
        ),
        f"packed: {report}",
        (
            f"wall time {seconds:.2f} s: policy out in {metrics['policy_busy_share']:.1%} of it, "
            f"tokentape itself {own / seconds:.1%} ({own * 1000:.1f} ms)"
        ),
    ]
