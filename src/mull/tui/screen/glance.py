"""The appearance of a terminal for a program that only writes to it: colours, and a theme for
them.
"""

from __future__ import annotations

import os

from mull.tui.screen.depth import (
    BACKGROUND_QUERY,
    Depth,
    colour_depth,
    environment_background,
    read_background,
)
from mull.tui.screen.inquiry import Inquiry
from mull.tui.screen.theme import Theme, theme_for

__all__ = ["Glance"]


class Glance:
    """`depth` and `theme` of the terminal behind a descriptor; None for one that cannot be
    asked.
    """

    def __init__(self, screen: int | None) -> None:
        self.depth: Depth = colour_depth(os.environ, is_terminal=True)
        self._inquiry: Inquiry | None = None
        answer = b""
        if screen is not None and self.depth in ("truecolor", "256"):  # fewer are the same on all
            self._inquiry = Inquiry(BACKGROUND_QUERY, screen)
            answer = self._inquiry.answer()
        background = read_background(answer) or environment_background(os.environ)
        self.theme: Theme = theme_for("auto", background, self.depth)

    def close(self) -> None:
        """Stop asking."""
        if self._inquiry is not None:
            self._inquiry.close()
