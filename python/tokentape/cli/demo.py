"""`tokentape demo`: a two-turn tool environment on a real model, from prompts to packed batches."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shutil
import sys
import time
from pathlib import Path
from typing import cast

from tokentape import Batch, PackingReport, pack
from tokentape.cli.inputs import Subparsers, add_colour, wants_colour
from tokentape.cli.inspect import heading, legend
from tokentape.cli.pack import write_bins
from tokentape.demo import Stage, stage
from tokentape.envs import Collection, collect
from tokentape.policies import LlamaCpp
from tokentape.view import show_row

__all__ = ["add_parser", "run"]

EPILOG = """\
Without the real model and server it replays recorded completions, and says so and how to install them. Ctrl-C keeps
the groups that are finished.

examples:
  tokentape demo
  tokentape demo --items 6 --path somewhere/else
  tokentape demo --replay
"""
TOKEN_BUDGET = 2048


def add_parser(commands: Subparsers) -> argparse.ArgumentParser:
    """The command's options."""
    parser = commands.add_parser(
        "demo",
        help="a tool environment from prompt to packed batch",
        description="Run a two-turn calculator environment on a real model, write its trajectories and packed batches.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--path", default="demo", help="the folder to write into (default: demo)")
    parser.add_argument("--items", type=positive, help="how many questions to play")
    parser.add_argument("--replay", action="store_true", help="answer from recorded completions, without a model")
    add_colour(parser)
    return cast("argparse.ArgumentParser", parser)


def run(arguments: argparse.Namespace) -> None:
    """Collect, write, pack, print."""
    folder = Path(arguments.path)
    file, packed = folder / "trajectories.arrow", folder / "packed.arrow"
    folder.mkdir(parents=True, exist_ok=True)
    for old in (file, packed):
        old.unlink(missing_ok=True)
    shutil.rmtree(folder / ".trajectories.arrow.tape", ignore_errors=True)
    with stage(replay=arguments.replay, items=arguments.items) as scene:
        print(scene.told, flush=True)
        began = time.perf_counter()
        try:
            collection = asyncio.run(_collect(scene, file))
        finally:
            if file.exists() and sys.exc_info()[0] is not None:
                print(f"the finished groups are in {file}", file=sys.stderr)
        with scene.env.stopwatch:
            batch = Batch.read(file)
            packing = pack(batch, token_budget=TOKEN_BUDGET)
            write_bins(packing, packed)
        seconds = time.perf_counter() - began
    print("\n".join(figures(scene, collection, packing.report, seconds)))
    best = max(batch.rows(), key=lambda row: (row.reward, len(row.turns)))
    colour = wants_colour(arguments.color)
    print(f"\n{heading(best)}\n{show_row(best, scene.env.chat, colour=colour)}\n{legend(colour=colour)}\n")
    print(f"{file}\n{packed}")


async def _collect(scene: Stage, file: Path) -> Collection:
    async with contextlib.AsyncExitStack() as stack:
        if isinstance(scene.policy, LlamaCpp):
            await (await stack.enter_async_context(scene.policy)).check(scene.env.chat)
        return await collect(scene.env, scene.policy, path=file, progress=True, concurrency=scene.concurrency)


def figures(scene: Stage, collection: Collection, report: PackingReport, seconds: float) -> list[str]:
    """What the demo measured, a line each."""
    status, metrics = collection.status, collection.metrics
    own = scene.env.stopwatch.seconds + metrics["output_seconds"]
    return [
        (
            f"{status.groups} groups, {status.trajectories} trajectories, {status.tokens:,} tokens, "
            f"{metrics['sampled_share']:.1%} sampled by the policy, mean reward {metrics.get('reward', 0):.3f}"
        ),
        f"packed: {report}",
        (
            f"wall time {seconds:.2f} s: the policy samples in {metrics['policy_busy_share']:.1%} of it, tokentape "
            f"itself takes {own / seconds:.1%} ({own * 1000:.1f} ms: render, encode, record, group, write, read, pack)"
        ),
    ]


def positive(text: str) -> int:
    """A whole number from 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is too few: give 1 or more")
    return number
