"""`mull.complete`: one request over the caller's own history, on strict servers of five kinds."""

import asyncio
import json
import pickle
from functools import reduce
from operator import getitem

import msgspec
import pytest

import mull
from mull.testing import Call, Reply, Say, ScriptedServer, StrictServer, Think

SERVERS = {
    "kimi": "moonshotai/kimi-k2-thinking",
    "anthropic": "anthropic/claude-sonnet-4-5",
    "gemini": "google/gemini-3-pro-preview",
    "openai": "openai/gpt-5",
    "deepseek": "deepseek/deepseek-v4",
}
TASK = [
    [Think("I must look."), Call("now", {"zone": "UTC"})],
    [Think("Noon, then."), Say("It is noon.")],
]
NOW = {
    "type": "function",
    "function": {
        "name": "now",
        "description": "The time.",
        "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}},
    },
}


def result_block(call, text):
    return mull.Message(role="tool", blocks=(mull.ToolResultBlock(call.id, text),))


@pytest.mark.parametrize("kind", SERVERS)
def test_a_loop_of_ones_own_loses_no_thought(kind):
    with StrictServer(kind, TASK) as server:
        given = {"base_url": server.url, "key": "k", "tools": [NOW]}
        history = [mull.user("What time is it?")]
        while True:
            result = mull.complete(history, SERVERS[kind], **given)
            history.append(result.message)
            if not result.tool_calls:
                break
            history += [result_block(call, "12:00") for call in result.tool_calls]
    assert result.text == "It is noon."
    assert len(server.requests) == 2
    assert [message.role for message in history] == ["user", "assistant", "tool", "assistant"]


def test_nothing_is_run():
    def now(zone: str) -> str:
        """The time."""
        raise AssertionError("it was called")

    with StrictServer("kimi", TASK) as server:
        result = mull.complete("Time?", SERVERS["kimi"], base_url=server.url, tools=[now])
    assert [(call.name, call.input) for call in result.tool_calls] == [("now", {"zone": "UTC"})]
    assert result.status == "complete"
    (asked,) = server.requests
    assert asked.json["tools"][0]["function"]["description"] == "The time."


def test_dictionaries_and_messages_mix():
    with StrictServer("kimi", TASK) as server:
        given = {"base_url": server.url, "tools": [NOW]}
        history = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Time?"},
        ]
        first = mull.complete(history, SERVERS["kimi"], **given)
        call = first.tool_calls[0].id
        history += [first.message, {"role": "tool", "tool_call_id": call, "content": "12:00"}]
        second = mull.complete(history, SERVERS["kimi"], **given)
    assert second.text == "It is noon."
    sent = server.requests[-1].json["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool"]
    assert sent[2]["reasoning_content"] == "I must look."
    assert sent[3] == {"role": "tool", "tool_call_id": call, "content": "12:00"}


@pytest.mark.parametrize("kind", SERVERS)
def test_with_a_schema_the_tools_come_first(kind):
    city = {"type": "object", "properties": {"time": {"type": "string"}}, "required": ["time"]}
    with StrictServer(kind, [TASK[0], [Think("So."), Say('{"time": "noon"}')]]) as server:
        given = {"base_url": server.url, "key": "k", "tools": [NOW], "schema": city}
        first = mull.complete("What time is it?", SERVERS[kind], **given)
        assert [call.name for call in first.tool_calls] == ["now"]
        assert first.value is None
        history = [mull.user("What time is it?"), first.message]
        history += [result_block(call, "12:00") for call in first.tool_calls]
        assert mull.complete(history, SERVERS[kind], **given).value == {"time": "noon"}
    assert not server.refusals


def test_the_streaming_twins_say_the_same():
    async def read(url):
        stream = mull.complete_stream_async("Time?", SERVERS["kimi"], base_url=url, tools=[NOW])
        async with stream:
            return [event async for event in stream], stream.result

    with StrictServer("kimi", [TASK[0]] * 3) as server:
        with mull.complete_stream(
            "Time?", SERVERS["kimi"], base_url=server.url, tools=[NOW]
        ) as stream:
            blocking = list(stream)
        there, result = asyncio.run(read(server.url))
        whole = asyncio.run(
            mull.complete_async("Time?", SERVERS["kimi"], base_url=server.url, tools=[NOW])
        )
    assert list(map(type, blocking)) == list(map(type, there))
    assert stream.result.thinking == result.thinking == whole.thinking == "I must look."


