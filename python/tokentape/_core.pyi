"""The engine of tokentape, in Rust. Import from `tokentape`, not from here."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from mmap import mmap
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import Buffer, disjoint_base

__version__: Final[str]
build_profile: Final[str]

@disjoint_base
class Chat:
    """The engine beneath `tokentape.Chat`, which says where its parts come from."""

    def __new__(
        cls,
        tokenizer: bytes,
        templates: str | dict[str, str] | None,
        special_tokens: dict[str, Any],
        stops: list[tuple[int | str, str]],
        store: tuple[Path, str] | None = None,
    ) -> Self: ...
    def render(
        self,
        messages: Any,
        *,
        tools: Any = None,
        documents: Any = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        now: datetime | None = None,
        control_tokens: Literal["all", "template"] = "all",
        trusted_roles: Iterable[str] = (),
        seams: Literal["parity", "rollout"] = "parity",
        chat_template: str | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Rendered:
        """Renders and encodes a conversation, as transformers' `apply_chat_template` does it.

        Args:
            messages: A sequence of messages: dicts, pydantic models or dataclasses with `role`, `content` and whatever
                the template reads; or the same as JSON text or bytes.
            tools: Tools the policy may call: functions, JSON schemas, or JSON text.
            documents: Documents for retrieval templates.
            add_generation_prompt: Whether to end with the header of a new assistant message.
            continue_final_message: Leave the final message open so that a policy continues it: its content, or the field
                of this name.
            now: The moment that `strftime_now` reads; by default the local time, as in transformers.
            control_tokens: `"all"`: every added token counts, wherever its text comes from, as in transformers.
                `"template"`: only those the template wrote; text from messages, tools and documents cannot become one.
            trusted_roles: With `control_tokens="template"`, roles whose text may hold control tokens all the same.
            seams: `"parity"`: the text is encoded whole. `"rollout"`: it is cut where a policy begins and stops to sample,
                so that no token spans a prompt and a completion.
            chat_template: The name of a template, where the model has several.
            template_kwargs: Further variables of the template, for names that this function uses itself.
            **kwargs: Further variables of the template, such as `enable_thinking=False`. One that the template never
                reads gives a warning.

        Raises:
            RenderError: The conversation is empty, there is no template, or the template refuses the conversation; `kind`
                names the exception class of transformers, `line` the line of the template.
            ArgumentError: An option has none of its values.

        Example:
            >>> chat.render([{"role": "user", "content": "Hi"}], add_generation_prompt=True).text
            '<user>Hi<end>...<assistant>'
        """

    def render_batch(
        self,
        conversations: Iterable[Any],
        *,
        tools: Any = None,
        documents: Any = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        now: datetime | None = None,
        control_tokens: Literal["all", "template"] = "all",
        trusted_roles: Iterable[str] = (),
        seams: Literal["parity", "rollout"] = "parity",
        chat_template: str | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[Rendered]:
        """Renders many conversations in parallel, without the GIL, all with the same options.

        Args:
            conversations: Sequences of messages.
            tools: See `render`, as for all that follow.
            documents: See `render`.
            add_generation_prompt: See `render`.
            continue_final_message: See `render`.
            now: See `render`.
            control_tokens: See `render`.
            trusted_roles: See `render`.
            seams: See `render`.
            chat_template: See `render`.
            template_kwargs: See `render`.
            **kwargs: See `render`.

        Raises:
            RenderError: A conversation cannot be rendered; the message says which.
        """

    def start(
        self,
        messages: object,
        *,
        tools: object = None,
        documents: object = None,
        history: Literal["keep", "fork", "error"] = "keep",
        control_tokens: Literal["all", "template"] = "template",
        trusted_roles: Sequence[str] = (),
        now: datetime | None = None,
        media: Literal["placeholder"] | None = None,
        rollout: Trajectory | None = None,
        agent: str | None = None,
        id: str | None = None,  # noqa: A002  (the name of the column)
        chat_template: str | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Trajectory:
        """A trajectory that begins with a conversation, rendered with a generation prompt.

        The settings hold for the trajectory and its forks: every later render uses them.

        Args:
            messages: The conversation, as for `render`.
            tools: The tools that the template sees, in every turn.
            documents: The documents that the template sees.
            history: What `observe` does when the template prints earlier messages otherwise than before, as templates do
                that strip reasoning: `"keep"` appends to what the policy saw, `"fork"` begins a new fragment of the
                rollout, `"error"` refuses.
            control_tokens: `"template"`: no text of a message becomes a control token. `"all"`: as in transformers.
            trusted_roles: Roles whose text may hold control tokens all the same.
            now: The moment that the template may print; read once, here, if not given.
            media: `"placeholder"`: parts that are no text are rendered as the template writes them; else they are refused.
            rollout: Another trajectory of the same episode: both count as one rollout in a group.
            agent: The name of the agent, when a rollout has several.
            id: The `trajectory_id` of the row; made up by default.
            chat_template: The name of a template, where the model has several.
            template_kwargs: Further arguments of the template, such as `enable_thinking`.
            **kwargs: The same, by name.

        Warns:
            HistoryWarning: The template rewrites history, and `history` is `"keep"`; once for each chat, with the
                smallest conversation that shows it.

        Raises:
            RenderError: The template cannot render the conversation.
            TrajectoryError: A message has media parts.
        """

    def encode(self, text: str) -> NDArray[np.int32]:
        """The token ids of a text. No special tokens are put around it; those in the text count.

        Raises:
            TokenizerError: The text cannot be encoded.
        """

    def encode_batch(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """The token ids of many texts, in parallel, without the GIL.

        Raises:
            TokenizerError: A text cannot be encoded; the message says which.
        """

    def decode(self, token_ids: ArrayLike, *, skip_special_tokens: bool = False) -> str:
        """The text of token ids. Bytes that are no UTF-8 become U+FFFD.

        Args:
            token_ids: One sequence of ids.
            skip_special_tokens: Whether to leave special tokens out.

        Raises:
            TokenizerError: An id is outside the vocabulary.
        """

    def text_stream(self, *, skip_special_tokens: bool = False) -> TextStream:
        """The text of a sequence of ids that arrive a few at a time.

        Args:
            skip_special_tokens: Whether to leave special tokens out.

        Example:
            >>> stream = chat.text_stream()
            >>> [stream.push(token_id) for token_id in chat.encode("né")]
            ['n', '', 'é']
            >>> stream.finish()
            ''
        """

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token stands for, which need not be whole characters.

        Raises:
            ArgumentError: The id is outside the vocabulary.
        """

    def token_id(self, text: str) -> int | None:
        """The id of a token by its spelling in the vocabulary, or None."""

    @property
    def engine(self) -> str:
        """Which path encodes: `"fast: "` and what it is, or `"reference: "` and why.

        The fast path is used for byte-level BPE and BPE with byte fallback, where it gave the ids of the `tokenizers`
        library for every probe when the tokenizer was loaded. Otherwise that library encodes; if a probe told the two
        apart, there was a warning.

        Example:
            >>> chat.engine
            'fast: byte-level BPE, split regex'
        """

    @property
    def vocab_size(self) -> int:
        """One more than the largest id, added tokens included."""

    @property
    def stop_token_ids(self) -> list[int]:
        """The ids that end a turn, sorted.

        The end-of-sequence ids of the generation config and of the tokenizer, and what the template writes at the end of
        a plain assistant turn.
        """

    @property
    def stop_tokens(self) -> list[tuple[int, str, list[str]]]:
        """The same ids with their text and what names them.

        The sources are `"argument"`, `"generation_config"`, `"tokenizer"` and `"template"`.
        """

    @property
    def special_tokens(self) -> dict[str, Any]:
        """The variables that every template sees, such as `bos_token`."""

    @property
    def templates(self) -> dict[str, str]:
        """The sources of the templates by name; the only template of a model is called `default`."""

    def audit(self, *, chat_template: str | None = None, now: datetime | None = None) -> Audit:
        """What the template does to a conversation: prefixes, what it strips and injects, turn ends, stop tokens, seams.

        Args:
            chat_template: The name of a template, where the model has several.
            now: The moment that `strftime_now` reads.

        Raises:
            RenderError: There is no such template.

        Example:
            >>> audit = chat.audit()
            >>> audit.prefix_stable
            True
            >>> audit.to_dict()["turn_ends"]
            ['<end>']
        """
    def parse(
        self,
        token_ids: ArrayLike,
        tools: Any = None,
        prompt: Any = None,
        *,
        grammar: dict[str, Any] | None = None,
    ) -> Message:
        """What a sampled turn says: reasoning, content, tool calls.

        The format is learned from the chat template, once. Control tokens are matched as ids, so a marker that the model
        typed out is text. Nothing that a model can sample raises.

        Args:
            token_ids: The sampled ids, stop token included if one was sampled.
            tools: The declared tools, as `render` takes them. They give bare values their types, and tell unknown tools.
            prompt: The ids or the text of the prompt, or of its end, or what `render` made: whether it opened reasoning.
                By default what the template writes with its own default arguments.
            grammar: A declared format in place of the learned one, of the form of `grammar`, or the `response_template`
                of a transformers tokenizer.

        Raises:
            TokenizerError: An id is outside the vocabulary.
            ArgumentError: The grammar has another form.
            RenderError: There is no chat template, and no grammar is given.

        Example:
            >>> message = chat.parse(chat.encode("Hello!<end>"))
            >>> message.content, message.finished
            ('Hello!', True)
        """
    def parse_stream(
        self, tools: Any = None, prompt: Any = None, *, grammar: dict[str, Any] | None = None
    ) -> ParseStream:
        """The same for a turn whose ids arrive one by one.

        Args:
            tools: As in `parse`.
            prompt: As in `parse`. Give it: without it, the end of a reasoning block whose beginning was not seen turns
                what was given as content into reasoning.
            grammar: As in `parse`.

        Raises:
            ArgumentError: The grammar has another form.
            RenderError: There is no chat template, and no grammar is given.

        Example:
            >>> stream = chat.parse_stream()
            >>> [delta for id in chat.encode("Hi!<end>") for delta in stream.push([id])]
            [('content', 'H'), ('content', 'i'), ('content', '!')]
            >>> stream.finish()[0].finished
            True
        """
    @property
    def grammar(self) -> dict[str, Any]:
        """The format of a sampled turn as it was learned from the template; `str(audit())` says it in words.

        Example:
            >>> chat.grammar["stops"]
            ['<end>']
        """

    def _tokenizer_sha256(self) -> str: ...
    def _tokenizer_json(self) -> bytes: ...
    def _parts(self) -> tuple[str | dict[str, str] | None, dict[str, Any], list[tuple[int, str]]]: ...

