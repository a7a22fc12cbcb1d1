"""The engine of tokentape, in Rust. Import from `tokentape`, not from here."""

from typing import Final

__version__: Final[str]
build_profile: Final[str]
