"""`mull ask --schema`: a value on standard output that fits, or exit status 6 and none."""

from __future__ import annotations

import io
import json

import pytest

from mull.cli.main import main
from mull.store.sessions.sqlite import open_sessions
from mull.testing.server import Reply, ScriptedServer

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
TYPES = """
from dataclasses import dataclass
from typing import TypedDict
import msgspec
from pydantic import BaseModel, Field

class Model(BaseModel):
    name: str
    age: int = Field(ge=0)
    note: str = "none"

class Record(msgspec.Struct):
    name: str
    age: int

@dataclass
class Data:
    name: str
    age: int

class Table(TypedDict):
    name: str
    age: int

print("loaded")
Many = list[Data]
Models = list[Model]
nothing = object()
three = 3
"""


def says(*texts):
    pieces = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return Reply.events(*pieces, end, "[DONE]")


ADA = says('{"name": "Ada",', ' "age": 36}')


@pytest.fixture
def ask(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "person.json").write_text(json.dumps(PERSON))
    (tmp_path / "kinds_of_answers.py").write_text(TYPES)

    def ask(replies, *words, model="openai-compatible/m"):
        monkeypatch.setattr("sys.stdin", io.StringIO())
        with ScriptedServer(replies) as server:
            status = main(["ask", "-m", model, "--base-url", server.url, *words, "who"])
        said = capsys.readouterr()
        return status, said.out, said.err, [request.json for request in server.requests]

    return ask


@pytest.mark.parametrize("kind", ["Model", "Record", "Data", "Table"])
@pytest.mark.parametrize("place", ["kinds_of_answers:{}", "kinds_of_answers.py:{}"])
def test_a_type_of_any_kind(ask, kind, place):
    status, out, err, _ = ask([ADA], "--schema", place.format(kind))
    value = {"name": "Ada", "age": 36} | ({"note": "none"} if kind == "Model" else {})
    assert (status, json.loads(out)) == (0, value)
    assert err in ("", "loaded\n")  # a module is loaded once
    assert out.count("\n") == 1


def test_a_file_is_that_file_whatever_else_is_called_like_it(ask, tmp_path):
    (tmp_path / "json.py").write_text(TYPES)
    status, out, _, _ = ask([ADA], "--schema", "json.py:Data")
    assert (status, json.loads(out)) == (0, {"name": "Ada", "age": 36})


@pytest.mark.parametrize("kind", ["Many", "Models"])
def test_a_value_that_is_no_object_travels_in_one(ask, kind):
    told = says('{"value": [{"name": "Ada", "age": 36}]}')
    status, out, _, requests = ask([told], "--schema", f"kinds_of_answers:{kind}")
    assert status == 0
    assert json.loads(out)[0]["name"] == "Ada"
    assert '"required": [\n  "value"\n ]' in requests[0]["messages"][0]["content"]


def test_a_file_with_a_schema_and_an_answer_among_words(ask):
    told = says('Here you are:\n```json\n{"name": "Ada", "age": 36}\n```\n')
    status, out, err, requests = ask([told], "--schema", "person.json")
    assert (status, out, err) == (0, '{"name":"Ada","age":36}\n', "")
    assert '"age": {\n   "type": "integer"' in requests[0]["messages"][0]["content"]


def test_an_answer_that_does_not_fit_is_asked_for_once_more(ask):
    replies = [says('{"name": "Ada"}'), ADA]
    status, out, err, requests = ask(replies, "--schema", "person.json")
    assert (status, out) == (0, '{"name":"Ada","age":36}\n')
    misfit = "the answer does not match the schema: $: 'age' is missing"
    assert err == f"mull: {misfit}; asking again\n"
    assert [m["role"] for m in requests[1]["messages"][1:]] == ["user", "assistant", "user"]
    assert "'age' is missing" in requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_one_that_never_fits_ends_with_six_and_no_value(ask, form):
    replies = [says("I do not know."), says('{"name": 7, "age": 1}')]
    status, out, err, requests = ask(replies, *form, "--schema", "person.json")
    assert (status, len(requests)) == (6, 2)
    assert "$.name: must be string, not 7" in err + out
    if form:
        shown = json.loads(out)
        assert (shown["value"], shown["error"]["kind"]) == (None, "schema")
        assert shown["text"] == '{"name": 7, "age": 1}'
    else:
        assert out == ""


