"""Anthropic's Messages API: signed thinking, verified when it comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    tokens,
    usage_of,
)
from mull.testing.providers.threads import continued, kept_of
from mull.testing.rules.anthropic import (
    check_anthropic,
    check_anthropic_chain,
    check_anthropic_replay,
    check_anthropic_rest,
)
from mull.testing.rules.anthropic_bound import check_bound_replay, prefix_of
from mull.testing.script import Act, Call, Say, Think, thoughts_in
from mull.testing.verdict import Verdict, doubted, refused, suspected

__all__ = ["Anthropic", "BoundAnthropic"]

_CARRIERS = {"thinking": "signature", "redacted_thinking": "data"}


class Anthropic(Provider):
    """Thinks if the request says `enabled` or `adaptive`; keeps message threads."""

    name: ClassVar[str] = "anthropic"
    models: ClassVar[tuple[str, ...]] = ("claude-opus-4-7", "claude-sonnet-4-5")
    asks_by: ClassVar[str] = '`thinking` of type "enabled" or "adaptive"'
    variables: ClassVar[Mapping[str, str]] = {
        "ANTHROPIC_BASE_URL": "{url}",
        "ANTHROPIC_API_KEY": "strict",
    }

    def read(self, path: str, body: Mapping[str, Any]) -> Asked | None:
        if not path.endswith("/messages"):
            return None
        merged = {**body, "messages": _merged(body["messages"])}
        return Asked(merged, body["model"], bool(body.get("stream")))

    def restore(self, asked: Asked, ledger: Ledger) -> Asked | Verdict:
        return continued(asked, ledger)

    def verdicts(self, asked: Asked, ledger: Ledger) -> Iterator[Verdict]:
        body, model = asked.body, asked.model
        own = {mark for issued in ledger.answers for mark in issued.marks}
        yield from refused(check_anthropic(body, own))
        yield from refused(check_anthropic_replay(body, ledger))
        yield from suspected(check_anthropic_chain(body, model, ledger))
        yield from doubted(check_anthropic_rest(body, ledger))

    def thinks(self, asked: Asked) -> bool:
        return (asked.body.get("thinking") or {}).get("type") in ("enabled", "adaptive")

    def write(self, acts: Sequence[Act], asked: Asked, ledger: Ledger) -> Written:
        shown = (asked.body.get("thinking") or {}).get("display") != "omitted"
        blocks = [_block(act, asked.model, ledger, shown=shown) for act in acts]
        usage = usage_of(asked.body["messages"], blocks, thoughts_in(acts))
        message = assistant(*blocks, stop_reason=ending_of(acts), usage=usage)
        about = About(id=ledger.name("msg_"), model=asked.model)
        whole, events = render("anthropic", message, about)
        return Written(self.issue(asked, whole), whole, events)

    def issue(self, asked: Asked, document: Mapping[str, Any]) -> Issued:
        issued = _issued(asked.model, document["content"])
        return replace(issued, kept=kept_of(asked, document))

    def error(self, verdict: Verdict) -> tuple[int, Mapping[str, Any]]:
        error: dict[str, Any] = {"type": "invalid_request_error", "message": verdict.reason}
        if verdict.code is not None:
            error["details"] = {"error_code": verdict.code}
        return 400, {"type": "error", "error": error, "request_id": "req_strict"}

    def carriers(self, body: Mapping[str, Any]) -> list[str]:
        blocks = (
            block
            for message in body["messages"]
            if not isinstance(message["content"], str)
            for block in message["content"]
        )
        return [block[_CARRIERS[block["type"]]] for block in blocks if block["type"] in _CARRIERS]

    def count(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if not path.endswith("/messages/count_tokens"):
            return None
        return {"input_tokens": tokens(body["messages"], body.get("system"), body.get("tools"))}

    def listed(self) -> Mapping[str, Any]:
        ends = {"first_id": self.models[0], "last_id": self.models[-1], "has_more": False}
        return {"data": [self.model(name) for name in self.models], **ends}

    def model(self, name: str) -> Mapping[str, Any]:
        made = "2026-01-01T00:00:00Z"
        return {"type": "model", "id": name, "display_name": name, "created_at": made}


def _merged(messages: Sequence[Piece]) -> list[Piece]:
    """The messages as the API counts them: consecutive ones of one role are one. A system message
    among them changes the effort or the instructions, and is no turn.
    """
    merged: list[Piece] = []
    for message in messages:
        if message["role"] == "system":
            continue
        if merged and merged[-1]["role"] == message["role"]:
            both = [*_as_blocks(merged[-1]), *_as_blocks(message)]
            merged[-1] = {**merged[-1], "content": both}
        else:
            merged.append(message)
    return merged


def _as_blocks(message: Piece) -> Sequence[Piece]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


class BoundAnthropic(Anthropic):
    """A newer Claude: its thinking is valid only after the exact same conversation."""

    name: ClassVar[str] = "anthropic-bound"

    def verdicts(self, asked: Asked, ledger: Ledger) -> Iterator[Verdict]:
        yield from super().verdicts(asked, ledger)
        yield from refused(check_bound_replay(asked.body, ledger))

    def issue(self, asked: Asked, document: Mapping[str, Any]) -> Issued:
        prefix = prefix_of(asked.body, len(asked.body["messages"]))
        return replace(super().issue(asked, document), prefix=prefix)


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
