"""The one way from the library to its caller's log: `logging.getLogger("mull")`.

What is told here is what a person is told, so no key is ever in it. The pure layers lie below this
module and tell nothing: they return notes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

__all__ = ["log_warning", "logging_to_stderr"]


def log_warning(text: str) -> None:
    """Tell the program that uses mull what a person using it would be told.

    Nothing is printed unless that program has set up logging.
    """
    _logger().warning("%s", text)


@contextmanager
def logging_to_stderr() -> Iterator[None]:
    """Print what is logged, with the time: for a program that runs on its own."""
    import logging

    shown = logging.StreamHandler()
    shown.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    _logger().addHandler(shown)
    try:
        yield
    finally:
        _logger().removeHandler(shown)


@cache
def _logger() -> logging.Logger:
    import logging  # most commands never warn, and start sooner without it

    logger = logging.getLogger("mull")
    logger.addHandler(logging.NullHandler())
    return logger
