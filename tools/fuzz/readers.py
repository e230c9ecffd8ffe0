"""Everything that reads foreign bytes, each as a function of bytes and what must hold after it.

A reader may refuse with its own errors. Any other exception is a bug, and so is a check that
fails: bytes that are cut elsewhere must not change what is read, and what was read must be fit to
be stored, exported and sent. This is the one list: the tests replay the corpus and mutate it, and
`python -m tools.fuzz` lets coverage guide the mutation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unicodedata import category

import msgspec

from mull.agent.batch.file import BatchFile
from mull.agent.batch.items import Item
from mull.agent.mcp.lines import Lines, answered_id
from mull.catalog.load import Catalog, load
from mull.catalog.update import check_update
from mull.client.http1 import AnswerReader, ProtocolError
from mull.client.secrets import scrub
from mull.dialects.batch_api import APIS
from mull.dialects.eventstream import EventStreamReader, message, stamp
from mull.dialects.markers import Piece
from mull.dialects.registry import DIALECTS, decoder, encode_request
from mull.dialects.serving import answer_writer, decode_request, write_answer
from mull.dialects.sse import SseReader, parse_payload
from mull.dialects.tags import TagSplitter
from mull.dialects.writer import About
from mull.history.log import Entry, Log
from mull.markdown.reader import read as read_markdown
from mull.neutral.assemble import assemble
from mull.neutral.errors import LocalError, UnusableError
from mull.neutral.events import Event, Failed, Finished, Warned
from mull.neutral.messages import Dialect, Message, user
from mull.neutral.target import Compat, Limit, ModelFacts, Target
from mull.policy.approval import Asked, Subject, decide, parse_rule, suggest
from mull.policy.commands import NotUnderstoodError, deny_parts, parse
from mull.policy.heal.lessons import apply_lessons, lessons_from_json, lessons_to_json
from mull.policy.prepare import prepare
from mull.settings.layers import Settings
from mull.settings.profile import profile_from_json, profile_to_json
from mull.store.config import read_config
from mull.store.sessions.journal import decode_events, decode_origin, encode_events, fold
from mull.store.sessions.records import decode_record, encode_record
from mull.store.sessions.values import JournalBatch
from mull.transcripts.formats import to_json, to_jsonl
from mull.transcripts.markdown import to_markdown
from mull.transcripts.page import to_html
from mull.transcripts.reading import read_transcript
from mull.tui.text.safe import Inbox, neutralise, one_line

__all__ = ["CORPUS", "READERS", "Reader", "try_reader"]

CORPUS = Path(__file__).resolve().parents[2] / "tests/fuzz/corpus"
"""A folder of inputs for each reader, by its name."""

_TAGS = (("<think>", "</think>"), ("<tool_call>", "</tool_call>"), ("<|channel|>", "<|end|>"))
_CATALOG = (
    b'{"format":1,"sources":[{"name":"models.dev","date":"2020-01-01","what":"x"}],"providers":1}\n'
    b'{"id":"acme","name":"Acme","env":["ACME_KEY"],"npm":"@ai-sdk/openai-compatible",'
    b'"api":"https://acme.example/v1","models":{"a":{"name":"A"}}}\n'
)


class Reader(NamedTuple):
    """A reader of foreign bytes, and how it may refuse them."""

    read: Callable[[bytes], None]
    refusals: tuple[type[Exception], ...] = ()


def try_reader(name: str, data: bytes) -> None:
    """Give the reader these bytes. What it may refuse with is fine, everything else is raised."""
    reader = READERS[name]
    try:
        reader.read(data)
    except reader.refusals:
        return


def _target(dialect: Dialect, compat: Compat | None = None) -> Target:
    return Target(
        provider="acme",
        provider_name="Acme",
        model="thinker",
        dialect=dialect,
        endpoint="https://acme.example/v1",
        facts=ModelFacts(reasoning=True, limit=Limit(context=200_000, output=64_000)),
        compat=compat or Compat(),
        known=True,
    )


_TARGETS = {dialect: _target(dialect) for dialect in DIALECTS}


def _pieces(data: bytes) -> Iterator[bytes]:
    """The data cut at places that depend on nothing but its length."""
    edges = sorted({0, 1, len(data) // 3, len(data) // 2, max(len(data) - 1, 0), len(data)})
    return (data[a:b] for a, b in pairwise(edges))


def _told(events: list[Event]) -> list[Event]:
    """The events without warnings, whose words may quote more or less of a damaged frame."""
    return [event for event in events if not isinstance(event, Warned)]


def _read_answer(target: Target, data: bytes) -> None:
    whole, cut = decoder(target), decoder(target)
    events = [*whole.feed(data), *whole.close()]
    assert isinstance(events[-1], Finished | Failed)
    assert sum(isinstance(event, Finished | Failed) for event in events) == 1
    again = [event for piece in _pieces(data) for event in cut.feed(piece)] + cut.close()
    message = assemble(_told(events))
    assert assemble(_told(again)) == message
    _keep(message)
    _send_on(message, target)
    _write(events, target.dialect, _another(message))


def _keep(message: Message) -> None:
    """An answer that was read can be stored and comes back equal."""
    entry = Entry(message, 1.0)
    data = encode_record(entry)
    assert encode_record(decode_record(data, "s", 0)) == data


def _send_on(message: Message, target: Target) -> None:
    """An answer that was read goes into the next request, to its own endpoint and to another."""
    log = Log([user("q"), message, user("and?")])
    for to in (target, _another(message)):
        prepared = prepare(log, Settings().snapshot(), to)
        assert isinstance(msgspec.json.decode(encode_request(prepared.request, to).body), dict)
        document = write_answer(message, to.dialect, About(source=target.dialect))
        assert isinstance(msgspec.json.decode(document.body), dict)


def _another(message: Message) -> Target:
    """A target that depends on nothing but the message, so that a run can be repeated."""
    return list(_TARGETS.values())[len(encode_record(Entry(message))) % len(_TARGETS)]


def _write(events: list[Event], source: Dialect, to: Target) -> None:
    """What was read can be written as another dialect's stream, which ends as it did."""
    writer = answer_writer(to.dialect, About(source=source))
    stream = b"".join([*map(writer.feed, events), writer.close()])
    one = decoder(to)
    end = [*one.feed(stream), *one.close()][-1]
    assert isinstance(end, Finished) == isinstance(events[-1], Finished)


