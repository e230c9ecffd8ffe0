"""The Responses API with state: continued, stored, listed and deleted responses."""

from __future__ import annotations

import asyncio
import json

import pytest

from gateway.responding import ASKS, LOOKS, Caller, results_of, talk, text_of
from gateway.test_app import ask
from gateway.test_square import EACH_DIALECT, UPSTREAMS
from mull.agent.engine import Engine
from mull.gateway import response_store
from mull.gateway.app import GatewayApp
from mull.gateway.envelope import Envelopes
from mull.gateway.memory import InProcess
from mull.gateway.routes import Routes
from mull.gateway.service import Gateway
from mull.gateway.sqlite import SqliteMemory
from mull.gateway.tokens import ClientToken, hashed
from mull.store.serve import ServeConfig, ServedModel
from mull.testing import CUT, Reply, Say, ScriptedServer, StrictServer, Think

NOT_FOUND = {
    "message": "Previous response with id 'resp_0' not found.",
    "type": "invalid_request_error",
    "param": "previous_response_id",
    "code": "previous_response_not_found",
}


def served(memory, **urls):
    """An application that serves one model of each upstream, under its name."""
    engine = Engine(isolated=True)
    models = {name: ServedModel(UPSTREAMS[name], base_url=url) for name, url in urls.items()}
    routes = Routes(engine, ServeConfig(models=models))
    return GatewayApp(Gateway(engine, routes, memory, Envelopes(b"k" * 32)))


@pytest.mark.parametrize("upstream", EACH_DIALECT)
def test_a_conversation_goes_on_from_its_last_response_alone(upstream):
    async def conversation(client):
        first = await client.create(input="What is on the shelf?", **ASKS)
        wants = {"previous_response_id": first["id"], **ASKS}
        second = await client.create(input=results_of(first), **wants)
        wants["previous_response_id"] = second["id"]
        return first, second, await client.create(input="And now?", **wants)

    with StrictServer(upstream, [*LOOKS, LOOKS[1]]) as server:
        first, second, last = talk(server.url, conversation, model=UPSTREAMS[upstream])
    assert not server.refusals
    assert [text_of(one) for one in (first, second, last)] == ["I look.", "Milk.", "Milk."]
    assert second["previous_response_id"] == first["id"]
    assert server.returned[-1]
    sent = json.dumps(server.requests[-1].json)
    assert sent.count("What is on the shelf?") == sent.count("And now?") == 1


@pytest.mark.parametrize("upstream", EACH_DIALECT)
def test_a_response_is_the_same_in_its_stream_as_a_document_and_when_it_is_fetched(upstream):
    async def conversation(client):
        events = await client.stream(input="q", **ASKS)
        streamed = events[-1]["response"]
        whole = await client.create(input="q", **ASKS)
        fetched = [await client("GET", f"/v1/responses/{one['id']}") for one in (streamed, whole)]
        return events, streamed, whole, fetched

    with StrictServer(upstream, [LOOKS[0]] * 2) as server:
        events, streamed, whole, fetched = talk(server.url, conversation, model=UPSTREAMS[upstream])
    assert fetched == [streamed, whole]
    assert any(item.get("encrypted_content") or item["summary"] for item in whole["output"][:1])
    assert [item["type"] for item in streamed["output"]] == [
        item["type"] for item in whole["output"]
    ]
    assert [one["sequence_number"] for one in events] == list(range(len(events)))
    added = {e["item"]["id"] for e in events if e["type"] == "response.output_item.added"}
    done = {e["item"]["id"]: e["item"] for e in events if e["type"].endswith("item.done")}
    assert added == set(done)
    assert [*done.values()] == streamed["output"]
    assert [e["type"] for e in events].count("response.completed") == 1
    assert [e["response"]["usage"] for e in events[:2]] == [None, None]
    assert streamed["usage"]["total_tokens"] > 0


def test_a_response_repeats_its_request_as_the_api_does():
    said = {
        "instructions": "Be brief.",
        "metadata": {"a": "b"},
        "parallel_tool_calls": False,
        "tool_choice": "required",
        "max_output_tokens": 900,
        "reasoning": {"effort": "low"},
        "text": {"verbosity": "low"},
        "tools": ASKS["tools"],
    }

    async def conversation(client):
        return await client.create(input="q", **said), await client.create(input="q", store=False)

    with StrictServer("kimi", [LOOKS[1]] * 2) as server:
        full, bare = talk(server.url, conversation)
    assert {name: full[name] for name in said} == {
        **said,
        "reasoning": {"effort": "low", "summary": None},
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "tools": [{**ASKS["tools"][0], "description": None, "strict": False}],
    }
    assert bare["store"] is False
    assert (bare["tool_choice"], bare["tools"], bare["truncation"]) == ("auto", [], "disabled")
    assert bare["metadata"] == {}
    assert bare["previous_response_id"] is None


