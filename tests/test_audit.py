"""Audits: prefix stability with the conversation that shows it, findings, seams; words, JSON, command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import small
import tokentape as tt
from tokentape.cli import main

if TYPE_CHECKING:
    from pathlib import Path

THINKING = (
    "{% for m in messages %}<{{ m.role }}>\n{% if m.reasoning_content and loop.last %}<think>{{ m.reasoning_content }}"
    "</think>{% endif %}{{ m.content }}<end>\n{% endfor %}{% if add_generation_prompt %}<assistant>\n{% endif %}"
)


def test_a_stable_template_holds_everywhere():
    audit = small.chat().audit()
    assert audit.prefix_stable
    assert "It keeps its prefixes" in str(audit)
    told = audit.to_dict()
    assert {check["verdict"] for checks in told["checks"].values() for check in checks} == {"ok"}
    assert told["stop_tokens"] == [{"id": 259, "text": "<end>", "sources": ["tokenizer", "template"]}]
    assert (told["turn_ends"], told["after_turn_end"], told["unsafe_seams"]) == (["<end>"], "\n", [])
    assert json.loads(audit.to_json()) == told
    assert repr(audit) == 'Audit(template="default", prefix_stable=True)'


def test_a_break_is_shown_by_a_conversation_that_renders_so():
    chat = tt.Chat(small.tokenizer(), THINKING, special_tokens={"eos_token": "<end>"})
    told = chat.audit().to_dict()
    assert not told["prefix_stable"]
    (broken,) = [check for check in told["checks"]["P2"] if check["verdict"] == "break"]
    messages = broken["conversation"]["messages"]
    before = chat.render(messages[: broken["step"]]).text
    after = chat.render(messages[: broken["step"] + 1], add_generation_prompt=True).text
    assert not after.startswith(before)
    assert ("strips", "reasoning in history") in {(found["kind"], found["what"]) for found in told["findings"]}
    assert {seam["answer"] for seam in told["unsafe_seams"]} == {"\ntext", "\n\ntext"}


def test_a_named_template_is_audited_by_name():
    chat = tt.Chat(small.tokenizer(), {"default": small.TEMPLATE, "other": THINKING})
    assert chat.audit().prefix_stable
    assert not chat.audit(chat_template="other").prefix_stable
    with pytest.raises(tt.RenderError, match="no chat template named"):
        chat.audit(chat_template="none")
    with pytest.raises(tt.RenderError, match="there is no chat template"):
        tt.Chat(small.tokenizer()).audit()


def test_the_command_line_audits_a_template_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "template.jinja"
    file.write_text(THINKING)
    assert main(["audit", str(file), "--special", "eos_token=<end>"]) == 0
    assert "It does not keep its prefixes" in capsys.readouterr().out
    assert main(["audit", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["prefix_stable"] is False
    assert main(["audit", str(tmp_path / "none.jinja")]) == 2
    assert "no such model folder" in capsys.readouterr().err
