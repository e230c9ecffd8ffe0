"""Harmony, the format in which gpt-oss models write: messages, each with a header and a channel.

`<|start|>role<|channel|>name to=recipient <|constrain|>type<|message|>body<|end|>`, where most of
the header may be missing. The analysis channel is thinking. A recipient other than a speaker makes
the message a call, on whatever channel it is (ml-explore/mlx-lm#875), and `functions.` is removed
from its name. The rest is text: `final`, and `commentary`, which is meant for the user. A message
of another role than the assistant's, which the model made up, is thinking.

Headers and the whitespace between messages are markup and produce no piece; no mark is ever part of
a text, except one quoted in code of a text message. A body ends at `<|end|>`, `<|call|>` or
`<|return|>`, and at the next header if the model forgot them (vllm-project/vllm#35906).
"""

from __future__ import annotations

from typing import Literal

from mull.dialects.markers import CodeSpans, Kind, Marks, Piece, new_piece, say, skip_blank
from mull.neutral.patterns import pattern

__all__ = ["HARMONY_OPENINGS", "HEADER_LIMIT", "Harmony", "is_harmony"]

_START, _CHANNEL, _MESSAGE, _CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
_ENDS = ("<|end|>", "<|call|>", "<|return|>")
HARMONY_OPENINGS = (_CHANNEL, _START)
"""What an answer in this format starts with."""
HEADER_LIMIT = 256
"""Maximum characters of a header; anything longer becomes text."""

_BODY = Marks((_START, _CHANNEL, _MESSAGE, _CONSTRAIN, *_ENDS))
# Without `<|start|>`, the bare role is between two messages.
_BETWEEN = Marks((*_BODY.all, f"assistant{_CHANNEL}"))
_HEADER = Marks((_START, _MESSAGE, *_ENDS))
_LONGEST = max(map(len, _HEADER.all))
_PLAUSIBLE = pattern(
    r"\s*[\w.-]*(\s+to=[^\s<]*)?\s*"
    r"(<\|channel\|>\s*\w*(\s+to=[^\s<]*)?\s*(<\|constrain\|>)?\s*\w*\s*)?"
)
_RECIPIENT = pattern(r"(?:^|[\s>])to=([^\s<]+)")
_WORD = pattern(r"\s*([^\s<]*)")
_SPEAKERS = ("assistant", "user", "all")


def is_harmony(opener: str) -> bool:
    """Whether a configured opening mark is one of this format."""
    return opener.startswith(HARMONY_OPENINGS)


class Harmony:
    """Reads an answer to its end; `kind` is that of a body without a header, None if one
    follows.
    """

    def __init__(self, kind: Literal["text", "thinking"] | None, block: int = 0) -> None:
        self.block = block
        self.rest: str | None = None
        self._state = "between" if kind is None else "body"
        self._kind: Kind = kind or "text"
        self._code = CodeSpans()
        self._header = ""
        self._held = ""
        self._wait = False
        self._out: list[Piece] = []

    def feed(self, text: str) -> list[Piece]:
        """The pieces that this text completes."""
        if (
            self._state == "body"
            and not self._held
            and "<" not in text
            and (self._kind != "text" or ("`" not in text and self._code.calm))
        ):
            return [new_piece(Piece, (self._kind, text, None, None, self.block))] if text else []
        return self._run(text, final=False)

    def close(self) -> list[Piece]:
        """What was held back."""
        pieces = self._run("", final=True)
        if self._state == "header":
            self._drop_header()
            pieces, self._out = pieces + self._out, []
        return pieces

    def _run(self, text: str, final: bool) -> list[Piece]:
        text, at, self._wait = self._held + text, 0, False
        while at < len(text) and not self._wait:
            if self._state == "body":
                at = self._in_body(text, at, final)
            elif self._state == "header":
                at = self._in_header(text, at, final)
            else:
                at = self._in_between(text, at, final)
        self._held = text[at:]
        pieces, self._out = self._out, []
        return pieces

    def _in_body(self, text: str, at: int, final: bool) -> int:
        place, mark = _BODY.find(text, at, final)
        self._say(text[at:place])
        if not mark:
            self._wait = mark == ""
            return place
        if self._kind == "text" and self._code.inside:
            self._say(mark)
        else:
            self._turn(mark)
        return place + len(mark)

    def _in_between(self, text: str, at: int, final: bool) -> int:
        place = skip_blank(text, at)
        mark = _BETWEEN.match(text, place, final) if place < len(text) else ""
        if mark:
            self._turn(mark)
            return place + len(mark)
        if mark is None:
            self._begin("text")
        elif final:
            return len(text)
        else:
            self._wait = True
        return at

    def _in_header(self, text: str, at: int, final: bool) -> int:
        room = HEADER_LIMIT - len(self._header)
        # no further than the limit: otherwise each of many headers would search the whole text
        place, mark = _HEADER.find(text[at : at + room + _LONGEST], 0, final)
        place += at
        if place - at > room:
            self._header += text[at : at + room]
            self._spill_header()
            return at + room
        self._header += text[at:place]
        if not mark:
            self._wait = mark == ""
            return place
        if mark == _MESSAGE:
            kind, name = _address(self._header)
            self._begin(kind, name)
        else:
            self._drop_header()
            self._turn(mark)
        return place + len(mark)

    def _turn(self, mark: str) -> None:
        """Follow a mark, from a body or from between two messages."""
        if mark == _START or mark.endswith(_CHANNEL):
            self._state, self._header = "header", "" if mark == _START else _CHANNEL
        elif mark in _ENDS:
            self._state = "between"
        elif self._state != "body" and mark == _MESSAGE:
            self._begin("text")

    def _begin(self, kind: Kind, name: str | None = None) -> None:
        self._state, self._kind = "body", kind
        self.block += 1
        if kind == "text":
            self._code = CodeSpans()
        else:
            self._out.append(Piece(kind, "", name, None, self.block))

    def _say(self, text: str) -> None:
        if text:
            if self._kind == "text":
                self._code.read(text)
            say(self._out, self._kind, text, self.block)

    def _drop_header(self) -> None:
        """A header without a body is dropped, if it is one."""
        if not _PLAUSIBLE.fullmatch(self._header):
            self._spill_header()
        self._state = "between"

    def _spill_header(self) -> None:
        self._begin("text")
        self._say(self._header.replace(_CHANNEL, "").replace(_CONSTRAIN, ""))


def _address(header: str) -> tuple[Kind, str | None]:
    """The kind of a message and the name of its call, from its header."""
    role, _, channel = header.partition(_CHANNEL)
    if not _first_word(role).startswith("assistant") and role.strip():
        return "thinking", None
    found = _RECIPIENT.search(header)
    name = found[1].removeprefix("functions.") if found else ""
    if name and name not in _SPEAKERS:
        return "tool_call", name
    return ("thinking" if _first_word(channel) == "analysis" else "text"), None


def _first_word(text: str) -> str:
    found = _WORD.match(text)
    return found[1] if found else ""
