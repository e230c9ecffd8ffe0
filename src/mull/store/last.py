"""The last conversation of `mull ask`, so that `--continue` can go on with it."""

from __future__ import annotations

import msgspec

from mull.neutral.blocks import Value
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message
from mull.store.files import read_bytes, write_atomic
from mull.store.paths import data_dir

__all__ = ["LAST_FILE", "Last", "load_last", "save_last"]

LAST_FILE = "last.json"


class Last(Value, frozen=True):
    """A conversation as it was left."""

    version: int
    model: str
    system: str
    messages: tuple[Message, ...]
    base_url: str | None = None


def load_last() -> Last | None:
    """The conversation, or None if there is none.

    Raises:
        ConfigError: it cannot be read.
    """
    path = data_dir() / LAST_FILE
    data = read_bytes(path)
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=Last)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is damaged ({error}): ask without --continue") from None


def save_last(last: Last) -> None:
    """Keep the conversation.

    Raises:
        ConfigError: it cannot be written.
    """
    write_atomic(data_dir() / LAST_FILE, msgspec.json.encode(last))
