"""The distribution that a sampler draws from, worked out from the model's own."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tokentape.types import Sampling

__all__ = ["sampled_logprob"]


def sampled_logprob(logprobs: Mapping[int, float], token: int, sampling: Sampling) -> float:
    """The logprob of a token after temperature, top_k and top_p, in this order.

    Args:
        logprobs: The model's own logprobs at temperature 1, in nats, by token id: of the whole vocabulary.
        token: A token that was sampled, and so is never cut.
        sampling: Temperature and cuts.

    Example:
        >>> round(sampled_logprob({7: math.log(0.6), 8: math.log(0.3), 9: math.log(0.1)}, 8, Sampling(top_k=2)), 4)
        -1.0986
    """
    if sampling.temperature == 0:
        return 0.0
    values = np.sort(np.fromiter(logprobs.values(), np.float64))[::-1] / sampling.temperature
    if sampling.top_k:
        values = values[: sampling.top_k]
    weights = np.exp(values - values[0])
    before = np.concatenate([[0.0], np.cumsum(weights)[:-1]]) / weights.sum()
    kept = weights[before < sampling.top_p] if sampling.top_p < 1 else weights
    own = logprobs[token] / sampling.temperature - values[0]
    return min(float(own) - math.log(kept.sum()), 0.0)
