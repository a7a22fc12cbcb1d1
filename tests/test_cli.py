"""The command line: results on standard output, trouble on standard error with exit code 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import tokentape as tt
from tokentape.cli import COMMANDS, main
from tokentape.demo.replay import COMPLETIONS
from tokentape.demo.small_chat import TEMPLATE, TRAINING_TEXT, bpe_tokenizer, small_chat


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model folder with the demo's tokenizer and template."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "tokenizer.json").write_text(bpe_tokenizer(TRAINING_TEXT))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>"}))
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The file of a demo run."""
    folder = tmp_path_factory.mktemp("demo")
    assert main(["demo", "--replay", "--path", str(folder)]) == 0
    return folder / "trajectories.arrow"


def chat_file(tmp_path, value):
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(value))
    return str(path)


MESSAGES = [{"role": "user", "content": "What is 12 + 30?"}, {"role": "assistant", "content": "CALC(12 + 30)"}]


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"tokentape {tt.__version__}\n"


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_has_examples(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([*command, "--help"])
    assert "examples:\n  tokentape" in capsys.readouterr().out


def test_render(model, tmp_path, capsys):
    arguments = ["render", str(model), chat_file(tmp_path, MESSAGES)]
    expected = small_chat().render(MESSAGES)
    assert main(arguments) == 0
    assert capsys.readouterr().out == expected.text
    assert main([*arguments, "--ids"]) == 0
    assert [int(token) for token in capsys.readouterr().out.split()] == expected.token_ids.tolist()
    assert main([*arguments, "--color", "always"]) == 0
    assert "\x1b[1;32mCALC(12 + 30)<|im_end|>\x1b[0m" in capsys.readouterr().out
    assert main([*arguments, "--generation-prompt"]) == 0
    assert capsys.readouterr().out.endswith("<|im_start|>assistant\n")


def test_render_reads_standard_input_and_an_object_with_tools(model, tmp_path):
    template = tmp_path / "tools.jinja"
    template.write_text("{{ tools[0].name }} {{ mood }} {{ messages[0].content }}")
    command = [sys.executable, "-m", "tokentape", "render", model, "-", "--template", template, "--set", "mood=fine"]
    value = {"messages": MESSAGES, "tools": [{"name": "calculator"}]}
    result = subprocess.run(command, input=json.dumps(value), capture_output=True, text=True, check=True)
    assert result.stdout == "calculator fine What is 12 + 30?"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{", "no JSON: "),
        ('{"tools": []}', "no list of messages"),
        ('[{"role": "user"}, 5]', "message"),
    ],
)
def test_render_bad_input(model, tmp_path, capsys, value, message):
    path = tmp_path / "chat.json"
    path.write_text(value)
    assert main(["render", str(model), str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tokentape render: ")
    assert message in captured.err


def test_missing_files(model, tmp_path, capsys):
    assert main(["render", str(model), str(tmp_path / "none.json")]) == 2
    assert main(["render", str(tmp_path / "no-model"), "-"]) == 2
    assert main(["inspect", str(tmp_path / "none.arrow")]) == 2
    assert capsys.readouterr().err.count("none.") == 2


def test_inspect(run, model, capsys):
    assert main(["inspect", str(run)]) == 0
    plain = capsys.readouterr().out
    assert "rows 48, groups 12, rollouts 48" in plain
    assert "token_ids" in plain
    assert main(["inspect", str(run), "--row", "-1", "--model", str(model)]) == 0
    assert "⟦CALC(" in capsys.readouterr().out
    assert main(["inspect", str(run), "--row", "0", "--color", "always"]) == 0
    assert "\x1b[1;32m" in capsys.readouterr().out
    assert main(["inspect", str(run), "--row", "48"]) == 2
    assert "48 rows" in capsys.readouterr().err


def test_a_row_shows_each_token_once(run):
    row = tt.Batch.read(run).row(0)
    shown = tt.view.show_row(row, small_chat())
    for mark in ("⟦", "⟧", "⟨", "⟩", "◂stop"):
        shown = shown.replace(mark, "")
    assert shown == small_chat().decode(row.token_ids)


def test_a_view_tells_what_the_template_wrote_from_what_messages_say():
    chat = small_chat()
    trajectory = chat.start([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}])
    trajectory.act(chat.encode("Yo<|im_end|>"))
    header = "<|im_start|>"
    assert tt.view.show_trajectory(trajectory, chat) == (
        f"{header}system\n⟨Be brief.⟩<|im_end|>\n{header}user\n⟨Hi⟩<|im_end|>\n{header}assistant\n⟦Yo<|im_end|>⟧◂stop"
    )
    coloured = tt.view.show_trajectory(trajectory, chat, colour=True)
    trajectory.observe([{"role": "tool", "content": "7"}])
    assert tt.view.show_trajectory(trajectory, chat).endswith(
        f"⟦Yo<|im_end|>⟧◂stop\n{header}tool\n⟨7⟩<|im_end|>\n{header}assistant\n"
    )
    assert "\x1b[2m<|im_start|>user\x1b[0m" in coloured
    assert "\x1b[36mHi\x1b[0m" in coloured


def test_no_color_wins_in_a_terminal_and_a_pipe_is_plain(run):
    command = [sys.executable, "-m", "tokentape", "inspect", str(run), "--row", "0"]
    plain = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "\x1b" not in plain
    forced = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"FORCE_COLOR": "1"})
    assert "\x1b" in forced.stdout or os.environ.get("NO_COLOR")
    both = os.environ | {"FORCE_COLOR": "1", "NO_COLOR": "1"}
    assert "\x1b" not in subprocess.run(command, capture_output=True, text=True, check=True, env=both).stdout


