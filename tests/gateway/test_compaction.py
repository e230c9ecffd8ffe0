"""Compaction: a conversation becomes one item, and the item the summary that it holds."""

from __future__ import annotations

import asyncio
import json

import pytest

from gateway.responding import ASKS, LOOKS, Caller, results_of, talk, text_of
from gateway.test_square import EACH_DIALECT, UPSTREAMS
from mull.agent.engine import Engine
from mull.dialects.openai_responses.state import Summary, compacted, recent, user_items
from mull.gateway.app import GatewayApp
from mull.gateway.compaction import open_summary
from mull.gateway.door import Door
from mull.gateway.envelope import Envelopes, Sealed
from mull.gateway.memory import InProcess
from mull.gateway.routes import Routes
from mull.gateway.service import Gateway
from mull.gateway.tokens import ClientToken, hashed
from mull.neutral.blocks import TextBlock
from mull.neutral.messages import Origin
from mull.store.serve import ServeConfig, ServedModel
from mull.testing import Reply, Say, ScriptedServer, StrictServer, Think

SUMMARY = [Think("What mattered?"), Say("The shelf holds a bottle of milk.")]
TRIGGER = {"type": "compaction_trigger"}


def said_to(server, at=-1):
    """What a server was asked, as one text."""
    return json.dumps(server.requests[at].json)


def looked(first):
    """A conversation about a shelf, as its client replays it."""
    return [{"role": "user", "content": "Look."}, *first["output"], *results_of(first)]


@pytest.mark.parametrize("upstream", EACH_DIALECT)
def test_a_trigger_gives_one_item_that_stands_for_the_conversation(upstream):
    async def conversation(client):
        first = await client.create(input="Look.", store=False, **ASKS)
        items = [*looked(first), TRIGGER]
        events = await client.stream(input=items, store=False, **ASKS)
        (item,) = events[-1]["response"]["output"]
        kept = [{"role": "user", "content": "Look."}, item, {"role": "user", "content": "And?"}]
        return events, item, await client.create(input=kept, store=False, **ASKS)

    with StrictServer(upstream, [LOOKS[0], LOOKS[1]], aside=SUMMARY) as server:
        events, item, last = talk(server.url, conversation, model=UPSTREAMS[upstream])
    assert not server.refusals
    assert [e["type"] for e in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.output_item.done",
        "response.completed",
    ]
    assert item == events[3]["item"]
    assert item.keys() == {"id", "type", "encrypted_content"}
    assert item["type"] == "compaction"
    assert events[-1]["response"]["usage"]["output_tokens"] > 0
    assert "a bottle" in said_to(server, 1)
    assert "Look first." in said_to(server, 1)
    assert text_of(last) == "Milk."
    assert "The shelf holds a bottle of milk." in said_to(server)
    assert item["encrypted_content"] not in said_to(server)
    assert "I look." not in said_to(server)


def test_the_compact_endpoint_lists_the_users_words_and_one_item():
    async def conversation(client):
        first = await client.create(input="Look.", **ASKS)
        body = {"model": "m", "previous_response_id": first["id"], "input": results_of(first)}
        made = await client("POST", "/v1/responses/compact", body)
        last = await client.create(input=[*made["output"], {"role": "user", "content": "And?"}])
        await client("POST", "/v1/responses/compact", {"model": "m", "input": []}, status=400)
        return made, last

    with StrictServer("kimi", [LOOKS[0], SUMMARY, LOOKS[1]]) as server:
        made, last = talk(server.url, conversation)
    assert made["object"] == "response.compaction"
    assert [item["type"] for item in made["output"]] == ["message", "compaction"]
    assert made["output"][0]["content"] == [{"type": "input_text", "text": "Look."}]
    assert made["usage"]["total_tokens"] > 0
    assert text_of(last) == "Milk."
    contents = [m["content"] for m in server.requests[-1].json["messages"]]
    assert contents[0] == "Look."
    assert contents[1].endswith("The shelf holds a bottle of milk.")
    assert contents[2] == "And?"


