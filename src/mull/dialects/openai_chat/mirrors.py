"""One thought told in several fields: which field is heard, and what in the others is new.

Servers mirror a thought in the same delta, in the next one, cut at other places, or as a whole at
the end (MoonshotAI/kimi-code#3928). Rule 1: the first field that says something leads; blanks
alone say nothing and wait for the words they belong to. Rule 2: what stands beside the leader's
words in one delta adds at most what goes on from their end. Rule 3: a field that speaks alone is
passed over as far as it repeats the thought; anything else in it is new, and it leads from there.
Rule 4: texts that differ in blanks only are the same. Rule 5: what may become a repetition is
held until that is certain, and released if it turns out to be none.

Fields are only names here, and so are the places inside the content that hold thoughts.
"""

from __future__ import annotations

from collections.abc import Iterable

from mull.dialects.markers import without_blanks

__all__ = ["Mirrors"]

_SURE = 200
"""So many bytes in agreement are no chance: what differs after them is all that is new."""
_NOWHERE = (-1, "")


class _Thought:
    """All that an answer thought, without its blanks; `pieces` takes it as it comes.

    None among the pieces is the beginning of another run of thinking.
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
        """Read the pieces that came, or the first of them."""
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
        """How many bytes of a text agree with the thought from this place on."""
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
    """A field that does not lead: how far it has told the thought, and what it said since."""

    __slots__ = ("agreed", "at", "held", "places")

    def __init__(self, at: int = 0) -> None:
        self.meet(at)

    def meet(self, at: int, text: str = "") -> None:
        """It is as far as the thought; blanks at the end of its text belong to what comes next."""
        self.at = at
        self.held = [text[len(text.rstrip()) :]]
        self.places: list[int] = []
        self.agreed = 0

    def follow(self, places: list[int], text: str, count: int) -> None:
        """It repeats what was thought earlier, so far; there may be several places for that."""
        self.places = places
        self.held.append(text)
        self.agreed += count
        if self.agreed >= _SURE:
            self.held = [text[len(text.rstrip()) :]]


class Mirrors:
    """Listens to the fields of one answer; whoever says a thought adds it to `pieces`."""

    def __init__(self) -> None:
        self._thought = _Thought()
        self.pieces = self._thought.pieces
        self._voices: dict[str, _Voice] = {}
        self._abreast: dict[str, tuple[int, str]] = {}
        self.leader: str | None = None

    def hear(self, name: str, text: str, beside: str = "") -> str:
        """What this text adds to the thought; `beside` is what the same delta added before it.

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
        bare = without_blanks(text)
        if not bare:
            voice.held.append(text)
            return ""
        new = self._compare(voice, text, bare, beside)
        if not new and voice.at == len(thought.bare):
            self._abreast[name] = count, text
        return new

    def lead(self, name: str) -> None:
        """Let this field lead; the one that led so far has told all of the thought."""
        self.settle()
        if self.leader is not None:
            self._voices[self.leader] = _Voice(len(self._thought.bare))
        self._voices.pop(name, None)
        self.leader = name

    def blanks(self, names: Iterable[str]) -> tuple[str, list[str]] | None:
        """The first of these fields that said blanks, where nothing else was ever said."""
        for name in names:
            voice = self._voices.get(name)
            if voice is not None and any(voice.held):
                return name, voice.held
        return None

    def told(self) -> bytearray:
        """All of the thought so far, without its blanks."""
        self.settle()
        return self._thought.bare

    def settle(self) -> None:
        """Read what came, so that memory follows the text and not the number of its pieces."""
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
                voice.meet(end, text)  # it begins to mirror only now
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
        """Where a repetition may begin: where the field stopped, or with the latest run."""
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
    """What follows the words that were there already."""
    count = len(same.decode("utf-8", "surrogatepass"))
    for at, character in enumerate(text):
        if not count:
            return text[at:]
        count -= not character.isspace()
    return ""
