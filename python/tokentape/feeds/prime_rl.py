"""prime-rl: a packed batch as the fields of a `MicroBatch`, whose lists go to the trainer by msgpack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokentape.errors import SchemaError

if TYPE_CHECKING:
    from tokentape.batch import PackedBatch

__all__ = ["to_prime_rl"]


def to_prime_rl(packed: PackedBatch, *, temperature: float, env: str = "") -> dict[str, Any]:
    """The fields of a `MicroBatch`, as lists: it has one value a token, also where one would do for all.

    `input_ids`, `loss_mask` (bool), `advantages`, `inference_logprobs` (0.0 where not sampled), `position_ids`,
    `temperatures`, `env_names`, and `seq_lens`. Nothing is shifted.

    Args:
        packed: One bin.
        temperature: With which the policy sampled.
        env: The environment's name.

    Raises:
        SchemaError: The packing has no advantages or no logprobs, or shares prefixes.

    Example:
        >>> import tokentape as tt
        >>> row = {"token_ids": [1, 2], "sampled_mask": [0, 1], "logprobs": [0.0, -0.5], "advantages": [0.0, 1.0]}
        >>> batch = to_prime_rl(next(iter(tt.pack(tt.Batch.from_rows([row]), token_budget=8))), temperature=1.0)
        >>> batch["loss_mask"], batch["inference_logprobs"], batch["seq_lens"]
        ([False, True], [0.0, -0.5], [2])
    """
    if packed.advantages is None or packed.logprobs is None:
        raise SchemaError("a MicroBatch of prime-rl needs advantages and logprobs: assign them before packing")
    if packed.parent is not None:
        raise SchemaError("prime-rl reads whole rows: pack with share_prefixes=False")
    return {
        "input_ids": packed.input_ids.tolist(),
        "loss_mask": packed.loss_mask.astype(bool).tolist(),
        "advantages": packed.advantages.tolist(),
        "inference_logprobs": packed.logprobs.tolist(),
        "position_ids": packed.position_ids.tolist(),
        "temperatures": [temperature] * len(packed),
        "env_names": [env] * len(packed),
        "seq_lens": packed.seq_lens.tolist(),
    }
