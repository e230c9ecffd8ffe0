"""Pasted text of many lines appears in the input line as a label; the text itself is sent."""

from __future__ import annotations

__all__ = ["Pastes"]

MOST_LINES = 10
MOST_CHARACTERS = 2000
_KEPT = 50
"""Maximum pastes remembered; a line contains fewer."""


class Pastes:
    """The long pasted texts, by label."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._count = 0

    def label(self, text: str) -> str:
        """The label for a pasted text; a short text is its own label."""
        lines = text.removesuffix("\n").count("\n") + 1
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
        """A line with every label replaced by the pasted text, once: pasted text may contain labels
        too.
        """
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
        """An expanded line with the labels of the pasted texts put back."""
        for label, pasted in self._texts.items():
            text = text.replace(pasted, label)
        return text

    def label_before(self, text: str) -> str:
        """The label at the end of a text, if there is one."""
        return next((label for label in self._texts if text.endswith(label)), "")
