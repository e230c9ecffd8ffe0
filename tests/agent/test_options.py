"""The keywords of the front: each reaches the wire, and a wrong value is refused at the door."""

import json
import socket
from collections import UserDict, UserString
from enum import IntEnum, StrEnum
from types import MappingProxyType
from urllib.parse import parse_qs, urlsplit

import pytest

import mull
from mull.cli.main import main
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


class Markup(str):
    """Text of a class of its own, as template engines have it."""


class Whole(int):
    """A number of a class of its own."""


class Part(float):
    """Another one."""


class Level(StrEnum):
    LOW = "low"


class Size(IntEnum):
    BIG = 900


DIALECTS = {
    MODEL: "deepseek",
    "openai/gpt-4.1": "openai",
    "anthropic/claude-sonnet-4-5": "anthropic",
    "google/gemini-2.5-flash": "gemini",
}
ODD = {
    "metadata": {Markup("a"): Markup("b"), "c": Level.LOW},
    "extra_body": MappingProxyType(
        {"x": Markup("b"), "y": (1, Whole(2), Size.BIG), "z": UserDict(q=[Part(0.5)], r={"s"})}
    ),
    "extra_headers": UserDict({Markup("x-a"): Markup("b")}),
    "max_tokens": Size.BIG,
    "temperature": Part(0.5),
    "stop": (Markup("END"), UserString("STOP")),
    "seed": Whole(7),
    "user": Markup("me"),
    "cache_key": Markup("c"),
    "system": Markup("Be brief."),
    "settings": MappingProxyType({Markup("reasoning.effort"): Level.LOW}),
    "compat": MappingProxyType({"extraBody": {"w": Markup("v")}}),
    "schema": MappingProxyType({"type": Markup("object"), "properties": MappingProxyType({})}),
}


@pytest.mark.parametrize("model", DIALECTS)
@pytest.mark.parametrize("name", ODD)
def test_values_of_any_class_are_sent_as_what_they_are(model, name):
    as_json = json.loads(
        json.dumps(
            ODD[name],
            default=lambda one: (
                list(one)
                if one == {"s"}
                else (str(one) if isinstance(one, UserString) else dict(one))
            ),
        )
    )
    bodies = []
    for given in (ODD[name], as_json):
        with StrictServer(DIALECTS[model], [[Say("{}")]]) as server:
            mull.ask("q", model, base_url=server.url, key="k", **{name: given})
        bodies.append((server.requests[0].body, server.requests[0].headers.get("x-a")))
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("model", DIALECTS)
def test_messages_and_tools_of_any_class_are_sent_as_what_they_are(model):
    given = {"a": Markup("x"), "b": (1, Whole(2)), "c": MappingProxyType({"d": Level.LOW})}
    history = [
        mull.user(Markup("Look.")),
        mull.assistant(mull.ToolCallBlock("c1", Markup("look"), given)),
        mull.Message(role="tool", blocks=(mull.ToolResultBlock("c1", Markup("seen")),)),
        mull.user("And?"),
    ]
    schema = MappingProxyType({"type": "object", "properties": {"a": {"type": Markup("string")}}})
    tools = [
        {"name": Markup("look"), "description": Markup("Looks."), "parameters": schema},
        mull.ToolDefinition(Markup("two"), Markup("Too."), {"type": Markup("object")}),
    ]
    with StrictServer(DIALECTS[model], [[Say("Yes.")]]) as server:
        mull.complete(history, model, base_url=server.url, key="k", tools=tools)
    sent = server.requests[0].body.decode().replace('\\"', '"')
    assert '"a":"x","b":[1,2],"c":{"d":"low"}' in sent
    assert "seen" in sent
    assert "Looks." in sent


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"metadata": {"a": [1, {"b": object()}]}},
            "metadata must be a mapping that JSON can express, metadata.a[1].b is of type object",
        ),
        (
            {"extra_body": {("a", 1): 2}},
            "extra_body must be a mapping that JSON can express, a key of extra_body is of type"
            " tuple",
        ),
        (
            {"schema": {"type": object()}},
            "the schema must consist of what JSON can express: the schema.type is of type object",
        ),
        (
            {"compat": {"extraBody": {"a": object()}}},
            "compat must consist of what JSON can express: compat.extraBody.a is of type object",
        ),
        (
            {"messages": [mull.assistant(mull.ToolCallBlock("c", "f", {"a": object()}))]},
            "a message must consist of what JSON can express: input.a is of type object",
        ),
    ],
)
def test_what_json_cannot_express_is_named(given, said):
    with pytest.raises(mull.LocalError) as caught:
        mull.Conversation(MODEL, key="k", **given)
    assert str(caught.value) == said


def test_what_contains_itself_is_refused():
    loop = {}
    loop["a"] = loop
    with pytest.raises(mull.LocalError, match="extra_body is nested too deeply"):
        mull.Conversation(MODEL, key="k", extra_body=loop)


