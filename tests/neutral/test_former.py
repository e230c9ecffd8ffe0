"""What earlier versions wrote is read into values of today, and sent as it was sent then."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answers import FIXTURES, read, target_of
from conversations import json_values, messages, snapshot
from effort import tried
from mull.cli.main import main
from mull.dialects.registry import encode_request
from mull.history.log import Log
from mull.neutral.assemble import assemble
from mull.neutral.blocks import (
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Wire,
    wire_of,
)
from mull.neutral.errors import ConfigError
from mull.neutral.events import TextDelta
from mull.neutral.former import renewed
from mull.neutral.messages import (
    Message,
    assistant,
    message_from_json,
    message_to_json,
    messages_from_json,
    messages_to_json,
    user,
)
from mull.neutral.request import RequestOptions, Tool
from mull.policy.prepare import prepare
from mull.policy.view.repair import is_unfinished
from mull.store.sessions.journal import decode_events
from mull.transcripts.formats import from_json, from_jsonl, to_jsonl
from mull.transcripts.reading import read_transcript
from mull.transcripts.transcript import Transcript
from session_samples import journaled, new_store, stored_bytes

FOLDER = Path(__file__).parent.parent / "fixtures" / "former"


class Case(msgspec.Struct):
    """An answer as it was stored once, and the request that sent it back."""

    name: str
    events: msgspec.Raw
    message: msgspec.Raw
    body: msgspec.Raw
    bare: msgspec.Raw


DIALECTS = ("anthropic", "gemini", "openai-chat", "openai-responses")
"""Those that there were before the slot."""
CASES = [
    pytest.param(dialect, case, id=f"{dialect}-{case.name}")
    for dialect in DIALECTS
    for line in (FOLDER / f"{dialect.replace('-', '_')}.jsonl").read_bytes().splitlines()
    for case in [msgspec.json.decode(line, type=Case)]
    if not is_unfinished(message_from_json(bytes(case.message)))
]
"""Answers that broke off went nowhere then."""


_objects = st.dictionaries(st.sampled_from("abc"), json_values, min_size=1, max_size=2)
_lists = st.lists(_objects, min_size=1, max_size=3)
_parts = _objects.map(lambda part: {**part, "type": "summary_text"})
SHAPES = {
    "openai-chat": st.builds(lambda held: ("reasoning", {"reasoning_details": held}), _lists)
    | st.builds(lambda held: ("content_list", {"thinking": held}), _lists),
    "openai-responses": st.fixed_dictionaries(
        {}, optional={"parts": st.lists(_parts, min_size=1, max_size=3), "item": _objects}
    ).map(lambda held: ("summary", held)),
    "anthropic": _objects.map(lambda held: ("thinking", held)),
    "gemini": _objects.map(lambda held: ("thought", held)),
}
"""What each dialect kept of a thought, with the field that it came in."""


@st.composite
def answers(draw, dialect):
    """An answer whose thought, text and call keep whatever their dialect may have kept."""
    field, held = draw(SHAPES[dialect])
    wire = st.none() | st.builds(Wire, st.just(dialect), _objects)
    return assistant(
        ThinkingBlock("why", field, wire=wire_of(dialect, held)),
        TextBlock("so", wire=draw(wire)),
        ToolCallBlock("c", "look", wire=draw(wire)),
        origin=draw(st.sampled_from([target_of(dialect).origin, None])),
    )


def sent(target, answer):
    messages = [user("Go on."), answer]
    if answer.tool_calls:
        results = (ToolResultBlock(call.id, "done") for call in answer.tool_calls)
        messages.append(Message(role="tool", blocks=tuple(results)))
    messages.append(user("And now?"))
    options = RequestOptions(tools=(Tool("look", "looks", {"type": "object"}),))
    prepared = prepare(Log(messages), snapshot(includeInContext=True), target, options)
    return encode_request(prepared.request, target).body


@pytest.mark.parametrize(("dialect", "case"), CASES)
def test_an_answer_of_before_goes_back_to_the_byte(dialect, case):
    target = target_of(dialect, case.name.partition(".")[0])
    answer = message_from_json(bytes(case.message))
    assert sent(target, answer) == bytes(case.body)
    assert message_from_json(message_to_json(answer)) == answer


@pytest.mark.parametrize(("dialect", "case"), CASES)
def test_an_answer_of_before_that_nobody_signed_goes_back_to_the_byte(dialect, case):
    plain = msgspec.json.decode(case.message)
    del plain["origin"]
    target = target_of(dialect, case.name.partition(".")[0])
    assert sent(target, message_from_json(msgspec.json.encode(plain))) == bytes(case.bare)


def former(message):
    """The message as it was written then."""
    plain = msgspec.to_builtins(message)
    for block in plain.get("blocks", ()):
        wire = block.pop("wire", None)
        if wire is None:
            continue
        data = wire["data"]
        if block["type"] != "thinking":
            block["extra"] = data
        elif wire["dialect"] == "openai-chat":
            block["details"] = data.get("reasoning_details") or data["thinking"]
        elif wire["dialect"] == "openai-responses":
            rest = [{"item": data["item"]}] if "item" in data else []
            block["details"] = [*data.get("parts", []), *rest]
        else:
            block["details"] = [data]
    return msgspec.json.encode(plain)


@pytest.mark.parametrize("dialect", DIALECTS)
@tried(0.3)
@given(st.data())
def test_any_answer_of_before_becomes_the_value_of_today(dialect, data):
    answer = data.draw(answers(dialect))
    again = message_from_json(former(answer))
    assert sent(target_of(dialect), again) == sent(target_of(dialect), answer)
    assert again.thinking == answer.thinking
    if answer.origin is not None:
        assert again == answer


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_recorded_answer_is_read_alike_from_the_wire_and_from_a_file(dialect):
    for (of, name), body in FIXTURES.items():
        if of == dialect:
            target = target_of(dialect, name.partition(".")[0])
            answer = assemble(read(body, target), target.origin)
            assert message_from_json(former(answer)) == answer


@tried(0.5)
@given(st.lists(messages, max_size=3))
def test_what_is_of_today_already_stays(said):
    assert renewed(msgspec.to_builtins(said)) == msgspec.to_builtins(said)
    assert messages_from_json(messages_to_json(said)) == tuple(said)


def records_of(dialect):
    data = (FOLDER / f"{dialect.replace('-', '_')}.session.jsonl").read_bytes()
    return data, from_jsonl(data).records


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_export_of_before_is_read(dialect):
    data, records = records_of(dialect)
    blocks = [block for record in records for block in record.message.blocks]
    assert {b.wire.dialect for b in blocks if getattr(b, "wire", None)} == {dialect}
    header, *lines = map(msgspec.json.decode, data.splitlines())
    whole = msgspec.json.encode({**header, "records": lines})
    assert from_json(whole).records == records
    again = to_jsonl(Transcript(records=records))
    assert from_jsonl(again).records == records
    assert b'"wire"' in again
    said = [line["message"] for line in lines]
    imported = read_transcript(msgspec.json.encode({"messages": said})).records
    assert [record.message for record in imported] == [record.message for record in records]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_database_of_before_is_read_and_left_as_it_is(dialect, tmp_path):
    data, records = records_of(dialect)
    lines = data.splitlines()[1:]
    origin = target_of(dialect).origin
    case = next(param.values[1] for param in CASES if param.values[0] == dialect)
    store = new_store(tmp_path)
    made = store.create(folder="/")
    store.append(made.id, 0, *records)
    store.journal(made.id, [TextDelta("?")], origin)
    with closing(sqlite3.connect(tmp_path / "sessions.db")) as database, database:
        for at, line in enumerate(lines):
            database.execute("UPDATE records SET data = ? WHERE position = ?", (line, at))
        database.execute("UPDATE journal SET events = ?", (bytes(case.events),))
    assert store.load(made.id)[1] == list(records)
    (batch,) = journaled(store, made.id)
    assert assemble(batch.events, origin).blocks == message_from_json(bytes(case.message)).blocks
    store.close()
    assert stored_bytes(tmp_path / "sessions.db", made.id) == lines


def test_mull_wire_reads_a_conversation_of_before(tmp_path, capsys):
    data, _ = records_of("openai-chat")
    said = [msgspec.json.decode(line)["message"] for line in data.splitlines()[1:]]
    file = tmp_path / "talk.json"
    file.write_bytes(msgspec.json.encode({"messages": said}))
    assert main(["wire", "encode", "-m", "openai-compatible/a", str(file)]) == 0
    assert main(["wire", "encode", "--answer", "--dialect", "gemini", _first(tmp_path, said)]) == 0
    assert "candidates" in capsys.readouterr().out


def _first(folder, said):
    file = folder / "answer.json"
    file.write_bytes(msgspec.json.encode(next(one for one in said if one["role"] == "assistant")))
    return str(file)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "thinking", "thought": "t", "details": "x"},
        {"type": "thinking", "thought": "t", "details": ["x"]},
        {"type": "text", "text": "t", "extra": ["x"]},
        {"type": "text", "text": "t", "extra": {}, "wire": {"dialect": None, "data": 1}},
    ],
)
def test_what_never_was_a_block_is_refused(block):
    with pytest.raises(ConfigError, match="not a message"):
        message_from_json(msgspec.json.encode({"role": "assistant", "blocks": [block]}))


def test_what_held_nothing_is_read():
    empty = {"details": None}, {"details": []}
    for more in empty:
        block = {"type": "thinking", "thought": "t", **more}
        message = message_from_json(msgspec.json.encode({"role": "user", "blocks": [block]}))
        assert message.thinking[0].wire is None


@pytest.mark.parametrize(("dialect", "case"), CASES)
def test_a_journal_of_before_folds_into_the_same_answer(dialect, case):
    origin = target_of(dialect, case.name.partition(".")[0]).origin
    events = decode_events(bytes(case.events), origin)
    assert assemble(events, origin) == message_from_json(bytes(case.message))
