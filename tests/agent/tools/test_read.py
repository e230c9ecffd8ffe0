"""`read`: pages, encodings, and files that are no text."""

import asyncio
import base64
import os
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mull.agent.tools.text import JUDGED
from mull.agent.tools.workspace import Workspace
from mull.neutral.blocks import MediaBlock
from tool_calls import Screen, fail, fill, start, use

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


def test_lines_come_with_their_numbers(tmp_path):
    workspace = fill(tmp_path, {"a.txt": "one\n\n three\n"})
    assert use(workspace, "read", path="a.txt") == "     1\tone\n     2\t\n     3\t three"
    assert use(workspace, "read", path="a.txt", offset=3) == "     3\t three"


def test_a_long_file_is_read_on_page_by_page(tmp_path):
    workspace = fill(tmp_path, {"a.txt": "".join(f"{n}\n" for n in range(1, 6))})
    assert use(workspace, "read", path="a.txt", limit=2) == (
        "     1\t1\n     2\t2\n[lines 1–2 of 5: continue with offset=3]"
    )
    assert (
        use(workspace, "read", path="a.txt", limit=3, offset=3) == "     3\t3\n     4\t4\n     5\t5"
    )


def test_a_page_is_limited_by_its_size_too(tmp_path):
    workspace = fill(tmp_path, {"a.txt": f"{'x' * 1000}\n" * 500})
    page = use(workspace, "read", path="a.txt").split("\n")
    assert page[-1] == f"[lines 1–{len(page) - 1} of 500: continue with offset={len(page)}]"
    assert 50 < len(page) < 70


def test_a_long_line_is_cut_and_counted(tmp_path):
    workspace = fill(tmp_path, {"a.txt": f"{'x' * 1_000_000}\nend\n"})
    first, second = use(workspace, "read", path="a.txt").split("\n")
    assert first == f"     1\t{'x' * 2000} [998,000 characters more]"
    assert second == "     2\tend"


def test_an_offset_behind_the_end_names_the_number_of_lines(tmp_path):
    workspace = fill(tmp_path, {"a.txt": "1\n2\n", "b.txt": "1\n2\n3", "c.txt": ""})
    for path, offset, lines in (("a.txt", 3, 2), ("a.txt", 9, 2), ("b.txt", 4, 3), ("b.txt", 9, 3)):
        assert f"{lines} lines" in fail(workspace, "read", path=path, offset=offset)
    assert use(workspace, "read", path="c.txt") == "c.txt is empty"


@pytest.mark.parametrize(
    "data",
    [
        "é\nb".encode(),
        b"\xef\xbb\xbf" + "é\nb".encode(),
        "é\r\nb".encode(),
    ],
)
def test_encodings_and_ends_of_lines_do_not_show(tmp_path, data):
    assert use(fill(tmp_path, {"a": data}), "read", path="a") == "     1\té\n     2\tb"


UNKNOWN = "[neither UTF-8 nor cp1252: each unknown byte is shown as U+FFFD]"


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("\ufeffé\nb".encode("utf-16-le"), "é\n     2\tb\n[encoding: utf-16-le]"),
        ("\ufeffé\nb".encode("utf-16-be"), "é\n     2\tb\n[encoding: utf-16-be]"),
        (b"caf\xe9\n", "café\n[encoding: cp1252]"),
        (b"\x93na\xefve\x94 \x81\n", "“naïve” \ufffd\n[encoding: cp1252]"),
        *(
            (f"{text}\n".encode(codec), f"{text}\n[encoding: cp1252]")
            for text in (
                "Größe", "créée", "Straßenmaße größer", "«Été» à l’œuvre", "¡¿Qué año?!", "äöüÄÖÜß",
                "æøå ÆØÅ", "não, coração", "©®™ ±5 °C", "„Größe“ – “ça”…", "Þýðing",
                "ÄÖ", "naïvetés",
            )
            for codec in ("latin-1", "cp1252")
            if codec == "cp1252" or max(text) < "\u0100"
        ),
        ("é and é\n".encode() + b"\xe9\n", "é and é\n     2\t\ufffd"),
        *(
            (text.encode(codec), "\ufffd" * len(text.encode(codec)) + f"\n{UNKNOWN}")
            for text, codec in (
                ("зима", "koi8-r"), ("привет", "cp1251"), ("中文", "gbk"), ("日本", "euc-jp"),
                ("καλημέρα", "cp1253"),
            )
        ),
    ],
)  # fmt: skip
def test_other_encodings_are_shown_and_named(tmp_path, data, shown):
    assert use(fill(tmp_path, {"a": data}), "read", path="a") == f"     1\t{shown}"


