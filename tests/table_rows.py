"""Rows of the contract for tests: hand-made ones, and Hypothesis strategies."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st


def full_row(index: int = 0, *, prompt: int = 3, turns: tuple[int, ...] = (4, 2)) -> dict[str, Any]:
    """A row in which every column has a value: a prompt, then turns with an observation of two tokens between."""
    sampled: list[int] = [0] * prompt
    runs: list[dict[str, Any]] = []
    for number, length in enumerate(turns):
        sampled += [0, 0] if number else []
        reason = "stop" if number % 2 == 0 else "length"
        runs.append(
            {
                "start": len(sampled),
                "end": len(sampled) + length,
                "message": 2 * number + 1,
                "finish_reason": reason,
                "reward": None if number else 0.5,
            }
        )
        sampled += [1] * length
    length = len(sampled)
    return {
        "group_id": f"item-{index // 2}", "rollout_id": f"rollout-{index}", "trajectory_id": f"trajectory-{index}",
        "env": "arithmetic", "agent": "solver" if index % 2 else None,
        "parent_id": None, "fork_at": None, "fork_kind": None,
        "token_ids": [100 * index + position for position in range(length)],
        "sampled_mask": sampled, "loss_mask": sampled,
        "loss_weight": [float(value) * 0.5 for value in sampled] if index % 3 == 0 else None,
        "logprobs": [-0.25 * value * (position + 1) for position, value in enumerate(sampled)],
        "advantages": [(-1.0) ** index * value for value in sampled],
        "message_index": [-1] + [0] * (length - 1),
        "turns": runs,
        "policy_versions": [{"start": turn["start"], "end": turn["end"], "version": index + 7} for turn in runs],
        "reward": float(index), "metrics": json.dumps({"correct": index}), "messages": json.dumps([{"role": "user"}]),
        "tools": "[]", "provenance": json.dumps({"history": "keep"}),
    }  # fmt: skip


finite = st.floats(-100, 100, width=32)


@st.composite
def rows(draw: st.DrawFn, *, max_tokens: int = 40) -> dict[str, Any]:
    """Any valid row; the optional columns are there or not."""
    length = draw(st.integers(0, max_tokens))
    per_token = lambda values: draw(st.lists(values, min_size=length, max_size=length))  # noqa: E731
    optional = lambda values: draw(st.none() | st.lists(values, min_size=length, max_size=length))  # noqa: E731
    sampled = per_token(st.integers(0, 1))
    runs = _runs(sampled)
    return full_row(draw(st.integers(0, 5))) | {
        "trajectory_id": draw(st.text(max_size=4)),
        "token_ids": per_token(st.integers(0, 2**31 - 1)),
        "sampled_mask": sampled,
        "loss_mask": per_token(st.integers(0, 1)),
        "loss_weight": optional(finite),
        "logprobs": optional(st.floats(-50, 0, width=32)),
        "advantages": optional(finite),
        "message_index": per_token(st.integers(-1, 5)),
        "turns": [
            {"start": start, "end": end, "message": 1, "finish_reason": "stop", "reward": draw(st.none() | finite)}
            for start, end in runs
        ],
        "policy_versions": draw(
            st.none() | st.just([{"start": start, "end": end, "version": 2**40} for start, end in runs])
        ),
        "reward": draw(st.none() | finite),
    }


def _runs(mask: list[int]) -> list[tuple[int, int]]:
    """The runs of ones, as half-open ranges."""
    edges = [i for i in range(len(mask) + 1) if (mask[i : i + 1] == [1]) != (i > 0 and mask[i - 1] == 1)]
    return list(zip(edges[::2], edges[1::2], strict=True))


def as_lists(row: Any) -> dict[str, Any]:
    """A row of a batch with lists in place of arrays, to compare with what was given."""
    columns = row.to_dict()
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in columns.items()}
