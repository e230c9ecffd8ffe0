"""The driver of decoders: documents and streams, damage and halves of characters."""

import itertools
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.dialects.decoder import Decoder
from mull.neutral.assemble import assemble
from mull.neutral.blocks import TextBlock
from mull.neutral.events import (
    Failed,
    Finished,
    OpaqueReceived,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Warned,
)
from mull.neutral.nesting import DEEPEST


class Echo:
    """An interpreter whose JSON is a list of [kind, text] or the word that ends it."""

    ended = False
    stage = "open"

    def take(self, event, value):
        if value in ("end", "over"):
            self.ended = True
            self.stage = "closing" if value == "end" else "over"
            return [Finished("stop")]
        if "opaque" in value:
            return [OpaqueReceived(value)]
        kinds = {"t": TextDelta, "r": ThinkingDelta}
        return [
            ToolCallDelta(name="f", arguments=text) if kind == "c" else kinds[kind](text)
            for kind, text in value.items()
        ]

    def whole(self, value):
        return [*self.take(None, value["all"]), Finished("stop")]

    def end(self, done):
        if self.ended:
            return []
        return [Finished("stop")] if done else [Failed("cut off", "incomplete", "interrupted")]


def decode(*chunks, limit=10_000):
    decoder = Decoder(Echo(), limit)
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close()


def test_a_stream_and_a_document_are_told_apart_by_looking():
    assert decode(b'data: {"t":"a"}\n\ndata: [DONE]\n\n') == [TextDelta("a"), Finished("stop")]
    assert decode(b' \n{"all":{"t":"a"}}') == [TextDelta("a"), Finished("stop")]
    assert decode(b'[{"t":"a"},{"t":"b"}]') == [TextDelta("a"), TextDelta("b"), Finished("stop")]
    assert decode(b'{"t":"a"}\n{"t":"b"}\n') == [
        Warned("stream", "2 several events in one frame were separated"),
        TextDelta("a"),
        TextDelta("b"),
        Finished("stop"),
    ]
    assert decode(b'\xef\xbb\xbf{"all":{"t":"a"}}') == [TextDelta("a"), Finished("stop")]


@pytest.mark.parametrize(
    "body",
    [
        b'data: {"t":"a"}\n\ndata: [DONE]\n\n',
        b'\n\n: hi\n\ndata: {"r":"a"}\n\ndata: "end"',
        b'\xef\xbb\xbf {"all":{"t":"\xc3\xa9"}}',
        b'[{"t":"a"}]',
        b"",
        b"  ",
        b"\xef\xbb",
        b"<html>oops</html>",
        b'{"all":',
    ],
)
def test_any_cut_gives_the_same_events(body):
    whole = decode(body)
    assert decode(*(body[i : i + 1] for i in range(len(body)))) == whole
    for cut in range(len(body)):
        assert decode(body[:cut], body[cut:]) == whole
    assert isinstance(whole[-1], Finished | Failed)


def test_an_end_is_always_there_and_always_last():
    assert decode(b"")[-1] == Failed("cut off", "incomplete", "interrupted")
    assert decode(b'data: "end"\n\ndata: {"t":"late"}\n\n') == [TextDelta("late"), Finished("stop")]


def test_c05_done_is_an_end_and_silence_is_not():
    assert decode(b'data: {"t":"a"}\n\ndata: [DONE]\n\n')[-1] == Finished("stop")
    assert decode(b'data: {"t":"a"}\n\n')[-1].status == "interrupted"


def test_damage_keeps_what_came_and_turns_the_end_into_a_failure():
    events = decode(b'data: {"t":"a"}\n\ndata: {"t":\n\ndata: {"t":"b"}\n\ndata: [DONE]\n\n')
    assert events[0] == TextDelta("a")
    assert events[1] == Warned("unreadable", 'not JSON: {"t":')
    assert events[2] == TextDelta("b")
    assert events[3] == Failed('part of the answer could not be read: {"t":', "damaged")
    assert assemble(events).blocks == (TextBlock("ab"),)


