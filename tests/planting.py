"""Plants faults in good rows of ours: one function a fault, which says where it put it, or that it cannot.

Each takes a row as `Row.to_dict` gives it, changes it, and returns the kinds that may name the fault and the token that
it must be reported at (None: the row).
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np

import tokentape as tt

Planted = tuple[set[str], int | None] | None
Plant = Callable[[dict[str, Any], tt.Chat, random.Random], Planted]

LISTS = ("token_ids", "sampled_mask", "loss_mask", "loss_weight", "logprobs", "advantages", "message_index")
PLANTS: dict[str, Plant] = {}


def plant(function: Plant) -> Plant:
    PLANTS[function.__name__] = function
    return function


def writable(row: tt.Row) -> dict[str, Any]:
    """The columns of a row, the lists as arrays that may be changed."""
    columns = row.to_dict()
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in columns.items()}


def turns(row: dict[str, Any]) -> list[tuple[int, int]]:
    return [(turn["start"], turn["end"]) for turn in row["turns"]]


def stopped(row: dict[str, Any], chat: tt.Chat) -> list[tuple[int, int]]:
    """The turns that end with a stop token."""
    return [(start, end) for start, end in turns(row) if int(row["token_ids"][end - 1]) in chat.stop_token_ids]


def own(row: dict[str, Any]) -> list[tuple[int, int]]:
    """The turns that carry loss in this row, and not in another that shares them."""
    return [(start, end) for start, end in turns(row) if row["loss_mask"][start:end].all()]


def splice(row: dict[str, Any], at: int, remove: int, ids: list[int], message: int = -1) -> None:
    """Replaces tokens in all columns by unsampled ones; turns behind them move along."""
    fill = {"token_ids": ids, "message_index": [message] * len(ids)}
    for name in LISTS:
        if row[name] is not None:
            values = np.asarray(fill.get(name, [0] * len(ids)), row[name].dtype)
            row[name] = np.concatenate([row[name][:at], values, row[name][at + remove :]])
    move(row, at, len(ids) - remove)


def move(row: dict[str, Any], at: int, by: int) -> None:
    for name in ("turns", "policy_versions"):
        for span in row[name] or []:
            span["start"] += by if span["start"] >= at else 0
            span["end"] += by if span["end"] > at else 0


def tail(row: dict[str, Any], rng: random.Random) -> tuple[int, int] | None:
    """What stands between two turns."""
    spans = turns(row)
    gaps = [(a[1], b[0]) for a, b in itertools.pairwise(spans) if b[0] > a[1]]
    return rng.choice(gaps) if gaps else None


# Logprobs.


def one_logprob(value: float, kind: str) -> Plant:
    def change(row: dict[str, Any], chat: tt.Chat, rng: random.Random) -> Planted:
        start, end = rng.choice(turns(row))
        at = rng.randrange(start, end)
        row["logprobs"][at] = value
        return {kind}, at

    return change


for name, value, kind in [
    ("logprob_is_nan", float("nan"), "nan-logprob"),
    ("logprob_is_infinite", -float("inf"), "infinite-logprob"),
    ("logprob_is_positive", 0.25, "positive-logprob"),
    ("logprob_is_a_sentinel", -9999.0, "sentinel-logprob"),
]:
    PLANTS[name] = one_logprob(value, kind)


@plant
def turn_of_zero_logprobs(row, chat, rng):
    start, end = rng.choice(turns(row))
    row["logprobs"][start:end] = 0.0
    return {"zero-filled-logprobs"}, start


@plant
def constant_logprobs(row, chat, rng):
    start, end = rng.choice(turns(row))
    row["logprobs"][start:end] = -1.0
    return {"constant-logprobs"}, start


@plant
def logprobs_moved_left(row, chat, rng):
    row["logprobs"] = np.append(row["logprobs"][1:], np.float32(0))
    return {"logprobs-shifted"}, None


@plant
def logprobs_one_short(row, chat, rng):
    row["logprobs"] = row["logprobs"][:-1]
    return {"logprobs-length-mismatch"}, len(row["logprobs"])


@plant
def logprobs_one_too_many(row, chat, rng):
    row["logprobs"] = np.append(row["logprobs"], np.float32(-0.5))
    return {"logprobs-length-mismatch"}, len(row["token_ids"])


@plant
def logprobs_missing_in_one_row(row, chat, rng):
    row["logprobs"] = None
    return {"missing-logprobs"}, None


# Masks.


@plant
def nothing_is_trained(row, chat, rng):
    row["loss_mask"][:] = 0
    return None if row["parent_id"] else ({"all-zero-mask"}, None)


@plant
def loss_moved_right(row, chat, rng):
    mask = row["loss_mask"]
    if not (mask == row["sampled_mask"]).all():
        return None
    at = int(np.argmax(mask))
    row["loss_mask"] = np.append(np.uint8(0), mask[:-1])
    return {"mask-shifted"}, at


@plant
def loss_on_a_tail(row, chat, rng):
    gap = tail(row, rng)
    if gap is None:
        return None
    row["loss_mask"][slice(*gap)] = 1
    return {"tool-text-trained", "template-text-trained"}, gap[0]


@plant
def tail_counts_as_sampled(row, chat, rng):
    gap = tail(row, rng)
    if gap is None or int(row["token_ids"][gap[0] - 1]) not in chat.stop_token_ids:
        return None
    for name in ("loss_mask", "sampled_mask"):
        row[name][slice(*gap)] = 1
    return {"tool-text-trained", "template-text-trained"}, gap[0]


@plant
def loss_on_the_prompt(row, chat, rng):
    start = int(np.argmax(row["sampled_mask"]))
    row["loss_mask"][start - 2 : start] = 1
    return {"prompt-trained"}, start - 2


@plant
def stop_token_without_loss(row, chat, rng):
    spans = [span for span in stopped(row, chat) if span in own(row)]
    if not spans:
        return None
    end = rng.choice(spans)[1]
    row["loss_mask"][end - 1] = 0
    return {"stop-token-not-trained"}, end - 1


@plant
def newline_behind_the_stop_is_trained(row, chat, rng):
    spans = [end for _, end in stopped(row, chat) if end < len(row["token_ids"])]
    if not spans:
        return None
    at = rng.choice(spans)
    row["loss_mask"][at] = 1
    return {"template-text-trained", "tool-text-trained"}, at


@plant
def mask_one_short(row, chat, rng):
    row["sampled_mask"] = row["sampled_mask"][:-1]
    return {"mask-length-mismatch"}, len(row["sampled_mask"])


@plant
def first_token_is_trained(row, chat, rng):
    row["loss_mask"][0] = 1
    return {"segment-start-trained"}, 0


# K1, K2, K15: what stands between turns


@plant
def stop_token_twice(row, chat, rng):
    spans = [end for _, end in stopped(row, chat) if end < len(row["token_ids"])]
    if not spans:
        return None
    at = rng.choice(spans)
    splice(row, at, 0, [int(row["token_ids"][at - 1])])
    return {"doubled-stop-token"}, at


@plant
def text_behind_a_turn_is_lost(row, chat, rng):
    gap = tail(row, rng)
    if gap is None:
        return None
    splice(row, gap[0], 1, [])
    return {"tail-differs"}, None


@plant
def generation_prompt_is_lost(row, chat, rng):
    gap = tail(row, rng)
    if gap is None or gap[1] - gap[0] < 3:
        return None
    splice(row, gap[1] - 2, 2, [])
    return {"tail-differs"}, None


@plant
def tool_result_of_another_call(row, chat, rng):
    gap = tail(row, rng)
    if gap is None:
        return None
    middle = (gap[0] + gap[1]) // 2
    row["token_ids"][middle] = (int(row["token_ids"][middle]) + 1) % 100
    return {"tail-differs"}, None


@plant
def prompt_of_another_question(row, chat, rng):
    start = int(np.argmax(row["sampled_mask"]))
    row["token_ids"][start // 2] = (int(row["token_ids"][start // 2]) + 1) % 100
    return {"prompt-differs", "broken-parent"}, None


@plant
def system_prompt_leaks_in(row, chat, rng):
    leaked = chat.render([{"role": "user", "content": "You are a helpful model."}]).token_ids.tolist()
    splice(row, 0, 0, leaked)
    return {"prompt-differs", "broken-parent"}, None


@plant
def beginning_stands_twice(row, chat, rng):
    splice(row, 0, 0, [int(row["token_ids"][0])])
    return {"doubled-bos", "prompt-differs", "broken-parent"}, None


# K1, K5, K20: what was sampled, and what the messages say


@plant
def turn_was_decoded_and_changed(row, chat, rng):
    start, _ = rng.choice(turns(row))
    row["token_ids"][start] = int(chat.encode(" zebra")[0])
    return {"text-differs"}, start


@plant
def message_is_another(row, chat, rng):
    messages = json.loads(row["messages"])
    turn = rng.choice(row["turns"])
    messages[turn["message"]]["content"] = "zebra"
    row["messages"] = json.dumps(messages)
    return {"text-differs", "tail-differs", "prompt-differs"}, None


@plant
def message_is_lost(row, chat, rng):
    messages = json.loads(row["messages"])
    row["messages"] = json.dumps(messages[:-1])
    return {"messages-disagree", "tail-differs", "message-index-wrong"}, None


# K9, K13: cut rows


@plant
def columns_cut_on_the_left(row, chat, rng):
    for name in LISTS:
        if row[name] is not None:
            row[name] = row[name][3:]
    row["turns"] = [turn | {"start": turn["start"] - 3, "end": turn["end"] - 3} for turn in row["turns"]]
    move = [run | {"start": run["start"] - 3, "end": run["end"] - 3} for run in row["policy_versions"] or []]
    row["policy_versions"] = move or None
    return {"prompt-differs", "broken-parent"}, None


@plant
def stop_added_to_a_cut_turn(row, chat, rng):
    cut = [turn for turn in row["turns"] if turn["finish_reason"] == "length"]
    inside = [turn for turn in cut if turn["end"] < len(row["token_ids"])]
    if not inside:
        return None
    turn = inside[0]
    at = turn["end"]
    row["sampled_mask"][at] = row["loss_mask"][at] = 1
    turn["end"] += 1
    return {"stop-after-length"}, at


# K10, K18, ids, turns, versions


@plant
def negative_id(row, chat, rng):
    at = rng.randrange(len(row["token_ids"]))
    row["token_ids"][at] = -1
    return {"negative-id"}, at


@plant
def id_outside_the_vocabulary(row, chat, rng):
    at = rng.randrange(len(row["token_ids"]))
    row["token_ids"][at] = 999_999
    return {"id-out-of-vocabulary"}, at


@plant
def turn_ends_too_early(row, chat, rng):
    row["turns"][-1]["end"] -= 1
    return {"turns-disagree"}, row["turns"][-1]["end"]


@plant
def versions_leave_a_token_out(row, chat, rng):
    row["policy_versions"][-1]["end"] -= 1
    return {"versions-disagree"}, None


@plant
def advantage_is_not_finite(row, chat, rng):
    at = int(np.argmax(row["sampled_mask"]))
    row["advantages"][at] = float("inf")
    return {"not-finite"}, at


@plant
def shared_tokens_are_trained_twice(row, chat, rng):
    if not row["parent_id"]:
        return None
    shared = row["loss_mask"][: row["fork_at"]], row["sampled_mask"][: row["fork_at"]]
    if not shared[1].any():
        return None
    if shared[0].any():
        return None
    row["loss_mask"][: row["fork_at"]] = shared[1]
    return {"trained-twice"}, int(np.argmax(shared[1]))


@plant
def message_index_out_of_range(row, chat, rng):
    at = rng.randrange(len(row["token_ids"]))
    row["message_index"][at] = 99
    return {"message-index-wrong"}, at


@plant
def messages_are_no_json(row, chat, rng):
    row["messages"] = row["messages"][:-1]
    return {"invalid-json"}, None
