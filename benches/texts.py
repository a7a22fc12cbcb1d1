"""Chats made of real text: the prose and code of Python's own library, in turns with tool calls.

Every chat of a run has text that no other has, so what is measured later was not seen before. Which Python is installed
changes the text, so ratios compare within one run only.
"""

from __future__ import annotations

import ast
import json
import random
import sysconfig
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# One sentence in 25 is in another script.
OTHER_SCRIPTS = (
    "Die Größe der Datei überschreitet die zulässige Länge, daher wird sie in Stücke geteilt. ",
    "Файл не найден; проверьте путь и повторите попытку позже. ",
    "その関数は空のリストを返しますが、エラーは発生しません。",
    "请检查输入的数据格式是否正确，然后再次运行该程序。",  # noqa: RUF001
    "이 함수는 문자열의 길이를 바이트 단위로 반환합니다. ",
    "Η συνάρτηση επιστρέφει τον αριθμό των στοιχείων της λίστας. ",  # noqa: RUF001
    "هذه الدالة تعيد قائمة بالقيم المطلوبة مرتبة حسب الاسم. ",
    "यह फ़ंक्शन सूची के सभी अवयवों का योग लौटाता है। ",
    "L'élément demandé n'a pas été trouvé à l'adresse indiquée ; réessayez. ",
)


def _pieces(source: str) -> Iterator[tuple[bool, str]]:
    """The docstrings of a module (prose), and its functions (code)."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            docstring = ast.get_docstring(node)
            if docstring and len(docstring) > 40:
                yield True, docstring
        if isinstance(node, ast.FunctionDef) and node.end_lineno:
            yield False, textwrap.dedent("".join(lines[node.lineno - 1 : node.end_lineno]))


def library(seed: int) -> tuple[list[str], list[str]]:
    """The prose and the code of the standard library, each piece once, in an order of its own."""
    prose: dict[str, None] = {}
    code: dict[str, None] = {}
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if {"site-packages", "test", "tests", "lib2to3"} & set(path.parts):
            continue
        try:
            pieces = list(_pieces(path.read_text(encoding="utf-8")))
        except (SyntaxError, UnicodeDecodeError, ValueError, RecursionError):
            continue
        for is_prose, text in pieces:
            (prose if is_prose else code)[text] = None
    shuffled = [list(prose), list(code)]
    for pieces in shuffled:
        random.Random(seed).shuffle(pieces)
    return shuffled[0], shuffled[1]


class Chats:
    """A source of chats.

    Args:
        seed: The order of the texts.
    """

    def __init__(self, seed: int = 0) -> None:
        """Reads the library."""
        self._random = random.Random(seed)
        prose, code = library(seed)
        self._prose, self._code = iter(prose), iter(code)

    def _turn(self) -> list[dict[str, Any]]:
        question = next(self._prose, None)
        if question is None:
            raise SystemExit("Python's own library holds no more prose: ask for less text")
        if self._random.random() < 0.2:
            question += " " + self._random.choice(OTHER_SCRIPTS)
        code = next(self._code)
        words = code.split()
        arguments = {"query": " ".join(words[:4]), "limit": self._random.randrange(1000)}
        call = {"type": "function", "function": {"name": "search", "arguments": arguments}}
        lines = code.splitlines()
        found = [{"line": number, "text": line.strip()} for number, line in enumerate(lines[:6], 100)]
        return [
            {"role": "user", "content": question},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "name": "search", "content": json.dumps(found, ensure_ascii=False)},
            {"role": "assistant", "content": f"This is how it is done:\n\n```python\n{code}\n```\n"},
        ]

    def chat(self, size: int, *, tools: bool = True) -> list[dict[str, Any]]:
        """A chat of about `size` bytes of text; without tool turns if `tools` is false."""
        messages: list[dict[str, Any]] = []
        total = 0
        while total < size:
            turn = self._turn()
            turn = turn if tools else [turn[0], turn[3]]
            for message in turn:
                message["content"] = message["content"][: size - total + 8]
                total += len(message["content"].encode())
            messages += turn
        return messages

    def chats(self, total: int, *, tools: bool = True) -> list[list[dict[str, Any]]]:
        """Chats of 200 bytes to 100 KB, of about `total` bytes in all."""
        made: list[list[dict[str, Any]]] = []
        while total > 0:
            size = min(total, round(200 * 500 ** self._random.random()))
            made.append(self.chat(max(size, 200), tools=tools))
            total -= size
        return made
