"""Scenarios of several turns, played through a trajectory with canonical samplings, and what must come of them."""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

import corpus
import tokentape as tt

MARKER = re.compile(r"<[^<>\s]{1,60}>|\[\|[^\[\]|\s]{1,40}\|\]|\[/?[A-Z][A-Z_]+\]|[\]\[][a-z!]?~[a-z!]?[\]\[]")
ROLES = ("system", "user", "assistant", "tool")


@functools.cache
def markers(source: str) -> tuple[str, ...]:
    """The control tokens of a template, as far as their shape shows them."""
    written = [f"{start}{role}{end}" for start, end in (("<|", "|>"), ("[|", "|]"), ("<", ">")) for role in ROLES]
    found = dict.fromkeys([*corpus.SPECIAL_TOKENS.values(), *MARKER.findall(source), *written])
    return tuple(text for text in found if "{" not in text and "'" not in text)


def with_markers(tokenizer: dict, texts: tuple[str, ...]) -> str:
    """A `tokenizer.json` with more special tokens behind its own."""
    tokenizer = dict(tokenizer)
    known = {token["content"] for token in tokenizer["added_tokens"]}
    vocabulary = tokenizer["model"]["vocab"]
    following = 1 + max([*vocabulary.values(), *(token["id"] for token in tokenizer["added_tokens"])])
    fresh = [text for text in texts if text not in known]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    added = [
        {"id": vocabulary.get(text, following + place), "content": text, **flags} for place, text in enumerate(fresh)
    ]
    tokenizer["added_tokens"] = [*tokenizer["added_tokens"], *added]
    return json.dumps(tokenizer)


@functools.cache
def audit() -> dict[tuple[str, str], dict[tuple[str, int], str]]:
    """The verdicts on each template and scenario, by check and step."""
    verdicts: dict[tuple[str, str], dict[tuple[str, int], str]] = {}
    for record in corpus.records("prefix_audit.jsonl.gz"):
        verdicts.setdefault((record["t"], record["s"]), {})[record["check"], record["k"]] = record["verdict"]
    return verdicts


@functools.cache
def scenarios() -> dict:
    """The scenarios by name."""
    return json.loads((corpus.require() / "prefix_scenarios.json").read_text())


@dataclass
class Tally:
    """What came of the turns of one template or of many."""

    counts: Counter = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def play(chat: tt.Chat, template: str, name: str, tally: Tally) -> None:
    """Plays one scenario: canonical ids, then all messages up to the next assistant message."""
    scenario = scenarios()[name]
    messages, tools = scenario["messages"], scenario["tools"]
    turns = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    verdicts = audit().get((template, name), {})
    settings = {"tools": tools, "trusted_roles": ("assistant",), "control_tokens": "template"}
    options = settings | {"seams": "rollout"}
    try:
        trajectory = chat.start(messages[: turns[0]], **settings)
    except tt.RenderError:
        tally.counts["not rendered"] += 1
        return
    sampled: list[int] = []
    stable, expected = True, set()
    for turn, following in zip(turns, [*turns[1:], None], strict=True):
        try:
            ids, aligned = canonical(chat, messages[: turn + 1], options)
        except tt.RenderError:
            tally.counts["not rendered"] += 1
            return
        if not ids:
            tally.counts["nothing sampled"] += 1
            return
        trajectory.act(ids, message=messages[turn])
        sampled += ids
        if following is None:
            break
        checks = [verdicts.get(key) for key in (("P1", turn), ("P2", turn + 1), ("P4", turn))]
        kinds = ("generation_prompt", "history", "history")
        expected |= {kind for kind, check in zip(kinds, checks, strict=True) if check == "break"}
        stable = stable and aligned and all(check == "ok" for check in checks)
        try:
            trajectory = trajectory.observe(messages[turn + 1 : following])
            full = chat.render(messages[:following], add_generation_prompt=True, **options)
        except tt.RenderError:
            tally.counts["not rendered"] += 1
            return
        judge(trajectory, full.token_ids, stable, expected, f"{template} {name} turn {turn}", tally)
        assert trajectory.token_ids[trajectory.sampled_mask].tolist() == sampled


def canonical(chat: tt.Chat, messages: list, options: dict) -> tuple[list[int], bool]:
    """The ids of the last message, as a policy would have sampled them: from the prompt to the end of the turn.

    False with them: a token of the full render spans the end of the prompt, so no sampling can give its ids.
    """
    rendered = chat.render(messages, **options)
    mask = rendered.loss_mask(turns=[len(messages) - 1], missing="skip")
    prompt = chat.render(messages[:-1], add_generation_prompt=True, **options).text
    aligned = True
    if rendered.text.startswith(prompt):
        aligned = len(prompt) in rendered.token_starts
        last = max(mask.nonzero()[0], default=-1)
        mask = (rendered.token_starts >= len(prompt)) & (np.arange(len(mask)) <= last)
    ids = rendered.token_ids[mask].tolist()
    stop = max((place for place, token in enumerate(ids) if token in chat.stop_token_ids), default=-1)
    # A template may tag the white space behind the stop as generated; no policy samples it.
    return (ids[: stop + 1] if stop >= 0 and not chat.decode(ids[stop + 1 :]).strip() else ids), aligned


def judge(trajectory, full, stable, expected, place, tally) -> None:
    """Counts one observation, and notes it if it is not what the audit lets expect."""
    equal = trajectory.token_ids.tolist() == full.tolist()
    divergence = trajectory.divergence()
    if equal:
        tally.counts["stable, equal" if stable else "unstable, equal"] += 1
        return
    if stable:
        tally.counts["stable, different"] += 1
        tally.wrong.append(f"{place}: {divergence}")
    elif divergence is None:
        tally.counts["unstable, unreported"] += 1
        tally.wrong.append(f"{place}: not reported")
    else:
        tally.counts[f"unstable, {divergence.kind}"] += 1
        if expected and divergence.kind not in expected:
            tally.wrong.append(f"{place}: {divergence.kind} is none of {expected}: {divergence}")
