"""`mull.file`, questions with files, and what becomes of them in each dialect."""

import base64
import json
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

import mull
from conversations import snapshot, target
from mull.agent.given import as_message
from mull.testing import Say, StrictServer

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
PDF = b"%PDF-1.7 x"
WAV = b"RIFF\x00\x00\x00\x00WAVEfmt "
MP4 = b"\x00\x00\x00\x18ftypisom" + bytes(8)
M4A = b"\x00\x00\x00\x18ftypM4A " + bytes(8)
MOV = b"\x00\x00\x00\x14ftypqt  " + bytes(8)
WEBM = b"\x1aE\xdf\xa3" + bytes(8)


def b64(data):
    return base64.b64encode(data).decode()


# mull.file


@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        (PNG, "a.png", "image/png"),
        (PNG, "a.txt", "image/png"),
        (PDF, "a", "application/pdf"),
        (WAV, None, "audio/wav"),
        (MP4, None, "video/mp4"),
        (M4A, None, "audio/mp4"),
        (MOV, None, "video/quicktime"),
        (WEBM, None, "video/webm"),
        (b"PK\x03\x04..", "a.DOCX", "application/vnd.openxmlformats-officedocument."
         "wordprocessingml.document"),
        (b"\x00\x00\x00\x18ftypheic" + bytes(8), "a.heic", "image/heic"),
    ],
)  # fmt: skip
def test_the_type_comes_from_the_content_then_from_the_name(tmp_path, data, name, kind):
    assert mull.file(data, name=name) == mull.MediaBlock(kind, b64(data), name=name)
    if name:
        path = tmp_path / name
        path.write_bytes(data)
        expected = mull.MediaBlock(kind, b64(data), name=name)
        assert mull.file(path) == mull.file(str(path)) == mull.file(path.as_uri()) == expected


def test_a_given_type_and_name_win(tmp_path):
    assert mull.file(b"\x00\x01", "image/x-own", "mine") == mull.MediaBlock(
        "image/x-own", b64(b"\x00\x01"), name="mine"
    )
    path = tmp_path / "a.png"
    path.write_bytes(PNG)
    assert mull.file(path, name="b.png").name == "b.png"
    assert mull.file(b"hello", "text/plain") == mull.MediaBlock("text/plain", b64(b"hello"))


def test_text_is_text_for_every_model(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    assert mull.file(path) == mull.TextBlock("\n\na.py:\n```py\nx = 1\n```")
    assert mull.file(b"x") == mull.TextBlock("\n\nfile:\n```\nx\n```")
    assert mull.file("data:text/plain,a%20b") == mull.TextBlock("\n\nfile:\n```\na b\n```")


@pytest.mark.parametrize(
    ("url", "given", "block"),
    [
        ("https://x.example/a.png?size=2", {}, ("image/png", None, "a.png")),
        ("https://x.example/a", {"media_type": "image/png"}, ("image/png", None, "a")),
        ("s3://bucket/a.mp4", {"name": "film"}, ("video/mp4", None, "film")),
        ("gs://bucket/a.pdf", {}, ("application/pdf", None, "a.pdf")),
        (f"data:image/png;base64,{b64(PNG)}", {}, ("image/png", b64(PNG), None)),
        (f"data:;base64,{b64(PNG)}", {}, ("image/png", b64(PNG), None)),
    ],
)
def test_a_url_is_passed_on_and_never_fetched(url, given, block):
    kind, data, name = block
    found = mull.file(url, **given)
    address = None if data else url
    assert found == mull.MediaBlock(kind, data=data, url=address, name=name)


@pytest.mark.parametrize(
    ("source", "given", "said"),
    [
        ("missing.png", {}, 'cannot read "missing.png": no such file'),
        (".", {}, "it is a folder"),
        (b"", {}, "the file is empty"),
        (b"\x00\x01\x02", {"name": "a.bin"}, "the type of a.bin is unknown .* pass media_type"),
        (b"x", {"media_type": "png"}, "not a media type such as image/png"),
        ("https://x.example/a", {}, "the type of the file at this URL is unknown"),
        ("ftp://x.example/a.png", {}, "cannot send a URL that starts with ftp"),
        ("data:image/png;base64", {}, "needs a comma"),
        ("data:image/png;base64,@@", {}, "valid base64"),
        (bytes((20 << 20) + 1), {"media_type": "image/png"}, "larger than 20 MB"),
        (3, {}, "a file is a path, bytes or a URL, not int"),
        ("a\0b", {}, "cannot read"),
    ],
    ids=range(12),
)
def test_what_cannot_be_a_file_is_said(source, given, said):
    with pytest.raises(mull.LocalError, match=said):
        mull.file(source, **given)


# questions


def test_a_question_is_text_a_message_or_texts_and_files():
    picture = mull.file(PNG)
    assert as_message(["What is this?", picture]).blocks == (
        mull.TextBlock("What is this?"),
        picture,
    )
    assert as_message((picture,)).blocks == (picture,)
    assert as_message(picture).blocks == (picture,)
    assert as_message([mull.TextBlock("a"), "\ud800"]).text == "a�"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([], "empty question"),
        (["", " "], "empty question"),
        (["a", Path("b.png")], r"not PosixPath: use mull.file\(…\)"),
        (["a", PNG], r"not bytes: use mull.file\(…\)"),
        ([mull.user("a")], "not Message"),
        (PNG, "a question must be text, a message, or a list of texts and files, not bytes"),
        ({"a": 1}, "not dict"),
        (None, "not NoneType"),
        ([mull.MediaBlock("image/png", data=PNG)], "base64 text: use mull.file"),
        ([mull.MediaBlock("image/png")], "needs data or a URL"),
        (mull.Message(role="user", blocks=(mull.MediaBlock("image/png"),)), "needs data"),
    ],
    ids=range(11),
)
def test_what_cannot_be_asked_is_said(said, why):
    with pytest.raises(mull.LocalError, match=why):
        as_message(said)


