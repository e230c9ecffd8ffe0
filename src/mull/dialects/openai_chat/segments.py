"""Which block each chunk of an answer belongs to.

This wire names no blocks: a block is a run of chunks of one kind, and the next kind opens the next
block. Thinking that carries something (a signature, details) is remembered by its key, so that the
carrier can follow at the end without splitting the text that is open by then.
"""

from __future__ import annotations

from typing import Any

from mull.dialects.decoder import broken_part
from mull.dialects.openai_chat import DIALECT
from mull.dialects.openai_chat.details import Details
from mull.dialects.openai_chat.mirrors import Mirrors
from mull.dialects.openai_chat.places import CONTENT_LIST, DETAILS, MEMBERS
from mull.neutral.blocks import ThinkingKind, Wire, wire_of
from mull.neutral.events import Event, OpaqueReceived, TextDelta, ThinkingCarrier, ThinkingDelta

__all__ = ["Segments"]

_REFUSAL = Wire(DIALECT, {"refusal": True})
_MANY = 1024
"""Chunks of thinking that are processed together."""


class Segments:
    """Emits the chunks of one answer as events, each with the key of its block."""

    def __init__(self, details: Details, mirrors: Mirrors, thought_kind: ThinkingKind) -> None:
        self._details = details
        self._thought_kind = thought_kind
        self._mirrors = mirrors
        self._pieces = mirrors.pieces
        self._kind = ""
        self._key = -1
        self._count = -1
        self._run: int | None = None
        self._promised: tuple[str, list[str]] | None = None
        self._settled = False
        self._waiting: list[str] = []
        self._spoke = False
        self.last_text: int | None = None
        self._signatures: dict[int, str] = {}
        self._members: dict[int, list[str | dict[str, Any]]] = {}

    def think_run(self) -> int:
        """The key of the open run of reasoning, or of a new one."""
        if self._kind != "thinking":
            self._open("thinking")
            self._run = self._key
            self._pieces.append(None)
        return self._key

    def think(self, text: str, field: str, out: list[Event]) -> None:
        """A chunk of reasoning. Whitespace opens no further run: it waits for words, or for the
        end.
        """
        if self._kind != "thinking":
            if self._run is not None and text.isspace():
                self._waiting.append(text)
                return
            text = "".join((*self._waiting, text))
            self._waiting.clear()
            self.think_run()
        pieces = self._pieces
        pieces.append(text)
        if len(pieces) > _MANY:
            self._mirrors.settle()
        out.append(ThinkingDelta(text, self._key, field, self._thought_kind))

    def speak(self, text: str, out: list[Event], wire: Wire | None = None) -> None:
        """A chunk of the answer."""
        if self._kind != "text":
            self.begin_answer("text", out)
            self.last_text = self._key
        out.append(TextDelta(text, self._key, None, wire))

    def refuse(self, text: str, out: list[Event]) -> None:
        """A chunk of a refusal: separate text, which is sent back in its own field."""
        if self._kind != "refusal":
            self.begin_answer("refusal", out)
        out.append(TextDelta(text, self._key, None, _REFUSAL))

    def keep(self, data: dict[str, Any], out: list[Event]) -> None:
        """Data that mull does not know."""
        self.begin_answer("opaque", out)
        out.append(OpaqueReceived(data, self._key))
        self._kind = ""

    def keep_broken(self, data: dict[str, Any], out: list[Event]) -> None:
        """Data in a known place that cannot be what belongs there."""
        self.begin_answer("opaque", out)
        out += broken_part(data, self._key, "a part")
        self._kind = ""

    def begin_answer(self, kind: str, out: list[Event]) -> None:
        """Open a block that is not thinking; a promised empty thinking block comes first."""
        if not self._spoke:
            self._keep_promise(out)
            self._spoke = True
        self._open(kind)

    @property
    def speaks(self) -> bool:
        """Whether the block that is open is text."""
        return self._kind == "text"

    def leave(self) -> None:
        """The next chunk opens a block."""
        self._kind = ""

    def promise(self, field: str, blanks: list[str]) -> None:
        """An empty field arrived: it is an empty thinking block, unless thinking comes before the
        answer. After the answer started it counts only if it contains whitespace.
        """
        if not self._settled and (blanks or (self._promised is None and not self._spoke)):
            self._promised = field, blanks

    def forget_promise(self) -> None:
        """Thinking arrived, so the promised block is not needed."""
        self._settled, self._promised = True, None

    def carry_run(self, out: list[Event]) -> int:
        """The run that a carrier without text belongs to: the latest, or a new one here."""
        run = self._run
        if run is None:
            if self._kind in ("", "thinking"):
                run = self.think_run()
            else:
                self._count += 1
                run = self._run = self._count
            out.append(ThinkingDelta("", run, None, self._thought_kind))
        return run

    def sign(self, signature: str, out: list[Event]) -> None:
        """A signature of the latest run; another one signs a run of its own."""
        run = self.carry_run(out)
        if self._signatures.get(run, signature) != signature:
            self._run = None
            if self._kind == "thinking":
                self._kind = ""
            run = self.carry_run(out)
        self._signatures[run] = signature

    def think_members(
        self,
        members: list[str | dict[str, Any]],
        text: str,
        signature: str | None,
        out: list[Event],
        *,
        repeats: bool = False,
    ) -> None:
        """A thinking member of a content list, with whatever it contains beside text. One whose
        text only repeats thinking belongs to that.
        """
        signed = self._signatures.get(self._key) if self._kind == "thinking" else None
        if signed is not None and signed != signature:
            self.leave()
        key = self.carry_run(out) if repeats else self.think_run()
        if not repeats:
            self.think(text, CONTENT_LIST, out)
        self._members.setdefault(key, []).extend(members)
        if signature is not None:
            self._signatures[key] = signature

    def close(self, out: list[Event]) -> None:
        """The end: what was promised, and every carrier, now that it is complete."""
        self._keep_promise(out)
        if self._waiting:
            out.append(ThinkingDelta("".join(self._waiting), self._run, None, self._thought_kind))
        held = {key: {DETAILS: entries} for key, entries in self._details.runs().items()}
        for key, members in self._members.items():
            if not all(isinstance(member, str) for member in members):
                held.setdefault(key, {})[MEMBERS] = _joined(members)
        for key in sorted({*held, *self._signatures}):
            kept = held.get(key, {})
            out.append(
                ThinkingCarrier(
                    key,
                    DETAILS if kept else "reasoning_text",
                    self._signatures.get(key),
                    kind=_kind(kept.get(DETAILS, [])),
                    wire=wire_of(DIALECT, kept),
                )
            )

    def _keep_promise(self, out: list[Event]) -> None:
        if self._promised is not None:
            field, blanks = self._promised
            self.forget_promise()
            if blanks or self._run is None:
                self.think("".join(blanks), field, out)

    def _open(self, kind: str) -> None:
        self._count += 1
        self._key, self._kind = self._count, kind


def _joined(members: list[str | dict[str, Any]]) -> list[dict[str, Any]]:
    joined: list[dict[str, Any]] = []
    texts: list[str] = []
    for member in [*members, None]:
        if isinstance(member, str):
            texts.append(member)
            continue
        if texts:
            joined.append({"type": "text", "text": "".join(texts)})
            texts = []
        if member is not None:
            joined.append(member)
    return joined


def _kind(details: list[dict[str, Any]]) -> ThinkingKind | None:
    kinds = [d.get("type") for d in details if d.get("text") or d.get("summary")]
    return "summary" if kinds and all(k == "reasoning.summary" for k in kinds) else None
