"""Chat Completions as served by Kimi and DeepSeek, and by OpenRouter for a Claude."""

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
    OPENAI_VARIABLES,
    Asked,
    Provider,
    Written,
    ending_of,
    in_pieces,
    render,
    usage_of,
)
from mull.testing.rules.chat import (
    check_deepseek,
    check_details_replay,
    check_details_whole,
    check_field_replay,
    check_kimi,
    check_kimi_empty,
    check_pairs,
    effort_of,
)
from mull.testing.script import Act, Think, calls_in, said_in, thoughts_in
from mull.testing.verdict import Verdict, refused, suspected

__all__ = ["Chat", "DeepSeek", "Kimi", "OpenRouter"]

_FIELD = "reasoning_content"
_FORMAT = "anthropic-claude-v1"
_UPSTREAM = "Anthropic"
_NATIVE = {"stop": "end_turn", "tool_calls": "tool_use"}


class Chat(Provider):
    """What they share: one message with its reasoning beside it, reasoning first.

    By itself it is a server without rules of its own: each call is answered once.
    """

    name: ClassVar[str] = "chat"
    models: ClassVar[tuple[str, ...]] = ("chat",)
    asks_by: ClassVar[str] = '`thinking` of another type than "disabled"'
    variables: ClassVar[Mapping[str, str]] = OPENAI_VARIABLES

    def read(self, path: str, body: Mapping[str, Any]) -> Asked | None:
        if not path.endswith("/chat/completions"):
            return None
        return Asked(body, body["model"], bool(body.get("stream")))

    def verdicts(self, asked: Asked, ledger: Ledger) -> Iterator[Verdict]:
        yield from refused(check_pairs(asked.body))

    def write(self, acts: Sequence[Act], asked: Asked, ledger: Ledger) -> Written:
        thoughts = thoughts_in(acts)
        calls = [
            ToolCallBlock(ledger.name("call_"), call.name, call.input) for call in calls_in(acts)
        ]
        words: list[Block] = [TextBlock(said)] if (said := said_in(acts)) else []
        thinks = self.thinks(asked)
        reasoning = self._reasoning(thoughts, asked.model, ledger) if thinks else []
        usage = usage_of(asked.body["messages"], [*words, *calls], thoughts)
        message = assistant(*reasoning, *words, *calls, stop_reason=ending_of(acts), usage=usage)
        about = About(id=ledger.name("chatcmpl-"), model=asked.model)
        whole, events = render("openai-chat", message, about, self._events(message))
        whole, events = self._finish(whole, events)
        return Written(self.issue(asked, whole), whole, events)

    def issue(self, asked: Asked, document: Mapping[str, Any]) -> Issued:
        told = document["choices"][0]["message"]
        carriers = self._carriers(told)
        calls = (call["id"] for call in told.get("tool_calls") or ())
        return Issued(asked.model, [told], dict.fromkeys([*calls, *carriers], 0), carriers)

    def _events(self, message: Message) -> Iterable[Event]:
        return in_pieces(tell(message))

    def _finish(
        self, whole: dict[str, Any], events: list[bytes]
    ) -> tuple[dict[str, Any], list[bytes]]:
        """The answer with this provider's additions."""
        return whole, events

    def error(self, verdict: Verdict) -> tuple[int, Mapping[str, Any]]:
        return 400, {"error": {"message": verdict.reason, "type": "invalid_request_error"}}

    def carriers(self, body: Mapping[str, Any]) -> list[str]:
        return [carrier for message in body["messages"] for carrier in self._carriers(message)]

    def thinks(self, asked: Asked) -> bool:
        return (asked.body.get("thinking") or {}).get("type") != "disabled"

    def _reasoning(
        self, thoughts: Sequence[Think], model: str, ledger: Ledger
    ) -> list[ThinkingBlock]:
        """The thinking. None is hidden here, and an empty field is present too."""
        return [ThinkingBlock("".join(thought.text for thought in thoughts), _FIELD)]

    def _carriers(self, message: Mapping[str, Any]) -> list[str]:
        thought = message.get("reasoning_content") or ""
        return [thought] if thought.strip() else []


