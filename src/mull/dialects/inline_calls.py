"""Calls that a model wrote into its answer because the server did not extract them.

Kimi's sections have their own marks; a call's id is what the model wrote as its header, and its
name is the middle of it. Whitespace inside a section is markup; any other text there is text
(vllm-project/vllm#28543). Arguments are passed on as they arrive, byte for byte. Hermes' sections
contain one JSON object, so such a call is known when it is complete; anything else stays text with
its marks. Where nothing but calls has these marks, what is cut off in a section is a call cut off.
Where such sections count is not decided here.
"""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from mull.dialects.markers import Marks, Piece, say, skip_blank
from mull.neutral.patterns import pattern

__all__ = ["HERMES", "KIMI_OPENINGS", "HermesCall", "KimiCalls"]

HERMES = ("<tool_call>", "</tool_call>")
_SECTIONS = ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>")
_CALL = "<|tool_call_begin|>"
_ARGUMENTS = "<|tool_call_argument_begin|>"
_CALL_END = "<|tool_call_end|>"
_SECTION_ENDS = ("<|tool_calls_section_end|>", "<|tool_call_section_end|>")
KIMI_OPENINGS = (*_SECTIONS, _CALL)
"""What opens a section; some servers drop its first mark and leave a bare call."""
_HEADER_LIMIT = 256

_KIMI = Marks((*_SECTIONS, _CALL, _ARGUMENTS, _CALL_END, *_SECTION_ENDS))
_ARGUMENTS_END = Marks((_CALL_END, *_SECTION_ENDS))
_NAME = pattern(r"(?:functions\.)?(.+?)(?::\d+)?", re.DOTALL)


class KimiCalls:
    """Reads a section of calls, or one bare call, after the mark that opened it."""

    def __init__(self, opening: str, block: int) -> None:
        self.block = block
        self.rest: str | None = None
        self._in_section = opening != _CALL
        self._state = "between" if self._in_section else "header"
        self._header = ""
        self._held = ""
        self._wait = False
        self._out: list[Piece] = []

    def feed(self, text: str) -> list[Piece]:
        """The pieces that this text completes."""
        return self._run(text, final=False)

    def close(self) -> list[Piece]:
        """What was held back; a call that never got to its arguments is text."""
        pieces = self._run("", final=True)
        if self._state == "header":
            self._spill()
            pieces, self._out = pieces + self._out, []
        return pieces

    def _run(self, text: str, final: bool) -> list[Piece]:
        text, at, self._wait = self._held + text, 0, False
        while at < len(text) and not self._wait and self.rest is None:
            if self._state == "arguments":
                at = self._in_arguments(text, at, final)
            elif self._state == "header":
                at = self._in_header(text, at, final)
            else:
                at = self._in_between(text, at, final)
        self._held = "" if self.rest is not None else text[at:]
        pieces, self._out = self._out, []
        return pieces

    def _in_between(self, text: str, at: int, final: bool) -> int:
        if self._state == "between":
            place = skip_blank(text, at)
            mark = _KIMI.match(text, place, final) if place < len(text) else ""
            if mark == "":
                self._wait = not final
                return len(text) if final else at
            if mark is None:
                self._state = "stray"
                return at
        else:
            place, mark = _KIMI.find(text, at, final)
            say(self._out, "text", text[at:place], self.block)
            if not mark:
                self._wait = mark == ""
                return place
        self._turn(mark, text, place + len(mark))
        return place + len(mark)

    def _in_header(self, text: str, at: int, final: bool) -> int:
        place, mark = _KIMI.find(text, at, final)
        room = _HEADER_LIMIT - len(self._header)
        if place - at > room:
            self._header += text[at : at + room]
            self._spill()
            return self._leave(text, at + room)
        self._header += text[at:place]
        if not mark:
            self._wait = mark == ""
            return place
        if not self._header.strip():
            self._spill()
            return self._leave(text, place)
        self._begin()
        self._turn(mark, text, place + len(mark))
        return place + len(mark)

    def _in_arguments(self, text: str, at: int, final: bool) -> int:
        place, mark = _ARGUMENTS_END.find(text, at, final)
        if place > at:
            say(self._out, "tool_call", text[at:place], self.block - 1)
        if not mark:
            self._wait = mark == ""
            return place
        self._turn(mark, text, place + len(mark))
        return place + len(mark)

    def _turn(self, mark: str, text: str, end: int) -> None:
        if mark in _SECTION_ENDS or (mark == _CALL_END and not self._in_section):
            self.rest = text[end:]
        elif mark == _CALL:
            self._state, self._header = "header", ""
        elif mark in _SECTIONS:
            self._state, self._in_section = "between", True
        elif mark == _ARGUMENTS and self._state == "header":
            self._state = "arguments"
        else:
            self._state = "between"

    def _leave(self, text: str, end: int) -> int:
        if not self._in_section:
            self.rest = text[end:]
        return end

    def _begin(self) -> None:
        written = self._header.strip()
        named = _NAME.fullmatch(written)
        name = named[1] if named else written
        self._out.append(Piece("tool_call", "", name, written, self.block + 1))
        self.block += 2

    def _spill(self) -> None:
        """What looked like a call's header is text."""
        self._state = "stray"
        say(self._out, "text", _CALL + self._header, self.block)


