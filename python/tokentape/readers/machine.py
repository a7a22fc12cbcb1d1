"""The stack machine of pickles, without the instructions that can run code.

It knows plain data, the persistent ids that torch writes, and the names it is given. Python's own unpickler is not
used: even with its names restricted it builds objects, and believes sizes that a file states.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, cast

from tokentape.errors import SchemaError
from tokentape.readers.sample import TruncatedError

__all__ = ["run"]

MARK = object()
TRUE, FALSE = True, False


def run(data: bytes, names: Mapping[tuple[str, str], Any], persistent: Callable[[Any], Any]) -> Any:
    """What a pickle describes.

    Args:
        data: The pickle.
        names: What the names in it stand for; the callables among these are the only ones that are called.
        persistent: What a persistent id stands for.

    Raises:
        SchemaError: An instruction or name is not known, or the pickle is cut short.

    Example:
        >>> import pickle
        >>> run(pickle.dumps({"ids": [1, 2], "text": "a"}, protocol=2), {}, lambda _: None)
        {'ids': [1, 2], 'text': 'a'}
        >>> import os
        >>> run(pickle.dumps(os.getcwd), {}, lambda _: None)
        Traceback (most recent call last):
            ...
        tokentape.errors.SchemaError: the pickle names posix.getcwd, which is no plain data: it is not loaded
    """
    return _Machine(data, names, persistent).run()


class _Machine:
    """The state: a place in the data, a stack, a memo."""

    def __init__(self, data: bytes, names: Mapping[tuple[str, str], Any], persistent: Callable[[Any], Any]) -> None:
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.names = names
        self.persistent = persistent

    def run(self) -> Any:
        try:
            while (code := self.take(1)) != b".":
                _STEPS.get(code, _refuse)(self)
            return self.stack.pop()
        except SchemaError:
            raise
        except (IndexError, KeyError, TypeError, ValueError, struct.error) as error:
            raise SchemaError(f"the pickle is cut short or damaged at byte {self.at}: {error}") from None

    def take(self, count: int) -> bytes:
        found = self.data[self.at : self.at + count]
        if len(found) < count:
            raise TruncatedError(f"the pickle is cut short: byte {self.at} promises {count} more")
        self.at += count
        return found

    def number(self, width: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(width), "little", signed=signed)

    def line(self) -> str:
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise TruncatedError("the pickle is cut short inside a name")
        found = self.data[self.at : end]
        self.at = end + 1
        return found.decode()

    def marked(self) -> list[Any]:
        """What lies above the last mark, which goes too."""
        at = len(self.stack) - 1
        while self.stack[at] is not MARK:
            at -= 1
            if at < 0:
                raise SchemaError("the pickle closes what it never opened")
        found = self.stack[at + 1 :]
        del self.stack[at:]
        return found

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def top(self, kind: type[Any]) -> Any:
        if not isinstance(self.stack[-1], kind):
            raise SchemaError(f"the pickle fills a {type(self.stack[-1]).__name__} as a {kind.__name__}")
        return self.stack[-1]

    def append(self, values: list[Any]) -> None:
        self.top(list).extend(values)

    def set_items(self, pairs: list[Any]) -> None:
        self.top(dict).update(zip(pairs[::2], pairs[1::2], strict=True))

    def name(self, module: Any, name: Any) -> None:
        if (module, name) not in self.names:
            raise SchemaError(f"the pickle names {module}.{name}, which is no plain data: it is not loaded")
        self.push(self.names[module, name])

    def call(self) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        known = any(function is value for value in self.names.values()) and callable(function)
        if not known or not isinstance(arguments, tuple):
            raise SchemaError("the pickle calls what is no constructor of plain data: it is not loaded")
        self.push(cast("Callable[..., Any]", function)(*cast("tuple[Any, ...]", arguments)))

    def remember(self, key: int) -> None:
        self.memo[key] = self.stack[-1]

    def two(self) -> tuple[Any, Any]:
        second = self.stack.pop()
        return self.stack.pop(), second

    def last(self, count: int) -> list[Any]:
        found = self.stack[-count:]
        del self.stack[-count:]
        return found


def _refuse(machine: _Machine) -> None:
    code = machine.data[machine.at - 1]
    raise SchemaError(f"the pickle has the instruction 0x{code:02x}, which is no plain data: it is not loaded")


def _text(machine: _Machine, width: int) -> None:
    machine.push(machine.take(machine.number(width)).decode("utf-8", "surrogatepass"))


_STEPS: dict[bytes, Callable[[_Machine], Any]] = {
    b"\x80": lambda m: m.take(1),
    b"\x95": lambda m: m.take(8),
    b"(": lambda m: m.push(MARK),
    b"N": lambda m: m.push(None),
    b"\x88": lambda m: m.push(TRUE),
    b"\x89": lambda m: m.push(FALSE),
    b"J": lambda m: m.push(m.number(4, signed=True)),
    b"K": lambda m: m.push(m.number(1)),
    b"M": lambda m: m.push(m.number(2)),
    b"\x8a": lambda m: m.push(m.number(m.number(1), signed=True)),
    b"G": lambda m: m.push(struct.unpack(">d", m.take(8))[0]),
    b"X": lambda m: _text(m, 4),
    b"\x8c": lambda m: _text(m, 1),
    b"]": lambda m: m.push([]),
    b"}": lambda m: m.push({}),
    b")": lambda m: m.push(()),
    b"l": lambda m: m.push(m.marked()),
    b"t": lambda m: m.push(tuple(m.marked())),
    b"\x85": lambda m: m.push(tuple(m.last(1))),
    b"\x86": lambda m: m.push(tuple(m.last(2))),
    b"\x87": lambda m: m.push(tuple(m.last(3))),
    b"a": lambda m: m.append(m.last(1)),
    b"e": lambda m: m.append(m.marked()),
    b"s": lambda m: m.set_items(m.last(2)),
    b"u": lambda m: m.set_items(m.marked()),
    b"q": lambda m: m.remember(m.number(1)),
    b"r": lambda m: m.remember(m.number(4)),
    b"\x94": lambda m: m.remember(len(m.memo)),
    b"h": lambda m: m.push(m.memo[m.number(1)]),
    b"j": lambda m: m.push(m.memo[m.number(4)]),
    b"c": lambda m: m.name(m.line(), m.line()),
    b"\x93": lambda m: m.name(*m.two()),
    b"Q": lambda m: m.push(m.persistent(m.stack.pop())),
    b"R": lambda m: m.call(),
}
"""Every instruction that is known. Those that build objects (BUILD, OBJ, INST, NEWOBJ, EXT) are not among them."""