def test_what_a_type_demands_beyond_its_schema_holds_too(ask):
    replies = [says('{"name": "Ada", "age": -1}'), ADA]
    status, _, err, _ = ask(replies, "--schema", "kinds_of_answers:Model")
    assert status == 0
    assert "$.age: must be at least 0, not -1" in err


def test_json_holds_the_value_and_what_both_questions_cost(ask):
    usage = {"prompt_tokens": 50_000, "completion_tokens": 0}
    replies = [
        Reply.events(
            {
                "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}],
                "usage": usage,
            },
            "[DONE]",
        )
        for text in ("no", '{"name": "Ada", "age": 36}')
    ]
    status, out, _, _ = ask(
        replies, "--json", "--schema", "person.json", model="moonshotai/kimi-k2-thinking"
    )
    shown = json.loads(out)
    assert (status, shown["value"]) == (0, {"name": "Ada", "age": 36})
    assert shown["cost"] == pytest.approx(2 * 0.03)
    (note,) = (note for note in shown["notes"] if note["about"] == "format")
    assert note["effective"] == "prompt"


def test_an_endpoint_that_holds_to_schemas_is_asked_to(ask):
    text = '{"name": "Ada", "age": 36}'
    item = {"type": "message", "id": "m", "role": "assistant"}
    item["content"] = [{"type": "output_text", "text": text}]
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    ended = {"id": "r", "status": "completed", "output": [item]}
    reply = Reply.events(done, {"type": "response.completed", "response": ended})
    status, out, _err, requests = ask(
        [reply], "--schema", "kinds_of_answers:Record", model="openai/gpt-5.1"
    )
    assert (status, json.loads(out)) == (0, {"name": "Ada", "age": 36})
    form = requests[0]["text"]["format"]
    assert (form["type"], form["name"], form["strict"]) == ("json_schema", "Record", True)
    assert "instructions" not in requests[0]


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    for name in ("OPENAI", "MOONSHOT"):
        monkeypatch.setenv(f"{name}_API_KEY", "k")


def test_a_model_that_only_calls_tools_is_made_to_call_one(ask):
    arguments = '{"name": "Ada", "age": 36}'
    call = {"index": 0, "id": "c", "function": {"name": "person", "arguments": arguments}}
    reply = Reply.events(
        {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]},
        "[DONE]",
    )
    plain = "moonshotai/kimi-k2-0711-preview"
    status, out, err, requests = ask([reply], "--schema", "person.json", model=plain)
    assert (status, json.loads(out), err) == (0, {"name": "Ada", "age": 36}, "")
    assert requests[0]["tool_choice"] == {"type": "function", "function": {"name": "person"}}
    assert requests[0]["tools"][0]["function"]["parameters"] == PERSON
    *_, requests = ask([ADA], "--continue", model=plain)
    roles = [message["role"] for message in requests[0]["messages"]]
    assert roles == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("none.json", 'cannot read "none.json": no such file'),
        ("kinds_of_answers.py", "is not a JSON schema"),
        ("kinds_of_answers:Modell", "kinds_of_answers has no Modell: did you mean Model?"),
        ("kinds_of_answers:nothing", "cannot be a schema"),
        ("no_such_module:X", "cannot load no_such_module for --schema"),
        ("list.json", "is JSON but not a JSON schema"),
        ("typo.json", 'the schema is not valid: $.type: must be one of ["object","array"'),
        ("kinds_of_answers:three", "3 cannot be a schema"),
    ],
)
def test_what_is_no_schema_is_told_before_anything_is_sent(ask, tmp_path, given, said):
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "typo.json").write_text('{"type": "objekt"}')
    status, out, err, requests = ask([ADA], "--schema", given)
    assert (status, out, requests) == (2, "", [])
    assert said in err
    assert open_sessions().list() == []
