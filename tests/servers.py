"""Real servers for tests: the llama.cpp server with its model, a proxy that records, and servers that misbehave."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import corpus
from tokentape.demo.llama import HOW_TO_INSTALL, find_model

BAD_SERVER = Path(__file__).parent / "tools" / "bad_server.py"


def model_file() -> Path:
    """The real model; without it the test is skipped and counted, or fails where TOKENTAPE_REQUIRE_CORPUS is set."""
    found = find_model()
    if isinstance(found, Path):
        return found
    reason = f"{found}: {HOW_TO_INSTALL}"
    if os.environ.get("TOKENTAPE_REQUIRE_CORPUS"):
        pytest.fail(reason)
    corpus.ran("tests skipped for want of the real model", 1)
    return pytest.skip(reason)


def ask(url: str, route: str, body: Any = None) -> Any:
    """The JSON value that a route of a server gives, or answers to a JSON value."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url + route, data)) as answer:  # noqa: S310 -- our own server
        return json.load(answer)


@dataclass
class Exchange:
    """One request and what was answered to it."""

    route: str
    request: Any
    reply: Any


@dataclass
class Proxy:
    """Passes requests on and keeps them with the raw replies."""

    url: str = ""
    exchanges: list[Exchange] = field(default_factory=list)

    def completions(self) -> list[Exchange]:
        return [exchange for exchange in self.exchanges if exchange.route == "/completion"]


@contextlib.contextmanager
def recording_proxy(target: str, translate=lambda route, request: (route, request)):
    """A proxy in front of a server; `translate` makes of a route and request those that the server knows."""
    proxy = Proxy()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            route, asked = translate(self.path, json.loads(body))
            data = json.dumps(asked).encode()
            headers = {"content-type": "application/json"}
            request = urllib.request.Request(target + route, data, headers)  # noqa: S310 -- our own server
            try:
                with urllib.request.urlopen(request) as answer:  # noqa: S310
                    status, reply = answer.status, answer.read()
            except urllib.error.HTTPError as error:
                status, reply = error.code, error.read()
            proxy.exchanges.append(Exchange(self.path, json.loads(body), json.loads(reply)))
            self.send_response(status)
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *arguments):
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        proxy.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def bad_server(how: str):
    """A process whose server misbehaves in the way named."""
    command = [sys.executable, str(BAD_SERVER), how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


def resident_bytes(pid: int | str = "self") -> int:
    """The memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_ready(url: str, process: subprocess.Popen) -> None:
    """Returns when a server answers; fails when its process has ended."""
    while process.poll() is None:
        with contextlib.suppress(OSError):
            ask(url, "/health")
            return
        time.sleep(0.2)
    pytest.fail(f"the server at {url} has ended with code {process.returncode}")