@pytest.mark.parametrize("streams", [True, False])
def test_over_its_threshold_a_conversation_is_compacted_before_the_answer(streams):
    wants = {"context_management": [{"type": "compaction", "compact_threshold": 1000}]}

    async def conversation(client):
        first = await client.create(input="word " * 2000, **wants)
        body = {"input": "And?", "previous_response_id": first["id"], **wants}
        if streams:
            second = (await client.stream(**body))[-1]["response"]
        else:
            second = await client.create(**body)
        fetched = await client("GET", f"/v1/responses/{second['id']}")
        assert fetched == second
        body = {"input": "So?", "previous_response_id": second["id"]}
        return first, second, await client.create(**body)

    script = [SUMMARY, [Say("Old.")], SUMMARY, LOOKS[1], [Say("So.")]]
    with StrictServer("kimi", script) as server:
        first, second, _ = talk(server.url, conversation)
    assert first["output"][0]["type"] == "compaction"
    assert second["output"][0]["type"] == "compaction"
    assert text_of(second) == "Milk."
    assert "Old." in said_to(server, 2)
    answered = server.requests[3].json["messages"]
    assert [m["role"] for m in answered] == ["user", "user", "user"]
    assert answered[1]["content"].endswith("The shelf holds a bottle of milk.")
    assert answered[2]["content"] == "And?"
    assert "Old." not in said_to(server)


def test_without_a_summary_the_trigger_fails_and_a_threshold_is_passed_over():
    chunk = {"choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"}]}
    wants = {"context_management": [{"type": "compaction", "compact_threshold": 1}]}

    async def conversation(client):
        failed = await client.create(502, input=[{"role": "user", "content": "q"}, TRIGGER])
        return failed, await client.create(input="q", **wants)

    replies = [Reply.json({"error": {"message": "no"}}, 400)] * 2 + [Reply.events(chunk)]
    with ScriptedServer(replies) as server:
        failed, answered = talk(server.url, conversation)
    assert "not compacted" in failed["error"]["message"]
    assert text_of(answered) == "Hi."
    assert [item["type"] for item in answered["output"]] == ["message"]


def test_a_compaction_is_observed_as_a_request_of_its_own():
    class Recorder:
        def __init__(self):
            self.told = []

        def began(self, job):
            self.told.append(("began", job))

        def emitted(self, job, events):
            pass

        def ended(self, job, outcome):
            self.told.append((outcome.ending, job))
            assert outcome.usage.output > 0

    recorder = Recorder()
    wants = {"context_management": [{"type": "compaction", "compact_threshold": 1}]}

    async def conversation(client):
        client.app._gateway.observers = (recorder,)
        await client.create(input=[{"role": "user", "content": "q"}, TRIGGER])
        await client.create(input="q", **wants)

    with StrictServer("kimi", [SUMMARY[1:], SUMMARY[1:], [Say("a")]]) as server:
        talk(server.url, conversation)
    assert [what for what, _ in recorder.told] == ["began", "complete"] * 3
    assert len({id(job) for _, job in recorder.told}) == 3


def test_a_summary_made_for_another_client_is_refused():
    tokens = (ClientToken("one", hashed("1")), ClientToken("two", hashed("2")))

    async def conversation(client):
        mine, theirs = {"authorization": "Bearer 1"}, {"authorization": "Bearer 2"}
        body = {"model": "m", "input": "Look."}
        made = await client("POST", "/v1/responses/compact", body, **mine)
        body["input"] = [made["output"][-1], {"role": "user", "content": "And?"}]
        return await client("POST", "/v1/responses", body, status=400, **theirs)

    with StrictServer("kimi", [SUMMARY[1:]]) as server:
        refused = talk(server.url, conversation, tokens=tokens)
    assert "compaction" in refused["error"]["message"]
    assert len(server.requests) == 1


