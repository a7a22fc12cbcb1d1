"""The floors of the Python package: a file imports only what stands beneath it, or a neighbour in its own folder."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "python" / "tokentape"
FLOORS = (
    {"errors"},
    {"types"},
    {"_core", "tools", "response_template", "gguf", "gguf_patterns"},
    {"gguf_tokenizer"},
    {"loading", "caching"},
    {"chat", "batch", "template"},
    {"policies", "feeds", "training", "readers"},
    {"checks"},
    {"envs"},
    {"view", "testing", "distributed"},
    {"demo"},
    {"cli"},
    {"__init__", "__main__"},
)
FILES = sorted(PACKAGE.rglob("*.py"))


def part(path: Path) -> str:
    """The file or folder directly under the package that `path` belongs to."""
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def floor(name: str) -> int:
    return next(index for index, names in enumerate(FLOORS) if name in names)


def imported(path: Path) -> set[str]:
    """The parts of the package that a file imports anywhere, also lazily; type-only imports do not count."""
    tree = ast.parse(path.read_text())
    typing_only = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for child in ast.walk(node)
    }
    names = set()
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tokentape":
            parts = node.module.split(".")[1:2]
            names |= set(parts) or {alias.name for alias in node.names}
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("tokentape.")}
    return {name for name in names if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists() or name == "_core"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_downwards(path: Path):
    own = part(path)
    above = {name for name in imported(path) - {own} if floor(name) >= floor(own)}
    assert not above, f"{own} stands on floor {floor(own)} and imports {sorted(above)} from its own floor or above"


def test_the_check_sees_an_upward_import(tmp_path: Path):
    file = tmp_path / "loading.py"
    file.write_text("from tokentape.chat import Chat\nfrom tokentape import errors\n")
    assert imported(file) >= {"errors"}
