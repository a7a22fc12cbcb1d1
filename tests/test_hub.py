"""Hub ids through the client of the real hub, against a hub of our own on this machine."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import small

pytest.importorskip("huggingface_hub")
HUB_SERVER = Path(__file__).parent / "tools" / "hub_server.py"
PROGRAM = """
import sys, tokentape as tt
try:
    print(tt.Chat.from_pretrained(sys.argv[1]).render([{"role": "user", "content": "Hi"}]).text)
except tt.ArgumentError as error:
    sys.exit(str(error))
"""


@contextlib.contextmanager
def hub(folder, how="whole"):
    small.save_model(folder)
    command = [sys.executable, str(HUB_SERVER), str(folder), how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


def load(name, url, folder):
    settings = {"HF_ENDPOINT": url, "HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, name],
        capture_output=True, text=True, check=False, cwd=folder, env=os.environ | settings,
    )  # fmt: skip


def test_a_model_comes_from_the_hub(tmp_path):
    with hub(tmp_path / "files") as url:
        assert load("owner/model", url, tmp_path).stdout == "<user>Hi<end>\n\n"
        unknown = load("owner/other", url, tmp_path)
    assert unknown.returncode == 1
    assert "'owner/other' is no local folder, and it could not be had from the hub" in unknown.stderr
    assert "download the model and pass its folder" in unknown.stderr


@pytest.mark.parametrize("how", ["breaks", "is down"])
def test_a_download_that_fails_is_said_once(tmp_path, how):
    with hub(tmp_path / "files", how) as url:
        failed = load("owner/model", url if how == "breaks" else "http://127.0.0.1:9", tmp_path)
    assert failed.returncode == 1
    assert failed.stderr.count("could not be had from the hub") == 1
    assert "Traceback" not in failed.stderr
