"""Chat Completions as Kimi and DeepSeek serve it, and as OpenRouter does before a Claude."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from mull.testing.ledger import Issued, Ledger
from mull.testing.providers.provider import Asked, Provider, Written, cut, tokens
from mull.testing.rules.chat import (
    check_chat,
    check_deepseek,
    check_details_replay,
    check_field_replay,
    check_pairs,
)
from mull.testing.script import Act, Think, calls_in, said_in, thoughts_in

__all__ = ["DeepSeek", "Kimi", "OpenRouter"]

Delta = dict[str, Any]
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
        calls: list[Delta] = [
            {
                "id": ledger.name("call_"),
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": msgspec.json.encode(call.input).decode(),
                },
            }
            for call in calls_in(acts)
        ]
        reasoning = self._reasoning(thoughts, asked.model, ledger) if thinks else {}
        message: Delta = {"role": "assistant", "content": said_in(acts), **reasoning}
        if calls:
            message["tool_calls"] = calls
        ending = "tool_calls" if calls else "stop"
        usage = _usage(asked.body, message, thoughts)
        about = {"id": ledger.name("chatcmpl-"), "created": 0, "model": asked.model}
        whole = {
            **about,
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": ending}],
            "usage": usage,
        }
        carriers = self._carriers(message)
        marks = dict.fromkeys([*(call["id"] for call in calls), *carriers], 0)
        first = self._reasoning_deltas(message) if thinks else []
        deltas = [*first, *_answer_deltas(message)]
        return Written(
            Issued(asked.model, [message], marks, carriers),
            whole,
            [*_chunks(about, deltas, ending, usage), "[DONE]"],
        )

    def error(self, reason: str) -> tuple[int, Mapping[str, Any]]:
        return 400, {"error": {"message": reason, "type": "invalid_request_error"}}

    def carriers(self, body: Mapping[str, Any]) -> list[str]:
        return [carrier for message in body["messages"] for carrier in self._carriers(message)]

    def _thinks(self, body: Mapping[str, Any]) -> bool:
        return (body.get("thinking") or {}).get("type") != "disabled"

    def _reasoning(self, thoughts: Sequence[Think], model: str, ledger: Ledger) -> Delta:
        """The keys of a message that hold its thoughts. Here none is hidden."""
        return {"reasoning_content": "".join(thought.text for thought in thoughts)}

    def _reasoning_deltas(self, message: Mapping[str, Any]) -> list[Delta]:
        pieces = cut(message["reasoning_content"]) or [""]
        return [{"reasoning_content": piece, "content": None} for piece in pieces]

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

    def _reasoning(self, thoughts: Sequence[Think], model: str, ledger: Ledger) -> Delta:
        details = [
            {**_detail(thought, ledger.seal(model, thought.text)), "format": _FORMAT, "index": at}
            for at, thought in enumerate(thoughts)
        ]
        shown = "".join(thought.text for thought in thoughts if not thought.hidden)
        return {"reasoning": shown or None, "reasoning_details": details}

    def _reasoning_deltas(self, message: Mapping[str, Any]) -> list[Delta]:
        return [delta for detail in message["reasoning_details"] for delta in _fragments(detail)]

    def _carriers(self, message: Mapping[str, Any]) -> list[str]:
        details = message.get("reasoning_details") or ()
        found = (detail.get("signature") or detail.get("data") for detail in details)
        return [carrier for carrier in found if carrier]


def _detail(thought: Think, carrier: str) -> Delta:
    if thought.hidden:
        return {"type": "reasoning.encrypted", "data": carrier}
    return {"type": "reasoning.text", "text": thought.text, "signature": carrier}


def _fragments(detail: Delta) -> list[Delta]:
    """Text in pieces with its mirror beside it, the signature last; what is encrypted, whole."""
    if "text" not in detail:
        return [{"content": "", "reasoning_details": [detail]}]
    rest = {key: value for key, value in detail.items() if key not in ("text", "signature")}
    pieces = [
        {"content": "", "reasoning": piece, "reasoning_details": [{**rest, "text": piece}]}
        for piece in cut(detail["text"])
    ]
    signed = {**rest, "text": "", "signature": detail["signature"]}
    return [*pieces, {"content": "", "reasoning_details": [signed]}]


def _answer_deltas(message: Mapping[str, Any]) -> Iterator[Delta]:
    for piece in cut(message["content"]):
        yield {"content": piece}
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        head = {**call, "index": index, "function": {**function, "arguments": ""}}
        yield {"tool_calls": [head]}
        for piece in cut(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _chunks(
    about: Mapping[str, Any], deltas: Sequence[Delta], ending: str, usage: Mapping[str, Any]
) -> Iterator[Delta]:
    chunk = {**about, "object": "chat.completion.chunk"}
    for delta in [{"role": "assistant", "content": ""}, *deltas]:
        yield {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": ending}]}
    yield {**chunk, "choices": [], "usage": usage}


def _usage(
    body: Mapping[str, Any], message: Mapping[str, Any], thoughts: Sequence[Think]
) -> Mapping[str, Any]:
    asked, thought = tokens(body["messages"]), sum(map(tokens, thoughts))
    said = tokens(message["content"], message.get("tool_calls", []))
    return {
        "prompt_tokens": asked,
        "completion_tokens": said + thought,
        "total_tokens": asked + said + thought,
        "completion_tokens_details": {"reasoning_tokens": thought},
    }
