"""Every class of fault, planted in good rows of ours, is found in its row, and no other row has a fault."""

from __future__ import annotations

import collections
import json
import random

import pytest

import corpus
import good_rows
import small
import test_observe
import tokentape as tt
from planting import PLANTS, writable


@pytest.fixture(scope="module", params=["small", "qwen3", "llama3.1"])
def chat(request):
    return small.chat() if request.param == "small" else tt.Chat.from_pretrained(corpus.tokenizer_folder(request.param))


def damaged(batch, chat, rng, share):
    """The rows with a fault in some, and what was planted where."""
    rows, planted = [], {}
    for row in batch.rows():
        columns = writable(row)
        name = rng.choice(list(PLANTS))
        if rng.random() < share:
            put = PLANTS[name](columns, chat, rng)
            if put is None:
                columns = writable(row)
            else:
                planted[row.index] = (name, *put)
        rows.append(columns)
    return as_batch(rows), planted


def as_batch(rows):
    from tokentape.readers.rows import as_table
    from tokentape.readers.sample import Sample

    return tt.Batch(as_table([Sample(index, row) for index, row in enumerate(rows)]))


def check(chat, groups, seed):
    batch = tt.Batch.from_groups(good_rows.rollouts(chat, groups, seed=seed))
    broken, planted = damaged(batch, chat, random.Random(seed), 0.25)
    report = tt.verify(broken, chat)
    children = {row.index for row in batch.rows() if row.parent_id}
    found = collections.defaultdict(list)
    for fault in report.faults:
        found[fault.row].append(fault)
    for row, (name, kinds, token) in planted.items():
        same = [fault for fault in found[row] if fault.kind in kinds]
        assert same, f"row {row}: {name} is not found; found {[str(fault) for fault in found[row]]}"
        assert token is None or any(fault.token == token for fault in same), (name, token, [str(f) for f in same])
    invented = [str(fault) for row in found.keys() - planted.keys() - children for fault in found[row]]
    assert not invented
    return len(batch), planted


def test_no_fault_in_good_rows(chat):
    for history in ("keep", "fork"):
        batch = tt.Batch.from_groups(good_rows.rollouts(chat, 12, seed=5, history=history))
        report = tt.verify(batch, chat)
        assert report.ok, [str(fault) for fault in report.faults[:5]]
        assert report.counts["unproven"] == 0
        assert tt.lint(batch).ok


def test_another_template_or_tokenizer_is_named_where_it_tells(chat):
    batch = tt.Batch.from_groups(good_rows.rollouts(chat, 3, seed=4))
    tokenizer, source = chat._tokenizer_json(), chat._parts()[0]
    other = tt.Chat(tokenizer, source + "{# a word to the reader #}", special_tokens=chat.special_tokens)
    report = tt.verify(batch, other)
    assert report.ok
    assert report.counts["other-file"] == len(batch)
    other = tt.Chat(tokenizer, "Hello. " + source, special_tokens=chat.special_tokens)
    report = tt.verify(batch, other)
    assert {fault.kind for fault in report.faults} == {"template-changed"}
    assert len(report.faults) == len(batch)
    made = test_observe.CHAT
    rows = tt.Batch.from_groups(good_rows.rollouts(made, 2, seed=4))
    vocabulary = json.loads(test_observe.chat_of(test_observe.CHATML)._tokenizer_json())
    letters = vocabulary["model"]["vocab"]
    letters["a"], letters["b"] = letters["b"], letters["a"]
    other = tt.Chat(json.dumps(vocabulary), test_observe.CHATML, special_tokens=made.special_tokens)
    assert {fault.kind for fault in tt.verify(rows, other).faults} == {"tokenizer-changed"}


def test_planted_faults_are_found_where_they_are(chat):
    _, planted = check(chat, 60, seed=1)
    assert len({name for name, *_ in planted.values()}) > len(PLANTS) / 2


@pytest.mark.long
def test_planted_faults_in_ten_thousand_rows(chat):
    rows, names = 0, set()
    for seed in range(100, 1000):
        count, planted = check(chat, 60, seed)
        rows += count
        names |= {name for name, *_ in planted.values()}
        if rows >= 10_000:
            break
    assert names == set(PLANTS)
