"""A grammar of chat templates and conversations, for comparing engines on what no corpus holds.

Each production notes the feature it uses, so that a run can count how often each statement, filter, test, method and
function was tried. Expressions have a kind (text, number, list, ...), and mostly fit where they stand: a good part of
the templates must render, or only errors would be compared.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

WORDS = [
    "a",
    "b",
    "Hello World",
    "x-y_z",
    "é ß",
    "<b>&\"'",
    "",
    " pad ",
    "1",
    "3.5",
    "line\nbreak",
    "İstanbul",
    "ΑΣ",
    "tab\there",
]
TEXT_FILTERS = {
    "upper": "",
    "lower": "",
    "title": "",
    "capitalize": "",
    "trim": "|('x ')",
    "string": "",
    "safe": "",
    "escape": "",
    "e": "",
    "forceescape": "",
    "replace": "('a', 'bc')|('l', '', 1)",
    "indent": "|(2)|(2, true)|('>', true, true)",
    "center": "(9)|(4)",
    "truncate": "(7)|(5, true)|(6, false, '.', 0)",
    "wordwrap": "(4)|(5, false)",
    "striptags": "",
    "urlencode": "",
    "default": "('d')|('d', true)",
    "d": "('d')",
    "reverse": "",
    "format": "",
}
NUMBER_FILTERS = {
    "abs": "",
    "round": "|(1)|(0, 'floor')|(1, 'ceil')",
    "int": "|(3)",
    "float": "|(2.5)",
    "filesizeformat": "|(true)",
}
LIST_FILTERS = {
    "sort": "|(reverse=true)",
    "unique": "",
    "list": "",
    "map": "('string')|('upper')",
    "select": "('string')||('defined')",
    "reject": "('string')|",
    "batch": "(2)|(2, 'f')",
    "slice": "(2)|(3, 'f')",
    "reverse": "",
}
DICT_LIST_FILTERS = {
    "selectattr": "('k')|('k', 'equalto', 1)|('n', 'defined')",
    "rejectattr": "('k')|('k', 'none')",
    "map": "(attribute='k')|(attribute='zz', default=0)",
    "groupby": "('k')|('zz', default='q')",
    "sort": "(attribute='k')",
}
TO_TEXT = {
    "join": "|(', ')|('-', attribute='k')",
    "tojson": "|(indent=2)|(true)|(separators=(',', ':'))|(sort_keys=true)",
    "pprint": "",
    "urlencode": "",
    "xmlattr": "|(false)",
}
TO_ANY = {
    "first": "",
    "last": "",
    "min": "",
    "max": "",
    "sum": "|(start=1)",
    "length": "",
    "count": "",
    "random": "",
    "attr": "('a')",
    "items": "",
    "dictsort": "|(true)|(false, 'value')|(reverse=true)",
    "wordcount": "",
}
TESTS = [
    "defined",
    "undefined",
    "none",
    "boolean",
    "true",
    "false",
    "integer",
    "float",
    "number",
    "string",
    "mapping",
    "sequence",
    "iterable",
    "callable",
    "escaped",
    "lower",
    "upper",
    "odd",
    "even",
    "divisibleby(2)",
    "divisibleby 3",
    "sameas(true)",
    "sameas none",
    "in([1, 'a'])",
    "in 'abc'",
    "filter",
    "test",
    "eq(1)",
    "equalto('a')",
    "== 1",
    "!= 'a'",
    "ne(1)",
    "> 1",
    "gt(1)",
    "greaterthan(0)",
    "ge(1)",
    ">= 1",
    "< 2",
    "lt(1)",
    "lessthan(3)",
    "le(1)",
    "<= 1",
]
TESTS = [test for test in TESTS if test[0].isalpha()]
TEXT_METHODS = {
    "upper": "()",
    "lower": "()",
    "title": "()",
    "capitalize": "()",
    "swapcase": "()",
    "casefold": "()",
    "strip": "()|(' x')|('a')",
    "lstrip": "()|('H')",
    "rstrip": "()|('d')",
    "replace": "('a', 'b')|('', '-')|('l', 'LL', 1)",
    "removeprefix": "('a')",
    "removesuffix": "('a')",
    "center": "(9)|(8, '*')",
    "ljust": "(7)",
    "rjust": "(7, '.')",
    "zfill": "(5)",
    "expandtabs": "()|(4)",
    "join": "(['p', 'q'])|('xy')",
    "format": "()",
}
LIST_METHODS_OF_TEXT = {
    "split": "()|('a')|(' ', 1)|(none, 1)|(maxsplit=1)",
    "rsplit": "()|('l', 1)|(none, 1)",
    "splitlines": "()|(true)",
    "partition": "('l')",
    "rpartition": "('l')",
}
ASK_TEXT = {
    "startswith": "('a')|(('a', 'H'))|('e', 1)",
    "endswith": "('d')|('b', 0, 2)",
    "find": "('l')|('l', 3)",
    "rfind": "('l')",
    "index": "('a')",
    "rindex": "('a')",
    "count": "('l')|('')",
    "isalpha": "()",
    "isalnum": "()",
    "isdigit": "()",
    "isdecimal": "()",
    "isnumeric": "()",
    "isspace": "()",
    "isascii": "()",
    "isprintable": "()",
    "isidentifier": "()",
    "islower": "()",
    "isupper": "()",
    "istitle": "()",
}
LOOP = (
    "index",
    "index0",
    "first",
    "last",
    "length",
    "revindex",
    "revindex0",
    "previtem",
    "nextitem",
    "depth",
    "depth0",
    "cycle('a', 'b', 'c')",
    "changed(i)",
)
CONTEXT: dict[str, Any] = {
    "t": "Hello World",
    "u": "é<b>\n'q\"",
    "i": 7,
    "f": 2.5,
    "l": [3, 1, 2],
    "w": ["b", "A", "c", "a"],
    "n": None,
    "y": True,
    "m": {"b": 1, "a": "x", "items": 5, "n": None},
    "r": [{"k": 1, "n": "x"}, {"k": 2}, {"k": 1, "z": [1]}],
}


class Grammar:
    """Draws one template after another.

    Args:
        seed: Where the draws begin.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.features: Counter[str] = Counter()
        self.depth = 0
        self.names = 0

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def note(self, feature: str) -> str:
        self.features[feature] += 1
        return feature

    def call(self, table: dict[str, str], kind: str) -> str:
        """A name of a table with one of its argument lists."""
        name = self.pick(*table)
        self.note(f"{kind} {name}")
        return name + self.pick(*table[name].split("|"))

    def quoted(self, text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"

    def text(self) -> str:
        self.depth += 1
        try:
            if self.depth > 5 or self.chance(0.35):
                return self.pick(
                    "t",
                    "u",
                    self.quoted(self.pick(*WORDS)),
                    "m.a",
                    "w[0]",
                    "messages[0].content",
                    "messages[0]['role']",
                )
            return self.pick(
                lambda: (
                    f"({self.text()})|{self.call(TEXT_FILTERS, 'filter')}"
                    if self.chance(0.9)
                    else f"'%s-%s'|{self.note('filter format')[7:]}({self.any()}, 1)"
                ),
                lambda: f"({self.text()}).{self.call(TEXT_METHODS, 'method')}",
                lambda: f"{self.text()} + {self.text()}",
                lambda: f"({self.any()} ~ {self.any()})",
                lambda: f"({self.collection()})|{self.call(TO_TEXT, 'filter')}",
                lambda: f"({self.text()})[{self.pick('1:', ':-1', '::-1', '1:4', '-3:', '::2')}]",
                lambda: f"({self.text()} if {self.condition()} else {self.text()})",
                lambda: f"({self.text()} * {self.pick(0, 2, 3)})",
                lambda: (
                    self.pick(*(f"'{form}'" for form in ("%s", "%5s|", "%-5s|", "%r", "%.2s"))) + f" % ({self.any()},)"
                ),
                lambda: (
                    f"'%{self.pick('d', '05d', '+d', 'x', 'o', '.2f', '8.3f', 'e', 'g', '#x', '-6d|')}' % {self.number()}"  # noqa: E501
                ),
                lambda: f"'{{{self.pick('', ':>8', ':^8', '!r', ':.3')}}}'.format({self.text()})",
                lambda: (
                    f"'{{:{self.pick('d', ',', '08.2f', '+', '_', '%', '.3g', 'e', '>9')}}}'.format({self.number()})"
                ),
                lambda: f"range({self.pick(3, '1, 5', '5, 0, -2')})|join(',')",
            )()
        finally:
            self.depth -= 1

    def number(self) -> str:
        self.depth += 1
        try:
            if self.depth > 5 or self.chance(0.4):
                return self.pick(
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
            return self.pick(
                lambda: f"({self.number()} {self.pick('+', '-', '*', '/', '//', '%', '+', '-')} {self.number()})",
                lambda: f"({self.number()} ** {self.pick(0, 2, 3)})",
                lambda: f"({self.number()})|{self.call(NUMBER_FILTERS, 'filter')}",
                lambda: f"({self.collection()})|length",
                lambda: f"({self.text()}).{self.call(ASK_TEXT, 'method')}",
                lambda: f"(-{self.number()})",
                self.list_method,
                lambda: f"({self.pick('l', '[1, 2.5]')})|{self.pick('sum', 'max', 'min', 'first', 'last')}",
            )()
        finally:
            self.depth -= 1

    def list_method(self) -> str:
        name = self.pick("count", "index")
        self.note(f"method {name} of lists")
        return f"l.{name}({self.pick('1', '2', 'i')})"

    def collection(self) -> str:
        self.depth += 1
        try:
            if self.depth > 4 or self.chance(0.4):
                return self.pick(
                    "l",
                    "w",
                    "r",
                    "m",
                    "[]",
                    "[1, 'a', none]",
                    "(1, 2)",
                    "{'a': 1, 'b': [2]}",
                    "messages",
                    "messages[0]",
                    "range(4)",
                )
            return self.pick(
                lambda: f"({self.pick('w', 'l')})|{self.call(LIST_FILTERS, 'filter')}|list",
                lambda: f"r|{self.call(DICT_LIST_FILTERS, 'filter')}|list",
                lambda: f"({self.text()}).{self.call(LIST_METHODS_OF_TEXT, 'method')}",
                lambda: f"[{self.any()}, {self.any()}]",
                lambda: f"{{'k': {self.any()}, {self.quoted(self.pick(*WORDS))}: {self.any()}}}",
                lambda: f"(l + {self.pick('[9]', 'w')})",
                lambda: f"(m.{self.note('method ' + self.pick('items', 'keys', 'values'))[7:]}())|list",
                lambda: f"{self.pick('l', 'm')}.{self.note('method copy')[7:]}()",
                lambda: f"dict.{self.note('method fromkeys')[7:]}({self.pick('w', 'l', 't')}, {self.any()})",
                lambda: f"l[{self.pick('1:', '::-1', ':2', '-1:')}]",
                lambda: f"{self.note('function dict')[9:]}(m, z={self.any()})",
                lambda: "m|dictsort" if self.note("filter dictsort") else "",
            )()
        finally:
            self.depth -= 1

    def any(self) -> str:
        choices = [
            self.text,
            self.number,
            self.collection,
            lambda: self.pick("n", "y", "none", "true", "zz", "m.zz", "false"),
        ]
        choices.append(
            lambda: (
                f"({self.collection()})|{self.call(TO_ANY, 'filter').replace('random', 'first').replace('items', 'items|list')}"  # noqa: E501
            )
        )
        choices.append(lambda: f"m.{self.note('method get')[7:]}({self.text()}, {self.pick(1, self.quoted('d'))})")
        return self.random.choices(choices, [5, 4, 3, 2, 2, 1])[0]()

    def condition(self) -> str:
        self.depth += 1
        try:
            test = self.pick(*TESTS)
            return self.pick(
                lambda: f"{self.any()} is {self.pick('', 'not ')}{self.noted_test(test)}",
                lambda: f"{self.number()} {self.pick('<', '>', '<=', '>=', '==', '!=')} {self.number()}",
                lambda: f"{self.any()} {self.pick('==', '!=')} {self.any()}",
                lambda: f"{self.text()} {self.pick('in', 'not in')} {self.pick('t', 'w', 'm', 'u')}",
                lambda: f"not {self.any()}",
                lambda: f"({self.any()} {self.pick('and', 'or')} {self.any()})",
                lambda: "loop.first" if self.chance(0.3) else "y",
            )()
        finally:
            self.depth -= 1

    def noted_test(self, test: str) -> str:
        self.note("test " + test.split("(", maxsplit=1)[0].split(" ", maxsplit=1)[0])
        return test

    def tag(self, content: str) -> str:
        return "{%" + self.pick("", "", "-", "+") + f" {content} " + self.pick("", "", "-") + "%}"

    def output(self) -> str:
        return "{{" + self.pick("", "", "-") + f" {self.any()} " + self.pick("", "", "-") + "}}"

    def body(self) -> str:
        return "".join(self.statement() for _ in range(self.random.randint(1, 3)))

    def fresh(self) -> str:
        self.names += 1
        return f"v{self.names % 5}"

    def statement(self) -> str:
        self.depth += 1
        try:
            if self.depth > 4 or self.chance(0.4):
                return self.pick(self.output, self.output, lambda: self.pick("text ", "\n", "  ", "é\n  ", "<|x|>"))()
            name = self.pick(
                "if",
                "for",
                "for",
                "set",
                "block set",
                "macro",
                "call",
                "filter",
                "with",
                "raw",
                "comment",
                "generation",
                "namespace",
                "recursive",
                "block",
            )
            self.note("statement " + name)
            return getattr(self, name.replace(" ", "_") + "_")()
        finally:
            self.depth -= 1

    def if_(self) -> str:
        middle = self.tag(f"elif {self.condition()}") + self.body() if self.chance(0.3) else ""
        other = self.tag("else") + self.body() if self.chance(0.5) else ""
        return self.tag(f"if {self.condition()}") + self.body() + middle + other + self.tag("endif")

    def for_(self) -> str:
        kind = self.pick("plain", "messages", "items", "pairs", "generator")
        target, source = {
            "plain": (self.fresh(), self.pick("l", "w", "t", "range(3)", self.collection())),
            "messages": (
                "message",
                self.pick("messages", "messages[::-1]", "messages[1:]", "messages|selectattr('role', 'defined')"),
            ),
            "items": ("k, v", self.pick("m.items()", "m|dictsort", "m|items")),
            "pairs": ("p, q", "[(1, 2), ('a', 'b')]"),
            "generator": (self.fresh(), self.pick("w|map('upper')", "l|select('odd')", "w|batch(2)")),
        }[kind]
        condition = f" if {self.condition()}" if self.chance(0.25) else ""
        inside = self.pick(
            "{{ loop." + self.note("loop " + self.pick(*LOOP))[5:] + " }}",
            "{{ loop.index }}{{ loop.last }}",
            "{{ loop.index0 ~ loop.revindex ~ loop.revindex0 ~ loop.length }}",
            "{{ loop.previtem }}|{{ loop.nextitem }}",
            "{{ loop.cycle('a', 'b') }}{{ loop.changed(1) }}",
            "{{ message.content }}",
            "{{ message." + self.pick("content", "role") + "|trim }}",
            "",
            f"{{{{ {target.split(',')[0]} }}}}",
            "{{ loop.depth ~ loop.depth0 ~ loop.first }}",
        )
        stop = (
            f"{{% if {self.condition()} %}}{{% {self.note('statement ' + self.pick('break', 'continue'))[10:]} %}}{{% endif %}}"  # noqa: E501
            if self.chance(0.15)
            else ""
        )
        other = self.tag("else") + self.body() if self.chance(0.2) else ""
        return (
            self.tag(f"for {target} in {source}{condition}") + inside + stop + self.body() + other + self.tag("endfor")
        )

    def recursive_(self) -> str:
        return (
            "{% for x in [1, [2, [3]]] recursive %}{{ loop.depth }}{{ loop(x) if x is not number else x }}{% endfor %}"
        )

    def set_(self) -> str:
        name = self.fresh()
        return self.tag(f"set {name} = {self.any()}") + self.pick("", "{{ " + name + " }}")

    def block_set_(self) -> str:
        name = self.fresh()
        return (
            self.tag(f"set {name}{self.pick('', '|upper', ' | trim')}")
            + self.body()
            + self.tag("endset")
            + "{{ "
            + name
            + " }}"
        )

    def macro_(self) -> str:
        name, extra = self.fresh(), self.pick("", "{{ varargs }}", "{{ kwargs }}", "{{ caller }}")
        call = self.pick("1", "1, 2", "a=3", "'x', b=2", "", "1, 2, 3", "z=1")
        return (
            self.tag(f"macro {name}(a, b={self.pick('a', '5', self.text())})")
            + "[{{ a }}{{ b }}"
            + extra
            + "]"
            + self.body()
            + self.tag("endmacro")
            + "{{ "
            + f"{name}({call})"
            + " }}"
        )

    def call_(self) -> str:
        name = self.fresh()
        return (
            f"{{% macro {name}(x='q') %}}<{{{{ caller(x) }}}}>{{% endmacro %}}"
            + self.tag(f"call(p) {name}({self.pick('', '1', 't')})")
            + "{{ p }}"
            + self.body()
            + self.tag("endcall")
        )

    def filter_(self) -> str:
        return self.tag(f"filter {self.call(TEXT_FILTERS, 'filter')}") + self.body() + self.tag("endfilter")

    def with_(self) -> str:
        return self.tag(f"with a = {self.any()}, b = {self.any()}") + "{{ a }}" + self.body() + self.tag("endwith")

    def raw_(self) -> str:
        return self.tag("raw") + self.pick("{{ x }}", "{% if %}\n", " a ") + self.tag("endraw")

    def block_(self) -> str:
        self.names += 1
        name = f"b{self.names}"
        shown = "{{ self." + name + "() }}" if self.chance(0.3) else ""
        return "{% block " + name + " %}" + self.body() + "{% endblock %}" + shown

    def comment_(self) -> str:
        return "{#" + self.pick("", "-") + " c\n " + self.pick("", "-", "+") + "#}"

    def generation_(self) -> str:
        return self.tag("generation") + self.body() + self.tag("endgeneration")

    def namespace_(self) -> str:
        self.note("function namespace")
        step = self.pick("ns.a ~ x", "ns.a + 1", "x")
        return f"{{% set ns = namespace(a={self.pick(0, chr(39) + 'q' + chr(39))}) %}}{{% for x in l %}}{{% set ns.a = {step} %}}{{% endfor %}}{{{{ ns.a }}}}"  # noqa: E501

    def functions(self) -> str:
        name = self.pick("cycler", "joiner", "raise_exception", "strftime_now", "range")
        self.note(f"function {name}")
        return {
            "cycler": "{% set c = cycler('a', 'b') %}{{ c.next() ~ c.current ~ c.next() ~ c.next() }}",
            "joiner": "{% set j = joiner('|') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}",
            "raise_exception": "{% if " + self.condition() + " %}{{ raise_exception('no ' ~ i) }}{% endif %}",
            "strftime_now": "{{ strftime_now('" + self.pick("%Y-%m-%d", "%d %b %Y", "%H:%M") + "') }}",
            "range": "{{ range(" + self.pick("3", "1, 4", "9, 0, -3") + ")|list }}",
        }[name]

    def template(self) -> str:
        self.depth = 0
        parts = [self.statement() for _ in range(self.random.randint(1, 4))]
        if self.chance(0.2):
            parts.append(self.functions())
        return "".join(parts)

    def messages(self) -> list[dict[str, Any]]:
        roles = ("system", "user", "assistant", "tool")
        return [{"role": self.pick(*roles), "content": self.pick(*WORDS)} for _ in range(self.random.randint(1, 4))]
