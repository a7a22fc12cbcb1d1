"""A program: a llama.cpp server that prints its address and ends when its standard input does.

`python serve.py MODEL CONTEXT SLOTS THREADS`; the context is shared by the slots. It needs the wheel `xllamacpp` and
nothing else, and listens on the loopback device only.
"""

from __future__ import annotations

import sys
from typing import Any


def main(model: str, context: str, slots: str, threads: str) -> None:
    """Serve until standard input ends."""
    import xllamacpp  # noqa: PLC0415 -- an extra  # pyright: ignore[reportMissingImports]

    llama: Any = xllamacpp
    settings = llama.CommonParams()
    settings.model.path = model
    settings.n_ctx, settings.n_parallel = int(context), int(slots)
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = int(threads)
    settings.warmup = False
    server = llama.Server(settings)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
