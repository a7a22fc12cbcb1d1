"""`ChatTemplate` from Python: what it accepts, what it gives, and what it refuses."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import enum
import json
import pickle
import warnings
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import corpus
import tokentape as tt

SOURCE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}"
SPECIAL = {"eos_token": "</s>"}
HI = [{"role": "user", "content": "Hi"}]


def shown(value: object) -> str:
    """A message field as the template sees it."""
    return tt.ChatTemplate("{{ messages[0].x|tojson }}").render([{"x": value}]).text


def test_text_spans_and_generation_spans():
    source = "{% for m in messages %}é{% generation %}{{ m.content }}!{% endgeneration %}{% endfor %}{{ tools|tojson }}"
    rendered = tt.ChatTemplate(source).render([{"role": "assistant", "content": "ü"}], tools=[{"a": 1}])
    assert rendered.text == str(rendered) == 'éü![{"a": 1}]'
    assert rendered.generation_spans == [(1, 3)]
    spans = [(s.start, s.end, s.kind, s.message, s.field, s.role) for s in rendered.spans]
    assert spans == [
        (0, 1, "scaffold", 0, None, "assistant"),
        (1, 2, "value", 0, "content", "assistant"),
        (2, 3, "scaffold", 0, None, "assistant"),
        (3, 13, "value", -1, "tools", None),
    ]


@dataclasses.dataclass
class Message:
    role: str
    content: object


class Model:
    def __init__(self, **fields: object):
        self.fields = fields

    def model_dump(self) -> dict[str, object]:
        return self.fields


class Role(enum.StrEnum):
    USER = "user"


@pytest.mark.parametrize(
    "messages",
    [
        HI,
        tuple(HI),
        json.dumps(HI),
        json.dumps(HI).encode(),
        bytearray(json.dumps(HI).encode()),
        [Message("user", "Hi")],
        [Model(role="user", content="Hi")],
        [OrderedDict(HI[0])],
        [{"role": Role.USER, "content": np.str_("Hi")}],
        iter(HI),
    ],
    ids=lambda value: type(value).__name__,
)
def test_messages_come_in_many_forms(messages: object):
    assert tt.ChatTemplate(SOURCE, special_tokens=SPECIAL).render(messages).text == "<user>Hi</s>"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**70, str(2**70)),
        (-(2**63), str(-(2**63))),
        (1e-7, "1e-07"),
        (np.int64(3), "3"),
        (np.float32(0.5), "0.5"),
        (np.bool_(False), "false"),
        (enum.IntEnum("Number", "ONE")(1), "1"),
        ((1, [2, {"k": None}]), '[1, [2, {"k": null}]]'),
        ({1: "a", None: "b", True: "c", 1.5: "d"}, '{"1": "c", "null": "b", "1.5": "d"}'),
        (np.zeros(2), '"<ndarray>"'),
        (object(), '"<object>"'),
        ({1, 2}, '"<set>"'),
        (Message("user", {"a": Model(b=1)}), '{"role": "user", "content": {"a": {"b": 1}}}'),
        (Message, '"<type>"'),
    ],
    ids=repr,
)
def test_values_become_plain_data(value: object, expected: str):
    assert shown(value) == expected


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


CYCLE: list[object] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (CYCLE, "RecursionError"),
        (nested(100_000), "RecursionError"),
        ("\ud800", "UnicodeEncodeError"),
        ({"\udfff": 1}, "UnicodeEncodeError"),
        (10**5000, "ValueError"),
        ({(1, 2): 3}, "TypeError"),
    ],
    ids=["cycle", "deep", "surrogate", "surrogate key", "huge", "tuple key"],
)
def test_bad_values_name_the_message(value: object, kind: str):
    with pytest.raises(tt.RenderError, match="message 1") as caught:
        tt.ChatTemplate(SOURCE).render([{"role": "user"}, {"role": "user", "content": value}])
    assert caught.value.kind == kind


@pytest.mark.parametrize("messages", [["Hi"], [1], "[1]", '{"role": "user"}', 3, {"role": "user"}, [None]], ids=repr)
def test_messages_that_are_no_dicts(messages: object):
    with pytest.raises(tt.RenderError, match=r"messages? ") as caught:
        tt.ChatTemplate(SOURCE).render(messages)
    assert caught.value.kind == "TypeError"


def test_a_broken_template_names_line_and_column():
    with pytest.raises(tt.TemplateError, match=r"line 2, column 6") as caught:
        tt.ChatTemplate("a\n{{ x }")
    assert (caught.value.kind, caught.value.line) == ("TemplateSyntaxError", 2)
    with pytest.raises(tt.TemplateError, match="no filter named 'nope'") as caught:
        tt.ChatTemplate("\n\n{{ x|nope }}")
    assert (caught.value.kind, caught.value.line) == ("TemplateAssertionError", 3)


def test_a_rendering_error_names_line_and_message():
    source = "{% for m in messages %}\n{{ m.content + 1 }}{% endfor %}"
    with pytest.raises(tt.RenderError, match="line 2 of the chat template, message 0") as caught:
        tt.ChatTemplate(source).render(HI)
    assert (caught.value.kind, caught.value.line, caught.value.message_index) == ("TypeError", 2, 0)


def test_what_the_template_says_itself_stays_unchanged():
    source = "{% for m in messages %}{{ raise_exception('No ' ~ m.role) }}{% endfor %}"
    with pytest.raises(tt.RenderError, match=r"^No user$") as caught:
        tt.ChatTemplate(source).render(HI)
    assert (caught.value.kind, caught.value.message_index) == ("TemplateError", 0)


@pytest.mark.parametrize(
    "source",
    [
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}",
        "{% set ns = namespace(t='x') %}{% for i in range(99) %}{% set ns.t = ns.t * 2 %}{% endfor %}",
        "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
        "{{ 'x' * 9999999999 }}",
        "{{ 7 ** 9999999 }}",
        "{{ '%9999999999d' % 1 }}",
        "{{ 'a'.ljust(99999999999) }}",
        "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
    ],
    ids=lambda source: source[:30],
)
def test_runaway_templates_are_stopped(source: str):
    with pytest.raises(tt.RenderError):
        tt.ChatTemplate(source).render([])


def test_an_argument_that_is_never_read_gives_a_warning():
    template = tt.ChatTemplate("{% if enable_thinking %}x{% endif %}")
    assert template.variables == ["enable_thinking"]
    with pytest.warns(UserWarning, match="enable_thinkin.*it reads enable_thinking"):
        template.render([], enable_thinkin=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert template.render([], enable_thinking=True).text == "x"


def test_the_clock_is_an_argument():
    template = tt.ChatTemplate("{{ strftime_now('%d %b %Y') }}")
    assert template.render([], now=datetime.datetime(2026, 11, 30)).text == "30 Nov 2026"
    today = datetime.datetime.now().strftime("%d %b %Y")
    assert template.render([]).text in (today, datetime.datetime.now().strftime("%d %b %Y"))


def test_special_tokens_and_arguments_of_one_name():
    template = tt.ChatTemplate("{{ bos_token }}", special_tokens={"bos_token": "<s>"})
    assert template.render([]).text == "<s>"
    assert template.render([], bos_token="<b>").text == "<b>"
    assert template.render([], template_kwargs={"bos_token": None}).text == "None"


def test_it_pickles_and_copies():
    template = tt.ChatTemplate(SOURCE, special_tokens=SPECIAL)
    for other in (pickle.loads(pickle.dumps(template)), copy.deepcopy(template)):
        assert other.render(HI).text == template.render(HI).text
        assert (other.source, other.special_tokens) == (SOURCE, SPECIAL)


def test_batches_and_threads_agree_with_one_by_one():
    template = tt.ChatTemplate(SOURCE, special_tokens=SPECIAL)
    conversations = [[{"role": "user", "content": str(i) * 50}] * (i % 7) for i in range(200)]
    expected = [template.render(messages).text for messages in conversations]
    assert [rendered.text for rendered in template.render_batch(conversations)] == expected
    with ThreadPoolExecutor(4) as pool:
        assert [rendered.text for rendered in pool.map(template.render, conversations)] == expected


@pytest.mark.parametrize("limit", [-1, 0, 1, 2, 3])
@pytest.mark.parametrize("text", ["", "  ", "a", " a ", "a b ", "  a  b  c  ", "a\u2003b\x1c c\n"])
def test_texts_are_split_at_spaces_as_python_splits_them(text: str, limit: int):
    template = tt.ChatTemplate("{{ [text.split(none, limit), text.rsplit(none, limit)] }}")
    assert template.render([], text=text, limit=limit).text == str([text.split(None, limit), text.rsplit(None, limit)])


def test_the_corpus_renders_from_python():
    now = datetime.datetime(2026, 11, 30, 9, 5, 7)
    wrong, count, templates = [], 0, {}
    for record in corpus.records("goldens.jsonl.gz")[::10]:
        case = corpus.conversations()[record["c"]]
        kwargs = dict(case["kwargs"])
        special = {} if kwargs.pop("__no_special__", False) else corpus.SPECIAL_TOKENS
        try:
            key = (record["t"], bool(special))
            if key not in templates:
                templates[key] = tt.ChatTemplate(corpus.template(record["t"]), special_tokens=special)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                text = templates[key].render(
                    case["messages"],
                    tools=case["tools"],
                    documents=case["documents"],
                    add_generation_prompt=bool(record["g"]),
                    continue_final_message=case["continue_final_message"],
                    now=now,
                    template_kwargs=kwargs,
                )
            result = text.text == record.get("out")
        except tt.TokentapeError as error:
            result = error.kind == record.get("err")
        count += 1
        if not result:
            wrong.append((record["t"], record["c"], record["g"]))
    corpus.counts["goldens from Python"] = count
    assert not wrong
