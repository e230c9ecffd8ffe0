"""The attacks are in their table, tell what broke, and keep their section of the page apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.attack import breaks, table
from tools.attack.ground import MOST_KEPT, Attack, Ran, Server, crash_of, home, saying

from mull.neutral.events import TextDelta


def trials(*found):
    return lambda: iter(found)


def test_there_are_attacks_of_every_kind():
    attacks = table.all_attacks()
    assert {one.kind.lower() for one in attacks} == set(table.KINDS)
    assert len({one.name for one in attacks}) == len(attacks) >= 45


def test_a_row_has_broken_if_one_trial_has_or_none_could_be_made():
    held = table.carry_out(Attack("Tools", "a", trials(("x", None), ("y", None))))
    broke = table.carry_out(Attack("Tools", "b", trials(("x", None), ("y", "it ran"))))
    assert (held.tried, held.result) == (2, "held")
    assert (broke.tried, broke.result, broke.broke) == (2, "broke", ("y: it ran",))
    assert table.carry_out(Attack("Tools", "c", trials())).result == "broke"

    def fails():
        yield "x", None
        raise OSError("no room")

    assert table.carry_out(Attack("Tools", "d", fails)).result == "broke"


def test_the_section_is_renewed_and_the_rest_of_the_page_stays():
    rows = [table.Row("Tools", "a", 2, ()), table.Row("MCP", "b", 3, ("x",))]
    page = table.written_into("# Page\n\nmore\n", table.section(rows))
    assert "**2 attacks, 5 trials: 1 held, 1 broke.**" in page
    again = table.written_into(page + "\n## After\n", table.section(rows[:1]))
    assert again.startswith("# Page\n\nmore\n")
    assert again.endswith("\n## After\n")
    assert "| MCP |" not in again
    assert again.count("## Attacks") == 1
    assert table.with_section_of(page, "# Other\n").startswith("# Other\n\n<!-- attacks")
    assert table.with_section_of("none", "# Other\n") == "# Other\n"


def test_the_page_tells_of_the_attacks_that_there_are():
    told = re.findall(r"^\| (\w+) \| (.+) \| [\d,]+ \| held \|$", table.PAGE.read_text(), re.M)
    assert told == [(one.kind, one.name) for one in table.all_attacks()]


def test_a_command_runs_in_a_home_of_its_own_and_its_end_is_judged():
    with home() as place, Server(saying("openai-chat", TextDelta("fine"))) as server:
        ran = place.ask("openai-chat", server.url)
        assert (ran.status, ran.out.strip()) == (0, "fine")
        assert crash_of(ran, 0) is None
        assert crash_of(ran, 2).startswith("exit status 0")
        assert b"canary-key" in server.requests[0]
    assert not place.top.exists()
    assert crash_of(Ran(None, "", "", 0, 60.0)) == "it hung for 60 s"
    assert "traceback" in crash_of(Ran(1, "", "Traceback (most recent call last)\nx", 0, 1.0))


def test_the_memory_of_a_command_is_its_own_and_not_that_of_who_starts_it():
    ballast = b"x" * (MOST_KEPT + 1)
    with home() as place:
        ran = place.mull("--version")
    assert len(ballast) > MOST_KEPT > ran.memory > 0
    assert crash_of(ran, 0) is None


def test_a_command_that_hangs_is_killed_with_all_it_started():
    with home() as place:
        ran = place.mull("wire", "decode", "openai-chat", stdin=None, patience=0.001)
    assert crash_of(ran).startswith("it hung")


ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("test", sorted({test for one in breaks.BREAKS for test in one.tests}))
def test_what_broke_once_has_a_test_in_the_default_run(test):
    path, _, name = test.partition("::")
    before, found, _ = (ROOT / path).read_text().partition(f"\ndef {name}(")
    assert found
    assert not re.search(r"mark\.(slow|live)", f"{before}\n".rpartition("\n\n\n")[2])
    assert not re.search(r"^pytestmark.*\b(slow|live)\b", before, re.MULTILINE)


def test_what_broke_once_names_attacks_that_there_are_and_is_on_the_page():
    attacks = {one.name for one in table.all_attacks()}
    assert {one.attack for one in breaks.BREAKS} - {""} <= attacks
    page = breaks.PAGE.read_text()
    assert breaks.written_into(page) == page, "run `python -m tools.attack.breaks`"


def test_whoever_writes_the_rest_of_the_page_keeps_both_sections():
    page = breaks.PAGE.read_text()
    kept = table.with_section_of(page, "# Other\n")
    assert kept.count("## Attacks") == kept.count("## What broke once") == 1
    assert kept.endswith("<!-- breaks: end -->\n")
