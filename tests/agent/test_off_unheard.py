"""Off at a server that thinks anyway: the thought goes back in its tool chain, as any other."""

from __future__ import annotations

import asyncio

import pytest

from answers import written
from gateway.conftest import serving
from mull.agent.complete import complete
from mull.agent.engine import Engine
from mull.agent.library import Conversation
from mull.neutral.assemble import tell
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.errors import RefusedError
from mull.neutral.events import Healed
from mull.neutral.messages import Message, assistant, user
from mull.neutral.usage import Usage
from mull.store.serve import ServedModel
from mull.testing.server import Reply, ScriptedServer
from talks import TALKS, Manner, Result

THOUGHT = "the file is named a.txt"
UNKNOWN = {
    "openai-compatible/my-kimi": "openai-chat",
    "openai-compatible/kimi-k2.6": "openai-chat",
    "openai-compatible/o-house": "openai-chat",
    "vllm/house": "openai-chat",
    "llama.cpp/house": "openai-chat",
    "ollama/house": "openai-chat",
    "openrouter/house/model": "openai-chat",
    "moonshotai/kimi-k9": "openai-chat",
    "openai/house": "openai-responses",
    "anthropic/house": "anthropic",
    "amazon-bedrock/house.model": "bedrock-converse",
    "google/house": "gemini",
}
MISSING = {
    "kimi": "thinking is enabled but reasoning_content is missing in assistant tool call message"
    " at index 2",
    "deepseek": "The `reasoning_content` in the thinking mode must be passed back to the API.",
    "goose": "Missing `reasoning_content` field in the assistant message at message index 2",
}
BLOCK = (
    "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    " When `thinking` is enabled, a final `assistant` message must start with a thinking block"
)
ITEM = "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item"
MARKS = (THOUGHT.encode(), b"c2lnbmVk", b"c2VhbGVk")
FIELDS = ("reasoning_content", "reasoning", "reasoning_text")


def look(at: str) -> str:
    """Looks."""
    return f"saw {at}"


def thinking(dialect, field):
    match dialect:
        case "anthropic" | "bedrock-converse":
            return ThinkingBlock(THOUGHT, "thinking", signature="c2lnbmVk")
        case "openai-responses":
            return ThinkingBlock(
                THOUGHT, "summary", kind="summary", encrypted="c2VhbGVk", id="rs_1"
            )
        case "gemini":
            return ThinkingBlock(THOUGHT, "thought", signature="c2lnbmVk")
    return ThinkingBlock(THOUGHT, field)


def reply(dialect, *blocks, stop="stop"):
    events = [*tell(assistant(*blocks, stop_reason=stop, usage=Usage(9, 9, 3)))]
    kind = "application/vnd.amazon.eventstream" if "bedrock" in dialect else "text/event-stream"
    return Reply(200, {"content-type": kind}, (written(dialect, events),))


class Deaf(ScriptedServer):
    """Thinks whatever it is told, and wants the thoughts of tool calls back."""

    def __init__(self, dialect, said=MISSING["kimi"], field="reasoning_content"):
        super().__init__(self._next)
        self.dialect, self.said, self.field, self.refused = dialect, said, field, 0

    def _next(self, recorded):
        if recorded.method != "POST":
            return Reply.json({}, 404)
        if b"saw x" not in recorded.body:
            call = ToolCallBlock("call_1", "look", {"at": "x"})
            return reply(self.dialect, thinking(self.dialect, self.field), call, stop="tool_calls")
        if not any(mark in recorded.body for mark in MARKS):
            self.refused += 1
            return Reply.json({"error": {"message": self.said, "type": "invalid_request"}}, 400)
        return reply(self.dialect, TextBlock("done"))


def talk(server, model, *questions, **settings):
    """The answers; all events; the engine, which may have learnt something."""
    events, engine = [], Engine(isolated=True)
    off = {"reasoning.enabled": False, **settings}

    async def work():
        async with engine:
            one = Conversation(
                model, base_url=server.url, key="k", engine=engine, tools=[look], settings=off
            )
            one.subscribe(events.append)
            return [(await one.ask_async(question)).text for question in questions]

    return asyncio.run(work()), events


PREFERENCES = [
    {},
    {"reasoning.includeInContext": True},
    {"reasoning.includeInContext": False, "reasoning.stripFromContext": "all"},
    {"reasoning.enabled": True, "reasoning.effort": "none"},
]