def test_what_cannot_be_included_is_said():
    async def conversation(client):
        notes = []
        for name in ("reasoning.encrypted_content", "something.new"):
            body = json.dumps({"model": "m", "input": "q", "include": [name]}).encode()
            answer = await ask(client.app, "POST", "/v1/responses", body)
            notes.append(answer.headers.get("x-mull-notes"))
        return notes

    with StrictServer("kimi", [[Say("a")]] * 2) as server:
        silent, told = talk(server.url, conversation)
    assert silent is None
    assert "include.something.new" in told


def test_instructions_and_tools_are_not_inherited():
    async def conversation(client):
        first = await client.create(input="q", instructions="Say milk.", tools=ASKS["tools"])
        await client.create(input="q", previous_response_id=first["id"], instructions="Say tea.")

    with StrictServer("kimi", [LOOKS[1]] * 2) as server:
        talk(server.url, conversation)
    sent = server.requests[1].json
    assert "tools" not in sent
    assert [m["content"] for m in sent["messages"] if m["role"] == "system"] == ["Say tea."]


def test_it_goes_on_after_a_restart_and_on_another_model(tmp_path):
    async def turn(memory, name, urls, **body):
        app = served(memory, **urls)
        try:
            return await Caller(app)("POST", "/v1/responses", {"model": name, **body, **ASKS})
        finally:
            await app._gateway.close()

    with StrictServer("kimi", LOOKS) as kimi, StrictServer("anthropic", [LOOKS[1]]) as claude:
        urls = {"kimi": kimi.url, "anthropic": claude.url}
        store = lambda: SqliteMemory(tmp_path / "serve.db")  # noqa: E731
        first = asyncio.run(turn(store(), "kimi", urls, input="Look."))
        more = {"input": results_of(first), "previous_response_id": first["id"]}
        second = asyncio.run(turn(store(), "kimi", urls, **more))
        more = {"input": "Again.", "previous_response_id": second["id"]}
        third = asyncio.run(turn(store(), "anthropic", urls, **more))
    assert not kimi.refusals
    assert not claude.refusals
    assert text_of(third) == "Milk."
    assert claude.requests[0].json["messages"][0]["content"][0]["text"] == "Look."


def test_what_is_not_stored_is_not_found():
    async def conversation(client):
        unkept = await client.create(input="q", store=False)
        for path in ("", "/input_items"):
            await client("GET", f"/v1/responses/{unkept['id']}{path}", status=404)
        await client("POST", f"/v1/responses/{unkept['id']}/cancel", status=404)
        await client.create(400, input="q", previous_response_id=unkept["id"])
        return await client.create(400, input="q", previous_response_id="resp_0")

    with StrictServer("kimi", [LOOKS[1]]) as server:
        refused = talk(server.url, conversation)
    assert refused == {"error": NOT_FOUND}


def test_a_response_is_deleted_with_its_answer():
    memory = InProcess()

    async def conversation():
        app = served(memory, kimi=server.url)
        client = Caller(app)
        made = await client("POST", "/v1/responses", {"model": "kimi", "input": "q"})
        path = f"/v1/responses/{made['id']}"
        gone = await client("DELETE", path)
        assert gone == {"id": made["id"], "object": "response", "deleted": True}
        await client("GET", path, status=404)
        await client("DELETE", path, status=404)
        await app._gateway.close()

    with StrictServer("kimi", [LOOKS[1]]) as server:
        asyncio.run(conversation())
    assert not memory._records


def test_responses_that_say_the_same_have_thoughts_of_their_own():
    async def conversation(client):
        made = [await client.create(input="q", reasoning={"effort": "high"}) for _ in range(2)]
        paths = [f"/v1/responses/{one['id']}" for one in made]
        assert [await client("GET", path) for path in paths] == made
        await client("DELETE", paths[0])
        assert await client("GET", paths[1]) == made[1]
        return made

    script = [[Think("One."), Say("a")], [Think("Two."), Say("a")]]
    with StrictServer("kimi", script) as server:
        one, two = talk(server.url, conversation)
    thoughts = [item["output"][0]["summary"][0]["text"] for item in (one, two)]
    assert thoughts == ["One.", "Two."]


def test_what_is_left_of_a_conversation_can_be_listed_but_not_continued():
    async def conversation(client):
        first = await client.create(input="one")
        second = await client.create(input="two", previous_response_id=first["id"])
        await client("DELETE", f"/v1/responses/{first['id']}")
        await client.create(400, input="three", previous_response_id=second["id"])
        return await client("GET", f"/v1/responses/{second['id']}/input_items")

    with StrictServer("kimi", [LOOKS[1]] * 2) as server:
        listed = talk(server.url, conversation)
    assert [item["content"][0]["text"] for item in listed["data"]] == ["two"]