def test_only_the_last_compaction_counts_and_what_was_given_before_it_stays():
    envelopes = Envelopes(b"k" * 32)
    origin = Origin(dialect="openai-chat", provider="p", model="m")

    def item(text):
        sealed = envelopes.seal("s", Sealed(origin, {0: TextBlock(text)}))
        return {"type": "compaction", "encrypted_content": sealed}

    user, answer = {"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}
    system = {"type": "message", "role": "developer", "content": "d"}
    call = {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}
    foreign = {"type": "compaction", "encrypted_content": "gAAA"}
    read = lambda text: open_summary(envelopes, "s", text)  # noqa: E731
    items = [system, user, item("one"), answer, user, call, item("two"), answer, foreign]
    told = compacted(items, read)
    assert told[:3] == [system, user, user]
    assert told[3]["content"][0]["text"].endswith("two")
    assert told[4:] == [answer, foreign]
    assert compacted([user, foreign, answer], read) == [user, foreign, answer]
    assert compacted([], read) == []


def test_what_is_kept_beside_a_compaction_is_bounded():
    items = [{"role": "user", "content": f"{n} " + "x" * 900} for n in range(5)]
    kept = user_items(items, "resp_1", 2_500)
    assert [item["content"][0]["text"][0] for item in kept] == ["3", "4"]
    assert [item["content"][0]["text"][0] for item in user_items(items, "resp_1", 9)] == ["4"]
    system, item = {"role": "system", "content": "s"}, {"type": "compaction"}
    item["encrypted_content"] = "sealed"
    told = compacted([system, *items, item], lambda _: Summary("The summary."), 1_500)
    assert told[:2] == [system, items[-1]]
    assert told[2]["content"][0]["text"].endswith("The summary.")
    assert len(compacted([system, *items, item], lambda _: Summary("The summary."))) == 7


def test_the_turn_that_waits_for_an_answer_is_not_summarised():
    user, answer = {"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}
    call = {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}
    assert recent([user, answer, user, call]) == ([user, answer], [user, call])
    assert recent([user, call]) == ([user, call], [])
    assert recent([]) == ([], [])


OPENAIS = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}
CLAUDES = {"type": "compaction", "content": None, "signature": "S", "encrypted_content": "E"}


def openai_answer(*items):
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    said["content"] = [{"type": "output_text", "text": "Milk.", "annotations": []}]
    usage = {"output_tokens_details": {"reasoning_tokens": 64}}
    output = [*items, said]
    return {"id": "resp_1", "status": "completed", "model": "m", "output": output, "usage": usage}


@pytest.mark.parametrize("model", ["openai/gpt-5", "openai/gpt-5.2"])
def test_an_item_of_openais_arrives_there_as_it_is(model):
    asked = {"type": "message", "role": "user", "content": "And?"}

    async def conversation(client):
        first = await client.create(input=[OPENAIS, asked], store=False)
        item, said = first["output"]
        again = await client.create(input=[item, said, asked], store=False)
        return item, again

    replies = [Reply.json(openai_answer(OPENAIS)), Reply.json(openai_answer())]
    with ScriptedServer(replies) as server:
        item, _ = talk(server.url, conversation, model=model)
    assert item == OPENAIS
    for request in server.requests:
        assert request.json["input"][0] == OPENAIS
        assert request.json["input"][-1]["role"] == "user"


REASONED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E1"}
CALLED = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "look", "arguments": "{}"}


@pytest.mark.parametrize("keeps", [True, False], ids=["replays", "drops"])
@pytest.mark.parametrize("calls", [False, True], ids=["says", "calls"])
def test_an_answer_right_after_an_item_does_not_take_its_place(calls, keeps):
    asked = {"type": "message", "role": "user", "content": "And?"}

    async def conversation(client):
        first = await client.create(input=[asked, OPENAIS], store=False, tools=ASKS["tools"])
        output = [item for item in first["output"] if keeps or item["type"] != "reasoning"]
        more = results_of(first) or [asked]
        history = [asked, OPENAIS, *output, *more]
        await client.create(input=history, store=False, tools=ASKS["tools"])

    answered = openai_answer(REASONED)
    if calls:
        answered["output"] = [REASONED, CALLED]
    with ScriptedServer([Reply.json(answered), Reply.json(openai_answer())]) as server:
        talk(server.url, conversation, model="openai/gpt-5.2")
    _, held, reasoned, *_ = server.requests[1].json["input"]
    assert (held, reasoned) == (OPENAIS, REASONED)


def test_an_answer_right_after_a_block_of_claudes_does_not_take_its_place():
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "T"}
    said = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": {}}
    ended = {"content": [thought, {"type": "text", "text": "Milk."}], "stop_reason": "end_turn"}
    asked = {"role": "user", "content": "And?"}

    async def conversation(client):
        history = [asked, {"role": "assistant", "content": [CLAUDES]}]
        body = {"model": "m", "max_tokens": 9000}
        first = await client("POST", "/v1/messages", {**body, "messages": history})
        history[1]["content"] = [CLAUDES, *first["content"]]
        await client("POST", "/v1/messages", {**body, "messages": [*history, asked]})

    with ScriptedServer([Reply.json({**said, **ended})] * 2) as server:
        talk(server.url, conversation, model="anthropic/claude-opus-5")
    assert server.requests[1].json["messages"][1]["content"][:2] == [CLAUDES, thought]


