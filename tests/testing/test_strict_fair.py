"""Ways of asking that providers take, and what the strict servers are not sure of."""

from __future__ import annotations

import json
import urllib.request

import pytest

from mull.testing import Call, Doubt, Refused, Say, StrictServer, Think, UntestedWarning
from mull.testing.providers import PROVIDERS
from naive_clients import CHAIN, CLIENTS, TWO_TURNS, Refusal, less, post, without

EVERY = sorted(PROVIDERS)
STEPS = [[Think("a"), Call("look", {"at": "1"}), Call("look", {"at": "2"})], [Say("end")]]


def fetch(url, method="GET"):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, method=method), timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def snake(value):
    """The names of protocol buffers; what a tool is given and says stays as it is."""
    if isinstance(value, list):
        return [snake(one) for one in value]
    if not isinstance(value, dict):
        return value
    names = {name: "".join("_" + c.lower() if c.isupper() else c for c in name) for name in value}
    return {names[n]: v if n in ("args", "response") else snake(v) for n, v in value.items()}


def no_ids(parts):
    return [
        {**part, "functionCall": less("id")(part["functionCall"])}
        if "functionCall" in part
        else part
        for part in parts
    ]


def other_ids(parts):
    return [
        {**p, "functionCall": {**p["functionCall"], "id": "mine"}} if "functionCall" in p else p
        for p in parts
    ]


@pytest.mark.parametrize("keep", [no_ids, other_ids])
def test_gemini_takes_calls_without_its_ids(keep):
    with StrictServer("gemini", TWO_TURNS) as server:
        client = CLIENTS["gemini"](server.url, keep)
        assert [client.ask("one"), client.ask("two")] == ["Done."] * 2
    assert (server.refusals, server.doubts) == ([], [])


def test_gemini_takes_the_names_of_its_protocol_buffers():
    with StrictServer("gemini", CHAIN) as server:
        client = CLIENTS["gemini"](server.url)
        body = client.body
        client.body = lambda: snake(body())
        client.question = lambda text: {"parts": {"text": text}}
        assert client.ask("go") == "Done."
    sent = server.requests[-1].json["contents"][1]["parts"][-1]
    assert {"function_call", "thought_signature"} <= set(sent)
    assert (server.refusals, server.doubts) == ([], [])


def test_a_signature_on_the_other_of_two_calls_is_refused_without_ids_too():
    def moved(parts):
        first, second, *_ = [part for part in parts if "functionCall" in part]
        second["thoughtSignature"] = first["thoughtSignature"]
        first["thoughtSignature"] = "skip_thought_signature_validator"
        return no_ids(parts)

    with StrictServer("gemini", STEPS) as server, pytest.raises(Refusal, match="Invalid thought"):
        CLIENTS["gemini"](server.url, moved).ask("go")
    assert not server.refusals[0].certain


def test_arguments_that_a_client_wrote_anew_are_a_doubt():
    def rewritten(parts):
        for part in no_ids(parts):
            yield (
                {**part, "functionCall": {"name": "look", "args": {"at": "one"}}}
                if "thoughtSignature" in part and "functionCall" in part
                else part
            )

    with StrictServer("gemini", STEPS) as server:
        CLIENTS["gemini"](server.url, lambda parts: [*rewritten(parts)]).ask("go")
    assert server.refusals == []
    assert "the signed functionCall 'look' is not what was sent" in server.doubts[0].reason


def text_between(blocks):
    added = []
    for block in blocks:
        if block["type"] == "tool_use":
            added.append({"type": "text", "text": "-"})
        added.append(block)
    return added


@pytest.mark.parametrize("keep", [text_between, without("text")])
def test_words_beside_claudes_thoughts_are_a_doubt(keep):
    with StrictServer("anthropic", CHAIN) as server:
        assert CLIENTS["anthropic"](server.url, keep).ask("go") == "Done."
    assert server.refusals == []
    assert all(isinstance(doubt, Doubt) for doubt in server.doubts)
    assert "not known whether the API accepts this" in server.doubts[0].reason