class Kimi(Chat):
    """Rejects a call without its reasoning, in whatever turn it was made."""

    name: ClassVar[str] = "kimi"
    models: ClassVar[tuple[str, ...]] = ("kimi-k2.5", "kimi-k2-thinking")

    def verdicts(self, asked: Asked, ledger: Ledger) -> Iterator[Verdict]:
        yield from refused(check_kimi(asked.body))
        yield from suspected(check_kimi_empty(asked.body))
        yield from suspected(check_field_replay(asked.body, ledger))


class DeepSeek(Chat):
    """Rejects a tool chain in which an answer lacks its reasoning; earlier turns may lack it."""

    name: ClassVar[str] = "deepseek"
    models: ClassVar[tuple[str, ...]] = ("deepseek-v4-pro", "deepseek-reasoner")

    def verdicts(self, asked: Asked, ledger: Ledger) -> Iterator[Verdict]:
        yield from refused(check_deepseek(asked.body))
        yield from suspected(check_field_replay(asked.body, ledger))

    def error(self, verdict: Verdict) -> tuple[int, Mapping[str, Any]]:
        kind = "invalid_request_error"
        said = verdict.reason
        return 400, {"error": {"message": said, "type": kind, "param": None, "code": kind}}


class OpenRouter(Chat):
    """A Claude behind OpenRouter: thinking twice, as text and as `reasoning_details`, which are
    signed and must come back unmodified.
    """

    name: ClassVar[str] = "openrouter"
    models: ClassVar[tuple[str, ...]] = ("anthropic/claude-sonnet-4.5",)
    asks_by: ClassVar[str] = "`reasoning`, `reasoning_effort` or `include_reasoning`"

    def verdicts(self, asked: Asked, ledger: Ledger) -> Iterator[Verdict]:
        yield from refused(check_pairs(asked.body))
        yield from refused(check_details_replay(asked.body, ledger))
        yield from suspected(check_details_whole(asked.body, asked.model, ledger))

    def thinks(self, asked: Asked) -> bool:
        hidden = (asked.body.get("reasoning") or {}).get("exclude")
        shown = not hidden and asked.body.get("include_reasoning") is not False
        return shown and effort_of(asked.body) != "none"

    def error(self, verdict: Verdict) -> tuple[int, Mapping[str, Any]]:
        upstream = {"type": "invalid_request_error", "message": verdict.reason}
        raw = msgspec.json.encode({"type": "error", "error": upstream}).decode()
        about = {"raw": raw, "provider_name": _UPSTREAM}
        error = {"message": "Provider returned error", "code": 400, "metadata": about}
        return 400, {"error": error}

    def _finish(
        self, whole: dict[str, Any], events: list[bytes]
    ) -> tuple[dict[str, Any], list[bytes]]:
        """OpenRouter names the upstream provider, and its reason for stopping."""
        return _routed(whole), [_routed_event(event) for event in events]

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
        """Text in chunks, each sent twice, the signature last; encrypted content in one piece."""
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


def _routed(document: dict[str, Any]) -> dict[str, Any]:
    """A document or chunk with OpenRouter's additions; a missing reason stays missing."""
    choices = [
        {**choice, "native_finish_reason": _NATIVE.get(choice.get("finish_reason"))}
        for choice in document.get("choices", ())
    ]
    return {**document, "provider": _UPSTREAM, "choices": choices}


def _routed_event(frame: bytes) -> bytes:
    """A chunk of the stream, which may contain several events, with the same in each."""
    return b"".join(_routed_data(event) + b"\n\n" for event in frame.split(b"\n\n") if event)


def _routed_data(event: bytes) -> bytes:
    data = event.removeprefix(b"data: ")
    if not data.startswith(b"{"):
        return event
    return b"data: " + msgspec.json.encode(_routed(msgspec.json.decode(data)))


def _detail(thought: Think, carrier: str) -> dict[str, Any]:
    if thought.hidden:
        return {"type": "reasoning.encrypted", "data": carrier}
    return {"type": "reasoning.text", "text": thought.text, "signature": carrier}
