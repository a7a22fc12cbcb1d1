"""Lint: what stored rollouts say about themselves, without a model.

*Invariant*: a file is read once, a part at a time, and never changed; the memory that this takes does not grow with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from tokentape import _core
from tokentape.batch import Batch
from tokentape.chat import Chat
from tokentape.checks.context import around
from tokentape.checks.fault import Fault, Level, Report
from tokentape.errors import SchemaError
from tokentape.readers import Finding, Format, Sample, Source, detect, is_own, message_log, tables
from tokentape.readers.rows import as_table
from tokentape.readers.sample import MALFORMED, TruncatedError

__all__ = ["Check", "Source", "lint"]

TOKENS = 1 << 20
"""Sequences of other formats are looked at together until they have so many tokens."""

Input: TypeAlias = "str | os.PathLike[str] | Batch"

Found: TypeAlias = "tuple[str, Level, int, int | None, int | None, str, str]"
"""A fault as the engine says it: kind, level, row, first token, one past the last, column, message."""


def lint(
    source: Input,
    *,
    chat: Chat | None = None,
    format: str | None = None,  # noqa: A002
    max_length: int | None = None,
) -> Report:
    """Checks rollouts of ours or of another framework, without rendering anything.

    Lengths, ranges and values; masks against logprobs, turns and ids; rows against each other. Where a turn begins and
    ends is learned from the first rows, or known from a chat.

    Args:
        source: A batch; a file, run folder or glob of ours; or a file of another framework.
        chat: Whose rollouts they are: stop tokens, padding and vocabulary are then known, and faults show text.
        format: The framework, where its files are not to be recognised by their content.
        max_length: The most tokens that a row may have.

    Raises:
        SchemaError: The file is of no known format, or a pickle, which is never loaded.
        FileNotFoundError: Nothing is there.

    Example:
        >>> import tokentape as tt
        >>> rows = [{"token_ids": [5, 6, 7], "sampled_mask": [0, 1, 1], "logprobs": [0.0, -0.5, float("nan")]}]
        >>> for fault in tt.lint(tt.Batch.from_rows(rows, validate=False)).faults:
        ...     print(fault)
        row 0 token 2 (logprobs): nan-logprob: the logprob of a sampled token is NaN: 5 6 [7]
    """
    return Check(source, chat=chat, format=format, max_length=max_length).run()


class Check:
    """A check that runs while it is iterated: faults one by one, and the tally in `report`.

    Attributes:
        report: What was found so far.
    """

    def __init__(
        self,
        source: Input,
        *,
        chat: Chat | None = None,
        format: str | None = None,  # noqa: A002
        max_length: int | None = None,
        prover: _core.Prover | None = None,
        progress: Callable[[Report], None] | None = None,
    ) -> None:
        """Prepares a check; see `lint`.

        Args:
            source: What to read.
            chat: Whose rollouts they are.
            format: The framework.
            max_length: The most tokens of a row.
            prover: Proves the rows of ours beside.
            progress: Called after each part.
        """
        self.report = Report()
        self._source = source
        self._chat = chat
        self._format = format
        self._max_length = max_length
        self._prover = prover
        self._progress = progress

    def __iter__(self) -> Iterator[Fault]:
        for fault in self._faults():
            self.report.add(fault)
            yield fault

    def run(self) -> Report:
        """Runs to the end of the file."""
        for _ in self:
            pass
        return self.report

    def _faults(self) -> Iterator[Fault]:
        source = self._source
        if isinstance(source, Batch):
            yield from self._own([source.core])
        elif self._format in {None, "tokentape"} and is_own(source):
            yield from _until_damage(self._own(tables(source)))
        else:
            yield from _until_damage(self._foreign(Path(source)))

    def _linter(self, **options: Any) -> _core.Linter:
        return _core.Linter(self._chat, max_length=self._max_length, **options)

    def _own(self, parts: Iterable[_core.Table]) -> Iterator[Fault]:
        linter = self._linter()
        for table in parts:
            base = linter.rows
            found = linter.lint(table)
            if self._prover is not None:
                found += self._prover.prove(table, base)
            yield from sorted((self._fault(item, table, base) for item in found), key=_order)
            self._count(linter, linter.rows)
        yield from (self._fault(item, None, 0) for item in linter.finish())

    def _fault(self, item: Found, table: _core.Table | None, base: int) -> Fault:
        kind, level, row, token, end, column, message = item
        inside = table is not None and base <= row < base + len(table)
        columns = table.row(row - base) if table is not None and inside else {}
        context = around(columns.get("token_ids"), token, end, self._chat)
        name = columns.get("trajectory_id") or None
        return Fault(kind, level, message, row, token, end, column, trajectory_id=name, context=context)

    def _count(self, linter: _core.Linter, rows: int) -> None:
        self.report.rows, self.report.tokens = rows, linter.tokens
        if self._progress:
            self._progress(self.report)

    def _foreign(self, path: Path) -> Iterator[Fault]:
        self.report.format = self._format or "unknown"
        log = message_log(path)
        if log is not None:
            self.report.format, self.report.rows = log
            return
        module, source = detect(path, self._format)
        self.report.format = module.NAME
        pads: Any = getattr(module, "pads", None)
        linter = self._linter(
            filler=module.FILLER, needs_logprobs=module.NEEDS_LOGPROBS, pads=pads(source) if pads else None
        )
        rows = 0
        for part in _parts(_read(module, source)):
            samples = [item for item in part if isinstance(item, Sample)]
            base = linter.rows
            found = linter.lint(as_table(samples))
            yield from self._placed(part, samples, base, found)
            rows = max([rows, *(sample.row + 1 for sample in samples)])
            self._count(linter, rows)
        for kind, level, _, _, _, column, message in linter.finish():
            yield Fault(kind, level, message, field=column)

    def _placed(
        self, part: list[Sample | Finding], samples: list[Sample], base: int, found: list[Found]
    ) -> Iterator[Fault]:
        """The faults of a part, each once: sequences that share tokens share their faults."""
        faults = [self._found(item, None) for item in part if isinstance(item, Finding)]
        faults += [self._found(finding, sample) for sample in samples for finding in sample.findings]
        for kind, level, row, token, end, column, message in found:
            sample = samples[row - base]
            finding = Finding(kind, message, sample.place(token, end, column))
            faults.append(self._found(finding, sample, level, token))
        yield from sorted({_key(fault): fault for fault in reversed(faults)}.values(), key=_order)

    def _found(
        self, finding: Finding, sample: Sample | None, level: Level = "fault", token: int | None = None
    ) -> Fault:
        place = finding.place
        ids = None if sample is None or token is None else sample.columns["token_ids"]
        length = 1 if place.end is None or place.token is None else place.end - place.token
        context = around(ids, token, None if token is None else token + length, self._chat)
        where = (place.row, place.token, place.end, place.field, place.node, place.group, place.index)
        return Fault(finding.kind, level, finding.message, *where, context=context)


def _until_damage(faults: Iterator[Fault]) -> Iterator[Fault]:
    """A file that ends too early has one fault more, behind those of what could be read."""
    try:
        yield from faults
    except TruncatedError as error:
        yield Fault("truncated-file", "fault", str(error))


def _read(module: Format, source: Source) -> Iterator[Sample | Finding]:
    try:
        yield from module.read(source)
    except SchemaError:
        raise
    except MALFORMED as error:
        raise SchemaError(f"{source.path} is no file of {module.NAME}: {error}") from error


def _parts(items: Iterator[Sample | Finding]) -> Iterator[list[Sample | Finding]]:
    """The items in parts of bounded size; what was read before damage comes before the error."""
    part: list[Sample | Finding] = []
    tokens = 0
    try:
        for item in items:
            part.append(item)
            tokens += len(item.columns["token_ids"]) if isinstance(item, Sample) else 0
            if tokens >= TOKENS:
                yield part
                part, tokens = [], 0
    except TruncatedError:
        yield part
        raise
    yield part


def _order(fault: Fault) -> tuple[int, int, int]:
    return (fault.row if fault.row is not None else -1, fault.node or 0, -1 if fault.token is None else fault.token)


def _key(fault: Fault) -> tuple[Any, ...]:
    return (fault.kind, fault.row, fault.token, fault.field, fault.node)
