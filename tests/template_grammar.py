"""A grammar of chat templates, for comparing engines on what no corpus holds.

Each production notes the feature it uses, so that a run can count in how many templates each statement, filter, test,
method and function stood. Expressions mostly fit where they stand: a good part of the templates must render, or only
errors would be compared.
"""

from __future__ import annotations

import template_words as words
from template_expressions import Expressions

STATEMENTS = (
    *("if", "for", "for", "for", "set", "block set", "macro", "call", "filter", "with", "raw", "comment"),
    *("generation", "namespace", "recursive", "block", "loop over loop"),
)
PIECES = ("text ", "\n", "  ", "é\n  ", "<|x|>")
FOR = {
    "messages": ("message", ("messages", "messages[::-1]", "messages[1:]", "messages|selectattr('role', 'defined')")),
    "items": ("k, v", ("m.items()", "m|dictsort", "m|items", "messages[0].items()")),
    "pairs": ("p, q", ("[(1, 2), ('a', 'b')]", "r|groupby('k')")),
    "lazy": ("x", ("w|map('upper')", "l|select('odd')", "w|batch(2)")),
}
DEEPEST = 3


class Grammar(Expressions):
    """Draws one template after another."""

    def template(self) -> str:
        """A template; what it uses is added to `features`, once a template."""
        self.depth, self.noted = 0, set()
        parts = [self.statement() for _ in range(self.random.randint(1, 3))]
        if self.chance(0.1):
            parts.append(self.functions())
        self.features.update(self.noted)
        return "".join(parts)

    def tag(self, content: str) -> str:
        return "{%" + self.pick("", "", "-", "+") + f" {content} " + self.pick("", "", "-") + "%}"

    def output(self) -> str:
        return "{{" + self.pick("", "", "-") + f" {self.any()} " + self.pick("", "", "-") + "}}"

    def body(self) -> str:
        return "".join(self.statement() for _ in range(self.pick(1, 1, 2)))

    def fresh(self) -> str:
        self.names += 1
        return f"v{self.names % 5}"

    def statement(self) -> str:
        self.depth += 1
        try:
            if self.depth > DEEPEST or self.chance(0.4):
                return self.pick(self.output, self.output, lambda: self.pick(*PIECES))()
            name = self.pick(*STATEMENTS)
            self.note("statement " + name)
            return getattr(self, name.replace(" ", "_") + "_")()
        finally:
            self.depth -= 1

    def if_(self) -> str:
        middle = self.tag(f"{self.note('statement elif')} {self.condition()}") + self.body() if self.chance(0.3) else ""
        other = self.tag(self.note("statement else")) + self.body() if self.chance(0.5) else ""
        return self.tag(f"if {self.condition()}") + self.body() + middle + other + self.tag("endif")

    def for_(self) -> str:
        kind = self.pick("plain", *FOR)
        if kind == "plain":
            target, source = self.fresh(), self.pick("l", "w", "t", "range(3)", self.collection())
        else:
            target, source = FOR[kind][0], self.pick(*FOR[kind][1])
        condition = f" if {self.note('statement for-if') and self.condition()}" if self.chance(0.2) else ""
        inside = self.pick(
            "{{ loop." + self.note("loop " + self.pick(*words.LOOP)) + " }}",
            "{{ loop.index0 ~ loop.revindex ~ loop.revindex0 ~ loop.length }}",
            "{{ loop.previtem }}|{{ loop.nextitem }}",
            "{{ message.content }}{{ loop.last }}",
            "{{ message." + self.pick("content", "role") + "|trim }}",
            f"{{{{ {target.split(',')[0]} }}}}",
        )
        other = self.tag(self.note("statement for-else")[4:]) + self.body() if self.chance(0.2) else ""
        start = self.tag(f"for {target} in {source}{condition}")
        return start + inside + self.stop() + self.body() + other + self.tag("endfor")

    def stop(self) -> str:
        if self.chance(0.8):
            return ""
        name = self.note("statement " + self.pick("break", "continue"))
        return "{% if " + self.condition() + " %}{% " + name + " %}{% endif %}"

    def recursive_(self) -> str:
        start = "{% for x in [1, [2, [3]]] recursive %}{{ loop." + self.pick(*words.LOOP) + " }}"
        return start + "{{ loop(x) if x is not number else x }}{% endfor %}"

    def loop_over_loop_(self) -> str:
        shown = "{{ loop." + self.pick("index", "first", "length", "previtem", "nextitem", "last") + " }}"
        inner = "{% for z in loop %}[{{ z }}" + self.pick("", "{{ loop.index }}", shown) + "]{% endfor %}"
        source = self.pick("l", "w", "range(5)", "w|map('upper')", "[]")
        return "{% for x in " + source + " %}" + self.pick("", shown) + "{{ x }}" + inner + shown + "{% endfor %}"

    def set_(self) -> str:
        name = self.fresh()
        return self.tag(f"set {name} = {self.any()}") + self.pick("", "{{ " + name + " }}")

    def block_set_(self) -> str:
        name = self.fresh()
        start = self.tag(f"set {name}{self.pick('', '|upper', ' | trim')}")
        return start + self.body() + self.tag("endset") + "{{ " + name + " }}"

    def macro_(self) -> str:
        name, extra = self.fresh(), self.pick("", "varargs", "kwargs", "caller")
        shown = "{{ " + self.note("macro " + extra) + " }}" if extra else ""
        call = self.pick("1", "1, 2", "a=3", "'x', b=2", "", "1, 2, 3", "z=1", "*w", "**{'b': 2}")
        start = self.tag(f"macro {name}(a, b={self.pick('a', '5', self.text())})")
        return f"{start}[{{{{ a }}}}{{{{ b }}}}{shown}]{self.body()}{self.tag('endmacro')}{{{{ {name}({call}) }}}}"

    def call_(self) -> str:
        name = self.fresh()
        macro = f"{{% macro {name}(x='q') %}}<{{{{ caller(x) }}}}>{{% endmacro %}}"
        call = self.tag(f"call(p) {name}({self.pick('', '1', 't')})")
        return macro + call + "{{ p }}" + self.body() + self.tag("endcall")

    def filter_(self) -> str:
        return self.tag(f"filter {self.named(words.TEXT_FILTERS, 'filter')}") + self.body() + self.tag("endfilter")

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
        start = "{% set ns = namespace(a=" + self.pick("0", "'q'") + ") %}{% for x in l %}"
        step = "{% set ns.a = " + self.pick("ns.a ~ x", "ns.a + 1", "x") + " %}"
        return start + step + "{% endfor %}{{ ns.a }}"

    def functions(self) -> str:
        name = self.note("function " + self.pick("cycler", "joiner", "raise_exception", "strftime_now", "range"))
        return {
            "cycler": "{% set c = cycler('a', t) %}{{ c.next() ~ c.current ~ c.next() ~ c.reset() ~ c.next() }}",
            "joiner": "{% set j = joiner('|') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}",
            "raise_exception": "{% if " + self.condition() + " %}{{ raise_exception('no ' ~ i) }}{% endif %}",
            "strftime_now": "{{ strftime_now('" + self.pick("%Y-%m-%d", "%d %b %Y", "%H:%M") + "') }}",
            "range": "{{ range(" + self.pick("3", "1, 4", "9, 0, -3") + ")|list }}",
        }[name]
