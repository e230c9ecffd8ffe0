"""ask, stream and Conversation against a server on loopback."""

import asyncio

import pytest
from msgspec.structs import replace

from mull.agent.asking import ask, ask_async, stream, stream_async
from mull.agent.library import Conversation
from mull.client.exchange import ExchangeOptions
from mull.client.retry import RetryRules
from mull.neutral.errors import ConfigError, LocalError, NetworkError, RefusedError, SettingError
from mull.neutral.events import Failed, Finished, StateChanged, TextDelta, ThinkingDelta, ToolRan
from mull.neutral.usage import Usage
from mull.testing.server import STALL, Gate, Reply, ScriptedServer


def chunk(delta, finish=None):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


USAGE = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}}


def answer(text, thought=None):
    parts = [chunk({"reasoning_content": thought})] if thought is not None else []
    return Reply.events(*parts, chunk({"content": text}), chunk({}, "stop"), USAGE, "[DONE]")


def calling(*calls, thought="hm"):
    made = [
        {"index": n, "id": f"c{n}", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]
    return Reply.events(
        chunk({"reasoning_content": thought}),
        chunk({"tool_calls": made}),
        chunk({}, "tool_calls"),
        USAGE,
        "[DONE]",
    )


@pytest.fixture
def serve():
    servers = []

    def start(*replies):
        server = ScriptedServer(list(replies))
        server.__enter__()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def at(server, **more):
    return {"model": "openai-compatible/thinker", "base_url": server.url, **more}


def test_ask_gives_text_and_thinking_apart(serve):
    server = serve(answer("four", "2+2"))
    result = ask("2+2?", **at(server))
    assert (result.text, result.thinking, result.status) == ("four", "2+2", "complete")
    assert result.usage == Usage(7, 5, None, 12)
    assert str(result) == "four"
    assert result.message.origin.model == "thinker"
    assert result.model == "openai-compatible/thinker"
    (request,) = server.requests
    assert request.json["messages"] == [{"role": "user", "content": "2+2?"}]


def test_the_four_ways_agree(serve):
    server = serve(*[answer("yes", "why") for _ in range(4)])
    first = ask("q", **at(server))
    blocking = stream("q", **at(server))
    events = list(blocking)

    async def both():
        whole = await ask_async("q", **at(server))
        going = stream_async("q", **at(server))
        return whole, [event async for event in going], going.result

    whole, other_events, other = asyncio.run(both())
    first, whole, blocked, other = (
        replace(one, seconds=None, first_seconds=None)
        for one in (first, whole, blocking.result, other)
    )
    assert first == whole == blocked == other
    assert events == other_events
    assert [type(event) for event in events if type(event) in (TextDelta, ThinkingDelta)] == [
        ThinkingDelta,
        TextDelta,
    ]
    assert isinstance(events[-2], Finished)
    states = [event.state for event in events if isinstance(event, StateChanged)]
    assert states == ["sending", "streaming", "done"]


def test_blocking_names_work_inside_a_running_loop(serve):
    server = serve(answer("in a notebook"))

    async def cell():
        return ask("q", **at(server)).text

    assert asyncio.run(cell()) == "in a notebook"


def test_a_conversation_keeps_its_history_and_every_thought(serve):
    server = serve(answer("one", "t1"), answer("two", "t2"))
    talk = Conversation(system="be brief", **at(server))
    talk.ask("first")
    assert talk.ask("second").text == "two"
    assert server.requests[1].json["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "one"},
        {"role": "user", "content": "second"},
    ]
    assert [block.thought for m in talk.messages for block in m.thinking] == ["t1", "t2"]


def test_settings_hold_from_the_next_request_on(serve):
    server = serve(answer("one", "t1"), answer("two", "t2"), answer("three"))
    talk = Conversation(**at(server))
    talk.ask("first")
    talk.set("reasoning.includeInContext", True)
    talk.ask("second")
    assert server.requests[1].json["messages"][1]["reasoning_content"] == "t1"
    with pytest.raises(SettingError):
        talk.set("reasoning.format", "xml")
    talk.set("reasoning.stripFromContext", "all")
    talk.ask("third")
    assert all("reasoning_content" not in m for m in server.requests[2].json["messages"])


def test_switching_models_leaves_foreign_thoughts_out_and_brings_them_back(serve):
    first, second = serve(answer("a", "t1"), answer("c", "t3")), serve(answer("b", "t2"))
    talk = Conversation(
        "openai-compatible/one", base_url=first.url, settings={"reasoning.includeInContext": True}
    )
    talk.ask("1")
    other = Conversation(
        "openai-compatible/two",
        base_url=second.url,
        messages=talk.messages,
        settings={"reasoning.includeInContext": True},
    )
    other.ask("2")
    assert "t1" not in second.requests[0].body.decode()
    back = Conversation(
        "openai-compatible/one",
        base_url=first.url,
        messages=other.messages,
        settings={"reasoning.includeInContext": True},
    )
    back.ask("3")
    body = first.requests[1].body.decode()
    assert "t1" in body
    assert "t2" not in body


def test_switch_changes_the_model_and_a_bad_name_changes_nothing(serve):
    server = serve(answer("x"))
    talk = Conversation(**at(server))
    assert talk.switch("openai-compatible/other/high").model == "other"
    with pytest.raises(LocalError):
        Conversation("no-such-model-anywhere")
    talk.ask("q")
    assert server.requests[0].json["model"] == "other"


def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


def test_tools_run_and_their_chain_keeps_its_thinking(serve):
    server = serve(
        calling(("weather", '{"city":"Oslo"}'), ("weather", '{"city":"Rome"}')),
        answer("both sunny", "done"),
    )
    talk = Conversation(
        tools=[weather], settings={"reasoning.includeInContext": True}, **at(server)
    )
    going = talk.stream("weather?")
    ran = [event for event in going if isinstance(event, ToolRan)]
    assert [event.output for event in ran] == ["sunny in Oslo", "sunny in Rome"]
    assert going.result.text == "both sunny"
    assert going.result.usage == Usage(14, 10, None, 24)
    assert going.result.thinking == "hm\n\ndone"
    sent = server.requests[1].json
    assert sent["messages"][1]["reasoning_content"] == "hm"
    assert [m["content"] for m in sent["messages"] if m["role"] == "tool"] == [
        "sunny in Oslo",
        "sunny in Rome",
    ]
    assert sent["tools"][0]["function"]["name"] == "weather"


def test_a_call_of_a_tool_that_does_not_exist_comes_back_as_an_error(serve):
    server = serve(calling(("rain", "{}")), answer("sorry"))
    talk = Conversation(tools=[weather], **at(server))
    assert talk.ask("q").text == "sorry"
    tool = next(m for m in server.requests[1].json["messages"] if m["role"] == "tool")
    assert tool["content"] == "unknown tool rain: use weather"


def test_without_tools_calls_are_left_to_the_caller(serve):
    server = serve(calling(("weather", '{"city":"Oslo"}')))
    result = ask("q", **at(server))
    assert result.message.tool_calls[0].input == {"city": "Oslo"}
    assert len(server.requests) == 1


def test_two_event_loops_and_the_blocking_names_share_an_engine(serve):
    server = serve(*[answer("x") for _ in range(4)])
    assert asyncio.run(ask_async("q", **at(server))).text == "x"
    assert asyncio.run(ask_async("q", **at(server))).text == "x"
    with Conversation(**at(server)) as talk:
        assert talk.ask("q").text == "x"

    async def own():
        async with Conversation(**at(server)) as mine:
            return (await mine.ask_async("q")).text

    assert asyncio.run(own()) == "x"


def test_a_stream_that_is_left_closes_its_socket(serve):
    server = serve(Reply.events(chunk({"content": "par"}), STALL))
    with stream("q", **at(server)) as going:
        for event in going:
            if isinstance(event, TextDelta):
                break
    assert server.requests[0].wait_left()


def test_leaving_early_closes_the_socket_and_keeps_what_came(serve):
    gate = Gate()
    server = serve(
        Reply.events(chunk({"reasoning_content": "so"}), chunk({"content": "par"}), gate, STALL)
    )
    talk = Conversation(**at(server))
    going = talk.stream("q")
    for event in going:
        if isinstance(event, TextDelta):
            break
    iter(going).close()
    assert server.requests[0].wait_left()
    last = talk.messages[-1]
    assert (last.status, last.text, last.thinking[0].thought) == ("interrupted", "par", "so")


def test_a_refusal_is_raised_with_the_providers_words(serve):
    server = serve(Reply.json({"error": {"message": "no such model", "code": "nope"}}, status=404))
    talk = Conversation(**at(server))
    with pytest.raises(RefusedError, match="no such model") as caught:
        talk.ask("q")
    assert (caught.value.status, caught.value.code) == (404, "nope")
    assert talk.messages == ()


def test_a_failure_after_the_beginning_is_part_of_the_result(serve):
    server = serve(Reply.events(chunk({"content": "par"}), {"error": {"message": "overloaded"}}))
    going = stream("q", **at(server))
    events = list(going)
    assert isinstance(events[-2], Failed)
    assert events[-1] == StateChanged("failed", 1, 50)
    assert (going.result.status, going.result.text) == ("error", "par")


def test_nobody_there_is_a_network_error():
    with ScriptedServer([]) as server:
        url = server.url
    with pytest.raises(NetworkError, match="cannot connect"):
        ask(
            "q",
            "openai-compatible/x",
            base_url=url,
            limits=ExchangeOptions(retry=RetryRules(attempts=1)),
        )


def test_a_missing_key_is_said_before_anything_is_sent():
    with pytest.raises(ConfigError, match="no API key for Anthropic: set ANTHROPIC_API_KEY"):
        ask("q", "claude-sonnet-4-5")
    with pytest.raises(ConfigError, match="no model given"):
        ask("q")


def test_how_a_name_was_understood_is_among_the_results_notes(serve):
    server = serve(answer("one"), answer("two"))
    for name, sent in (("moonshotai/kimi-k2", "kimi-k2"), ("kimi-k2", "kimi-k2-0905-preview")):
        result = ask("q", name, base_url=server.url, key="k")
        assert server.requests[-1].json["model"] == sent
        assert ["kimi-k2-0905-preview" in n.text for n in result.notes if n.about == "model"] == [
            True
        ]


def test_a_refusal_for_reasoning_is_healed_once_and_remembered(serve):
    refused = Reply.json(
        {"error": {"message": "property 'reasoning_content' is unsupported"}}, status=400
    )
    server = serve(answer("one", "t1"), refused, answer("two"), answer("three"))
    talk = Conversation(settings={"reasoning.includeInContext": True}, **at(server))
    talk.ask("first")
    result = talk.ask("second")
    assert result.text == "two"
    assert any(note.about == "healed" for note in result.notes)
    assert "reasoning_content" not in server.requests[2].body.decode()
    again = Conversation(
        messages=talk.messages, settings={"reasoning.includeInContext": True}, **at(server)
    )
    again.ask("third")
    assert "reasoning_content" not in server.requests[3].body.decode()


@pytest.mark.parametrize(
    ("model", "variables"),
    [
        ("zai/glm-4.6", {"ZAI_API_KEY": "own", "ZHIPU_API_KEY": "the other platform's"}),
        ("zai/glm-4.6", {"ZHIPU_API_KEY": "own"}),
        ("zhipuai/glm-4.6", {"ZHIPUAI_API_KEY": "own", "ZAI_API_KEY": "the other platform's"}),
        ("moonshotai/kimi-k2-thinking", {"KIMI_API_KEY": "own"}),
        ("huggingface/zai-org/GLM-4.6", {"HUGGING_FACE_HUB_TOKEN": "own"}),
    ],
)
def test_the_variable_of_a_providers_own_sdk_holds_the_key(serve, monkeypatch, model, variables):
    for name in ("ZAI", "ZHIPU", "ZHIPUAI", "MOONSHOT", "KIMI"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    server = serve(answer("one"))
    assert ask("q", model, base_url=server.url).text == "one"
    assert server.requests[0].headers["authorization"] == "Bearer own"


def test_an_address_and_a_key_that_were_given_go_to_no_other_provider(serve, monkeypatch):
    server = serve(answer("one"), answer("three"))
    talk = Conversation("zai/glm-4.7", base_url=server.url, key="glm-key")
    talk.ask("q")
    talk.switch("deepseek/deepseek-chat")
    assert talk.target.endpoint != server.url
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="no API key for DeepSeek"):
        talk.ask("q")
    talk.switch("zai/glm-4.6")
    assert talk.ask("q").text == "three"
    assert [one.headers["authorization"] for one in server.requests] == ["Bearer glm-key"] * 2


def test_half_a_character_is_said_as_a_sign_that_stands_for_it(serve):
    server = serve(answer("one"))
    Conversation(**at(server)).ask("a\udcffb")
    assert server.requests[0].json["messages"][-1]["content"] == "a\ufffdb"
