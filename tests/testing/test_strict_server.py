"""The strict servers seen by clients that are not mull's: what they take, and how they serve."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mull.testing import Call, Say, StrictServer, Think
from naive_clients import CHAIN, CLIENTS, TWO_TURNS, Refusal, less, post, with_fillers, without

EVERY = sorted(CLIENTS)


@pytest.mark.parametrize("provider", EVERY)
def test_who_sends_back_what_came_is_never_refused(provider):
    with StrictServer(provider, TWO_TURNS) as server:
        client = CLIENTS[provider](server.url, keep=with_fillers if provider == "kimi" else _same)
        assert [client.ask("one"), client.ask("two")] == ["Done."] * 2
    assert server.refusals == []
    assert server.answered == len(server.requests) == 10
    if provider not in ("kimi", "deepseek"):  # their carriers are the thoughts, said twice here
        assert len(set(server.issued)) == len(server.issued) >= 8


def _same(answer):
    return answer


acts = st.lists(
    st.builds(Think, st.text(min_size=1, max_size=30), st.booleans())
    | st.builds(Say, st.text(min_size=1, max_size=30).filter(str.strip))
    | st.builds(Call, st.sampled_from(["a", "b"]), st.dictionaries(st.text(), st.text())),
    min_size=1,
    max_size=5,
)


@pytest.mark.parametrize("provider", sorted(set(EVERY) - {"kimi"}))
@settings(max_examples=15)
@given(script=st.lists(acts, max_size=3))
def test_any_script_can_be_played_to_its_end(provider, script):
    """A provider takes back whatever it said itself. Kimi's fillers are in the test above."""
    chain = [[*answer, Call("more")] for answer in script]
    with StrictServer(provider, [*chain, [Say("end")]]) as server:
        assert CLIENTS[provider](server.url).ask("go") == "end"
    assert server.refusals == []


def test_a_script_that_is_over_says_so():
    over = pytest.raises(Refusal, match="the script has ended")
    with StrictServer("gemini", CHAIN[:1]) as server, over as caught:
        CLIENTS["gemini"](server.url).ask("go")
    assert (caught.value.status, server.refusals) == (404, [])


@pytest.mark.parametrize("answer", [Say("no list"), ["no act"], 3])
def test_a_script_that_makes_no_sense_says_so(answer):
    wrong = pytest.raises(Refusal, match="not a list of Think, Say, Call")
    with StrictServer("openai", [answer]) as server, wrong:
        CLIENTS["openai"](server.url).ask("go")


def test_a_refusal_uses_up_no_answer():
    with StrictServer("kimi", CHAIN) as server:
        client = CLIENTS["kimi"](server.url, less("reasoning_content"))
        with pytest.raises(Refusal):
            client.ask("go")
        client.history[1]["reasoning_content"] = "first "
        again = json.loads(post(server.url + "/chat/completions", client.body()))
    assert again["choices"][0]["message"]["reasoning_content"] == "secondthird"
    assert (server.answered, len(server.refusals)) == (2, 1)


def test_adaptive_thinking_takes_a_chain_without_thoughts_and_the_ledger_shows_it():
    adaptive = {"thinking": {"type": "adaptive"}}
    with StrictServer("anthropic", CHAIN) as server:
        client = CLIENTS["anthropic"](server.url, without("thinking"), **adaptive)
        client.ask("go")
    assert server.refusals == []
    assert [len(carriers) for carriers in server.returned] == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("provider", EVERY)
def test_what_came_back_is_told_request_by_request(provider):
    script = [[Think(f"thought {n}"), Call("look")] for n in range(3)] + [[Say("end")]]
    with StrictServer(provider, script) as server:
        CLIENTS[provider](server.url).ask("go")
    issued = server.issued
    assert server.returned == [issued[:n] for n in range(4)]
    if provider in ("kimi", "deepseek"):
        assert issued == ("thought 0", "thought 1", "thought 2")


@pytest.mark.parametrize("provider", EVERY)
@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b"{}", b'{"messages": 3, "model": "m"}'])
def test_what_is_no_request_is_refused_and_the_server_goes_on(provider, body):
    client = CLIENTS[provider]
    with StrictServer(provider, [[Say("ok")]]) as server:
        with pytest.raises(Refusal) as caught:
            post(server.url + client(server.url).path(), body)
        assert caught.value.status == 400
        assert client(server.url).ask("go") == "ok"
    assert [refused.reason[:26] for refused in server.refusals] == ["the request cannot be read"]


@pytest.mark.parametrize("provider", EVERY)
def test_other_paths_are_not_served(provider):
    other = pytest.raises(Refusal, match="there is no /v1/completions here")
    with StrictServer(provider) as server, other as caught:
        post(server.url + "/v1/completions", {"model": "m"})
    assert (caught.value.status, server.refusals) == (404, [])


def test_a_query_does_not_matter():
    with StrictServer("anthropic", [[Say("ok")]]) as server:
        beta = server.url + "/v1/messages?beta=true"
        assert post(beta, {"model": "m", "max_tokens": 9, "messages": [USER]})


def test_other_providers_are_not_played():
    with pytest.raises(ValueError, match="use anthropic, anthropic-bound, deepseek, gemini, kimi"):
        StrictServer("acme")


USER = {"role": "user", "content": "q"}
