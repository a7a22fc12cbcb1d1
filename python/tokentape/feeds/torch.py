"""Tensors for torch of packed batches, without a copy, and data sets of them."""

from __future__ import annotations

import importlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tokentape.batch import Batch, pack
from tokentape.errors import ArgumentError
from tokentape.feeds.labels import labels, shifted

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from tokentape.batch import PackedBatch, Packing

__all__ = ["PackedDataset", "PackedIterable", "moved", "to_torch"]

_COLUMNS = (
    "input_ids",
    "position_ids",
    "segment_ids",
    "sampled_mask",
    "loss_mask",
    "loss_weight",
    "logprobs",
    "advantages",
    "policy_version",
    "ref_logprobs",
    "cu_seqlens",
    "seq_lens",
)


def to_torch(
    packed: PackedBatch, *, device: Any = None, with_labels: bool = False, with_shifted_labels: bool = False
) -> dict[str, Any]:
    """A packed batch as flat tensors, for attention over segments (varlen) by `cu_seqlens`.

    On the CPU the tensors share the memory of `packed`: treat them as read-only. There is no attention mask: a mask of
    ones would switch the detection of packed sequences off in transformers.

    Args:
        packed: One bin.
        device: Where the tensors go, for example "cuda"; None leaves them where they are.
        with_labels: Adds `labels`: int64, aligned to the token itself, -100 where the loss mask is 0. For models that
            shift inside, as those of transformers do.
        with_shifted_labels: Adds `shifted_labels`: int64, place `t` holds the label of token `t + 1`. For losses that
            compare logits with labels place by place.

    Returns:
        `input_ids`, `position_ids`, `segment_ids`, `cu_seqlens`, `seq_lens` (int32), `sampled_mask`, `loss_mask`
        (bool), `loss_weight`, `logprobs`, `advantages`, `ref_logprobs` (float32) and `policy_version` (int64) where the
        packing has them, and `max_seqlen` (int).

    Example:
        >>> import tokentape as tt
        >>> batch = tt.Batch.from_rows([{"token_ids": [7, 8, 9], "sampled_mask": [0, 1, 1]}])
        >>> tensors = to_torch(next(iter(tt.pack(batch, token_budget=8))), with_labels=True)
        >>> tensors["labels"].tolist(), tensors["max_seqlen"]
        ([-100, 8, 9], 3)
    """
    if packed.parent is not None:
        raise ArgumentError("the packed batch shares prefixes, which cu_seqlens cannot say: use feeds.to_torch_tree")
    arrays = {name: getattr(packed, name) for name in _COLUMNS}
    tensors = {name: shared(array) for name, array in arrays.items() if array is not None}
    for name in ("sampled_mask", "loss_mask"):
        tensors[name] = tensors[name].view(_torch().bool)
    if with_labels:
        tensors["labels"] = _torch().from_numpy(labels(packed.input_ids, packed.loss_mask))
    if with_shifted_labels:
        tensors["shifted_labels"] = _torch().from_numpy(shifted(packed))
    return moved(tensors, device) | {"max_seqlen": packed.max_seqlen}


class PackedDataset:
    """The packed batches of a file or run, for a torch `DataLoader` with any number of workers.

    A map-style dataset: it has a length and can be shuffled. Workers map the same file, so that its pages are in memory
    once, and each makes the same plan. Pass it to `DataLoader(dataset, batch_size=None, num_workers=n)`.

    Example:
        >>> import tempfile, torch, tokentape as tt
        >>> path = tempfile.mkdtemp() + "/a.arrow"
        >>> tt.Batch.from_rows([{"token_ids": [1, 2, 3], "sampled_mask": [1, 1, 1]}] * 4).write(path)
        >>> loader = torch.utils.data.DataLoader(PackedDataset(path, token_budget=6), batch_size=None)
        >>> [tensors["input_ids"].tolist() for tensors in loader]
        [[1, 2, 3, 1, 2, 3], [1, 2, 3, 1, 2, 3]]
    """

    def __init__(self, path: str | os.PathLike[str], *, rank: int = 0, **options: Any) -> None:
        """Opens a file or run when it is first used.

        Args:
            path: What `Batch.read` takes.
            rank: The rank whose bins are given, with `ranks=` among the options.
            **options: What `pack` takes.
        """
        self.path, self.rank, self.options = path, rank, options

    @cached_property
    def packing(self) -> Packing:
        """The packing, planned once in each process."""
        return pack(Batch.read(self.path, validate=False), **self.options)

    def __len__(self) -> int:
        return self.packing.micro_steps

    def __getitem__(self, micro_step: int) -> dict[str, Any]:
        """The tensors of one micro-step, see `to_torch`."""
        if not 0 <= micro_step < len(self):
            raise IndexError(f"micro-step {micro_step} is out of range: there are {len(self)}")
        return to_torch(self.packing[micro_step * self.packing.ranks + self.rank])

    def __getstate__(self) -> dict[str, Any]:
        """Travels to workers as path and options, not as rows."""
        return {name: value for name, value in vars(self).items() if name != "packing"}


def PackedIterable(path: str | os.PathLike[str], *, rank: int = 0, **options: Any) -> Any:  # noqa: N802
    """The packed batches of a file or run as a torch `IterableDataset`, for loaders that stream.

    Each of several workers of a `DataLoader` gives every n-th micro-step; they map one file, whose pages are in memory
    once. Pass it to `DataLoader(dataset, batch_size=None, num_workers=n)`.

    Args:
        path: What `Batch.read` takes.
        rank: The rank whose bins are given, with `ranks=` among the options.
        **options: What `pack` takes.
    """
    return importlib.import_module("tokentape.feeds.iterable").Iterable(PackedDataset(path, rank=rank, **options))


class _Writable:
    """A read-only array as numpy's array interface gives a writable one, over the same memory.

    Torch has no read-only tensors and warns about read-only arrays; the feed promises its reader the same in words.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self._owner = array
        interface = array.__array_interface__
        self.__array_interface__ = interface | {"data": (interface["data"][0], False)}


def shared(array: NDArray[Any]) -> Any:
    """A tensor over the memory of a read-only array, which lives as long as the tensor does."""
    return _torch().from_numpy(np.asarray(_Writable(array)))


def moved(tensors: dict[str, Any], device: Any) -> dict[str, Any]:
    """The tensors on `device`; None leaves them."""
    if device is None:
        return tensors
    return {name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()}


def _torch() -> Any:
    return importlib.import_module("torch")
