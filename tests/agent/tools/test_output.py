"""However much a command prints, little of it is kept."""

import os
import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from mull.agent.tools.run import Output


def test_memory_does_not_grow_with_the_output(tmp_path):
    path = tmp_path / "aside"
    output = Output(lambda: (os.open(path, os.O_WRONLY | os.O_CREAT), path), lambda text: None)
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
@given(st.lists(st.integers(0, 40_000), max_size=12))
def test_the_beginning_and_the_end_are_kept_whatever_the_pieces(tmp_path_factory, sizes):
    path = tmp_path_factory.mktemp("output") / "aside"
    shown = []
    output = Output(lambda: (os.open(path, os.O_WRONLY | os.O_CREAT), path), shown.append)
    lines = "".join(f"{n}\n" for n in range(sum(sizes) // 4)).encode()
    at = 0
    for size in sizes:
        output.add(lines[at : at + size])
        at += size
    output.close()
    came = lines[:at]
    text = output.text()
    if len(came) <= 64 << 10:
        assert text == came.decode()
        assert not path.exists()
    else:
        head, note, tail = text.split("\n[")[0], text.count("bytes left out"), text.split("]\n")[1]
        assert note == 1
        assert came.decode().startswith(f"{head}\n")
        assert came.decode().endswith(f"\n{tail}")
        assert path.read_bytes() == came
    assert "".join(shown).startswith(came[: 200 << 10].decode())