def test_the_result_so_far_grows_with_the_stream():
    with (
        StrictServer("kimi", [[Think("One two three."), Say("Four five six.")]]) as server,
        mull.complete_stream("Count.", SERVERS["kimi"], base_url=server.url) as stream,
    ):
        shown = [(stream.result.thinking, stream.result.text) for _ in stream]
    assert shown[-1] == ("One two three.", "Four five six.")
    lengths = [len(thinking) + len(text) for thinking, text in shown]
    assert lengths == sorted(lengths)


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "no messages"),
        ({"role": "user"}, "`messages` must be text or a list, not dict"),
        (b"hi", "`messages` must be text or a list, not bytes"),
        ([3], "Message values, not int"),
        (" ", "empty question"),
    ],
)
def test_what_is_no_history_is_refused(messages, said):
    with pytest.raises(mull.LocalError, match=said):
        mull.complete(messages, SERVERS["kimi"], key="k")


def test_a_dictionary_that_is_no_tool_is_refused():
    with pytest.raises(mull.LocalError, match="needs a name"):
        mull.complete("q", SERVERS["kimi"], key="k", tools=[{"type": "function"}])


class City(msgspec.Struct):
    name: str
    people: int


BERN = '{"name": "Bern", "people": 134000}'


def test_a_value_comes_with_its_thoughts_apart():
    with StrictServer("kimi", [[Think("Bern."), Say(BERN)]]) as server:
        result = mull.complete("A city.", SERVERS["kimi"], base_url=server.url, schema=City)
    assert result.value == City("Bern", 134000)
    assert result.thinking == "Bern."


def test_a_value_that_does_not_match_is_asked_for_once_more():
    with StrictServer("kimi", [[Think("?"), Say('{"name": 3}')], [Think("!"), Say(BERN)]]) as one:
        talk = mull.Conversation(SERVERS["kimi"], base_url=one.url)
        events = talk.stream("A city.", schema=City)
        corrected = [event.text for event in events if isinstance(event, mull.Corrected)]
    assert events.result.value == City("Bern", 134000)
    assert len(corrected) == 1
    assert "'people' is missing" in corrected[0]
    assert [message.role for message in talk.messages] == ["user", "assistant", "user", "assistant"]


def test_twice_is_enough():
    with (
        StrictServer("kimi", [[Think("?"), Say("No.")]] * 3) as server,
        pytest.raises(mull.MisfitError, match="asked twice") as caught,
    ):
        mull.ask("A city.", SERVERS["kimi"], base_url=server.url, schema=City)
    assert pickle.loads(pickle.dumps(caught.value)).text == "No."
    assert len(server.requests) == 2


def test_a_stream_has_its_value_so_far():
    with (
        StrictServer("kimi", [[Think("Bern."), Say(BERN)]]) as server,
        mull.complete_stream("A city.", SERVERS["kimi"], base_url=server.url, schema=City) as live,
    ):
        seen = [live.partial for event in live if isinstance(event, mull.TextDelta)]
    assert seen[-1] == {"name": "Bern", "people": 134000}
    assert live.result.value == City("Bern", 134000)