@final
class TextStream:
    """Text as its tokens arrive, made by `Chat.text_stream`.

    What `push` gave and what `finish` gives, joined, is `Chat.decode` of all the ids, wherever they were cut. Text is
    given as soon as later tokens cannot change it: bytes that may be the beginning of a character wait for its rest.
    """

    def push(self, token_ids: int | ArrayLike) -> str:
        """Takes the next ids and gives the text that they settle, which may be empty.

        Args:
            token_ids: One id, or a sequence of ids.

        Raises:
            TokenizerError: An id is outside the vocabulary; the stream is as it was before.
        """

    def finish(self) -> str:
        """Gives what still waits, since no token follows. The stream is then as it was before its first token."""

@final
class Message:
    """What a turn says. `render` and `act(message=)` take it as it is."""

    role: Final[str]
    """Always `"assistant"`."""
    @property
    def content(self) -> str:
        """The content, without white space around it."""
    @property
    def reasoning(self) -> str | None:
        """The reasoning: empty if its block is, None if there is no block."""
    @property
    def reasoning_content(self) -> str | None:
        """The same as `reasoning`, under the name that chat templates read."""
    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """All attempts at calls, in order, whatever became of them."""
    @property
    def reasoning_complete(self) -> bool:
        """False if the ids end inside reasoning, at a stop token too."""
    @property
    def finished(self) -> bool:
        """Whether a stop token was sampled."""
    def to_dict(self) -> dict[str, Any]:
        """The message as conversations hold it.

        Calls that are `ok` or of an unknown tool are its `tool_calls`, each with an id; the text of any other attempt ends
        its content. Arguments are JSON text where the template wants them so.
        """
    def model_dump(self) -> dict[str, Any]:
        """The same as `to_dict`."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class ToolCall:
    """An attempt at a tool call."""

    @property
    def name(self) -> str | None:
        """The name of the tool, as far as it could be read."""
    @property
    def arguments(self) -> dict[str, Any] | None:
        """The arguments, if they could be read."""
    @property
    def status(self) -> Literal["ok", "invalid_json", "unclosed", "unknown_tool", "malformed"]:
        """What became of it.

        `"ok"`: closed, well formed, and declared: safe to run. `"unknown_tool"`: well formed, but not declared.
        `"invalid_json"`: closed, but its arguments do not parse or do not fit their types. `"unclosed"`: the output ended
        inside. `"malformed"`: closed, but of another shape.
        """
    @property
    def raw(self) -> str:
        """The text of the attempt, without the marks around it."""
    @property
    def id(self) -> str:
        """The id that was sampled with the call, or one made from its place: `"call00001"`."""
    @property
    def token_span(self) -> tuple[int, int]:
        """The sampled tokens of the attempt, marks included: first, and one behind the last."""

@final
class ParseStream:
    """A turn that is read as its ids arrive; `Chat.parse_stream` makes one."""

    def push(self, token_ids: ArrayLike) -> list[tuple[str, str | ToolCall]]:
        """Takes the next ids, and gives what they settle, each as a pair of its kind and a text or call.

        The kinds are `"reasoning"`, `"content"`, `"tool_call"`, and, where no prompt was given, `"content_was_reasoning"`.

        Raises:
            TokenizerError: An id is outside the vocabulary; the stream is as it was.
            ArgumentError: The turn is finished.
        """
    def finish(self) -> tuple[Message, list[tuple[str, str | ToolCall]]]:
        """Ends the turn: the message, equal to that of `Chat.parse`, and what was not settled before.

        Raises:
            ArgumentError: The turn is finished.
        """

@final
class Rendered:
    """A rendered and encoded conversation.

    Arrays are read-only and have one value a token. A token belongs to the author of its first byte. Offsets count code
    points of `text`.

    Example:
        >>> rendered = chat.render([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}])
        >>> rendered.message_index.tolist()
        [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
        >>> rendered.assistant_spans
        [AssistantSpans(message=1, spans=[(25, 32)], flags=[])]
    """

    @property
    def text(self) -> str:
        """The text, equal to `apply_chat_template(tokenize=False)`."""

    @property
    def token_ids(self) -> NDArray[np.int32]:
        """The ids; with the default options equal to `apply_chat_template(tokenize=True)`."""

    @property
    def token_starts(self) -> NDArray[np.int32]:
        """The place in the text where each token begins."""

    @property
    def message_index(self) -> NDArray[np.int32]:
        """Per token, the message whose value or scaffold it is; -1 for frame, tools and documents."""

    @property
    def is_content(self) -> NDArray[np.bool_]:
        """Per token, whether a field of a message wrote it, its role aside, and not the template."""

    @property
    def assistant_spans(self) -> list[AssistantSpans]:
        """For each assistant message, what a policy would have sampled."""

    @property
    def assistant_mask(self) -> NDArray[np.bool_]:
        """The same per token.

        With `{% generation %}` tags in the template it is the mask of transformers: every token that overlaps a range.
        """

    @property
    def spans(self) -> list[Span]:
        """Runs of authors that partition the text."""

    @property
    def generation_spans(self) -> list[tuple[int, int]]:
        """The `{% generation %}` ranges of the text, as transformers gives them."""

    @property
    def seams(self) -> list[Seam]:
        """Where ids differ between the whole text and the text cut where a policy begins and stops to sample."""

    def loss_mask(
        self,
        *,
        turns: Literal["all", "last"] | Sequence[int] | None = None,
        roles: Sequence[str] | None = None,
        missing: Literal["error", "skip"] = "error",
    ) -> NDArray[np.bool_]:
        """Per token, whether training uses it: a choice.

        Args:
            turns: All messages of the roles (the default), the last of them, or messages by index (negative: from the
                end).
            roles: By default only assistants. Of assistant messages counts what a policy would have sampled, of others the text of their fields.
            missing: What to do about an assistant message of which that cannot be told: refuse, or leave it out.

        Raises:
            ArgumentError: There is no such message, or `missing` is `"error"` and the message names those it cannot tell.
        """

    def explain(self, token: int) -> str:
        """Says in words where a token comes from: who wrote it, for which message, and whether a policy sampled it.

        Args:
            token: The position of the token; negative: from the end.

        Raises:
            ArgumentError: There is no such token.
        """

    def __len__(self) -> int:
        """The number of tokens."""

    @staticmethod
    def _from_bytes(state: bytes) -> Rendered: ...

@disjoint_base
class ChatTemplate:
    """A chat template without a tokenizer: messages to text, and the author of every character of it.

    *Invariant*: the text equals that of transformers 5.24 for the same input, or an error of the same class is raised
    (`RenderError.kind` names it). It is compiled once, immutable, shared freely between threads, and pickles.

    Args:
        source: The Jinja source of the chat template.
        special_tokens: Variables that the template sees, such as `{"eos_token": "<|im_end|>"}`.

    Raises:
        TemplateError: The template does not compile; the message names line and column, `kind` the exception class that
            transformers raises.

    Example:
        >>> import tokentape as tt
        >>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}"
        >>> template = tt.ChatTemplate(source, special_tokens={"eos_token": "</s>"})
        >>> rendered = template.render([{"role": "user", "content": "Hi"}])
        >>> rendered.text
        '<user>Hi</s>'
        >>> [(rendered.text[span.start : span.end], span.kind) for span in rendered.spans]
        [('<', 'scaffold'), ('user', 'value'), ('>', 'scaffold'), ('Hi', 'value'), ('</s>', 'scaffold')]
    """

    def __new__(cls, source: str, *, special_tokens: Mapping[str, Any] | None = None) -> Self: ...
    def render(
        self,
        messages: Any,
        *,
        tools: Any = None,
        documents: Any = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        now: datetime | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> RenderedText:
        """Renders a conversation, as transformers' `apply_chat_template(tokenize=False)` does it.

        Args:
            messages: A sequence of messages: dicts, pydantic models or dataclasses with `role`, `content` and whatever
                the template reads; or the same as JSON text or bytes.
            tools: Tools the policy may call: functions, JSON schemas, or JSON text.
            documents: Documents for retrieval templates.
            add_generation_prompt: Whether to end with the header of a new assistant message.
            continue_final_message: Leave the final message open so that a policy continues it: its content, or the field
                of this name.
            now: The moment that `strftime_now` reads; by default the local time, as in transformers.
            template_kwargs: Further variables of the template, for names that this function uses itself.
            **kwargs: Further variables of the template, such as `enable_thinking=False`. One that the template never
                reads gives a warning.

        Raises:
            RenderError: The template refuses the conversation, or the conversation is no plain data; `kind` names the
                exception class of transformers, `line` the line of the template, `message_index` the message at fault.

        Example:
            >>> import tokentape as tt
            >>> template = tt.ChatTemplate("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}")
            >>> template.render('[{"role": "user", "content": "Hi"}]').text
            '<user>Hi'
        """

    def render_batch(
        self,
        conversations: Iterable[Any],
        *,
        tools: Any = None,
        documents: Any = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        now: datetime | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[RenderedText]:
        """Renders many conversations with the same settings, in parallel and without the GIL; see `render`.

        Raises:
            RenderError: One of them cannot be rendered.

        Example:
            >>> import tokentape as tt
            >>> template = tt.ChatTemplate("{{ messages|length }}")
            >>> [rendered.text for rendered in template.render_batch([[], [{"role": "user", "content": "Hi"}]])]
            ['0', '1']
        """

    @property
    def source(self) -> str:
        """The Jinja source."""

    @property
    def variables(self) -> list[str]:
        """The names that the template takes from arguments, special tokens or the functions of its environment."""

    @property
    def special_tokens(self) -> dict[str, Any]:
        """The variables that every rendering has."""

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]: ...

@final
class RenderedText:
    """What a chat template writes. Offsets are code points."""

    @property
    def text(self) -> str:
        """The text."""

    @property
    def spans(self) -> list[Span]:
        """Runs that partition the text, each with one author."""

    @property
    def generation_spans(self) -> list[tuple[int, int]]:
        """The ranges that `{% generation %}` marks, as transformers gives them.

        transformers does not shorten them where `continue_final_message` cuts the text.
        """

@final
class Audit:
    """What a chat template does to a conversation; `str(audit)` says it in plain words."""

    @property
    def prefix_stable(self) -> bool:
        """Whether a conversation that goes on keeps all its text.

        Then the ids after `observe` equal a full render. It is False if any check breaks with any kind of conversation.
        """

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain data.

        Keys: `template`, `prefix_stable`, `checks` (by `P1` to `P4`: scenario, step, verdict, and for what breaks the
        texts where they part and the conversation that shows it), `findings` (kind `strips`, `moves`, `merges` or
        `injects`, what, words, conversation, text), `turn_ends`, `after_turn_end`, `stop_tokens` (id, text, sources),
        `unsafe_seams` (beginnings of an answer that change the tokens of the prompt), `features`.
        """

    def to_json(self) -> str:
        """The same as JSON text."""

