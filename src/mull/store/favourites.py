"""favourites.json: the models that a user has marked, in the order in which they were."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mull.logs import log_warning
from mull.neutral.errors import ConfigError
from mull.store.files import read_bytes, write_atomic

__all__ = ["FAVOURITES_FILE", "Favourites"]

FAVOURITES_FILE = "favourites.json"


class Favourites:
    """What is marked; read when it is asked for. A damaged file counts as none."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / FAVOURITES_FILE

    def names(self) -> list[str]:
        """The models, `provider/model`, the first that was marked first."""
        try:
            data = read_bytes(self.path)
            return [] if data is None else msgspec.json.decode(data, type=list[str])
        except (ConfigError, msgspec.DecodeError, UnicodeError, RecursionError) as error:
            log_warning(f"your favourite models are not known: {self.path}: {error}")
            return []

    def toggle(self, name: str) -> bool:
        """Mark a model, or take the mark away; whether it is marked now.

        Raises:
            ConfigError: the file cannot be written.
        """
        before = self.names()
        after = [one for one in before if one != name]
        if name not in before:
            after.append(name)
        write_atomic(self.path, msgspec.json.format(msgspec.json.encode(after)) + b"\n")
        return name in after
