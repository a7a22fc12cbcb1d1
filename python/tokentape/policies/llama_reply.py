"""What a llama.cpp server replied, checked against what it was asked.

*Invariant*: every id has its own logprob or None; None stands where the server gives none: it leaves out the entry of a
token behind which the text ends inside a character, as the first part of an emoji does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, cast

__all__ = ["NEUTRAL", "RANDOM_SEED", "Fail", "Reply", "field_of", "read_reply"]

Fail: TypeAlias = Callable[[str], NoReturn]
"""Raises the error of the server."""
RANDOM_SEED = 2**32 - 1
"""llama.cpp reads this seed as: choose one."""
NEUTRAL: Mapping[str, Any] = {
    "min_p": 0.0,
    "typical_p": 1.0,
    "top_n_sigma": -1.0,
    "xtc_probability": 0.0,
    "dynatemp_range": 0.0,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dry_multiplier": 0.0,
    "mirostat": 0,
    "ignore_eos": False,
    "logit_bias": [],
    "grammar": "",
    "samplers": ["temperature", "top_k", "top_p"],
}
"""Settings under which the server samples the distribution that `Sampling` names; its own defaults cut and penalise."""
ALWAYS_ECHOED = frozenset({"temperature", "top_k", "top_p", "min_p", "samplers", "n_probs"})
"""Settings that every llama.cpp with literal ids echoes; an older one may not know the others."""
TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class Reply:
    """One completion as the server gave it.

    Attributes:
        ids: The sampled ids, those behind a stop id included.
        logprobs: In nats, one for each id; None where the server gave none.
        stop_type: llama.cpp's word for why it stopped.
        seed: The seed in force, or None if the server chose one and does not tell.
        model: The model's name as the server tells it.
        is_cut: Whether it ended only because it has as many tokens as were asked for.
    """

    ids: list[int]
    logprobs: list[float | None]
    stop_type: str
    seed: int | None
    model: str
    is_cut: bool


def read_reply(value: Any, asked: Mapping[str, Any], index: int, fail: Fail) -> Reply:
    """Read the completion of this index, or fail with what is wrong with it."""
    if not isinstance(value, Mapping):
        fail(f"its reply is {type(value).__name__}, not an object")
    reply = cast("Mapping[str, Any]", value)
    _check_prompt(reply, asked, fail)
    seed = _check_settings(reply, asked, index, fail)
    ids = _ids(reply, fail)
    found = reply.get("completion_probabilities", [])  # absent where it would be empty
    if not isinstance(found, list):
        fail(f"its `completion_probabilities` are {type(found).__name__}, not a list")
    entries = cast("list[Any]", found)
    placed = _place(ids, [field_of(entry, "id") for entry in entries], fail)
    name = "prob" if asked["post_sampling_probs"] else "logprob"
    logprobs: list[float | None] = [None] * len(ids)
    for at, entry in placed.items():
        logprobs[at] = _logprob(entries[entry], name, at, fail)
    stop_type = str(reply.get("stop_type"))
    is_cut = stop_type == "limit" and len(ids) == asked["n_predict"]
    return Reply(ids, logprobs, stop_type, seed, str(reply.get("model", "")), is_cut)


def field_of(value: Any, name: str) -> Any:
    """A field of a JSON object; None if it is absent, or the value is no object."""
    return cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None


def _check_prompt(reply: Mapping[str, Any], asked: Mapping[str, Any], fail: Fail) -> None:
    """The server has read the whole prompt, and sampled each token with all of it in sight."""
    read, sent = reply.get("tokens_evaluated"), len(asked["prompt"])
    if read != sent:
        fail(f"it read {read} tokens of a prompt of {sent}: it cut or changed the prompt, or is no llama.cpp")
    full = reply.get("stop_type") == "limit" and len(reply.get("tokens") or ()) < asked["n_predict"]
    if reply.get("truncated") and not full:
        fail("it dropped the beginning of its context while it sampled: start it without context shift")


def _check_settings(reply: Mapping[str, Any], asked: Mapping[str, Any], index: int, fail: Fail) -> int | None:
    """The settings in force are those that were asked for; returns the seed."""
    in_force = reply.get("generation_settings")
    if not isinstance(in_force, Mapping):
        fail("its reply has no `generation_settings`, so how it sampled cannot be told")
    echoed = cast("Mapping[str, Any]", in_force)
    for name in (*NEUTRAL, "temperature", "top_k", "top_p", "n_probs", "post_sampling_probs"):
        if name not in echoed and name not in ALWAYS_ECHOED:
            continue
        if not _same(asked[name], echoed.get(name)):
            fail(f"it sampled with {name} {echoed.get(name)!r} where {asked[name]!r} was asked for")
    seed = echoed.get("seed")
    if asked["seed"] != RANDOM_SEED and seed != asked["seed"] + index:
        fail(f"it sampled with seed {seed} where {asked['seed'] + index} was asked for")
    return seed if isinstance(seed, int) and seed != RANDOM_SEED else None


def _same(asked: Any, echoed: Any) -> bool:
    if isinstance(asked, float) and isinstance(echoed, int | float):
        return math.isclose(asked, echoed, rel_tol=1e-6, abs_tol=1e-9)
    if asked and isinstance(asked, list):  # `logit_bias` is echoed as objects
        return isinstance(echoed, list) and len(cast("list[Any]", echoed)) == len(cast("list[Any]", asked))
    return bool(asked == echoed)


def _ids(reply: Mapping[str, Any], fail: Fail) -> list[int]:
    ids = reply.get("tokens")
    if not isinstance(ids, list) or not ids:
        fail(
            "its reply has no `tokens`: text alone is no use, since encoding it again may give other ids; llama.cpp "
            "returns them with `return_tokens`: use a newer one"
        )
    found = cast("list[Any]", ids)
    if not all(isinstance(token, int) for token in found):
        fail(f"its `tokens` are no integers: {found[:8]}")
    return cast("list[int]", found)


def _place(ids: Sequence[int], entries: Sequence[Any], fail: Fail) -> dict[int, int]:
    """The entry of each position, where it can be told: entries name ids in order, and some positions have none."""
    earliest = _match(range(len(ids)), ids, range(len(entries)), entries)
    latest = _match(range(len(ids) - 1, -1, -1), ids, range(len(entries) - 1, -1, -1), entries)
    if len(earliest) != len(entries):
        lost = len(earliest)
        fail(
            f"its {len(entries)} logprobs do not belong to its {len(ids)} ids: the one numbered {lost} is of token "
            f"{entries[lost]}, which it did not sample there"
        )
    return {at: entry for entry, at in earliest.items() if latest[entry] == at}


def _match(
    positions: Sequence[int], ids: Sequence[int], order: Sequence[int], entries: Sequence[Any]
) -> dict[int, int]:
    """For each entry the first position, in the order given, that has its id and follows the entry before."""
    placed: dict[int, int] = {}
    free = iter(positions)
    for entry in order:
        at = next((position for position in free if ids[position] == entries[entry]), None)
        if at is None:
            break
        placed[entry] = at
    return placed


def _logprob(entry: Any, name: str, at: int, fail: Fail) -> float:
    value = field_of(entry, name)
    if not isinstance(value, int | float):
        fail(f"the {name} of sampled token {at} is {value!r}, which is no number")
    if name == "prob":
        value = math.log(value) if value > 0 else -math.inf
    if not -math.inf < value <= TOLERANCE:
        fail(f"the logprob of sampled token {at} is {value}: it must be finite and not above 0")
    return float(value)