@final
class Span:
    """A run of text with one author: `text[start:end]`."""

    @property
    def start(self) -> int:
        """The first code point."""

    @property
    def end(self) -> int:
        """One past the last code point."""

    @property
    def kind(self) -> Literal["value", "scaffold", "frame"]:
        """Who wrote it.

        `"value"`: copied from a message, the tools or the documents. `"scaffold"`: the template, while it handled a
        message. `"frame"`: the template, while it handled none.
        """

    @property
    def message(self) -> int:
        """The message of a value or scaffold; -1 for frame, tools and documents."""

    @property
    def field(self) -> str | None:
        """The field a value was copied from; `"tools"` or `"documents"` for those."""

    @property
    def role(self) -> str | None:
        """The role of the message."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class AssistantSpans:
    """What a policy would have sampled of one assistant message.

    Flags: `no_value`, `turn_end_by_shape` and `header_not_in_prompt` change nothing for training. With
    `prompt_not_aligned`, `prompt_raises` and `no_header` the policy saw another prompt than this text shows. With
    `no_turn_end` the text shows no stop token. `interrupted`: another message is printed inside. Without spans:
    `prefill`, `not_rendered`, `undetermined`.
    """

    @property
    def message(self) -> int:
        """The message."""

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Ranges of the text in code points: none, one, or two."""

    @property
    def flags(self) -> list[str]:
        """What there is to say about them, sorted by name."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class Seam:
    """A stretch of text that is encoded otherwise when the text is cut where a policy begins and stops to sample."""

    @property
    def message(self) -> int:
        """The assistant message whose sampling begins or ends there."""

    @property
    def start(self) -> int:
        """The first code point."""

    @property
    def end(self) -> int:
        """One past the last code point."""

    @property
    def parity_ids(self) -> list[int]:
        """The ids where the text is encoded whole."""

    @property
    def rollout_ids(self) -> list[int]:
        """The ids where it is cut."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class Trajectory:
    """The literal tokens of one rollout, and which of them the policy sampled.

    A trajectory is *prompted* (the policy may `act`) or *acted* (the environment may `observe`). Whatever happens,
    the ids that were there stay where they are: nothing is ever decoded and encoded again. An operation that fails
    changes nothing.

    Arrays handed out are read-only snapshots with one value a token; they never change under the reader. Reading from
    any thread is always allowed; two threads that change one trajectory at once get a `TrajectoryError`.

    Example:
        >>> import tokentape as tt
        >>> trajectory = tt.Trajectory.from_prompt([1, 2, 3], vocab_size=100)
        >>> turn = trajectory.act([10, 11], [-0.2, -0.3], finish_reason="stop")
        >>> trajectory.append([4])
        >>> trajectory.token_ids.tolist(), trajectory.sampled_mask.astype(int).tolist()
        ([1, 2, 3, 10, 11, 4], [0, 0, 0, 1, 1, 0])
    """

    @classmethod
    def from_prompt(
        cls,
        token_ids: ArrayLike,
        *,
        vocab_size: int | None = None,
        rollout: Trajectory | None = None,
        agent: str | None = None,
        id: str | None = None,  # noqa: A002  (the name of the column)
    ) -> Trajectory:
        """A trajectory without a template, for base-model completions.

        Args:
            token_ids: The prompt, at least one id.
            vocab_size: The largest id plus one. Without it only negative ids are refused.
            rollout: Another trajectory of the same episode: both count as one rollout in a group.
            agent: The name of the agent, when a rollout has several.
            id: The `trajectory_id` of the row; made up by default.

        Raises:
            ArgumentError: The prompt is empty or not a sequence of integers.
            TrajectoryError: An id is outside the vocabulary.
        """

    def act(
        self,
        token_ids: ArrayLike,
        logprobs: ArrayLike | None = None,
        *,
        finish_reason: str = "stop",
        policy_version: int | None = None,
        message: object = None,
        continues: bool = False,
        logprob_kind: str | None = None,
        reference_logprobs: ArrayLike | None = None,
        top_logprobs: Iterable[Mapping[int, float]] | None = None,
    ) -> Turn:
        """Records what the policy sampled, verbatim.

        Args:
            token_ids: The sampled ids, the stop token included if the engine returned it. Never padded, cut or
                re-encoded.
            logprobs: One value a sampled id, in nats. All turns of a trajectory have them, or none.
            finish_reason: Why the engine stopped, in its own word. It is stored, and decides nothing.
            policy_version: The version of the policy that sampled; all turns have one, or none.
            message: What the ids stand for, such as `chat.parse(token_ids)`, for the next render. By default the sampled
                text is the content of a message of role `assistant`, as it is; where it calls tools and the template
                would write other text behind the call than behind the text, `observe` asks for this.
            continues: The next chunk of the turn before: a partial rollout that was resumed.
            logprob_kind: What the logprobs are, such as `"raw"` or `"processed"`; one kind a trajectory.
            reference_logprobs: The logprobs of the same ids under a reference model, one value a sampled id. All turns
                of a trajectory have them, or none.
            top_logprobs: The likeliest alternatives: for each sampled id a mapping of ids to logprobs, with at least one
                entry. All turns have them, or none.

        Returns:
            The turn, to which a reward can be given.

        Raises:
            TrajectoryError: It is not the policy's move; the completion is empty; an id is outside the vocabulary;
                logprobs, of the policy, the reference or the alternatives, are of another length, null, NaN, -inf, an
                engine's sentinel or above 1e-4; earlier turns had none, or had another kind. The message names the turn
                and the token.
        """

    def observe(self, messages: object, *, final: bool = False) -> Trajectory:
        """Puts what the environment says behind what the policy sampled; only the new text is encoded.

        The whole conversation is rendered, and its text behind the end of the sampled turn is appended, with a generation
        prompt. If the last id does not end a turn, the token that does is appended first, unsampled.

        Args:
            messages: All new messages in one call: adjacent tool results may share a turn.
            final: Nothing is sampled after these messages: no generation prompt, and the trajectory is finished.

        Returns:
            The trajectory to go on with: this one, or under `history="fork"` a new fragment of the same rollout.

        Raises:
            TrajectoryError: It is the policy's move, or the trajectory is finished or has no template.
            BridgeError: It cannot be told where the turn ends; the new messages need the sampled one to be given as
                `act(..., message=...)`; or the template rewrites history under `history="error"`.
            RenderError: The template cannot render the conversation.
        """

    def compact(self, messages: object) -> Trajectory:
        """Replaces the conversation, for instance by a summary: a new fragment of the same rollout, of the kind `compaction`.

        This one is closed. What both have in common at the beginning is inherited and carries no loss in the new one.
        """

    def divergence(self) -> Divergence | None:
        """The first difference between the tape and a full render of its conversation; None if there is none.

        It is reported, and never repaired.
        """

    def append(self, token_ids: ArrayLike) -> None:
        """Appends ids that nobody sampled, by hand. Without a template it is then the policy's move.

        Raises:
            TrajectoryError: The trajectory is finished, or an id is outside the vocabulary.
        """

    def fork(self) -> Trajectory:
        """Another rollout that shares the past, which is stored once.

        In a group, a sampled token that rollouts share carries loss in the row that comes first.
        """

    def truncate(self, length: int) -> None:
        """Cuts all columns and turns after `length` tokens.

        A cut at the start of a turn makes it the policy's move again.
        """

    def finish(self) -> None:
        """Nothing more comes: refuses further acts and gives back memory that was kept for growing."""

    def note(self, notes: Mapping[str, Any]) -> None:
        """Adds JSON data to the provenance of the row, such as the sampling parameters."""

    def remaining(self, max_length: int) -> int:
        """How many more tokens fit into `max_length`; 0 if none do."""

    def __len__(self) -> int: ...
    @property
    def id(self) -> str:
        """The `trajectory_id` of the row."""

    @property
    def rollout_id(self) -> str:
        """The episode that this trajectory is part of."""

    @property
    def agent(self) -> str | None:
        """Which of several agents of the rollout acted."""

    @property
    def parent_id(self) -> str | None:
        """The trajectory that this one left, if it is a fork or a later fragment."""

    @property
    def fork_at(self) -> int | None:
        """The length of the common prefix with the parent, in tokens."""

    @property
    def fork_kind(self) -> str | None:
        """`"branch"`, `"history"` or `"compaction"`."""

    @property
    def stage(self) -> Literal["prompted", "acted", "finished", "superseded"]:
        """Whose move it is."""

    @property
    def token_ids(self) -> NDArray[np.int32]:
        """The ids, and so the next prompt."""

    @property
    def sampled_mask(self) -> NDArray[np.bool_]:
        """True where the policy produced the token: a fact."""

    @property
    def loss_mask(self) -> NDArray[np.bool_]:
        """True where training uses the token: a choice, by default the sampled tokens that are not inherited.

        Assign booleans or 0 and 1, one a token; None goes back to the default.
        """

    @loss_mask.setter
    def loss_mask(self, mask: ArrayLike | None) -> None: ...
    @property
    def loss_weight(self) -> NDArray[np.float32] | None:
        """The choice as a weight, which may be negative. None: equal to the loss mask."""

    @loss_weight.setter
    def loss_weight(self, weight: ArrayLike | None) -> None: ...
    @property
    def logprobs(self) -> NDArray[np.float32] | None:
        """The logprob of each sampled token, and a 0.0 filler elsewhere. None: never recorded."""

    @property
    def reference_logprobs(self) -> NDArray[np.float32] | None:
        """The same under a reference model: float32 of shape (tokens,). None: never recorded."""

    @property
    def top_logprobs(self) -> list[dict[int, float]] | None:
        """For each token the alternatives and their logprobs, none where nothing was sampled. None: never recorded."""

    @property
    def message_index(self) -> NDArray[np.int32]:
        """The message each token belongs to, -1 for none."""

    @property
    def seams(self) -> list[int]:
        """The tokens at which an observation begins that is no added-token boundary.

        Encoded together with what stands before them, they might be others; what was recorded is what the policy saw.
        """

    @property
    def turns(self) -> list[Turn]:
        """The generations, in order."""

    @property
    def reward(self) -> float | None:
        """The return of the rollout. None: the sum of the turns' rewards counts."""

    @reward.setter
    def reward(self, reward: float | None) -> None: ...
    @property
    def metrics(self) -> dict[str, Any]:
        """JSON data to keep in the row. Assign a whole dict: changing the returned copy changes nothing."""

    @metrics.setter
    def metrics(self, metrics: Mapping[str, Any]) -> None: ...
    @property
    def provenance(self) -> dict[str, Any]:
        """Where the trajectory came from: what was noted, and what it knows by itself."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far; empty without a template."""

    @property
    def tools(self) -> Any:
        """The tools that the template sees; None without any."""

    @property
    def nbytes(self) -> int:
        """Bytes that the per-token columns hold, what is shared with forks included."""