def test_every_way_to_ask_takes_files():
    kimi = "moonshotai/kimi-k2.5"
    question = ["What is this?", mull.file(PNG)]
    with StrictServer("kimi", [[Say("A cat.")] for _ in range(4)]) as server:
        given = {"base_url": server.url, "key": "k"}
        mull.ask(question, kimi, **given)
        list(mull.stream(question, kimi, **given))
        mull.Conversation(kimi, **given).ask(question)
        mull.complete(question, kimi, **given)
    for request in server.requests:
        assert request.json["messages"] == [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {
                        "type": "image_url",
                        "image_url": {"url": f"data:image/png;base64,{b64(PNG)}"},
                    },
                ],
            }
        ]


# every dialect


KINDS = (
    "image/png", "image/heic", "application/pdf", "audio/wav", "audio/ogg", "audio/mp4",
    "video/mp4", "video/quicktime", "text/plain", "application/msword", "application/x-own",
)  # fmt: skip
DATA = b64(b"some content")


ADDRESS = "https://x.example/f"
INPUTS = ((), ("text",), ("text", "image", "pdf", "audio", "video"))


def asked(block):
    """A question with the file."""
    return [mull.Message(role="user", blocks=(mull.TextBlock("q"), block))]


def found(block):
    """A tool that found the file."""
    call, result = (
        mull.ToolCallBlock("c1", "look"),
        mull.ToolResultBlock("c1", "it", media=(block,)),
    )
    return [
        mull.user("q"),
        mull.Message(role="assistant", blocks=(call,)),
        mull.Message(role="tool", blocks=(result,)),
    ]


@pytest.mark.parametrize("dialect", get_args(mull.Dialect))
@pytest.mark.parametrize("messages", [asked, found])
def test_a_file_is_sent_or_said_to_be_left_out(dialect, messages):
    for kind, inputs in product(KINDS, INPUTS):
        to = target(dialect=dialect, input=inputs)
        for block in (mull.MediaBlock(kind, data=DATA), mull.MediaBlock(kind, url=ADDRESS)):
            prepared = mull.prepare(mull.Log(messages(block)), snapshot(), to)
            wire = mull.encode_request(prepared.request, to)
            body = wire.body.decode()
            is_sent = DATA in body or ADDRESS in body or "some content" in body
            noted = [n.text for n in (*prepared.notes, *wire.notes) if n.warning]
            assert is_sent == (not noted), (kind, inputs, noted, json.loads(body))


def test_chat_sends_videos_and_sounds_in_their_own_parts():
    to = target(dialect="openai-chat")

    def sent(block):
        log = mull.Log([mull.Message(role="user", blocks=(block,))])
        request = mull.prepare(log, snapshot(), to).request
        return json.loads(mull.encode_request(request, to).body)["messages"][0]["content"]

    film = f"data:video/mp4;base64,{DATA}"
    assert sent(mull.MediaBlock("video/mp4", DATA)) == [
        {"type": "video_url", "video_url": {"url": film}}
    ]
    assert sent(mull.MediaBlock("audio/mpeg", DATA)) == [
        {"type": "input_audio", "input_audio": {"data": DATA, "format": "mp3"}}
    ]
    assert sent(mull.MediaBlock("audio/ogg", DATA)) == [
        {"type": "input_audio", "input_audio": {"data": DATA, "format": "ogg"}}
    ]