def test_messages_of_one_role_are_one():
    with StrictServer("anthropic", CHAIN) as server:
        client = CLIENTS["anthropic"](server.url)
        client.history.append({"role": "user", "content": "first of all:"})
        assert client.ask("go") == "Done."
    assert server.refusals == []


class Thread(CLIENTS["anthropic"]):
    """Sends what is new, and leaves the rest to the server."""

    def ask(self, text):
        self.thread, self.fresh = {"type": "create"}, []
        return super().ask(text)

    def body(self):
        new, self.fresh = self.history[len(self.fresh) :], list(self.history)
        return {**super().body(), "messages": new, "thread": self.thread}

    def take(self, answer):
        self.thread = {"type": "continue", "previous_message_id": answer["id"]}
        calls = super().take(answer)
        self.fresh = list(self.history)
        return calls


def test_message_threads_are_kept():
    with StrictServer("anthropic", CHAIN) as server:
        client = Thread(server.url)
        assert client.ask("go") == "Done."
        assert [len(request.json["messages"]) for request in server.requests] == [1] * 5
        with pytest.raises(Refusal) as again:
            post(server.url + client.path(), {**server.requests[-1].json})
        gone = {"type": "continue", "previous_message_id": "msg_x"}
        with pytest.raises(Refusal) as lost:
            post(server.url + client.path(), {**client.body(), "thread": gone})
    assert server.returned[-1] == server.issued[:4]
    codes = [caught.value.body["error"]["details"]["error_code"] for caught in (again, lost)]
    assert codes == ["thread_already_continued", "thread_not_found"]


class Stored(CLIENTS["openai"]):
    """Names the last response instead of sending it back."""

    last = None

    def body(self):
        new = self.history
        self.history = []
        kept = {"previous_response_id": self.last} if self.last else {}
        return {"model": "m", "input": new, **kept, **self.more}

    def take(self, answer):
        self.last = answer["id"]
        return [item for item in answer["output"] if item["type"] == "function_call"]


def test_responses_are_stored_unless_the_request_says_no():
    with StrictServer("openai", TWO_TURNS) as server:
        client = Stored(server.url)
        assert [client.ask("one"), client.ask("two")] == ["Done."] * 2
        where = f"{server.url}/v1/responses/{client.last}"
        assert json.loads(fetch(where)[1])["id"] == client.last
        items = json.loads(fetch(where + "/input_items")[1])["data"]
        assert items[0]["content"] == "one"
        assert json.loads(fetch(where, "DELETE")[1])["deleted"]
        assert fetch(where)[0] == 404
        with pytest.raises(Refusal) as caught:
            client.ask("three")
    assert caught.value.body["error"]["code"] == "previous_response_not_found"
    assert server.returned[-1] == server.issued[: len(server.returned[-1])]
    assert len(server.issued) == 10
    assert len(server.refusals) == 1


def test_nothing_is_stored_where_the_request_says_so():
    with StrictServer("openai", CHAIN) as server, pytest.raises(Refusal, match="not found"):
        Stored(server.url, store=False).ask("one")


def test_stored_items_may_come_back_by_name():
    def named(items):
        return [{"type": "item_reference", "id": item["id"]} for item in items]

    with StrictServer("openai", CHAIN) as server:
        client = CLIENTS["openai"](server.url, named, store=True, include=[])
        assert client.ask("go") == "Done."
    assert server.refusals == []
    with StrictServer("openai", CHAIN) as server, pytest.raises(Refusal) as caught:
        CLIENTS["openai"](server.url, named).ask("go")
    assert caught.value.status == 404


def test_stored_reasoning_may_come_back_without_its_encrypted_content():
    with StrictServer("openai", CHAIN) as server:
        client = CLIENTS["openai"](server.url, store=True, include=[])
        assert client.ask("go") == "Done."
        client.edit(without("reasoning"))
        with pytest.raises(Refusal, match="without its required 'reasoning' item"):
            client.ask("two")
    assert len(server.refusals) == 1


@pytest.mark.parametrize(
    "asked",
    [{"reasoning_effort": "high"}, {"include_reasoning": True}, {"reasoning": {"max_tokens": 9}}],
)
def test_openrouter_has_shorthands(asked):
    with StrictServer("openrouter", CHAIN) as server:
        client = CLIENTS["openrouter"](server.url, reasoning=None)
        client.more = asked
        assert client.ask("go") == "Done."
    assert len(server.issued) == 5


