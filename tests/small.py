"""A chat small enough to read: a token a byte, three control tokens, and a template that keeps its prefixes."""

from __future__ import annotations

import functools
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import tokentape as tt

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def tokenizer() -> Tokenizer:
    """One token a byte, the merge of two line breaks, and the control tokens `<user>`, `<assistant>` and `<end>`."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {character: id_ for id_, character in enumerate([*alphabet, "\u010a\u010a"])}
    made = Tokenizer(models.BPE(vocabulary, [("\u010a", "\u010a")]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<user>", "<assistant>", "<end>"])
    return made


@functools.cache
def chat() -> tt.Chat:
    """The chat of both."""
    return tt.Chat(tokenizer(), TEMPLATE, special_tokens={"eos_token": "<end>"})


def save_model(folder: Path) -> None:
    """Writes the chat as the folder of a model."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<end>"}')
    (folder / "chat_template.jinja").write_text(TEMPLATE)
