"""verifiers: traces, as the JSON lines of episodes and as the msgpack list of its environment server.

A trace is a graph: a node holds the ids that one message added, and names its parent; a path from a root to a leaf is a
sequence. Logprobs are compact: one for each true bit of the mask. A node that several paths share carries loss in the
first of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokentape.batch import Row
from tokentape.readers.sample import Finding, Items, Piece, Place, Sample, attempts, floats, ids, mask
from tokentape.readers.source import Source, as_dict, as_list

__all__ = ["FILLER", "KEEPS", "NAME", "NEEDS_LOGPROBS", "detect", "read", "write"]

NAME = "verifiers"
FILLER = 0.0
NEEDS_LOGPROBS = False
KEEPS = {"rollout_id", "token_ids", "loss_mask", "logprobs", "reward", "messages", "message_index"}
UNKNOWN = -0.5
"""What stands for a logprob that is missing and reported: no filler, so that it is not reported twice."""


def detect(source: Source, first: Any) -> bool:
    """Whether the file is of this format."""
    return source.kind in {"lines", "msgpack"} and isinstance(first, dict) and ("traces" in first or "nodes" in first)


def read(source: Source) -> Items:
    """The sequences of all traces; `row` counts traces."""
    row = 0
    for item in _records(source):
        if isinstance(item, Finding):
            yield item
            continue
        record = as_dict(item, "a record")
        traces = as_list(record["traces"], "`traces`") if "traces" in record else [record]
        for trace in traces:
            yield from attempts(row, _trace, trace)
            row += 1


def _records(source: Source) -> Iterator[Any]:
    if source.kind == "msgpack":
        yield from source.items()
        return
    yield from (item if isinstance(item, Finding) else item[1] for item in source.lines())


@dataclass(slots=True)
class _Node:
    """A node, its logprobs spread over its tokens."""

    parent: int | None
    message: Any
    token_ids: NDArray[np.int32]
    mask: NDArray[np.uint8]
    logprobs: NDArray[np.float32]
    findings: list[Finding] = field(default_factory=list[Finding])


def _trace(row: int, item: Any) -> Items:
    trace = as_dict(item, "the trace")
    found = as_list(trace.get("nodes"), f"`nodes` of trace {row}")
    nodes = [_node(row, number, as_dict(node, f"node {number}")) for number, node in enumerate(found)]
    for node in nodes:
        yield from node.findings
    if any(finding.kind == "broken-parent" for node in nodes for finding in node.findings):
        return
    inner = {node.parent for node in nodes}
    leaves = [number for number in range(len(nodes)) if number not in inner]
    used: dict[int, str] = {}
    for leaf in leaves:
        yield _path(row, trace, nodes, leaf, used)


def _node(row: int, number: int, found: dict[str, Any]) -> _Node:
    tokens, sampled = ids(found.get("token_ids"), "token_ids"), mask(found.get("mask"), "mask")
    compact = floats(found.get("logprobs") or [], "logprobs")
    parent = found.get("parent")
    node = _Node(parent if isinstance(parent, int) else None, found.get("message"), tokens, sampled, compact)

    def say(kind: str, message: str, token: int | None, name: str) -> None:
        end = None if token is None else token + 1
        node.findings.append(Finding(kind, message, Place(row, token, end, name, number)))

    if parent is not None and not (isinstance(parent, int) and 0 <= parent < number):
        say("broken-parent", f"the parent is {parent!r}, no node before this one", None, "parent")
    if len(sampled) != len(tokens):
        message = f"`mask` has {len(sampled)} values for {len(tokens)} tokens"
        say("mask-length-mismatch", message, min(len(sampled), len(tokens)), "mask")
        node.mask = np.resize(sampled, len(tokens)) if len(sampled) else np.zeros(len(tokens), np.uint8)
    _check_role(node, found, compact, say)
    _check_whole(node, found, say)
    _spread(node, compact, say)
    return node


def _check_role(node: _Node, found: dict[str, Any], compact: NDArray[np.float32], say: Any) -> None:
    """A node of another author than the policy has no sampled tokens."""
    role = as_dict(node.message, "the message").get("role") if node.message is not None else None
    if not node.mask.any() or (role in {"assistant", None} and found.get("sampled") is not False):
        return
    kind = "tool-text-trained" if role == "tool" else "prompt-trained"
    say(kind, f"a node of the role {role!r} is marked as trained", int(np.argmax(node.mask)), "mask")
    if not len(compact):
        node.mask = np.zeros(len(node.mask), np.uint8)


def _check_whole(node: _Node, found: dict[str, Any], say: Any) -> None:
    """A sampled node ends with what was sampled: what a bridge adds belongs to the next node."""
    if found.get("sampled") is not True or not len(node.mask) or len(node.mask) != len(node.token_ids):
        return
    last = len(node.mask) - 1
    if not node.mask.any():
        content = found.get("is_content")
        first = int(np.argmax(mask(content, "is_content"))) if content else 0
        say("sampled-turn-not-trained", "the node was sampled and is not marked as trained", first, "mask")
    elif not node.mask[last]:
        say("stop-token-not-trained", "the last token of a sampled node is not marked as trained", last, "mask")


def _spread(node: _Node, compact: NDArray[np.float32], say: Any) -> None:
    places = np.flatnonzero(node.mask)
    if len(compact) != len(places):
        message = f"{len(compact)} logprobs for {len(places)} sampled tokens"
        say("logprobs-length-mismatch", message, min(len(compact), len(places)), "logprobs")
    node.logprobs = np.full(len(node.token_ids), FILLER, np.float32)
    node.logprobs[places] = UNKNOWN
    count = min(len(compact), len(places))
    node.logprobs[places[:count]] = compact[:count]


def _path(row: int, trace: dict[str, Any], nodes: list[_Node], leaf: int, used: dict[int, str]) -> Sample:
    numbers: list[int] = []
    at: int | None = leaf
    while at is not None:
        numbers.append(at)
        at = nodes[at].parent
    numbers.reverse()
    path = [nodes[number] for number in numbers]
    rollout = str(trace.get("id", ""))
    name = f"{rollout}/{leaf}"
    shared = [number in used for number in numbers]
    sampled = [node.mask for node in path]
    loss = [np.zeros_like(node.mask) if known else node.mask for node, known in zip(path, shared, strict=True)]
    columns: dict[str, Any] = {
        "rollout_id": rollout,
        "trajectory_id": name if rollout else "",
        "group_id": _group(trace),
        "token_ids": np.concatenate([node.token_ids for node in path]),
        "sampled_mask": np.concatenate(sampled),
        "loss_mask": np.concatenate(loss),
        "logprobs": np.concatenate([node.logprobs for node in path]),
        "message_index": np.concatenate([np.full(len(node.mask), i, np.int32) for i, node in enumerate(path)]),
        "messages": json.dumps([node.message for node in path], ensure_ascii=False),
    }
    if trace.get("rewards") is not None:
        columns["reward"] = _reward(as_dict(trace["rewards"], "the rewards"))
    if any(shared):
        columns["parent_id"] = used[max(number for number in numbers if number in used)]
        columns["fork_at"] = sum(len(node.mask) for node, known in zip(path, shared, strict=True) if known)
        columns["fork_kind"] = "branch"
    for number in numbers:
        used.setdefault(number, name)
    pieces = tuple(Piece(len(node.mask), "token_ids", number) for number, node in zip(numbers, path, strict=True))
    return Sample(row, columns, pieces)


def _group(trace: dict[str, Any]) -> str:
    task = trace.get("task")
    return "" if task is None else str(as_dict(task, "the task").get("key", ""))


def _reward(rewards: dict[str, Any]) -> float:
    """The weighted sum of the scores."""
    total = 0.0
    for value in rewards.values():
        match value:
            case {"score": int() | float() as score, **rest}:
                weight = rest.get("weight", 1.0)
                total += score * (weight if isinstance(weight, int | float) else 1.0)
            case int() | float():
                total += value
            case _:
                pass
    return total


def write(rows: Iterable[Row]) -> Iterator[str]:
    """One trace a line: a chain of nodes, one for each run of tokens of one message."""
    for row in rows:
        index = row.message_index
        edges = [0, *(np.flatnonzero(np.diff(index)) + 1).tolist(), len(row)]
        spans = list(pairwise(edges))
        nodes = [_dict(row, number, start, end) for number, (start, end) in enumerate(spans) if end > start]
        reward = {} if row.reward is None else {"reward": {"score": row.reward, "weight": 1.0}}
        yield json.dumps({"version": 1, "id": row.rollout_id, "nodes": nodes, "rewards": reward, "is_completed": True})


def _dict(row: Row, number: int, start: int, end: int) -> dict[str, Any]:
    sampled, message = row.loss_mask[start:end], int(row.message_index[start])
    known: list[Any] = row.messages
    role = {"role": "assistant" if sampled.any() else "user"}
    found: dict[str, Any] = {
        "message": known[message] if 0 <= message < len(known) else role,
        "token_ids": row.token_ids[start:end].tolist(),
        "mask": sampled.astype(bool).tolist(),
        "logprobs": [] if row.logprobs is None else row.logprobs[start:end][sampled == 1].tolist(),
    }
    # What a template adds behind a sampled turn stands in its node: such a node is sampled in part, and claims neither.
    if sampled[-1] or not sampled.any():
        found["sampled"] = bool(sampled.any())
    return found if number == 0 else {"parent": number - 1, **found}
