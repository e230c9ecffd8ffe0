"""`make flaky`: a test that holds every second time is found, counted and named."""

import sys
from pathlib import Path

from tools import flaky

EVERY_SECOND_TIME = """
import sys
from pathlib import Path

count = Path(sys.argv[1])
count.write_text(count.read_text() + "x")
if len(count.read_text()) % 2:
    sys.exit(print("2 passed in 0.01s"))
print("FAILED tests/a.py::test_now_and_then[a] - assert 1 == 2")
sys.exit("1 failed, 1 passed in 0.01s")
"""


def test_what_fails_now_and_then_is_counted_and_named(tmp_path, capsys, monkeypatch):
    count = tmp_path / "count"
    count.touch()
    monkeypatch.setattr(flaky, "_PYTEST", (sys.executable, "-ISc", EVERY_SECOND_TIME))
    assert flaky.main(["--runs", "3", "--loaded", "1", str(count)]) == 1
    said = capsys.readouterr().out
    assert "run 1 of 3: all passed" in said
    assert "run 2 of 3: 1 failed" in said
    assert "run 1 of 1 under load: 1 failed" in said
    assert said.splitlines()[-2:] == [
        "4 runs, 2 with failures:",
        "  2 of 4  tests/a.py::test_now_and_then[a]",
    ]
    assert flaky.main(["--runs", "1", "--loaded", "0", str(count)]) == 0
    assert capsys.readouterr().out.endswith("1 runs, 0 with failures\n")


def test_a_run_that_breaks_down_is_a_failure():
    assert flaky.failures("INTERNALERROR> boom", 3) == ["pytest itself (status 3)"]
    assert flaky.failures("2 passed", 0) == []
    both = "FAILED tests/a.py::test_x - assert 1 == 2\nERROR tests/b.py::test_y\n"
    assert flaky.failures(both, 1) == ["tests/a.py::test_x", "tests/b.py::test_y"]


def test_the_target_takes_other_numbers():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    assert "RUNS ?= 20\nLOADED ?= 5\n" in makefile
    assert "tools.flaky --runs $(RUNS) --loaded $(LOADED) $(TESTS)" in makefile