def test_a_conversation_that_has_grown_too_large_is_refused(monkeypatch):
    async def conversation(client):
        first = await client.create(input="one " * 900, generate=False)
        body = {"input": "two", "generate": False}
        second = await client.create(previous_response_id=first["id"], **body)
        monkeypatch.setattr(response_store, "MOST_HELD", 4_500)
        await client.create(previous_response_id=first["id"], **body)
        await client.create(413, previous_response_id=second["id"], **body)

    talk("http://127.0.0.1:9", conversation)


def test_another_token_finds_nothing():
    tokens = (ClientToken("one", hashed("1")), ClientToken("two", hashed("2")))

    async def conversation(client):
        mine, theirs = {"authorization": "Bearer 1"}, {"authorization": "Bearer 2"}
        body = {"model": "m", "input": "q"}
        made = await client("POST", "/v1/responses", body, **mine)
        path = f"/v1/responses/{made['id']}"
        assert (await client("GET", path, **mine))["id"] == made["id"]
        await client("GET", path, status=404, **theirs)
        await client("DELETE", path, status=404, **theirs)
        body["previous_response_id"] = made["id"]
        await client("POST", "/v1/responses", body, status=400, **theirs)

    with StrictServer("kimi", [LOOKS[1]]) as server:
        talk(server.url, conversation, tokens=tokens)


def test_input_items_are_listed_in_pages():
    async def conversation(client):
        first = await client.create(input="q", **ASKS)
        body = {"previous_response_id": first["id"], **ASKS}
        last = await client.create(input=results_of(first), **body)
        path = f"/v1/responses/{last['id']}/input_items"
        all_of_them = await client("GET", f"{path}?order=asc&limit=100")
        newest = await client("GET", f"{path}?limit=2")
        rest = await client("GET", f"{path}?limit=100&after={newest['last_id']}")
        for wrong in (
            "limit=0",
            "limit=101",
            f"limit=0001{'0' * 5_000}",
            "limit=x",
            "order=up",
            "after=nothing",
        ):
            await client("GET", f"{path}?{wrong}", status=400)
        return first, all_of_them, newest, rest

    with StrictServer("kimi", LOOKS) as server:
        first, listed, newest, rest = talk(server.url, conversation)
    kinds = [item["type"] for item in listed["data"]]
    assert kinds == ["message", *[i["type"] for i in first["output"]], "function_call_output"]
    assert listed["data"][1:-1] == first["output"]
    assert listed["data"][0]["content"] == [{"type": "input_text", "text": "q"}]
    assert len({item["id"] for item in listed["data"]}) == len(kinds)
    assert listed["has_more"] is rest["has_more"] is False
    assert newest["has_more"] is True
    assert [*newest["data"], *rest["data"]] == listed["data"][::-1]
    assert (newest["first_id"], newest["last_id"]) == tuple(i["id"] for i in newest["data"])


def test_items_of_earlier_responses_can_be_referred_to():
    async def conversation(client):
        first = await client.create(input="q", **ASKS)
        named = [{"type": "item_reference", "id": item["id"]} for item in first["output"]]
        said = [{"role": "user", "content": "q"}, *named, *results_of(first)]
        last = await client.create(input=said, **ASKS)
        lost = {"type": "item_reference", "id": "rs_lost"}
        await client.create(404, input=[lost, *said], **ASKS)
        return last

    with StrictServer("anthropic", LOOKS) as server:
        last = talk(server.url, conversation, model=UPSTREAMS["anthropic"])
    assert text_of(last) == "Milk."
    assert not server.refusals
    assert server.returned[-1]


def test_items_that_are_referred_to_count_towards_the_size_of_the_conversation(monkeypatch):
    monkeypatch.setattr(response_store, "MOST_HELD", 2_000)
    asked = {"role": "user", "content": "q"}

    async def conversation(client):
        first = await client.create(input="q")
        named = {"type": "item_reference", "id": first["output"][-1]["id"]}
        await client.create(input=[named, named, asked])
        return await client.create(413, input=[*[named] * 50, asked])

    with StrictServer("kimi", [[Say("Milk.")]] * 2) as server:
        refused = talk(server.url, conversation)
        assert len(server.requests) == 2
    assert "exceeds" in refused["error"]["message"]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"previous_response_id": 5}, "previous_response_id"),
        ({"store": "yes"}, "store"),
        ({"context_management": [5]}, "context_management"),
    ],
    ids=str,
)
def test_what_is_not_done_here_is_refused_by_name(body, word):
    async def conversation(client):
        return await client.create(400, input="q", **body)

    assert word in talk("http://127.0.0.1:9", conversation)["error"]["message"]


