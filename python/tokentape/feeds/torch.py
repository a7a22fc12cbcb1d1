"""Tensors for torch: of packed batches without a copy, and of rows padded to a rectangle."""

from __future__ import annotations

import importlib
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tokentape.batch import Batch, pack
from tokentape.errors import ArgumentError
from tokentape.feeds.labels import IGNORED, labels, shifted

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from tokentape.batch import PackedBatch, Packing

__all__ = ["PackedDataset", "to_torch", "to_torch_padded"]

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
    "cu_seqlens",
    "seq_lens",
)
_PER_TOKEN = {"input_ids": 0, "sampled_mask": 0, "loss_mask": 0, "loss_weight": 0.0, "logprobs": 0.0, "advantages": 0.0}


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
        (bool), `loss_weight`, `logprobs`, `advantages` (float32) and `policy_version` (int64) where the packing has
        them, and `max_seqlen` (int).

    Example:
        >>> import tokentape as tt
        >>> batch = tt.Batch.from_rows([{"token_ids": [7, 8, 9], "sampled_mask": [0, 1, 1]}])
        >>> tensors = to_torch(next(iter(tt.pack(batch, token_budget=8))), with_labels=True)
        >>> tensors["labels"].tolist(), tensors["max_seqlen"]
        ([-100, 8, 9], 3)
    """
    arrays = {name: getattr(packed, name) for name in _COLUMNS}
    tensors = {name: shared(array) for name, array in arrays.items() if array is not None}
    for name in ("sampled_mask", "loss_mask"):
        tensors[name] = tensors[name].view(_torch().bool)
    if with_labels:
        tensors["labels"] = _torch().from_numpy(labels(packed.input_ids, packed.loss_mask))
    if with_shifted_labels:
        tensors["shifted_labels"] = _torch().from_numpy(shifted(packed))
    return moved(tensors, device) | {"max_seqlen": packed.max_seqlen}


def to_torch_padded(
    batch: Batch,
    *,
    pad_token_id: int,
    side: Literal["left", "right"] = "right",
    multiple_of: int = 1,
    device: Any = None,
    with_labels: bool = False,
) -> dict[str, Any]:
    """Rows as a padded rectangle, for trainers that do not pack.

    Args:
        batch: The rows; take neighbours in length (`batch.take(np.argsort(lengths))`) to pad little.
        pad_token_id: The id of padding.
        side: Where padding stands.
        multiple_of: The width becomes a multiple of this.
        device: Where the tensors go; None leaves them on the CPU.
        with_labels: Adds `labels`: int64, aligned to the token itself, -100 where the loss mask is 0.

    Returns:
        `input_ids`, `position_ids` (int32), `attention_mask`, `sampled_mask`, `loss_mask` (bool), each of shape
        (rows, width), and `loss_weight`, `logprobs`, `advantages` (float32) if every row has them. A row's first token
        carries no loss.
    """
    if side not in {"left", "right"}:
        raise ArgumentError(f"side={side!r} is neither 'left' nor 'right'")
    arrays = _padded(batch, pad_token_id, side, multiple_of)
    if with_labels:
        arrays["labels"] = np.where(arrays["loss_mask"], arrays["input_ids"], IGNORED).astype(np.int64)
    return moved({name: _torch().from_numpy(array) for name, array in arrays.items()}, device)


def _padded(batch: Batch, pad_token_id: int, side: str, multiple_of: int) -> dict[str, NDArray[Any]]:
    rows = list(batch.rows())
    width = -(-max((len(row) for row in rows), default=0) // multiple_of) * multiple_of
    present = [name for name in _PER_TOKEN if rows and all(getattr(row, name, True) is not None for row in rows)]
    fillers = _PER_TOKEN | {"input_ids": pad_token_id}
    kinds = {"input_ids": np.int32, "sampled_mask": np.bool_, "loss_mask": np.bool_}
    arrays = {name: np.full((len(rows), width), fillers[name], kinds.get(name, np.float32)) for name in present}
    arrays |= {"position_ids": np.zeros((len(rows), width), np.int32)}
    arrays |= {"attention_mask": np.zeros((len(rows), width), np.bool_)}
    for index, row in enumerate(rows):
        place = slice(width - len(row), width) if side == "left" else slice(0, len(row))
        for name in present:
            arrays[name][index, place] = row.token_ids if name == "input_ids" else getattr(row, name)
        arrays["position_ids"][index, place] = np.arange(len(row))
        arrays["attention_mask"][index, place] = True
        for name in {"loss_mask", "loss_weight"} & set(present):
            arrays[name][index, place.start : place.start + 1] = 0
    return arrays


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