def _read_framed(target: Target, data: bytes) -> None:
    """Lines of a name and a payload, framed as AWS frames them: checksums keep fuzzing out."""
    lines = (line.partition(b" ") for line in data.split(b"\n"))
    named = ((name.decode("utf-8", "replace")[:50], payload) for name, _, payload in lines)
    _read_answer(target, b"".join(message(stamp(name), payload) for name, payload in named))


def _read_event_stream(data: bytes) -> None:
    whole, cut = EventStreamReader(), EventStreamReader()
    frames = [*whole.feed(data), *whole.close()]
    assert [f for piece in _pieces(data) for f in cut.feed(piece)] + cut.close() == frames


def _read_request(dialect: Dialect, data: bytes) -> None:
    asked = decode_request(dialect, data, "/v1beta/models/m:streamGenerateContent")
    prepared = prepare(Log(asked.messages), Settings().snapshot(), _TARGETS[dialect])
    body = encode_request(prepared.request, _TARGETS[dialect]).body
    assert isinstance(msgspec.json.decode(body), dict)


def _read_sse(data: bytes) -> None:
    whole, cut = SseReader(), SseReader()
    frames = [*whole.feed(data), *whole.close()]
    assert [f for piece in _pieces(data) for f in cut.feed(piece)] + cut.close() == frames
    for _, payload in frames:
        parse_payload(payload)