WAYS = {
    "native": ("anthropic", SERVERS["anthropic"], [Think("Bern."), Say(BERN)]),
    "tool": ("anthropic", "anthropic/claude-3-5-sonnet-20241022", [Call("City", json.loads(BERN))]),
    "prompt": ("deepseek", SERVERS["deepseek"], [Think("Bern."), Say(f"```json\n{BERN}\n```")]),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_value_grows_in_each_way_and_the_conversation_goes_on(way):
    kind, model, answer = WAYS[way]
    with StrictServer(kind, [answer, [Say("Yes.")]]) as server:
        talk = mull.Conversation(model, base_url=server.url, key="k")
        with talk.stream("A city.", schema=City) as stream:
            seen = [stream.partial for _ in stream]
        result = stream.result
        assert talk.ask("Sure?").text == "Yes."
    assert result.value == City("Bern", 134000)
    assert seen[-1] == json.loads(BERN)
    assert [note.effective for note in result.notes if note.about == "format"] == [way]
    assert not result.tool_calls
    assert msgspec.json.decode(result.text.strip("`json\n")) == json.loads(BERN)
    assert not server.refusals


@pytest.mark.parametrize("way", WAYS)
def test_the_message_of_a_value_fits_into_the_next_request(way):
    kind, model, answer = WAYS[way]
    with StrictServer(kind, [answer, [Say("Yes.")]]) as server:
        given = {"base_url": server.url, "key": "k"}
        history = [mull.user("A city.")]
        history.append(mull.complete(history, model, schema=City, **given).message)
        history.append(mull.user("Sure?"))
        assert mull.complete(history, model, **given).text == "Yes."
    assert "did not finish" not in server.requests[-1].body.decode()
    assert not server.refusals


@pytest.mark.parametrize("kind", SERVERS)
def test_tools_come_before_the_value(kind):
    def now(zone: str) -> str:
        """The time."""
        return "12:00"

    script = [*TASK[:1], *TASK[:1], [Think("Bern."), Say(BERN)], [Think("So."), Say("Yes.")]]
    with StrictServer(kind, script) as server:
        given = {"base_url": server.url, "key": "k", "tools": [now]}
        called = mull.complete("A city.", SERVERS[kind], schema=City, **given)
        talk = mull.Conversation(SERVERS[kind], **given)
        result = talk.ask("A city.", schema=City)
        assert talk.ask("Sure?").text == "Yes."
    assert [call.name for call in called.tool_calls] == ["now"]
    assert called.value is None
    assert result.value == City("Bern", 134000)
    assert len(server.requests) == 4
    assert not server.refusals


def test_a_tool_named_as_the_schema_is_a_tool():
    def City(name: str) -> str:
        """Look a city up."""
        return name

    with StrictServer("kimi", [[Think("?"), Call("City", json.loads(BERN))]]) as server:
        result = mull.complete(
            "A city.", SERVERS["kimi"], base_url=server.url, tools=[City], schema=globals()["City"]
        )
    assert result.value is None
    assert [call.name for call in result.tool_calls] == ["City"]


def test_who_declines_is_not_asked_again():
    refusal = {"choices": [{"delta": {"refusal": "I will not."}, "finish_reason": "stop"}]}
    with (
        ScriptedServer([Reply.events(refusal, "[DONE]")]) as server,
        pytest.raises(mull.MisfitError, match=r"declined to answer: I will not\."),
    ):
        mull.ask("A city.", "openai-compatible/m", base_url=server.url, schema=City)
    assert len(server.requests) == 1


def test_a_value_that_was_cut_off_is_not_asked_for_again():
    cut = {"choices": [{"delta": {"content": '{"name": "Be'}, "finish_reason": "length"}]}
    with (
        ScriptedServer([Reply.events(cut, "[DONE]")]) as server,
        pytest.raises(mull.MisfitError, match=r"cut off; raise max_tokens"),
    ):
        mull.ask("A city.", "openai-compatible/m", base_url=server.url, schema=City)
    assert len(server.requests) == 1


def test_a_notebook_shows_the_thinking_folded_and_nothing_gets_out():
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True})
    hostile = "First </details><script>alert(1)</script>\n\n```py\nopen"
    with StrictServer("kimi", [[Think(hostile), Say("**Bern**")], [Think("?"), Say(BERN)]]) as one:
        given = {"base_url": one.url}
        said = markdown.render(mull.complete("q", SERVERS["kimi"], **given)._repr_markdown_())
        value = mull.complete("q", SERVERS["kimi"], schema=City, **given)._repr_markdown_()
    assert said.startswith("<details><summary>Thinking</summary>")
    assert said.count("</details>") == 1
    assert "<script>" not in said
    assert said.endswith("</details>\n<p><strong>Bern</strong></p>\n")
    assert value.endswith(f"</details>\n\n```json\n{BERN}\n```")


