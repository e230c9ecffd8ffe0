"""An attachment goes only to a model that takes it; what is left out is said, and not counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mull
from conversations import snapshot, target
from mull.history.log import Log
from mull.neutral.blocks import MediaBlock, TextBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.errors import LocalError
from mull.neutral.messages import Message, assistant, user
from mull.policy.prepare import prepare
from mull.policy.tokens import MEDIA_TOKENS
from mull.policy.view.media import takes, without_untaken
from mull.testing import Reply, ScriptedServer

BLIND = target(input=("text",))
SEES = target(input=("text", "image"))
UNKNOWN = target()
PICTURE = MediaBlock("image/png", data="aGk=", name="shot.png")
SOUND = MediaBlock("audio/wav", data="aGk=")
FILM = MediaBlock("video/mp4", data="aGk=")
PAPER = MediaBlock("application/pdf", data="aGk=", name="paper.pdf")


def says(*blocks):
    return Message(role="user", blocks=blocks)


def prepared(where, *messages):
    return prepare(Log(messages), snapshot(), where)


def notes(made):
    return [(note.kind, note.text, note.warning) for note in made.notes if note.about == "input"]


@pytest.mark.parametrize(
    ("inputs", "kind", "taken"),
    [
        (("text",), "image/png", False),
        (("text",), "IMAGE/PNG; q=1", False),
        (("text", "image"), "image/png", True),
        (("text",), "audio/mpeg", False),
        (("text", "image"), "video/mp4", False),
        (("text",), "application/pdf", False),
        (("text", "pdf"), "application/pdf", True),
        (("text", "image"), "application/pdf", True),  # the catalog names pdf for few that see
        (("text",), "text/plain", True),
        (("text",), "application/zip", True),
        ((), "image/png", True),
    ],
)
def test_what_a_model_takes(inputs, kind, taken):
    assert takes(inputs, kind) is taken


def test_an_image_for_a_model_that_takes_text_only_is_left_out_and_named():
    made = prepared(BLIND, says(TextBlock("What is this?"), PICTURE, PICTURE))
    assert made.request.messages == (user("What is this?"),)
    assert notes(made) == [("images", "2 images left out: acme/thinker accepts none", True)]


def test_each_kind_has_its_note():
    made = prepared(BLIND, says(TextBlock("Look."), SOUND, FILM, PAPER))
    assert notes(made) == [
        ("audio_files", "1 audio file left out: acme/thinker accepts none", True),
        ("videos", "1 video left out: acme/thinker accepts none", True),
        ("pdfs", "1 PDF left out: acme/thinker accepts none", True),
    ]


@pytest.mark.parametrize("where", [SEES, UNKNOWN])
def test_what_is_taken_or_unknown_is_sent_as_it_is(where):
    message = says(TextBlock("What is this?"), PICTURE)
    made = prepared(where, message)
    assert made.request.messages[0] is message
    assert notes(made) == []


def test_what_is_left_out_is_not_counted():
    message = says(TextBlock("What is this?"), PICTURE)
    blind, sees = prepared(BLIND, message), prepared(SEES, message)
    assert sees.tokens - blind.tokens == MEDIA_TOKENS
    assert blind.raw_tokens == sees.raw_tokens
    assert blind.tokens == prepared(BLIND, user("What is this?")).tokens


def test_a_question_of_nothing_else_is_refused():
    words = "according to the catalog acme/thinker does not accept images, and the message contains"
    with pytest.raises(LocalError, match=words):
        prepared(BLIND, says(PICTURE))
    with pytest.raises(LocalError, match="does not accept images or audio files"):
        prepared(BLIND, says(TextBlock(" "), PICTURE, SOUND))


def test_an_older_message_of_nothing_else_keeps_its_place():
    made = prepared(BLIND, says(PICTURE), assistant(TextBlock("A cat.")), user("Which colour?"))
    first = made.request.messages[0]
    assert first == user("[left out, because this model does not accept it: image shot.png]")
    assert [message.role for message in made.request.messages] == ["user", "assistant", "user"]


def test_old_attachments_are_noted_and_no_longer_warned_of():
    turns = [m for n in range(3) for m in (user(f"{n}?"), assistant(TextBlock(f"{n}.")))]
    made = prepared(BLIND, says(TextBlock("Look."), PICTURE), *turns[1:], user("And?"))
    assert notes(made) == [("images", "1 image left out: acme/thinker accepts none", False)]


def test_an_image_of_a_tool_is_left_out_of_its_result():
    call = ToolCallBlock("c1", "look")
    bare = ToolResultBlock("c1", media=(PICTURE,))
    for result, output in (
        (bare, "[left out, because this model does not accept it: image shot.png]"),
        (
            ToolResultBlock("c1", "A PNG", media=(PICTURE,)),
            "A PNG\n[left out, because this model does not accept it: image shot.png]",
        ),
    ):
        made = prepared(
            BLIND, user("Look."), assistant(call), Message(role="tool", blocks=(result,))
        )
        assert made.request.messages[-1].blocks == (ToolResultBlock("c1", output),)
        assert notes(made) == [("images", "1 image left out: acme/thinker accepts none", True)]


BLOCKS = st.sampled_from([TextBlock("a"), TextBlock(""), PICTURE, SOUND, FILM, PAPER])
INPUTS = st.sets(st.sampled_from(["text", "image", "audio", "video", "pdf"])).map(tuple)


@given(st.lists(BLOCKS, min_size=1), INPUTS)
def test_what_is_left_is_taken_and_what_is_gone_is_counted(blocks, inputs):
    message = says(*blocks)
    left, gone = without_untaken(message, inputs)
    assert left.blocks
    media = [block for block in left.blocks if isinstance(block, MediaBlock)]
    assert all(takes(inputs, block.media_type) for block in media)
    assert len([b for b in blocks if isinstance(b, MediaBlock)]) == len(media) + sum(gone.values())
    assert without_untaken(left, inputs) == (left, {})
    if not gone:
        assert left is message


def test_the_result_says_what_was_left_out():
    ended = {"choices": [{"index": 0, "delta": {"content": "?"}, "finish_reason": "stop"}]}
    question = says(TextBlock("What is this?"), PICTURE)
    with ScriptedServer([Reply.events(ended, "[DONE]")]) as server:
        talk = mull.Conversation("moonshotai/kimi-k2-thinking", base_url=server.url)
        result = talk.ask(question)
        with pytest.raises(LocalError, match="does not accept images"):
            talk.ask(says(PICTURE))
    assert [note.text for note in result.notes if note.about == "input"] == [
        "1 image left out: moonshotai/kimi-k2-thinking accepts none"
    ]
    assert server.requests[0].json["messages"] == [{"role": "user", "content": "What is this?"}]
    assert len(server.requests) == 1
    assert talk.messages[0] == question
    assert len(talk.log.active) == 2
