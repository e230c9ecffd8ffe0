"""Anthropic's Messages API: signed thoughts, each verified when it comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from mull.dialects.writer import About
from mull.neutral.blocks import Block, TextBlock, ThinkingBlock, ToolCallBlock
from mull.neutral.messages import assistant
from mull.testing.ledger import Issued, Ledger, Piece
from mull.testing.providers.provider import (
    Asked,
    Provider,
    Written,
    ending_of,
    render,
    usage_of,
)
from mull.testing.rules.anthropic import check_anthropic, check_anthropic_replay
from mull.testing.rules.anthropic_bound import check_bound_replay, prefix_of
from mull.testing.script import Act, Call, Say, Think, thoughts_in

__all__ = ["Anthropic", "BoundAnthropic"]

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
        usage = usage_of(asked.body["messages"], blocks, thoughts_in(acts))
        message = assistant(*blocks, stop_reason=ending_of(acts), usage=usage)
        about = About(id=ledger.name("msg_"), model=asked.model)
        whole, events = render("anthropic", message, about)
        return Written(_issued(asked.model, whole["content"]), whole, events)

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
            return ThinkingBlock(redacted=ledger.seal(model, text))
        case Think(text):
            return ThinkingBlock(text if shown else "", signature=ledger.seal(model, text))
        case Say(text):
            return TextBlock(text)
        case Call(name, arguments):
            return ToolCallBlock(ledger.name("toolu_"), name, arguments)


def _issued(model: str, blocks: Sequence[Piece]) -> Issued:
    keys = {**_CARRIERS, "tool_use": "id"}
    marks = {
        block[keys[block["type"]]]: at for at, block in enumerate(blocks) if block["type"] in keys
    }
    carriers = [block[_CARRIERS[block["type"]]] for block in blocks if block["type"] in _CARRIERS]
    return Issued(model, blocks, marks, carriers)
