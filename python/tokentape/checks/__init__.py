"""Lint and verify: what is wrong with stored rollouts, ours and those of other frameworks."""

from __future__ import annotations

from tokentape.checks.convert import Lost, read_foreign, write_foreign
from tokentape.checks.fault import Fault, Report
from tokentape.checks.lint import Check, lint
from tokentape.checks.proof import proving, verify

__all__ = ["Check", "Fault", "Lost", "Report", "lint", "proving", "read_foreign", "verify", "write_foreign"]
