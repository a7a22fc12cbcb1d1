"""`tokentape collect`: run an environment and keep its groups."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys
from pathlib import Path
from typing import Any, cast

from tokentape import ArgumentError, Policy
from tokentape.cli.inputs import Subparsers, load_chat
from tokentape.envs import Collection, Environment, collect
from tokentape.policies import LlamaCpp, Recording, Replay

__all__ = ["add_parser", "run"]

EPILOG = """\
The environment is a class, made with the model's chat if --model is given and without arguments otherwise, or a
function or object of the module that gives an environment. The module is looked for in the working folder too.

examples:
  tokentape collect my_env:Arithmetic --model model.gguf --llama-cpp http://127.0.0.1:8080 --path run.tape
  tokentape collect my_env:Arithmetic --model path/to/model --replay completions.jsonl --path run.tape
  tokentape collect my_env:Arithmetic --model model.gguf --llama-cpp http://127.0.0.1:8080 --path run.tape \\
      --groups 500 --concurrency 64 --record completions.jsonl

Run the same command again after an interruption: it goes on where it ended.
"""


def add_parser(commands: Subparsers) -> argparse.ArgumentParser:
    """The command's options."""
    parser = commands.add_parser(
        "collect",
        help="run an environment and write its groups",
        description="Run an environment against a policy, and write its groups as Arrow.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("environment", help="module:Class")
    policy = parser.add_mutually_exclusive_group(required=True)
    policy.add_argument("--llama-cpp", metavar="URL", help="sample from a llama.cpp server")
    policy.add_argument("--replay", metavar="FILE", help="answer from a file of recorded completions")
    parser.add_argument("--path", required=True, help="NAME.tape (can go on after an interruption) or NAME.arrow")
    parser.add_argument("--model", help="a model folder or GGUF file")
    parser.add_argument("--record", metavar="FILE", help="append every completion to this file, which --replay reads")
    parser.add_argument("--groups", type=int, help="stop after this many groups")
    parser.add_argument("--concurrency", type=int, default=16, help="items in work at once (default 16)")
    parser.add_argument("--timeout", type=float, help="seconds for one item")
    parser.add_argument("--retries", type=int, default=2, help="further tries of what failed (default 2)")
    return cast("argparse.ArgumentParser", parser)


def run(arguments: argparse.Namespace) -> None:
    """Collect, and say on standard error what came of it."""
    env = load_environment(arguments.environment, arguments.model)
    collection = asyncio.run(_collect(env, arguments))
    status = collection.status
    print(f"{status.line()} in {collection.path}", file=sys.stderr)
    for name, value in collection.metrics.items():
        if name.startswith("eval/"):
            print(f"  {name} {value:g}", file=sys.stderr)
    for word, counts in (("dropped", status.dropped), ("failed", status.failed), ("rollouts", status.rollouts_dropped)):
        for reason, count in counts.most_common():
            print(f"  {word} {count}: {reason}", file=sys.stderr)


async def _collect(env: Environment[Any], arguments: argparse.Namespace) -> Collection:
    if arguments.replay:
        return await _play(env, Replay(arguments.replay), arguments)
    async with LlamaCpp(arguments.llama_cpp) as policy:
        if arguments.model:
            await policy.check(env.chat)
        return await _play(env, policy, arguments)


async def _play(env: Environment[Any], policy: Policy, arguments: argparse.Namespace) -> Collection:
    return await collect(
        env,
        Recording(policy, arguments.record) if arguments.record else policy,
        path=arguments.path,
        groups=arguments.groups,
        concurrency=arguments.concurrency,
        timeout=arguments.timeout,
        retries=arguments.retries,
        progress=True,
    )


def load_environment(name: str, model: str | None = None) -> Environment[Any]:
    """The environment that `module:Class` names.

    Raises:
        ArgumentError: there is no such module or name, or it is no environment.
    """
    module_name, separator, attribute = name.partition(":")
    if not separator:
        raise ArgumentError(f"{name!r} names no environment: give module:Class")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        if error.name != module_name.partition(".")[0] and error.name != module_name:
            raise
        raise ArgumentError(f"there is no module {module_name!r} here or among what is installed") from None
    except AttributeError:
        raise ArgumentError(f"the module {module_name!r} has no {attribute!r}") from None
    env: Any = found
    if callable(found):
        env = found(load_chat(model)) if model else found()
    if not isinstance(env, Environment):
        raise ArgumentError(f"{name} gives {type(env).__name__}, which is no Environment")
    return cast("Environment[Any]", env)
