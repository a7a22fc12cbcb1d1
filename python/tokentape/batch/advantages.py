"""Arguments of `Batch.with_advantages`, as the engine takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokentape.errors import ArgumentError

if TYPE_CHECKING:
    from tokentape import _core

__all__ = ["with_advantages"]


def with_advantages(
    table: _core.Table, how: Any, *, rewards: Any, values: Any, discount: float, trace: float
) -> _core.Table:
    """The table with new advantages.

    Raises:
        ArgumentError: "gae" without values.
    """
    if isinstance(how, str) and how == "gae" and values is None:
        raise ArgumentError('how="gae" needs values=, one per token: without a critic use how="reinforce_pp"')
    return table.with_advantages(
        _floats(how), rewards=_floats(rewards), values=_floats(values), discount=discount, trace=trace
    )


def _floats(given: Any) -> Any:
    """An array of float32; names and None stay."""
    return given if given is None or isinstance(given, str) else np.ascontiguousarray(given, dtype=np.float32)
