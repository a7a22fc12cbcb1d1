"""Packing: rows of a `Batch` side by side in bins of a fixed token budget, for trainers that attend by segment.

*Invariant*: every token of every row is packed exactly once, or the row is named in the report; no bin exceeds the
budget; positions restart at each segment; a segment's first token carries no loss; `cu_seqlens[-1] == len(input_ids)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from tokentape import _core
from tokentape.batch.files import pyarrow
from tokentape.batch.packed import PackedBatch
from tokentape.batch.report import report
from tokentape.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from tokentape.batch.table import Batch

__all__ = ["Packing", "pack"]

#: The coefficients of a token and of a token squared: attention as in a transformer of width 4096, where a layer costs
#: `24 * width**2 * length + 4 * width * length**2` operations.
WORK = {"tokens": (1.0, 0.0), "attention": (24_576.0, 1.0)}

#: What the engine calls the values of `share_prefixes`.
SHARING = {False: None, True: "whole", "single_next": "single_next", "prompt": "prompt"}


def pack(
    batch: Batch,
    *,
    token_budget: int,
    ranks: int = 1,
    share_prefixes: bool | Literal["single_next", "prompt"] = False,
    overlong: Literal["error", "drop", "truncate", "truncate_turn"] = "error",
    align: int | None = None,
    pad_token_id: int | None = None,
    max_segments: int | None = None,
    work: Literal["attention", "tokens"] | tuple[float, float] | ArrayLike = "attention",
) -> Packing:
    """Plans how the rows of `batch` share bins; bins are filled while you iterate.

    Best-fit decreasing: longest rows first, each into the fullest bin with room. The same input gives the same plan.

    Args:
        batch: The rows.
        token_budget: The tokens of a bin, at most; any number, not only a power of two.
        ranks: Workers that run at the same time. Each gets the same number of micro-steps, and in each micro-step
            their bins cost nearly the same.
        share_prefixes: Rows that begin alike hold their common tokens once: a bin is a forest of prefix trees, and the
            budget counts distinct tokens. The packed columns `parent`, `segment_parent`, `leaf_row` and `leaf_segment`
            describe it; `position_ids` is the place in the row. A token that several rows train carries the sum of
            their weights and the mean of their advantages by weight, and the logprob of the first of them.
            "single_next" shares one token less at each branch, so that every token has one next token, as layouts with
            one label a position need it. "prompt" shares, among rows with one prompt, the prompt less its last token:
            trees of two levels in which no sampled token is shared, so that clipped objectives are exact, too.
        overlong: What happens to a row above the budget: "error", "drop", "truncate" (the first tokens of all columns
            stay) or "truncate_turn" (back to the end of the last turn that fits).
        align: The length of a bin becomes a multiple of this, by one padding segment at its end.
        pad_token_id: The id of padding; needed with `align`.
        max_segments: The rows of a bin, at most.
        work: What a row costs: "attention", "tokens", the two coefficients of length and length squared, or one value
            per row of the batch. Used only to balance ranks.

    Returns:
        The packing; `.report` says what was left out, cut and padded.

    Raises:
        BudgetError: A row is longer than the budget and `overlong="error"`.
        ArgumentError: An argument is out of range.
        SchemaError: Some rows have logprobs or advantages and others have none.

    Example:
        >>> import tokentape as tt
        >>> rows = [{"token_ids": range(n), "sampled_mask": [1] * n} for n in (3, 5, 2)]
        >>> packing = tt.pack(tt.Batch.from_rows(rows), token_budget=8)
        >>> [packed.seq_lens.tolist() for packed in packing]
        [[5, 3], [2]]
    """
    if share_prefixes not in SHARING:
        raise ArgumentError(f"share_prefixes={share_prefixes!r} is none of {list(SHARING)}")
    if align is not None and pad_token_id is None:
        raise ArgumentError(f"align={align} needs pad_token_id: the id that fills a bin up")
    options = {
        "token_budget": token_budget,
        "ranks": ranks,
        "overlong": overlong,
        "align": 1 if align is None else align,
        "pad_token_id": 0 if pad_token_id is None else pad_token_id,
        "max_segments": max_segments,
        "work": _work(work),
        "sharing": SHARING[share_prefixes],
    }
    return _packing(batch, options)


def _work(work: Any) -> tuple[float, float] | NDArray[np.float64]:
    if isinstance(work, str):
        if work not in WORK:
            raise ArgumentError(f"work={work!r} is none of {', '.join(map(repr, WORK))}, two numbers, or one a row")
        return WORK[work]
    if isinstance(work, tuple):
        linear, quadratic = cast("tuple[float, float]", work)
        return (float(linear), float(quadratic))
    return np.ascontiguousarray(work, dtype=np.float64)


def _packing(batch: Batch, options: dict[str, Any]) -> Packing:
    try:
        core = _core.pack(batch.core, **options)
    except OverflowError as error:
        raise ArgumentError(f"an argument of pack is negative or above int32: {options}") from error
    return Packing(batch, options, core)


class Packing:
    """A planned packing. Iterate for `PackedBatch`es with one rank, or use `rank(r)`.

    Bins are filled in parallel, some at a time, into buffers that are used again once nobody looks at them any more:
    no array, tensor or Arrow export ever changes after you got it.

    Attributes:
        report: What was packed, left out and cut.
        ranks: The number of ranks.
        micro_steps: The number of bins of each rank.
    """

    def __init__(self, batch: Batch, options: dict[str, Any], core: _core.Packing) -> None:
        self._batch = batch
        self._options = options
        self._core = core
        self.ranks = core.ranks
        self.micro_steps = core.micro_steps
        self.report = report(batch, options["token_budget"], core.report())

    def rank(self, rank: int) -> Iterator[PackedBatch]:
        """The packed batches of one rank, one a micro-step.

        Example:
            >>> import tokentape as tt
            >>> rows = [{"token_ids": range(4), "sampled_mask": [1] * 4}] * 6
            >>> packing = tt.pack(tt.Batch.from_rows(rows), token_budget=8, ranks=2)
            >>> [[packed.micro_step for packed in packing.rank(rank)] for rank in range(2)]
            [[0, 1], [0, 1]]
        """
        if not 0 <= rank < self.ranks:
            raise ArgumentError(f"rank {rank} is out of range: the packing is for {self.ranks} ranks")
        if self.ranks == 1:
            return iter(self)
        return (self[step * self.ranks + rank] for step in range(self.micro_steps))

    def __getitem__(self, index: int) -> PackedBatch:
        """One bin, filled; bin `micro_step * ranks + rank`."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"bin {index} is out of range: the packing has {len(self)}")
        return PackedBatch(self._core.bin(index % len(self)))

    def __iter__(self) -> Iterator[PackedBatch]:
        """All packed batches; with several ranks use `rank`."""
        if self.ranks > 1:
            raise ArgumentError(f"the packing is for {self.ranks} ranks: iterate over packing.rank(r)")
        return self._all()

    def _all(self) -> Iterator[PackedBatch]:
        start = 0
        while start < len(self):
            page = self._core.page(start)[::-1]
            start += len(page)
            while page:
                yield PackedBatch(page.pop())

    def __len__(self) -> int:
        """The number of packed batches of all ranks."""
        return len(self._core)

    @property
    def bin_tokens(self) -> NDArray[np.int32]:
        """The tokens of each bin, padding included, without filling it."""
        return self._core.bin_tokens()

    def rows_of(self, bin: int) -> list[int]:  # noqa: A002  (the word of packing)
        """The rows of the batch that a bin holds, in the order of its segments."""
        return self._core.rows_of(bin)

    def to_pyarrow(self) -> Any:
        """All bins as a table `tokentape.packed`, one row a bin."""
        return pyarrow().table(self)

    def __arrow_c_schema__(self) -> object:
        return self._core.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All bins as a stream; they are filled while it is read."""
        return self._core.__arrow_c_stream__(requested_schema)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the rows and the options: the same plan is made again."""
        return _packing, (self._batch, self._options)

    def __repr__(self) -> str:
        return f"Packing({len(self):,} bins, {self.ranks} ranks, {self.report.tokens:,} tokens)"