def test_an_unexpected_shape_is_damage_not_a_crash():
    events = decode(b'data: {"t":"a"}\n\ndata: {"x":1}\n\ndata: 7\n\ndata: [DONE]\n\n')
    assert [type(event) for event in events] == [TextDelta, Warned, Warned, Failed]


def test_a_document_that_is_not_json():
    assert decode(b'{"all')[-1] == Failed('the answer is not JSON: {"all', "unreadable")
    assert decode(b"[" + b" " * 300)[-1].text.endswith(" …")


def test_what_was_put_right_in_a_document_is_warned_of_as_in_a_stream():
    mended = Warned("stream", "invalid UTF-8 was replaced")
    assert decode(b'{"all":{"t":"x\xffy"}}') == [mended, TextDelta("x\ufffdy"), Finished("stop")]
    assert decode(b'data: {"t":"x\xffy"}\n\ndata: [DONE]\n\n')[0] == mended
    assert decode(b'[{"t":"x\xffy"}]')[:2] == [mended, TextDelta("x\ufffdy")]
    assert decode(b'{"all":"\xff')[0] == mended


def test_an_empty_list_is_no_answer():
    assert decode(b"[]") == [Failed("the answer is not JSON: []", "unreadable")]


@pytest.mark.parametrize(
    ("chunks", "said"),
    [
        ([b'{"all":', b" " * 200], "a document of more than 100 bytes"),
        ([b'data: {"t":"a"}\n\n', b"data: " + b"x" * 200, b"x\n\n"], "one event of more than 100"),
        ([b'data: {"t":"a"}\n\n', b": " + b"x" * 200], "one event of more than 100 bytes"),
        ([b'data: {"t":"a"}\n\n', *[b"data: x\n"] * 200], "one event of more than 100 bytes"),
        ([b'data: {"t":"a"}\n\n', *[b": ping\n\n"] * 200], "an answer of more than 1,000 bytes"),
        ([b" " * 50] * 50, "an answer of more than 1,000 bytes"),
    ],
)
def test_what_is_too_long_ends_the_answer_and_the_limit_is_told(chunks, said):
    decoder = Decoder(Echo(), 100, ceiling=1_000)
    events, fed = [], 0
    for chunk in chunks:
        if decoder.stage == "over":
            break
        events += decoder.feed(chunk)
        fed += len(chunk)
    assert decoder.stage == "over"
    assert fed <= 1_100
    assert events == ([TextDelta("a")] if b'"a"' in chunks[0] else [])
    end = decoder.close()[-1]
    assert (end.code, end.status) == ("oversized", "error")
    assert said in end.text


def test_what_is_too_long_behind_the_end_does_no_harm():
    decoder = Decoder(Echo(), 100)
    assert decoder.feed(b'data: {"t":"a"}\n\ndata: "end"\n\n' + b"x" * 200) == [TextDelta("a")]
    assert decoder.stage == "over"
    assert decoder.close() == [Finished("stop")]


@pytest.mark.parametrize("end", [b"[DONE]", b'"over"'])
@pytest.mark.parametrize("cut", [1, 10, 1_000])
def test_nothing_behind_the_end_is_part_of_the_answer(end, cut):
    body = b'data: {"t":"a"}\n\ndata: ' + end + b'\n\ndata: {"t":"late"}\n\ndata: {broken\n\n'
    chunks = [body[at : at + cut] for at in range(0, len(body), cut)]
    assert decode(*chunks, b'data: {"t":"later"}') == [TextDelta("a"), Finished("stop")]


@pytest.mark.parametrize("cut", [1, 10, 1_000])
def test_nothing_in_a_web_page_is_part_of_an_answer(cut):
    body = b'<pre>data: {"t":"a"}\n\ndata: {"t":"b"}\n\ndata: [DONE]\n\n'
    (end,) = decode(*(body[at : at + cut] for at in range(0, len(body), cut)))
    assert isinstance(end, Failed)
    assert "a web page" in end.text


@pytest.mark.parametrize("glued", [b'[DONE]{"t":"b"}', b'"over"{"t":"b"}'])
def test_nothing_glued_behind_the_end_is_part_of_the_answer(glued):
    events = decode(b'data: {"t":"a"}' + glued + b"\n\n")
    assert [event for event in events if isinstance(event, TextDelta)] == [TextDelta("a")]
    assert events[-1] == Finished("stop")


