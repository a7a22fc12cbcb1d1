"""What all tests share: hypothesis profiles, and the count of corpus records that ran."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

import corpus

settings.register_profile("fast", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("TOKENTAPE_HYPOTHESIS", "fast"))


def pytest_terminal_summary(terminalreporter):
    for name, count in sorted(corpus.counts.items()):
        terminalreporter.write_line(f"corpus: {count} {name}")
