"""Atropos: groups as `ScoredDataGroup` dicts, out and in.

The format marks untrained tokens inside the data: a mask is -100 or the token's own id, a logprob is 1.0 where the mask
is -100. Both sentinels are written and read here and nowhere else.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from tokentape.batch import Batch
from tokentape.errors import SchemaError
from tokentape.feeds.labels import IGNORED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tokentape.batch import Row

__all__ = ["from_atropos", "to_atropos"]

_NO_LOGPROB = 1.0
_PER_TOKEN = ("masks", "advantages", "ref_logprobs", "inference_logprobs")


def to_atropos(batch: Batch) -> list[dict[str, Any]]:
    """One `ScoredDataGroup` for each group of the batch, in order of first appearance, with lists as JSON needs them.

    `tokens`, `masks` (the id where the loss mask is 1, -100 elsewhere, unshifted), `scores` (the rewards),
    `messages`, and where the rows have them `inference_logprobs` (1.0 where the mask is -100) and `advantages` (per
    token, 0.0 where the mask is -100).

    Raises:
        SchemaError: A row has no reward, or only some rows of a group have logprobs or advantages.

    Example:
        >>> import tokentape as tt
        >>> row = {"token_ids": [5, 6], "sampled_mask": [0, 1], "logprobs": [0.0, -0.5], "reward": 1.0}
        >>> (group,) = to_atropos(tt.Batch.from_rows([row]))
        >>> group["masks"], group["inference_logprobs"], group["scores"]
        ([[-100, 6]], [[1.0, -0.5]], [1.0])
    """
    groups: dict[str, list[Row]] = {}
    for row in batch.rows():
        groups.setdefault(row.group_id, []).append(row)
    return [_group(rows) for rows in groups.values()]


def _group(rows: list[Row]) -> dict[str, Any]:
    for row in rows:
        if row.reward is None:
            raise SchemaError(f"row {row.index} (trajectory {row.trajectory_id!r}) has no reward, which is its score")
    trained = [row.loss_mask.astype(bool) for row in rows]
    pairs = list(zip(rows, trained, strict=True))
    group: dict[str, Any] = {
        "tokens": [row.token_ids.tolist() for row in rows],
        "masks": [np.where(mask, row.token_ids, IGNORED).tolist() for row, mask in pairs],
        "scores": [row.reward for row in rows],
        "messages": [row.messages for row in rows],
    }
    if _all_or_none(rows, "logprobs"):
        known = [mask & row.sampled_mask.astype(bool) for row, mask in pairs]
        group["inference_logprobs"] = [
            np.where(mask, row.logprobs, _NO_LOGPROB).tolist() for row, mask in zip(rows, known, strict=True)
        ]
    if _all_or_none(rows, "advantages"):
        group["advantages"] = [np.where(mask, row.advantages, 0.0).tolist() for row, mask in pairs]
    return group


def _all_or_none(rows: list[Row], name: str) -> bool:
    lacking = [row for row in rows if getattr(row, name) is None]
    if lacking and len(lacking) < len(rows):
        raise SchemaError(f"row {lacking[0].index} has no {name} while other rows of its group have them")
    return not lacking


def from_atropos(groups: Iterable[Mapping[str, Any]]) -> Batch:
    """Rows from `ScoredDataGroup` dicts: the group on ids, masks, scores and the logprobs of trained tokens.

    A token counts as sampled where its mask is not -100; a logprob of 1.0 there is no logprob and is refused.

    Raises:
        SchemaError: Lengths differ, a mask is neither -100 nor the token's id, or a trained token has no logprob; the
            message names group, row and token.

    Example:
        >>> group = {"tokens": [[5, 6]], "masks": [[-100, 6]], "scores": [1.0]}
        >>> from_atropos([group]).row(0).loss_mask.tolist()
        [0, 1]
    """
    return Batch.from_rows(row for number, group in enumerate(groups) for row in _rows(number, group))


def _rows(number: int, group: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    count = len(group["tokens"])
    for name in ("masks", "scores", *_PER_TOKEN, "messages"):
        if group.get(name) is not None and len(group[name]) != count:
            raise SchemaError(f"group {number}: `{name}` has {len(group[name])} entries, `tokens` has {count}")
    for index in range(count):
        yield _row(f"group {number}, row {index}", f"atropos-{number}", index, group)


def _row(place: str, group_id: str, index: int, group: Mapping[str, Any]) -> dict[str, Any]:
    tokens = np.asarray(group["tokens"][index])
    columns = {name: np.asarray(group[name][index]) for name in _PER_TOKEN if group.get(name) is not None}
    for name, values in columns.items():
        if len(values) != len(tokens):
            raise SchemaError(f"{place}: `{name}` has {len(values)} values, `tokens` has {len(tokens)}")
    masks, logprobs = columns["masks"], columns.get("inference_logprobs")
    trained = masks != IGNORED
    _refuse(f"{place}: the mask is neither {IGNORED} nor the token's id", trained & (masks != tokens))
    if logprobs is not None:
        _refuse(f"{place}: a trained token has no logprob, or one above zero", trained & (logprobs > 0))
        logprobs = np.where(trained, logprobs, 0.0)
    messages = group.get("messages")
    return {
        "group_id": group_id,
        "rollout_id": f"{group_id}-{index}",
        "trajectory_id": f"{group_id}-{index}",
        "token_ids": tokens,
        "sampled_mask": trained,
        "logprobs": logprobs,
        "advantages": columns.get("advantages"),
        "reward": float(group["scores"][index]),
        "messages": json.dumps(messages[index] if messages is not None else []),
    }


def _refuse(message: str, wrong: np.ndarray[Any, Any]) -> None:
    if wrong.any():
        raise SchemaError(f"{message}, at token {int(np.argmax(wrong))}")
