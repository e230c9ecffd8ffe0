"""docs/stream-json.md names exactly the events and fields that the program writes."""

import io
import json
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from msgspec.structs import NODEFAULT, fields

from mull.cli.main import main
from mull.neutral.events import Event
from mull.neutral.request import Note
from mull.neutral.usage import Usage
from mull.testing.server import Reply, ScriptedServer

TEXT = (Path(__file__).parents[1] / "docs/stream-json.md").read_text()
BLOCKS = re.findall(r"^```json\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
EVENTS = {event.__struct_config__.tag: event for event in get_args(Event)}
VALUES = {"usage": Usage, "note": Note}


def section(head):
    _, _, after = TEXT.partition(f"\n### {head}\n")
    return re.split(r"\n#{2,3} ", after)[0]


def rows(head):
    return re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", section(head), re.MULTILINE)


def default_of(field, kind):
    if field.default is NODEFAULT:
        return "always there"
    if not kind.__struct_config__.omit_defaults:
        return f"`{json.dumps(field.default)}`"
    return "left out" if field.default is None else f"`{json.dumps(field.default)}`"


@pytest.mark.parametrize(
    ("head", "kind"),
    [*((f"`{tag}`", kind) for tag, kind in EVENTS.items()), *VALUES.items()],
)
def test_fields_and_defaults_are_those_of_the_code(head, kind):
    shown = [(name, default) for name, _, default in rows(head)]
    assert shown == [(field.encode_name, default_of(field, kind)) for field in fields(kind)]


def test_every_event_has_a_section_and_no_other_has():
    _, _, events = TEXT.partition("\n## Events\n")
    events = events.partition("\n## ")[0]
    assert re.findall(r"^### `(\w+)`$", events, re.MULTILINE) == list(EVENTS)


def chunk(delta, finish=None):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


ANSWER = Reply.events(
    chunk({"reasoning_content": "17 * 24 = 408."}),
    chunk({"content": "408"}),
    chunk({}, "stop"),
    {
        "choices": [],
        "usage": {
            "prompt_tokens": 12,
            "completion_tokens": 30,
            "total_tokens": 42,
            "completion_tokens_details": {"reasoning_tokens": 24},
        },
    },
    "[DONE]",
)


@pytest.fixture
def asked(capsys, monkeypatch):
    def ask(form, reply=ANSWER):
        monkeypatch.setattr("sys.stdin", io.StringIO("What is 17 * 24?"))
        with ScriptedServer([reply]) as server:
            place = ["-m", "openai-compatible/thinker", "--base-url", server.url]
            main(["ask", *place, form])
        out = capsys.readouterr().out.replace(server.url, "http://127.0.0.1:8080/v1")
        out = re.sub(r'"session": "[\w-]+"', '"session": "261116-387t6"', out)
        return re.sub(r'"duration": [\d.]+', '"duration": 0.412', out)

    return ask


def test_the_shown_object_is_what_is_printed(asked):
    shown = next(block for block in BLOCKS if '"message"' in block)
    out = asked("--json")
    assert out == shown
    table = TEXT.partition("\n## One object")[2].partition("\n### Error")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(json.loads(out))


def test_the_shown_lines_are_those_printed_before_the_result(asked):
    shown = next(block for block in BLOCKS if '"type":"finished"' in block)
    *events, result = asked("--stream-json").splitlines()
    assert events == shown.splitlines()
    assert json.loads(result)["type"] == "result"
    for event in map(json.loads, events):
        assert isinstance(msgspec.convert(event, Event), EVENTS[event["type"]])


def test_failures_have_the_same_shape(asked):
    refused = Reply.json({"error": {"message": "no"}}, status=400)
    whole, failed = json.loads(asked("--json")), json.loads(asked("--json", refused))
    assert list(failed) == list(whole)
    assert failed["status"] == "error"
    assert failed["error"]["kind"] == "refused"
    assert "no" in failed["error"]["message"]
    *states, last = asked("--stream-json", refused).splitlines()
    assert [json.loads(state)["state"] for state in states] == ["sending", "failed"]
    line = json.loads(last)
    assert line.pop("type") == "result"
    assert list(line) == list(whole)
