"""However much a command prints, little of it is kept, and the end most of all."""

import os
import re
import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from mull.agent.tools.output import MOST, Output, fitted


def aside_in(folder):
    path = folder / "aside"
    return path, lambda: (os.open(path, os.O_WRONLY | os.O_CREAT), path)


def test_memory_does_not_grow_with_the_output(tmp_path):
    path, put_aside = aside_in(tmp_path)
    output = Output(put_aside, lambda text: None)
    piece = b"0123456789abcde\n" * 4096
    tracemalloc.start()
    for _ in range(1000):
        output.add(piece)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    output.close()
    assert peak < 1 << 20
    assert path.stat().st_size == 32 << 20
    assert len(output.text()) < 66_000


@settings(max_examples=30)
@given(st.lists(st.integers(0, 4_000), max_size=12), st.sampled_from([300, 3_000, MOST]))
def test_the_beginning_and_the_end_are_kept_whatever_the_pieces(tmp_path_factory, sizes, room):
    path, put_aside = aside_in(tmp_path_factory.mktemp("output"))
    shown = []
    output = Output(put_aside, shown.append, room)
    lines = "".join(f"{n}\n" for n in range(sum(sizes) // 4)).encode()
    at = 0
    for size in sizes:
        output.add(lines[at : at + size])
        at += size
    output.close()
    came = lines[:at].decode()
    text = output.text()
    if len(came) <= room:
        assert text == came
        assert not path.exists()
    else:
        head, note, tail = re.fullmatch(r"(.*)\n\[(.*)\]\n(.*)", text, re.DOTALL).groups()
        assert came.startswith(f"{head}\n")
        assert came.endswith(f"\n{tail}")
        assert len(tail) > 2 * len(head)
        assert len(head) + len(tail) <= room
        gone, all_lines, offset = map(
            int, re.match(r"(\d+) of (\d+) lines.*offset=(\d+)$", note.replace(",", "")).groups()
        )
        every = came.splitlines()
        assert all_lines == len(every)
        assert every[offset - 1 : offset - 1 + gone] == every[len(head.splitlines()) :][:gone]
        assert every[offset - 1 + gone :] == tail.splitlines()
        assert path.read_text() == came
    assert "".join(shown) == came


def test_colours_and_what_was_written_over_do_not_reach_the_model(tmp_path):
    _, put_aside = aside_in(tmp_path)
    output = Output(put_aside, lambda text: None)
    output.add(b"\x1b[1;31mred\x1b[0m\r\n 10%\r 50%\r100%\ndone\x07 \x1b]0;title\x07here\n")
    output.close()
    assert output.text() == "red\n100%\ndone here\n"


def test_a_line_without_end_is_counted_in_bytes():
    assert (
        fitted("x" * 1000, 400) == f"{'x' * 100}\n[600 of 1,000 bytes left out here]\n{'x' * 300}"
    )


def test_a_full_disk_leaves_the_two_ends():
    def refuse():
        raise OSError(28, "No space left on device")

    assert "read path" not in fitted("line\n" * 1000, 400, refuse)
    assert "of 1,000 lines" in fitted("line\n" * 1000, 400, refuse)


@given(st.text(max_size=400), st.integers(40, 300))
def test_what_fits_is_not_touched_and_what_does_not_is_near_its_room(text, room):
    size = len(text.encode("utf-8", "replace"))
    short = fitted(text, room)
    if size <= room:
        assert short == text
    else:
        assert len(short.encode()) <= room + 3 * 6 + 80
