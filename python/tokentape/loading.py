"""Where the parts of a chat come from: a model folder, a GGUF file, a hub id, or a live tokenizer.

*Invariant*: a name that could be a local path never becomes a network call.

The reference for ids is the backend tokenizer as transformers holds it; the reference for templates and special tokens
is what transformers 5.24 reads from the same files, in the same order of precedence.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tokentape.errors import ArgumentError, TokenizerError
from tokentape.gguf import read_metadata
from tokentape.gguf_tokenizer import read_tokenizer

if TYPE_CHECKING:
    import os

__all__ = ["Parts", "from_folder", "from_live", "from_pretrained", "special_token_text", "tokenizer_json"]

HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
HUB_FILES = (
    "tokenizer.json",
    "*_config.json",
    "special_tokens_map.json",
    "*.jinja",
    "additional_chat_templates/*.jinja",
)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a chat is made from.

    Attributes:
        tokenizer: The JSON text of the tokenizer, as in `tokenizer.json`.
        template: The chat template, several by name, or None.
        special_tokens: Variables that every template sees, such as `bos_token`.
        stop_tokens: Ids or texts of tokens that end a turn, each with where it was found: `"generation_config"`,
            `"tokenizer"` or `"argument"`.
        added_tokens: Entries of `added_tokens_decoder` in the tokenizer's configuration, by id.
        response_template: How the tokenizer says that sampled turns are read, as transformers keeps it.
        path: The file that holds `tokenizer`, if one does.
    """

    tokenizer: bytes
    template: str | dict[str, str] | None = None
    special_tokens: dict[str, str] = field(default_factory=dict[str, str])
    stop_tokens: list[tuple[int | str, str]] = field(default_factory=list[tuple[int | str, str]])
    added_tokens: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    response_template: dict[str, Any] | None = None
    path: Path | None = None


def from_pretrained(name: str | os.PathLike[str], *, revision: str | None = None) -> Parts:
    """The parts of a model in a local folder, a GGUF file or, with the extra `hub`, on the hub.

    Args:
        name: A folder that holds `tokenizer.json`, or a hub id of the form `owner/name`. Whatever has another form, and
            whatever stands in a folder that exists, is a path.
        revision: The branch, tag or commit of a hub id.

    Raises:
        ArgumentError: There is no such folder, or the name is a hub id and the extra `hub` is not installed.
        TokenizerError: The folder holds no readable tokenizer.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return from_folder(path)
    if path.is_file():
        return _from_file(path)
    if not isinstance(name, str) or not _is_hub_id(name):
        raise ArgumentError(f"no such model folder: {str(name)!r}. {_what_is_there(path)}")
    return from_folder(_download(name, revision))


def _is_hub_id(name: str) -> bool:
    return HUB_ID.fullmatch(name) is not None and not Path(name.split("/", maxsplit=1)[0]).exists()


def _what_is_there(path: Path) -> str:
    """A hint for a mistyped path: the first part that does not exist, and what stands beside it."""
    missing = path
    while not missing.parent.exists() and missing.parent != missing:
        missing = missing.parent
    beside = (
        sorted(entry.name for entry in missing.parent.iterdir() if entry.is_dir())[:8]
        if missing.parent.is_dir()
        else []
    )
    shown = f"folders there: {', '.join(beside)}" if beside else "there are no folders there"
    return f"In {str(missing.parent)!r} there is no {missing.name!r}; {shown}"


def _download(name: str, revision: str | None) -> Path:
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError:
        raise ArgumentError(
            f"{name!r} is no local folder, and hub ids need the extra `hub`: pip install 'tokentape[hub]', or download "
            "the model and pass its folder"
        ) from None
    try:
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=list(HUB_FILES)))
    except Exception as error:  # whatever the hub's client raises: it has a family of errors, and httpx's besides
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise ArgumentError(
            f"{name!r} is no local folder, and it could not be had from the hub: {reason}. Check the name and the "
            "network, or download the model and pass its folder"
        ) from error


def _from_file(path: Path) -> Parts:
    if path.suffix == ".gguf":
        return _from_gguf(path)
    if path.name == "tokenizer.json":
        return from_folder(path.parent)
    raise ArgumentError(f"{str(path)!r} is a file: pass the model's folder")


def _from_gguf(path: Path) -> Parts:
    found = read_tokenizer(read_metadata(path), str(path))
    stops: list[tuple[int | str, str]] = [(id_, "tokenizer") for id_ in found.stop_tokens]
    return Parts(found.json, found.template, found.special_tokens, stops)


# Folders ------------------------------------------------------------------------------------------------------------


def from_folder(folder: Path) -> Parts:
    """The parts of a model folder, read as transformers 5.24 reads it.

    Args:
        folder: A folder with `tokenizer.json` and, where the model has them, `tokenizer_config.json`,
            `special_tokens_map.json`, `generation_config.json`, `chat_template.jinja` and
            `additional_chat_templates/*.jinja`.

    Raises:
        TokenizerError: There is no `tokenizer.json`, or a file is broken.
    """
    tokenizer = folder / "tokenizer.json"
    if not tokenizer.is_file():
        found = ", ".join(sorted(entry.name for entry in folder.iterdir())[:12]) or "nothing"
        raise TokenizerError(f"{str(folder)!r} holds no tokenizer.json, only: {found}")
    config = _read_json(folder / "tokenizer_config.json")
    special_tokens = _special_tokens(config, folder)
    stops: list[tuple[int | str, str]] = [(token, "generation_config") for token in _generation_eos(folder)]
    if "eos_token" in special_tokens:
        stops.append((special_tokens["eos_token"], "tokenizer"))
    decoder = cast("dict[str, dict[str, Any]]", config.get("added_tokens_decoder") or {})
    added = {int(number): entry for number, entry in decoder.items()}
    response = _response_template(config.get("response_template"))
    return Parts(tokenizer.read_bytes(), _template(config, folder), special_tokens, stops, added, response, tokenizer)


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file, empty if there is no such file."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TokenizerError(f"{str(path)!r} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise TokenizerError(f"{str(path)!r} holds no JSON object, but a {type(value).__name__}")
    return cast("dict[str, Any]", value)


def special_token_text(token: object) -> str | None:
    """The text of a special token as configurations write it: a string, or an object with `content`."""
    if isinstance(token, Mapping):
        token = cast("Mapping[str, object]", token).get("content")
    return token if isinstance(token, str) else None


def _special_tokens(config: dict[str, Any], folder: Path) -> dict[str, str]:
    """The special tokens by name: those every tokenizer has, and the model's own, such as `image_token`."""
    # Only configurations without a table of added tokens leave special tokens to the older file.
    older = {} if "added_tokens_decoder" in config else _read_json(folder / "special_tokens_map.json")
    named = config | older
    extra = named.get("extra_special_tokens")
    own = cast("dict[str, Any]", extra) if isinstance(extra, dict) else {}
    tokens = {name: token for name, token in named.items() if name.endswith("_token")} | own
    texts = ((name, special_token_text(token)) for name, token in tokens.items())
    return {name: text for name, text in texts if text is not None}


