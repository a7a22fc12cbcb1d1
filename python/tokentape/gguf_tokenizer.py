"""The tokenizer of a GGUF file as a `tokenizer.json`, with its template and special tokens.

*Invariant*: ids equal those of llama.cpp's own `/tokenize` for the same file, or the file is refused by the name of
what is not read. A GGUF file names no normalizer, so there is none, as in llama.cpp.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NoReturn, cast

import numpy as np

from tokentape.errors import TokenizerError
from tokentape.gguf_patterns import IGNORES_MERGES, PATTERNS

__all__ = ["GgufTokenizer", "read_tokenizer"]

PREFIX: Final = "tokenizer.ggml."
SPECIAL_NAMES: Final = {
    "bos": "bos_token",
    "eos": "eos_token",
    "unknown": "unk_token",
    "padding": "pad_token",
    "seperator": "sep_token",  # the format spells it so
    "mask": "mask_token",
}
STOPS: Final = ("eos", "eot", "eom")
SPACE: Final = "▁"
FLAGS: Final = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)


class TokenType(IntEnum):
    """What a token is for, as llama.cpp numbers it."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


MATCHED: Final = frozenset({TokenType.UNKNOWN, TokenType.CONTROL, TokenType.USER_DEFINED})
"""Tokens that are found in text before anything else is split."""
_CONTROL = (
    "<|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <|flush|> <|calls|> <end_of_turn> <|endoftext|> </s> <|eom_id|> "
    "<EOT> _<EOT> [EOT] [EOS] <|end_of_text|> <end_of_utterance> <eos> <turn|> <|tool_response> "
    "<\uff5cend\u2581of\u2581sentence\uff5c> [e~["
)
ALWAYS_CONTROL: Final = frozenset(_CONTROL.split(" "))
"""Texts that llama.cpp takes for control tokens, whatever the file says."""


@dataclass(frozen=True, slots=True)
class GgufTokenizer:
    """What a GGUF file says about text.

    Attributes:
        json: The tokenizer, as the text of a `tokenizer.json`.
        template: The chat template, several by name, or None.
        special_tokens: Variables that templates see.
        stop_tokens: Ids of the tokens that end a text or a turn.
    """

    json: bytes
    template: str | dict[str, str] | None
    special_tokens: dict[str, str]
    stop_tokens: list[int]


def read_tokenizer(metadata: Mapping[str, Any], where: str) -> GgufTokenizer:
    """The tokenizer that the metadata of a file describes.

    Args:
        metadata: The entries of the file, as `read_metadata` gives them.
        where: The file, for messages.

    Raises:
        TokenizerError: there is none, it is of a kind that is not read, or it contradicts itself.
    """
    entries = _Entries(metadata, where)
    tokens, types = entries.tokens(), entries.types()
    kind = entries.get("model", str)
    if kind == "gpt2":
        parts = _byte_level(entries, tokens)
    elif kind == "llama":
        parts = _sentence_pieces(entries, tokens, types)
    else:
        entries.fail(
            f"has a tokenizer of the kind {kind!r}, which is not read (gpt2 and llama are): pass the model's folder, "
            "with its tokenizer.json"
        )
    added = [_added(id_, tokens[id_], types[id_]) for id_ in range(len(tokens)) if types[id_] in MATCHED]
    text = json.dumps({"version": "1.0", "added_tokens": added, **parts}, ensure_ascii=False)
    special = {
        name: id_ for name in (*SPECIAL_NAMES, *STOPS) if (id_ := entries.special(name, len(tokens))) is not None
    }
    return GgufTokenizer(
        text.encode(),
        entries.template(),
        {variable: tokens[special[name]] for name, variable in SPECIAL_NAMES.items() if name in special},
        list(dict.fromkeys(special[name] for name in STOPS if name in special)),
    )


