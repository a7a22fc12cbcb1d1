"""`Fault`: one thing wrong with a stored rollout, and where; `Report`: all of them, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = ["Fault", "Level", "Report"]

KEPT = 10_000

Level: TypeAlias = Literal["fault", "smell", "note"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a stored rollout.

    `token` and `end` index the list that the file holds, named in `field`: in a format of prompt and response that is
    the response. In our own files it is the row.

    Attributes:
        kind: What is wrong, such as `"zero-filled-logprobs"`; `docs/verify.md` lists all.
        level: `"fault"`: the row is wrong. `"smell"`: it may be right and is worth a look. `"note"`: a fact, such as
            where a row leaves what the template prints now.
        message: What is wrong, and what should be.
        row: The sequence in file order, from 0; for a damaged line, the line; None: the file.
        token: The first token, or None: the row as a whole.
        end: One past the last token.
        field: The column, or the list of the file.
        node: The node, in formats that are graphs.
        group: The group in file order, in formats of groups.
        index: The sequence inside its group.
        trajectory_id: Whose row it is, where the file says.
        context: The text around the token, which stands between `[` and `]`; ids without a model.
    """

    kind: str
    level: Level
    message: str
    row: int | None = None
    token: int | None = None
    end: int | None = None
    field: str | None = None
    node: int | None = None
    group: int | None = None
    index: int | None = None
    trajectory_id: str | None = None
    context: str | None = None

    def __str__(self) -> str:
        """One line: where, what, and the text around it."""
        text = f"{self.where}: {self.kind}: {self.message}"
        return text if self.context is None else f"{text}: {self.context}"

    @property
    def where(self) -> str:
        """The place in words."""
        parts = [
            "file" if self.row is None else f"row {self.row}",
            "" if self.node is None else f"node {self.node}",
            "" if self.token is None else f"token {self.token}",
            f"({self.field})" if self.field else "",
        ]
        return " ".join(part for part in parts if part)

    def to_dict(self) -> dict[str, Any]:
        """What is known, for JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(slots=True)
class Report:
    """What a check of a file found.

    Attributes:
        format: `"tokentape"`, or the framework whose file it is; `"unknown"` where the file is too damaged to tell.
        rows: Sequences read.
        tokens: Their tokens.
        faults: The faults, the first 10,000 of them.
        smells: What may be right and is worth a look, likewise.
        notes: Facts, likewise.
        counts: How many of each kind there are, all included.
    """

    format: str = "tokentape"
    rows: int = 0
    tokens: int = 0
    faults: list[Fault] = field(default_factory=list[Fault])
    smells: list[Fault] = field(default_factory=list[Fault])
    notes: list[Fault] = field(default_factory=list[Fault])
    counts: Counter[str] = field(default_factory=Counter[str])

    @property
    def ok(self) -> bool:
        """Whether there is no fault."""
        return not self.faults

    def add(self, fault: Fault) -> None:
        """Counts a fault, and keeps it while there is room."""
        self.counts[fault.kind] += 1
        kept = {"fault": self.faults, "smell": self.smells, "note": self.notes}[fault.level]
        if len(kept) < KEPT:
            kept.append(fault)

    def __str__(self) -> str:
        found = ", ".join(f"{count} {kind}" for kind, count in self.counts.most_common()) or "no faults"
        return f"{self.format}: {self.rows:,} rows, {self.tokens:,} tokens: {found}"
