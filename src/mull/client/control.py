"""Calls that steer an answer while it is being written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mull.client.access import Access, request_headers, request_url
from mull.client.transport import HttpRequest
from mull.neutral.errors import MullError
from mull.neutral.request import WireRequest
from mull.neutral.target import Target

if TYPE_CHECKING:
    from mull.client.answer import Client

__all__ = ["end_thinking"]

_PATIENCE = 5.0
_PATH = "/chat/completions/control"


async def end_thinking(target: Target, way: Access, transport: Client, answer: str) -> bool:
    """Ask llama.cpp to end the thought of a running answer; whether it will."""
    body = msgspec.json.encode({"id": answer, "action": "reasoning_end"})
    wire = WireRequest(_PATH, body, {"content-type": "application/json"})
    headers = request_headers(way, target, wire)
    request = HttpRequest("POST", request_url(way, _PATH), headers, body)
    try:
        async with transport.send(request, idle=_PATIENCE, total=_PATIENCE) as reply:
            body = await reply.read(1 << 16)
            return reply.status == 200 and _succeeded(body)
    except MullError:
        return False


def _succeeded(body: bytes) -> bool:
    """What the reply says itself: an answer that cannot be steered is a 200 as well."""
    try:
        told = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(told, dict) and told.get("success") is True
