"""OpenAI's Responses API without storage: encrypted reasoning items before what they produced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar

import msgspec

from mull.testing.ledger import Issued, Ledger
from mull.testing.providers.provider import Asked, Provider, Written, cut, named_event, tokens
from mull.testing.rules.responses import check_responses, check_responses_replay
from mull.testing.script import Act, Call, Say, Think, thoughts_in

__all__ = ["OpenAI"]

Item = dict[str, Any]


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
        items = [_item(act, asked, ledger) for act in acts]
        asked_for = tokens(asked.body["input"])
        thought = sum(map(tokens, thoughts_in(acts)))
        said = tokens([item for item in items if item["type"] != "reasoning"])
        whole = {
            "id": ledger.name("resp_"),
            "object": "response",
            "created_at": 0,
            "status": "completed",
            "model": asked.model,
            "output": items,
            "parallel_tool_calls": True,
            "tool_choice": asked.body.get("tool_choice", "auto"),
            "tools": asked.body.get("tools", []),
            "reasoning": wanted,
            "store": False,
            "usage": {
                "input_tokens": asked_for,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": said + thought,
                "output_tokens_details": {"reasoning_tokens": thought},
                "total_tokens": asked_for + said + thought,
            },
        }
        numbers = count()
        events = [
            named_event({**event, "sequence_number": next(numbers)}) for event in _events(whole)
        ]
        return Written(_issued(asked.model, items), whole, events)

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


def _item(act: Act, asked: Asked, ledger: Ledger) -> Item:
    match act:
        case Think(text, hidden):
            summarised = (asked.body.get("reasoning") or {}).get("summary") and not hidden
            item: Item = {"type": "reasoning", "id": ledger.name("rs_")}
            item["summary"] = [{"type": "summary_text", "text": text}] if summarised else []
            if "reasoning.encrypted_content" in asked.body.get("include", ()):
                item["encrypted_content"] = ledger.seal(asked.model, text)
            return item
        case Say(text):
            part = {"type": "output_text", "text": text, "annotations": []}
            return {
                "type": "message",
                "id": ledger.name("msg_"),
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        case Call(name, arguments):
            return {
                "type": "function_call",
                "id": ledger.name("fc_"),
                "call_id": ledger.name("call_"),
                "name": name,
                "arguments": msgspec.json.encode(arguments).decode(),
                "status": "completed",
            }


def _issued(model: str, items: Sequence[Item]) -> Issued:
    carriers = {
        item["encrypted_content"]: at
        for at, item in enumerate(items)
        if "encrypted_content" in item
    }
    ids = {item["id"]: at for at, item in enumerate(items)}
    return Issued(model, items, {**ids, **carriers}, [*carriers])


def _events(whole: Mapping[str, Any]) -> Iterator[Item]:
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for at, item in enumerate(whole["output"]):
        begins, within = _streamed(item)
        yield {"type": "response.output_item.added", "output_index": at, "item": begins}
        for event in within:
            yield {**event, "item_id": item["id"], "output_index": at}
        yield {"type": "response.output_item.done", "output_index": at, "item": item}
    yield {"type": "response.completed", "response": whole}


def _streamed(item: Item) -> tuple[Item, list[Item]]:
    """An item as it is announced, and the events until it is done."""
    if item["type"] == "reasoning":
        begins = {"type": "reasoning", "id": item["id"], "summary": []}
        return begins, [
            event for at, part in enumerate(item["summary"]) for event in _summary(at, part)
        ]
    begins = {**item, "status": "in_progress"}
    if item["type"] == "message":
        return {**begins, "content": []}, _message(item["content"][0])
    prefix = "response.function_call_arguments"
    pieces = cut(item["arguments"])
    return {**begins, "arguments": ""}, [
        *({"type": f"{prefix}.delta", "delta": piece} for piece in pieces),
        {"type": f"{prefix}.done", "arguments": item["arguments"], "name": item["name"]},
    ]


def _summary(at: int, part: Item) -> Iterator[Item]:
    prefix, text = "response.reasoning_summary", part["text"]
    empty = {**part, "text": ""}
    yield {"type": f"{prefix}_part.added", "summary_index": at, "part": empty}
    for piece in cut(text):
        yield {"type": f"{prefix}_text.delta", "summary_index": at, "delta": piece}
    yield {"type": f"{prefix}_text.done", "summary_index": at, "text": text}
    yield {"type": f"{prefix}_part.done", "summary_index": at, "part": part}


def _message(part: Item) -> list[Item]:
    text, empty = part["text"], {**part, "text": ""}
    deltas = [
        {"type": "response.output_text.delta", "delta": piece, "logprobs": []}
        for piece in cut(text)
    ]
    events: list[Item] = [
        {"type": "response.content_part.added", "part": empty},
        *deltas,
        {"type": "response.output_text.done", "text": text, "logprobs": []},
        {"type": "response.content_part.done", "part": part},
    ]
    return [{**event, "content_index": 0} for event in events]
