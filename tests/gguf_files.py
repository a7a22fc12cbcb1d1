"""Writes GGUF files for tests: any metadata, with or without the tensors of a model that llama.cpp loads."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

WIDTH = 32
ALIGNMENT = 32


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value(content: Any) -> bytes:
    """A value with its type in front."""
    match content:
        case bool():
            return struct.pack("<I?", 7, content)
        case int():
            return struct.pack("<II", 4, content)
        case float():
            return struct.pack("<If", 6, content)
        case str():
            return struct.pack("<I", 8) + text(content)
        case np.ndarray():
            kind = {"i": 5, "f": 6}[content.dtype.kind]
            return struct.pack("<IIQ", 9, kind, len(content)) + content.astype(f"<{content.dtype.kind}4").tobytes()
        case list():
            return struct.pack("<IIQ", 9, 8, len(content)) + b"".join(map(text, content))
    raise TypeError(type(content))


def head(metadata: dict[str, Any], *, tensors: int = 0, version: int = 3) -> bytes:
    entries = b"".join(text(key) + value(content) for key, content in metadata.items())
    return b"GGUF" + struct.pack("<IQQ", version, tensors, len(metadata)) + entries


def model(path: Path, tokenizer: dict[str, Any]) -> Path:
    """A model of one tiny layer of zeros, which llama.cpp loads for the sake of its tokenizer."""
    count = len(tokenizer["tokenizer.ggml.tokens"])
    square = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    shapes = {
        "token_embd.weight": (WIDTH, count),
        "output_norm.weight": (WIDTH,),
        "blk.0.attn_norm.weight": (WIDTH,),
        "blk.0.ffn_norm.weight": (WIDTH,),
        **{f"blk.0.{name}.weight": (WIDTH, WIDTH) for name in square},
    }
    metadata = {
        "general.architecture": "llama",
        "llama.context_length": 512,
        "llama.embedding_length": WIDTH,
        "llama.block_count": 1,
        "llama.feed_forward_length": WIDTH,
        "llama.attention.head_count": 1,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": WIDTH,
        **tokenizer,
    }
    infos, data = b"", b""
    for name, shape in shapes.items():
        infos += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data))
        size = 4 * int(np.prod(shape))
        data += bytes(-size % ALIGNMENT + size)
    content = head(metadata, tensors=len(shapes)) + infos
    path.write_bytes(content + bytes(-len(content) % ALIGNMENT) + data)
    return path
