"""The Arrow contract in Python: `Batch`, runs of files, and packing."""

from __future__ import annotations

from tokentape.batch.run import RunWriter
from tokentape.batch.table import Batch, Row

__all__ = ["Batch", "Row", "RunWriter"]