class _Entries:
    """Typed access to the metadata of one file."""

    def __init__(self, metadata: Mapping[str, Any], where: str) -> None:
        self._metadata = metadata
        self._where = where

    def fail(self, what: str) -> NoReturn:
        raise TokenizerError(f"{self._where!r} {what}")

    def get(self, name: str, type_: type[Any], default: Any = None) -> Any:
        value = self._metadata.get(PREFIX + name, default)
        if value is None:
            self.fail(f"has no {PREFIX}{name}: of a model in several files, pass the first; else it holds no tokenizer")
        if not isinstance(value, type_):
            self.fail(f"is damaged: its {PREFIX}{name} is {type(value).__name__}, not {type_.__name__}")
        return value

    def texts(self, name: str) -> list[str]:
        values = cast("list[Any]", self.get(name, list))
        return cast("list[str]", values)

    def numbers(self, name: str, count: int, default: float) -> list[Any]:
        if PREFIX + name not in self._metadata:
            return [default] * count
        values = cast("np.ndarray[Any, Any]", self.get(name, np.ndarray))
        if len(values) < count:
            self.fail(f"is damaged: it has {count:,} tokens and {len(values):,} values of {PREFIX}{name}")
        return values[:count].tolist()

    def tokens(self) -> list[str]:
        tokens = [text or f"[EMPTY_{id_}]" for id_, text in enumerate(self.texts("tokens"))]
        ids = {text: id_ for id_, text in enumerate(tokens)}
        if len(ids) != len(tokens):
            twice = next(id_ for id_, text in enumerate(tokens) if ids[text] != id_)
            self.fail(f"has a token twice: {tokens[twice]!r} is {twice} and {ids[tokens[twice]]}")
        return tokens

    def types(self) -> list[int]:
        """The type of each token, as llama.cpp corrects it."""
        tokens = self.texts("tokens")
        types: list[int] = self.numbers("token_type", len(tokens), TokenType.NORMAL)
        return [
            TokenType.CONTROL if text in ALWAYS_CONTROL and type_ not in MATCHED else type_
            for text, type_ in zip(tokens, types, strict=True)
        ]

    def special(self, name: str, count: int) -> int | None:
        value = self._metadata.get(f"{PREFIX}{name}_token_id")
        return value if isinstance(value, int) and 0 <= value < count else None

    def template(self) -> str | dict[str, str] | None:
        default = self._template("")
        named = self._metadata.get("tokenizer.chat_templates")
        names = cast("list[Any]", named) if isinstance(named, list) else []
        others = {str(name): text for name in names if (text := self._template(f".{name}")) is not None}
        return {"default": default, **others} if others and default else default

    def _template(self, name: str) -> str | None:
        text = self._metadata.get(f"tokenizer.chat_template{name}")
        if text is not None and not isinstance(text, str):
            self.fail(f"is damaged: its tokenizer.chat_template{name} is {type(text).__name__}, not a text")
        return text


def _added(id_: int, text: str, type_: int) -> dict[str, Any]:
    return {"id": id_, "content": text, **FLAGS, "special": type_ != TokenType.USER_DEFINED}


# Byte-level BPE -----------------------------------------------------------------------------------------------------


def _byte_level(entries: _Entries, tokens: Sequence[str]) -> dict[str, Any]:
    pre = entries.get("pre", str, "default")
    patterns = PATTERNS.get(pre)
    if patterns is None:
        entries.fail(
            f"splits text in the way {pre!r} (tokenizer.ggml.pre), which is not read: pass the model's folder, with "
            f"its tokenizer.json. Read are: {', '.join(sorted(PATTERNS))}"
        )
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    splits = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        for pattern in patterns
    ]
    vocabulary = {text: id_ for id_, text in enumerate(tokens)}
    merges = [_merge(text, vocabulary, entries) for text in entries.texts("merges")]
    return {
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*splits, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": merges, "ignore_merges": pre in IGNORES_MERGES},
    }


def _merge(text: str, vocabulary: Mapping[str, int], entries: _Entries) -> list[str]:
    """Left and right side of a merge; both, and both together, must be tokens."""
    at = text.find(" ", 1)
    left, right = text[:at], text[at + 1 :]
    if at < 0 or not {left, right, left + right} <= vocabulary.keys():
        entries.fail(f"is damaged: the merge {text!r} is not of two tokens into a third")
    return [left, right]


# Pieces of SentencePiece --------------------------------------------------------------------------------------------


def _sentence_pieces(entries: _Entries, tokens: Sequence[str], types: Sequence[int]) -> dict[str, Any]:
    scores: list[float] = entries.numbers("scores", len(tokens), 0.0)
    vocabulary = {text: id_ for id_, text in enumerate(tokens)}
    unknown = entries.special("unknown", len(tokens))
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    prepend = {"type": "Prepend", "prepend": SPACE}
    prefixed = entries.get("add_space_prefix", bool, True)
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    decoders = [
        {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        *([strip] if prefixed else []),
    ]
    return {
        "normalizer": {"type": "Sequence", "normalizers": [prepend, replace] if prefixed else [replace]},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {
            "type": "BPE",
            "vocab": vocabulary,
            "merges": list(_piece_merges(tokens, types, scores)),
            "unk_token": None if unknown is None else tokens[unknown],
            "fuse_unk": False,
            "byte_fallback": True,
        },
    }


def _piece_merges(tokens: Sequence[str], types: Sequence[int], scores: Sequence[float]) -> Iterable[list[str]]:
    """All pairs of pieces that make a piece, the best piece first, as SentencePiece joins them."""
    pieces = {text for text, type_ in zip(tokens, types, strict=True) if type_ in {TokenType.NORMAL, TokenType.UNUSED}}
    best_first = sorted(range(len(tokens)), key=lambda id_: (-scores[id_], id_))
    for id_ in best_first:
        text = tokens[id_]
        if text in pieces:
            for at in range(1, len(text)):
                if text[:at] in pieces and text[at:] in pieces:
                    yield [text[:at], text[at:]]
