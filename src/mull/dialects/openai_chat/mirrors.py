"""One thinking text sent in several fields: which field is read, and what in the others is new.

Servers mirror thinking in the same delta, in the next one, split differently, or completely at the
end (MoonshotAI/kimi-code#3928). Rule 1: the first field with content leads; whitespace alone is not
content and waits for the words it belongs to. Rule 2: what is beside the leader's text in one delta
adds at most a continuation of it. Rule 3: a field that appears alone is ignored as far as it
repeats the thinking; anything else in it is new, and it leads from there. Rule 4: texts that differ
only in whitespace are the same. Rule 5: what may become a repetition is held back until that is
certain, and released if it is not one.

Fields are only names here, and so are the places inside the content that contain thinking.
"""

from __future__ import annotations

from collections.abc import Iterable

from mull.dialects.markers import without_blanks

__all__ = ["Mirrors"]

_SURE = 200
"""This many matching bytes are no coincidence: only what differs after them is new."""
_NOWHERE = (-1, "")


class _Thought:
    """All thinking of an answer, without whitespace; `pieces` takes it as it arrives.

    None among the pieces is the start of another run of thinking.
    """

    __slots__ = ("bare", "last", "pieces", "read", "run", "tail")

    def __init__(self) -> None:
        self.pieces: list[str | None] = []
        self.read = 0
        self.bare = bytearray()
        self.tail = ""
        self.run = 0
        self.last = 0

    def settle(self, count: int | None = None) -> None:
        """Process the pieces that arrived, or the first of them."""
        pieces = self.pieces[:count]
        del self.pieces[:count]
        self.read += len(pieces)
        while None in pieces:
            at = pieces.index(None)
            self._add(pieces[:at])
            self.run = len(self.bare)
            del pieces[: at + 1]
        if pieces:
            self._add(pieces[:-1])
            self.last = len(self.bare)
            self._add(pieces[-1:])

    def _add(self, pieces: list[str | None]) -> None:
        text = "".join(filter(None, pieces))
        words = text.rstrip()
        if words:
            self.bare += without_blanks(words)
            self.tail = text[len(words) :]
        else:
            self.tail += text

    def agreement(self, at: int, bare: bytes) -> int:
        """How many bytes of a text match the thinking from this position on."""
        if self.bare.startswith(bare, at):
            return len(bare)
        own = self.bare[at : at + len(bare)]
        if bare.startswith(own):
            return len(own)
        count = next(n for n, (a, b) in enumerate(zip(own, bare, strict=False)) if a != b)
        while bare[count] & 0xC0 == 0x80:  # not between the bytes of one character
            count -= 1
        return count


class _Voice:
    """A field that does not lead: how far it has repeated the thinking, and its text since."""

    __slots__ = ("agreed", "at", "held", "places")

    def __init__(self, at: int = 0) -> None:
        self.meet(at)

    def meet(self, at: int, text: str = "") -> None:
        """It has caught up with the thinking; trailing whitespace belongs to what comes next."""
        self.at = at
        self.held = [text[len(text.rstrip()) :]]
        self.places: list[int] = []
        self.agreed = 0

    def follow(self, places: list[int], text: str, count: int) -> None:
        """So far it repeats earlier thinking; there may be several candidate positions."""
        self.places = places
        self.held.append(text)
        self.agreed += count
        if self.agreed >= _SURE:
            self.held = [text[len(text.rstrip()) :]]


class Mirrors:
    """Reads the fields of one answer; whoever emits thinking adds it to `pieces`."""

    def __init__(self) -> None:
        self._thought = _Thought()
        self.pieces = self._thought.pieces
        self._voices: dict[str, _Voice] = {}
        self._abreast: dict[str, tuple[int, str]] = {}
        self.leader: str | None = None

    def hear(self, name: str, text: str, beside: str = "") -> str:
        """What this text adds to the thinking; `beside` is what the same delta added before it.

        A field that adds something must be made to `lead`.
        """
        if name == self.leader:
            return text
        thought = self._thought
        count = thought.read + len(thought.pieces)
        if text == beside and self._abreast.get(name, _NOWHERE)[0] == count - 1:
            self._abreast[name] = count, text
            return ""
        self.settle()
        voice = self._voices.get(name)
        if voice is None:
            voice = self._voices[name] = _Voice()
        if not text or text.isspace():
            voice.held.append(text)
            return ""
        if not thought.read:  # nothing was sent before that it could repeat
            return "".join((*voice.held, text))
        bare = without_blanks(text)
        new = self._compare(voice, text, bare, beside)
        if not new and voice.at == len(thought.bare):
            self._abreast[name] = count, text
        return new

    def lead(self, name: str) -> None:
        """Let this field lead; the previous leader has sent all of the thinking."""
        self.settle()
        if self.leader is not None:
            self._voices[self.leader] = _Voice(len(self._thought.bare))
        self._voices.pop(name, None)
        self.leader = name

    def blanks(self, names: Iterable[str]) -> tuple[str, list[str]] | None:
        """The first of these fields with whitespace, if nothing else was ever sent."""
        for name in names:
            voice = self._voices.get(name)
            if voice is not None and any(voice.held):
                return name, voice.held
        return None

    def told(self) -> bytearray:
        """All thinking so far, without whitespace."""
        self.settle()
        return self._thought.bare

    def settle(self) -> None:
        """Process what arrived, so that memory follows the text and not the number of its
        pieces.
        """
        for name, (count, text) in sorted(self._abreast.items(), key=lambda one: one[1]):
            self._thought.settle(count - self._thought.read)
            self._voices.setdefault(name, _Voice()).meet(len(self._thought.bare), text)
        self._abreast.clear()
        self._thought.settle()

    def _compare(self, voice: _Voice, text: str, bare: bytes, beside: str) -> str:
        thought = self._thought
        end = len(thought.bare)
        counts = [(at, thought.agreement(at, bare)) for at in voice.places or self._starts(voice)]
        live = [(at, n) for at, n in counts if n == len(bare) or at + n == end]
        if not live:
            if not voice.places and bare == thought.bare[thought.last :]:
                voice.meet(end, text)  # it starts to mirror only now
                return ""
            return self._differs(voice, text, bare[: counts[0][1]], beside)
        at, count = live[0]
        if count < len(bare):
            return self._goes_on(voice, text, bare[:count])
        if at + count < end:
            voice.follow([at + n for at, n in live if n == len(bare)], text, count)
        else:
            voice.meet(end, text)
        return ""

    def _starts(self, voice: _Voice) -> list[int]:
        """Where a repetition may start: where the field stopped, or with the latest run."""
        run = self._thought.run
        return [voice.at] if run <= voice.at else [voice.at, run]

    def _differs(self, voice: _Voice, text: str, same: bytes, beside: str) -> str:
        if beside:
            voice.meet(len(self._thought.bare))
            return ""
        if same and voice.agreed + len(same) >= _SURE:
            return _after(text, same)
        return "".join((*voice.held, text))

    def _goes_on(self, voice: _Voice, text: str, same: bytes) -> str:
        new = _after(text, same) if same else "".join((*voice.held, text))
        there = 0
        for blank in self._thought.tail:
            if not new.startswith(blank, there):
                break
            there += 1
        return new[there:]


def _after(text: str, same: bytes) -> str:
    """What follows the words that were already there."""
    count = len(same.decode("utf-8", "surrogatepass"))
    for at, character in enumerate(text):
        if not count:
            return text[at:]
        count -= not character.isspace()
    return ""
