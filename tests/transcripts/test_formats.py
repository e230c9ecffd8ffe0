"""Our own formats lose nothing, and say in which line a file is broken."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from conversations import snapshot, target
from mull.dialects.registry import encode_request
from mull.history.log import Log
from mull.neutral.errors import ConfigError
from mull.policy.prepare import prepare
from mull.transcripts.formats import from_json, from_jsonl, to_json, to_jsonl
from mull.transcripts.transcript import Transcript
from transcript_samples import RECORDS, SAMPLE, record_lists, transcripts

DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini")


@settings(max_examples=30)
@given(transcripts)
def test_both_formats_give_back_the_transcript_and_then_the_same_bytes(transcript):
    for write, read in ((to_json, from_json), (to_jsonl, from_jsonl)):
        data = write(transcript)
        assert read(data) == transcript
        assert write(read(data)) == data


def test_the_first_line_says_what_it_is_and_each_record_has_a_line():
    header, *records = to_jsonl(SAMPLE).splitlines()
    assert header.startswith(b'{"type":"session","version":1,"title":"Our client')
    assert len(records) == len(RECORDS)
    assert json.loads(records[0])["message"]["role"] == "user"
    assert json.loads(header)["rows"][0]["reasoning"] == 509
    assert "records" not in json.loads(header)


def test_one_object_holds_the_same_as_the_lines():
    header, *records = map(json.loads, to_jsonl(SAMPLE).splitlines())
    document = json.loads(to_json(SAMPLE))
    assert document.pop("records") == records
    assert document == header


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=8)
@given(records=record_lists())
def test_s05_the_request_after_an_import_is_the_request_before(dialect, records):
    asked = target("none", dialect=dialect, context=None)
    wishes = snapshot(includeInContext=True)
    before = prepare(Log(records=records), wishes, asked)
    after = prepare(
        Log(records=from_jsonl(to_jsonl(Transcript(records=records))).records), wishes, asked
    )
    assert encode_request(after.request, asked) == encode_request(before.request, asked)


def _lines(*lines: str) -> bytes:
    return "\n".join(('{"type":"session","version":1}', *lines)).encode()


UNDONE = '{"type":"undone","start":0,"end":1}'
USER = '{"type":"message","message":{"role":"user","blocks":[{"type":"text","text":"x"}]}}'


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (_lines(USER, '{"type":"message"'), "line 3 is not a record: input data was truncated"),
        (_lines('{"type":"poem"}'), "line 2 is not a record: invalid value 'poem' - at `$.type`"),
        (_lines('{"type":"message","message":{"role":"bard"}}'), "line 2 is not a record"),
        (_lines(USER, "", USER), "line 3 is empty: a record is missing there"),
        (_lines(UNDONE), "line 2 refers to records 0 to 1, which do not precede it"),
        (
            _lines(USER, '{"type":"condensed","entry":0,"block":0,"text":"x"}'),
            "line 3 shortens block 0 of record 0: no thought there",
        ),
        (
            _lines('{"type":"condensed","entry":-1,"block":0,"text":"x"}'),
            "line 2 shortens block 0 of record -1: no thought there",
        ),
        (
            b'{"type":"session","version":2}\n',
            "line 1: the file has version 2, from a newer",
        ),
        (b'{"type":"session"}\n', "line 1: not a session: object missing required field `version`"),
        (b'{"type":"session","version":1,"mood":"x"}\n', "line 1: not a session: object contains"),
        (b'\xff{"type":"session","version":1}\n', "line 1: not a session"),
    ],
)
def test_a_broken_file_of_lines_is_refused_with_its_line(data, complaint):
    with pytest.raises(ConfigError) as refused:
        from_jsonl(data)
    assert str(refused.value).startswith(complaint)


def test_a_broken_object_is_refused_with_its_record():
    data = (
        f'{{"type":"session","version":1,"records":[{USER},{UNDONE},{UNDONE.replace("1", "9")}]}}'
    )
    with pytest.raises(ConfigError, match=r"^record 2 refers to records 0 to 9, which do not prec"):
        from_json(data.encode())
    with pytest.raises(ConfigError, match=r"at `\$.records\[0\]"):
        from_json(b'{"type":"session","version":1,"records":[{"type":"message","message":{}}]}')
