"""A conversation that the gateway holds is sent upstream byte for byte as one that its client
replays."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import tried
from gateway.responding import TOOLS, Caller
from gateway.test_app import app_for
from gateway.test_square import EACH_DIALECT, UPSTREAMS
from mull.dialects.registry import encode_request
from mull.neutral.events import (
    BlockEnded,
    Finished,
    Started,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from mull.neutral.usage import Usage

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
answers = st.fixed_dictionaries(
    {
        "thought": words,
        "text": words,
        "calls": st.lists(st.dictionaries(st.just("at"), words), max_size=2),
        "ids": st.sampled_from(["functions.look:{}", "call_0123456789abcdef{}", "toolu_{}"]),
    }
)
turns = st.lists(st.tuples(words.filter(str.strip), answers), min_size=2, max_size=4)


def thought_of(upstream, text, number):
    """A thought with what its provider signs it with."""
    match upstream:
        case "anthropic":
            yield ThinkingDelta(text, "t", "thinking")
            yield ThinkingCarrier("t", "thinking", signature=f"signed {number}")
        case "openai":
            yield ThinkingDelta(text, "rs_1", "summary", "summary")
            sealed = f"sealed {number}"
            yield ThinkingCarrier(
                "rs_1", "summary", encrypted=sealed, id=f"rs_{number}", kind="summary"
            )
        case "gemini":
            yield ThinkingDelta(text, "t", "thought")
        case _:
            yield ThinkingDelta(text, "t", "reasoning_content")
    yield BlockEnded("rs_1" if upstream == "openai" else "t")


def events_of(upstream, answer, number):
    """The events of an answer, with ids that differ from one answer to the next."""
    yield Started(f"up_{number}", "upstream")
    if answer["thought"]:
        yield from thought_of(upstream, answer["thought"], number)
    if answer["text"]:
        yield TextDelta(answer["text"], "text")
        yield BlockEnded("text")
    for at, arguments in enumerate(answer["calls"]):
        name = answer["ids"].format(10 * number + at)
        signed = f"signed {number}" if upstream == "gemini" and not at else None
        yield ToolCallDelta(f"c{at}", name, "look", json.dumps(arguments), signed)
        yield BlockEnded(f"c{at}")
    yield UsageReported(Usage(5, 5))
    yield Finished("tool_calls" if answer["calls"] else "stop")


class Upstream:
    """Gives the answers it is told to, and keeps the bytes of what it is asked."""

    def __init__(self, gateway, name):
        self.name, self.answer, self.number = name, None, 0
        self.asked = []
        gateway.engine.sender = lambda way, options=None, work=None: self._send

    async def _send(self, prepared, sending=None):
        self.asked.append(encode_request(prepared.request, prepared.target).body)
        yield [*events_of(self.name, self.answer, self.number)]


def without_reasoning(items):
    return [item for item in items if item["type"] != "reasoning"]


@pytest.mark.parametrize("upstream", EACH_DIALECT)
@tried(0.2)
@given(turns=turns, keep=st.sampled_from([list, without_reasoning]), streams=st.booleans())
def test_a_held_conversation_is_sent_as_a_replayed_one(upstream, turns, keep, streams):
    async def run():
        app = app_for("http://127.0.0.1:9", model=UPSTREAMS[upstream])
        played, client = Upstream(app._gateway, upstream), Caller(app)
        history, last = [], None
        wants = {"tools": TOOLS, "reasoning": {"effort": "high"}}
        for number, (question, answer) in enumerate(turns):
            played.answer, played.number = answer, number
            new = [{"type": "message", "role": "user", "content": question}]
            if last is not None:
                called = [item for item in last["output"] if item["type"] == "function_call"]
                new = [
                    {"type": "function_call_output", "call_id": one["call_id"], "output": "r"}
                    for one in called
                ] + new
            history += new
            await client.create(input=history, store=False, **wants)
            held = {"input": new, **wants}
            if last is not None:
                held["previous_response_id"] = last["id"]
            if streams:
                last = (await client.stream(**held))[-1]["response"]
            else:
                last = await client.create(**held)
            replayed, continued = played.asked[-2:]
            assert continued == replayed
            history += keep(last["output"])
        await app._gateway.close()

    asyncio.run(run())
