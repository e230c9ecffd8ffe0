"""Answers in the messages of other libraries: packed, unpacked, edited, and piece by piece."""

from __future__ import annotations

import re
import sys
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.adapters.answers import (
    Pieces,
    arguments_of,
    call_of,
    media_of,
    open_calls,
    pack,
    shown_text,
    unpack,
)
from mull.agent.results import Result
from mull.neutral.assemble import tell
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Wire,
)
from mull.neutral.errors import LocalError
from mull.neutral.events import (
    BlockEnded,
    Finished,
    Reclassified,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from mull.neutral.extras import install_command
from mull.neutral.messages import Message, Origin, assistant

ORIGIN = Origin("openai", "openai-responses", "gpt-5")
THOUGHT = ThinkingBlock("Hm.", signature="c2ln", encrypted="ZW5j", id="rs_1")
SPOKEN = TextBlock("Let me see.", wire=Wire("openai-responses", {"id": "msg_1"}))
MILK = ToolCallBlock("call_1", "price", {"item": "milk"}, '{ "item": "milk" }', "c2ln")
TEA = ToolCallBlock("call_2", "price", {"item": "tea"})
ANSWER = assistant(THOUGHT, SPOKEN, MILK, TEA, origin=ORIGIN)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
values = st.dictionaries(texts, st.integers(-9, 9) | texts | st.none(), max_size=2)
calls = st.builds(ToolCallBlock, texts.filter(bool), texts.filter(bool), values)
blocks = (
    st.builds(TextBlock, texts, st.none() | texts)
    | st.builds(ThinkingBlock, texts, signature=st.none() | texts, redacted=st.none() | texts)
    | st.builds(OpaqueBlock, values)
)


@st.composite
def answers(draw):
    held = draw(st.lists(blocks, max_size=4))
    held += draw(st.lists(calls, max_size=3, unique_by=lambda call: call.id))
    return assistant(*draw(st.permutations(held)), origin=ORIGIN)


def result_of(*messages, value=None):
    last = next(one for one in reversed(messages) if one.role == "assistant")
    return Result(last.text, "", "complete", None, (), last, messages, "openai/gpt-5", value)


def library_calls(message):
    """The calls as most libraries have them."""
    return [call_of(call.id, call.name, dict(call.input)) for call in open_calls([message])]


@given(answers())
def test_what_nobody_edited_comes_back_byte_for_byte(answer):
    packed = pack(result_of(answer), answer.text)
    assert packed.count("\n") == 1
    assert unpack(packed, answer.text, library_calls(answer)) == [answer]


@given(answers(), texts)
def test_an_edited_text_is_sent_and_the_reasoning_stays(answer, text):
    packed = pack(result_of(answer), answer.text)
    (edited,) = unpack(packed, text, library_calls(answer))
    assert edited.text.strip() == text.strip()
    assert edited.thinking == answer.thinking
    assert edited.tool_calls == answer.tool_calls
    assert edited.origin == answer.origin


@given(answers(), st.data())
def test_calls_can_be_removed_and_added(answer, data):
    packed = pack(result_of(answer), answer.text)
    kept = [call for call in library_calls(answer) if data.draw(st.booleans())]
    (edited,) = unpack(packed, answer.text, [*kept, call_of("new", "price", {})])
    ids = [call.id for call in kept]
    assert [call.id for call in edited.tool_calls] == [*ids, "new"]
    unchanged = [call for call in answer.tool_calls if call.id in ids]
    assert list(edited.tool_calls[:-1]) == unchanged
    assert edited.text == answer.text


def test_an_edited_call_loses_its_signature_and_the_other_keeps_everything():
    packed = pack(result_of(ANSWER), ANSWER.text)
    changed = [call_of("call_1", "price", {"item": "oats"}), TEA]
    (edited,) = unpack(packed, "Let me see.", changed)
    assert edited.blocks == (
        THOUGHT,
        SPOKEN,
        ToolCallBlock("call_1", "price", {"item": "oats"}),
        TEA,
    )


def test_an_edited_text_keeps_what_identifies_its_item():
    (edited,) = unpack(pack(result_of(ANSWER), ANSWER.text), "No.", [MILK, TEA])
    assert edited.blocks[1] == TextBlock("No.", wire=SPOKEN.wire)


def test_a_subclass_of_text_becomes_text():
    class Accessor(str):
        pass

    (edited,) = unpack(pack(result_of(ANSWER), ANSWER.text), Accessor("No."), [MILK, TEA])
    assert type(edited.text) is str


def test_a_value_is_shown_as_json_and_travels_with_the_call_that_gave_it():
    given_by = assistant(THOUGHT, ToolCallBlock("call_9", "answer", {"cost": 6}), origin=ORIGIN)
    receipt = Message(role="tool", blocks=(ToolResultBlock("call_9", "The answer was taken."),))
    result = result_of(given_by, receipt, value={"cost": 6})
    assert shown_text(result) == '{"cost":6}'
    assert open_calls(result.messages) == ()
    packed = pack(result, shown_text(result))
    assert unpack(packed, '{"cost":6}', []) == [given_by, receipt]


def test_answers_that_a_library_joined_are_all_there():
    joined = pack(result_of(ANSWER), ANSWER.text) + pack(result_of(ANSWER), ANSWER.text)
    assert unpack(joined, "Let me see.Let me see.", [MILK, TEA, MILK, TEA]) == [ANSWER, ANSWER]


@pytest.mark.parametrize("damaged", ["{", '{"messages":[{"role":"king"}]}', "[]", "\ud800"])
def test_a_damaged_answer_is_an_error_that_says_so(damaged):
    with pytest.raises(LocalError, match="an answer that mull stored in the history is damaged"):
        unpack(damaged, "", [])


@given(answers(), st.booleans())
def test_the_pieces_of_a_stream_are_the_answer(answer, whole):
    pieces = Pieces(whole=whole)
    told = [piece for event in tell(answer) for piece in pieces.take(event)]
    if whole:
        assert {piece.kind for piece in told} <= {"thinking"}
    told += pieces.end(result_of(answer))
    thoughts = [piece.text for piece in told if piece.kind == "thinking"]
    assert "".join(thoughts) == "".join(block.thought for block in answer.thinking)
    assert pieces.text == "".join(piece.text for piece in told if piece.kind == "text")
    assert pieces.text == answer.text
    begun = [(piece.id, piece.name) for piece in told if piece.kind == "call" and piece.id]
    assert begun == [(call.id, call.name) for call in answer.tool_calls]
    for call in answer.tool_calls:
        (at,) = {piece.at for piece in told if piece.id == call.id}
        assert "".join(piece.text for piece in told if piece.at == at) == arguments_of(call)


def test_a_call_is_not_told_before_its_id_and_name_are_known():
    pieces = Pieces()
    events = [
        ToolCallDelta(0, name="price"),
        ToolCallDelta(1, "b", "price", '{"item":'),
        ToolCallDelta(0, arguments="{}"),
        ToolCallDelta(1, arguments='"tea"}'),
    ]
    told = [tuple(piece) for event in events for piece in pieces.take(event)]
    assert told == [("call", 1, '{"item":', "b", "price"), ("call", 1, '"tea"}', "", "")]
    (left,) = pieces.end(result_of(ANSWER))
    assert (left.at, left.text, left.id, left.name) == (0, "{}", "call_0", "price")


def test_text_that_turns_out_to_be_thinking_does_not_look_like_an_edit():
    pieces = Pieces()
    events = [TextDelta("Hm."), Reclassified(), BlockEnded(), TextDelta("Yes."), Finished("stop")]
    told = "".join(piece.text for event in events for piece in pieces.take(event))
    answer = assistant(ThinkingBlock("Hm."), TextBlock("Yes."), origin=ORIGIN)
    assert told == pieces.text == "Hm.Yes."
    assert unpack(pack(result_of(answer), pieces.text), told, []) == [answer]


def test_an_empty_thought_is_no_piece():
    assert list(Pieces().take(ThinkingDelta(""))) == []


@pytest.mark.parametrize("written", ["{}", "", "  "])
def test_calls_without_arguments_are_the_same_however_they_are_written(written):
    answer = assistant(ToolCallBlock("a", "now", {}, written or None), origin=ORIGIN)
    packed = pack(result_of(answer), "")
    assert unpack(packed, "", [call_of("a", "now", written)]) == [answer]
    assert unpack(packed, "", [call_of("a", "now", None)]) == [answer]


def test_arguments_that_are_no_json_are_kept():
    answer = assistant(ToolCallBlock("a", "now", {}, "{zone"), origin=ORIGIN)
    assert call_of("a", "now", "{zone") == answer.tool_calls[0]
    assert unpack(pack(result_of(answer), ""), "", [call_of("a", "now", "{zone")]) == [answer]


def test_media_from_data_and_from_urls():
    assert media_of("image/png", "aGk=", None) == MediaBlock("image/png", "aGk=")
    assert media_of(None, None, "data:image/gif;base64,aGk=") == MediaBlock("image/gif", "aGk=")
    assert media_of("image/png", None, "https://a.b/c") == MediaBlock(
        "image/png", url="https://a.b/c"
    )


@pytest.mark.parametrize(
    ("module", "needed", "package"),
    [
        ("langchain", "langchain_core", "langchain-core"),
        ("llm", "llm", "llm"),
        ("openai_agents", "agents", "openai-agents"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai-slim"),
    ],
)
def test_a_missing_library_is_named_with_what_installs_it(module, needed, package, monkeypatch):
    monkeypatch.setitem(sys.modules, needed, None)
    monkeypatch.delitem(sys.modules, f"mull.adapters.{module}", raising=False)
    with pytest.raises(ImportError) as told:
        import_module(f"mull.adapters.{module}")
    said = str(told.value)
    assert said.startswith(f"mull.adapters.{module} needs {package}, which")
    assert said.endswith(f": run {install_command(module.replace('_', '-'))}")


def test_an_old_llm_goes_on_working_without_the_plugin(monkeypatch, caplog):
    for module in ("mull.adapters.llm", "mull.adapters.llm_plugin"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "llm", None)
    plugin = import_module("mull.adapters.llm_plugin")
    assert re.search(r"needs llm, .* 'mull-reasoning\[llm\]'", caplog.text)
    assert not hasattr(plugin, "register_models")
    monkeypatch.delitem(sys.modules, "mull.adapters.llm_plugin")
