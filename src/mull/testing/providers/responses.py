"""OpenAI's Responses API without storage: encrypted reasoning items before what they produced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from mull.dialects.openai_responses import DIALECT
from mull.dialects.writer import About
from mull.neutral.blocks import Block, TextBlock, ThinkingBlock, ToolCallBlock, Wire
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
from mull.testing.rules.responses import check_responses, check_responses_replay
from mull.testing.script import Act, Call, Say, Think, thoughts_in

__all__ = ["OpenAI"]


class OpenAI(Provider):
    """Thinks unless the effort is `none`; summarises and encrypts where the request asks for it."""

    name: ClassVar[str] = "openai"

    def read(self, path: str, body: Mapping[str, Any]) -> Asked | None:
        if not path.endswith("/responses"):
            return None
        return Asked(body, body["model"], bool(body.get("stream")))

    def refusal(self, asked: Asked, ledger: Ledger) -> str | None:
        return check_responses(asked.body) or check_responses_replay(
            asked.body, asked.model, ledger
        )

    def write(self, acts: Sequence[Act], asked: Asked, ledger: Ledger) -> Written:
        wanted = asked.body.get("reasoning") or {}
        thinks = wanted.get("effort") != "none"
        acts = [act for act in acts if thinks or not isinstance(act, Think)]
        blocks = [_block(act, asked, ledger) for act in acts]
        usage = usage_of(asked.body["input"], blocks, thoughts_in(acts))
        message = assistant(*blocks, stop_reason=ending_of(acts), usage=usage)
        about = About(id=ledger.name("resp_"), model=asked.model)
        whole, events = render("openai-responses", message, about)
        return Written(_issued(asked.model, whole["output"]), whole, events)

    def error(self, reason: str) -> tuple[int, Mapping[str, Any]]:
        unverified = reason.endswith("could not be verified.")
        error = {
            "message": reason,
            "type": "invalid_request_error",
            "param": "input",
            "code": "invalid_encrypted_content" if unverified else None,
        }
        return 404 if reason.startswith("Item with id") else 400, {"error": error}

    def carriers(self, body: Mapping[str, Any]) -> list[str]:
        items = [] if isinstance(body["input"], str) else body["input"]
        return [item["encrypted_content"] for item in items if item.get("encrypted_content")]


def _block(act: Act, asked: Asked, ledger: Ledger) -> Block:
    match act:
        case Think(text, hidden):
            summarised = (asked.body.get("reasoning") or {}).get("summary") and not hidden
            included = "reasoning.encrypted_content" in asked.body.get("include", ())
            return ThinkingBlock(
                text if summarised else "",
                encrypted=ledger.seal(asked.model, text) if included else None,
                id=ledger.name("rs_"),
                kind="summary",
            )
        case Say(text):
            return TextBlock(text, wire=Wire(DIALECT, {"id": ledger.name("msg_")}))
        case Call(name, arguments):
            wire = Wire(DIALECT, {"id": ledger.name("fc_")})
            return ToolCallBlock(ledger.name("call_"), name, arguments, wire=wire)


def _issued(model: str, items: Sequence[Piece]) -> Issued:
    carriers = {
        item["encrypted_content"]: at
        for at, item in enumerate(items)
        if "encrypted_content" in item
    }
    ids = {item["id"]: at for at, item in enumerate(items)}
    return Issued(model, items, {**ids, **carriers}, [*carriers])
