"""Each class of fault, planted by chance in good files of other frameworks, is found where it is and nowhere else."""

from __future__ import annotations

import itertools
import json
import random

import pytest

import foreign
import rollouts
import tokentape as tt

STOP, PAD = 151645, 151643
PLANTS = {}


def plant(function):
    PLANTS[function.__name__.replace("_", "-")] = function
    return function


def value(name, number):
    def change(lists, rng):
        at = rng.choice([at for at, trained in enumerate(lists.trained()) if trained])
        lists.logprobs[at] = number
        return at

    PLANTS[name] = change


value("nan-logprob", float("nan"))
value("positive-logprob", 0.375)
value("infinite-logprob", float("-inf"))
value("null-logprob", None)
value("sentinel-logprob", -9999.0)


@plant
def logprobs_length_mismatch(lists, rng):
    lists.logprobs.pop()
    return len(lists.logprobs)


@plant
def mask_length_mismatch(lists, rng):
    lists.mask.pop()
    return len(lists.mask)


@plant
def zero_filled_logprobs(lists, rng):
    start, end = rng.choice(lists.runs())
    lists.logprobs[start:end] = [0.0] * (end - start)
    return start if end - start >= 4 else None


@plant
def all_zero_mask(lists, rng):
    for at in range(len(lists.mask)):
        lists.set(at, trained=False)
    return -1


@plant
def stop_token_not_trained(lists, rng):
    end = lists.runs()[-1][1]
    if end != len(lists.mask) or lists.id(end - 1) != STOP:
        return None
    lists.set(end - 1, trained=False)
    lists.logprobs[end - 1] = lists.filler
    return end - 1


@plant
def tool_text_trained(lists, rng):
    runs = lists.runs()
    gaps = [(one[1], two[0]) for one, two in itertools.pairwise(runs) if lists.id(one[1] - 1) == STOP]
    if not gaps:
        return None
    start, end = rng.choice(gaps)
    for at in range(start, end):
        lists.set(at, trained=True)
    return start


@plant
def prompt_trained(lists, rng):
    start = lists.runs()[0][0]
    for at in range(max(start - 3, 0), start):
        lists.set(at, trained=True)
    return start - 3 if start >= 3 else None


@plant
def pad_token_trained(lists, rng):
    lists.ids.append(PAD)
    lists.mask.append(PAD if lists.labels else 1)
    lists.logprobs.append(0.0)
    lists.grow()
    return len(lists.mask) - 1


@plant
def mask_shifted(lists, rng):
    trained, start = lists.trained(), lists.runs()[0][0]
    for at, was in enumerate([False, *trained[:-1]]):
        lists.set(at, trained=was)
    return start


@plant
def logprobs_shifted(lists, rng):
    lists.logprobs[:] = [*lists.logprobs[1:], lists.filler]
    return -1 if lists.runs()[0][0] else None


@plant
def negative_id(lists, rng):
    at = rng.randrange(len(lists.mask))
    trained = lists.trained()[at]
    lists.ids[at + lists.offset] = -1
    lists.set(at, trained=trained)
    return at


@plant
def doubled_stop_token(lists, rng):
    ends = [end for _, end in lists.runs() if end < len(lists.mask) and lists.id(end - 1) == STOP]
    if not ends:
        return None
    at = rng.choice(ends)
    lists.ids.insert(at + lists.offset, STOP)
    lists.mask.insert(at, foreign.IGNORED if lists.labels else 0)
    lists.logprobs.insert(at, lists.filler)
    lists.grow()
    return at


@plant
def sampled_turn_not_trained(lists, rng):
    runs = lists.runs()
    start, end = rng.choice(runs)
    if len(runs) < 2 or lists.id(end - 1) != STOP:
        return None
    for at in range(start, end):
        lists.set(at, trained=False)
    return start


FILES = [
    entry
    for entry in rollouts.entries()
    if entry["kind"] == "good"
    and entry["framework"] in foreign.READERS
    and entry["file"].endswith((".json", ".jsonl"))
    and "stepwise" not in entry["file"]
]


@pytest.mark.parametrize("with_model", [True, False], ids=["model", "alone"])
@pytest.mark.parametrize("entry", FILES, ids=lambda entry: entry["file"])
def test_a_planted_fault_is_found_where_it_is(entry, with_model, tmp_path):
    source = rollouts.folder() / entry["file"]
    rng = random.Random(entry["file"])
    for kind, change in PLANTS.items():
        records, lists = foreign.sequences(entry["framework"], source)
        row = rng.randrange(len(lists))
        at = change(lists[row], rng)
        if at is None:
            continue
        path = tmp_path / f"planted{source.suffix}"
        foreign.dump(records, path)
        report = tt.lint(path, chat=rollouts.chat(entry["framework"]) if with_model else None)
        same = [fault for fault in report.faults if fault.kind == kind and fault.row == row]
        assert same, (kind, row, at, [str(fault) for fault in report.faults])
        assert at < 0 or any(fault.token in {at, None} for fault in same), (kind, at, [str(fault) for fault in same])
        assert {fault.row for fault in report.faults} == {row}, (kind, [str(fault) for fault in report.faults])


def nodes(records):
    return [node for episode in records for trace in episode["traces"] for node in trace["nodes"] if node["sampled"]]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("stop-token-not-trained", lambda node: (node["mask"].__setitem__(-1, False), node["logprobs"].pop())),
        ("sampled-turn-not-trained", lambda node: node.update(mask=[False] * len(node["mask"]), logprobs=[])),
        ("mask-length-mismatch", lambda node: node["mask"].pop()),
        ("logprobs-length-mismatch", lambda node: node["logprobs"].pop()),
        ("broken-parent", lambda node: node.update(parent=99)),
        ("null-logprob", lambda node: node["logprobs"].__setitem__(1, None)),
    ],
)
def test_a_fault_in_a_node_of_a_graph_is_found_there(tmp_path, kind, change):
    source = rollouts.folder() / "verifiers" / "good_multi_turn_tool.jsonl"
    if not source.exists():
        pytest.skip(f"no {source}")
    records = [json.loads(line) for line in source.read_text().splitlines()]
    change(nodes(records[:1])[1])
    foreign.dump(records, tmp_path / "a.jsonl")
    report = tt.lint(tmp_path / "a.jsonl")
    assert [(fault.row, fault.node) for fault in report.faults if fault.kind == kind] == [(0, 4)]
    assert {fault.row for fault in report.faults} == {0}


def test_a_group_that_stands_twice_is_found_row_by_row(tmp_path):
    source = rollouts.folder() / "atropos" / "good_process_messages.jsonl"
    if not source.exists():
        pytest.skip(f"no {source}")
    lines = source.read_text().splitlines()
    (tmp_path / "a.jsonl").write_text("\n".join([*lines, lines[1]]) + "\n")
    found = tt.lint(tmp_path / "a.jsonl").faults
    rows = sum(len(json.loads(line)["tokens"]) for line in lines)
    assert [(fault.kind, fault.row) for fault in found] == [("duplicated-row", rows + index) for index in range(4)]
