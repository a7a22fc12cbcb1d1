"""Every example a reader can see runs: README, the pages of docs/, the docstrings of the package and of its stubs."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import small
import tokentape as tt

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SOURCES = sorted(path for path in (ROOT / "python").rglob("*.py*") if path.suffix in {".py", ".pyi"})
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def docstrings(path: Path) -> list[tuple[str, int, str]]:
    """The name, line and text of each docstring of a file that holds an example."""
    tree = ast.parse(path.read_text())
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    found = [(getattr(node, "name", "module"), getattr(node, "lineno", 1), ast.get_docstring(node)) for node in nodes]
    return [(name, line, text) for name, line, text in found if text and ">>>" in text]


EXAMPLES = [
    pytest.param(
        name,
        text,
        path,
        line,
        id=f"{path.relative_to(ROOT / 'python')}:{line}:{name}",
        marks=[pytest.mark.torch] if "torch" in text else [],
    )
    for path in SOURCES
    for name, line, text in docstrings(path)
]


def names_of(path: Path) -> dict[str, Any]:
    """What the docstrings of a file may use because the file itself does; a stub has no names."""
    if path.suffix == ".pyi":
        return {}
    parts = path.relative_to(ROOT / "python").with_suffix("").parts
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    return dict(vars(module))


@pytest.fixture
def globals_of_an_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What an example may use without importing it, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return {"tt": tt, "np": np, "chat": small.chat()}


@pytest.mark.parametrize(("name", "text", "path", "line"), EXAMPLES)
def test_docstring_example(name: str, text: str, path: Path, line: int, globals_of_an_example: dict[str, Any]):
    example = doctest.DocTestParser().get_doctest(text, names_of(path) | globals_of_an_example, name, str(path), line)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []
    runner.run(example, out=report.append)
    assert not runner.failures, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(page: Path, globals_of_an_example: dict[str, Any]):
    small.save_model(Path("path/to/model"))
    for number, block in enumerate(BLOCK.findall(page.read_text()), 1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), globals_of_an_example)  # noqa: S102
