"""The Arrow contract in Python: `Batch`, runs of files, and packing."""

from __future__ import annotations

from tokentape.batch.packed import PackedBatch
from tokentape.batch.packing import Packing, pack
from tokentape.batch.report import LeftOut, PackingReport, Truncated
from tokentape.batch.rewards import drop_zero_variance, rollout_rewards
from tokentape.batch.row import Row
from tokentape.batch.run import RunWriter
from tokentape.batch.streaming import pack_stream
from tokentape.batch.table import Batch
from tokentape.batch.writing import BatchWriter

__all__ = [
    "Batch",
    "BatchWriter",
    "LeftOut",
    "PackedBatch",
    "Packing",
    "PackingReport",
    "Row",
    "RunWriter",
    "Truncated",
    "drop_zero_variance",
    "pack",
    "pack_stream",
    "rollout_rewards",
]
