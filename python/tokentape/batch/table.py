"""`Batch`: trajectories as an Arrow table, the contract between environments and trainers.

*Invariant*: `Batch.read(path)` gives the rows and values that `batch.write(path)` was given.
"""

from __future__ import annotations

from itertools import pairwise
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any

import numpy as np

from tokentape import _core
from tokentape.batch.advantages import with_advantages
from tokentape.batch.files import expand, pyarrow
from tokentape.batch.reading import read_table, stream_tables
from tokentape.batch.row import Row
from tokentape.batch.writing import BatchWriter
from tokentape.errors import ArgumentError, SchemaError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import SupportsIndex

__all__ = ["Batch"]

#: The first pickle protocol whose buffers may travel beside the pickle.
OUT_OF_BAND = 5


class Batch:
    """Trajectories as an Arrow table of the schema `tokentape.trajectories`, version 1.

    A batch is immutable and shares its buffers with whatever it was made from. Any Arrow library reads it through the
    PyCapsule interface without a copy: `pyarrow.table(batch)`, `polars.from_arrow(batch)`.

    Example:
        >>> batch = Batch.from_rows([{"token_ids": [1, 2, 3], "sampled_mask": [0, 1, 1], "reward": 1.0}])
        >>> len(batch), batch.row(0).sampled_mask.tolist()
        (1, [0, 1, 1])

    Attributes:
        core: The engine's own table, for the other parts of this package.
    """

    __slots__ = ("core",)

    def __init__(self, table: _core.Table) -> None:
        self.core = table

    @classmethod
    def from_groups(cls, groups: Iterable[_core.Group]) -> Batch:
        """One row for each trajectory of each group, earlier fragments of a rollout included.

        Raises:
            TrajectoryError: A trajectory cannot be written, see `Group`.

        Example:
            >>> import tokentape as tt
            >>> trajectory = tt.Trajectory.from_prompt([1, 2], vocab_size=10)
            >>> _ = trajectory.act([3, 4], [-0.1, -0.2], finish_reason="stop")
            >>> trajectory.reward = 1.0
            >>> Batch.from_groups([tt.Group([trajectory])]).row(0).sampled_mask.tolist()
            [0, 0, 1, 1]
        """
        return cls(_core.Table.from_groups(list(groups)))

    @classmethod
    def from_arrow(cls, data: Any, *, validate: bool = True) -> Batch:
        """Any table of pyarrow, polars, nanoarrow, DuckDB or datasets that has the columns of the contract.

        Values are not copied. List kinds, string kinds, item names and nullability may differ from the contract;
        columns that it does not know are kept.

        Args:
            data: An object with `__arrow_c_stream__` or `__arrow_c_array__`.
            validate: Whether every row is checked, see `validate`.

        Raises:
            SchemaError: A column is missing or of another type, a list holds a null, the table is of a newer version,
                or a row breaks a rule.
        """
        if type(data).__module__.startswith("datasets."):
            data = data.with_format("arrow")[:]  # honours the index that select and shuffle leave beside the table
        return cls(_core.Table.from_arrow(data, validate=validate))

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], *, validate: bool = True) -> Batch:
        """Rows as mappings with the column names of the contract; only `token_ids` is required.

        Args:
            rows: Per-token columns as numpy arrays or sequences; texts as texts. A missing `sampled_mask` is 0, a
                missing `loss_mask` equals `sampled_mask`, a missing `message_index` is -1.
            validate: Whether every row is checked, see `validate`.

        Raises:
            SchemaError: A value cannot be read, or a row breaks a rule.
        """
        return cls(_core.Table.from_rows(rows, validate=validate))

    @classmethod
    def concat(cls, batches: Iterable[Batch]) -> Batch:
        """The rows of all batches, in order; buffers are shared, a column that one lacks is null there."""
        return cls(_core.Table.concat([batch.core for batch in batches]))

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, validate: bool = True) -> Batch:
        """Reads a file, a run folder or all files of a glob.

        Uncompressed Arrow files are mapped into memory, so that a run may be larger than memory.

        Args:
            path: `.arrow` or `.parquet`, a folder `NAME.tape/`, or a glob.
            validate: Whether every row is checked; that reads the whole file once.

        Raises:
            FileNotFoundError: Nothing is there.
            SchemaError: A file is cut short, of a newer schema version, or another table.
        """
        return cls.concat([cls(read_table(file, validate=validate)) for file in expand(path)])

    @classmethod
    def stream(cls, path: str | os.PathLike[str], *, validate: bool = True) -> Iterator[Batch]:
        """Reads what `read` takes part by part, in constant memory; the parts are what was written as record batches.

        Raises:
            FileNotFoundError: Nothing is there.
            SchemaError: As `read`, when the part at fault is reached.
        """
        return (cls(table) for file in expand(path) for table in stream_tables(file, validate=validate))

    def write(self, path: str | os.PathLike[str], *, compression: str | None = None) -> None:
        """Writes the batch as one file; a reader sees the whole file or none.

        Args:
            path: `.arrow` for Arrow IPC, `.parquet` for Parquet.
            compression: For Arrow IPC None (so that readers map it without a copy), "lz4" or "zstd"; for Parquet any
                codec of pyarrow, "zstd" if None.

        Raises:
            ArgumentError: The extension is another.
            OSError: The disk is full, the folder is missing, or the like; an older file is left as it was.
        """
        with BatchWriter(path, compression=compression) as file:
            file.write(self)

    def to_pyarrow(self) -> Any:
        """The batch as a `pyarrow.Table` that shares its buffers."""
        return pyarrow().table(self)

    def validate(self) -> None:
        """Checks every row against the contract, in parallel, at the speed of memory.

        Per-token columns have the length of `token_ids`; ids are not negative; masks are 0 or 1; weights and
        advantages are finite; logprobs of sampled tokens are finite and not above zero; turns follow one another
        inside the row; `policy_versions` covers exactly the sampled tokens; JSON columns parse.

        Raises:
            SchemaError: Names the first row that breaks a rule, the column and the token.
        """
        self.core.validate()

    def with_advantages(
        self,
        how: Any,
        *,
        rewards: Any = None,
        values: Any = None,
        discount: float = 1.0,
        trace: float = 1.0,
    ) -> Batch:
        """The same rows with new advantages, written on sampled tokens and 0.0 elsewhere.

        Estimators within a group are `Group.with_advantages`; these compare all rows of the batch.

        Args:
            how: "gae": generalised advantage estimation with given `values` (arXiv 1506.02438, equation 16).
                "reinforce_pp": the rewards to come, whitened over the batch (REINFORCE++, arXiv 2501.03262, without a
                penalty on divergence). "reinforce_pp_baseline": the reward less the mean of the group's rollouts,
                whitened over the batch. "whiten": the advantages that are there, with mean 0 and sample standard
                deviation 1 over all sampled tokens with loss. An array, one value per row or per token; or a function
                of the batch that gives one.
            rewards: Of "gae" and "reinforce_pp". None: the reward of the row, on its last sampled token. "turns": that
                of each turn, on its last token. An array: one per token of all rows; a reward on an unsampled token
                belongs to the sampled token before it.
            values: Of "gae": what a critic gave, one per token of all rows; only sampled tokens are read.
            discount: Of a reward, by sampled token ("gamma").
            trace: The decay of the trace ("lambda"); 1 weighs all rewards to come alike.

        Raises:
            SchemaError: A row has no reward, or no advantages to whiten.
            ArgumentError: An array has another length, or a value is not finite.

        Example:
            >>> rows = [{"token_ids": [1, 2], "sampled_mask": [0, 1], "reward": reward} for reward in (1.0, 0.0)]
            >>> [f"{row.advantages[1]:.4f}" for row in Batch.from_rows(rows).with_advantages("reinforce_pp").rows()]
            ['0.7071', '-0.7071']
        """
        options = {"rewards": rewards, "values": values, "discount": discount, "trace": trace}
        return Batch(with_advantages(self.core, how(self) if callable(how) else how, **options))

    def filter(self, keep: Any) -> Batch:
        """The rows for which `keep` is true, copied into compact buffers.

        Args:
            keep: A boolean array with one value per row, or a function of a `Row`.
        """
        if callable(keep):
            keep = [bool(keep(row)) for row in self.rows()]
        return Batch(self.core.filter(np.ascontiguousarray(keep, dtype=bool)))

    def take(self, rows: Sequence[int] | np.ndarray[Any, Any]) -> Batch:
        """The given rows in the given order, copied."""
        return Batch(self.core.take([int(row) for row in rows]))

    def sample(self, count: int, *, seed: int) -> Batch:
        """`count` rows drawn without replacement, in their order; the same seed draws the same rows."""
        if not 0 <= count <= len(self):
            raise ArgumentError(f"cannot draw {count} of {len(self)} rows")
        drawn = np.random.default_rng(seed).choice(len(self), size=count, replace=False)
        return self.take(np.sort(drawn))

    def split(self, count: int) -> list[Batch]:
        """`count` parts of neighbouring rows, as equal in length as possible; buffers are shared."""
        if count < 1:
            raise ArgumentError(f"cannot split into {count} parts")
        bounds = [len(self) * part // count for part in range(count + 1)]
        return [self[start:end] for start, end in pairwise(bounds)]

    def row(self, index: int) -> Row:
        """One row; negative indices count from the end."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"row {index} is out of range: the batch has {len(self)} rows")
        index %= len(self)
        return Row(index, self.core.row(index))

    def rows(self) -> Iterator[Row]:
        """All rows in order."""
        return (Row(index, self.core.row(index)) for index in range(len(self)))

    def column(self, name: str) -> _core.Column:
        """The flat values of a column, for DLPack and numpy; of a per-token column those of all rows in order.

        Memory is shared, unless the batch holds several record batches: then the values are copied together.

        Raises:
            SchemaError: The batch has no such column, it holds texts or structs, or some of its values are null.

        Example:
            >>> batch = Batch.from_rows([{"token_ids": [1, 2]}, {"token_ids": [3]}])
            >>> np.from_dlpack(batch.column("token_ids")).tolist()
            [1, 2, 3]
        """
        if (column := self.core.column(name)) is None:
            raise SchemaError(f"{name!r} has no flat values here: it is missing, not numeric, or null somewhere")
        return column

    @property
    def tokens(self) -> int:
        """The number of tokens of all rows."""
        return self.core.tokens()

    @property
    def column_names(self) -> list[str]:
        """The columns: those of the contract in order, then others."""
        return self.core.column_names

    def __getitem__(self, rows: slice) -> Batch:
        """Neighbouring rows, sharing the buffers; for one row use `row`."""
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise ArgumentError("a batch is sliced with step 1: use take for another order")
        return Batch(self.core.slice(start, max(0, stop - start)))

    def __len__(self) -> int:
        return len(self.core)

    def __repr__(self) -> str:
        return f"Batch({len(self):,} rows, {self.tokens:,} tokens)"

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        """Pickles through Arrow IPC: compact, also for a slice of something large; out of band where that is asked."""
        stream = self.core.to_stream()
        return _from_stream, (PickleBuffer(stream) if int(protocol) >= OUT_OF_BAND else bytes(stream),)

    def __arrow_c_schema__(self) -> object:
        return self.core.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.core.__arrow_c_stream__(requested_schema)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """The rows as one struct array; copies where the batch holds several record batches."""
        return self.core.__arrow_c_array__(requested_schema)


def _from_stream(stream: Any) -> Batch:
    return Batch(_core.Table.from_stream(stream))
