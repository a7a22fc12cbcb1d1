"""Operations of public fault reports, each through the public API: what `test_bugcases.py` drives."""

from __future__ import annotations

import contextlib
import copy
import datetime as dt
import functools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corpus
import tokentape as tt
from tokentape.feeds import labels
from tokentape.feeds.padded import _padded as padded_arrays

SPECIAL = ("bos_token", "eos_token", "unk_token", "pad_token")


class Driver:
    """Maps each operation of a case file to calls; every method checks one operation."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, case: dict[str, Any]) -> None:
        """Checks one case: its operation, or that it raises."""
        method = getattr(self, case["operation"])
        accepted = case["expected"].get("one_of", [])
        if case["expected"].get("must_raise"):
            self.refused(method, case)
        elif {"must_raise": True} in accepted:
            self.one_of(method, case, accepted)
        else:
            method(case, case["input"], case["expected"])

    def one_of(self, method, case, accepted) -> None:
        """A case with several right results, of which a refusal is one."""
        other = next(result for result in accepted if result != {"must_raise": True})
        with contextlib.suppress(tt.TokentapeError):
            method(case, case["input"], other)

    def refused(self, method, case) -> None:
        """Every part of the case raises an error of this library, with the words it must have."""
        parts = case["input"].get("cases", [case["input"]])
        for part in parts:
            with pytest.raises((tt.TokentapeError, KeyError)) as refusal:
                method(case, part, {})
            words = case["expected"].get("message_contains_any") or [case["expected"].get("message_contains", "")]
            assert any(word in str(refusal.value) for word in words), str(refusal.value)

    def chat(self, case: dict[str, Any]) -> tt.Chat:
        """The chat of a case: a tokenizer of the corpus, and a template beside the case file or inside it."""
        template = case["template"]
        source = template["inline"] if "inline" in template else (self.folder / template["file"]).read_text()
        return chat(case["tokenizer"], source)

    def bridge_next_turn(self, case, given, expected) -> None:
        trajectory = self.started(case, given)
        assert trajectory.token_ids.tolist() == given["prompt_ids"]
        if not given["completion_ids"]:
            self.refuses_nothing_sampled(trajectory)
            return
        message = calls_of(given) if case.get("tokenizer_family") == "gptoss" else None
        logprobs = given.get("completion_logprobs")
        trajectory.act(given["completion_ids"], logprobs, finish_reason=given["finish_reason"], message=message)
        trajectory = trajectory.observe(given["new_messages"])
        assert trajectory.token_ids.tolist() == expected["next_prompt_ids"]
        if "sampled_mask" in expected:
            assert trajectory.sampled_mask.astype(int).tolist() == expected["sampled_mask"]
        if logprobs:
            assert trajectory.logprobs[trajectory.sampled_mask].tolist() == np.float32(logprobs).tolist()

    def refuses_nothing_sampled(self, trajectory) -> None:
        before = trajectory.token_ids.tolist()
        with pytest.raises(tt.TrajectoryError, match="empty"):
            trajectory.act([], finish_reason="abort")
        assert trajectory.token_ids.tolist() == before

    def started(self, case, given) -> tt.Trajectory:
        options = {name: value for name, value in given.get("kwargs", {}).items() if name != "add_generation_prompt"}
        now = dt.datetime.fromisoformat(given["clock"]) if "clock" in given else None
        return self.chat(case).start(given["prompt_messages"], tools=given.get("tools"), now=now, **options)

    def session_two_turns(self, case, given, expected) -> None:
        first, *later = given["turns"]
        trajectory = self.chat(case).start(first["new_messages"])
        trajectory.act(first["completion_ids"])
        for turn in later:
            trajectory = trajectory.observe(turn["new_messages"])
            trajectory.act(turn["completion_ids"])
        assert trajectory.token_ids.tolist() == expected["ids"]
        assert trajectory.sampled_mask.astype(int).tolist() == expected["sampled_mask"]
        assert expected["ids"].count(expected["ids"][0]) == expected["bos_count"]

    def render(self, case, given, expected) -> tt.Rendered:
        messages = given["messages"]
        if any("decodes an OpenAI-style argument string" in text for text in expected.get("property", [])):
            messages = [decoded(message) for message in messages]
        rendered = self.chat(case).render(messages, tools=given.get("tools"), **given.get("kwargs", {}))
        if "text" in expected:
            assert rendered.text == expected["text"]
        if "ids" in expected:
            assert rendered.token_ids.tolist() == expected["ids"]
        if "bos_count" in expected:
            assert rendered.token_ids.tolist().count(int(rendered.token_ids[0])) == expected["bos_count"]
        return rendered

    tokenize = render

    def sft_mask(self, case, given, expected) -> None:
        if "parity_ids" in expected:
            self.straddled(case, given, expected)
            return
        rendered = self.render(case, given, expected)
        assert rendered.assistant_mask.astype(int).tolist() == expected["sampled_mask"]
        if "trained_text" in expected:
            trained = rendered.token_ids[rendered.assistant_mask]
            assert self.chat(case).decode(trained) == expected["trained_text"]

    sft_mask_from_generation_tags = sft_mask

    def straddled(self, case, given, expected) -> None:
        parity = self.chat(case).render(given["messages"])
        assert parity.token_ids.tolist() == expected["parity_ids"]
        assert parity.seams
        rollout = self.chat(case).render(given["messages"], seams="rollout")
        assert rollout.token_ids.tolist() == expected["rollout_ids"]
        assert rollout.assistant_mask.astype(int).tolist() == expected["rollout_sampled_mask"]

    def render_sanitized(self, case, given, expected) -> None:
        kwargs = given.get("kwargs", {})
        guarded = self.chat(case).render(given["messages"], control_tokens="template", **kwargs)
        assert guarded.token_ids.tolist() == expected["ids"]
        parity = self.chat(case).render(given["messages"], **kwargs)
        assert parity.token_ids.tolist() == expected["parity_ids"]

    def render_from_arrow(self, case, given, expected) -> None:
        tools = [without_padding(tool) for tool in given["tools"]]
        rendered = self.chat(case).render(given["messages"], tools=tools)
        assert rendered.text == expected["text"]
        assert rendered.token_ids.tolist() == expected["ids"]

    def ingest_turn(self, case, given, expected) -> None:
        trajectory = tt.Trajectory.from_prompt(given["prompt_ids"])
        logprobs = given.get("completion_logprobs")
        if "topk_logprobs" in given:
            logprobs = [
                dict(map(tuple, top))[token]
                for token, top in zip(given["completion_ids"], given["topk_logprobs"], strict=True)
            ]
        trajectory.act(given["completion_ids"], logprobs, finish_reason=given.get("finish_reason", "stop"))
        if "append_eos_id" in given:
            trajectory.append([given["append_eos_id"]])
        assert trajectory.token_ids.tolist() == expected["ids"]
        assert trajectory.loss_mask.astype(int).tolist() == expected["loss_mask"]
        assert known_logprobs(trajectory) == nearly(expected["logprobs"])

    def ingest_turns(self, case, given, expected) -> None:
        records = [
            {"prompt_token_ids": turn["prompt_ids"], "token_ids": turn["completion_ids"]} for turn in given["turns"]
        ]
        merged = tt.merge(records)
        assert len(merged) == expected["n_samples"]
        for trajectory, sample in zip(merged, expected.get("samples", []), strict=False):
            assert trajectory.token_ids.tolist() == sample["ids"]
            assert trajectory.sampled_mask.astype(int).tolist() == sample["sampled_mask"]
            if "loss_mask" in sample:
                assert trajectory.loss_mask.astype(int).tolist() == sample["loss_mask"]
        if "common_prefix_len" in expected:
            assert merged[1].fork_at == expected["common_prefix_len"]
            last = given["turns"][-1]
            assert merged[-1].token_ids.tolist() == last["prompt_ids"] + last["completion_ids"]

    def ingest_chunks(self, case, given, expected) -> None:
        trajectory = tt.Trajectory.from_prompt(given["prompt_ids"])
        left = []
        for index, chunk in enumerate(given["chunks"]):
            options = {"finish_reason": chunk["finish_reason"], "policy_version": chunk["weight_version"]}
            trajectory.act(chunk["completion_ids"], chunk["logprobs"], continues=index > 0, **options)
            left.append(trajectory.remaining(len(given["prompt_ids"]) + given["max_response"]))
        assert left == expected["remaining_budget_after_chunks"]
        assert trajectory.token_ids.tolist() == expected["ids"]
        assert len(trajectory.turns) == expected["n_turns"]
        assert known_logprobs(trajectory) == nearly(expected["logprobs"])
        assert versions(trajectory) == expected["weight_version"]

    def advantage(self, case, given, expected) -> None:
        if "samples" in given:
            group = rollouts(given["samples"])
            for how, options, name in (
                ("dr_grpo", {}, "mean_only"),
                ("grpo", {}, "mean_std_ddof1"),
                ("grpo", {"ddof": 0}, "mean_std_ddof0"),
            ):
                table = tt.Batch.from_groups([group.with_advantages(how, **options)])
                found = [float(row.advantages[-1]) for row in table.rows()]
                assert found == nearly(expected[name])
            return
        for part, values in zip(given["cases"], expected["advantages"], strict=True):
            group = rollouts(
                [{"rollout": str(index), "reward": reward} for index, reward in enumerate(part["rewards"])]
            )
            group = group.with_advantages("grpo")
            assert group.advantages.tolist() == values
            assert group.zero_variance

    def pack(self, case, given, expected) -> None:
        if "cases" in given:
            self.awkward(given, expected)
            return
        batch = table(given["sequences"])
        ranks = given.get("world_size", 1)
        align = {"align": given["budget"], "pad_token_id": given["pad_id"]} if given.get("pad_to_budget") else {}
        packing = tt.pack(batch, token_budget=given["budget"], ranks=ranks, **align)
        bins = list(packing) if ranks == 1 else [packed for rank in range(ranks) for packed in packing.rank(rank)]
        if ranks > 1:
            assert len(bins) == expected["n_bins"]
            assert sum(int(packed.loss_mask.sum()) for packed in bins) == expected["total_loss_tokens"]
            return
        self.one_bin(bins, given, expected)

    def one_bin(self, bins, given, expected) -> None:
        (packed,) = bins
        order = np.concatenate([np.arange(start, end) for start, end in segments(packed)])
        for name in ("input_ids", "position_ids", "loss_mask"):
            if name in expected:
                assert getattr(packed, name)[order].tolist() == expected[name], name
        if "cu_seqlens" in expected:
            assert np.cumsum([0, *(end - start for start, end in segments(packed))]).tolist() == expected["cu_seqlens"]
            assert packed.max_seqlen == expected["max_seqlen"]
        if "targets_shifted" in expected or "shifted_targets" in expected:
            targets = expected.get("targets_shifted") or expected["shifted_targets"]
            trained = expected.get("shifted_loss_mask", [1] * len(targets))
            wanted = [target if loss else -100 for target, loss in zip(targets, trained, strict=True)]
            assert labels.shifted(packed)[order].tolist() == wanted
        if "logprobs_for_token_i" in expected:
            known = [
                value if sampled else None
                for value, sampled in zip(packed.logprobs[order].tolist(), packed.sampled_mask[order], strict=True)
            ]
            assert known == nearly(expected["logprobs_for_token_i"])

    def awkward(self, given, expected) -> None:
        for part, bins in zip(given["cases"], expected["n_bins"], strict=True):
            rows = [
                {"ids": list(range(length)), "sampled_mask": [0] * bool(length) + [1] * (length - 1)}
                for length in part["lengths"]
            ]
            for row in rows:
                row["loss_mask"] = [1] * len(row["ids"])
            packing = tt.pack(table(rows), token_budget=part["budget"])
            assert len(packing) == bins
            packed = sum(len(packed) for packed in packing)
            left_out = sum(part["lengths"][row.row] for row in packing.report.left_out)
            assert packed + left_out == sum(part["lengths"])

    def truncate(self, case, given, expected) -> None:
        row = {name: given[name] for name in ("ids", "loss_mask", "logprobs", "advantages") if name in given}
        if given["side"] == "left":
            kept = {name: column[-given["max_len"] :] for name, column in row.items()}
            (packed,) = tt.pack(table([kept]), token_budget=given["max_len"])
            assert packed.input_ids.tolist() == expected["ids"]
            assert packed.position_ids.tolist() == expected["position_ids"]
            assert packed.loss_mask.tolist() == expected["loss_mask"]
            return
        found = []
        for overlong in ("truncate", "truncate_turn"):
            (packed,) = tt.pack(table([row]), token_budget=given["max_len"], overlong=overlong)
            found.append({"ids": packed.input_ids.tolist(), "loss_mask": packed.loss_mask.tolist()})
        assert all(result in expected["one_of"] for result in found), found

    def truncate_batch(self, case, given, expected) -> None:
        packing = tt.pack(table(given["rows"]), token_budget=given["max_len"], overlong="truncate")
        kept = sorted(row for index in range(len(packing)) for row in packing.rows_of(index))
        assert kept == expected["kept_rows"]
        assert len(packing.report.left_out) == expected["dropped"]

    def pad_batch(self, case, given, expected) -> None:
        padded = padded_arrays(table(given["rows"]), given["pad_id"], given["side"], 1)
        padded["labels"] = np.where(padded["loss_mask"], padded["input_ids"], -100)
        for name in ("input_ids", "attention_mask", "labels"):
            assert padded[name].astype(int).tolist() == expected[name], name

    def pack_from_arrow_slice(self, case, given, expected) -> None:
        rows = [{"ids": ids, "loss_mask": [0, 1]} for ids in given["column"]]
        sliced = table(rows).to_pyarrow().slice(given["slice_offset"], given["slice_length"])
        packing = tt.pack(tt.Batch.from_arrow(sliced), token_budget=given["budget"])
        assert sorted(packed.input_ids.tolist() for packed in packing) == sorted(expected["bins"])

    def export(self, case, given, expected) -> None:
        rows = [{"ids": ids, "loss_mask": [0] * (len(ids) - 1) + [1]} for ids in given["sequences"]]
        (packed,) = tt.pack(table(rows), token_budget=16)
        view = packed.input_ids
        assert (view.dtype, view.flags.writeable, packed.loss_mask.dtype) == (np.int32, False, np.uint8)
        assert view.__array_interface__["data"] == packed.input_ids.__array_interface__["data"]
        before = view.tolist()
        del packed
        assert view.tolist() == before

    def stats(self, case, given, expected) -> None:
        row = {"ids": list(range(len(given["loss_mask"]))), "loss_mask": given["loss_mask"]}
        mask = table([row]).row(0).loss_mask.astype(bool)
        values = np.array(given["per_token_value"])[mask]
        assert (int(mask.sum()), values.sum(), values.mean()) == (
            expected["response_length"],
            expected["masked_sum"],
            expected["masked_mean"],
        )

    def any(self, case, given, expected) -> None:
        if "threads" in given:
            self.concurrent(given)
        else:
            self.pure()

    def pure(self) -> None:
        chat = chat_of("qwen3")
        call = {"type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
        messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
        before = copy.deepcopy(messages)
        chat.render(messages)
        chat.render([*messages, {"role": "assistant", "content": "so"}], continue_final_message=True)
        ids, logprobs = [9707, 151645], [-0.5, -0.25]
        trajectory = chat.start(messages[:1])
        trajectory.act(ids, logprobs)
        trajectory = trajectory.observe([{"role": "user", "content": "more"}])
        ids[0] = 0
        assert messages == before
        assert 9707 in trajectory.token_ids.tolist()

    def concurrent(self, given) -> None:
        chat = chat_of("qwen3")
        texts = [f"chat {index} " * (index % 7 + 1) for index in range(given["iterations"])]
        expected = [chat.render([{"role": "user", "content": text}]).token_ids.tolist() for text in texts]
        with ThreadPoolExecutor(given["threads"]) as pool:
            found = pool.map(lambda text: chat.render([{"role": "user", "content": text}]).token_ids.tolist(), texts)
            assert list(found) == expected


@functools.cache
def chat(tokenizer: str, source: str) -> tt.Chat:
    """A chat of a corpus tokenizer, with the special tokens and stop of its configuration."""
    folder = corpus.tokenizer_folder(tokenizer)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    text = {
        name: config[name]["content"] if isinstance(config[name], dict) else config[name]
        for name in SPECIAL
        if config.get(name)
    }
    return tt.Chat((folder / "tokenizer.json").read_bytes(), source, special_tokens=text)


def chat_of(tokenizer: str) -> tt.Chat:
    """A chat of a corpus tokenizer with its own template."""
    with (corpus.tokenizer_folder(tokenizer) / "chat_template.jinja").open(newline="") as file:
        return chat(tokenizer, file.read())


def calls_of(given: dict[str, Any]) -> dict[str, Any]:
    """The message that a sampled call stands for: every tool with the numbers of the question."""
    function = given["tools"][0]["function"]
    numbers = [int(digit) for digit in given["prompt_messages"][-1]["content"] if digit.isdigit()]
    arguments = dict(zip(function["parameters"]["properties"], numbers, strict=False))
    call = {"type": "function", "function": {"name": function["name"], "arguments": arguments}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def decoded(message: dict[str, Any]) -> dict[str, Any]:
    """A message whose tool calls have their arguments as a dict, for templates that would encode a string again."""
    message = copy.deepcopy(message)
    for call in message.get("tool_calls", []):
        if isinstance(call["function"]["arguments"], str):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return message


def without_padding(schema: Any) -> Any:
    """A tool schema without the keys that an Arrow struct column filled with null; a default keeps its null."""
    if isinstance(schema, dict):
        return {key: without_padding(value) for key, value in schema.items() if value is not None or key == "default"}
    return [without_padding(value) for value in schema] if isinstance(schema, list) else schema


def table(sequences: list[dict[str, Any]]) -> tt.Batch:
    """Rows of the contract from the columns of a case."""
    rows = []
    for sequence in sequences:
        ids = sequence["ids"]
        sampled = sequence.get("sampled_mask", sequence.get("loss_mask"))
        row = {"token_ids": ids, "sampled_mask": sampled, "loss_mask": sequence.get("loss_mask", sampled)}
        for name in ("logprobs", "advantages"):
            if name in sequence:
                row[name] = [value or 0.0 for value in sequence[name]]
        rows.append(row | {"turns": turns_of(sampled)})
    return tt.Batch.from_rows(rows)


def turns_of(sampled: list[int]) -> list[dict[str, Any]]:
    """The runs of sampled tokens as turns."""
    edges = np.flatnonzero(np.diff([0, *sampled, 0]))
    pairs = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    return [
        {"start": start, "end": end, "message": -1, "finish_reason": "stop", "reward": None} for start, end in pairs
    ]


def rollouts(samples: list[dict[str, Any]]) -> tt.Group:
    """A group of one-turn trajectories, several of which may be of one rollout."""
    first: dict[str, tt.Trajectory] = {}
    played = []
    for sample in samples:
        trajectory = tt.Trajectory.from_prompt([1, 2], rollout=first.get(sample["rollout"]))
        first.setdefault(sample["rollout"], trajectory)
        trajectory.act([3])
        trajectory.reward = sample["reward"]
        played.append(trajectory)
    return tt.Group(played)


def segments(packed: tt.PackedBatch) -> list[tuple[int, int]]:
    """Where the segments stand, in the order of their rows, padding last."""
    ends = packed.cu_seqlens.tolist()
    places = zip(packed.row.tolist(), ends[:-1], ends[1:], strict=True)
    return [(start, end) for row, start, end in sorted(places, key=lambda place: (place[0] < 0, place[0]))]


def known_logprobs(trajectory: tt.Trajectory) -> list[float | None]:
    """The logprobs with None where nothing was sampled."""
    pairs = zip(trajectory.logprobs.tolist(), trajectory.sampled_mask, strict=True)
    return [value if sampled else None for value, sampled in pairs]


def versions(trajectory: tt.Trajectory) -> list[int | None]:
    """The policy version of each token, as the row of the trajectory says."""
    trajectory.reward = 0.0
    row = tt.Batch.from_groups([tt.Group([trajectory])]).to_pyarrow().to_pylist()[0]
    found: list[int | None] = [None] * len(trajectory)
    for run in row["policy_versions"]:
        found[run["start"] : run["end"]] = [run["version"]] * (run["end"] - run["start"])
    return found


class nearly:  # noqa: N801  (reads as a function)
    """Equal to a list of numbers and Nones, to the precision of float32."""

    def __init__(self, values: list[float | None]) -> None:
        self.values = values

    def __eq__(self, other: object) -> bool:
        pairs = zip(self.values, other, strict=True)
        return all(two is None if one is None else two is not None and abs(one - two) < 1e-6 for one, two in pairs)

    __hash__ = None
