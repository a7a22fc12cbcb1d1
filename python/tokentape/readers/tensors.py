"""Files of `torch.save` without torch, and without running anything: plain data, and tensors as numpy arrays.

*Invariant*: no name in the file is looked up. The few that stand for tensors and plain containers are known here; any
other name, and any instruction that could build an object, is refused.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from tokentape.errors import SchemaError
from tokentape.readers.machine import run
from tokentape.readers.sample import TruncatedError

__all__ = ["load"]

Sizes: TypeAlias = "tuple[Any, ...]"

STORAGES = {
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "<i1",
    "ByteStorage": "<u1",
    "BoolStorage": "?",
}


def load(path: Path) -> Any:
    """The object of a file of `torch.save`: dicts, lists, texts, numbers and numpy arrays.

    Raises:
        SchemaError: The file is cut short or damaged, or holds anything else than plain data and tensors.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.partition("/")[2]: name for name in archive.namelist()}
            if "data.pkl" not in names:
                raise SchemaError("the archive holds no data.pkl: it is no file of torch.save")
            read = _reader(archive, names, path.stat().st_size)
            return run(read("data.pkl"), _GLOBALS, _Tensors(read).storage)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise TruncatedError(f"the file is cut short, or no file of torch.save: {error}") from None


def _reader(archive: zipfile.ZipFile, names: dict[str, str], size: int) -> Callable[[str], bytes]:
    """Reads members as they are stored: what is compressed could be much larger than the file."""

    def read(name: str) -> bytes:
        if name not in names:
            raise SchemaError(f"the archive lacks {name}: the file is damaged")
        info = archive.getinfo(names[name])
        if info.compress_type != zipfile.ZIP_STORED or info.file_size > size:
            raise SchemaError(f"{name} is compressed, which torch.save never writes")
        return archive.read(info)

    return read


class _Tensors:
    """The storages of an archive."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self.read = read
        self.known: dict[str, NDArray[Any]] = {}

    def storage(self, name: Any) -> NDArray[Any]:
        """The numbers that a persistent id names: `("storage", type, key, device, count)`."""
        match name:
            case ("storage", str(kind), str(key), str(_), int(_)) if kind in STORAGES and key.isdecimal():
                pass
            case _:
                raise SchemaError("the file names a storage in another form than torch.save writes")
        if key not in self.known:
            data = self.read(f"data/{key}")
            dtype = np.dtype(STORAGES[kind])
            if len(data) % dtype.itemsize:
                raise SchemaError(f"storage {key} has {len(data)} bytes, no multiple of {dtype.itemsize}")
            self.known[key] = np.frombuffer(data, dtype)
        return self.known[key]


def _tensor(*arguments: Any) -> NDArray[Any]:
    """`torch._utils._rebuild_tensor_v2`: a view of a storage."""
    storage, offset, shape, strides = (*arguments, None, None, None, None)[:4]
    if not isinstance(storage, np.ndarray) or not isinstance(shape, tuple) or not isinstance(strides, tuple):
        raise SchemaError("the file builds a tensor in another form than torch.save writes")
    return _view(cast("NDArray[Any]", storage), offset, cast("Sizes", shape), cast("Sizes", strides))


def _view(storage: NDArray[Any], offset: Any, shape: Sizes, strides: Sizes) -> NDArray[Any]:
    whole = all(isinstance(number, int) and number >= 0 for number in (offset, *shape, *strides))
    if not whole or len(shape) != len(strides):
        raise SchemaError("a tensor has a shape or strides that are no sizes")
    if 0 in shape:
        return np.empty(shape, storage.dtype) if max(shape, default=0) < 1 << 31 else np.empty(0, storage.dtype)
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    count = int(np.prod([float(size) for size in shape]))
    if last >= len(storage) or count > len(storage):
        raise SchemaError(f"a tensor of shape {shape} does not fit its storage of {len(storage)} values")
    steps = [stride * storage.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(storage[offset:], shape, steps, writeable=False)


def _ordered(*arguments: Any) -> dict[Any, Any]:
    """`collections.OrderedDict`, empty."""
    if arguments:
        raise SchemaError("the file fills an OrderedDict in another form than torch.save writes")
    return {}


_GLOBALS: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("collections", "OrderedDict"): _ordered,
    **{("torch", name): name for name in STORAGES},
}
