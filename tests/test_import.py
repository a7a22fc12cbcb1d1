"""`import tokentape` is light: it loads nothing that only some users need."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import tokentape._core

HEAVY = ("torch", "transformers", "httpx", "tokenizers", "polars", "datasets", "jinja2", "rich")


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    program = "import sys, tokentape; print('\\n'.join(sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


@pytest.mark.parametrize("module", HEAVY)
def test_import_loads_no_heavy_module(loaded: set[str], module: str):
    assert module not in loaded
    assert "tokentape" in loaded


def test_a_debug_build_warns(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tokentape._core, "build_profile", "debug")
    with pytest.warns(RuntimeWarning, match="debug build"):
        importlib.reload(tokentape)


def test_the_build_is_a_release_build():
    assert tokentape._core.build_profile == "release"