def test_the_stages_of_an_answer():
    decoder = Decoder(Echo())
    stages = [decoder.stage]
    for data in (b'data: {"t":"a"}\n\n', b'data: "end"\n\n', b": ping\n\n", b"data: [DONE]\n\n"):
        decoder.feed(data)
        stages.append(decoder.stage)
    assert stages == ["open", "open", "closing", "closing", "over"]


def test_a_document_that_is_whole_is_about_to_end():
    decoder = Decoder(Echo())
    stages = []
    for data in (b'{"all":', b'{"t":"a"}', b"}\n", b" "):
        decoder.feed(data)
        stages.append(decoder.stage)
    assert stages[0] == "open"
    assert decoder.close() == [TextDelta("a"), Finished("stop")]
    whole = Decoder(Echo())
    whole.feed(b'{"all":{"t":"a"}}\n')
    assert whole.stage == "closing"


@pytest.mark.parametrize("tail", [b"data: [DO", b"data: [DONE", b'data: {"usage":{"in', b"da"])
def test_an_end_that_was_cut_behind_its_reason_takes_nothing_away(tail):
    events = decode(b'data: {"t":"a"}\n\ndata: "end"\n\n' + tail)
    assert (events[0], events[-1]) == (TextDelta("a"), Finished("stop"))


def test_blanks_before_the_first_event_are_not_held():
    decoder = Decoder(Echo())
    tracemalloc.start()
    try:
        for _ in range(1_000):
            assert decoder.feed(b" \r\n" * 5_000) == []
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100_000
    assert decoder.feed(b'data: {"t":"a"}\n\n') == [TextDelta("a")]


@pytest.mark.parametrize("piece", [b"data: {broken\n\n", b'data: {"strange":1}\n\n'])
def test_many_warnings_are_counted_not_told(piece):
    events = decode(*[piece] * 5_000, b"data: [DONE]\n\n")
    warned = [event for event in events if isinstance(event, Warned)]
    assert len(warned) == 21
    assert warned[-1] == Warned("warnings", "4,980 more warnings of this kind")
    assert events[-1].code == "damaged"


@pytest.mark.parametrize("levels", [199, 250, 960, 100_000])
@pytest.mark.parametrize("kind", [b"[%b]", b'{"k":%b}'])
def test_what_is_nested_too_deeply_stays_as_text(levels, kind):
    opener, closer = kind.split(b"%b")
    data = opener * levels + b'"x"' + closer * levels
    (opaque, end) = decode(b'data: {"opaque":' + data + b"}\n\ndata: [DONE]\n\n", limit=10**7)
    assert end == Finished("stop")
    value, depth = opaque.data["opaque"], 1
    while not isinstance(value, str):
        value, depth = (value[0] if isinstance(value, list) else value["k"]), depth + 1
    assert depth == min(levels + 1, DEEPEST)
    kept = levels - (depth - 1)
    assert value == ("x" if not kept else (opener * kept + b'"x"' + closer * kept).decode())


def test_glued_frames_are_warned_of_and_nothing_is_lost():
    events = decode(b'data: {"t":"a"}{"t":"b"}\n\ndata: [DONE]\n\n')
    assert [event for event in events if isinstance(event, TextDelta)] == [
        TextDelta("a"),
        TextDelta("b"),
    ]
    assert events[-1] == Finished("stop")


def test_glued_frames_are_warned_of_once():
    glued = b'data: {"t":"a"}{"t":"b"}\n\ndata: {"t":"c"}data: {"t":"d"}data: {"t":"e"}\n\n'
    events = decode(glued * 2 + b"data: [DONE]\n\n")
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "abcde" * 2
    assert [event for event in events if isinstance(event, Warned)] == events[:1]
    assert events[-1] == Finished("stop")


def test_a_good_event_survives_a_bad_one_in_its_frame():
    events = decode(
        b'data: {"t":"a"}{"t":"badata: {"t":"b"}\n\ndata: {"t":"c"}\n\ndata: [DONE]\n\n'
    )
    assert events == [
        TextDelta("a"),
        TextDelta("b"),
        Warned("unreadable", 'not JSON: {"t":"ba'),
        TextDelta("c"),
        Failed('part of the answer could not be read: {"t":"ba', "damaged"),
    ]