@pytest.mark.parametrize("settings", PREFERENCES, ids=["off", "include", "strip", "none"])
@pytest.mark.parametrize("model", UNKNOWN)
def test_a_thought_that_came_though_off_goes_back_in_its_chain(model, settings):
    with Deaf(UNKNOWN[model]) as server:
        answers, _ = talk(server, model, "look at x", **settings)
    assert answers == ["done"]
    assert server.refused == 0
    assert len(server.requests) == 2


def test_a_server_that_wants_it_after_the_chain_too_gets_it_once_it_has_said_so():
    with Deaf("openai-chat") as server:
        answers, _ = talk(server, "openai-compatible/my-kimi", "look at x", "and?", "and now?")
    assert answers == ["done"] * 3
    assert server.refused == 1


@pytest.mark.parametrize("field", FIELDS)
def test_it_goes_back_in_the_field_that_it_came_in(field):
    with Deaf("openai-chat", field=field) as server:
        talk(server, "openai-compatible/my-kimi", "look at x")
    step = next(one for one in server.requests[1].json["messages"] if one.get("tool_calls"))
    assert step[field] == THOUGHT


KNOWN = {
    "moonshotai/kimi-k2.6": "openai-chat",
    "deepseek/deepseek-v4-pro": "openai-chat",
    "zai/glm-5": "openai-chat",
}


@pytest.mark.parametrize("said", MISSING)
@pytest.mark.parametrize("model", KNOWN)
def test_a_refusal_for_want_of_it_overrides_off(model, said):
    """The catalog says that off is off there; the endpoint behind the address says otherwise."""
    with Deaf("openai-chat", MISSING[said]) as server:
        answers, events = talk(server, model, "look at x", "and again?")
        assert answers == ["done", "done"]
        assert server.refused == 1  # it was learnt
    assert sum(isinstance(event, Healed) for event in events) == 1


@pytest.mark.parametrize("settings", PREFERENCES, ids=["off", "include", "strip", "none"])
@pytest.mark.parametrize(
    ("model", "dialect", "said"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic", BLOCK),
        ("anthropic/claude-opus-4-6", "anthropic", BLOCK),
        ("anthropic/claude-haiku-5-5", "anthropic", BLOCK),
        ("minimax/MiniMax-M3", "anthropic", BLOCK),
        ("openai/gpt-5.2", "openai-responses", ITEM),
        ("xai/grok-4.3", "openai-responses", ITEM),
    ],
)
def test_so_does_one_in_the_words_of_other_apis(model, dialect, said, settings):
    with Deaf(dialect, said) as server:
        answers, events = talk(server, model, "look at x", **settings)
        assert answers == ["done"]
        assert server.refused == 1
    (healed,) = (event for event in events if isinstance(event, Healed))
    assert "although it is off" in healed.change


def test_advice_does_not_recommend_what_was_done():
    def refuse(recorded):
        return Reply.json({"error": {"message": MISSING["kimi"]}}, 400)

    with ScriptedServer(refuse) as server:
        done = {"reasoning.includeInContext": True}
        with pytest.raises(RefusedError) as raised:
            talk(server, "openai-compatible/my-kimi", "hello", **done)
    assert "requires the reasoning of earlier answers" in str(raised.value)
    assert "includeInContext=true" not in str(raised.value)
    assert "enabled=false" not in str(raised.value)


def test_a_known_model_that_was_turned_off_gets_none():
    """Off is off there: a thought of the chain is from before."""
    with ScriptedServer([reply("openai-chat", TextBlock("done"))]) as server:
        thought = ThinkingBlock(THOUGHT, "reasoning_content")
        step = assistant(thought, ToolCallBlock("call_1", "look", {"at": "x"}))
        result = Message(role="tool", blocks=(ToolResultBlock("call_1", "saw x"),))
        complete(
            [user("look"), step, result],
            "moonshotai/kimi-k2.6",
            base_url=server.url,
            key="k",
            settings={"reasoning.enabled": False},
        )
    assert THOUGHT.encode() not in server.requests[0].body


@pytest.mark.parametrize("drops", [False, True], ids=["kept", "dropped"])
@pytest.mark.parametrize("client", ["chat", "messages", "contents", "responses"])
@pytest.mark.parametrize("model", ["openai-compatible/my-kimi", "anthropic/house", "openai/house"])
def test_the_gateway_returns_it_too(model, client, drops):
    with Deaf(UNKNOWN[model]) as server:
        served = ServedModel(f"{model}/none", base_url=server.url)
        with serving({"m": served}) as url:
            talk = TALKS[client](Manner(drops=drops))
            talk.ask("look at x")
            heard = talk.hear(url, "m", stream=True)
            talk.answer(heard.calls, [Result("saw x")])
            assert talk.hear(url, "m", stream=True).text == "done"
    assert server.refused == 0
