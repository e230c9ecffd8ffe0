"""Answers of a scripted chat model, for tests at the terminal."""

from __future__ import annotations

import msgspec

from mull.testing.server import Reply


def chunk(finish=None, **delta):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def think(text):
    return chunk(reasoning_content=text)


def say(text):
    return chunk(content=text)


def call(name, **arguments):
    function = {"name": name, "arguments": msgspec.json.encode(arguments).decode()}
    return chunk(tool_calls=[{"index": 0, "id": f"call_{name}", "function": function}])


def answer(*steps, finish="stop", usage=None):
    """A whole answer: its pieces, its end, and what was counted."""
    counted = [{"choices": [], "usage": usage}] if usage else []
    return Reply.events(*steps, chunk(finish), *counted, "[DONE]")


def calls(*steps):
    """An answer that ends with the calls in it."""
    return answer(*steps, finish="tool_calls")
