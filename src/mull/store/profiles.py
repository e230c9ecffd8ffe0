"""Profiles on disk: one JSON file each, and a small file with the name of the default one.

What a profile may hold is decided in `mull.settings.profile`; this file decides names and files.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection
from pathlib import Path

from mull.neutral.errors import ConfigError, ProfileError
from mull.neutral.patterns import pattern
from mull.settings.profile import Profile, profile_from_json, profile_to_json
from mull.settings.words import NO_PROFILE, closest, quote
from mull.store.files import read_bytes, remove, write_atomic

__all__ = ["Profiles"]

_NAME = pattern(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?", re.ASCII)
# Windows opens devices under these names, with any ending
_DEVICE = pattern(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)


class Profiles:
    """The profiles of one directory, which need not exist yet."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def save(self, name: str, profile: Profile, *, overwrite: bool = False) -> Path:
        """Write the profile and return its file.

        Raises:
            ProfileError: the name or content is not allowed, or the name is taken.
            ConfigError: the file cannot be written.
        """
        path = self._path(name)
        data = profile_to_json(profile, name)
        if not overwrite and path.exists():
            raise ProfileError(f"profile {quote(name)} already exists: --overwrite replaces it")
        write_atomic(path, data)
        return path

    def load(self, name: str, providers: Collection[str] | None = None) -> Profile:
        """Read a profile; with `providers`, its provider must be one of them.

        Raises:
            ProfileError: there is none of this name, or it is not what a profile should be.
            ConfigError: the file cannot be read.
        """
        data = read_bytes(self._path(name))
        if data is None:
            raise ProfileError(self._missing(name))
        return profile_from_json(data, name, providers)

    def list(self) -> builtins.list[str]:
        """The names of all profiles, sorted."""
        if not self._directory.is_dir():
            return []
        try:
            found = [path.stem for path in self._directory.glob("*.json") if path.is_file()]
        except OSError as error:
            raise ConfigError(f"cannot read {self._directory}: {error.strerror}") from error
        return sorted(name for name in found if _is_name(name))

    def delete(self, name: str) -> bool:
        """Delete a profile and return whether it was the default, which then is none.

        Raises:
            ProfileError: there is no such profile.
            ConfigError: its file cannot be deleted.
        """
        path = self._path(name)
        if not path.is_file():
            raise ProfileError(self._missing(name))
        was_default = self.default() == name
        if was_default:
            self.set_default(None)
        remove(path)
        return was_default

    def default(self) -> str | None:
        """The name of the default profile.

        Raises:
            ProfileError: the file that should hold a name holds something else.
        """
        data = read_bytes(self._default_file)
        name = (data or b"").decode(errors="replace").strip()
        if not name:
            return None
        if not _is_name(name):
            raise ProfileError(
                f"{self._default_file} is damaged: run `mull profile set-default NAME` or "
                f"`mull profile set-default {NO_PROFILE}`"
            )
        return name

    def set_default(self, name: str | None) -> None:
        """Make a profile the default, or none.

        Raises:
            ProfileError: there is no such profile, or it is not what a profile should be.
        """
        if name is None:
            remove(self._default_file)
            return
        self.load(name)
        write_atomic(self._default_file, f"{name}\n".encode())

    @property
    def _default_file(self) -> Path:
        return self._directory / ".default"

    def _path(self, name: str) -> Path:
        if not _is_name(name):
            raise ProfileError(
                f"a profile cannot be called {quote(name)}: use letters, digits, '.', '_' and "
                f"'-', up to 64, beginning with a letter or digit; {NO_PROFILE} is taken"
            )
        return self._directory / f"{name}.json"

    def _missing(self, name: str) -> str:
        names = self.list()
        near = closest(name, names)
        if near:
            return f"there is no profile {quote(name)}: did you mean {near}?"
        have = f"you have {', '.join(names)}" if names else "none is saved yet"
        return f"there is no profile {quote(name)}: {have}"


def _is_name(name: str) -> bool:
    return (
        _NAME.fullmatch(name) is not None
        and name.lower() != NO_PROFILE
        and not _DEVICE.fullmatch(name)
    )