class _Call(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    arguments: msgspec.Raw = msgspec.Raw(b"")
    parameters: msgspec.Raw = msgspec.Raw(b"")
    id: str | None = None


_ESCAPED = pattern(r"\\.", re.DOTALL)
_BEGUN = pattern(
    r'\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)+")(?:\s*,\s*"(?:arguments|parameters)"\s*:\s*(.*))?',
    re.DOTALL,
)
"""A call that may be cut off: its name, and what there is of its arguments."""
_HEAD = '{"name":"'
_decode = msgspec.json.Decoder(_Call).decode
_decode_text = msgspec.json.Decoder(str).decode


class HermesCall:
    """Reads one section, which is a call if it contains a JSON object with a name. One that is
    `certain` to be a call is one even if the answer ends within it, by then perhaps without a name.
    """

    def __init__(self, block: int, *, certain: bool) -> None:
        self.block = block
        self._certain = certain
        self.rest: str | None = None
        self.is_call = False
        self._body: list[str] = []
        self._quotes = 0
        self._escapes = False
        self._tail = ""
        self._looked = False

    def feed(self, text: str) -> list[Piece]:
        """The call, or the text, once either is certain."""
        if not self._looked:
            start = skip_blank(text, 0)
            if start == len(text):
                self._tail += text
                return []
            if text[start] != "{":
                self.rest = text
                return [Piece("text", HERMES[0] + self._tail, None, None, self.block)]
            self._looked = True
        text, self._tail = self._tail + text, ""
        at = 0
        while (end := text.find(HERMES[1], at)) >= 0:
            self._take(text[at:end])
            at = end + len(HERMES[1])
            if not self._quotes % 2:
                self.rest = text[at:]
                return self._judge("".join(self._body), HERMES[1])
            self._take(HERMES[1])  # inside a string, so it belongs to an argument
        keep = max(at, len(text) - len(HERMES[1]) + 1)
        self._take(text[at:keep])
        self._tail = text[keep:]
        return []

    def _take(self, text: str) -> None:
        """Add text of the JSON, and count its quotes that no backslash precedes."""
        self._body.append(text)
        plain = _ESCAPED.sub("", "\\" + text if self._escapes else text)
        self._quotes += plain.count('"')
        self._escapes = plain.endswith("\\")

    def close(self) -> list[Piece]:
        """The call, if only its closing mark is missing or if it is certain, otherwise the text."""
        self.rest = ""
        body = "".join(self._body) + self._tail
        pieces = self._judge(_untorn(body) if self._certain else body, "")
        return pieces if self.is_call or not self._certain else self._cut_off(body)

    def _cut_off(self, body: str) -> list[Piece]:
        begun = _BEGUN.match(body)
        head = "".join(body.split())
        if begun is None and not (head.startswith(_HEAD) or _HEAD.startswith(head)):
            return [Piece("text", HERMES[0] + body, None, None, self.block)]
        try:
            name = _decode_text(begun[1]) if begun else None
        except msgspec.DecodeError:
            name = None
        self.is_call = True
        self.block += 2
        arguments = (begun[2] or "") if begun and name else ""
        return [Piece("tool_call", arguments, name, None, self.block - 1)]

    def _judge(self, body: str, closing: str) -> list[Piece]:
        try:
            call = _decode(body)
            arguments = (bytes(call.arguments) or bytes(call.parameters)).decode()
            if arguments.startswith('"'):
                arguments = _decode_text(arguments)
            elif arguments == "null":
                arguments = ""
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return [Piece("text", HERMES[0] + body + closing, None, None, self.block)]
        self.is_call = True
        self.block += 2
        return [Piece("tool_call", arguments, call.name, call.id, self.block - 1)]


def _untorn(body: str) -> str:
    """The body without the beginning of a closing mark at its end."""
    torn = (n for n in range(len(HERMES[1]) - 1, 0, -1) if body.endswith(HERMES[1][:n]))
    return body[: -next(torn, 0) or None]
