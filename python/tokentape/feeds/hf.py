"""Hugging Face: what `DataCollatorWithFlattening` gives a model, from a packed batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokentape.feeds.torch import to_torch

if TYPE_CHECKING:
    from tokentape.batch import PackedBatch

__all__ = ["to_hf_flattening"]


def to_hf_flattening(packed: PackedBatch, *, device: Any = None) -> dict[str, Any]:
    """The keyword arguments of a transformers model for one packed batch, as `DataCollatorWithFlattening` names them.

    Equal to `DataCollatorWithFlattening(return_flash_attn_kwargs=True, return_seq_idx=True)` over the same rows with
    labels. Labels are aligned to the token itself: the models of transformers shift inside.

    Call the model with `use_cache=False`: with a cache, attention other than flash attention looks across segments.

    Args:
        packed: One bin.
        device: Where the tensors go; None leaves them on the CPU.

    Returns:
        Tensors of torch: `input_ids`, `labels`, `position_ids` (int64) and `seq_idx` (int32) of shape (1, tokens),
        `cu_seq_lens_q`, `cu_seq_lens_k` (int32); and `max_length_q`, `max_length_k` (int). No attention mask.

    Example:
        >>> import tokentape as tt
        >>> batch = tt.Batch.from_rows([{"token_ids": [7, 8, 9], "sampled_mask": [0, 1, 1]}])
        >>> to_hf_flattening(next(iter(tt.pack(batch, token_budget=8))))["labels"].tolist()
        [[-100, 8, 9]]
    """
    tensors = to_torch(packed, device=device, with_labels=True)
    return {
        "input_ids": tensors["input_ids"].long()[None],
        "labels": tensors["labels"][None],
        "position_ids": tensors["position_ids"].long()[None],
        "seq_idx": tensors["segment_ids"][None],
        "cu_seq_lens_q": tensors["cu_seqlens"],
        "cu_seq_lens_k": tensors["cu_seqlens"],
        "max_length_q": tensors["max_seqlen"],
        "max_length_k": tensors["max_seqlen"],
    }