def test_extra_fields_are_merged_into_objects_and_leave_the_rest():
    plain, _ = body_of()
    more, _ = body_of(extra_body={"stream_options": {"x": 1}})
    assert more.json["stream_options"] == {**plain.json["stream_options"], "x": 1}
    assert more.json["messages"] == plain.json["messages"]


def test_extra_headers_are_sent_along():
    request, _ = body_of(extra_headers={"X-Trace": "t1"}, headers={"X-Own": "o"})
    assert request.headers["x-trace"] == "t1"
    assert request.headers["x-own"] == "o"


@pytest.mark.parametrize("model", [*DIALECTS, "openai/gpt-5"])
def test_an_extra_query_is_at_the_end_of_the_address(model):
    with StrictServer(DIALECTS.get(model, "openai"), [[Say("Yes.")]] * 2) as server:
        given = {"api-version": "2024-10-21", "n": Whole(1), "b": True, Markup("a b"): "c&d"}
        talk = mull.Conversation(model, base_url=server.url, key="k", extra_query=given)
        talk.ask("q", extra_query={"n": 2.5, "more": "x"})
        talk.ask("q")
    first, second = (parse_qs(urlsplit(one.path).query) for one in server.requests)
    same = {"api-version": ["2024-10-21"], "b": ["true"], "a b": ["c&d"]}
    assert first.items() >= {**same, "n": ["2.5"], "more": ["x"]}.items()
    assert second.items() >= {**same, "n": ["1"]}.items()
    assert "more" not in second
    plain = [urlsplit(one.path).path for one in server.requests]
    assert plain[0] == plain[1]


@pytest.mark.parametrize("name", ["subscription-key", "code", "x"])
def test_a_key_in_the_query_is_never_shown(name, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("MULL_DATA_DIR", str(tmp_path))
    secret = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"
    caplog.set_level("DEBUG")
    said = {"error": {"message": f"no access with {secret} at /v1?{name}={secret}"}}
    replies = [Reply.json(said, status=401)]
    with ScriptedServer(replies) as server:
        session = mull.open_session(
            model=MODEL, base_url=server.url, key="k", extra_query={name: secret}
        )
        with pytest.raises(mull.RemoteError) as caught:
            session.ask("q")
        shown = [str(caught.value), repr(caught.value), repr(vars(caught.value)), caplog.text]
        shown.append(repr(session.way()))
        session.close()
    assert secret in server.requests[0].path
    assert not any(secret in text for text in shown)
    stored = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert secret.encode() not in stored


def test_a_version_in_the_query_is_no_secret():
    said = {"error": {"message": "api version 2024-10-21 is too old"}}
    query = {"api-version": "2024-10-21"}
    with (
        ScriptedServer([Reply.json(said, status=400)]) as server,
        pytest.raises(mull.RemoteError, match="2024-10-21 is too old"),
    ):
        mull.ask("q", MODEL, base_url=server.url, key="k", extra_query=query)


def test_a_query_of_the_config_file_goes_with_every_request_and_may_hold_the_key(
    tmp_path, monkeypatch, capsys
):
    secret = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"
    monkeypatch.setenv("GATE_KEY", secret)
    monkeypatch.setattr("sys.stdin", None)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with StrictServer("deepseek", ANSWER) as server:
        config = tmp_path / "own.toml"
        config.write_text(
            f'[providers.openai]\nbase_url = "{server.url}"\ndialect = "openai-chat"\n'
            'query = { api-version = "2024-10-21", subscription-key = "${GATE_KEY}" }\n'
        )
        words = ["-m", "openai/gpt-4.1", "--config", str(config)]
        assert main(["ask", *words, "q"]) == 0
        asked = parse_qs(urlsplit(server.requests[0].path).query)
        assert asked == {"api-version": ["2024-10-21"], "subscription-key": [secret]}
        capsys.readouterr()
        talk = tmp_path / "talk.json"
        talk.write_bytes(b'{"messages": [%s]}' % mull.message_to_json(mull.user("q")))
        assert main(["wire", "encode", *words, str(talk)]) == 0
    shown = capsys.readouterr().out
    assert "?api-version=2024-10-21&subscription-key=" in shown
    assert secret not in shown


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
        ({"extra_query": {"a": 1, "b": [1]}}, "text or numbers, extra_query.b is of type list"),
        ({"extra_headers": {"a": None}}, "text to text, extra_headers.a is of type NoneType"),
        ({"extra_body": {"a": object()}}, "extra_body must be a mapping that JSON can express"),
        ({"extra_headers": {"a": 1}}, "extra_headers must be a mapping of text to text"),
        (
            {"extra_query": "a=b"},
            "extra_query must be a mapping of names to text or numb",
        ),
        ({"extra_query": {"a": None}}, "extra_query must be a mapping of names to text"),
        ({"extra_query": {"": "x"}}, "extra_query must be a mapping of names to text"),
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
