"""Compaction: a conversation becomes one item, and the item the summary that it holds."""

from __future__ import annotations

import json

import pytest

from gateway.responding import ASKS, LOOKS, results_of, talk, text_of
from gateway.test_square import EACH_DIALECT, UPSTREAMS
from mull.dialects.openai_responses.state import compacted, recent, user_items
from mull.gateway.compaction import open_summary
from mull.gateway.envelope import Envelopes, Sealed
from mull.gateway.tokens import ClientToken, hashed
from mull.neutral.blocks import TextBlock
from mull.neutral.messages import Origin
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
    told = compacted([system, *items, item], lambda _: "The summary.", 1_500)
    assert told[:2] == [system, items[-1]]
    assert told[2]["content"][0]["text"].endswith("The summary.")
    assert len(compacted([system, *items, item], lambda _: "The summary.")) == 7


def test_the_turn_that_waits_for_an_answer_is_not_summarised():
    user, answer = {"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}
    call = {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}
    assert recent([user, answer, user, call]) == ([user, answer], [user, call])
    assert recent([user, call]) == ([user, call], [])
    assert recent([]) == ([], [])