def test_a_character_that_the_first_look_cuts_through_is_whole(tmp_path):
    workspace = fill(tmp_path, {"a": "x" * 8191 + "é\n", "b": "y" * ((4 << 20) - 1) + "\né\n"})
    assert "encoding" not in use(workspace, "read", path="a")
    assert use(workspace, "read", path="b", offset=2) == "     2\té"


def test_a_page_fits_the_window(tmp_path):
    workspace = fill(tmp_path, {"a": "0123456789\n" * 500, "wide": "é" * 5000})
    page = asyncio.run(start(workspace, "read", screen=Screen(200), path="a")).output
    assert page.endswith("of 500: continue with offset=34]")
    assert len(page) < 700
    wide = asyncio.run(start(workspace, "read", screen=Screen(200), path="wide")).output
    assert wide == f"     1\t{'é' * 300} [4,700 characters more]"


def test_a_missing_file_is_answered_with_the_nearest_names(tmp_path):
    workspace = fill(tmp_path, {"src/main.py": "", "src/other.py": "", "lib/util.py": ""})
    assert fail(workspace, "read", path="src/mian.py") == (
        "src/mian.py does not exist; closest matches: src/main.py"
    )
    assert fail(workspace, "read", path="util.py") == (
        "util.py does not exist; closest matches: lib/util.py"
    )
    assert fail(workspace, "read", path="zzz") == "zzz does not exist"


def test_a_path_without_end_is_not_repeated(tmp_path):
    said = fail(fill(tmp_path, {}), "read", path="x" * 20_000_000)
    assert said == "a path of 20,000,000 characters is too long for any file"


def test_numbers_beyond_the_limits_are_taken_for_the_limits(tmp_path):
    workspace = fill(tmp_path, {"a": "1\n2\n"})
    assert use(workspace, "read", path="a", offset=0, limit=10**30) == "     1\t1\n     2\t2"
    assert use(workspace, "read", path="a", offset="-5", limit="0").startswith("     1\t1\n[lines")


@settings(max_examples=30)
@given(st.lists(st.text(st.characters(exclude_characters="\n\r", codec="utf-8"), max_size=9)))
def test_what_is_read_is_what_the_file_holds(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("read")
    lines = [line.replace("\0", "").replace("\x01", "") for line in lines]
    text = "".join(f"{line}\n" for line in lines)
    shown = use(fill(folder, {"a": f"text {'-' * 400}\n{text}"}), "read", path="a").split("\n")
    assert [row.split("\t", 1)[1] for row in shown[1:]] == lines


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (bytes(300), "binary data, 300 bytes"),
        (b"%PDF-1.7\nabc", "a PDF document, 12 bytes"),
        (b"\x7fELF" + bytes(8), "an ELF program or library, 12 bytes"),
        (bytes(range(1, 32)) * 20, "binary data, 620 bytes"),
        ("\ufeffa".encode("utf-32-le"), "binary data, 8 bytes"),
    ],
)
def test_binary_files_are_described(tmp_path, data, kind):
    shown = use(fill(tmp_path, {"a.bin": data}), "read", path="a.bin")
    assert shown == f"a.bin is {kind}: it cannot be shown as text"


def test_an_image_comes_as_an_image(tmp_path):
    result = asyncio.run(start(fill(tmp_path, {"a.png": PNG}), "read", path="a.png"))
    assert result.output == "a.png is image/png, 48 bytes"
    encoded = base64.b64encode(PNG).decode()
    assert result.media == (MediaBlock(media_type="image/png", data=encoded, name="a.png"),)


def test_a_large_image_is_only_described(tmp_path):
    workspace = fill(tmp_path, {"a.png": PNG + bytes(5 << 20)})
    result = asyncio.run(start(workspace, "read", path="a.png"))
    assert result.media == ()
    assert "5,242,928 bytes: it cannot be shown" in result.output


def test_a_sparse_file_of_5_gb_is_described_at_once(tmp_path):
    with open(tmp_path / "big", "wb") as file:
        file.truncate(5 << 30)
    shown = use(Workspace(tmp_path), "read", path="big")
    assert shown == "big is binary data, 5,368,709,120 bytes: it cannot be shown as text"


