"""An independent reader and packer in plain Python: slow, readable, and sharing no code with the package.

It rebuilds from rows (dicts of lists, as `pyarrow.Table.to_pylist` gives them) what packed batches have to be. Masks,
positions and boundaries come from the definitions alone.
"""

from __future__ import annotations

PADDING = -1


def best_fit_decreasing(lengths, budget, max_segments=None):
    """Bins as lists of indices, by trying every open bin for every row.

    Longest rows first, equal ones by index; into the bin with the least room that suffices, of equal ones the bin
    that was filled last; a new bin if none has room.
    """
    bins = []
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    for time, row in enumerate(order):
        open_bins = [
            packed
            for packed in bins
            if packed["room"] >= lengths[row] and (max_segments is None or len(packed["rows"]) < max_segments)
        ]
        if open_bins:
            chosen = min(open_bins, key=lambda packed: (packed["room"], -packed["touched"]))
        else:
            chosen = {"room": budget, "rows": []}
            bins.append(chosen)
        chosen["room"] -= lengths[row]
        chosen["rows"].append(row)
        chosen["touched"] = time
    return [packed["rows"] for packed in bins]


def kept_length(row, budget, overlong):
    """How many tokens of a row are packed, or why none are: "empty", "no_loss", "overlong"."""
    length = len(row["token_ids"])
    if length == 0:
        return "empty"
    if length > budget:
        if overlong == "error":
            raise OverflowError(row["trajectory_id"])
        if overlong == "drop":
            return "overlong"
        if overlong == "truncate":
            length = budget
        if overlong == "truncate_turn":
            ends = [turn["end"] for turn in row["turns"] if turn["end"] <= budget]
            if not ends:
                return "overlong"
            length = ends[-1]
    return length if any(row["loss_mask"][1:length]) else "no_loss"


def pack(rows, budget, *, overlong="error", align=1, pad_token_id=0, max_segments=None):
    """Packed batches as dicts of lists, and the rows left out as (row, reason)."""
    budget = budget // align * align
    fates = [kept_length(row, budget, overlong) for row in rows]
    left_out = [(index, fate) for index, fate in enumerate(fates) if isinstance(fate, str)]
    kept = [(index, fate) for index, fate in enumerate(fates) if not isinstance(fate, str)]
    present = {
        name: any(rows[index][name] is not None for index, _ in kept)
        for name in ("loss_weight", "logprobs", "advantages", "policy_versions")
    }
    packed = []
    for step, chosen in enumerate(best_fit_decreasing([length for _, length in kept], budget, max_segments)):
        segments = [segment(rows[kept[place][0]], kept[place][1], present) for place in chosen]
        indices = [kept[place][0] for place in chosen]
        total = sum(len(part["input_ids"]) for part in segments)
        if total % align:
            segments.append(padding(align - total % align, pad_token_id, present))
            indices.append(PADDING)
        packed.append(join(segments, indices) | {"rank": 0, "micro_step": step})
    return packed, left_out


def segment(row, length, present):
    """The first `length` tokens of a row, as they stand in a packed batch."""
    loss = [0, *row["loss_mask"][1:length]]
    part = {
        "input_ids": row["token_ids"][:length],
        "position_ids": list(range(length)),
        "sampled_mask": row["sampled_mask"][:length],
        "loss_mask": loss,
    }
    if present["loss_weight"]:
        weights = row["loss_weight"]
        part["loss_weight"] = [float(x) for x in loss] if weights is None else [0.0, *weights[1:length]]
    if present["logprobs"]:
        part["logprobs"] = [0.0] * length if row["logprobs"] is None else row["logprobs"][:length]
    if present["advantages"]:
        part["advantages"] = row["advantages"][:length]
    if present["policy_versions"]:
        runs = row["policy_versions"] or []
        part["policy_version"] = [
            next((run["version"] for run in runs if run["start"] <= token < run["end"]), -1) for token in range(length)
        ]
    return part


def padding(length, pad_token_id, present):
    """A segment of padding: no loss, positions of its own."""
    part = {
        "input_ids": [pad_token_id] * length,
        "position_ids": list(range(length)),
        "sampled_mask": [0] * length,
        "loss_mask": [0] * length,
    }
    part |= {name: [0.0] * length for name in ("loss_weight", "logprobs", "advantages") if present[name]}
    return part | ({"policy_version": [-1] * length} if present["policy_versions"] else {})


def join(segments, indices):
    """Segments side by side, with their boundaries."""
    lengths = [len(part["input_ids"]) for part in segments]
    joined = {name: [value for part in segments for value in part[name]] for name in segments[0]}
    numbers = [PADDING if row == PADDING else number for number, row in enumerate(indices)]
    return joined | {
        "segment_ids": [number for number, length in zip(numbers, lengths, strict=True) for _ in range(length)],
        "cu_seqlens": [sum(lengths[:end]) for end in range(len(lengths) + 1)],
        "seq_lens": lengths,
        "row": indices,
        "offset": [0] * len(lengths),
    }


def sampled_mask(prompt, turns, observed):
    """The mask of a trajectory from its parts: a prompt, then turns of sampled ids, each followed by observed ids."""
    mask = [0] * len(prompt)
    for sampled, tail in zip(turns, observed, strict=True):
        mask += [1] * len(sampled) + [0] * len(tail)
    return mask