def _read_tags(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    middle = len(text) // 2
    for starts_in_reasoning in (False, True):
        whole = TagSplitter(_TAGS, starts_in_reasoning=starts_in_reasoning)
        cut = TagSplitter(_TAGS, starts_in_reasoning=starts_in_reasoning)
        pieces = [*whole.feed(text), *whole.close()]
        again = [*cut.feed(text[:middle]), *cut.feed(text[middle:]), *cut.close()]
        assert _by_block(pieces) == _by_block(again)


def _by_block(pieces: list[Piece]) -> dict[int, tuple[str, str | None, str]]:
    """What each block is and says, however its text was cut."""
    blocks: dict[int, tuple[str, str | None, str]] = {}
    for piece in pieces:
        kind, name, text = blocks.get(piece.block, (piece.kind, piece.name, ""))
        blocks[piece.block] = (kind, name, text + piece.text)
    return blocks


def _read_models_file(data: bytes) -> None:
    try:
        layer = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    catalog = load([layer], _CATALOG)
    for provider, model in catalog.pairs():
        catalog.facts(provider, model)


def _current() -> Catalog:
    catalog = load(base=_CATALOG)
    del catalog.providers["local"]
    return catalog


def _read_update(data: bytes) -> None:
    update = check_update(data, _current())
    catalog = load(base=update.data)
    for provider, model in catalog.pairs():
        catalog.facts(provider, model)
    assert catalog.providers["acme"].api == "https://acme.example/v1"
    assert catalog.providers["acme"].env == ("ACME_KEY",)
    before = load(base=_CATALOG).providers
    assert not any(one.env for key, one in catalog.providers.items() if key not in before)


def _read_transcript(data: bytes) -> None:
    transcript = read_transcript(data)
    assert to_json(read_transcript(to_json(transcript))) == to_json(transcript)
    assert to_json(read_transcript(to_jsonl(transcript))) == to_json(transcript)
    page = to_html(transcript)
    assert page.count("<script") == to_html(read_transcript(_ONE_LINE)).count("<script")
    to_markdown(transcript)


_ONE_LINE = b'{"role":"user","content":"q"}'


def _read_frames(data: bytes) -> None:
    whole, cut = Lines(1 << 10), Lines(1 << 10)
    found = whole.feed(data)
    assert [line for piece in _pieces(data) for line in cut.feed(piece)] == found
    for line in found:
        if isinstance(line, bytes):
            answered_id(line)
        else:
            assert line.size > 1 << 10
            assert line.request_id is None or line.request_id >= 0


def _read_http(data: bytes) -> None:
    whole = _http_answer([data])
    assert _http_answer(list(_pieces(data))) == whole


def _http_answer(pieces: list[bytes]) -> tuple[Any, ...]:
    """The answer in these pieces; of one that is no HTTP, only that it is none."""
    reader, body = AnswerReader("POST"), b""
    try:
        for piece in pieces:
            body += reader.feed(piece)
        reader.close()
    except ProtocolError:
        return ("refused",)
    return (reader.status, reader.headers, body, reader.done)


def _pass_the_gate(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    shown = neutralise(text)
    assert not [c for c in shown if category(c) in ("Cc", "Cs") and c not in "\n\t"]
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert neutralise(shown) == shown
    assert "\n" not in one_line(text)
    inbox, cut = Inbox(), ""
    for piece in (text[: len(text) // 2], text[len(text) // 2 :]):
        inbox.add(piece)
        cut += inbox.take()
    assert cut + inbox.take(final=True) == shown


def _read_record(data: bytes) -> None:
    record = decode_record(data, "s", 0)
    again = encode_record(record)
    assert encode_record(decode_record(again, "s", 0)) == again


def _read_journal(data: bytes) -> None:
    first, _, second = data.partition(b"\n")
    events = decode_events(first)
    joined = encode_events(events)
    assert encode_events(decode_events(joined)) == joined
    origin = decode_origin(second or None)
    for entry in fold([JournalBatch(1, 1.0, origin, events), JournalBatch(2, 2.0, None, events)]):
        _keep(entry.message)


def _read_config(data: bytes) -> None:
    config = read_config(data, "config.toml")
    load([config.overlay], _CATALOG)
    assert len(config.compat_rows) >= len(config.compat)


def _read_profile(data: bytes) -> None:
    profile = profile_from_json(data, "p")
    assert profile_from_json(profile_to_json(profile, "p"), "p") == profile


def _read_lessons(data: bytes) -> None:
    lessons = lessons_from_json(data)
    assert lessons_from_json(lessons_to_json(lessons)) == lessons
    for target in _TARGETS.values():
        apply_lessons(target, lessons)


def _read_command(data: bytes) -> None:
    """A command that a starred rule allows starts nothing but what the rule names."""
    command = data.decode("utf-8", "replace")
    deny_parts(command)
    try:
        words = [[word.text for word in one.words] for one in parse(command) if one.words]
    except NotUnderstoodError:
        words = [["not", "understood"]]
    asked = Asked("run", True, Subject("command", command))
    suggest(asked)
    if decide(asked, "ask", [parse_rule("allow", "run(echo *)")]).verdict == "run":
        assert all(program in ("echo", "cd") for program, *_ in words)
    refused = decide(asked, "yes", [parse_rule("deny", "run(rm *)")]).verdict == "refuse"
    assert refused or not any(each[0] == "rm" for each in words)


def _read_markdown(data: bytes) -> None:
    read_markdown(data.decode("utf-8", "replace"))


def _scrub(data: bytes) -> None:
    """A body that echoes a key is reported without it, whatever its shape."""
    secret = "sk-canary-0123456789"
    for value in parse_payload(data.replace(b"KEY", secret.encode())).values:
        assert secret not in repr(scrub(value, (secret,)))


_ANSWERS = {f"answer-{name}": Reader(partial(_read_answer, to)) for name, to in _TARGETS.items()}
_REQUESTS = {
    f"request-{name}": Reader(partial(_read_request, name), (LocalError,)) for name in _TARGETS
}


def _read_batch_api(data: bytes) -> None:
    """What a provider's batch API says, in every place where it may say it."""
    for api in APIS.values():
        for outcome in api.read_outcomes(data):
            assert outcome.body or outcome.problem
        api.find(data, "token", 1, 0.0)
        state = api.read_state(data)
        assert state.status.isprintable()
        for one in (state.id, *state.files):
            # no part of a path leads elsewhere; two dots inside a name do not
            assert one.isprintable()
            assert not {".", ".."}.intersection(one.split("/"))


def _read_batch_file(data: bytes) -> None:
    """A batch's file, whatever somebody did to it: what is read again is the same."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "batch.jsonl"
        path.write_bytes(data)
        item = Item(0, "a", "h", "a", "a")
        file = BatchFile(path, "acme/thinker", {}, misfits=True)
        found = file.find(item)
        file.add(item, found, None)
        file.close()
        again = BatchFile(path, "acme/thinker", {}, misfits=True)
        assert found is None or again.find(item) == found
        again.close()


READERS: dict[str, Reader] = {
    "sse": Reader(_read_sse),
    "event-stream": Reader(_read_event_stream),
    "framed": Reader(partial(_read_framed, _TARGETS["bedrock-converse"])),
    **_ANSWERS,
    **_REQUESTS,
    "tags": Reader(_read_tags),
    "http": Reader(_read_http),
    "refusal": Reader(_scrub),
    "mcp": Reader(_read_frames),
    "gate": Reader(_pass_the_gate),
    "markdown": Reader(_read_markdown),
    "command": Reader(_read_command, (LocalError,)),
    "transcript": Reader(_read_transcript, (LocalError,)),
    "config": Reader(_read_config, (LocalError,)),
    "profile": Reader(_read_profile, (LocalError,)),
    "models": Reader(_read_models_file, (LocalError,)),
    "catalog": Reader(_read_update, (LocalError,)),
    "lessons": Reader(_read_lessons, (LocalError,)),
    "record": Reader(_read_record, (LocalError,)),
    "journal": Reader(_read_journal),
    "batch-api": Reader(_read_batch_api, (UnusableError,)),
    "batch-file": Reader(_read_batch_file, (LocalError,)),
}
