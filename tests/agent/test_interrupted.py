"""Stopped, failed and steered turns on servers that enforce the providers' rules."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from mull.agent.library import Conversation
from mull.neutral.events import Steered, TextDelta, ThinkingDelta, ToolStarted
from mull.policy.view.repair import INTERRUPTED
from mull.testing import Call, Say, StrictServer, Think
from mull.testing.faults import Response
from mull.testing.server import STALL

MODELS = [
    ("anthropic", "anthropic/claude-sonnet-4-5"),
    ("anthropic-bound", "anthropic/claude-opus-5-5"),
    ("deepseek", "deepseek/deepseek-v4-pro"),
    ("gemini", "google/gemini-3-pro-preview"),
    ("kimi", "moonshotai/kimi-k2-thinking"),
    ("openai", "openai/gpt-5"),
    ("openrouter", "openrouter/anthropic/claude-sonnet-4.5"),
]
STOPS = {"ZQ1": ThinkingDelta, "ZQ2": TextDelta}
"""What an answer has said, and the event by which that is known."""


def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


class Stalling(StrictServer):
    """Says nothing more after the event that holds the next of some words."""

    def __init__(self, provider, script, words):
        super().__init__(provider, script)
        self._words = iter(words)

    def _reply(self, recorded):
        reply, word = super()._reply(recorded), next(self._words, None)
        if word is None or reply.status != 200:
            return reply
        events = Response(b"", [step for step in reply.steps if isinstance(step, bytes)]).events
        at = next(n for n, event in enumerate(events, 1) if word.encode() in event)
        return replace(reply, steps=(*events[:at], STALL))


async def stopped_at(talk, question, kind):
    """Ask, and leave when such an event has come."""
    async with talk.stream_async(question) as stream:
        async for event in stream:
            if isinstance(event, kind) and event.text:
                return


@pytest.mark.parametrize(("provider", "model"), MODELS)
@pytest.mark.parametrize("include", [None, True])
def test_strict_servers_take_what_was_stopped_anywhere(provider, model, include):
    begins = [Think("ZQ1 me see"), Say("ZQ2 will look."), Call("look", {"at": "there"})]
    script = [*(begins for _ in STOPS), [Think("well"), Say("done")]]
    with Stalling(provider, script, STOPS) as server:
        settings = {} if include is None else {"reasoning.includeInContext": include}
        talk = Conversation(model, base_url=server.url, tools=[look], settings=settings)

        async def run():
            for kind in STOPS.values():
                await stopped_at(talk, "a question", kind)
            return await talk.ask_async("go on")

        assert asyncio.run(run()).text == "done"
    assert server.refusals == []
    sent = json.dumps(server.requests[-1].json)
    assert sent.count(INTERRUPTED) == len(STOPS)
    assert sent.count("ZQ2") == 1
    assert "there" not in sent


@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_strict_servers_take_what_is_said_beside_results(provider, model):
    rounds = [[Think(f"t{n}"), Call("look", {"at": f"{n}"})] for n in range(3)]
    with StrictServer(provider, [*rounds, [Think("end"), Say("done")]]) as server:
        talk = Conversation(model, base_url=server.url, tools=[look])

        async def run():
            seen = []
            async with talk.stream_async("look around") as stream:
                async for event in stream:
                    if isinstance(event, ToolStarted) and len(seen) < 1:
                        assert talk.steer("please hurry")
                    if isinstance(event, Steered):
                        seen.append(event.text)
            return seen, stream.result.text

        assert asyncio.run(run()) == (["please hurry"], "done")
    assert server.refusals == []
    assert ["please hurry" in json.dumps(r.json) for r in server.requests] == [
        False, True, True, True,
    ]  # fmt: skip
    assert [message.role for message in talk.messages][:4] == ["user", "assistant", "tool", "user"]
    assert talk.undo().text == "look around"


def test_what_no_result_took_along_is_given_back():
    with Stalling("kimi", [[Think("t"), Say("ZQ2 will do")]], ["ZQ2"]) as server:
        talk = Conversation("moonshotai/kimi-k2-thinking", base_url=server.url)
        assert not talk.steer("nobody works")

        async def run():
            async with talk.stream_async("q") as stream:
                async for event in stream:
                    if isinstance(event, TextDelta):
                        assert talk.steer("too late")
                        break

        asyncio.run(run())
    assert [message.text for message in talk.take_back()] == ["too late"]
    assert talk.take_back() == ()
