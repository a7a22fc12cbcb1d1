"""A process forked from one that used its threads has threads of its own: it validates, packs and lints rows."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
from typing import Any

import numpy as np
import pytest

import tokentape as tt

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="no fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]
CHILDREN = 3


def batch() -> tt.Batch:
    generator = np.random.default_rng(0)
    prompts = [generator.integers(0, 9, 20) for _ in range(40)]
    rows = [
        {
            "token_ids": np.concatenate([prompts[index % 40], generator.integers(0, 9, 30)]),
            "sampled_mask": np.repeat([0, 1], [20, 30]),
            "group_id": f"item-{index % 40}",
            "trajectory_id": f"trajectory-{index}",
        }
        for index in range(400)
    ]
    return tt.Batch.from_rows(rows)


def work(given: tt.Batch) -> list[Any]:
    """Whatever of rows is shared among threads, as values that can be compared."""
    given.validate()
    found: list[Any] = [str(tt.lint(given))]
    for sharing in (False, True, "single_next", "prompt"):
        packing = tt.pack(given, token_budget=300, share_prefixes=sharing)
        found += [packed.input_ids.tolist() for packed in packing]
    return [*found, pickle.loads(pickle.dumps(given)).row(7).token_ids.tolist()]


def in_child(given: tt.Batch, queue: Any) -> None:
    queue.put(work(given))


def test_forked_processes_pack_as_their_parent_does():
    given = batch()
    expected = work(given)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=in_child, args=(given, queue)) for _ in range(CHILDREN)]
    for child in children:
        child.start()
    results = [queue.get(timeout=50) for _ in children]
    for child in children:
        child.join(10)
    assert all(found == expected for found in results)
