"""Files that a message mentions go with it: as they are, from the working folder only."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.agent.attachments import (
    LARGEST,
    LARGEST_IMAGE,
    LARGEST_TEXT,
    attach,
    attach_file,
    expand_mentions,
    media_type,
)
from mull.neutral.blocks import MediaBlock, TextBlock
from mull.neutral.errors import LocalError
from mull.policy.approval import parse_rule

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


def test_a_text_file_follows_the_message_in_a_fence(tmp_path):
    (tmp_path / "a.py").write_text("print(1)\n")
    said, notes = expand_mentions("What is in @a.py?", tmp_path)
    assert said.blocks == (
        TextBlock("What is in @a.py?"),
        TextBlock("\n\na.py:\n```py\nprint(1)\n```"),
    )
    assert notes == ()


@pytest.mark.parametrize(
    "text", ["hello", "mail me@a.py", "@you", "@", "@ a.py", "@types/node", "@git:x://a.py"]
)
def test_what_names_no_file_stays_as_it_is(tmp_path, text):
    (tmp_path / "a.py").write_text("x")
    assert expand_mentions(text, tmp_path) == (text, ())


def test_a_folder_and_a_file_that_is_not_there_are_told(tmp_path):
    (tmp_path / "src").mkdir()
    said, notes = expand_mentions("@src, @gone.py", tmp_path)
    assert said == "@src, @gone.py"
    assert notes == (
        "src is not attached: it is a folder: name the files in it",
        "gone.py is not attached: no such file",
    )


def test_names_in_quotation_marks_and_before_punctuation(tmp_path):
    (tmp_path / "read me.md").write_text("one")
    (tmp_path / "b.txt").write_text("two")
    said, _ = expand_mentions('Compare @"read me.md" with (@b.txt), or @b.txt.', tmp_path)
    assert [block.text.split("\n")[2] for block in said.blocks[1:]] == ["read me.md:", "b.txt:"]


@pytest.mark.parametrize("inside", ["```\n````", "`" * 9, "~~~"])
def test_nothing_in_a_file_can_end_its_fence(tmp_path, inside):
    (tmp_path / "a.md").write_text(inside)
    said, _ = expand_mentions("@a.md", tmp_path)
    lines = said.blocks[1].text.split("\n")
    fence = lines[-1]
    assert lines[3].startswith(fence)
    assert "\n".join(lines[4:-1]) == inside
    assert fence not in inside


def test_files_outside_the_folder_are_not_read(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("key")
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "link.txt").symlink_to(secret)
    for name in ("../secret.txt", str(secret), "link.txt"):
        said, notes = expand_mentions(f"see @{name}", folder)
        assert said == f"see @{name}"
        assert notes == (f"{name} is not attached: it is outside this folder",)
    assert expand_mentions("see @~/x", folder) == ("see @~/x", ())


def test_a_long_file_is_cut_and_said_to_be(tmp_path):
    (tmp_path / "long.txt").write_text("x" * (LARGEST_TEXT + 1))
    said, notes = expand_mentions("@long.txt", tmp_path)
    assert notes == ("long.txt: cut after 65,536 of 65,537 bytes",)
    assert said.blocks[1].text.endswith("x\n```\n[cut after 65,536 of 65,537 bytes]")


def test_a_picture_goes_as_a_picture_where_the_model_takes_it(tmp_path):
    (tmp_path / "a.png").write_bytes(PNG)
    said, notes = expand_mentions("@a.png", tmp_path)
    assert said.blocks[1] == MediaBlock(
        media_type="image/png", data=base64.b64encode(PNG).decode(), name="a.png"
    )
    assert notes == ()
    said, notes = expand_mentions("@a.png", tmp_path, inputs=["text"])
    assert said == "@a.png"
    assert notes[0].startswith(
        "a.png is not attached: according to the catalog this model does not accept images"
    )


def test_what_was_attached_before_comes_last(tmp_path):
    picture = MediaBlock(media_type="image/png", data="aGk=", name="a.png")
    (tmp_path / "b.txt").write_text("b")
    said, _ = expand_mentions("see @b.txt", tmp_path, [picture])
    assert [type(block) for block in said.blocks] == [TextBlock, TextBlock, MediaBlock]
    said, _ = expand_mentions("see", tmp_path, [picture])
    assert said.blocks == (TextBlock("see"), picture)


def test_what_cannot_be_attached_is_told(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"\x7fELF" + bytes(20))
    (tmp_path / "big.png").write_bytes(PNG + bytes(LARGEST_IMAGE))
    said, notes = expand_mentions("@a.bin @big.png", tmp_path)
    assert said == "@a.bin @big.png"
    assert notes == (
        "a.bin is not attached: it is an ELF program or library, 24 bytes, which no model accepts",
        "big.png is not attached: big.png is larger than 4 MB: use a smaller file",
    )


@given(st.text())
def test_any_text_is_kept_as_it_was_typed(tmp_path, text):
    assert expand_mentions(text, tmp_path / "empty").said == text


def test_what_is_denied_to_read_is_not_attached(tmp_path):
    (tmp_path / ".env").write_text("TOKEN=1")
    (tmp_path / "link").symlink_to(".env")
    (tmp_path / "a.py").write_text("x")
    rules = [parse_rule("deny", "read(.env*)", "tools.toml")]
    said, notes = expand_mentions("@.env @link @a.py", tmp_path, rules=rules)
    assert "TOKEN" not in "".join(block.text for block in said.blocks)
    assert notes == (".env is not attached: the rule read(.env*) (tools.toml) denies it",)
    assert len(said.blocks) == 2


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", "audio/wav"),
        (b"ID3\x04", "audio/mpeg"),
        (b"%PDF-1.7", "application/pdf"),
        (b"\xff\xfeh\0i\0", None),
        (b"plain", None),
        (b"", None),
    ],
)
def test_a_file_is_what_it_holds_whatever_its_name(tmp_path, head, kind):
    assert media_type(head) == kind
    (tmp_path / "a.txt").write_bytes(head)
    block = attach_file(tmp_path / "a.txt", "a.txt")
    assert getattr(block, "media_type", None) == kind


def test_a_text_that_is_asked_for_goes_whole(tmp_path):
    (tmp_path / "long.txt").write_text("x" * (LARGEST_TEXT + 1))
    assert attach_file(tmp_path / "long.txt", "long.txt").text.count("x") == LARGEST_TEXT + 3


@pytest.mark.parametrize(
    ("data", "inputs", "why"),
    [
        (PNG, ["text"], "does not accept images"),
        (b"%PDF-1.7", ["text"], "does not accept PDFs"),
        (b"ID3", ["text", "image"], "does not accept audio"),
        (b"PK\x03\x04", [], "it is a ZIP archive, 4 bytes, which no model accepts"),
        (PNG + bytes(LARGEST_IMAGE), [], "larger than 4 MB"),
    ],
)
def test_what_no_model_or_not_this_one_takes_is_refused(data, inputs, why):
    with pytest.raises(LocalError, match=why):
        attach(data, "it", inputs)


def test_what_is_too_large_or_no_file_is_not_read(tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(LARGEST + 1)
    for name, why in (("sparse", "larger than 20 MB"), (".", "a folder"), ("x", "no such file")):
        with pytest.raises(LocalError, match=why):
            attach_file(tmp_path / name, name)