def test_only_background_responses_could_be_cancelled():
    async def conversation(client):
        made = await client.create(input="q")
        return await client("POST", f"/v1/responses/{made['id']}/cancel", status=400)

    with StrictServer("kimi", [LOOKS[1]]) as server:
        refused = talk(server.url, conversation)
    assert refused["error"]["message"] == "Cannot cancel a synchronous response."


def test_a_response_that_broke_off_is_not_stored():
    async def conversation(client):
        events = await client.stream(input="q")
        assert events[-1]["type"] == "response.failed"
        await client("GET", f"/v1/responses/{events[-1]['response']['id']}", status=404)

    chunk = {"choices": [{"index": 0, "delta": {"content": "Hm"}}]}
    with ScriptedServer([Reply.events(chunk, CUT)]) as server:
        talk(server.url, conversation)


def test_tokens_are_counted_with_what_was_said_before():
    async def conversation(client):
        first = await client.create(input="word " * 400)
        path, body = "/v1/responses/input_tokens", {"model": "m", "input": "q"}
        few = await client("POST", path, body)
        many = await client("POST", path, {**body, "previous_response_id": first["id"]})
        assert few["object"] == "response.input_tokens"
        return few["input_tokens"], many["input_tokens"]

    with StrictServer("kimi", [LOOKS[1]]) as server:
        few, many = talk(server.url, conversation)
    assert many > few + 300


def test_a_request_that_only_prepares_goes_to_no_model():
    async def conversation(client):
        ready = await client.create(input="q", generate=False)
        assert (ready["status"], ready["output"]) == ("completed", [])
        return await client.create(input=[], previous_response_id=ready["id"])

    with StrictServer("kimi", [LOOKS[1]]) as server:
        assert text_of(talk(server.url, conversation)) == "Milk."
        assert len(server.requests) == 1
        assert "generate" not in server.requests[0].json


class Failing(InProcess):
    """A store that has gone away."""

    async def find(self, scope, keys):
        raise OSError("no store")

    async def keep(self, scope, keys, data):
        raise OSError("no store")


def test_without_a_store_answers_still_come_and_nothing_is_found():
    async def conversation():
        app = served(Failing(), kimi=server.url)
        client = Caller(app)
        made = await client("POST", "/v1/responses", {"model": "kimi", "input": "q"})
        assert text_of(made) == "Milk."
        body = {"model": "kimi", "input": "q", "previous_response_id": made["id"]}
        refused = await client("POST", "/v1/responses", body, status=400)
        assert refused["error"]["code"] == "previous_response_not_found"
        await app._gateway.close()

    with StrictServer("kimi", [LOOKS[1]]) as server:
        asyncio.run(conversation())


def test_a_long_conversation_is_stored_once_and_found_in_few_steps():
    class Counting(InProcess):
        asked = 0

        async def find(self, scope, keys):
            self.asked += 1
            return await super().find(scope, keys)

    memory, rounds = Counting(), 70

    async def conversation():
        app = served(memory, kimi=server.url)
        client, last = Caller(app), None
        for number in range(rounds):
            said = [{"role": "user", "content": f"{number}"}]
            body = {"model": "kimi", "input": said, "previous_response_id": last}
            last = (await client("POST", "/v1/responses", {**body, "generate": False}))["id"]
        memory.asked = 0
        await client("POST", "/v1/responses", {**body, "previous_response_id": last})
        await app._gateway.close()

    with StrictServer("kimi", [[Say("a")]]) as server:
        asyncio.run(conversation())
    assert memory.asked == 3
    sizes = [len(data) for (_, key), data in memory._records.items() if key.startswith("response")]
    assert max(sizes) < 4_000
    said = [m["content"] for m in server.requests[-1].json["messages"] if m["role"] == "user"]
    assert said == [*map(str, range(rounds)), str(rounds - 1)]


def test_the_stored_response_holds_no_second_copy_of_its_thoughts():
    memory = InProcess()

    async def conversation():
        app = served(memory, kimi=server.url)
        body = {"model": "kimi", "input": "q", "reasoning": {"effort": "high"}}
        made = await Caller(app)("POST", "/v1/responses", body)
        await app._gateway.close()
        return made["id"]

    thought = "".join(chr(97 + n * 7919 % 26) for n in range(20_000))
    with StrictServer("kimi", [[Think(thought), Say("a")]]) as server:
        name = asyncio.run(conversation())
    assert len(memory._records["", f"response:{name}"]) < 2_000