def test_a_schema_of_the_conversation_applies_to_every_turn_that_has_none():
    script = [[Think("?"), Say(BERN)], [Think("?"), Say("[1, 2]")], [Think("?"), Say(BERN)]]
    with StrictServer("kimi", script) as server:
        talk = mull.Conversation(SERVERS["kimi"], base_url=server.url, schema=City)
        values = [talk.ask("q").value, talk.ask("q", schema=list[int]).value, talk.ask("q").value]
    assert values == [City("Bern", 134000), [1, 2], City("Bern", 134000)]


def sent(messages, model="moonshotai/kimi-k2-thinking", **options):
    """The body of a request, and the notes on it."""
    with StrictServer("kimi", [[Think("Hm."), Say("Yes.")]]) as server:
        result = mull.complete(messages, model, base_url=server.url, **options)
    return server.requests[-1].json, result.notes


def test_all_messages_of_the_caller_are_sent():
    body, _ = sent([mull.user("A document."), mull.user("A question.")])
    assert [message["content"] for message in body["messages"]] == ["A document.", "A question."]
    with StrictServer("kimi", [[Think("Hm."), Say("Yes.")]]) as server:
        talk = mull.Conversation(SERVERS["kimi"], base_url=server.url)
        talk.add(mull.user("A document."))
        talk.ask("A question.")
    assert "A document." in str(server.requests[-1].json["messages"])


def test_a_history_in_the_form_of_another_provider_is_read():
    thought = {"type": "thinking", "thinking": "T", "signature": "s"}
    answer = {"role": "assistant", "content": [thought, {"type": "text", "text": "b"}]}
    body, _ = sent([{"role": "user", "content": "a"}, answer, {"role": "user", "content": "c"}])
    assert [message["content"] for message in body["messages"]] == ["a", "b", "c"]


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "f", "description": "d", "input_schema": SCHEMA},
        {"type": "custom", "name": "f", "description": "d", "input_schema": SCHEMA},
        {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA},
        {"functionDeclarations": [{"name": "f", "description": "d", "parameters": SCHEMA}]},
        {"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": SCHEMA}}},
    ],
)
def test_a_schema_in_the_form_of_any_provider_is_offered(tool):
    body, _ = sent("q", tools=[tool])
    offered = {"name": "f", "description": "d", "parameters": SCHEMA}
    assert body["tools"] == [{"type": "function", "function": offered}]


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "web_search_20250305", "name": "web_search"},
        {"googleSearch": {}},
        {"name": "f", "parameters": [1]},
    ],
)
def test_what_is_no_schema_is_refused_and_not_changed(tool):
    with pytest.raises(mull.LocalError, match="HostedTool"):
        sent("q", tools=[tool])


def test_a_tool_that_the_provider_runs_is_passed_on():
    search = {"type": "web_search_20250305", "name": "web_search"}
    with StrictServer("anthropic", [[Think("Hm."), Say("Yes.")]]) as server:
        given = {
            "base_url": server.url,
            "key": "k",
            "tools": [mull.HostedTool("anthropic", search)],
        }
        mull.complete("q", SERVERS["anthropic"], **given)
    (offered,) = server.requests[-1].json["tools"]
    assert search.items() <= offered.items()


def offered(kind, tool):
    """The body of a request with a tool, and the notes on it."""
    with StrictServer(kind, [[Think("Hm."), Say("Yes.")]]) as server:
        given = {"base_url": server.url, "key": "k", "tools": [tool]}
        result = mull.complete("q", SERVERS[kind], **given)
    return server.requests[-1].json, result.notes


@pytest.mark.parametrize(
    ("server", "path"),
    [
        ("kimi", ("function", "strict")),
        ("openai", ("strict",)),
        ("anthropic", ("strict",)),
        ("gemini", None),
    ],
)
def test_the_strictness_of_a_tool_is_sent_or_noted(server, path):
    whole = {**SCHEMA, "required": ["a"], "additionalProperties": False}
    tool = {"type": "function", "name": "f", "parameters": whole, "strict": True}
    body, notes = offered(server, tool)
    told = any("strict of f not sent" in note.text and note.warning for note in notes)
    assert told == (path is None)
    if path is not None:
        assert reduce(getitem, path, body["tools"][0]) is True
    loose, notes = offered(server, {**tool, "strict": False})
    assert "strict': True" not in str(loose)
    assert not any("strict" in note.text for note in notes)


