"""A chat is a template with a tokenizer: messages to text, token ids, and the author of every token.

*Invariant*: text and ids equal those of transformers 5.24's `apply_chat_template` for the same input, or an error of
the same class is raised (`RenderError.kind` names it).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from tokentape import _core, caching, loading
from tokentape.errors import ArgumentError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["Chat"]

TemplateSource: TypeAlias = "str | Mapping[str, str] | None"


class Chat(_core.Chat):
    """A chat template with a tokenizer.

    It is immutable, shared freely between threads, and pickles with everything it is made of.

    Args:
        tokenizer: The content of a `tokenizer.json` (text or bytes), or a live tokenizer object.
        template: The Jinja source of the chat template, or several by name; by default that of a live tokenizer.
            Without one, everything but rendering works.
        special_tokens: Variables that the template sees, such as `{"eos_token": "<|im_end|>"}`; they go before those of
            a live tokenizer.
        stop_tokens: Further tokens that end a turn, as ids or texts.

    Raises:
        TokenizerError: The tokenizer cannot be read.
        TemplateError: The template does not compile; the error names line and column.
        ArgumentError: A stop token is no token of this tokenizer.

    Example:
        >>> import tokentape as tt
        >>> from tokenizers import Tokenizer, models, pre_tokenizers, decoders
        >>> vocabulary = {character: id for id, character in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
        >>> tokenizer = Tokenizer(models.BPE(vocabulary, []))
        >>> tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(False), decoders.ByteLevel()
        >>> _ = tokenizer.add_special_tokens(["<user>", "<assistant>", "<end>"])
        >>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}"
        >>> chat = tt.Chat(tokenizer, source, special_tokens={"eos_token": "<end>"})
        >>> rendered = chat.render([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}])
        >>> rendered.text
        '<user>Hi<end><assistant>Yo<end>'
        >>> chat.decode(rendered.token_ids[rendered.assistant_mask])
        'Yo<end>'
    """

    response_template: dict[str, Any] | None = None
    """How the tokenizer says that sampled turns are read, as transformers keeps it; `parse` takes it as its grammar."""
    _source: Path | bytes = b""
    _packed: tuple[str, bytes] | None = None

    def __new__(
        cls,
        tokenizer: object,
        template: TemplateSource = None,
        *,
        special_tokens: Mapping[str, Any] | None = None,
        stop_tokens: Iterable[int | str] = (),
    ) -> Self:
        """A chat from its parts: see the class."""
        if isinstance(tokenizer, str | bytes):
            parts = loading.Parts(tokenizer.encode() if isinstance(tokenizer, str) else tokenizer)
        else:
            parts = loading.from_live(tokenizer)
        return cls._make(parts, template, special_tokens, stop_tokens)

    @classmethod
    def _make(
        cls,
        parts: loading.Parts,
        template: TemplateSource = None,
        special_tokens: Mapping[str, Any] | None = None,
        stop_tokens: Iterable[int | str] = (),
    ) -> Self:
        """A chat from what was found, with what the caller wants otherwise."""
        if isinstance(stop_tokens, str):
            raise ArgumentError(f"stop_tokens is one text: give a sequence, such as [{stop_tokens!r}]")
        source = parts.template if template is None else template
        templates = dict(source) if isinstance(source, Mapping) else source
        tokens = {**parts.special_tokens, **(special_tokens or {})}
        stops = [*parts.stop_tokens, *((token, "argument") for token in stop_tokens)]
        if eos := loading.special_token_text((special_tokens or {}).get("eos_token")):
            stops.append((eos, "tokenizer"))
        content = loading.tokenizer_json(parts)
        chat = super().__new__(cls, content, templates, tokens, stops, store=caching.store(content))
        # Pickles carry the same bytes. A file is read again then; what no file holds has to be kept.
        chat._source = parts.path if parts.path and content is parts.tokenizer else content
        chat.response_template = parts.response_template
        return chat

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        *,
        template: TemplateSource = None,
        special_tokens: Mapping[str, Any] | None = None,
        stop_tokens: Iterable[int | str] = (),
        revision: str | None = None,
    ) -> Self:
        """A chat from a model folder, a GGUF file or, with the extra `hub`, from a hub id.

        Args:
            name: A folder that holds `tokenizer.json` and the files beside it, a GGUF file, or a hub id. A name that
                could be a local path never becomes a network call: whatever has another form than `owner/name`, and
                whatever stands in a folder that exists, is a path.
            template: Another chat template than the model's.
            special_tokens: Variables that go before the model's special tokens.
            stop_tokens: Further tokens that end a turn, as ids or texts.
            revision: The branch, tag or commit of a hub id.

        Raises:
            ArgumentError: There is no such folder; the message says what is there.
            TokenizerError: The folder or file holds no readable tokenizer.
            TemplateError: The template does not compile.

        Example:
            >>> import tokentape as tt
            >>> tt.Chat.from_pretrained("./no/such/model")
            Traceback (most recent call last):
                ...
            tokentape.errors.ArgumentError: no such model folder: './no/such/model'. ...
        """
        return cls._make(loading.from_pretrained(name, revision=revision), template, special_tokens, stop_tokens)

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: object,
        *,
        template: TemplateSource = None,
        special_tokens: Mapping[str, Any] | None = None,
        stop_tokens: Iterable[int | str] = (),
    ) -> Self:
        """A chat from a live tokenizer object, as it was loaded and changed.

        Args:
            tokenizer: A fast tokenizer or a processor of transformers, or a `tokenizers.Tokenizer`.
            template: Another chat template than the object's.
            special_tokens: Variables that go before the object's special tokens.
            stop_tokens: Further tokens that end a turn, as ids or texts.

        Raises:
            ArgumentError: The object is no tokenizer that can be read.
            TemplateError: The template does not compile.
        """
        return cls._make(loading.from_live(tokenizer), template, special_tokens, stop_tokens)

    def training_sample(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        turns: Literal["all", "last"] | Sequence[int] = "all",
        roles: Sequence[str] = ("assistant",),
        missing: Literal["error", "skip"] = "error",
        control_tokens: Literal["all", "template"] = "template",
        trusted_roles: Sequence[str] = ("assistant",),
        tools: Any = None,
        **options: Any,
    ) -> dict[str, Any]:
        """A conversation that was given, not sampled, as a row for supervised fine-tuning: `Batch.from_rows` takes it.

        The text is cut where a policy begins and stops to sample, and loss lies on what it would have sampled: the same
        ids and masks as in a rollout. Nothing of it was sampled, so `sampled_mask` is 0.

        Args:
            messages: The conversation.
            turns: Which messages of the roles carry loss: all, the last, or messages by index.
            roles: Of assistant messages counts what a policy would have sampled, of others the text of their fields.
            missing: What to do about an assistant message of which that cannot be told.
            control_tokens: As in `render`: `"template"` lets no text of users and tools become a control token.
            trusted_roles: Roles whose text may hold real control tokens, such as reasoning marks.
            tools: The tools that the template sees.
            **options: Further arguments of `render`.

        Raises:
            RenderError: The conversation cannot be rendered.
            ArgumentError: It cannot be told what a policy would have sampled of a chosen message.
        """
        rendered = self.render(
            messages,
            tools=tools,
            control_tokens=control_tokens,
            trusted_roles=trusted_roles,
            seams="rollout",
            **options,
        )
        loss_mask = rendered.loss_mask(turns=turns, roles=roles, missing=missing)
        return {
            "token_ids": rendered.token_ids,
            "loss_mask": loss_mask.astype(np.uint8),
            "message_index": rendered.message_index,
            "messages": json.dumps(messages, ensure_ascii=False),
            "tools": json.dumps(tools, ensure_ascii=False),
        }

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Pickles the content of the files, compressed, not their paths."""
        if self._packed is None:
            content = self._content()
            self._packed = sha256(content).hexdigest(), zlib.compress(content, level=1)
            self._source = b""
        return self._restore, (*self._packed, self.response_template, *self._parts())

    @classmethod
    def _restore(cls, digest: str, packed: bytes, response_template: dict[str, Any] | None, *parts: Any) -> Chat:
        """A chat from what was pickled; the one of the same content that lives, if there is one.

        A worker that unpickles many trajectories of one model would otherwise load the tokenizer for each.
        """
        key = f"{cls.__module__}.{cls.__qualname__} {digest} {parts!r} {response_template!r}"
        chat = _RESTORED.get(key)
        if chat is None:
            content = zlib.decompress(packed)
            chat = _RESTORED[key] = super().__new__(cls, content, *parts, store=caching.store(content))
            chat._packed, chat.response_template = (digest, packed), response_template
        return chat

    def _content(self) -> bytes:
        """The `tokenizer.json`: the very bytes, unless their file is gone or changed, else some of the same meaning."""
        try:
            content = self._source if isinstance(self._source, bytes) else self._source.read_bytes()
        except OSError:
            content = b""
        same = sha256(content).hexdigest() == self._tokenizer_sha256()
        return content if same else self._tokenizer_json()


_RESTORED: WeakValueDictionary[str, Chat] = WeakValueDictionary()