def test_a_closed_pipe_is_no_error(run):
    command = f"{sys.executable} -m tokentape inspect {run} {'--row 0 ' * 400} | head -1"
    result = subprocess.run(["/bin/bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


ENVIRONMENT = """
from tokentape.demo import Calculator, small_chat
from tokentape.demo.environment import questions

def few(chat=None):
    return Calculator(chat or small_chat(), questions(3))

nothing = 5
"""


def test_collect(tmp_path, model):
    (tmp_path / "my_env.py").write_text(ENVIRONMENT)
    command = [
        sys.executable,
        "-m",
        "tokentape",
        "collect",
        "my_env:few",
        "--replay",
        COMPLETIONS,
        "--path",
        "run.tape",
    ]
    for extra in ([], ["--model", str(model)]):  # the second run finds everything done
        result = subprocess.run([*command, *extra], capture_output=True, text=True, check=True, cwd=tmp_path)
        assert "3 groups" in result.stderr
        assert result.stdout == ""
    assert len(tt.Batch.read(tmp_path / "run.tape")) == 12


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:X", "no module 'no_such_module'"),
        ("json", "give module:Class"),
        ("json:nothing", "has no 'nothing'"),
        ("json:JSONDecoder", "is no Environment"),
    ],
)
def test_collect_bad_environment(name, message, tmp_path, capsys):
    assert main(["collect", name, "--replay", "x.jsonl", "--path", str(tmp_path / "run.tape")]) == 2
    assert message in capsys.readouterr().err


def test_collect_from_a_server_that_is_not_there(tmp_path, monkeypatch, model, capsys):
    (tmp_path / "lone_env.py").write_text(ENVIRONMENT)
    monkeypatch.chdir(tmp_path)
    arguments = ["collect", "lone_env:few", "--llama-cpp", "http://127.0.0.1:9", "--path", "run.tape", "--retries", "0"]
    assert main([*arguments, "--model", str(model)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "tokentape collect: llama.cpp server at http://127.0.0.1:9: cannot connect" in captured.err
    assert "Traceback" not in captured.err
    assert main([*arguments[:3], "not-a-url", *arguments[4:]]) == 2
    assert "'not-a-url' is no URL of a server" in capsys.readouterr().err


def test_a_truncated_model_file(tmp_path, capsys):
    (tmp_path / "model.gguf").write_bytes(b"GGUF\x03\x00\x00\x00")
    assert main(["render", str(tmp_path / "model.gguf"), "-"]) == 2
    assert "is truncated; download or copy it again" in capsys.readouterr().err


def test_collect_checks_the_model_behind_the_server(tmp_path, monkeypatch, model, llama, capsys):
    (tmp_path / "lone_env.py").write_text(ENVIRONMENT)
    monkeypatch.chdir(tmp_path)
    arguments = ["collect", "lone_env:few", "--llama-cpp", llama.url, "--path", "run.tape", "--model", str(model)]
    assert main(arguments) == 2
    assert "it holds another model than the chat" in capsys.readouterr().err
    assert not (tmp_path / "run.tape").exists()


def test_wrong_arguments_exit_with_2(capsys):
    for arguments in ([], ["frobnicate"], ["inspect"], ["collect", "a:b", "--path", "x.tape"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
    capsys.readouterr()
