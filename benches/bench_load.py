"""Loading a tokenizer, and the memory that it takes, against the `tokenizers` library.

    python benches/bench_load.py MODEL_FOLDER... [--rounds 5]

Each row is the median of processes of their own that take turns: what loading takes by the clock and in CPU time, and
by how much the memory of the process has grown when 6 MB of chats have been encoded. *First*: nothing is known of the
tokenizer, and the cache is written. *Again*: it is read. *Off*: `TOKENTAPE_CACHE=off`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import tokenizers

import tokentape as tt
from texts import Chats
from tokentape import _core

KINDS = ("tokenizers", "off", "first", "again")


def memory() -> float:
    """The memory of this process in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise SystemExit("memory is read as Linux tells it")


def load(kind: str, folder: Path) -> Callable[[str], object]:
    """What encodes a text."""
    if kind == "tokenizers":
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        return lambda text: tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids
    return tt.Chat.from_pretrained(folder).encode


def measure(kind: str, folder: Path, megabytes: float) -> None:
    """Prints the three figures of this process."""
    source, texts, left = Chats(), list[str](), megabytes * 1e6
    while left > 0:
        texts.append("\n".join(message["content"] for message in source.chat(20_000)))
        left -= len(texts[-1].encode())
    gc.collect()
    before, wall, cpu = memory(), time.perf_counter(), time.process_time()
    encode = load(kind, folder)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    for text in texts:
        encode(text)
    gc.collect()
    print(json.dumps([wall, cpu, memory() - before]))


def process(kind: str, folder: Path, cache: Path, megabytes: float) -> list[float]:
    """The figures of a process of its own."""
    for file in cache.iterdir() if kind == "first" else ():
        file.unlink()
    setting = {"TOKENTAPE_CACHE": "off" if kind == "off" else str(cache)}
    command = [sys.executable, __file__, str(folder), "--kind", kind, "--megabytes", str(megabytes)]
    environment = os.environ | setting
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    return json.loads(done.stdout)


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="MODEL_FOLDER")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=float, default=6.0, help="text that is encoded")
    parser.add_argument("--kind", choices=KINDS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.kind:
        measure(arguments.kind, arguments.folders[0], arguments.megabytes)
        return
    if _core.build_profile != "release":
        parser.error("this is a debug build; its figures mean nothing")
    print(f"tokentape {tt.__version__}, tokenizers {tokenizers.__version__}; in brackets: of tokenizers")
    print(f"{'':24}  {'kind':10}       wall ms         CPU ms      memory MB")
    with tempfile.TemporaryDirectory() as temporary:
        for folder in arguments.folders:
            rounds = [
                {kind: process(kind, folder, Path(temporary), arguments.megabytes) for kind in KINDS}
                for _ in range(arguments.rounds)
            ]
            medians = {
                kind: [statistics.median(f) for f in zip(*(r[kind] for r in rounds), strict=True)] for kind in KINDS
            }
            for kind, figures in medians.items():
                scaled = zip(figures, medians["tokenizers"], (1e3, 1e3, 1.0), strict=True)
                columns = [f"{figure * unit:8.0f} ({figure / peer:4.2f})" for figure, peer, unit in scaled]
                print(f"{folder.name:24}  {kind:10}{''.join(columns)}")


if __name__ == "__main__":
    main()
