"""The keywords of the front: each reaches the wire, and a wrong value is refused at the door."""

import socket

import pytest

import mull
from mull.testing import Call, Reply, Say, ScriptedServer, StrictServer, Think

MODEL = "openai-compatible/m"
ANSWER = [[Think("Hm."), Say("Yes.")]]


def body_of(model=MODEL, kind="deepseek", script=ANSWER, **options):
    with StrictServer(kind, script) as server:
        result = mull.ask("q", model, base_url=server.url, key="k", **options)
    return server.requests[-1], result


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"max_tokens": 9}, {"max_tokens": 9}),
        ({"temperature": 0}, {"temperature": 0}),
        ({"top_p": 0.5}, {"top_p": 0.5}),
        ({"presence_penalty": -1}, {"presence_penalty": -1}),
        ({"frequency_penalty": 1}, {"frequency_penalty": 1}),
        ({"seed": 7}, {"seed": 7}),
        ({"stop": "END"}, {"stop": ["END"]}),
        ({"stop": ["A", "B"]}, {"stop": ["A", "B"]}),
        ({"extra_body": {"new": {"a": [1]}}}, {"new": {"a": [1]}}),
        ({"extra_body": {"stream_options": {"x": 1}}}, {"stream_options": {"x": 1}}),
        ({"extra_body": {"model": "other"}}, {"model": "other"}),
    ],
)
def test_a_parameter_reaches_the_body(given, sent):
    request, result = body_of(**given)
    for name, value in sent.items():
        held = request.json[name]
        assert (held == value) or (isinstance(held, dict) and value.items() <= held.items())
    assert result.text == "Yes."


def test_extra_fields_are_merged_into_objects_and_leave_the_rest():
    plain, _ = body_of()
    more, _ = body_of(extra_body={"stream_options": {"x": 1}})
    assert more.json["stream_options"] == {**plain.json["stream_options"], "x": 1}
    assert more.json["messages"] == plain.json["messages"]


def test_extra_headers_are_sent_along():
    request, _ = body_of(extra_headers={"X-Trace": "t1"}, headers={"X-Own": "o"})
    assert request.headers["x-trace"] == "t1"
    assert request.headers["x-own"] == "o"


def test_what_is_given_for_a_turn_holds_for_that_turn():
    with StrictServer("deepseek", ANSWER * 2) as server:
        talk = mull.Conversation(MODEL, base_url=server.url, temperature=0.5)
        talk.ask("q", temperature=1, extra_headers={"x-a": "1"}, seed=3)
        talk.ask("q")
    first, second = server.requests
    assert (first.json["temperature"], first.json["seed"], first.headers["x-a"]) == (1, 3, "1")
    assert second.json["temperature"] == 0.5
    assert "seed" not in second.json
    assert "x-a" not in second.headers


def test_a_forced_call_is_forced_once():
    def now() -> str:
        """The time."""
        return "12:00"

    script = [[Think("?"), Call("now", {})], [Think("!"), Say("Noon.")]]
    with StrictServer("deepseek", script) as server:
        result = mull.ask("q", MODEL, base_url=server.url, tools=[now], tool_choice="now")
    first, second = server.requests
    assert first.json["tool_choice"] == {"type": "function", "function": {"name": "now"}}
    assert "tool_choice" not in second.json
    assert result.text == "Noon."


def test_rounds_end_where_the_caller_says():
    def now() -> str:
        """The time."""
        return "12:00"

    with (
        StrictServer("deepseek", [[Think("?"), Call("now", {})]] * 5) as server,
        pytest.raises(mull.LocalError, match="in 2 rounds"),
    ):
        mull.ask("q", MODEL, base_url=server.url, tools=[now], max_rounds=2)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("given", "warning"),
    [({"seed": 3}, True), ({"cache_key": "c"}, False), ({"metadata": {"a": "b"}}, False)],
)
def test_what_the_endpoint_does_not_take_is_noted(given, warning):
    _, result = body_of("anthropic/claude-sonnet-4-5", "anthropic", **given)
    (note,) = [note for note in result.notes if note.about in given]
    assert note.effective == "not sent"
    assert note.warning == warning


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_tokens": 0}, "max_tokens must be a whole number of at least 1, not 0"),
        ({"max_tokens": True}, "max_tokens must be a whole number"),
        ({"temperature": -1}, "temperature must be a number of at least 0, not -1"),
        ({"temperature": float("nan")}, "temperature must be a number"),
        ({"top_p": 2}, "top_p must be a number from 0 to 1, not 2"),
        ({"top_k": 1.5}, "top_k must be a whole number"),
        ({"stop": [1]}, "stop must be a text or a list of texts"),
        ({"stop": ""}, "stop must be a text"),
        ({"tool_choice": 3}, "tool_choice must be text"),
        ({"parallel_tool_calls": 1}, "parallel_tool_calls must be True or False"),
        ({"timeout": 0}, "timeout must be a number above 0"),
        ({"max_rounds": 0}, "max_rounds must be"),
        ({"extra_body": [1]}, "extra_body must be a mapping that JSON can express, not list"),
        ({"extra_body": {"a": object()}}, "extra_body must be a mapping that JSON can express"),
        ({"extra_headers": {"a": 1}}, "extra_headers must be a mapping of text to text"),
        ({"metadata": "x"}, "metadata must be a mapping"),
        ({"schema": 3}, "cannot be a schema"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_is_sent(given, said):
    with pytest.raises(mull.LocalError, match=said):
        mull.Conversation("openai/gpt-5", key="k").ask("q", **given)
    with pytest.raises(mull.LocalError, match=said):
        mull.Conversation("openai/gpt-5", key="k", **given)


def test_secrets_in_wrong_values_are_not_shown():
    with pytest.raises(mull.LocalError) as caught:
        mull.Conversation("openai/gpt-5", key="k", extra_headers={"authorization": ["sk-secret"]})
    assert "sk-secret" not in str(caught.value)


def test_a_time_limit_ends_the_request():
    with socket.create_server(("127.0.0.1", 0)) as nobody:  # accepts, and never answers
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(mull.NetworkError):
            mull.ask("q", MODEL, base_url=address, timeout=0.05)


def test_extra_fields_and_headers_of_a_turn_are_merged_with_those_of_its_conversation():
    given = {"extra_body": {"a": {"x": 1, "y": 1}, "b": 1}, "extra_headers": {"x-a": "1"}}
    with StrictServer("deepseek", [*ANSWER, *ANSWER]) as server:
        talk = mull.Conversation(MODEL, base_url=server.url, key="k", **given)
        talk.ask("q", extra_body={"a": {"y": 2}, "c": 3}, extra_headers={"x-b": "2"})
        talk.ask("q")
    one, two = ({key: r.json.get(key) for key in "abc"} for r in server.requests)
    assert one == {"a": {"x": 1, "y": 2}, "b": 1, "c": 3}
    assert two == {"a": {"x": 1, "y": 1}, "b": 1, "c": None}
    assert [r.headers.get("x-b") for r in server.requests] == ["2", None]
    assert [r.headers["x-a"] for r in server.requests] == ["1", "1"]


@pytest.mark.parametrize("key", ["EMPTY", "x", "none"])
def test_a_short_key_that_is_rejected_was_sent(key):
    refusal = Reply.json({"error": {"message": "Unauthorized"}}, 401)
    with ScriptedServer([refusal]) as server, pytest.raises(mull.AuthenticationError) as caught:
        mull.ask("q", "openai-compatible/m", base_url=server.url, key=key)
    assert server.requests[0].headers["authorization"] == f"Bearer {key}"
    assert "No API key was sent" not in str(caught.value)
