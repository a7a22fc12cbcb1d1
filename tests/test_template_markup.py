"""Filters of web pages, and tables of characters, on texts drawn by chance: as jinja2 and Python have them."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("transformers")
from template_reference import compiled, expected, given, parsed, steady

PIECES = (
    *(
        "http://",
        "https://",
        "HTTPS://",
        "www.",
        "WWW.",
        "a",
        "ab",
        ".",
        "com",
        "org",
        ".info",
        ".İnfo",
        "xn--",
        "é",
        "²",
        "٣",
    ),
    *(
        "%",
        "-",
        "_",
        "[",
        "]",
        "::1",
        "127.0.0.1",
        ".1",
        ":80",
        ":",
        "/",
        "?q=1",
        "#x",
        " ",
        "\n",
        "(",
        ")",
        "<",
        ">",
        ",",
    ),
    *("&", "@", "mailto:", "a@b.example", '"', "'", "ftp://", "\u017f", "\u212a", "example", "\u3000", "\x1c"),
    *("&", "&a", "mp;", "lt", "#", "41", ";", "copy", "not", "in", "<!--", "-->", "#x", "81", "d800"),
)
VALUES = ("x", None, 66, "", [1], 10**9, True, "yy", 128512)
KEYS = (97, 98, "a", "b", "ab", 1.5, 64, 46)
SOURCES = (
    *("{{ v|urlize }}", "{{ v|urlize(9) }}", "{{ v|urlize(-2, true, '_x', 'b a') }}", "{{ v|safe|urlize(0) }}"),
    *("{{ v|urlize(extra_schemes=['ftp://', 'ab:']) }}", "{{ v|urlize(2.5) }}", "{{ v|urlize(extra_schemes='ab') }}"),
    *("{{ v|urlize(rel=1) }}", "{{ v|striptags }}", "{{ v.translate(d) }}", "{{ v.maketrans(d) }}", "{{ v|pprint }}"),
    *("{{ [v, {v: v.encode()}]|pprint }}", "{{ v.encode()|pprint }}", "{{ v|wordwrap(7) }}", "{{ v|safe|striptags }}"),
)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("source", SOURCES)
def test_texts_of_pieces_agree(source: str):
    drawn, (theirs, ours) = random.Random(source), (compiled(source), parsed(source))
    messages = [{"role": "user", "content": "Hi"}]
    with steady():
        for _ in range(150):
            text = "".join(drawn.choices(PIECES, k=drawn.randint(0, 60)))
            arguments = {"v": text, "d": {drawn.choice(KEYS): drawn.choice(VALUES) for _ in range(2)}}
            assert given(ours, messages, arguments) == expected(theirs, messages, arguments), arguments
