"""Expressions that the engine computes by a short way: sums, chains of conditions, integers, namespaces, loops."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers")
from template_reference import compiled, expected, given, parsed, steady

MESSAGES = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "", "n": 2},
    {"role": "user", "content": ["x"]},
]
#: What a variable holds, in turn.
VALUES = ("a", "", 3, 2**63 - 1, -(2**63), 2**70, 1.5, True, None, [1], (2,), {"k": 1}, {"index": 5}, [])
EXPRESSIONS = (
    *("v + 'b' + 'c'", "'a' + 'b' + v + 'c' + 'd'", "v + v + 'x'", "'' + v", "('a' + v) + 'b'", "v|safe + '<' + '>'"),
    *("'<' + v|safe + '>' + '&'", "v + 1", "1 + v + 2", "v - 1 - v", "1 - (2 - v)", "v - 9223372036854775807 - 2"),
    *("v|length - 1", "v|count + 1", "v|length() - v", "(messages|length - 1) - v", "v == messages|length + 0"),
    *("v < 3", "v >= 3 == true", "v != 1 + 2", "3 == v", "v > v - 1", "1 < v|length < 4"),
    *(
        "v and 'x' and v",
        "v or 0 or ''",
        "0 or v",
        "(v and 1) or (v or 2)",
        "not v and v",
        "missing and v",
        "v or missing",
    ),
    *("v.k and 1", "v.k", "v['k'] or 2", "v.items and 1", "v.index + 1", "v.index and v.missing"),
)
TEMPLATES = (
    *("{{ " + expression + " }}" for expression in EXPRESSIONS),
    *("{% if " + expression + " %}y{% else %}n{% endif %}" for expression in EXPRESSIONS),
    *(
        "{% for m in messages %}{{ m.content + 'a' + 'b' + v }}{% endfor %}",
        "{% for m in messages %}{{ v }}{% endfor %}",
    ),
    "{% set n = namespace(a=v, items=1, _b=2) %}{{ n.a }}{{ n.items }}{{ n.b }}{% if n.a and n.a - 1 %}y{% endif %}",
    "{% set n = namespace(a=v) %}{{ n._a }}{{ n.__class__ }}{{ n['a'] }}{% if n['a'] %}y{% endif %}",
    "{% set n = namespace() %}{{ n.a + 1 }}",
    "{% for x in v %}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.last }}{{ loop.index - 1 }}{% endfor %}",
    "{% for x in messages|reverse %}{{ loop.previtem.n }}{{ loop.revindex0 - loop.index }}{% endfor %}",
    "{% for x in messages if x.role == 'user' %}{{ loop.previtem }}{{ loop.index0 - 1 }}{{ loop.length }}{% endfor %}",
    "{% for x in messages %}{% for y, l in loop %}{{ y.n }}{{ l.index }}{{ l.previtem.n }}{% endfor %}{% endfor %}",
    *(
        "{% set n = namespace(l={}) %}{% for x in [1, 2, 3] if "
        + condition
        + " %}{% set n.l = loop %}{{ x }}{% endfor %}"
        for condition in ("n.l is mapping or n.l.index < 2", "n.l is mapping or n.l.previtem", "not n.l.nextitem")
    ),
    "{% for i in range(3) %}{{ loop.index0 - i }}{{ loop.previtem }}{{ loop.changed(i > 0) }}{% endfor %}",
    "{% macro f(a) %}{{ a + 'b' + 'c' }}{% endmacro %}{{ f(v) + 'd' + f('x') }}{{ f(v) }}",
    "{% set t %}{{ v }}{% endset %}{{ t + 'a' + t }}{{ t }}",
    # Assignments that only a branch reads.
    *(
        start
        + "{% for m in messages[::-1] %}{% set i = messages|length - 1 - loop.index0 %}{% if "
        + condition
        + " %}{{ i }}{% elif m.n %}{{ i }}b{% else %}"
        + otherwise
        + "{% endif %}{% endfor %}{{ i }}{{ messages is string }}"
        for start in ("", "{% set i = 5 %}", "{% set messages = v %}", "{% if v %}{% set messages = v %}{% endif %}")
        for condition in ("m.role == 'user'", "i == 1", "v and messages|length > i", "missing.x")
        for otherwise in ("", "{{ i }}c")
    ),
    "{% for m in messages %}{% set i = v|length %}{% if m.n %}{{ i }}{% endif %}{% endfor %}",
    "{% for m in messages %}{% set i = v - 1 %}{% if m.n == 5 %}{{ i }}{% endif %}{% endfor %}",
    (
        "{% for m in messages %}{% set i = loop.index %}{% set j = 1 - loop.index0 %}{% if m.n %}{{ i + j }}{% endif %}"
        "{% endfor %}{{ j }}"
    ),
    "{% for messages in [v, 'ab'] %}{% set i = messages|length %}{% if v == 1.5 %}{{ i }}{% endif %}{% endfor %}",
    (
        "{% for m in messages %}{% for x in [v] %}{% set i = loop.index %}{% if m.n %}{{ i }}{% endif %}{% endfor %}"
        "{% set i = loop.index0 - 1 %}{% if i %}{{ i }}{% endif %}{% endfor %}"
    ),
    (
        "{% set n = namespace(c=0) %}{% macro f(i) %}{% set n.c = n.c + 1 %}{{ n.c }}{% endmacro %}"
        "{% for m in messages %}{% set i = messages|length - loop.index %}{% if f(i) == '2' %}{{ i }}{% endif %}"
        "{% endfor %}{{ n.c }}"
    ),
    "{% for m in messages recursive %}{% set i = loop.index %}{% if m.n %}{{ loop(['a']) }}{% endif %}{% endfor %}",
    # Messages last first.
    *(
        "{% set l = " + items + " %}{{ l|map(attribute='content')|list }}{{ l|length }}{{ l[0].n }}{{ l[-1:]|length }}"
        for items in (
            *("messages[::-1]", "messages[1::-1]", "messages[:0:-1]", "messages[0:2:-1]", "messages[5:-9:-1]"),
            *("messages[::-1][1:]", "messages[::-1][::-1]", "messages[::-1][::-2]", "messages[::-1] + messages[::-1]"),
            *("messages[::-1]|reverse|list", "messages[::-1]|list", "(messages[::-1], 1)[0]", "messages[::v]"),
        )
    ),
    "{{ messages[::-1] }}{{ messages[::-1]|tojson }}{{ messages[::-1] == messages|reverse|list }}",
    "{% set l = messages[::-1] %}{{ l is sameas l }}{{ l is sameas messages[::-1] }}{{ messages[0] in l }}",
    (
        "{% for m in messages[::-1] %}{{ loop.index }}{{ loop.length }}{{ loop.last }}{{ loop.nextitem.n }}{{ m.role }}"
        "{% endfor %}"
    ),
)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("source", TEMPLATES)
def test_short_ways_lead_where_the_long_one_does(source: str):
    theirs, ours = compiled(source), parsed(source)
    with steady():
        for value in VALUES:
            assert given(ours, MESSAGES, {"v": value}) == expected(theirs, MESSAGES, {"v": value}), value
