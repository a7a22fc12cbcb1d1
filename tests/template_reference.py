"""One template and one conversation, by jinja2 through transformers and by `ChatTemplate`.

Importing it needs transformers. Its clock and its compiler are replaced, so a test restores them: see `steady`.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import transformers.utils.chat_template_utils as reference

import tokentape as tt

NOW = datetime.datetime(2026, 11, 30, 9, 5, 7)
ENVIRONMENT = reference._cached_compile_jinja_template("").environment


class Frozen(datetime.datetime):
    @classmethod
    def now(cls, tz: Any = None) -> datetime.datetime:
        return cls(2026, 11, 30, 9, 5, 7)


@contextmanager
def steady() -> Iterator[None]:
    """transformers with a clock that stands, and with a compiler that `expected` may replace."""
    compiler = reference._compile_jinja_template
    with mock.patch.multiple(reference, datetime=Frozen, _compile_jinja_template=compiler):
        yield


def compiled(source: str) -> Any:
    """What `render_jinja_template` gets for a source: the template, or the error of compiling it."""
    try:
        return ENVIRONMENT.from_string(source)
    except Exception as error:
        return error


def usable(template: Any) -> Any:
    """A template that compiled; the error of one that did not is raised."""
    if isinstance(template, Exception):
        raise template
    return template


def failure(error: Exception, kind: str) -> tuple[str, Any]:
    """An error by its class, and by its message where the template wrote it."""
    return "error", (kind, str(error).splitlines()[0] if kind == "TemplateError" else None)


def expected(template: Any, messages: list[dict[str, Any]], arguments: dict[str, Any]) -> tuple[str, Any]:
    try:
        reference._compile_jinja_template = lambda _: usable(template)
        messages = reference._normalize_chat_messages(messages)
        texts, spans = reference.render_jinja_template(
            [messages], chat_template="{% generation %}", return_assistant_tokens_mask=True, **arguments
        )
    except Exception as error:
        return failure(error, type(error).__name__)
    return "text", (texts[0], [tuple(span) for span in spans[0]])


def parsed(source: str) -> tt.ChatTemplate | Exception:
    try:
        return tt.ChatTemplate(source)
    except tt.TemplateError as error:
        return error


def given(template: Any, messages: list[dict[str, Any]], arguments: dict[str, Any]) -> tuple[str, Any]:
    try:
        rendered = usable(template).render(messages, now=NOW, template_kwargs=arguments)
    except (tt.TemplateError, tt.RenderError) as error:
        return failure(error, error.kind)
    assert "".join(rendered.text[span.start : span.end] for span in rendered.spans) == rendered.text
    return "text", (rendered.text, rendered.generation_spans)
