"""Where compiled tokenizers are kept between processes.

*Invariant*: only the time of loading depends on it. A folder that cannot be written or read is as good as none.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

from tokentape import _core

__all__ = ["SETTING", "folder", "store"]

SETTING = "TOKENTAPE_CACHE"
OFF = {"", "0", "off", "false", "none"}
# Smaller tokenizers are compiled in a few milliseconds.
LEAST = 1 << 20


def folder() -> Path | None:
    """The folder of the cache: what `TOKENTAPE_CACHE` says, else `tokentape` in the user's cache folder.

    Returns:
        The folder, which need not exist; or None if `TOKENTAPE_CACHE` is `off`, `0`, `false`, `none` or empty, or if
        the user has no home folder.

    Example:
        >>> import os
        >>> from tokentape import caching
        >>> os.environ["TOKENTAPE_CACHE"] = "off"
        >>> caching.folder() is None
        True
    """
    setting = os.environ.get(SETTING)
    if setting is not None:
        return None if setting.lower() in OFF else Path(setting)
    try:
        return _user_folder() / "tokentape"
    except RuntimeError:
        return None


def _user_folder() -> Path:
    """The folder for files that may be lost, as the system has it."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    named = os.environ.get(variable, "")
    return Path(named) if Path(named).is_absolute() else Path.home() / ".cache"


@functools.cache
def _build() -> str:
    """What the engine's file is known by: another build may lay tables out in another way."""
    about = Path(_core.__file__).stat()
    return f"{about.st_size} {about.st_mtime_ns}"


def store(tokenizer: bytes) -> tuple[Path, str] | None:
    """Where the engine keeps a tokenizer, and the build that reads and writes there; None where it keeps it nowhere.

    Args:
        tokenizer: The content of a `tokenizer.json`.
    """
    found = folder() if len(tokenizer) >= LEAST else None
    return found and (found, _build())
