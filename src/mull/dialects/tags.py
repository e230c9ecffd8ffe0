"""Takes thoughts, and calls, out of an answer in which the model marked them inline.

Rule 1: an opening tag counts as the first thing of the answer that is not blank, or anywhere
outside code where the endpoint is known for that; elsewhere it is talk about tags. Rule 2: where
the prompt ends with the opening tag, the answer begins inside the thought. Rule 3: the first
closing tag ends a thought. One that nothing opened makes the text before it a thought, once,
unless it is quoted, stands in code, or comes after an opening tag that was only talk. Rule 4: a
thought may hold thoughts. If an opening tag stands in it that is no talk, a closing tag belongs to
that where another follows soon; where one follows late, the text up to it becomes a thought. Any
other closing tag after a thought is surplus and left out, unless it is talk. Rule 5: a call counts
outside thoughts only: Kimi's sections outside code, Hermes' as the first thing after a closed
thought or after another such call, and outside code where the pair of their tags is configured.
Rule 6: nothing is trimmed. Only marks leave no piece; blanks before the tag that opens an answer
become the beginning of the thought, blanks after its closing tag belong to the text. Rule 7: text
is held only while it may become a mark (with the blanks that open an answer, the body of a Hermes
section, which is a call only as a whole, what follows the end of an inner thought, and what may
repeat a thought that was told in a field, or be the rest of it). Rule 8: after a thought that was
told in a field, an answer may begin with the rest of it and a closing tag, if the server was to cut
it. What goes on where the thought broke off is held, or for the length of a line what begins with a
blank; anything else is told as the answer, and becomes a thought by rule 3 if the tag comes all the
same and an answer follows it. If nothing follows, the tag is surplus.

Answers in Harmony are recognised by what they begin with, or are taken for such from the first
character if one of the configured pairs says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from mull.dialects.echo import Echo
from mull.dialects.harmony import HARMONY_OPENINGS, Harmony, is_harmony
from mull.dialects.inline_calls import HERMES, KIMI_OPENINGS, HermesCall, KimiCalls
from mull.dialects.markers import CodeSpans, Kind, Marks, Piece, new_piece, say, skip_blank
from mull.neutral.patterns import pattern

if TYPE_CHECKING:
    from mull.dialects.markers import Reader

__all__ = ["Piece", "TagSplitter"]

_HERMES = Marks(HERMES[:1])
_REACH = 2_000
"""Characters after a closing tag in which another one may show that it closed inner thinking."""
_WINDOW = 16_384
"""Characters that are read at once; a whole answer may have millions."""
_GLANCE = 80
"""Characters of an answer that begins with a blank in which a closing tag may show that they are
the rest of a thought in a field; a fraction of a second of what a model writes."""
_LEAST_CUT = 40
"""Bytes of a thought that a budget may have cut within a word; a shorter one was hardly cut."""
_ENDS = frozenset(".!?:;。！？：；…\"'”’»)]}`*")
"""What a thought ends with that was not cut."""
_NEXT_LINE = pattern(r"\n\s*[^\s<]")
_SPACES = frozenset(" \t")
_QUOTES = frozenset("`\"'“‘«‹([{„")
_AFTER_A_WORD = frozenset(" \t.,;:!?\"'”’»›)]}`")


class _Table(Struct, frozen=True):
    """What follows from the pairs of tags that an endpoint is configured with."""

    usual: str
    """The opening tag of the first pair, which need not be stored with a thought; empty if there
    are no tags.
    """
    openers: frozenset[str]
    """All opening tags."""
    closers: Mapping[str, Marks]
    """The closing tags of each opening tag: several pairs may share one."""
    closing: Marks
    """All closing tags."""
    in_thoughts: Marks
    """What to look for inside a thought: closing tags, and opening tags of inner thoughts."""
    calls: tuple[str, ...]
    """The marks that open a section of calls: Kimi's, and Hermes' where it is one of the pairs."""
    opening_marks: Marks
    """The marks that an answer may begin with: tags, and those of Harmony."""
    harmony: bool
    """Whether one of the pairs says that answers are in Harmony."""


@lru_cache(maxsize=64)
def _table_of(pairs: tuple[tuple[str, str], ...]) -> _Table:
    pairs = tuple((opener, closer) for opener, closer in pairs if opener and closer)
    tags = [p for p in pairs if p != HERMES and not is_harmony(p[0])]
    openers = frozenset(opener for opener, _ in tags)
    closing = Marks.of(*(closer for _, closer in tags))
    return _Table(
        usual=tags[0][0] if tags else "",
        openers=openers,
        closers={one: Marks.of(*(c for o, c in tags if o == one)) for one in openers},
        closing=closing,
        in_thoughts=Marks.of(*closing.all, *openers),
        calls=(*KIMI_OPENINGS, *HERMES[:1]) if HERMES in pairs else KIMI_OPENINGS,
        opening_marks=Marks.of(*HARMONY_OPENINGS, *openers),
        harmony=any(is_harmony(opener) for opener, _ in pairs),
    )


class TagSplitter:
    """Feed it the text of an answer as it arrives, then close it; how it is split makes no
    difference.
    """

    def __init__(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        starts_in_reasoning: bool = False,
        anywhere: bool = False,
    ) -> None:
        table = _table_of(tuple(pairs))
        self._usual, self._openers, self._closers = table.usual, table.openers, table.closers
        self._closing, self._in_thoughts = table.closing, table.in_thoughts
        self._calls, self._opening_marks = table.calls, table.opening_marks
        self._harmony = table.harmony
        self._inside = starts_in_reasoning
        self._anywhere = anywhere
        self._orphan = not starts_in_reasoning
        self._surplus = False
        self._nested = self._quoted = 0
        self._told: Callable[[], bytes | bytearray] | None = None
        self._was_told = self._followed = False
        self._marks = self._marks_of_text()

        self._opening = True
        self._kind: Kind = "text"
        self._block = 0
        self._reader: Reader | None = None
        self._after_thought = False
        self._in_gaps = _HERMES
        self._code = CodeSpans()
        self._before = ""
        self._held = ""
        self._wait = False
        self._plain = False
        self._out: list[Piece] = []

    def feed(self, text: str) -> list[Piece]:
        """The pieces that this text completes."""
        if not text:
            return []
        if self._plain and "<" not in text and ("`" not in text or self._kind == "thinking"):
            self._before = text
            return [new_piece(Piece, (self._kind, text, None, None, self._block))]
        if len(text) > _WINDOW:  # each section in it copies what follows
            windows = range(0, len(text), _WINDOW)
            return [piece for at in windows for piece in self.feed(text[at : at + _WINDOW])]
        if type(self._reader) is Harmony:
            return self._reader.feed(text)
        return self._run(text, final=False)

    def passes(self, text: str, block: int) -> bool:
        """Whether this is text that simply continues that block; then it counts as fed."""
        if not self._plain or self._kind != "text" or block != self._block:
            return False
        if "<" in text or "`" in text:
            return False
        self._before = text
        return True

    @property
    def holds_rest(self) -> bool:
        """Whether it holds what may be the rest of the thinking that a field began."""
        return self._told is not None and self._opening and bool(self._held)

    def close(self) -> list[Piece]:
        """What was held back, at the end."""
        if self._is_torn():
            self._held = ""
            return [Piece("tool_call", "", None, None, self._block + 1)]
        pieces = self._run("", final=True)
        if self._reader is not None:
            pieces += self._reader.close()
        return pieces

    def disable(self, told: Callable[[], bytes | bytearray] | None = None) -> list[Piece]:
        """Look for no more thinking, because it arrives in a separate field.

        Calls are still looked for: servers that extract thinking are those that leave Kimi's calls
        in (vllm-project/vllm#28543). What was held back is released; an answer already recognised
        as Harmony stays one. An answer that has not started yet may begin with tags around the very
        thinking that was `told` (without whitespace), or with the rest of it and a closing tag.
        """
        pieces: list[Piece] = []
        if self._opening and not self._held and told is not None:
            self._was_told = False
        elif self._reader is None:
            if self._kind == "thinking" or self._told is not None:
                self._followed = True
                pieces = self._run("", final=True)
                self._followed = False
            elif self._held:
                pieces.append(Piece("text", self._held, None, None, self._block))
                self._code.read(self._held)
            self._block += self._kind == "thinking"
            self._opening, self._kind, self._held = False, "text", ""
        self._told = told or self._told
        self._orphan = told is not None
        self._anywhere = self._after_thought = self._surplus = False
        self._marks = self._marks_of_text()
        self._plain = self._is_plain()
        return pieces

    @property
    def _is_late(self) -> bool:
        """Whether a closing tag would show that the answer so far is the rest of a thought that a
        field began."""
        return self._orphan and self._told is not None and not self._opening

    def _marks_of_text(self) -> Marks:
        """The marks to look for in text. Opening tags are included, to know that an answer talks
        about them.
        """
        tags: tuple[str, ...] = ()
        if self._anywhere or self._orphan or self._surplus:
            tags = tuple(self._openers)
        if self._orphan or self._surplus:
            tags += self._closing.all
        return Marks.of(*self._calls, *tags)

    def _run(self, text: str, final: bool) -> list[Piece]:
        text, at, self._wait = self._held + text, 0, False
        while at < len(text) and not self._wait:
            if self._reader is not None:
                text, at = self._in_section(self._reader, text[at:]), 0
            elif self._opening:
                at = self._in_opening(text, at, final)
            elif self._kind == "thinking":
                at = self._in_thought(text, at, final)
            elif self._after_thought:
                at = self._in_gap(text, at, final)
            else:
                at = self._in_text(text, at, final)
        self._held = text[at:]
        self._plain = self._is_plain()
        pieces, self._out = self._out, []
        return pieces

    def _is_plain(self) -> bool:
        """Whether text without `<` and backticks is simply the next piece."""
        if self._held or self._reader is not None or self._opening:
            return False
        if self._kind == "thinking":
            return self._in_thoughts.angular
        return self._marks.angular and not self._after_thought and self._code.calm

    def _in_section(self, reader: Reader, text: str) -> str:
        """What follows the section, if it ends in this text."""
        pieces = reader.feed(text)
        self._out += pieces
        if reader.rest is None:
            return ""
        for piece in pieces:
            if piece.kind == "text":
                self._code.read(piece.text)
        self._reader = None
        self._after_thought = isinstance(reader, HermesCall) and reader.is_call
        if isinstance(reader, Echo) and reader.is_echo:
            self._close_thought(reader.closer)
        self._block, self._before = reader.block, ""
        return reader.rest

    def _in_opening(self, text: str, at: int, final: bool) -> int:
        if self._told is not None:
            return self._in_told(text, at, final, self._told)
        start = skip_blank(text, at)
        mark = self._opening_marks.match(text, start, final) if start < len(text) else ""
        if mark == "" and not final:
            self._wait = True
            return at
        self._opening = False
        if mark in self._openers:
            return self._open(mark, start, text[at:start])
        if mark in HARMONY_OPENINGS:
            self._read_with(Harmony(None))
        elif mark is None and self._harmony:
            self._read_with(Harmony("thinking" if self._inside else "text"))
        elif self._inside:
            self._kind = "thinking"
            say(self._out, "thinking", "", self._block)
        return at

    def _in_told(
        self, text: str, at: int, final: bool, told: Callable[[], bytes | bytearray]
    ) -> int:
        """The beginning of an answer whose thinking arrived in a separate field."""
        start = skip_blank(text, at)
        mark = self._in_thoughts.match(text, start, final) if start < len(text) else ""
        if mark is None and not self._was_told:
            return self._in_rest(text, at, final, told)
        if mark == "" and not final:
            self._wait = True
            return at
        self._say(text[at:start])
        if mark in self._openers:
            self._opening = False
            self._read_with(Echo(mark, self._closers[mark], told, self._block))
        elif not mark:
            self._opening = False
        else:
            self._orphan, self._surplus = False, True
            self._marks = self._marks_of_text()
        self._was_told = True
        return start + len(mark or "")

    def _in_rest(
        self, text: str, at: int, final: bool, told: Callable[[], bytes | bytearray]
    ) -> int:
        """The beginning of an answer that may be the rest of the thinking; it is if a closing tag
        follows soon. If not, it is text.
        """
        goes_on = _goes_on(told(), text[at:])
        reach = at + (_REACH if goes_on else _GLANCE)
        code, place = CodeSpans(), at
        while goes_on or _may_be_thought(text, at, place):
            begin = place
            place, mark = self._in_thoughts.find(text, begin, final)
            if place > reach or (mark is None and final):
                break
            if not goes_on and not _may_be_thought(text, at, place):
                break
            end = place + len(mark or "")
            if not mark or (not final and end == len(text) and text[place - 1] in _SPACES):
                self._wait = True
                return at
            code.read(text[begin:place])
            place = end
            if code.inside:
                continue
            if mark not in self._closing.all or _is_talk(
                text[at : end - len(mark)], text[end:][:1]
            ):
                break
            if not goes_on and self._is_last(text, end, final):
                if final:
                    break
                self._wait = True
                return at
            self._opening = False
            say(self._out, "rest", text[at : end - len(mark)], self._block)
            self._close_thought(mark)
            return end
        self._opening = False
        return at

    def _in_thought(self, text: str, at: int, final: bool) -> int:
        place, mark = self._in_thoughts.find(text, at, final)
        if place > at:
            self._before = text[at:place]
            say(self._out, "thinking", self._before, self._block)
        if not mark:
            self._wait = mark == ""
            return place
        end = place + len(mark)
        if mark in self._closing.all:
            again = self._closes_again(text, end, final) if self._nested else False
            if again is False:
                self._close_thought(mark)
                return end
            self._wait = again is None
            self._nested -= again is True
        else:
            self._wait = not final and self._is_cut(text, end)
            self._nested += not self._wait and not _is_talk(self._before, text[end : end + 1])
        if self._wait:
            return place
        self._before = mark
        say(self._out, "thinking", mark, self._block)
        return end

    def _closes_again(self, text: str, start: int, final: bool) -> bool | None:
        """Whether another closing tag follows, so that the previous one closed inner thinking; None
        if the text ends before that is certain.
        """
        code, inner, at = CodeSpans(), 0, start
        while True:
            place, mark = self._in_thoughts.find(text, at, final)
            if place - start > _REACH:
                return False
            if not mark:
                return False if final else None
            code.read(text[at:place])
            at = place + len(mark)
            if code.inside:
                continue
            if mark not in self._closing.all:
                inner += 1
            elif not final and at == len(text) and text[place - 1] in _SPACES:
                return None
            elif inner:
                inner -= 1
            elif not _is_talk(text[start:place], text[at : at + 1]):
                return True

    def _in_gap(self, text: str, at: int, final: bool) -> int:
        """After closed thinking, until the first character of the answer that is not blank."""
        start = skip_blank(text, at)
        self._say(text[at:start])
        mark = self._in_gaps.match(text, start, final) if start < len(text) else ""
        if mark in HERMES:
            self._read_with(self._hermes())
        elif mark:
            self._nested = max(0, self._nested - 1)
        self._after_thought = mark is not None and mark not in HERMES
        self._wait = mark == ""
        return start + len(mark or "")

    def _in_text(self, text: str, at: int, final: bool) -> int:
        place, mark = self._marks.find(text, at, final)
        self._say(text[at:place])
        if not mark:
            self._wait = mark == ""
            return place
        end, in_code = place + len(mark), self._code.inside
        if mark in self._calls and not in_code:
            is_hermes = mark in HERMES
            self._read_with(self._hermes() if is_hermes else KimiCalls(mark, self._block))
            return end
        if mark in self._openers and self._anywhere and not in_code:
            self._block += 1
            return self._open(mark, place)
        if mark in self._openers:
            self._quoted += not in_code
        elif mark in self._closing.all and not in_code:
            last = self._is_last(text, end, final)
            if not final and (self._is_cut(text, end) or (last and self._is_late)):
                self._wait = True
                return place
            if not self._quoted and not _is_talk(self._before, text[end : end + 1]):
                if not (last and self._is_late):
                    self._close_surplus(mark)
                return end
            self._quoted = max(0, self._quoted - 1)
        if mark not in self._calls:
            self._no_orphans()
        self._say(mark)
        return end

    def _is_torn(self) -> bool:
        """Whether the answer ended within the mark that opens a call, if nothing else has it."""
        is_certain = self._reader is None and self._kind == "text" and HERMES[0] in self._calls
        is_begun = len(self._held) > 1 and HERMES[0].startswith(self._held)
        return is_certain and is_begun and not self._before.strip() and not self._code.inside

    def _hermes(self) -> HermesCall:
        return HermesCall(self._block, certain=HERMES[0] in self._calls)

    def _close_surplus(self, closer: str) -> None:
        """A closing tag in the text: what precedes it is thinking, or the tag is surplus."""
        if self._orphan or (self._nested and self._before):
            self._nested = max(0, self._nested - 1)
            self._out.append(Piece("orphan_close", "", None, None, self._block))
            self._close_thought(closer)

    def _is_cut(self, text: str, end: int) -> bool:
        """Whether the character after a tag, which has not arrived, decides if it is talk."""
        return end == len(text) and self._before[-1:] in _SPACES

    def _is_last(self, text: str, end: int, final: bool) -> bool:
        """Whether nothing of an answer follows but more such tags, as far as it has arrived."""
        mark: str | None = ""
        while (end := skip_blank(text, end)) < len(text):
            mark = self._closing.match(text, end, final)
            if not mark:
                break
            end += len(mark)
        return not self._followed and (end == len(text) or mark == "")

    def _open(self, opener: str, place: int, blanks: str = "") -> int:
        name = None if opener == self._usual else opener
        self._out.append(Piece("thinking", blanks, name, None, self._block))
        self._kind, self._closing = "thinking", self._closers[opener]
        self._in_thoughts = Marks.of(*self._closing.all, opener)
        self._no_orphans()
        return place + len(opener)

    def _close_thought(self, closer: str) -> None:
        self._closing = Marks.of(closer)
        self._kind, self._after_thought, self._before = "text", True, ""
        self._block += 1
        self._orphan, self._surplus = False, True
        surplus = () if closer in self._openers else (closer,)
        self._in_gaps = Marks.of(*_HERMES.all, *surplus)
        self._marks = self._marks_of_text()

    def _no_orphans(self) -> None:
        if self._orphan:
            self._orphan = False
            self._marks = self._marks_of_text()

    def _read_with(self, reader: Reader) -> None:
        self._kind, self._reader, self._after_thought = "text", reader, False
        self._no_orphans()

    def _say(self, text: str) -> None:
        if text:
            self._code.read(text)
            self._before = text
            say(self._out, "text", text, self._block)


def _goes_on(told: bytes | bytearray, text: str) -> bool:
    """Whether a text goes on in the middle of a sentence in which thinking broke off."""
    if told[-4:].decode("utf-8", "ignore")[-1:] in _ENDS:
        return False
    first = text[:1]
    if first in " ,;.)":
        return True
    return len(told) >= _LEAST_CUT and first.isalpha() and not first.isupper()


def _may_be_thought(text: str, at: int, end: int) -> bool:
    """Whether the beginning of an answer may still be the rest of a thought that ended with a
    sentence: one line of words, behind the blank that separates sentences.
    """
    start = skip_blank(text, at)
    if text[at] not in _SPACES or not text[start : start + 1].isalpha():
        return False
    return _NEXT_LINE.search(text, start, end) is None


def _is_talk(before: str, after: str) -> bool:
    """Whether a tag is used as a word, judging by its neighbours."""
    if before[-1:] in _SPACES:
        return not after or after in _AFTER_A_WORD
    return before[-1:] in _QUOTES
