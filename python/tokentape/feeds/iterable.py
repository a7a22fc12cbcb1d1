"""The `IterableDataset` of packed batches; imports torch, so it is loaded when it is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokentape.feeds.torch import PackedDataset

__all__ = ["Iterable"]

_data: Any = importlib.import_module("torch.utils.data")


class Iterable(_data.IterableDataset):
    """The micro-steps of a `PackedDataset` in order, dealt to the workers of a loader in turn."""

    def __init__(self, dataset: PackedDataset) -> None:
        self.dataset = dataset

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker = _data.get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        return (self.dataset[micro_step] for micro_step in range(first, len(self.dataset), step))
