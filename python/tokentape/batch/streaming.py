"""Packing of more rows than memory holds: window by window, in constant memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokentape.batch.packing import Packing, pack
from tokentape.batch.table import Batch
from tokentape.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["pack_stream"]

#: Bins less full than this are planned again with the rows of the next window.
FULL = 0.97


def pack_stream(
    batches: Iterable[Batch], *, token_budget: int, window: int = 256, ranks: int = 1, **options: Any
) -> Iterator[Packing]:
    """Packs batches as they arrive: one `Packing` for each window of rows.

    Memory holds the rows of one window. Rows of bins that are not full wait for the next window, so that no bin but
    those of the last window is emptier than it has to be. Rows keep their order of windows, each is packed once, or
    named in the report of its window; rows are counted inside their window.

    A run of uncompressed Arrow files needs no stream: `pack(Batch.read(path, validate=False), ...)` maps it, plans
    from the lengths, and reads rows when their bin is filled.

    Args:
        batches: For example `Batch.stream(path)`, or what an environment gives.
        token_budget: As of `pack`.
        window: The bins that a window fills, for each rank.
        ranks: As of `pack`.
        **options: What else `pack` takes, but `work` by row.

    Example:
        >>> import tokentape as tt
        >>> batches = (tt.Batch.from_rows([{"token_ids": range(4), "sampled_mask": [1] * 4}] * 3) for _ in range(4))
        >>> [len(packing) for packing in tt.pack_stream(batches, token_budget=8, window=2)]
        [3, 3]
    """
    if window < 1 or ranks < 1 or token_budget < 1:
        raise ArgumentError(f"window={window}, ranks={ranks} and token_budget={token_budget} must be at least 1")
    options |= {"token_budget": token_budget, "ranks": ranks}
    enough = window * ranks * token_budget
    return _windows(batches, enough, options)


def _windows(batches: Iterable[Batch], enough: int, options: dict[str, Any]) -> Iterator[Packing]:
    waiting: list[Batch] = []
    tokens = 0
    for batch in batches:
        waiting.append(batch)
        tokens += batch.tokens
        if tokens >= enough:
            packing, rest = _window(Batch.concat(waiting), options)
            yield packing
            waiting, tokens = [rest], rest.tokens
    last = Batch.concat(waiting)
    if len(last):
        yield pack(last, **options)


def _window(batch: Batch, options: dict[str, Any]) -> tuple[Packing, Batch]:
    """The packing of the rows of full bins, and the other rows, copied out of the window."""
    packing = pack(batch, **options)
    lengths = packing.bin_tokens
    emptiest = np.argsort(lengths, kind="stable")[: len(packing) // 4]  # a window always packs most of its rows
    open_bins = [int(index) for index in emptiest if lengths[index] < FULL * options["token_budget"]]
    later = {row for index in open_bins for row in packing.rows_of(index)}
    if not later:
        return packing, batch.take([])
    keep = np.ones(len(batch), bool)
    keep[list(later)] = False
    return pack(batch.filter(keep), **options), batch.filter(~keep)