def test_a_schema_that_the_endpoint_would_reject_as_strict_is_sent_without():
    tool = {"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}
    body, notes = offered("openai", tool)
    assert body["tools"][0]["strict"] is False
    assert any("strict of f not sent" in note.text for note in notes)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": None},
        {"role": "user"},
        {"role": "user", "content": ""},
        {"role": "user", "parts": []},
        mull.Message(role="user"),
    ],
)
def test_a_user_message_without_content_is_refused(message):
    with pytest.raises(mull.LocalError, match=r"messages\[1\] is a user message without content"):
        mull.complete([mull.user("q"), message], "openai/gpt-5", key="k")


def test_a_choice_of_no_tool_is_refused():
    with pytest.raises(mull.LocalError, match="there are now"):
        sent("q", tools=[NOW], tool_choice="nosuch")


SEARCH = mull.HostedTool("anthropic", {"type": "web_search_20250305", "name": "web_search"})
PAUSED_CONTENT = [
    {"type": "thinking", "thinking": "Long search.", "signature": "SigPause"},
    {"type": "redacted_thinking", "data": "Emw"},
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
]


def paused_answer(content=PAUSED_CONTENT):
    return Reply.json(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": content,
            "stop_reason": "pause_turn",
            "usage": {"input_tokens": 1, "output_tokens": 9},
        }
    )


def ended_answer():
    return Reply.json(
        {
            "id": "msg_2",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": "Found."}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 9},
        }
    )


FORGETFUL = [
    {},
    {"reasoning.includeInContext": False},
    {"reasoning.stripFromContext": "all"},
    {"reasoning.stripFromContext": "allButLast", "reasoning.includeInContext": False},
]


@pytest.mark.parametrize("settings", FORGETFUL)
@pytest.mark.parametrize(
    "model", ["claude-sonnet-4-5", "claude-opus-4-8", "claude-opus-5-5", "claude-haiku-4-5"]
)
def test_an_answer_that_paused_goes_back_whole(model, settings):
    with ScriptedServer([paused_answer(), ended_answer(), ended_answer()]) as server:
        given = {
            "model": f"anthropic/{model}",
            "base_url": server.url,
            "key": "k",
            "tools": [SEARCH],
            "settings": settings,
        }
        history = [mull.user("Search.")]
        history.append(mull.complete(history, **given).message)
        second = mull.complete(history, **given)
        asked = [*history, mull.user("Leave it. What is 2 + 2?")]
        mull.complete(asked, **given)
    assert second.text == "Found."
    for request in server.requests[1:]:
        assert request.json["messages"][1] == {"role": "assistant", "content": PAUSED_CONTENT}
        assert request.json["thinking"]["type"] != "disabled"


@pytest.mark.parametrize("extra", [{}, {"stop_reason": "pause_turn"}])
@pytest.mark.parametrize("settings", FORGETFUL)
def test_a_paused_answer_of_another_library_goes_back_whole(extra, settings):
    history = [
        {"role": "user", "content": "Search."},
        {"role": "assistant", "content": PAUSED_CONTENT, **extra},
    ]
    with ScriptedServer([ended_answer()]) as server:
        mull.complete(
            history,
            "anthropic/claude-opus-4-8",
            base_url=server.url,
            key="k",
            tools=[SEARCH],
            settings=settings,
        )
    assert server.requests[0].json["messages"][1]["content"] == PAUSED_CONTENT


def test_an_answer_that_paused_within_its_thinking_goes_back():
    content = PAUSED_CONTENT[:1]
    with ScriptedServer([paused_answer(content), ended_answer()]) as server:
        given = {"model": "anthropic/claude-opus-4-8", "base_url": server.url, "key": "k"}
        history = [mull.user("Search.")]
        history.append(mull.complete(history, **given).message)
        mull.complete(history, **given)
    assert server.requests[1].json["messages"][1]["content"] == content


