"""A client of the gateway's Responses API without a socket: requests, streams, conversations."""

from __future__ import annotations

import asyncio
import json

from gateway.test_app import app_for, ask
from mull.testing import Call, Say, Think

TOOL = {"type": "object", "properties": {"at": {"type": "string"}}}
TOOLS = [{"type": "function", "name": "look", "parameters": TOOL}]
ASKS = {"tools": TOOLS, "reasoning": {"effort": "high", "summary": "auto"}}
LOOKS = [
    [Think("Look first. " * 3), Say("I look."), Call("look", {"at": "shelf"})],
    [Think("Found it. " * 3), Say("Milk.")],
]


def events_of(body):
    """The events of a stream."""
    frames = [frame for frame in body.decode().split("\n\n") if frame.startswith("event: ")]
    pairs = [frame.removeprefix("event: ").split("\ndata: ") for frame in frames]
    assert all(json.loads(data)["type"] == name for name, data in pairs)
    return [json.loads(data) for _, data in pairs]


class Caller:
    """Asks one application."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, method, path, body=None, status=200, **headers):
        data = b"" if body is None else json.dumps(body).encode()
        answer = await ask(self.app, method, path, data, **headers)
        assert answer.status == status, answer.body
        return answer.json

    async def create(self, status=200, **body):
        return await self("POST", "/v1/responses", {"model": "m", **body}, status)

    async def stream(self, **body):
        data = json.dumps({"model": "m", "stream": True, **body}).encode()
        answer = await ask(self.app, "POST", "/v1/responses", data)
        assert answer.headers["content-type"] == "text/event-stream"
        return events_of(answer.body)


def talk(url, conversation, **more):
    """Hold a conversation with an application in front of a server."""

    async def run():
        app = app_for(url, **more)
        try:
            return await conversation(Caller(app))
        finally:
            await app._gateway.close()

    return asyncio.run(run())


def results_of(response):
    """What a client answers to the calls of a response."""
    return [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "a bottle"}
        for item in response["output"]
        if item["type"] == "function_call"
    ]


def text_of(response):
    said = [item for item in response["output"] if item["type"] == "message"]
    return "".join(part["text"] for item in said for part in item["content"])