@final
class Divergence:
    """The first difference between a tape and a full render of its conversation."""

    @property
    def kind(self) -> Literal["generation_prompt", "history", "content", "tokenization"]:
        """Why they differ.

        `"generation_prompt"`: the template prints a turn otherwise than its generation prompt began it. `"history"`: it
        prints earlier messages otherwise once there are later ones. `"content"`: the sampled text is not what it prints
        for the message. `"tokenization"`: the texts are equal, and the policy sampled other tokens for them.
        """

    @property
    def token(self) -> int:
        """The first token that differs."""

    @property
    def recorded(self) -> str:
        """What the tape says there, a few tokens of it."""

    @property
    def rendered(self) -> str:
        """What the full render says there."""

def merge(
    records: Iterable[Mapping[str, Any]],
    *,
    vocab_size: int | None = None,
    rollout: Trajectory | None = None,
) -> list[Trajectory]:
    """Merges records of single turns, as many servers give them, into the fewest trajectories of one rollout.

    A record extends the longest trajectory whose ids are a full prefix of its prompt; else it opens a new one, which
    inherits the facts of the longest common prefix and carries no loss on it.

    Args:
        records: Mappings in the order of sampling, with `prompt_token_ids` and `token_ids`, and optionally `logprobs`,
            `reference_logprobs`, `top_logprobs`, `finish_reason`, `policy_version` and `logprob_kind`, as `Trajectory.act`
            takes them, and `reward`.
        vocab_size: The largest id plus one.
        rollout: Another trajectory of the same episode.

    Raises:
        TrajectoryError: As for `Trajectory.act`; the message names the record.

    Example:
        >>> import tokentape as tt
        >>> turns = [{"prompt_token_ids": [1], "token_ids": [2]}, {"prompt_token_ids": [1, 2, 3], "token_ids": [4]}]
        >>> [trajectory.token_ids.tolist() for trajectory in tt.merge(turns)]
        [[1, 2, 3, 4]]
    """

