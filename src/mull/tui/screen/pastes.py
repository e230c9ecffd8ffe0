"""Pasted text of many lines stands in the line as a label; what is sent is the text itself."""

from __future__ import annotations

__all__ = ["Pastes"]

MOST_LINES = 10
MOST_CHARACTERS = 2000
_KEPT = 50
"""Pastes that are remembered; a line holds fewer."""


class Pastes:
    """The long texts that were pasted, by their labels."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._count = 0

    def label(self, text: str) -> str:
        """What stands in the line for a pasted text; a short one stands for itself."""
        lines = text.count("\n") + 1
        if lines <= MOST_LINES and len(text) <= MOST_CHARACTERS:
            return text
        self._count += 1
        size = f"+{lines:,} lines" if lines > MOST_LINES else f"{len(text):,} characters"
        label = f"[Pasted text #{self._count} {size}]"
        self._texts[label] = text
        while len(self._texts) > _KEPT:
            del self._texts[next(iter(self._texts))]
        return label

    def whole(self, text: str) -> str:
        """A line with every label in it replaced by what was pasted, once: what was pasted may
        hold labels too."""
        out, at = [], 0
        while at < len(text):
            found = [(text.find(label, at), label) for label in self._texts]
            begin, label = min(((b, one) for b, one in found if b >= 0), default=(-1, ""))
            if begin < 0:
                break
            out += [text[at:begin], self._texts[label]]
            at = begin + len(label)
        return "".join([*out, text[at:]])

    def short(self, text: str) -> str:
        """A line that was whole, with the labels of what was pasted into it."""
        for label, pasted in self._texts.items():
            text = text.replace(pasted, label)
        return text

    def label_before(self, text: str) -> str:
        """The label that a text ends with, if it does."""
        return next((label for label in self._texts if text.endswith(label)), "")