SEPARATORS = [b"\n\n", b"\n", b"", b" ", b"\r\n", b"\r\n\r\n", b"\n\n: ping\n\n", b"\n\n\n"]


@given(st.lists(st.tuples(
    st.text(max_size=4), st.sampled_from(SEPARATORS), st.sampled_from([b"data: ", b"data:", b""])
), min_size=1, max_size=8), st.lists(st.integers(0, 300), max_size=6))  # fmt: skip
def test_no_event_is_lost_however_frames_are_glued(frames, cuts):
    body, first = b"", True
    for text, separator, field in frames:
        named = field or (b"data: " if first or separator not in (b"", b" ") else b"")
        body += named + json.dumps({"t": text}).encode() + separator
        first = separator not in (b"", b" ")
    body += b"data: [DONE]"
    events = decode(body)
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(texts) == "".join(text for text, *_ in frames)
    assert sum(isinstance(event, Warned) for event in events) <= 1
    assert events[-1] == Finished("stop")
    edges = sorted({0, len(body), *(min(cut, len(body)) for cut in cuts)})
    assert decode(*(body[a:b] for a, b in itertools.pairwise(edges))) == events


def test_c02_a_comment_passed_on_as_data_is_a_comment():
    events = decode(b'data: : PROCESSING\n\ndata: {"t":"a"}\n\ndata: [DONE]\n\n')
    assert events == [TextDelta("a"), Finished("stop")]


def test_c05_an_end_glued_to_the_last_event():
    events = decode(b'data: {"t":"a"}\ndata: [DONE]\n\n')
    assert (events[-2], events[-1]) == (TextDelta("a"), Finished("stop"))


def test_halves_of_characters_in_an_error_can_be_told():
    class Refusing(Echo):
        def whole(self, value):
            return [Failed(value["text"])]

    decoder = Decoder(Refusing())
    decoder.feed(b'{"text":"boom \\ud83c"}')
    assert decoder.close()[-1].text == "boom \ufffd"


def test_comments_are_counted():
    decoder = Decoder(Echo())
    decoder.feed(b"data: 1\n\n: a\n: b\n\n")
    assert decoder.comments == 2


def stream(*texts):
    return b"".join(b'data: {"t":"%s"}\n\n' % text for text in texts) + b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([b"\\ud83d", b"\\ude00"], "\U0001f600"),
        ([b"a\\ud83d", b"\\ude00b"], "a\U0001f600b"),
        ([b"\\ud83d\\ude00", b"x"], "\U0001f600x"),
        ([b"\\ud83d", b"x"], "\ufffdx"),
        ([b"x", b"\\ude00"], "x\ufffd"),
        ([b"\\ud83d"], "\ufffd"),
        ([b"\\ud83d", b"", b"\\ude00"], "\U0001f600"),
    ],
)
def test_characters_cut_in_half_between_deltas_are_made_whole(pieces, text):
    message = assemble(decode(stream(*pieces)))
    assert message.text == text
    assert message.status == "complete"


def test_halves_of_different_kinds_do_not_join():
    body = b'data: {"r":"\\ud83d"}\n\ndata: {"t":"\\ude00"}\n\ndata: [DONE]\n\n'
    message = assemble(decode(body))
    assert (message.thinking[0].thought, message.text) == ("\ufffd", "\ufffd")


def test_halves_in_arguments_and_unknown_blocks():
    body = (
        b'data: {"c":"{\\"a\\":\\"\\ud83d"}\n\ndata: {"c":"\\ude00\\"}"}\n\n'
        b'data: {"opaque":{"k":["\\ud800"]}}\n\ndata: [DONE]\n\n'
    )
    message = assemble(decode(body))
    assert message.blocks[0].input == {"a": "\U0001f600"}
    assert message.blocks[1].data == {"opaque": {"k": ["\ufffd"]}}


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_no_bytes_ever_raise(chunks):
    events = decode(*chunks)
    assert isinstance(events[-1], Finished | Failed)
    assemble(events)
