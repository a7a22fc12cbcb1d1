"""The half of the grammar of templates that writes expressions."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import template_words as words

TEXTS = ("t", "u", "m.a", "w[0]", "messages[0].content", "messages[0]['role']", "messages[-1].content", "i|string")
NUMBERS = (
    "i",
    "f",
    "0",
    "1",
    "-3",
    "2.5",
    "1e3",
    "10",
    "l[0]",
    "true",
    "1e22",
    "12345678901234567890",
    "0x1f",
    "1_000",
)
COLLECTIONS = (
    *("l", "w", "r", "m", "[]", "[1, 'a', none]", "(1, 2)", "{'a': 1, 'b': [2]}", "messages", "messages[0]"),
    *("range(4)", "messages[0].items()"),
)
OTHERS = ("n", "y", "none", "true", "zz", "m.zz", "false", "tools", "documents", "add_generation_prompt")
PERCENT = ("%s", "%5s|", "%-5s|", "%r", "%.2s", "%a")
PERCENT_NUMBERS = ("d", "05d", "+d", "x", "o", ".2f", "8.3f", "e", "g", "#x", "-6d|", "i", "X", "c")
BRACES = ("", ":>8", ":^8", "!r", ":.3", "!s:*<6")
BRACES_NUMBERS = ("d", ",", "08.2f", "+", "_", "%", ".3g", "e", ">9", "x", "#b", "n")
SLICES = ("1:", ":-1", "::-1", "1:4", "-3:", "::2", "i:")
DEEPEST = 5


class Expressions:
    """Writes expressions of a kind (a text, a number, a collection), which mostly fit where they stand.

    Args:
        seed: Where the draws begin.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.noted: set[str] = set()
        self.features: Counter[str] = Counter()
        self.depth = 0
        self.names = 0

    def pick(self, *options: Any) -> Any:
        return options[int(self.random.random() * len(options))]

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def note(self, feature: str) -> str:
        """Notes that the template uses a feature (`filter upper`); gives its name alone."""
        self.noted.add(feature)
        return feature.split(" ", maxsplit=1)[1]

    def rarer(self, kind: str, *names: str) -> str:
        """One of the names: of two that are drawn, the one that fewer templates have used."""
        return min(self.pick(*names), self.pick(*names), key=lambda name: self.features[f"{kind} {name}"])

    def named(self, table: dict[str, str], kind: str) -> str:
        """A name of a table with one of its argument lists."""
        name = self.rarer(kind, *table)
        return self.note(f"{kind} {name}") + self.pick(*table[name].split("|"))

    def operator(self, *names: str) -> str:
        return self.note("operator " + self.pick(*names))

    def quoted(self, text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"

    def word(self) -> str:
        return self.quoted(self.pick(*words.WORDS))

    def nest(self, simple: float, leaf: Callable[[], str], *productions: Callable[[], str]) -> str:
        """One of the productions, one deeper; a leaf where it is deep enough, or by chance."""
        self.depth += 1
        try:
            if self.depth > DEEPEST or self.chance(simple):
                return leaf()
            return self.pick(*productions)()
        finally:
            self.depth -= 1

    def text(self) -> str:
        return self.nest(
            0.3,
            lambda: self.word() if self.chance(0.3) else self.pick(*TEXTS),
            lambda: f"({self.text()})|{self.named(words.TEXT_FILTERS, 'filter')}",
            lambda: f"({self.text()})|{self.named(words.TEXT_FILTERS, 'filter')}",
            lambda: f"({self.text()}).{self.named(words.TEXT_METHODS, 'method')}",
            lambda: f"({self.text()}).{self.named(words.TEXT_METHODS, 'method')}",
            lambda: f"{self.text()} {self.operator('+')} {self.text()}",
            lambda: f"({self.any()} {self.operator('~')} {self.any()})",
            lambda: f"({self.collection()})|{self.named(words.TO_TEXT, 'filter')}",
            lambda: f"({self.text()})[{self.note('operator slice') and self.pick(*SLICES)}]",
            lambda: f"({self.text()} if {self.note('operator if') and self.condition()} else {self.text()})",
            lambda: f"({self.text()} * {self.pick(0, 2, 3)})",
            lambda: f"range({self.pick(3, '1, 5', '5, 0, -2')})|join(',')",
            self.formatted,
        )

    def formatted(self) -> str:
        form = self.pick(*PERCENT_NUMBERS)
        return self.pick(
            lambda: f"'{self.pick(*PERCENT)}' % ({self.any()},)",
            lambda: f"'%{form}' % {self.number()}",
            lambda: f"'%(a)s %(b)s' % {self.pick('m', '{a: i}')}",
            lambda: f"'{{{self.pick(*BRACES)}}}'.{self.note('method format')}({self.text()})",
            lambda: f"'{{:{self.pick(*BRACES_NUMBERS)}}}'.format({self.number()})",
            lambda: f"'{{a}}-{{b!r}}'.{self.note('method format_map')}(m)",
            lambda: f"'%s-%s'|{self.note('filter format')}({self.any()}, 1)",
        )()

    def number(self) -> str:
        return self.nest(
            0.4,
            lambda: self.pick(*NUMBERS),
            lambda: f"({self.number()} {self.operator('+', '-', '*', '/', '//', '%')} {self.number()})",
            lambda: f"({self.number()} {self.operator('**')} {self.pick(0, 2, 3)})",
            lambda: f"({self.number()})|{self.named(words.NUMBER_FILTERS, 'filter')}",
            lambda: f"({self.number()})|{self.named(words.NUMBER_FILTERS, 'filter')}",
            lambda: f"({self.collection()})|{self.note('filter ' + self.pick('length', 'count'))}",
            lambda: f"({self.text()}).{self.named(words.ASK_TEXT, 'method')}",
            lambda: f"({self.text()}).{self.named(words.ASK_TEXT, 'method')}",
            lambda: f"({self.text()})|{self.note('filter ' + self.pick('wordcount', 'int', 'float'))}",
            lambda: f"({self.operator('-', '+')}{self.number()})",
            self.counted,
            lambda: f"({self.pick('l', '[1, 2.5]')})|{self.note('filter ' + self.pick('sum', 'max', 'min'))}",
        )

    def collection(self) -> str:
        return self.nest(
            0.4,
            lambda: self.pick(*COLLECTIONS),
            lambda: f"({self.pick('w', 'l')})|{self.named(words.LIST_FILTERS, 'filter')}|list",
            self.selected,
            lambda: f"r|{self.named(words.DICT_LIST_FILTERS, 'filter')}|list",
            lambda: f"({self.text()}).{self.named(words.LIST_METHODS_OF_TEXT, 'method')}",
            lambda: f"[{self.any()}, {self.any()}]",
            lambda: f"{{'k': {self.any()}, {self.word()}: {self.any()}}}",
            lambda: f"(l + {self.pick('[9]', 'w')})",
            lambda: f"(m.{self.note('method ' + self.pick('items', 'keys', 'values'))}())|list",
            lambda: f"{self.pick('l', 'm')}.{self.note('method copy')}()",
            lambda: f"dict.{self.note('method fromkeys')}({self.pick('w', 'l', 't')}, {self.any()})",
            lambda: f"{self.pick('l', 'w', 'r')}[{self.note('operator slice') and self.pick(*SLICES)}]",
            lambda: f"{self.note('function dict')}(m, z={self.any()})",
            lambda: f"m|{self.named(words.DICT_FILTERS, 'filter')}|list",
        )

    def counted(self) -> str:
        name = self.note("method " + self.pick("count", "index"))
        return f"{self.pick('l', '(1, 2, 1)')}.{name}({self.pick(1, 2, 'i')})"

    def selected(self) -> str:
        test = self.note("test " + self.rarer("test", *words.OPERATOR_TESTS))
        return f"{self.pick('w', 'l')}|{self.pick('select', 'reject')}('{test}', {self.pick(1, 't', 'w')})|list"

    def any(self) -> str:
        choices = [
            self.text,
            self.number,
            self.collection,
            lambda: self.pick(*OTHERS),
            lambda: f"({self.collection()})|{self.named(words.TO_ANY, 'filter')}",
            lambda: f"[{self.text()}]|{self.note('filter random')}",
            lambda: f"({self.tested()})",
            lambda: f"m.{self.note('method get')}({self.text()}, {self.pick(1, self.quoted('d'))})",
        ]
        return self.random.choices(choices, [10, 8, 6, 4, 3, 1, 4, 2])[0]()

    def condition(self) -> str:
        return self.nest(
            0.1,
            lambda: self.pick("y", "n", "i", "t"),
            self.tested,
            self.tested,
            lambda: f"{self.number()} {self.operator('<', '>', '<=', '>=', '==', '!=')} {self.number()}",
            lambda: f"0 {self.operator('<', '<=')} {self.number()} {self.operator('<', '!=')} 9",
            lambda: f"{self.any()} {self.operator('==', '!=')} {self.any()}",
            lambda: f"{self.text()} {self.operator('in', 'not in')} {self.pick('t', 'w', 'm', 'u')}",
            lambda: f"{self.operator('not')} {self.any()}",
            lambda: f"({self.any()} {self.operator('and', 'or')} {self.any()})",
        )

    def tested(self) -> str:
        test = self.named(words.TESTS, "test")
        return f"{self.any()} is {self.pick('', 'not ')}{test}"
