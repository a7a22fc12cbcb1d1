"""Faults that were reported in public, each as a case with its expected value.

`TOKENTAPE_BUGCASES=FILE` runs the cases of another file of the same form; paths in it are relative to it.
"""

import json
import os
from pathlib import Path

import pytest

import corpus
from bugcases import Driver

FILE = Path(os.environ.get("TOKENTAPE_BUGCASES") or corpus.ROOT / "bugcases.jsonl")


def cases():
    if not FILE.is_file():
        return []
    return [json.loads(line) for line in FILE.read_text().split("\n") if line]


CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case):
    corpus.require()
    Driver(FILE.parent).run(case)


def test_all_cases_ran():
    corpus.require()
    print(f"{len(CASES)} cases of {FILE.name}")
    assert len(CASES) >= 51 or "TOKENTAPE_BUGCASES" in os.environ
