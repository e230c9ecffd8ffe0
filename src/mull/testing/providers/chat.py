"""Chat Completions as Kimi and DeepSeek serve it, and as OpenRouter does before a Claude."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from mull.dialects.openai_chat import DIALECT
from mull.dialects.writer import About
from mull.neutral.assemble import tell
from mull.neutral.blocks import Block, TextBlock, ThinkingBlock, ToolCallBlock, Wire
from mull.neutral.events import Event, Key, ThinkingCarrier, ThinkingDelta
from mull.neutral.messages import Message, assistant
from mull.testing.ledger import Issued, Ledger
from mull.testing.providers.provider import (
    Asked,
    Provider,
    Written,
    ending_of,
    in_pieces,
    render,
    usage_of,
)
from mull.testing.rules.chat import (
    check_chat,
    check_deepseek,
    check_details_replay,
    check_field_replay,
    check_pairs,
)
from mull.testing.script import Act, Think, calls_in, said_in, thoughts_in

__all__ = ["DeepSeek", "Kimi", "OpenRouter"]

_FIELD = "reasoning_content"
_FORMAT = "anthropic-claude-v1"


class _Chat(Provider):
    """What they share: one message with its reasoning beside it, first the one, then the other."""

    def read(self, path: str, body: Mapping[str, Any]) -> Asked | None:
        if not path.endswith("/chat/completions"):
            return None
        return Asked(body, body["model"], bool(body.get("stream")))

    def write(self, acts: Sequence[Act], asked: Asked, ledger: Ledger) -> Written:
        thinks = self._thinks(asked.body)
        thoughts = thoughts_in(acts) if thinks else []
        calls = [
            ToolCallBlock(ledger.name("call_"), call.name, call.input) for call in calls_in(acts)
        ]
        words: list[Block] = [TextBlock(said)] if (said := said_in(acts)) else []
        reasoning = self._reasoning(thoughts, asked.model, ledger) if thinks else []
        usage = usage_of(asked.body["messages"], [*words, *calls], thoughts)
        message = assistant(*reasoning, *words, *calls, stop_reason=ending_of(acts), usage=usage)
        about = About(id=ledger.name("chatcmpl-"), model=asked.model)
        whole, events = render("openai-chat", message, about, self._events(message))
        told = whole["choices"][0]["message"]
        carriers = self._carriers(told)
        marks = dict.fromkeys([*(call.id for call in calls), *carriers], 0)
        return Written(Issued(asked.model, [told], marks, carriers), whole, events)

    def _events(self, message: Message) -> Iterable[Event]:
        return in_pieces(tell(message))

    def error(self, reason: str) -> tuple[int, Mapping[str, Any]]:
        return 400, {"error": {"message": reason, "type": "invalid_request_error"}}

    def carriers(self, body: Mapping[str, Any]) -> list[str]:
        return [carrier for message in body["messages"] for carrier in self._carriers(message)]

    def _thinks(self, body: Mapping[str, Any]) -> bool:
        return (body.get("thinking") or {}).get("type") != "disabled"

    def _reasoning(
        self, thoughts: Sequence[Think], model: str, ledger: Ledger
    ) -> list[ThinkingBlock]:
        """The thoughts. Here none is hidden, and a field that says nothing is there too."""
        return [ThinkingBlock("".join(thought.text for thought in thoughts), _FIELD)]

    def _carriers(self, message: Mapping[str, Any]) -> list[str]:
        thought = message.get("reasoning_content") or ""
        return [thought] if thought.strip() else []


class Kimi(_Chat):
    """Refuses a call without its reasoning, in whatever turn it was made."""

    name: ClassVar[str] = "kimi"

    def refusal(self, asked: Asked, ledger: Ledger) -> str | None:
        return check_chat(asked.body) or check_field_replay(asked.body, ledger)


class DeepSeek(_Chat):
    """Refuses a tool chain in which an answer lacks its reasoning; earlier turns may lack it."""

    name: ClassVar[str] = "deepseek"

    def refusal(self, asked: Asked, ledger: Ledger) -> str | None:
        return check_deepseek(asked.body) or check_field_replay(asked.body, ledger)

    def error(self, reason: str) -> tuple[int, Mapping[str, Any]]:
        kind = "invalid_request_error"
        return 400, {"error": {"message": reason, "type": kind, "param": None, "code": kind}}


class OpenRouter(_Chat):
    """A Claude behind OpenRouter: thoughts twice, as text and as `reasoning_details`, which are
    signed and must come back unmodified."""

    name: ClassVar[str] = "openrouter"

    def refusal(self, asked: Asked, ledger: Ledger) -> str | None:
        return check_pairs(asked.body) or check_details_replay(asked.body, asked.model, ledger)

    def error(self, reason: str) -> tuple[int, Mapping[str, Any]]:
        upstream = {"type": "invalid_request_error", "message": reason}
        raw = msgspec.json.encode({"type": "error", "error": upstream}).decode()
        about = {"raw": raw, "provider_name": "Anthropic"}
        error = {"message": "Provider returned error", "code": 400, "metadata": about}
        return 400, {"error": error}

    def _thinks(self, body: Mapping[str, Any]) -> bool:
        asked = body.get("reasoning") or {}
        return bool(asked) and asked.get("enabled") is not False and asked.get("effort") != "none"

    def _reasoning(
        self, thoughts: Sequence[Think], model: str, ledger: Ledger
    ) -> list[ThinkingBlock]:
        blocks = []
        for at, thought in enumerate(thoughts):
            sealed = _detail(thought, ledger.seal(model, thought.text))
            detail = {**sealed, "format": _FORMAT, "index": at}
            shown = "" if thought.hidden else thought.text
            blocks.append(ThinkingBlock(shown, "reasoning", wire=_wire(detail)))
        return blocks

    def _events(self, message: Message) -> Iterator[Event]:
        """Text in pieces, each told twice, the signature last; what is encrypted, whole."""
        for event in in_pieces(tell(message)):
            match event:
                case ThinkingDelta(text, key) if text:
                    yield event
                    about = {"type": "reasoning.text", "format": _FORMAT, "index": self._index(key)}
                    yield ThinkingCarrier(key, wire=_wire({**about, "text": text}))
                case ThinkingCarrier(key, wire=Wire(data={"reasoning_details": [detail]})) if (
                    "text" in detail
                ):
                    yield ThinkingCarrier(key, wire=_wire({**detail, "text": ""}))
                case _:
                    yield event

    def _index(self, key: Key) -> int:
        return int(str(key).rpartition(" ")[2])

    def _carriers(self, message: Mapping[str, Any]) -> list[str]:
        details = message.get("reasoning_details") or ()
        found = (detail.get("signature") or detail.get("data") for detail in details)
        return [carrier for carrier in found if carrier]


def _wire(detail: dict[str, Any]) -> Wire:
    return Wire(DIALECT, {"reasoning_details": [detail]})


def _detail(thought: Think, carrier: str) -> dict[str, Any]:
    if thought.hidden:
        return {"type": "reasoning.encrypted", "data": carrier}
    return {"type": "reasoning.text", "text": thought.text, "signature": carrier}
