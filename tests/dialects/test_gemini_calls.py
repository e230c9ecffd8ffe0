"""Function calls of a Gemini answer: ids, signatures, arguments whole and in pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import wired
from gemini_wire import decode, ended, fixture, response, sse
from mull.dialects.gemini.partial import PartialArguments
from mull.neutral.blocks import OpaqueBlock, TextBlock, ToolCallBlock, Wire
from mull.neutral.events import ToolCallDelta


def test_parallel_calls_keep_their_ids_and_the_one_signature():
    got = decode(fixture("parallel-calls.sse"))
    assert got.blocks[1:] == (
        ToolCallBlock(
            "fc-a1",
            "length_of",
            {"river": "Rhône", "unit": "km"},
            signature="c2lnLW9mLXRoZS1maXJzdC1jYWxs",
            wire=Wire("gemini", {"id": "fc-a1"}),
        ),
        ToolCallBlock(
            "fc-b2",
            "length_of",
            {"river": "Loire", "unit": "km"},
            wire=Wire("gemini", {"id": "fc-b2"}),
        ),
    )
    assert got.message.stop_reason == "tool_calls"


def test_calls_without_ids_get_ids_of_their_own():
    one, same = decode(fixture("calls-without-ids.sse")), decode(fixture("calls-without-ids.json"))
    ids = [block.id for block in one.blocks]
    assert len(set(ids)) == 3
    assert ids == [block.id for block in same.blocks]
    assert all(block.wire is None and block.input == {} for block in one.blocks)
    other = sse(response([{"functionCall": {"name": "now"}}], finish="STOP", responseId="r-2"))
    assert decode(other).blocks[0].id not in ids


def test_ids_fit_the_strictest_endpoint():
    (block,) = decode(ended({"functionCall": {"name": "mcp:files.read", "args": {}}})).blocks
    assert len(block.id) <= 40
    assert block.id.replace("_", "").isalnum()


def test_without_a_response_id_another_signature_gives_another_id():
    def given(signature):
        call = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": signature}
        return decode(sse(response([call], finish="STOP", responseId=None))).blocks[0].id

    assert given("S") == given("S") != given("T")


def test_a_second_call_with_the_same_id_is_a_second_call():
    calls = [{"functionCall": {"id": "x", "name": "f", "args": {"a": at}}} for at in (1, 2)]
    one, two = decode(ended(*calls)).blocks
    assert (one.id, one.input, two.input) == ("x", {"a": 1}, {"a": 2})
    assert two.id != "x"
    assert wired(one) == {"id": "x"}
    assert wired(two) == {}


def test_arguments_in_pieces():
    got = decode(fixture("partial-arguments.sse"))
    _, book, weather = got.blocks
    assert book.input == {
        "stops": [{"city": "Bremen", "nights": 2}, {"city": "Øster Å", "notes": None}],
        "quiet": False,
        "price limit": 99.5,
    }
    assert (book.signature, book.arguments) == ("Ym9vay1pdA==", None)
    assert (weather.name, weather.input) == ("weather", {})
    assert next(e for e in got.events if isinstance(e, ToolCallDelta)).name == "book"


def test_text_ends_a_call_in_pieces():
    go_on = {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}], "willContinue": True}
    parts = [
        {"functionCall": {"name": "f", "willContinue": True}},
        {"functionCall": go_on, "thoughtSignature": "late"},
        {"text": "and "},
        {"text": "on"},
    ]
    call, text = decode(ended(*parts)).blocks
    assert (call.input, call.signature, text) == ({"a": "x"}, "late", TextBlock("and on"))


def test_a_call_may_begin_and_end_in_one_part():
    one = {"name": "f", "partialArgs": [{"jsonPath": "$.a", "boolValue": True}]}
    two = {"name": "g", "args": {"b": 1}, "willContinue": True}
    parts = [{"functionCall": one}, {"functionCall": two}, {"functionCall": {}}]
    assert [block.input for block in decode(ended(*parts)).blocks] == [{"a": True}, {"b": 1}]


@pytest.mark.parametrize(
    "piece",
    [
        "x",
        {"stringValue": "x"},
        {"jsonPath": "$.a"},
        {"jsonPath": "$", "stringValue": "x"},
        {"jsonPath": "$[0]", "stringValue": "x"},
        {"jsonPath": "$.a..b", "stringValue": "x"},
        {"jsonPath": "$.a[99999999]", "stringValue": "x"},
        {"jsonPath": 7, "stringValue": "x"},
    ],
)
def test_pieces_without_a_place_are_damage(piece):
    call = {"name": "f", "partialArgs": [{"jsonPath": "$.ok", "numberValue": 1}, piece]}
    got = decode(ended({"text": "before"}, {"functionCall": call}, {"text": "after"}))
    assert [type(block) for block in got.blocks] == [TextBlock, ToolCallBlock, TextBlock]
    assert got.blocks[1].input["ok"] == 1
    assert got.error.code == "damaged"


def test_a_value_cannot_be_two_things():
    pieces = PartialArguments()
    pieces.add([{"jsonPath": "$.a", "stringValue": "x"}])
    for path in ("$.a.b", "$.a[0]"):
        with pytest.raises(ValueError, match="to hold"):
            pieces.add([{"jsonPath": path, "stringValue": "y"}])


scalars = st.text(max_size=5) | st.integers(-9, 9) | st.booleans() | st.none()
nested = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.text(min_size=1, max_size=4), inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


def paths(value, path="$"):
    if isinstance(value, dict):
        for key, inner in value.items():
            escaped = key.replace("\\", "\\\\").replace("'", "\\'")
            yield from paths(inner, f"{path}['{escaped}']")
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from paths(inner, f"{path}[{at}]")
    else:
        yield path, value


def pieces_of(path, value):
    if isinstance(value, str):
        half = len(value) // 2
        yield {"jsonPath": path, "stringValue": value[:half], "willContinue": True}
        yield {"jsonPath": path, "stringValue": value[half:]}
    elif value is None:
        yield {"jsonPath": path, "nullValue": "NULL_VALUE"}
    else:
        name = "boolValue" if isinstance(value, bool) else "numberValue"
        yield {"jsonPath": path, name: value}


@given(st.dictionaries(st.text(min_size=1, max_size=4), nested, min_size=1, max_size=3))
def test_any_arguments_come_together_from_their_pieces(value):
    collected = PartialArguments()
    for path, leaf in paths(value):
        collected.add(list(pieces_of(path, leaf)))
    assert collected.value == value


@pytest.mark.parametrize(
    ("args", "value", "kept"),
    [
        (None, {}, None),
        ({}, {}, None),
        ('{"a": 1}', {"a": 1}, '{"a": 1}'),
        ("not json", {}, "not json"),
        ([1], {}, "[1]"),
        ({"big": 2**80, "f": 1.0}, {"big": 2**80, "f": 1.0}, None),
    ],
)
def test_arguments_of_any_type(args, value, kept):
    (block,) = decode(ended({"functionCall": {"name": "f", "args": args}})).blocks
    assert (block.input, block.arguments) == (value, kept)


def test_arguments_with_half_a_character():
    body = ended({"functionCall": {"name": "f", "args": {"a": "HALF"}}})
    (block,) = decode(body.replace(b"HALF", b"\\ud83d!")).blocks
    assert block.input == {"a": "\ufffd!"}


def test_a_nameless_call_is_kept_as_it_is_and_is_none():
    for part in ({"functionCall": {"args": {"a": 1}}}, {"functionCall": "f"}):
        assert decode(ended(part)).blocks == (OpaqueBlock(part, broken=True),)
        assert decode(ended(part)).message.status == "no_answer"