COMPACTED = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}
SIGNED = {"type": "compaction", "content": None, "signature": "S", "encrypted_content": "E"}
SUMMARISED = {"type": "compaction", "content": "We spoke of milk."}


def responses_answer(*items, reasoning=64):
    usage = {"output_tokens_details": {"reasoning_tokens": reasoning}}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    said["content"] = [{"type": "output_text", "text": "Milk.", "annotations": []}]
    output = [*items, said]
    return {"id": "resp_1", "status": "completed", "model": "m", "output": output, "usage": usage}


def streamed(response):
    for at, item in enumerate(response["output"]):
        yield {"type": "response.output_item.added", "output_index": at, "item": item}
        yield {"type": "response.output_item.done", "output_index": at, "item": item}
    yield {"type": "response.completed", "response": {**response, "output": []}}


@pytest.mark.parametrize(
    "item",
    [
        COMPACTED,
        {**COMPACTED, "type": "context_compaction"},
        {"type": "compaction_summary", "encrypted_content": "gAAA"},
        {"type": "something_new", "id": "sn_1", "encrypted_content": "gAAA"},
    ],
)
@pytest.mark.parametrize("model", ["openai/gpt-5", "openai/gpt-5.2", "xai/grok-4.5"])
def test_items_that_stand_for_a_conversation_go_back_also_as_the_first(model, item):
    asked = {"type": "message", "role": "user", "content": "And?"}
    with ScriptedServer([Reply.json(responses_answer())]) as server:
        options = {"base_url": server.url, "key": "k"}
        mull.complete([item, asked], model, dialect="openai-responses", **options)
    assert server.requests[0].json["input"][0] == item
    assert server.requests[0].json["input"][1]["role"] == "user"


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("settings", [{}, {"reasoning.stripFromContext": "all"}])
def test_a_compaction_of_an_answer_goes_back_to_its_account_and_nobody_else(streams, settings):
    whole = responses_answer(COMPACTED)
    first = Reply.events(*streamed(whole)) if streams else Reply.json(whole)
    with ScriptedServer([first, *[Reply.json(responses_answer())] * 3]) as server:
        given = {"base_url": server.url, "key": "k", "settings": settings}
        history = [mull.user("Hi.")]
        history.append(mull.complete(history, "openai/gpt-5", **given).message)
        history.append(mull.user("And?"))
        for model in ("openai/gpt-5", "openai/gpt-5.2"):
            mull.complete(history, model, **given)
            assert COMPACTED in server.requests[-1].json["input"], model
        other = mull.complete(history, "xai/grok-4.5", dialect="openai-responses", **given)
    assert COMPACTED not in server.requests[-1].json["input"]
    assert any("in place of earlier messages" in note.text for note in other.notes if note.warning)


@pytest.mark.parametrize("block", [SIGNED, SUMMARISED])
@pytest.mark.parametrize("model", ["claude-sonnet-4-6", "claude-opus-5"])
def test_claudes_compaction_goes_back_also_as_the_first_message(model, block):
    history = [{"role": "assistant", "content": [block]}, {"role": "user", "content": "And?"}]
    with ScriptedServer([ended_answer()]) as server:
        mull.complete(history, f"anthropic/{model}", base_url=server.url, key="k")
    (request,) = server.requests
    assert request.json["messages"][0] == {"role": "assistant", "content": [block]}
    assert request.headers["anthropic-beta"].startswith("compact-2026-")


@pytest.mark.parametrize(
    "history",
    [
        [COMPACTED, {"type": "message", "role": "user", "content": "And?"}],
        [{"role": "assistant", "content": [SIGNED]}, {"role": "user", "content": "And?"}],
    ],
)
@pytest.mark.parametrize(
    "model", ["google/gemini-3-pro-preview", "moonshotai/kimi-k2-thinking", "amazon-bedrock/x"]
)
def test_a_conversation_whose_beginning_nobody_there_can_read_is_not_sent(model, history):
    with (
        ScriptedServer([]) as server,
        pytest.raises(mull.LocalError, match="everything before it would be missing"),
    ):
        mull.complete(history, model, base_url=server.url, key="k")
    assert not server.requests