def _response_template(value: object) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _generation_eos(folder: Path) -> list[int]:
    """The end-of-sequence ids of the generation config."""
    found = _read_json(folder / "generation_config.json").get("eos_token_id")
    if found is None:
        return []
    ids = cast("list[Any]", found if isinstance(found, list) else [found])
    return [number for number in ids if isinstance(number, int) and not isinstance(number, bool)]


def _template(config: dict[str, Any], folder: Path) -> str | dict[str, str] | None:
    """The chat template or templates. Files go before the configuration."""
    single = folder / "chat_template.jinja"
    files = {"default": single} if single.is_file() else {}
    extra = folder / "additional_chat_templates"
    files |= {path.stem: path for path in sorted(extra.glob("*.jinja"))} if extra.is_dir() else {}
    if not files:
        return _configured_template(config.get("chat_template"))
    texts = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    return texts["default"] if list(texts) == ["default"] else texts


def _configured_template(value: object) -> str | dict[str, str] | None:
    """A template as configurations write it: a text, or a list of objects with `name` and `template`."""
    if isinstance(value, list):
        entries = cast("list[dict[str, str]]", value)
        return {entry["name"]: entry["template"] for entry in entries}
    if isinstance(value, dict):
        return cast("dict[str, str]", value)
    return value if isinstance(value, str) else None


def tokenizer_json(parts: Parts) -> bytes:
    """The tokenizer, with the added tokens that only the configuration knows, as transformers adds them on loading."""
    if not parts.added_tokens:
        return parts.tokenizer
    known = {entry["content"] for entry in _added_tokens(parts.tokenizer)}
    missing = [{"id": id_, **entry} for id_, entry in parts.added_tokens.items() if entry["content"] not in known]
    if not missing:
        return parts.tokenizer
    tokenizer = json.loads(parts.tokenizer)
    tokenizer["added_tokens"] = sorted([*tokenizer.get("added_tokens", []), *missing], key=lambda entry: entry["id"])
    return json.dumps(tokenizer, ensure_ascii=False).encode()


def _added_tokens(content: bytes) -> list[dict[str, Any]]:
    """The added tokens of a `tokenizer.json`, read without the vocabulary where they stand before it."""
    at = content.find(b'"added_tokens"')
    start = content.find(b"[", at)
    if at < 0 or start < 0:
        return []
    end = content.find(b'"model"', start)
    for part in (content[start:end], content[start:]):
        with contextlib.suppress(ValueError):
            return cast("list[dict[str, Any]]", json.JSONDecoder().raw_decode(part.decode())[0])
    return []


# Live objects -------------------------------------------------------------------------------------------------------


def from_live(tokenizer: object) -> Parts:
    """The parts of a live tokenizer object, as it was loaded and changed.

    Args:
        tokenizer: A fast tokenizer or a processor of transformers, or a `tokenizers.Tokenizer`.

    Raises:
        ArgumentError: The object is none of these.
    """
    live = cast("Any", tokenizer)
    if hasattr(live, "tokenizer") and not hasattr(live, "backend_tokenizer"):
        inner = from_live(live.tokenizer)
        template = cast("object", getattr(live, "chat_template", None) or inner.template)
        own = _response_template(getattr(live, "response_template", None)) or inner.response_template
        given = {"template": _configured_template(template), "response_template": own}
        return replace(inner, **given)
    if hasattr(live, "backend_tokenizer"):
        special_tokens: dict[str, str] = dict(live.special_tokens_map)
        stops: list[tuple[int | str, str]] = []
        if "eos_token" in special_tokens:
            stops.append((special_tokens["eos_token"], "tokenizer"))
        template = _configured_template(cast("object", getattr(live, "chat_template", None)))
        response = _response_template(getattr(live, "response_template", None))
        json_text = live.backend_tokenizer.to_str().encode()
        return Parts(json_text, template, special_tokens, stops, response_template=response)
    if hasattr(live, "to_str") and hasattr(live, "get_vocab_size"):
        return Parts(live.to_str().encode())
    raise ArgumentError(
        f"a {type(tokenizer).__name__} is no tokenizer that can be read: pass a fast tokenizer of transformers (one "
        "with `backend_tokenizer`) or a `tokenizers.Tokenizer`"
    )
