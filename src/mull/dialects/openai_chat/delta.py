"""Decodes one delta of a stream, or one complete message, to events.

Reasoning comes first, then text, then calls, whatever the order of the keys: a delta may contain
the end of the thinking and the beginning of the answer (BerriAI/litellm#27492). `mirrors` decides
which of several reasoning fields are new; they are read in the endpoint's order, but the leading
one first if it has content. A field value of an unknown type is ignored, never an error.
"""

from __future__ import annotations

from typing import Any

from mull.dialects.decoder import NAMELESS
from mull.dialects.openai_chat import DIALECT
from mull.dialects.openai_chat.calls import Calls
from mull.dialects.openai_chat.details import Details
from mull.dialects.openai_chat.mirrors import Mirrors
from mull.dialects.openai_chat.places import CONTENT_LIST, LISTS, TAGS, text_of
from mull.dialects.openai_chat.segments import Segments
from mull.dialects.tags import Piece, TagSplitter
from mull.neutral.blocks import Wire
from mull.neutral.events import Event, Reclassified
from mull.neutral.target import Compat

__all__ = ["DeltaReader"]

_TEXT_MEMBERS = ("text", "output_text")


class DeltaReader:
    """Reads the deltas of one answer in order, or its one message."""

    def __init__(self, compat: Compat, field_name: str | None, *, whole: bool = False) -> None:
        self._order = (field_name,) if field_name else compat.reasoning_in
        self._readable = frozenset(self._order)
        self._details = Details(whole=whole, cumulative=compat.cumulative)
        self._mirrors = Mirrors()
        self._segments = Segments(self._details, self._mirrors, compat.thinking_kind)
        self._tags = TagSplitter(
            compat.tags,
            starts_in_reasoning=compat.starts_in_reasoning,
            anywhere=compat.tags_anywhere,
        )
        self._tag_block = 0
        self._tag_field = TAGS
        self._tagged = False
        self._said: dict[str, str] | None = {} if compat.cumulative else None
        self.calls = Calls()
        self.refused = False

    def read(self, delta: dict[str, Any], out: list[Event]) -> None:
        """The events of this delta. Nearly all have text or thinking, and nothing beside it."""
        content = calls = more = None
        thought, leader = "", self._mirrors.leader
        for name, part in delta.items():
            if part is None or name == "role":
                continue
            if name == "content":
                content = part
            elif name == leader and part and type(part) is str:
                thought = part
            elif name == "tool_calls":
                calls = part
            elif more is None:
                more = {name: part}
            else:
                more[name] = part
        if thought and (more is not None or self._said is not None):
            more = {**(more or {}), str(leader): thought}
        elif thought:
            self._think(thought, leader or "", out)
        if more is not None and self._more(more, content, calls, out):
            return
        if content:
            self._content(content, out)
        if calls:
            self._call(calls, out)

    def _more(self, more: dict[str, Any], content: Any, calls: Any, out: list[Event]) -> bool:
        """What is neither text nor calls; returns whether those were handled with it."""
        if not self._readable.isdisjoint(more):
            self._reason(more, out)
        if self._readable.issuperset(more):
            return False
        self._rest(more, content, calls, out)
        return True

    def close(self, out: list[Event]) -> None:
        """The end of the answer: what was held back, and every carrier."""
        self._pieces(self._tags.close(), out)
        self._segments.close(out)
        out += [NAMELESS] * self.calls.nameless

    def _reason(self, thoughts: dict[str, Any], out: list[Event]) -> None:
        mirrors, beside, blanks = self._mirrors, "", ""
        leader = mirrors.leader
        if leader is not None and leader in thoughts:
            beside = self._text(leader, thoughts[leader])
            if beside.isspace():  # these must not take precedence over another field's text
                beside, blanks = "", beside
            elif beside:
                self._think(beside, leader, out)
        for name in self._order:
            if name in thoughts and name != leader:
                text = self._text(name, thoughts[name])
                if text and self._hear(name, text, beside, out):
                    beside = text
        if blanks and leader is not None:
            self._hear(leader, blanks, beside, out)
        if self._details.has_new:
            self._details.place(self._segments.carry_run(out))
        if mirrors.leader is None:
            self._promise(thoughts)

    def _text(self, name: str, value: Any) -> str:
        """The text of a field in this delta."""
        if type(value) is list and name in LISTS:
            return self._details.add(value)
        text = value if type(value) is str else _field_text(value)
        return text if self._said is None or not text else self._suffix(name, text)

    def _hear(self, name: str, text: str, beside: str, out: list[Event]) -> bool:
        """Emit what is new in a text of this field; returns whether anything was."""
        new = self._mirrors.hear(name, text, beside)
        if new and name != self._mirrors.leader:
            self._segments.forget_promise()
            self._pieces(self._tags.disable(self._mirrors.told), out)
            self._mirrors.lead(name)
        if new:
            self._think(new, name, out)
        return bool(new)

    def _think(self, text: str, name: str, out: list[Event]) -> None:
        """A chunk of thinking in a field; what was said before it is no rest of the thinking."""
        if self._tags.holds_rest:
            self._pieces(self._tags.disable(self._mirrors.told), out)
        self._segments.think(text, name, out)

    def _new_inside(self, place: str, text: str) -> str:
        """What is new in thinking inside the content, where whitespace counts too."""
        leader = self._mirrors.leader
        new = text if leader is None else self._mirrors.hear(place, text)
        if leader is None or (new and leader != place):
            self._segments.forget_promise()
            self._mirrors.lead(place)
        return new

    def _promise(self, thoughts: dict[str, Any]) -> None:
        """Nothing has content yet: note whitespace, or an empty field."""
        blank = self._mirrors.blanks(self._order)
        for name in self._order if blank is None else ():
            if isinstance(thoughts.get(name), str):
                blank = name, []
                break
        if blank is not None:
            self._segments.promise(*blank)

    def _suffix(self, channel: str, text: str) -> str:
        """What is new if every delta repeats everything before."""
        assert self._said is not None
        before = self._said.get(channel, "")
        if not text.startswith(before):
            self._said[channel] = before + text
            return text
        self._said[channel] = text
        return text[len(before) :]

    def _content(self, content: Any, out: list[Event]) -> None:
        if type(content) is str:
            if self._said is not None:
                content = self._suffix("content", content)
            if content and self._tags.passes(content, self._tag_block):
                self._segments.speak(content, out)
            else:
                self._pieces(self._tags.feed(content), out)
        elif isinstance(content, list):
            self._members(content, out)
        else:
            self._segments.keep_broken({"content": content}, out)

    def _pieces(self, pieces: list[Piece], out: list[Event]) -> None:
        segments = self._segments
        for kind, text, name, id_, block in pieces:
            if block != self._tag_block:
                self._tag_block, self._tag_field = block, TAGS
                segments.leave()
            if kind == "text":
                if text:
                    segments.speak(text, out)
            elif kind == "thinking":
                self._tagged = True
                if name is not None:
                    self._tag_field = f"{TAGS}:{name}"
                self._think_inside(text, out)
            elif kind == "rest":
                segments.think(text, self._mirrors.leader or TAGS, out)
            elif kind == "tool_call":
                segments.begin_answer("tool_call", out)
                self.calls.add_inline(block, name, id_, text, out)
            elif segments.last_text is None:
                segments.think("", TAGS, out)
            elif segments.speaks or self._mirrors.leader is None:
                out.append(Reclassified(segments.last_text, self._mirrors.leader or TAGS))
                segments.leave()

    def _think_inside(self, text: str, out: list[Event]) -> None:
        """A chunk of thinking in tags; an empty one opens it."""
        if self._mirrors.leader != TAGS:
            new = self._new_inside(TAGS, text)
            if text and not new:
                return
            text = new
        if not text or text.isspace():
            self._segments.think_run()
        self._segments.think(text, self._tag_field, out)

    def _members(self, members: list[Any], out: list[Event]) -> None:
        """Content as a list (Mistral): unknown members are kept, in place."""
        self._pieces(self._tags.disable(), out)
        for member in members:
            if isinstance(member, str):
                member = {"type": "text", "text": member}
            if not isinstance(member, dict):
                member = {"content": member}
            kind, text = member.get("type", "text"), member.get("text")
            if kind == "thinking":
                self._thinking_member(member, out)
            elif kind in _TEXT_MEMBERS and isinstance(text, str):
                if text:
                    self._segments.speak(text, out)
            elif kind in _TEXT_MEMBERS or not isinstance(kind, str):
                self._segments.keep_broken(member, out)
            else:
                self._segments.keep(member, out)

    def _thinking_member(self, member: dict[str, Any], out: list[Event]) -> None:
        inner = member.get("thinking")
        parts: list[str | dict[str, Any]] = []
        for part in inner if isinstance(inner, list) else [inner]:
            if isinstance(part, str):
                parts.append(part)
            elif isinstance(part, dict):
                text = part.get("text")
                is_text = part.get("type") == "text" and isinstance(text, str)
                parts.append(text if is_text and len(part) == 2 else part)  # type: ignore[arg-type]
        text = "".join(map(_field_text, parts))
        signature = member.get("signature")
        signature = signature if isinstance(signature, str) and signature else None
        new = self._new_inside(CONTENT_LIST, text)
        self._segments.think_members(parts, new, signature, out, repeats=bool(text and not new))

    def _call(self, calls: Any, out: list[Event]) -> None:
        if isinstance(calls, list):
            if not self.calls:
                # Text held back in case of a mark comes before the call.
                self._pieces(self._tags.disable(), out)
            self._segments.begin_answer("tool_call", out)
            self.calls.add(calls, out)
        else:
            self._segments.keep_broken({"tool_calls": calls}, out)

    def _rest(self, rest: dict[str, Any], content: Any, calls: Any, out: list[Event]) -> None:
        """A delta with keys beyond the usual ones."""
        opaque = rest.get("reasoning_opaque")
        if opaque and isinstance(opaque, str) and "reasoning_text" in self._readable:
            self._segments.sign(opaque, out)
        extra = rest.get("extra_content")
        if isinstance(extra, dict) and isinstance(content, str | None):
            self._marked(content or "", extra, out)
        elif content:
            self._content(content, out)
        refusal = rest.get("refusal")
        if refusal and isinstance(refusal, str):
            self.refused = True
            self._segments.refuse(refusal, out)
        if calls:
            self._call(calls, out)
        function = rest.get("function_call")
        if isinstance(function, dict) and function:
            self._segments.begin_answer("tool_call", out)
            self.calls.add_legacy(function, out)
        if rest.get("images"):
            self._segments.keep({"images": rest["images"]}, out)

    def _marked(self, content: str, extra: dict[str, Any], out: list[Event]) -> None:
        """Google's mark on content: it says that the text is thinking, or it is a carrier."""
        google = extra.get("google")
        thought = google.get("thought") if isinstance(google, dict) else None
        if thought is not True:
            self._pieces(self._tags.feed(content), out)
            if extra != {"google": {"thought": thought}}:
                self._segments.speak("", out, Wire(DIALECT, {"extra_content": extra}))
            return
        pieces = self._tags.feed(content)
        self._tagged = self._tagged or any(piece.kind == "thinking" for piece in pieces)
        if self._tagged:
            self._pieces(pieces, out)
            return
        for piece in pieces:
            if new := self._new_inside("extra_content", piece.text):
                self._segments.think(new, "extra_content", out)


def _field_text(value: Any) -> str:
    """The text of a reasoning field: a string, or a list of parts with text."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return text_of(value)
    return "".join(map(_field_text, value)) if isinstance(value, list) else ""
