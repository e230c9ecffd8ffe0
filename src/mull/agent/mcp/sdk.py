"""The official SDK, where it is installed."""

from __future__ import annotations

import asyncio
import logging

from mull.neutral.errors import LocalError

__all__ = ["load_sdk"]


async def load_sdk() -> None:
    """Import the SDK, which takes most of a second, without holding up the terminal.

    Raises:
        LocalError: it is not installed.
    """
    try:
        await asyncio.to_thread(_import)
    except ImportError as error:
        missing = "" if error.name == "mcp" else f" ({error})"
        raise LocalError(f"the MCP SDK is not installed{missing}: install mull[mcp]") from None


def _import() -> None:
    import mcp  # noqa: F401

    for name in ("mcp", "client"):  # the SDK's loggers; without any handler Python would print
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
