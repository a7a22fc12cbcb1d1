"""`Row`: one row of a batch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Row"]

# Columns of the contract that a table may lack.
_OPTIONAL = frozenset({"ref_logprobs", "top_logprobs"})
_JSON_COLUMNS = frozenset({"metrics", "messages", "tools", "provenance"})


class Row:
    """One row of a `Batch`; the columns of the contract are attributes.

    Per-token columns are read-only numpy views of the Arrow buffers, or None where the list is null. `metrics`,
    `messages`, `tools` and `provenance` are parsed from their JSON text. `turns` and `policy_versions` are lists of
    dicts.

    Example:
        >>> import tokentape as tt
        >>> row = tt.Batch.from_rows([{"token_ids": [5, 6], "messages": '[{"role": "user"}]'}]).row(0)
        >>> row.token_ids.tolist(), row.messages, row.logprobs
        ([5, 6], [{'role': 'user'}], None)
    """

    __slots__ = ("_columns", "index")

    def __init__(self, index: int, columns: Mapping[str, Any]) -> None:
        self.index = index
        self._columns = columns

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            value = self._columns[name]
        except KeyError:
            if name in _OPTIONAL:
                return None
            raise AttributeError(f"the row has no column {name!r}; it has {', '.join(self._columns)}") from None
        return json.loads(value) if name in _JSON_COLUMNS else value

    def to_dict(self) -> dict[str, Any]:
        """All columns, JSON texts as texts: what `Batch.from_rows` takes."""
        return dict(self._columns)

    def __len__(self) -> int:
        return len(self._columns["token_ids"])

    def __repr__(self) -> str:
        return f"Row(index={self.index}, trajectory_id={self.trajectory_id!r}, tokens={len(self)})"
