"""The file with this installation's envelope keys: the first seals envelopes, each of them opens.

Gateways that share a store agree on one key, which comes first in each gateway's file.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from mull.store.files import make_parents, read_bytes, write_atomic
from mull.store.locks import FileLock

__all__ = ["put_first", "read_keys"]

_LENGTH = 32
_MOST = 8


def read_keys(path: Path) -> tuple[bytes, ...]:
    """The keys. If there is none, one is generated.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    if held := _split(read_bytes(path)):
        return held
    make_parents(path.parent)
    with FileLock(path.with_suffix(".lock")):
        if held := _split(read_bytes(path)):  # another gateway generated one meanwhile
            return held
        key = secrets.token_bytes(_LENGTH)
        write_atomic(path, key)
        return (key,)


def put_first(path: Path, key: bytes) -> None:
    """Seal envelopes with this key from now on.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    with FileLock(path.with_suffix(".lock")):
        others = [one for one in _split(read_bytes(path)) if one != key]
        write_atomic(path, b"".join([key, *others][:_MOST]))


def _split(data: bytes | None) -> tuple[bytes, ...]:
    data = data or b""
    whole = len(data) - len(data) % _LENGTH
    return tuple(data[at : at + _LENGTH] for at in range(0, whole, _LENGTH))
