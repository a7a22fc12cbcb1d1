"""`Batch`: trajectories as an Arrow table, the contract between environments and trainers.

*Invariant*: `Batch.read(path)` gives the rows and values that `batch.write(path)` was given.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tokentape import _core
from tokentape.batch.files import atomic, expand, pyarrow
from tokentape.batch.reading import read_table
from tokentape.batch.row import Row
from tokentape.errors import ArgumentError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


__all__ = ["Batch"]


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
        target = Path(path)
        if target.suffix not in {".arrow", ".parquet"}:
            raise ArgumentError(f"cannot tell the format of {target.name!r}: use the extension .arrow or .parquet")
        with atomic(target) as temporary:
            if target.suffix == ".parquet":
                self._write_parquet(temporary, compression or "zstd")
            elif compression:
                self._write_compressed(temporary, compression)
            else:
                self.core.write_file(temporary)

    def _write_parquet(self, path: Path, compression: str) -> None:
        pyarrow("pyarrow.parquet").write_table(self.to_pyarrow(), path, compression=compression)

    def _write_compressed(self, path: Path, compression: str) -> None:
        table = self.to_pyarrow()
        options = pyarrow().ipc.IpcWriteOptions(compression=compression)
        with pyarrow().ipc.new_file(path, table.schema, options=options) as file:
            file.write_table(table)

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

    def with_advantages(self, how: Any) -> Batch:
        """The same rows with new advantages, written on sampled tokens and 0.0 elsewhere.

        Estimators within a group are `Group.with_advantages`; these compare all rows of the batch.

        Args:
            how: "reinforce_pp": the reward of the row on each token, then whitened over the batch (REINFORCE++, arXiv
                2501.03262, section 3.2, without a penalty on divergence). "whiten": the advantages that are there,
                with mean 0 and sample standard deviation 1 over all tokens with loss. An array: one value per row, or
                one per token of all rows one after the other. A function of the batch that returns such an array.

        Raises:
            SchemaError: A row has no reward, or no advantages to whiten.
            ArgumentError: There are as many values neither as rows nor as tokens, or one is not finite.

        Example:
            >>> rows = [{"token_ids": [1, 2], "sampled_mask": [0, 1], "reward": reward} for reward in (1.0, 0.0)]
            >>> batch = Batch.from_rows(rows).with_advantages("reinforce_pp")
            >>> [f"{row.advantages[1]:.4f}" for row in batch.rows()]
            ['0.7071', '-0.7071']
        """
        given = how(self) if callable(how) else how
        if not isinstance(given, str):
            given = np.ascontiguousarray(given, dtype=np.float32)
        return Batch(self.core.with_advantages(given))

    def filter(self, keep: Any) -> Batch:
        """The rows for which `keep` is true, copied into compact buffers.

        Args:
            keep: A boolean array with one value per row, or a function of a `Row`.
        """
        if callable(keep):
            predicate: Callable[[Row], Any] = keep
            keep = [bool(predicate(row)) for row in self.rows()]
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

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles through Arrow IPC: compact, also for a slice of something large."""
        return _from_stream, (self.core.to_stream(),)

    def __arrow_c_schema__(self) -> object:
        return self.core.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.core.__arrow_c_stream__(requested_schema)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """The rows as one struct array; copies where the batch holds several record batches."""
        return self.core.__arrow_c_array__(requested_schema)


def _from_stream(stream: bytes) -> Batch:
    return Batch(_core.Table.from_stream(stream))
