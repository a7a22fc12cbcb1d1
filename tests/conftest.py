"""What all tests share: hypothesis profiles, and the count of corpus records that ran."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

import corpus
import servers
from tokentape.demo.llama import llama_server

# Every rendering that goes on from an earlier one is compared with a full one; the engine reads this at its first.
os.environ.setdefault("TOKENTAPE_CHECK_SHORTCUTS", "1")

# No test reads what another run has compiled, or writes to the user's folder.
os.environ["TOKENTAPE_CACHE"] = "off"

settings.register_profile("fast", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("TOKENTAPE_HYPOTHESIS", "fast"))


def pytest_terminal_summary(terminalreporter):
    for name, count in sorted(corpus.counts.items()):
        terminalreporter.write_line(f"corpus: {count} {name}")


@pytest.fixture(scope="session")
def llama():
    """A real llama.cpp server with the real model, for the whole session."""
    with llama_server(servers.model_file(), context=16384, slots=16, threads=1) as server:
        yield server
