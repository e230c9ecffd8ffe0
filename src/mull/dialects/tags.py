"""Takes thoughts, and calls, out of an answer in which the model marked them inline.

Rule 1: an opening tag counts as the first thing of the answer that is not blank, or anywhere
outside code where the endpoint is known for that; elsewhere it is talk about tags. Rule 2: where
the prompt ends with the opening tag, the answer begins inside the thought. Rule 3: the first
closing tag ends a thought. One that nothing opened makes the text before it a thought, once,
unless it is quoted, stands in code, or comes after an opening tag that was only talk. Rule 4: a
call counts outside thoughts only: Kimi's sections outside code, Hermes' as the first thing after
a closed thought or after another such call, and outside code where the pair of their tags is
configured. Rule 5: nothing is trimmed. Only marks leave no piece; blanks before the tag that
opens an answer become the beginning of the thought, blanks after its closing tag belong to the
text. Rule 6: text is held only while it may become a mark (with the blanks that open an answer,
and the body of a Hermes section, which is a call only as a whole).

Answers in Harmony are recognised by what they begin with, or are taken for such from the first
character if one of the configured pairs says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from mull.dialects.harmony import HARMONY_OPENINGS, Harmony, is_harmony
from mull.dialects.inline_calls import HERMES, KIMI_OPENINGS, HermesCall, KimiCalls
from mull.dialects.markers import CodeSpans, Kind, Marks, Piece, Reader, new_piece, say, skip_blank

__all__ = ["Piece", "TagSplitter"]

_HERMES = Marks(HERMES[:1])
_QUOTES = frozenset("`\"'“‘«‹([{„")
_AFTER_A_WORD = frozenset(" \t.,;:!?\"'”’»›)]}`")


class TagSplitter:
    """Feed it the text of an answer as it comes, then close it; cuts change nothing."""

    def __init__(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        starts_in_reasoning: bool = False,
        anywhere: bool = False,
    ) -> None:
        pairs = tuple((opener, closer) for opener, closer in pairs if opener and closer)
        tags = [p for p in pairs if p != HERMES and not is_harmony(p[0])]
        self._usual = tags[0][0] if tags else ""
        self._openers = frozenset(opener for opener, _ in tags)
        self._closers: dict[str, Marks] = {
            opener: Marks.of(*(c for o, c in tags if o == opener)) for opener in self._openers
        }
        self._closing = Marks.of(*(closer for _, closer in tags))
        self._calls = (*KIMI_OPENINGS, *HERMES[:1]) if HERMES in pairs else KIMI_OPENINGS
        self._opening_marks = Marks.of(*HARMONY_OPENINGS, *self._openers)
        self._harmony = any(is_harmony(opener) for opener, _ in pairs)
        self._inside = starts_in_reasoning
        self._anywhere = anywhere
        self._orphan = not starts_in_reasoning
        self._marks = self._marks_of_text()

        self._opening = True
        self._kind: Kind = "text"
        self._block = 0
        self._reader: Reader | None = None
        self._after_thought = False
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
        if type(self._reader) is Harmony:
            return self._reader.feed(text)
        return self._run(text, final=False)

    def close(self) -> list[Piece]:
        """What was held back, when nothing more comes."""
        pieces = self._run("", final=True)
        if self._reader is not None:
            pieces += self._reader.close()
        return pieces

    def disable(self) -> list[Piece]:
        """No thought is looked for from here on, because thoughts come in a field of their own.

        Calls still are: servers that take thoughts out are those that leave Kimi's calls in
        (vllm-project/vllm#28543). What was held back is released; an answer already taken for
        Harmony stays one.
        """
        pieces: list[Piece] = []
        if self._reader is None:
            if self._held:
                pieces.append(Piece(self._kind, self._held, None, None, self._block))
            if self._kind == "thinking":
                self._block += 1
            else:
                self._code.read(self._held)
            self._opening, self._kind, self._held = False, "text", ""
        self._anywhere = self._orphan = self._after_thought = False
        self._marks = self._marks_of_text()
        self._plain = self._is_plain()
        return pieces

    def _marks_of_text(self) -> Marks:
        """What is looked for in text. Opening tags are, to know that an answer talks of them."""
        tags: tuple[str, ...] = ()
        if self._anywhere or self._orphan:
            tags = tuple(self._openers)
        if self._orphan:
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
        """Whether text without `<` and back-ticks is simply the next piece."""
        if self._held or self._reader is not None or self._opening:
            return False
        if self._kind == "thinking":
            return self._closing.angular
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
        self._reader, self._block = None, reader.block
        self._after_thought = isinstance(reader, HermesCall) and reader.is_call
        return reader.rest

    def _in_opening(self, text: str, at: int, final: bool) -> int:
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

    def _in_thought(self, text: str, at: int, final: bool) -> int:
        place, mark = self._closing.find(text, at, final)
        if place > at:
            say(self._out, "thinking", text[at:place], self._block)
        if not mark:
            self._wait = mark == ""
            return place
        self._close_thought()
        return place + len(mark)

    def _in_gap(self, text: str, at: int, final: bool) -> int:
        """After a closed thought, until the first character of the answer that is not blank."""
        start = skip_blank(text, at)
        self._say(text[at:start])
        mark = _HERMES.match(text, start, final) if start < len(text) else ""
        if mark:
            self._read_with(HermesCall(self._block))
            return start + len(mark)
        self._after_thought = mark is not None
        self._wait = mark == ""
        return start

    def _in_text(self, text: str, at: int, final: bool) -> int:
        place, mark = self._marks.find(text, at, final)
        self._say(text[at:place])
        if not mark:
            self._wait = mark == ""
            return place
        end, in_code = place + len(mark), self._code.inside
        if mark in self._calls and not in_code:
            is_hermes = mark in HERMES
            self._read_with(HermesCall(self._block) if is_hermes else KimiCalls(mark, self._block))
            return end
        if mark in self._openers and self._anywhere and not in_code:
            self._block += 1
            return self._open(mark, place)
        if mark in self._closing.all and mark not in self._openers and not in_code:
            if end == len(text) and not final and self._before[-1:] in (" ", "\t"):
                self._wait = True
                return place
            if not self._is_talk(text[end : end + 1]):
                self._out.append(Piece("orphan_close", "", None, None, self._block))
                self._close_thought()
                return end
        if mark not in self._calls:
            self._no_orphans()
        self._say(mark)
        return end

    def _is_talk(self, after: str) -> bool:
        """Whether a closing tag that nothing opened is used as a word, by its neighbours."""
        before = self._before[-1:]
        if before in (" ", "\t"):
            return not after or after in _AFTER_A_WORD
        return before in _QUOTES

    def _open(self, opener: str, place: int, blanks: str = "") -> int:
        name = None if opener == self._usual else opener
        self._out.append(Piece("thinking", blanks, name, None, self._block))
        self._kind, self._closing = "thinking", self._closers[opener]
        self._no_orphans()
        return place + len(opener)

    def _close_thought(self) -> None:
        self._kind, self._after_thought = "text", True
        self._block += 1
        self._no_orphans()

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
