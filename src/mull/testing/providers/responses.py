"""OpenAI's Responses API: reasoning items before what they produced, stored or encrypted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from mull.dialects.openai_responses import DIALECT
from mull.dialects.writer import About
from mull.neutral.blocks import Block, TextBlock, ThinkingBlock, ToolCallBlock, Wire
from mull.neutral.messages import assistant
from mull.testing.ledger import Issued, Kept, Ledger, Piece
from mull.testing.providers.provider import (
    OPENAI_VARIABLES,
    Asked,
    Provider,
    Written,
    ending_of,
    render,
    tokens,
    usage_of,
)
from mull.testing.rules.responses import (
    carrier_of,
    check_responses,
    check_responses_model,
    check_responses_order,
    check_responses_replay,
    items_of,
)
from mull.testing.script import Act, Call, Say, Think, thoughts_in
from mull.testing.verdict import Verdict, refused, suspected

__all__ = ["OpenAI"]


_RESPONSE = re.compile(r".*/responses/(?P<id>resp_\w+)(?P<items>/input_items)?")


class OpenAI(Provider):
    """Thinks unless the effort is `none`; summarises and encrypts if the request asks for it, and
    stores everything unless told not to.
    """

    name: ClassVar[str] = "openai"
    models: ClassVar[tuple[str, ...]] = ("gpt-5.1", "gpt-5", "o3")
    asks_by: ClassVar[str] = 'an effort other than "none"'
    variables: ClassVar[Mapping[str, str]] = OPENAI_VARIABLES

    def read(self, path: str, body: Mapping[str, Any]) -> Asked | None:
        if not path.endswith("/responses"):
            return None
        plain = {**body, "input": items_of(body)}
        return Asked(plain, body["model"], bool(body.get("stream")))

    def restore(self, asked: Asked, ledger: Ledger) -> Asked | Verdict:
        if asked.body.get("conversation"):
            return Verdict("(strict) conversations are not kept here", certain=False)
        earlier: Sequence[Piece] = ()
        if (name := asked.body.get("previous_response_id")) is not None:
            before = ledger.stored(name)
            if before is None or before.kept is None:
                code = "previous_response_not_found"
                return Verdict(f"Previous response with id '{name}' not found.", code=code)
            earlier = [*before.kept.given, *_without_loose_end(before.pieces)]
        found = [_referred(item, ledger) for item in asked.body["input"]]
        for item in found:
            if item["type"] == "item_reference":
                return Verdict(f"Item with id '{item['id']}' not found.")
        return replace(asked, body={**asked.body, "input": [*earlier, *found]})

    def verdicts(self, asked: Asked, ledger: Ledger) -> Iterator[Verdict]:
        yield from refused(check_responses(asked.body, ledger))
        yield from refused(check_responses_replay(asked.body, ledger))
        yield from suspected(check_responses_order(asked.body, ledger))
        yield from suspected(check_responses_model(asked.body, asked.model, ledger))

    def thinks(self, asked: Asked) -> bool:
        return (asked.body.get("reasoning") or {}).get("effort") != "none"

    def write(self, acts: Sequence[Act], asked: Asked, ledger: Ledger) -> Written:
        blocks = [_block(act, asked, ledger) for act in acts]
        usage = usage_of(asked.body["input"], blocks, thoughts_in(acts))
        message = assistant(*blocks, stop_reason=ending_of(acts), usage=usage)
        about = About(id=ledger.name("resp_"), model=asked.model)
        whole, events = render("openai-responses", message, about)
        return Written(self.issue(asked, whole), whole, events)

    def issue(self, asked: Asked, document: Mapping[str, Any]) -> Issued:
        stores = asked.body.get("store") is not False
        kept = Kept(document["id"], asked.body["input"], document) if stores else None
        return _issued(asked.model, document["output"], kept)

    def error(self, verdict: Verdict) -> tuple[int, Mapping[str, Any]]:
        unverified = verdict.reason.endswith("could not be verified.")
        error = {
            "message": verdict.reason,
            "type": "invalid_request_error",
            "param": "input" if verdict.code is None else "previous_response_id",
            "code": "invalid_encrypted_content" if unverified else verdict.code,
        }
        return 404 if verdict.reason.startswith("Item with id") else 400, {"error": error}

    def carriers(self, body: Mapping[str, Any]) -> list[str]:
        found = (carrier_of(item) for item in items_of(body))
        return [carrier for carrier in found if carrier]

    def count(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if not path.endswith("/responses/input_tokens"):
            return None
        return {"object": "response.input_tokens", "input_tokens": tokens(items_of(body))}

    def look(self, method: str, path: str, ledger: Ledger) -> Mapping[str, Any] | None:
        found = _RESPONSE.fullmatch(path)
        issued = ledger.stored(found["id"]) if found else None
        if found is None or issued is None or issued.kept is None:
            return super().look(method, path, ledger)
        if method == "DELETE":
            ledger.delete(issued.kept.id)
            return {"id": issued.kept.id, "object": "response", "deleted": True}
        return _listing(issued.kept.given) if found["items"] else issued.kept.document


def _referred(item: Piece, ledger: Ledger) -> Piece:
    """The stored item that a reference refers to."""
    place = ledger.find(item.get("id")) if item["type"] == "item_reference" else None
    return place.piece if place is not None and ledger.is_stored(place) else item


def _without_loose_end(items: Sequence[Piece]) -> Sequence[Piece]:
    """An answer without thinking that led to nothing."""
    kept = list(items)
    while kept and kept[-1]["type"] == "reasoning":
        kept.pop()
    return kept


def _listing(items: Sequence[Piece]) -> Mapping[str, Any]:
    return {"object": "list", "data": items, "has_more": False}


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


def _issued(model: str, items: Sequence[Piece], kept: Kept | None) -> Issued:
    """What is kept of an answer. Stored thinking is carried by its id, other thinking by its
    encrypted content; without either it cannot come back.
    """
    carriers = {
        carrier: at
        for at, item in enumerate(items)
        if (carrier := carrier_of(item)) and (kept is not None or item.get("encrypted_content"))
    }
    ids = {item["id"]: at for at, item in enumerate(items)}
    return Issued(model, items, {**ids, **carriers}, [*carriers], kept=kept)
