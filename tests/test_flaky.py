"""`make flaky`: a test that holds every second time is found, counted and named."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import pytest_timeout
from hypothesis import given, settings
from hypothesis import strategies as st
from tools import flaky

from time_limits import SecondLimit

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


HUNG = """
import faulthandler, subprocess, sys, threading

faulthandler.enable()
stray = [sys.executable, "-ISc", "import sys; sys.stdin.read()"]
subprocess.Popen(stray, stdin=sys.stdin, start_new_session=True)
print("began", flush=True)

def waits_for_ever():
    threading.Event().wait()

if len(sys.argv) > 1:
    waits_for_ever()
"""


@pytest.mark.parametrize(("words", "last"), [([], ""), (["x"], "  1 of 1  pytest itself (hung)\n")])
def test_a_run_that_hangs_is_ended_and_says_where(capsys, monkeypatch, words, last):
    """Also if something it started holds what it wrote to, which is no reason to wait."""
    monkeypatch.setattr(flaky, "_PYTEST", (sys.executable, "-ISc", HUNG))
    ours, stdin = os.pipe(), os.dup(0)
    os.dup2(ours[0], 0)
    try:
        options = ["--runs", "1", "--loaded", "0", "--limit", "2" if words else "50"]
        assert flaky.main([*options, *words]) == bool(words)
    finally:
        os.dup2(stdin, 0)
        for one in (*ours, stdin):
            os.close(one)
    said = capsys.readouterr().out
    assert said.endswith(f"1 runs, {len(words)} with failures{':' * len(words)}\n{last}")
    assert ("in waits_for_ever" in said) == bool(words)


LIMITED = """
import time_limits

def pytest_configure(config):
    config.pluginmanager.register(time_limits.SecondLimit(config, seconds=1.0))
"""
HANGS = """
import asyncio
import threading

import pytest

def test_before():
    pass

@pytest.mark.timeout(timeout=1)
def test_that_no_exception_ends():
    asyncio.run(asyncio.to_thread(threading.Event().wait))

def test_after():
    pass
"""


def test_every_test_here_has_both_limits(pytestconfig, request):
    assert 0 < pytest_timeout._get_item_settings(request.node).timeout <= 60
    assert any(isinstance(one, SecondLimit) for one in pytestconfig.pluginmanager.get_plugins())


def run_pytest(folder, *words):
    (folder / "pytest.ini").write_text("[pytest]\ntimeout = 30\n")
    (folder / "conftest.py").write_text(LIMITED)
    command = [sys.executable, "-m", "pytest", "-q", *words]
    world = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    return subprocess.run(command, cwd=folder, env=world, capture_output=True, check=False)


def test_a_test_that_swallows_its_limit_says_where_it_hangs(tmp_path):
    """An event loop waits for its threads before it lets the exception of a time limit out."""
    (tmp_path / "test_hangs.py").write_text(HANGS)
    done = run_pytest(tmp_path)
    assert done.returncode == 1
    assert b"in test_that_no_exception_ends" in done.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_process_that_ends_at_a_test_fails_it_once_and_the_others_run(tmp_path, workers):
    """xdist alone would run that test again and again, or wait for nothing at the end."""
    (tmp_path / "test_hangs.py").write_text(HANGS)
    for name in "abcxyz":
        (tmp_path / f"test_{name}.py").write_text("def test_1(): pass\ndef test_2(): pass\n")
    done = run_pytest(tmp_path, "-n", workers, "--dist", "loadfile")
    assert done.returncode == 1
    said = done.stdout.decode()
    assert said.count("FAILED test_hangs.py::test_that_no_exception_ends") == 1
    assert "1 failed, 14 passed" in said


def test_properties_try_the_same_cases_whatever_code_is_loaded(tmp_path, monkeypatch):
    """Or a run depends on which tests shared its process, and fails by luck."""

    def tried():
        seen = []

        @settings(database=None, max_examples=300)
        @given(st.lists(st.integers()))
        def collect(values):
            seen.append(values)

        collect()
        return seen

    before = tried()
    numbers = list(range(100_000, 100_200))
    (tmp_path / "loaded_meanwhile.py").write_text(f"NUMBERS = {numbers}")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("loaded_meanwhile")
    assert tried() == before
