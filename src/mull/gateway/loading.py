"""Imports what requests need before the first one arrives.

Most of mull is imported on first use, so that commands start fast. A gateway runs for long: its
first requests should not wait for imports, and when mull is upgraded meanwhile, the running gateway
should not mix its own modules with those of the new version.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

__all__ = ["load_all"]

_PACKAGES = ("mull.catalog", "mull.dialects", "mull.policy")
_MODULES = ("mull.agent.discover", "mull.client.exchange")


def load_all() -> None:
    """Import the modules that may handle a request."""
    for name in _PACKAGES:
        for module in walk_packages(import_module(name).__path__, f"{name}."):
            import_module(module.name)
    for name in _MODULES:
        import_module(name)
