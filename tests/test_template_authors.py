"""Whatever a template does to a text, the text stays the message's: nobody's words pass for the template's."""

from __future__ import annotations

import pytest

import tokentape as tt

CONTENT = "zq see https://a.example/xyz\tand <b>zq</b> &amp; zq@a.example.org"
OPERATIONS = (
    *("content|wordwrap(9)", "content|urlize", "content|striptags", "content|pprint", "content|urlencode"),
    *("content|title", "content|indent(2, true)", "content|center(90)", "content|replace('b', 'ww')", "content|e"),
    *("content.expandtabs()", "content.zfill(90)", "content.translate({98: 99})", "content.swapcase()"),
    *(
        "content|truncate(30)",
        "content|list|join('-')",
        "[content]|pprint",
        "{'a': content}|xmlattr",
        "'%-90s' % content",
    ),
    *("{'a': content}|urlencode", "content.split('e')|join", "content[::-1]", "content|forceescape", "content|tojson"),
)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_message_keeps_its_words(operation: str):
    template = tt.ChatTemplate("{% set content = messages[0].content %}{{ " + operation + " }}")
    rendered = template.render([{"role": "user", "content": CONTENT}])
    written = "".join(rendered.text[span.start : span.end] for span in rendered.spans if span.kind != "value")
    assert {"z", "q"} <= set(rendered.text.lower())
    assert not {"z", "y"} & set(written.lower())


def test_what_is_translated_belongs_to_the_character_it_stands_for():
    source = "{{ messages[0].content.translate('ab'.maketrans('ab', 'xy', 'c')) }}{{ 'a'.translate({97: 'z'}) }}"
    rendered = tt.ChatTemplate(source).render([{"role": "user", "content": "abcd"}])
    assert [(rendered.text[s.start : s.end], s.field) for s in rendered.spans] == [("xyd", "content"), ("z", None)]


def test_a_loop_over_a_running_loop_takes_its_items():
    source = "{% for m in messages %}{{ m.content }}{% for n, _ in loop %}[{{ n.content }}]{% endfor %}{% endfor %}"
    messages = [{"role": "user", "content": letter} for letter in "abc"]
    assert tt.ChatTemplate(source).render(messages).text == "a[b][c]"


EXPRESSIONS = (
    *("'<' + m.content + '>' + m['role']", "m.content + ('&'|safe) + m.content + '<'", "('<'|safe) + m.content"),
    *("'<' + (m.content + given) + given + '>'", "1 + 2", "[m.content] + [m.role]", "'<' + shown(m) + '>' + shown(m)"),
    *("m.content", "m['content']", "m.parts", "m.none_such", "'<'", "given", "'' + m.content + ''", "m.content + ''"),
)


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("loop", ["for m in messages", "set m = messages[1]"])
def test_what_is_written_at_once_has_the_authors_of_a_value_that_is_written(expression: str, loop: str):
    macro = "{% macro shown(m) %}{% generation %}({{ m.content }}){% endgeneration %}{% endmacro %}"
    end = "{% endfor %}" if loop.startswith("for") else ""
    direct = f"{macro}{{{{ given }}}}{{% {loop} %}}a{{{{ {expression} }}}}b{end}"
    through = f"{macro}{{{{ given }}}}{{% {loop} %}}a{{% set x = {expression} %}}{{{{ x }}}}b{end}"
    messages = [{"role": "user", "content": "<1>", "parts": ["é"]}, {"role": "assistant", "content": "2", "parts": 3}]
    one, two = (tt.ChatTemplate(source).render(messages, given="&") for source in (direct, through))
    assert (one.text, one.generation_spans) == (two.text, two.generation_spans)
    assert [span_of(span) for span in one.spans] == [span_of(span) for span in two.spans]


def span_of(span: tt.Span) -> tuple[object, ...]:
    return span.start, span.end, span.kind, span.message, span.field
