"""docs/testing.md: every example runs and prints what stands below it, and the tables are whole."""

import re
from pathlib import Path

import pytest

from mull import testing
from mull.agent import shared
from mull.agent.engine import Engine
from mull.testing.providers import PROVIDERS

TEXT = (Path(__file__).parents[2] / "docs/testing.md").read_text()
EXAMPLES = re.findall(
    r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", TEXT, re.MULTILINE | re.DOTALL
)


@pytest.fixture
def _own_engine(monkeypatch):
    engine = Engine()
    monkeypatch.setattr(shared, "engine", lambda: engine)
    yield
    shared.loop().run(engine.close)


@pytest.mark.usefixtures("_own_engine")
def test_every_example_prints_what_is_shown(capsys):
    assert len(EXAMPLES) == TEXT.count("```python") > 5
    names = {}
    for code, shown in EXAMPLES:
        exec(compile(code, "docs/testing.md", "exec"), names)
        assert capsys.readouterr().out == shown, code


def section(head):
    return TEXT.partition(f"\n## {head}\n")[2].partition("\n## ")[0]


def test_the_table_of_providers_is_whole():
    assert re.findall(r"^\| `([\w-]+)` \|", section("The providers"), re.MULTILINE) == [*PROVIDERS]


def test_what_the_server_tells_is_there():
    told = re.findall(r"^\| `(\w+)` \|", section("What the server records"), re.MULTILINE)
    with testing.StrictServer("kimi") as server:
        assert all(hasattr(server, name) for name in told)
    assert set(told) == {
        "answered",
        "called",
        "doubts",
        "issued",
        "refusals",
        "requests",
        "returned",
        "untested",
        "url",
        "variables",
    }


def test_the_public_names_are_frozen():
    assert testing.__all__ == [
        "CUT",
        "RESET",
        "STALL",
        "Answered",
        "Call",
        "Doubt",
        "Fault",
        "FaultProxy",
        "Gate",
        "Pause",
        "Recorded",
        "Refused",
        "Reply",
        "Say",
        "ScriptedServer",
        "StrictServer",
        "Think",
        "UntestedWarning",
        "refusal",
    ]
    assert all(getattr(testing, name) is not None for name in testing.__all__)
