"""Anthropic's Messages API: signed thoughts, each verified when it comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from mull.testing.ledger import Issued, Ledger
from mull.testing.providers.provider import Asked, Provider, Written, cut, named_event, tokens
from mull.testing.rules.anthropic import check_anthropic, check_anthropic_replay
from mull.testing.rules.anthropic_bound import check_bound_replay, prefix_of
from mull.testing.script import Act, Call, Say, Think, calls_in, thoughts_in

__all__ = ["Anthropic", "BoundAnthropic"]

Block = dict[str, Any]
_CARRIERS = {"thinking": "signature", "redacted_thinking": "data"}


class Anthropic(Provider):
    """Thinks where the request says `enabled` or `adaptive`."""

    name: ClassVar[str] = "anthropic"

    def read(self, path: str, body: Mapping[str, Any]) -> Asked | None:
        if not path.endswith("/messages"):
            return None
        return Asked(body, body["model"], bool(body.get("stream")))

    def refusal(self, asked: Asked, ledger: Ledger) -> str | None:
        own = {mark for issued in ledger.answers for mark in issued.marks}
        return check_anthropic(asked.body, own) or check_anthropic_replay(
            asked.body, asked.model, ledger
        )

    def write(self, acts: Sequence[Act], asked: Asked, ledger: Ledger) -> Written:
        thinking = asked.body.get("thinking") or {}
        thinks = thinking.get("type") in ("enabled", "adaptive")
        shown = thinking.get("display") != "omitted"
        acts = [act for act in acts if thinks or not isinstance(act, Think)]
        blocks = [_block(act, asked.model, ledger, shown=shown) for act in acts]
        thought = sum(map(tokens, thoughts_in(acts)))
        usage = {
            "input_tokens": tokens(asked.body["messages"]),
            "output_tokens": tokens(blocks) + thought,
            "output_tokens_details": {"thinking_tokens": thought},
        }
        whole = {
            "id": ledger.name("msg_"),
            "type": "message",
            "role": "assistant",
            "model": asked.model,
            "content": blocks,
            "stop_reason": "tool_use" if calls_in(acts) else "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }
        return Written(_issued(asked.model, blocks), whole, [*map(named_event, _events(whole))])

    def error(self, reason: str) -> tuple[int, Mapping[str, Any]]:
        error = {"type": "invalid_request_error", "message": reason}
        return 400, {"type": "error", "error": error, "request_id": "req_strict"}

    def carriers(self, body: Mapping[str, Any]) -> list[str]:
        blocks = (
            block
            for message in body["messages"]
            if not isinstance(message["content"], str)
            for block in message["content"]
        )
        return [block[_CARRIERS[block["type"]]] for block in blocks if block["type"] in _CARRIERS]


class BoundAnthropic(Anthropic):
    """A newer Claude: its thoughts are valid only after the very same conversation."""

    name: ClassVar[str] = "anthropic-bound"

    def refusal(self, asked: Asked, ledger: Ledger) -> str | None:
        return super().refusal(asked, ledger) or check_bound_replay(asked.body, ledger)

    def write(self, acts: Sequence[Act], asked: Asked, ledger: Ledger) -> Written:
        written = super().write(acts, asked, ledger)
        prefix = prefix_of(asked.body, len(asked.body["messages"]))
        return replace(written, issued=replace(written.issued, prefix=prefix))


def _block(act: Act, model: str, ledger: Ledger, *, shown: bool) -> Block:
    match act:
        case Think(text, hidden=True):
            return {"type": "redacted_thinking", "data": ledger.seal(model, text)}
        case Think(text):
            signature = ledger.seal(model, text)
            return {
                "type": "thinking",
                "thinking": text if shown else "",
                "signature": signature,
            }
        case Say(text):
            return {"type": "text", "text": text}
        case Call(name, arguments):
            return {
                "type": "tool_use",
                "id": ledger.name("toolu_"),
                "name": name,
                "input": arguments,
            }


def _issued(model: str, blocks: Sequence[Block]) -> Issued:
    keys = {**_CARRIERS, "tool_use": "id"}
    marks = {
        block[keys[block["type"]]]: at for at, block in enumerate(blocks) if block["type"] in keys
    }
    carriers = [block[_CARRIERS[block["type"]]] for block in blocks if block["type"] in _CARRIERS]
    return Issued(model, blocks, marks, carriers)


def _events(whole: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    usage = whole["usage"]
    started = {**usage, "output_tokens": 1}
    del started["output_tokens_details"]
    empty: Block = {"content": [], "stop_reason": None, "usage": started}
    yield {"type": "message_start", "message": {**whole, **empty}}
    yield {"type": "ping"}
    for index, block in enumerate(whole["content"]):
        start, deltas = _streamed(block)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    counted = {key: usage[key] for key in ("output_tokens", "output_tokens_details")}
    yield {"type": "message_delta", "delta": ending, "usage": counted}
    yield {"type": "message_stop"}


def _streamed(block: Block) -> tuple[Block, list[Block]]:
    """A block as it starts, and its deltas; a redacted one comes whole."""
    match block["type"]:
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": p} for p in cut(block["thinking"])]
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [*deltas, signed]
        case "text":
            return {**block, "text": ""}, [
                {"type": "text_delta", "text": piece} for piece in cut(block["text"])
            ]
        case "tool_use":
            arguments = msgspec.json.encode(block["input"]).decode()
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": piece} for piece in cut(arguments)
            ]
        case _:
            return block, []