@pytest.mark.parametrize("kept", [[OPENAIS], [OPENAIS, "message"]], ids=["alone", "with the rest"])
def test_what_a_client_gave_up_for_an_item_does_not_come_back(kept):
    asked = {"type": "message", "role": "user", "content": "And?"}

    async def conversation(client):
        first = await client.create(input=[asked], store=False)
        output = [item for item in first["output"] if item == OPENAIS or item["type"] in kept]
        await client.create(input=[*output, asked], store=False)

    replies = [Reply.json(openai_answer(REASONED, OPENAIS)), Reply.json(openai_answer())]
    with ScriptedServer(replies) as server:
        talk(server.url, conversation, model="openai/gpt-5.2")
    sent = server.requests[1].json["input"]
    assert [item["type"] for item in sent] == ["compaction", *["message"] * len(kept)]
    assert sent[0] == OPENAIS


@pytest.mark.parametrize("triggers", [True, False])
def test_what_an_item_of_openais_stands_for_is_there_after_another_compaction(triggers):
    asked = {"type": "message", "role": "user", "content": "And?"}

    async def conversation(client):
        history = [OPENAIS, asked]
        for _ in range(2):
            if triggers:
                made = await client.create(input=[*history, TRIGGER], store=False)
            else:
                body = {"model": "m", "input": history}
                made = await client("POST", "/v1/responses/compact", body)
            history = [*made["output"], asked]
        await client.create(input=history, store=False)

    with ScriptedServer([Reply.json(openai_answer())] * 3) as server:
        talk(server.url, conversation, model="openai/gpt-5.2")
    items = server.requests[-1].json["input"]
    assert items[0] == OPENAIS
    assert [item["type"] for item in items].count("compaction") == 1
    assert "Milk." in json.dumps(items)


def test_a_block_of_claudes_is_no_item_of_a_compaction():
    said = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": {}}
    said |= {"content": [CLAUDES, {"type": "text", "text": "Milk."}], "stop_reason": "end_turn"}
    asked = {"type": "message", "role": "user", "content": "And?"}

    async def conversation(client):
        first = await client.create(input=[asked], store=False)
        history = [asked, *first["output"], asked, TRIGGER]
        made = await client.create(input=history, store=False)
        await client.create(input=[*made["output"], asked], store=False)

    with ScriptedServer([Reply.json(said)] * 3) as server:
        talk(server.url, conversation, model="anthropic/claude-opus-5")
    assert "Milk." in said_to(server)


@pytest.mark.parametrize("upstream", ["kimi", "anthropic", "gemini"])
def test_an_item_of_openais_is_refused_where_nobody_can_read_it(upstream):
    asked = {"type": "message", "role": "user", "content": "And?"}

    async def conversation(client):
        return await client.create(400, input=[OPENAIS, asked], store=False)

    with ScriptedServer([]) as server:
        refused = talk(server.url, conversation, model=UPSTREAMS[upstream])
    assert "everything before it would be missing" in refused["error"]["message"]
    assert not server.requests


def test_a_block_of_claudes_arrives_there_as_it_is():
    said = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
    said |= {"content": [{"type": "text", "text": "Milk."}], "stop_reason": "end_turn", "usage": {}}
    messages = [{"role": "assistant", "content": [CLAUDES]}, {"role": "user", "content": "And?"}]

    async def conversation(client):
        body = {"model": "m", "max_tokens": 9, "messages": messages}
        return await client("POST", "/v1/messages", body)

    with ScriptedServer([Reply.json(said)]) as server:
        talk(server.url, conversation, model="anthropic/claude-opus-5")
    assert server.requests[0].json["messages"][0] == messages[0]
    assert server.requests[0].headers["anthropic-beta"] == "compact-2026-09-04"


def test_an_item_goes_to_the_account_that_made_it_and_to_no_other():
    asked = {"type": "message", "role": "user", "content": "And?"}

    async def conversation(one, other):
        engine = Engine(isolated=True)
        config = ServeConfig(
            models={
                "m": ServedModel("openai/gpt-5", base_url=one),
                "n": ServedModel("openai/gpt-5", base_url=other),
            }
        )
        gateway = Gateway(engine, Routes(engine, config), InProcess(), Envelopes(b"k" * 32))
        client = Caller(GatewayApp(gateway, Door((), ())))
        try:
            first = await client.create(input=[asked], store=False)
            item = first["output"][0]
            await client.create(input=[item, asked], store=False)
            await client.create(400, model="n", input=[item, asked], store=False)
        finally:
            await gateway.close()

    replies = [Reply.json(openai_answer(OPENAIS)), Reply.json(openai_answer())]
    with ScriptedServer(replies) as one, ScriptedServer([]) as other:
        asyncio.run(conversation(one.url, other.url))
    assert one.requests[1].json["input"][0] == OPENAIS
    assert not other.requests