def test_the_head_of_a_huge_text_is_read_without_the_rest(tmp_path):
    with open(tmp_path / "big", "wb") as file:
        file.write(b"head\n" * 3000)
        file.truncate(5 << 30)
    assert use(Workspace(tmp_path), "read", path="big", limit=1) == (
        "     1\thead\n[lines 1–1: continue with offset=2]"
    )


def test_what_is_no_file_is_named_and_nothing_blocks(tmp_path, monkeypatch):
    workspace = fill(tmp_path, {"sub/a": ""})
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as door:
        monkeypatch.chdir(tmp_path)  # the address of a socket must be short
        door.bind("door")
        for tool, more in (
            ("read", {}),
            ("write", {"content": "x"}),
            ("edit", {"old": "a", "new": "b"}),
        ):
            assert fail(workspace, tool, path="fifo", **more) == "fifo is a FIFO, not a file"
            hint = ": list shows what is in it" if tool == "read" else ""
            assert fail(workspace, tool, path="sub", **more) == f"sub is a folder, not a file{hint}"
            assert fail(workspace, tool, path="door", **more) == "door is a socket, not a file"
            assert "is a folder, not a file" in fail(workspace, tool, path=".", **more)
        assert fail(workspace, "search", path="fifo", pattern="x") == "fifo is a FIFO"
    assert fail(workspace, "read", path="nothing") == "nothing does not exist"


def test_devices_are_not_opened():
    workspace = Workspace("/dev")
    assert fail(workspace, "read", path="zero") == "zero is a character device, not a file"
    assert fail(workspace, "write", path="null", content="x") == (
        "null is a character device, not a file"
    )


def test_a_file_that_may_not_be_read_says_so(tmp_path, monkeypatch):
    workspace = fill(tmp_path, {"a": "x"})
    opened = os.open

    def refuse(path, *arguments, **more):  # root may read everything, so the kernel is played
        if path == "a":
            raise PermissionError(13, "Permission denied", path)
        return opened(path, *arguments, **more)

    monkeypatch.setattr(os, "open", refuse)
    assert fail(workspace, "read", path="a") == "a: permission denied"


def test_unicode_names_and_names_that_are_none(tmp_path):
    workspace = fill(tmp_path, {"日本/ü ñ.txt": "a\n"})
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("b\n")
    assert use(workspace, "read", path="日本/ü ñ.txt") == "     1\ta"
    assert use(workspace, "list") == "caf\ufffd.txt\n日本/"
    assert use(workspace, "search", pattern="b") == "caf\ufffd.txt\n1: b"


def test_numbers_may_be_written_as_text_and_null_is_nothing(tmp_path):
    workspace = fill(tmp_path, {"a": "1\n2\n"})
    assert use(workspace, "read", path="a", offset="2", limit=None) == "     2\t2"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "wrong arguments: Object missing required field `path`"),
        ({"path": 7}, "wrong arguments: Expected `str`, got `int` - at `$.path`"),
        (
            {"path": "a", "offset": "x"},
            "wrong arguments: Expected `int`, got `str` - at `$.offset`",
        ),
        ({"fil": "a"}, "wrong arguments: Object contains unknown field `fil`"),
    ],
)
def test_wrong_arguments_name_the_field_and_the_shape(tmp_path, given, said):
    assert fail(fill(tmp_path, {}), "read", **given) == (
        f'{said}\nexpected: {{"path": string, "offset"?: integer >= 1,'
        ' "limit"?: integer >= 1 <= 2000}'
    )


def test_many_reads_at_once(tmp_path):
    workspace = fill(tmp_path, {f"{n}.txt": f"{n}\n" for n in range(50)})

    async def all_at_once():
        return await asyncio.gather(*(start(workspace, "read", path=f"{n}.txt") for n in range(50)))

    outputs = [result.output for result in asyncio.run(all_at_once())]
    assert outputs == [f"     1\t{n}" for n in range(50)]


def test_a_line_too_far_into_a_file_is_not_looked_for_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr("mull.agent.tools.read.LOOKING", -1)
    workspace = fill(tmp_path, {"a": "x" * (JUDGED + 1)})
    assert fail(workspace, "read", path="a", offset=9).startswith("stopped after -1 seconds")
