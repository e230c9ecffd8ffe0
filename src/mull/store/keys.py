"""Where keys come from, in which order, and where `mull keys set` puts them.

The order: what is given outright, the provider's environment variables, what is stored, the
variables that config.toml names. A login goes before the environment: the variable that the
catalog names for it (GITHUB_TOKEN) mostly holds a token for something else.

`keys.json` in the data directory lists what is stored: the key itself, or null for one that is in
the system's keyring. It is for its owner alone, and is not read when others could read it too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from msgspec import Struct

from mull.auth.clouds import CLOUDS
from mull.auth.logins import LOGINS
from mull.auth.secret import Secret, parse_secret
from mull.auth.variables import Found, KeyPlace, key_variables
from mull.neutral.errors import ConfigError
from mull.store.files import read_bytes, write_atomic

if TYPE_CHECKING:
    from mull.store.vault import Vault

__all__ = ["KEYS_FILE", "GivenKeys", "Keys", "Stored"]

KEYS_FILE = "keys.json"
_VERSION = 1

Stored: TypeAlias = Literal["keyring", "file"]


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    keys: dict[str, str | None]


class Keys:
    """The user's keys. The environment is a mapping passed in; nothing is remembered."""

    def __init__(
        self, directory: Path, environ: Mapping[str, str], vault: Vault | None = None
    ) -> None:
        self.path: Path = directory / KEYS_FILE
        self.environ = environ
        self._given_vault = vault

    @cached_property
    def _vault(self) -> Vault:
        from mull.store.vault import SystemVault

        return self._given_vault or SystemVault()

    def find(
        self,
        provider: str,
        variables: Sequence[str] = (),
        *,
        given: str | None = None,
        own: Sequence[str] = (),
    ) -> Found | None:
        """The key for a provider: `variables` are the catalog's, `own` the config file's.

        Raises:
            ConfigError: a place that comes first holds no key, or cannot be read; says how to
                put it right.
        """
        if given is not None:
            return Found(parse_secret(given, "the key that was given"), KeyPlace("argument"))
        for place in self._places(provider, variables, own):
            key = self._open(place, provider)
            if key is not None:
                return Found(key, place)
        return None

    def read_text(self, path: str) -> str | None:
        """The text of another program's file; None where there is none.

        Raises:
            ConfigError: it is there and cannot be read.
        """
        file = Path(path).expanduser()
        try:
            return file.read_text("utf-8-sig")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise ConfigError(f"{path} cannot be read: {reason}") from None

    def places(
        self, provider: str, variables: Sequence[str] = (), *, own: Sequence[str] = ()
    ) -> list[KeyPlace]:
        """Everywhere a key for the provider is, the one in use first; a cloud's login stands for
        one. No key is opened."""
        return [*self._places(provider, variables, own), *self._logins(variables)]

    def stored(self) -> dict[str, Stored]:
        """The providers with a stored key, and where it is.

        Raises:
            ConfigError: the list cannot be read, or others could read it too.
        """
        return {name: "keyring" if key is None else "file" for name, key in self._read().items()}

    def keep(self, provider: str, key: Secret, *, in_file: bool = False) -> Stored:
        """Store a key and return where it is now; with `in_file`, the keyring is passed over.

        Raises:
            ConfigError: the list of stored keys cannot be read or written.
        """
        name, entries = provider.lower(), self._read()
        was_in_keyring = name in entries and entries[name] is None
        in_keyring = not in_file and self._vault.keep(name, key)
        entries[name] = None if in_keyring else key.reveal()
        self._write(entries)
        if was_in_keyring and not in_keyring:
            self._vault.forget(name)
        return "keyring" if in_keyring else "file"

    def delete(self, provider: str) -> Stored:
        """Forget a stored key and return where it was.

        Raises:
            ConfigError: there is none, or it cannot be deleted.
        """
        name, entries = provider.lower(), self._read()
        if name not in entries:
            raise ConfigError(f"no key is stored for {name}: `mull keys list` shows what there is")
        where: Stored = "keyring" if entries[name] is None else "file"
        if where == "keyring":
            self._vault.forget(name)
        del entries[name]
        self._write(entries)
        return where

    def _places(
        self, provider: str, variables: Sequence[str], own: Sequence[str]
    ) -> Iterator[KeyPlace]:
        login = provider.lower() in LOGINS
        if login:
            yield from self._stored(provider)
        senders = key_variables(variables)
        yield from self._set(senders)
        if not login:
            yield from self._stored(provider)
        yield from self._set([name for name in own if name not in senders])

    def _logins(self, variables: Sequence[str]) -> Iterator[KeyPlace]:
        for cloud in [made() for made in CLOUDS.values()] if variables else ():
            if cloud.variable in variables:
                try:
                    found = cloud.login(self.environ, self.read_text)
                except ConfigError:  # told where it is used
                    continue
                if found is not None:
                    yield KeyPlace("login", login=found.place)

    def _set(self, names: Sequence[str]) -> Iterator[KeyPlace]:
        return (KeyPlace("environment", name) for name in names if self.environ.get(name))

    def _stored(self, provider: str) -> Iterator[KeyPlace]:
        where = self.stored().get(provider.lower())
        if where is not None:
            yield KeyPlace(where)

    def _open(self, place: KeyPlace, provider: str) -> Secret | None:
        if place.variable is not None:
            return parse_secret(self.environ[place.variable], place.variable)
        if place.kind == "keyring":
            return self._vault.find(provider.lower())
        return parse_secret(
            self._read().get(provider.lower()) or "", f"the key of {provider} in {self.path}"
        )

    def _read(self) -> dict[str, str | None]:
        self._check_private()
        data = read_bytes(self.path)
        if data is None:
            return {}
        try:
            file = msgspec.json.decode(data, type=_File)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            file = _File(0, {})
        if file.version != _VERSION:  # what it holds is not told: it may be keys
            raise ConfigError(
                f"{self.path} is damaged or from another version of mull: "
                "move it away and store your keys again with `mull keys set PROVIDER`"
            )
        return file.keys

    def _check_private(self) -> None:
        if os.name != "posix":
            return
        try:
            mode = self.path.stat().st_mode & 0o777
        except OSError:  # missing is no error, and what else it may be is told by reading
            return
        if mode & 0o077:
            raise ConfigError(
                f"{self.path} can be read or changed by other users (mode {mode:03o}), so its "
                f"keys are not used: run `chmod 600 {self.path}`"
            )

    def _write(self, entries: dict[str, str | None]) -> None:
        data = msgspec.json.encode(_File(_VERSION, dict(sorted(entries.items()))))
        write_atomic(self.path, msgspec.json.format(data, indent=2) + b"\n")


class GivenKeys(Keys):
    """No keys but those that are given outright, and an environment without variables."""

    def __init__(self) -> None:
        super().__init__(Path(os.devnull), {})

    def read_text(self, path: str) -> str | None:
        """No file is read."""
        return None

    def _read(self) -> dict[str, str | None]:
        return {}
