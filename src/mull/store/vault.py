"""The system's keyring, where there is one that works.

The PyPI package `keyring` is used if it happens to be installed and has a real backend (the macOS
keychain, Secret Service, the Windows credential locker). It is imported only when a key is stored
or one that was stored there is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from mull.auth.secret import Secret
from mull.neutral.errors import ConfigError

__all__ = ["SystemVault", "Vault"]

_SERVICE = "mull"
_REAL = 1  # keyring's stand-ins and plain text files have a priority below this


class Vault(Protocol):
    """A place for keys outside mull's own files."""

    def keep(self, name: str, key: Secret) -> bool:
        """Keep a key, and return whether it is really kept."""

    def find(self, name: str) -> Secret | None:
        """The key of this name, if there is one.

        Raises:
            ConfigError: the place does not open.
        """

    def forget(self, name: str) -> None:
        """Delete the key of this name, if there is one."""


class SystemVault:
    """The keyring of the operating system."""

    def keep(self, name: str, key: Secret) -> bool:
        """Keep a key; False where there is no keyring, or it is locked or broken."""
        backend = _backend()
        if backend is None:
            return False
        try:
            backend.set_password(_SERVICE, name, key.reveal())
            return bool(backend.get_password(_SERVICE, name) == key.reveal())
        except Exception:  # backends raise whatever their system library does
            return False

    def find(self, name: str) -> Secret | None:
        """The key of this name, if there is one.

        Raises:
            ConfigError: the keyring does not open, or is gone.
        """
        backend = _backend()
        try:
            found = None if backend is None else backend.get_password(_SERVICE, name)
        except Exception as error:
            reason = type(error).__name__  # its text may hold anything
            raise ConfigError(
                f"the system keyring did not return the key of {name} ({reason}): "
                f"unlock it, or store the key again with `mull keys set {name} --file`"
            ) from None
        return Secret(found) if isinstance(found, str) and found else None

    def forget(self, name: str) -> None:
        """Delete the key of this name, if there is one.

        Raises:
            ConfigError: the keyring does not open.
        """
        backend = _backend()
        try:
            if backend is not None and backend.get_password(_SERVICE, name) is not None:
                backend.delete_password(_SERVICE, name)
        except Exception as error:
            raise ConfigError(
                f"the system keyring did not delete the key of {name} "
                f"({type(error).__name__}): unlock it and try again"
            ) from None


def _backend() -> Any:
    """The backend that keyring chose, or None if it is none that keeps anything safe."""
    try:
        backend = import_module("keyring").get_keyring()
        return backend if backend.priority >= _REAL else None
    except Exception:  # not installed, or it fails while it looks for backends
        return None
