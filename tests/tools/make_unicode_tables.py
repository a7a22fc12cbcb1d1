"""Write rust/template/unicode.rs: what Python 3.11 says about characters where Rust says something else or nothing.

python3.11 tests/tools/make_unicode_tables.py > rust/template/unicode.rs && cargo fmt
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator

CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]


def ranges(holds: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    """The ranges of code points, ends included, for which `holds` is true."""
    start = None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and not 0xD800 <= code < 0xE000 and holds(chr(code))
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            yield start, code - 1
            start = None


def code(number: int) -> str:
    """A code point as Rust spells it."""
    return "0x" + f"{number:_x}"


def table(name: str, doc: str, items: list[tuple[int, int]]) -> None:
    print(f"/// {doc}\n#[rustfmt::skip]\npub(super) const {name}: [(u32, u32); {len(items)}] = [")
    cells = [f"({code(a)}, {code(b)})," for a, b in items]
    for at in range(0, len(cells), 7):
        print("    " + " ".join(cells[at : at + 7]))
    print("];\n")


def escape(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"


def mapping(name: str, doc: str, items: list[tuple[str, str]]) -> None:
    print(f"/// {doc}\n#[rustfmt::skip]\npub(super) const {name}: [(char, &str); {len(items)}] = [")
    cells = [f"('{escape(a)}', \"{''.join(map(escape, b))}\")," for a, b in items]
    for at in range(0, len(cells), 4):
        print("    " + " ".join(cells[at : at + 4]))
    print("];\n")


def digit_only(char: str) -> bool:
    return char.isdigit() and not char.isdecimal()


def numeric_only(char: str) -> bool:
    return char.isnumeric() and not char.isdigit()


print(f"//! Characters as Python 3.11 classes them (Unicode {unicodedata.unidata_version}).")
print("//!\n//! Written by `tests/tools/make_unicode_tables.py`; ranges include both ends.\n")
table("HIDDEN", "Not `str.isprintable`: `repr` escapes them.", list(ranges(lambda c: not c.isprintable())))
table("LETTERS", "`str.isalpha` beyond ASCII.", list(ranges(lambda c: ord(c) > 127 and c.isalpha())))
zeros = [(ord(c), ord(c) + 9) for c in CHARACTERS if c.isdecimal() and unicodedata.decimal(c) == 0]
table("DECIMALS", "Decimal digits, from zero to nine.", zeros)
table("DIGITS", "`str.isdigit` that are no decimal digits.", list(ranges(digit_only)))
table("NUMERALS", "`str.isnumeric` that are no digits.", list(ranges(numeric_only)))
mapping(
    "TITLES", "Title case, where it is not upper case.", [(c, c.title()) for c in CHARACTERS if c.title() != c.upper()]
)
mapping(
    "FOLDS",
    "Case folding, where it is not lower case.",
    [(c, c.casefold()) for c in CHARACTERS if c.casefold() != c.lower()],
)
table(
    "TITLE_LETTERS",
    "Letters that are in title case themselves.",
    list(ranges(lambda c: unicodedata.category(c) == "Lt")),
)