def test_openrouter_names_who_answered():
    with StrictServer("openrouter", [[Think("x"), Say("ok")]]) as server:
        body = {"model": "m", "messages": [{"role": "user", "content": "q"}], "stream": True}
        answer = post(server.url + "/chat/completions", {**body, "reasoning": {"effort": "low"}})
    chunks = [json.loads(line[6:]) for line in answer.split(b"\n\n") if line.startswith(b"data: {")]
    assert {chunk["provider"] for chunk in chunks} == {"Anthropic"}
    assert [c["choices"][0]["native_finish_reason"] for c in chunks if c["choices"]][
        -1
    ] == "end_turn"


@pytest.mark.parametrize("provider", EVERY)
def test_who_only_looks_is_not_refused(provider):
    with StrictServer(provider) as server:
        assert fetch(server.url, "HEAD") == (200, b"")
        status, listed = fetch(server.url + "/v1/models")
        rows = json.loads(listed).get("data") or json.loads(listed)["models"]
        named = [row.get("id") or row["name"].removeprefix("models/") for row in rows]
        assert fetch(f"{server.url}/v1/models/{named[0]}")[0] == status == 200
        assert fetch(server.url + "/v1/nothing")[0] == 404
    assert (server.refusals, server.doubts) == ([], [])
    assert named == [*PROVIDERS[provider].models]


COUNTS = {
    "anthropic": ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "q"}]}),
    "gemini": ("/v1beta/models/m:countTokens", {"contents": [{"parts": [{"text": "q"}]}]}),
    "openai": ("/v1/responses/input_tokens", {"input": "q"}),
}


@pytest.mark.parametrize("provider", COUNTS)
def test_who_counts_first_is_answered(provider):
    path, body = COUNTS[provider]
    with StrictServer(provider) as server:
        counted = json.loads(post(server.url + path, {"model": "m", **body}))
    assert next(value for name, value in counted.items() if name != "object") > 0


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter", "kimi"])
def test_a_script_whose_thoughts_were_never_asked_for_says_so(provider):
    off = {"thinking": {"type": "disabled"}, "reasoning": {"effort": "none"}}
    untested = pytest.warns(UntestedWarning, match="no request asked for them")
    with untested, StrictServer(provider, [[Think("x"), Say("ok")]]) as server:
        CLIENTS[provider](server.url, **off).ask("go")
    assert server.doubts[0].reason == "the request does not ask for thinking: 1 left out"
    assert server.issued == ()


def test_a_failing_test_is_not_hidden_by_the_warning():
    failing = pytest.raises(ZeroDivisionError)
    with failing, StrictServer("anthropic", [[Think("x"), Say("ok")]]) as server:
        CLIENTS["anthropic"](server.url, thinking={"type": "disabled"}).ask("go")
        raise ZeroDivisionError


def test_what_no_provider_is_known_to_refuse_is_marked():
    def altered(message):
        return {**message, "reasoning_content": "other"}

    noted = []
    with StrictServer("deepseek", CHAIN, told=noted.append) as server, pytest.raises(Refusal):
        CLIENTS["deepseek"](server.url, altered).ask("go")
    assert [refused.certain for refused in server.refusals] == [False]
    assert isinstance(noted[-1], Refused)
    with StrictServer("deepseek", CHAIN) as server, pytest.raises(Refusal):
        CLIENTS["deepseek"](server.url, less("reasoning_content")).ask("go")
    assert [refused.certain for refused in server.refusals] == [True]


def test_requests_without_tools_may_be_kept_out_of_the_script():
    tools = [{"type": "function", "function": {"name": "look"}}]
    with StrictServer("kimi", CHAIN, aside=[Say("A title")]) as server:
        client = CLIENTS["kimi"](server.url, lambda m: m, tools=tools)
        assert CLIENTS["kimi"](server.url).ask("what is this about?") == "A title"
        client.keep = lambda m: {**m, "reasoning_content": m["reasoning_content"] or " "}
        assert client.ask("go") == "Done."