@final
class Turn:
    """One generation of a trajectory: the tokens `start..end`."""

    @property
    def index(self) -> int:
        """Counts the turns of the trajectory from 0."""

    @property
    def start(self) -> int:
        """The first token."""

    @property
    def end(self) -> int:
        """One past the last token."""

    @property
    def token_ids(self) -> NDArray[np.int32]:
        """The ids of the turn, as they were sampled."""

    @property
    def logprobs(self) -> NDArray[np.float32] | None:
        """One value a token of the turn. None: never recorded."""

    @property
    def finish_reason(self) -> str:
        """Why the engine stopped, in its own word."""

    @property
    def message(self) -> int:
        """The message that the turn became, -1 without a template."""

    @property
    def reasoning_open(self) -> bool:
        """Whether the turn was cut while its reasoning was open."""

    @property
    def reward(self) -> float | None:
        """The turn's own reward, seen by every fragment and fork that holds the turn."""

    @reward.setter
    def reward(self, reward: float | None) -> None: ...

_Estimator: TypeAlias = Literal["grpo", "dr_grpo", "rloo"] | Callable[[NDArray[np.float64]], Sequence[float]]

@final
class Group:
    """The trajectories of one item, with their returns and advantages: the atom that an environment returns.

    The group takes snapshots: set rewards before it is made. A rollout counts once, however many fragments it has.

    Example:
        >>> import tokentape as tt
        >>> played = []
        >>> for reward in (1.0, 0.0):
        ...     trajectory = tt.Trajectory.from_prompt([1, 2])
        ...     _ = trajectory.act([3])
        ...     trajectory.reward = reward
        ...     played.append(trajectory)
        >>> group = tt.Group(played, id="item-7").with_advantages("grpo")
        >>> group.advantages.round(4).tolist()
        [0.7071, -0.7071]
    """

    def __new__(
        cls,
        trajectories: Iterable[Trajectory],
        *,
        id: str | None = None,  # noqa: A002  (the name of the column)
        env: str = "",
    ) -> Group:
        """The group of the last trajectory of each rollout; earlier fragments are gathered.

        Args:
            trajectories: At least one. Trajectories of one rollout (agents, merged records) may all be given.
            id: The `group_id` of the rows; made up by default.
            env: The name of the environment, for the rows.

        Raises:
            TrajectoryError: There are none, one is given twice, or one was continued in a fragment that is missing.
        """

    def with_advantages(
        self,
        how: _Estimator = "grpo",
        *,
        per_turn: bool = False,
        share_credit: Literal["mean", "sum", "first"] = "mean",
        ddof: int = 1,
        eps: float = 0.0,
    ) -> Group:
        """A new group with advantages on the sampled tokens.

        Agents of different names are compared among themselves. Returns that do not differ (standard deviation below
        1e-6, or a single rollout) give exact zeros and the flag `zero_variance`.

        Args:
            how: `"grpo"`: (R - mean) / (std + eps), arXiv 2402.03300. `"dr_grpo"`: R - mean, arXiv 2503.20783.
                `"rloo"`: R - the mean of the others, arXiv 2402.14740. Or a callable from returns (float64 array)
                to one advantage each.
            per_turn: Each turn's own reward credits its own tokens, compared with all turns of the group.
            share_credit: The advantage of a sampled token that several rollouts share.
            ddof: Delta degrees of freedom of the standard deviation of `"grpo"`.
            eps: Added to the standard deviation of `"grpo"`.

        Raises:
            TrajectoryError: A trajectory (or, per turn, a turn) has no reward; the message names it.
            ArgumentError: An unknown name.
        """

    def with_env(self, env: str) -> Group:
        """The same group under the name of an environment."""

    @property
    def id(self) -> str:
        """The `group_id` of the rows."""

    @property
    def env(self) -> str:
        """The name of the environment."""

    @property
    def rollouts(self) -> int:
        """How many episodes there are."""

    @property
    def trajectories(self) -> int:
        """How many rows there are; iterate over the group for the trajectories themselves."""

    @property
    def returns(self) -> NDArray[np.float64]:
        """One value an agent of a rollout, in order of appearance.

        Raises:
            TrajectoryError: A trajectory has no reward.
        """

    @property
    def advantages(self) -> NDArray[np.float64] | None:
        """One value for each of `returns`; None before they are assigned, and when they are per turn."""

    @property
    def zero_variance(self) -> bool | None:
        """Whether the group teaches nothing; None before advantages are assigned."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Trajectory: ...
    def __iter__(self) -> Iterator[Trajectory]: ...

@final
class Table:
    """Record batches of `tokentape.trajectories`: what `tokentape.Batch` is a face of."""

    @staticmethod
    def from_arrow(data: Any, *, validate: bool) -> Table: ...
    @staticmethod
    def from_rows(rows: Iterable[Mapping[str, Any]], *, validate: bool) -> Table: ...
    @staticmethod
    def from_groups(groups: Sequence[Group]) -> Table: ...
    @staticmethod
    def from_stream(stream: bytes | Buffer) -> Table: ...
    @staticmethod
    def from_file(file: mmap, *, validate: bool) -> Table | None:
        """The table in a mapped Arrow IPC file; None if its buffers are compressed."""

    @staticmethod
    def concat(parts: Sequence[Table]) -> Table: ...
    def write_file(self, path: str | PathLike[str]) -> None: ...
    def to_stream(self) -> Buffer:
        """The rows as an Arrow IPC stream."""

    def column(self, name: str) -> Column | None: ...
    def validate(self) -> None: ...
    def with_advantages(
        self,
        how: str | NDArray[np.float32],
        *,
        rewards: str | NDArray[np.float32] | None,
        values: NDArray[np.float32] | None,
        discount: float,
        trace: float,
    ) -> Table: ...
    def filter(self, keep: NDArray[np.bool_]) -> Table: ...
    def take(self, rows: Sequence[int]) -> Table: ...
    def slice(self, start: int, length: int) -> Table: ...
    def combined(self) -> Table:
        """The same rows in one record batch, or in as few as int32 offsets allow."""

    def row(self, index: int) -> dict[str, Any]: ...
    def tokens(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class TableWriter:
    """An Arrow IPC file that grows table by table; none of them is kept in memory."""

    def __new__(cls, path: str | PathLike[str], like: Table) -> TableWriter: ...
    def write(self, table: Table) -> None: ...
    def finish(self) -> None:
        """Writes the end of the file, without which nothing of it can be read."""

@final
class Column:
    """The flat values of one column, shared by DLPack and as a read-only numpy view.

    `torch.from_dlpack(column)` and `numpy.from_dlpack(column)` give a tensor over the same memory, which lives as long
    as the tensor does. Do not write to it: other views of the column would change.
    """

    def __dlpack__(
        self,
        *,
        stream: object | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]: ...
    def __len__(self) -> int: ...

def trajectories_schema() -> object:
    """The schema of `tokentape.trajectories`, as a capsule of the Arrow C data interface."""

@final
class Packing:
    """A planned packing: what `tokentape.Packing` is a face of."""

    @property
    def ranks(self) -> int: ...
    @property
    def micro_steps(self) -> int: ...
    def bin_tokens(self) -> NDArray[np.int32]: ...
    def rows_of(self, bin: int) -> list[int]: ...  # noqa: A002
    def report(self) -> dict[str, Any]: ...
    def page(self, start: int) -> list[PackedBatch]:
        """The bins from `start` on that are worth filling at once, filled in parallel."""

    def bin(self, index: int) -> PackedBatch: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class PackedBatch:
    """One filled bin: what `tokentape.PackedBatch` is a face of."""

    def column(self, name: str) -> Any:
        """A flat read-only numpy view, or a number; None where the packing has no such column."""

    def values(self, name: str) -> Column | None:
        """The same for DLPack; None where the packing has no such list column."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

