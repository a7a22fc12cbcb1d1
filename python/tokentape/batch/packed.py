"""`PackedBatch`: one bin, as flat numpy views of Arrow buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokentape.errors import SchemaError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tokentape import _core

__all__ = ["PackedBatch"]


class PackedBatch:
    """One bin: rows side by side, as flat read-only numpy views of Arrow buffers.

    Everything is aligned to the token itself; nothing is shifted. With padding, the last segment has the id -1 and
    the row -1.

    Example:
        >>> import tokentape as tt
        >>> rows = [{"token_ids": [7, 8, 9], "sampled_mask": [0, 1, 1]}, {"token_ids": [5, 6], "sampled_mask": [1, 1]}]
        >>> packed = next(iter(tt.pack(tt.Batch.from_rows(rows), token_budget=8)))
        >>> packed.input_ids.tolist(), packed.position_ids.tolist(), packed.cu_seqlens.tolist()
        ([7, 8, 9, 5, 6], [0, 1, 2, 0, 1], [0, 3, 5])
        >>> packed.loss_mask.tolist()
        [0, 1, 1, 0, 1]
    """

    __slots__ = ("core",)

    def __init__(self, core: _core.PackedBatch) -> None:
        self.core = core

    def __arrow_c_schema__(self) -> object:
        return self.core.__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self.core.__arrow_c_array__(requested_schema)

    def __len__(self) -> int:
        """The number of tokens, padding included."""
        return len(self.input_ids)

    def __repr__(self) -> str:
        return f"PackedBatch({len(self):,} tokens, {len(self.seq_lens)} segments)"

    def column(self, name: str) -> _core.Column:
        """A list column for DLPack, without a copy: `torch.from_dlpack(packed.column("input_ids"))`.

        Raises:
            SchemaError: The packing has no such column.
        """
        column = self.core.values(name)
        if column is None:
            raise SchemaError(f"the packed batch has no list column {name!r}")
        return column

    @property
    def rank(self) -> int:
        """The rank that works on it."""
        return self.core.column("rank")

    @property
    def micro_step(self) -> int:
        """The micro-step in which it does."""
        return self.core.column("micro_step")

    @property
    def input_ids(self) -> NDArray[np.int32]:
        """Token ids, int32 of shape (tokens,)."""
        return self.core.column("input_ids")

    @property
    def position_ids(self) -> NDArray[np.int32]:
        """Positions inside the segment, int32 of shape (tokens,); each segment starts at 0."""
        return self.core.column("position_ids")

    @property
    def segment_ids(self) -> NDArray[np.int32]:
        """The segment of each token, int32 of shape (tokens,); -1 is padding."""
        return self.core.column("segment_ids")

    @property
    def sampled_mask(self) -> NDArray[np.uint8]:
        """1 where the policy produced the token, uint8 of shape (tokens,)."""
        return self.core.column("sampled_mask")

    @property
    def loss_mask(self) -> NDArray[np.uint8]:
        """1 where training uses the token, uint8 of shape (tokens,); 0 at the first token of each segment."""
        return self.core.column("loss_mask")

    @property
    def loss_weight(self) -> NDArray[np.float32] | None:
        """The choice in float, float32 of shape (tokens,); None if no row has weights: then equal to `loss_mask`."""
        return self.core.column("loss_weight")

    @property
    def logprobs(self) -> NDArray[np.float32] | None:
        """Of sampled tokens, float32 of shape (tokens,), 0.0 elsewhere; None if never recorded."""
        return self.core.column("logprobs")

    @property
    def advantages(self) -> NDArray[np.float32] | None:
        """Float32 of shape (tokens,); None if never assigned."""
        return self.core.column("advantages")

    @property
    def policy_version(self) -> NDArray[np.int64] | None:
        """Int64 of shape (tokens,), -1 where not recorded; None if no row has versions."""
        return self.core.column("policy_version")

    @property
    def ref_logprobs(self) -> NDArray[np.float32] | None:
        """The same under a reference model, float32 of shape (tokens,), 0.0 elsewhere; None if never recorded."""
        return self.core.column("ref_logprobs")

    @property
    def cu_seqlens(self) -> NDArray[np.int32]:
        """Where each segment starts, and the end: int32 of shape (segments + 1,)."""
        return self.core.column("cu_seqlens")

    @property
    def seq_lens(self) -> NDArray[np.int32]:
        """The length of each segment, int32 of shape (segments,)."""
        return self.core.column("seq_lens")

    @property
    def row(self) -> NDArray[np.int32]:
        """The row of the batch that each segment is, int32 of shape (segments,); -1 is padding."""
        return self.core.column("row")

    @property
    def offset(self) -> NDArray[np.int32]:
        """Where in its row each segment begins, int32 of shape (segments,)."""
        return self.core.column("offset")

    @property
    def parent(self) -> NDArray[np.int32] | None:
        """With shared prefixes: the token that each token goes on from, int32 of shape (tokens,), -1 at a root.

        The logits of token `parent[t]` predict token `t`; it is `t - 1` inside a segment.
        """
        return self.core.column("parent")

    @property
    def segment_parent(self) -> NDArray[np.int32] | None:
        """With shared prefixes: the segment that each segment goes on from, int32 of shape (segments,), -1 at a root.

        Segments are the nodes of the trees, in depth-first order: a parent stands before its children.
        """
        return self.core.column("segment_parent")

    @property
    def leaf_row(self) -> NDArray[np.int32] | None:
        """With shared prefixes: the rows of the bin, int32 of shape (rows,)."""
        return self.core.column("leaf_row")

    @property
    def leaf_segment(self) -> NDArray[np.int32] | None:
        """With shared prefixes: the segment in which each row of `leaf_row` ends, int32 of shape (rows,)."""
        return self.core.column("leaf_segment")

    @property
    def max_seqlen(self) -> int:
        """The length of the longest segment."""
        return int(self.seq_lens.max())
