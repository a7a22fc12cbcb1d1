"""`tokentape render`: a conversation as the model sees it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from tokentape import ArgumentError, Chat, Rendered
from tokentape.cli.inputs import Subparsers, add_colour, load_chat, read_json, wants_colour

__all__ = ["add_parser", "run"]

EPILOG = """\
The conversation is a JSON list of messages, or an object with `messages` and, if wanted, `tools` and `documents`.

examples:
  tokentape render path/to/model chat.json --generation-prompt
  echo '[{"role": "user", "content": "Hi"}]' | tokentape render path/to/model - --ids
  tokentape render path/to/model chat.json --set enable_thinking=false
"""
VALUE, ASSISTANT, SCAFFOLD, RESET = "\x1b[36m", "\x1b[1;32m", "\x1b[2m", "\x1b[0m"


def add_parser(commands: Subparsers) -> argparse.ArgumentParser:
    """The command's options."""
    parser = commands.add_parser(
        "render",
        help="a conversation as the model sees it",
        description="Render a conversation with a model's chat template: text on standard output, or token ids.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", help="a model folder or GGUF file")
    parser.add_argument("conversation", help="a JSON file, or - for standard input")
    parser.add_argument("--template", help="a file with another chat template")
    parser.add_argument("--generation-prompt", action="store_true", help="end with the assistant's header")
    parser.add_argument("--ids", action="store_true", help="print token ids instead of text")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a template variable (JSON)")
    add_colour(parser)
    return cast("argparse.ArgumentParser", parser)


def run(arguments: argparse.Namespace) -> None:
    """Render and print."""
    chat = load_chat(arguments.model, arguments.template)
    rendered = render(chat, read_json(arguments.conversation), arguments)
    if arguments.ids:
        print(" ".join(str(token) for token in rendered.token_ids.tolist()))
        return
    colour = wants_colour(arguments.color)
    text = coloured(rendered, chat) if colour else rendered.text
    print(text, end="\n" if sys.stdout.isatty() and not text.endswith("\n") else "")


def render(chat: Chat, conversation: Any, arguments: argparse.Namespace) -> Rendered:
    """Render what a JSON file holds."""
    parts = cast("dict[str, Any]", conversation if isinstance(conversation, dict) else {"messages": conversation})
    if not isinstance(parts.get("messages"), list):
        raise ArgumentError("the conversation has no list of messages: give a list, or an object with `messages`")
    return chat.render(
        parts["messages"],
        tools=parts.get("tools"),
        documents=parts.get("documents"),
        add_generation_prompt=arguments.generation_prompt,
        template_kwargs=dict(_variable(text) for text in arguments.set),
    )


def _variable(text: str) -> tuple[str, Any]:
    """A template variable: JSON where it is JSON, else the text itself."""
    import json  # noqa: PLC0415

    name, separator, value = text.partition("=")
    if not separator:
        raise ArgumentError(f"--set {text!r} has no value: give NAME=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def coloured(rendered: Rendered, chat: Chat) -> str:
    """The text with one colour for what assistants would sample, one for other messages, the template faint."""
    kinds = np.where(rendered.assistant_mask, 2, np.where(rendered.is_content, 1, 0)).tolist()
    styles = (SCAFFOLD, VALUE, ASSISTANT)
    return "".join(
        f"{styles[kind]}{chat.decode(ids)}{RESET}" for kind, ids in _runs(kinds, rendered.token_ids.tolist())
    )


def _runs(kinds: Iterable[int], ids: Iterable[int]) -> Iterable[tuple[int, list[int]]]:
    run: list[int] = []
    last = -1
    for kind, token in zip(kinds, ids, strict=True):
        if kind != last and run:
            yield last, run
            run = []
        run.append(token)
        last = kind
    if run:
        yield last, run