def pack(
    table: Table,
    *,
    token_budget: int,
    ranks: int,
    overlong: str,
    align: int,
    pad_token_id: int,
    max_segments: int | None,
    work: tuple[float, float] | NDArray[np.float64],
    sharing: str | None,
) -> Packing: ...
def plan_bins(
    lengths: NDArray[np.int32],
    *,
    token_budget: int,
    ranks: int,
    max_segments: int | None,
    work: tuple[float, float] | NDArray[np.float64],
) -> tuple[NDArray[np.int32], int, float]:
    """The bin of each length, the number of bins, and the imbalance; with ranks, bin `micro_step * ranks + rank`."""

_Found: TypeAlias = tuple[str, Literal["fault", "smell", "note"], int, int | None, int | None, str, str]

@final
class Linter:
    """Checks rows, a table at a time; what it remembers of them does not grow with their number.

    A fault is a tuple: its kind, its level (`"fault"`, `"smell"` or `"note"`), the row counted over all tables, the first
    token and one past the last (None: the row as a whole), the column, and what is wrong in words.
    """

    def __new__(
        cls,
        chat: Chat | None = None,
        *,
        filler: float = 0.0,
        needs_logprobs: bool = False,
        max_length: int | None = None,
        pads: Sequence[int] | None = None,
    ) -> Linter:
        """A linter that has read nothing.

        Args:
            chat: Whose stop tokens, padding and vocabulary the rows have; without one they are learned from the rows.
            filler: What stands where there is no logprob.
            needs_logprobs: Rows without logprobs are faults.
            max_length: The most tokens of a row.
            pads: Further ids that pad.
        """

    def lint(self, table: Table) -> list[_Found]:
        """The faults of the next rows."""

    def finish(self) -> list[_Found]:
        """What can be said only when everything has been read."""

    @property
    def rows(self) -> int:
        """The rows read so far."""

    @property
    def tokens(self) -> int:
        """Their tokens."""

    @property
    def stop_token_ids(self) -> list[int]:
        """The ids that end a turn, given or learned."""

@final
class Prover:
    """Proves rows of ours with their model: see `tokentape.verify`."""

    def __new__(cls, chat: Chat) -> Prover:
        """A prover with the template and tokenizer of a chat."""

    def prove(self, table: Table, first_row: int) -> list[_Found]:
        """The faults and facts of the rows of a table, in the form of `Linter.lint`.

        Args:
            table: The rows.
            first_row: The number of the first.
        """
