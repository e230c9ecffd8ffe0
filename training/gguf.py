"""Reads the base weights out of a GGUF file, and writes a llama.cpp adapter as one.

Only what the weights in use need: GGUF 3 with tensors of F32, F16, Q4_1 and Q8_0.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["read_fields", "read_tensors", "write_adapter"]

_MAGIC = b"GGUF"
_VERSION = 3
_ALIGNMENT = 32
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9
_UINT32, _FLOAT32 = 4, 6
_F32, _F16, _Q4_1, _Q8_0 = 0, 1, 3, 8
_BLOCK = 32
"""Weights in a block of a quantised tensor."""
_BYTES = {_F32: 4 * _BLOCK, _F16: 2 * _BLOCK, _Q4_1: 4 + _BLOCK // 2, _Q8_0: 2 + _BLOCK}
"""Bytes of a block."""

Floats: TypeAlias = NDArray[np.float32]


def read_fields(path: Path) -> dict[str, Any]:
    """What the file says of itself: shapes, settings, vocabulary."""
    with open(path, "rb") as file:
        return _read_head(file)[0]


def read_tensors(path: Path) -> dict[str, Floats]:
    """All tensors as 32-bit floats, the last dimension first as NumPy has it."""
    with open(path, "rb") as file:
        _, infos = _read_head(file)
        start = -(-file.tell() // _ALIGNMENT) * _ALIGNMENT
        found: dict[str, Floats] = {}
        for name, (shape, kind, offset) in infos.items():
            file.seek(start + offset)
            count = prod(shape)
            data = np.frombuffer(file.read(count // _BLOCK * _BYTES[kind]), np.uint8)
            found[name] = _dequantised(data, kind).reshape(shape[::-1])
        return found


def _dequantised(data: NDArray[np.uint8], kind: int) -> Floats:
    if kind in (_F32, _F16):
        return data.view(np.float32 if kind == _F32 else np.float16).astype(np.float32)
    blocks = data.reshape(-1, _BYTES[kind])
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    if kind == _Q8_0:
        return scale * blocks[:, 2:].view(np.int8).astype(np.float32)
    least = blocks[:, 2:4].copy().view(np.float16).astype(np.float32)
    packed = blocks[:, 4:]
    values = np.concatenate((packed & 15, packed >> 4), axis=1).astype(np.float32)
    return scale * values + least


def _read_head(file: BinaryIO) -> tuple[dict[str, Any], dict[str, tuple[list[int], int, int]]]:
    if file.read(4) != _MAGIC or _scalar(file, "I") != _VERSION:
        raise ValueError("not a GGUF file of version 3")
    tensors, fields = _scalar(file, "Q"), _scalar(file, "Q")
    told = {_string(file): _value(file, _scalar(file, "I")) for _ in range(fields)}
    infos: dict[str, tuple[list[int], int, int]] = {}
    for _ in range(tensors):
        name = _string(file)
        shape = [_scalar(file, "Q") for _ in range(_scalar(file, "I"))]
        infos[name] = (shape, _scalar(file, "I"), _scalar(file, "Q"))
    return told, infos


def _scalar(file: BinaryIO, kind: str) -> Any:
    return struct.unpack("<" + kind, file.read(struct.calcsize("<" + kind)))[0]


def _string(file: BinaryIO) -> str:
    return file.read(_scalar(file, "Q")).decode()


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind == _ARRAY:
        inner, count = _scalar(file, "I"), _scalar(file, "Q")
        return [_value(file, inner) for _ in range(count)]
    return _scalar(file, _SCALARS[kind])


def write_adapter(
    path: Path,
    pairs: Mapping[str, tuple[Floats, Floats]],
    *,
    alpha: float,
    about: Mapping[str, str],
) -> None:
    """Write a LoRA adapter in 16-bit floats: for each tensor of the base a pair A, B."""
    said = {"general.architecture": "llama", "general.type": "adapter", "adapter.type": "lora"}
    fields = [_packed_string(key) + struct.pack("<I", _STRING) + _packed_string(text)
              for key, text in {**said, **about}.items()]  # fmt: skip
    fields.append(_packed_string("adapter.lora.alpha") + struct.pack("<If", _FLOAT32, alpha))
    fields.append(_packed_string("general.file_type") + struct.pack("<II", _UINT32, 1))
    tensors = {
        f"{name}.lora_{side}": np.ascontiguousarray(matrix, np.float16)
        for name, pair in pairs.items()
        for side, matrix in zip("ab", pair, strict=True)
    }
    infos, offset = [], 0
    for name, matrix in tensors.items():
        shape = struct.pack(f"<I{matrix.ndim}Q", matrix.ndim, *matrix.shape[::-1])
        infos.append(_packed_string(name) + shape + struct.pack("<IQ", _F16, offset))
        offset += _padded(matrix.nbytes)
    head = _MAGIC + struct.pack("<IQQ", _VERSION, len(tensors), len(fields))
    head += b"".join(fields) + b"".join(infos)
    with open(path, "wb") as file:
        file.write(head.ljust(_padded(len(head)), b"\0"))
        for matrix in tensors.values():
            file.write(matrix.tobytes().ljust(_padded(matrix.nbytes), b"\0"))


def _packed_string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
