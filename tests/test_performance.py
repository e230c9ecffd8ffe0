"""The performance page is what the measurements say, and says where they fall short."""

import json
import re
import sys
from types import ModuleType
from xml.etree import ElementTree

import msgspec
import pytest
from bench import __main__ as bench
from bench import page, peers, record
from bench.page import decisive, render
from bench.page_plots import PLOTS, drawn
from bench.plots import Dot, Group, dots
from bench.record import Result, load_results, place, save, stamped
from bench.report import Figure, number, target_of
from bench.road import Table
from bench.sections import GOALS, SECTIONS, Goal
from tools import comparison

RESULTS = load_results()
SVG = "{http://www.w3.org/2000/svg}"


def result(*figures, **other):
    given = {
        "about": "How it is measured.",
        "date": "2026-01-02 03:04 UTC",
        "commit": "abcdef12",
        "machine": "Linux x86_64, 2 cores",
        "python": "CPython 3.11.7",
        "load": (0.1, 0.2),
        "seconds": 3.0,
        "figures": figures,
    }
    return Result(**given | other)


def road(*extra):
    return result(
        Figure("openai-chat: limit, async", 2.0, "µs CPU"),
        Figure("openai-chat: limit, sync", 1.5, "µs CPU"),
        Figure("openai-chat: mull, async", 5.0, "µs CPU", "limit, async", 2.5, "≤ 3"),
        Figure("openai-chat: mull, sync", 6.0, "µs CPU", "limit, sync", 4.0, "≤ 3"),
        Figure("openai-chat: openai 3.0, sync", 100.0, "µs CPU", "mull", 20.0),
        Figure("openai-chat: openai 3.0, async", 90.0, "µs CPU", "mull", 18.0),
        Figure("openai-chat: litellm 1.0, async", 900.0, "µs CPU", "mull", 180.0),
        Figure("openai-chat, 2,000 a second: mull, async", 900.0, "µs CPU", "limit", 1.1),
        *extra,
    )


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("≤ 3", ("≤", 3.0, "")),
        ("≥ 3,000", ("≥", 3000.0, "")),
        ("≥ 1.7×", ("≥", 1.7, "×")),
        ("≤ 2 s", ("≤", 2.0, "s")),
        ("≤ 10 µs", ("≤", 10.0, "µs")),
    ],
)
def test_a_target_is_read(text, read):
    assert target_of(text) == read


@pytest.mark.parametrize("text", ["flat", "3", "≤", "≤ 3 or so", "about 3×"])
def test_what_is_no_target_is_told(text):
    with pytest.raises(ValueError, match="is no target"):
        target_of(text)


@pytest.mark.parametrize(
    ("figure", "met"),
    [
        (Figure("x", 9.0, "ms", "y", 3.0, "≤ 3"), True),
        (Figure("x", 9.0, "ms", "y", 3.1, "≤ 3"), False),
        (Figure("x", 9.0, "ms", "y", 7.9, "≥ 8"), False),
        (Figure("x", 2001.0, "ms", "", None, "≤ 2 s"), False),
        (Figure("x", 1999.0, "ms CPU", "y", 50.0, "≤ 2 s"), True),
        (Figure("x", 3001.0, "/s", "", None, "≥ 3,000"), True),
        (Figure("x", 9.0, "ms", "y", 3.0), None),
        (Figure("x", 0.0, "ms", "y", 0.0, "≥ 8"), False),
    ],
)
def test_a_figure_meets_its_target_or_not(figure, met):
    assert figure.met is met


def test_a_target_that_a_figure_cannot_be_held_to_is_told():
    with pytest.raises(ValueError, match="measured in 'MB'"):
        _ = Figure("x", 1.0, "MB", target="≤ 2 s").met
    with pytest.raises(ValueError, match="no ratio"):
        _ = Figure("x", 1.0, "MB", target="≤ 2×").met


def test_what_was_measured_is_told_in_the_unit_of_its_target():
    assert Figure("x", 1310.0, "ms CPU", "y", 50.0, "≤ 2 s").measured == "1.31 s"
    assert Figure("x", 1310.0, "ms CPU", "y", 50.0, "≤ 60").measured == "50.0×"


def test_numbers_have_three_digits():
    assert [number(n) for n in (12345.6, 99.94, 9.994, 0.1234)] == [
        "12,346",
        "99.9",
        "9.99",
        "0.12",
    ]


@pytest.fixture
def rendered(tmp_path):
    (tmp_path / "road.md").write_text("Because of the sockets.\n")
    budgets = tmp_path / "budgets.json"
    budgets.write_text(json.dumps({"3.11": {"decode a chunk": 1200.4}}))
    return lambda **results: render(results, tmp_path, budgets)


def test_the_summary_shows_the_worst_figure_of_a_target(rendered):
    text = rendered(road=road())
    row = next(line for line in text.splitlines() if line.startswith(f"| {GOALS[0].what} |"))
    assert "| ≤ 3 | 4.00× (openai-chat: mull, sync) | ✗ |" in row
    assert "On this page 1 of 2 figures with a target meet it" in text
    assert f"| {GOALS[2].what} | | not measured | | |" in text
    assert "| decode a chunk | 1,200 |" in text


def test_a_note_is_shown_only_while_a_target_is_missed(rendered):
    assert "### Why a target is missed\n\nBecause of the sockets." in rendered(road=road())
    met = tuple(figure for figure in road().figures if figure.met is not False)
    assert "Because of the sockets." not in rendered(road=result(*met))
    assert "### Why a target is missed\n\nThe reason is not known yet." in rendered(write=road())


def test_the_headings_of_a_note_are_below_those_of_the_page(rendered, tmp_path):
    note = "# Why\n\n## Sockets\n\n```sh\n# a comment\n```\n\n### Slow ones\n"
    (tmp_path / "road.md").write_text(note)
    shown = rendered(road=road()).partition("### Why a target is missed\n\n")[2]
    assert shown.startswith("#### Sockets\n\n```sh\n# a comment\n```\n\n##### Slow ones\n\n## ")


def test_the_page_is_of_the_run_that_most_sections_are_from(rendered):
    old = {name: result(commit="11111111") for name in ("decode", "write")}
    text = rendered(road=road(), **old)
    assert "commit `11111111`" in text
    [odd] = re.findall(r"some of the peers: (.+)", text)
    assert odd == "[End to end over loopback, per chunk](#end-to-end-over-loopback-per-chunk)."


def test_a_run_unlike_the_newest_is_marked(rendered):
    older = result(date="2026-01-01 00:00 UTC", commit="11111111", quick=True, peers="openai")
    text = rendered(road=road(), decode=older)
    assert (
        "**This section: a quick run, less exact; only the peers openai; another commit.**" in text
    )
    assert f"Not all of this is from one full run. {text.partition('one full run. ')[2]}" in text
    assert "[Decoding a stream, per chunk](#decoding-a-stream-per-chunk)" in text
    assert "This section:" not in rendered(road=road())
    assert "None of this is from one full run" in rendered(road=result(quick=True))


def test_what_was_left_out_is_said(rendered):
    assert "Left out: litellm (no wheel)." in rendered(
        road=result(left_out=("litellm (no wheel)",))
    )


def test_a_page_without_measurements_says_so(rendered):
    assert "Nothing has been measured yet." in rendered()


def test_every_link_of_the_page_leads_to_a_heading(rendered):
    text = rendered(**{name: road() for name in SECTIONS})
    heads = {
        re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-")
        for h in re.findall("^## (.*)", text, re.M)
    }
    assert set(re.findall(r"\]\(#([^)]*)\)", text)) <= heads


def test_a_plot_has_a_dot_for_each_system_and_a_line_for_each_power_of_ten():
    picture = dots("Cost", "µs", [Group("a", [Dot("mull", 5, "mull"), Dot("x & y", 500, "peer")])])
    drawing = ElementTree.fromstring(picture)
    circles = [one for one in drawing.iter(f"{SVG}circle") if one.find(f"{SVG}title") is not None]
    lines = [one for one in drawing.iter(f"{SVG}line") if one.get("class") == "grid"]
    first, *_, last = (float(one.get("x1")) for one in lines)
    reached = [(float(one.get("cx")) - first) / (last - first) for one in circles]
    assert reached == [pytest.approx(log / 3, abs=0.01) for log in (0.699, 2.699)]
    words = {text.text for text in drawing.iter(f"{SVG}text")}
    assert {"mull", "others"} <= words
    assert "the limit" not in words
    assert {"mull", "x & y", "5.00", "500", "1", "10", "100", "1,000", "µs"} <= words


def test_a_value_at_a_power_of_ten_is_drawn_and_nothing_is_not():
    measured = [Dot("mull", 10, "mull"), Dot("x", 10, "peer"), Dot("nothing", 0, "peer")]
    picture = dots("Cost", "µs", [Group("a", measured)])
    words = [text.text for text in ElementTree.fromstring(picture).iter(f"{SVG}text")]
    assert words.count("10.0") == 2
    assert "nothing" not in words


def test_the_plot_of_the_road_takes_the_cheaper_way_of_each_peer():
    picture = drawn("speed-end-to-end", {"road": road()})
    words = [
        text.text
        for text in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    ]
    shown = [word for word in words if word.endswith("sync")]
    assert shown == ["limit, async", "mull, async", "openai 3.0, async", "litellm 1.0, async"]


class Asked:
    """A client whose request takes 5 ms, and whose chunk takes so many microseconds."""

    def __init__(self, name, chunk):
        self.name = self.label = name
        self.chunk, self.ways = chunk, {("openai-chat", "sync"): None}

    def cpu(self, dialect, url, way, least):
        count = url.rpartition("/")[2].removesuffix("-paced")
        return 5e-3 + int(count) * self.chunk * 1e-6


@pytest.mark.parametrize("what", ["stream", "paced"])
def test_a_chunk_costs_the_same_however_many_share_a_request(what):
    table = Table("openai-chat", "openai-chat")
    table.measure([Asked("mull", 2.0), Asked("openai 3.0", 20.0)], "http://x", what, ("sync",))
    mull, peer = table.figures()
    assert (mull.value, peer.value) == (pytest.approx(2.0), pytest.approx(20.0))
    assert peer.ratio == pytest.approx(10.0)


def test_the_plot_of_the_start_tells_imports_commands_and_prompts_apart():
    figures = [
        Figure("python, ms CPU", 15.0, "ms CPU"),
        Figure("openai: from openai import OpenAI, ms CPU", 900.0, "ms CPU"),
        Figure("mull --version, ms CPU", 30.0, "ms CPU"),
        Figure("mull --version, ms", 99.0, "ms"),
        Figure("prompt: mull, ms CPU", 120.0, "ms CPU"),
    ]
    picture = drawn("speed-start", {"startup": result(*figures)})
    words = [text.text for text in ElementTree.fromstring(picture).iter(f"{SVG}text")]
    shown = ["Imports", "python", "15.0", "from openai import OpenAI", "900", "Commands"]
    assert [word for word in words if word in shown] == shown
    assert "99.0" not in words


@pytest.mark.parametrize("name", PLOTS)
def test_nothing_is_drawn_of_nothing(name):
    assert drawn(name, {}) == ""
    assert drawn(name, {PLOTS[name].section: result()}) == ""


def test_every_target_in_the_results_can_be_judged():
    for measured in RESULTS.values():
        for figure in measured.figures:
            assert figure.met in (True, False, None)


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.what)
def test_every_target_of_the_project_is_measured(goal):
    assert goal.section in SECTIONS
    assert decisive(goal, RESULTS), f"no figure of {goal.section} decides {goal.what!r}"


@pytest.mark.parametrize("name", PLOTS)
def test_every_plot_is_drawn_from_the_results(name):
    assert ElementTree.fromstring(drawn(name, RESULTS)) is not None


def test_every_section_has_a_module_and_results_of_its_own():
    assert {file.stem for file in page.HERE.glob("*.py")} >= SECTIONS.keys()
    assert RESULTS.keys() == SECTIONS.keys()
    assert {file.stem for file in (page.HERE / "notes").glob("*.md")} <= SECTIONS.keys()


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A bench with one section, whose results are kept elsewhere and whose page is not written."""
    module = ModuleType("bench.fake", "What is measured.")
    module.run = lambda: [Figure("x", 1.23456789, "ms", "y", 2.0, "≤ 3")]
    monkeypatch.setitem(sys.modules, "bench.fake", module)
    monkeypatch.setattr(bench, "SECTIONS", {"fake": "A section"})
    for module_with_folders in (bench, record):
        monkeypatch.setattr(module_with_folders, "FOLDER", tmp_path)
        monkeypatch.setattr(module_with_folders, "PARTIAL", tmp_path / "partial")
    monkeypatch.setattr(record, "QUICK", False)
    monkeypatch.setattr(bench, "CHOSEN", frozenset())
    monkeypatch.setattr(bench, "commit_now", lambda: "abcdef12")
    monkeypatch.setattr(record, "commit_now", lambda: "abcdef12")
    monkeypatch.delenv("PEERS", raising=False)
    return module, tmp_path


def test_a_section_that_is_measured_alone_keeps_its_figures(kept, capsys):
    assert bench.main(["fake", "--no-page"]) == 0
    (measured,) = load_results(kept[1]).values()
    assert measured.about == "What is measured."
    assert measured.figures == (Figure("x", 1.2346, "ms", "y", 2.0, "≤ 3"),)
    assert "1.23 ms  x  2.00× y  ≤ 3  met" in capsys.readouterr().err


def test_a_run_is_resumed_with_what_this_commit_lacks(kept, monkeypatch):
    module, folder = kept
    assert bench.main(["fake", "--no-page"]) == 0
    module.run = lambda: pytest.fail("measured again")
    monkeypatch.setattr(bench, "QUICK", False)
    assert bench.main(["--resume", "--no-page"]) == 0
    before = load_results(folder)["fake"]
    save("fake", msgspec.structs.replace(before, commit="11111111"), folder)
    with pytest.raises(pytest.fail.Exception, match="measured again"):
        bench.main(["--resume", "--no-page"])


def test_a_quick_run_replaces_neither_results_nor_pages(kept, monkeypatch):
    module, folder = kept
    assert bench.main(["fake", "--no-page"]) == 0
    before = (folder / "fake.json").read_bytes()
    monkeypatch.setattr(record, "QUICK", True)
    monkeypatch.setattr(bench, "QUICK", True)
    monkeypatch.setattr(bench.docs, "write", lambda: pytest.fail("pages were written"))
    module.run = lambda: [Figure("x", 2.0, "ms")]
    assert bench.main(["fake"]) == 0
    assert (folder / "fake.json").read_bytes() == before
    assert load_results(folder / "partial")["fake"].quick
    assert (folder / "partial" / "performance.md").read_text().startswith("# Performance")


@pytest.mark.parametrize(
    ("new", "last", "replaces"),
    [
        (result(), None, True),
        (result(), result(quick=True), True),
        (result(quick=True), None, False),
        (result(peers="openai"), result(), False),
        (result(left_out=("litellm (no wheel)",)), result(), False),
        (result(left_out=("litellm (no wheel)",)), result(left_out=("litellm (gone)",)), True),
        (result(left_out=("litellm (no wheel)",)), result(quick=True), True),
        (
            result(left_out=("x 1.2.1, sync (4 pieces)",)),
            result(left_out=("x 1.2, sync (4)",)),
            True,
        ),
        (result(left_out=("x 1.2, async (4)",)), result(left_out=("x 1.2, sync (4)",)), False),
    ],
)
def test_a_run_that_says_less_does_not_replace_the_last(new, last, replaces):
    assert place(new, last) == (record.FOLDER if replaces else record.PARTIAL)


def test_an_unknown_peer_is_told(monkeypatch, capsys):
    monkeypatch.setattr(bench, "CHOSEN", frozenset({"litelm"}))
    with pytest.raises(SystemExit):
        bench.main(["catalog"])
    assert "PEERS names no peer: litelm; did you mean litellm?" in capsys.readouterr().err


def test_an_interrupt_ends_a_run_without_a_traceback(kept, capsys):
    def interrupted():
        raise KeyboardInterrupt

    kept[0].run = interrupted
    assert bench.main(["fake"]) == 130
    assert "interrupted; the sections that are done are kept" in capsys.readouterr().err


def test_a_section_that_fails_is_told_and_the_others_are_measured(kept, monkeypatch, capsys):
    monkeypatch.setattr(bench, "SECTIONS", {"fake": "A section", "broken": "Another"})
    measured = []
    monkeypatch.setattr(bench, "_apart", lambda name: measured.append(name) or name != "fake")
    assert bench.main(["--no-page"]) == 1
    assert measured == ["fake", "broken"]
    assert "fake failed: its last results are kept" in capsys.readouterr().err


def test_an_unknown_section_is_told(capsys):
    with pytest.raises(SystemExit):
        bench.main(["rode"])
    assert "unknown: rode; known: road, " in capsys.readouterr().err


def test_the_circumstances_of_a_run_are_kept(monkeypatch):
    monkeypatch.setenv("PEERS", "openai")
    made = stamped("x", [Figure("a", 1 / 3, "ms")], 0.0, 1.26, ["one (why)", "one (why)"])
    assert (made.peers, made.left_out, made.load[0]) == ("openai", ("one (why)",), 1.3)
    assert made.figures == (Figure("a", 0.33333, "ms"),)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", made.date)


def test_peers_are_chosen_and_a_quick_look_installs_none(monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "LEFT_OUT", [])
    monkeypatch.setattr(peers, "QUICK", True)
    monkeypatch.setenv("MULL_FIDELITY_CACHE", str(tmp_path))
    monkeypatch.setattr(peers, "CHOSEN", frozenset({"litellm", "nobody"}))
    assert [peers.peer_python(name) for name in ("openai", "litellm", "nobody")] == [None] * 3
    assert peers.LEFT_OUT == [
        "litellm (not installed, and a quick run installs nothing)",
        "nobody (the fidelity suite does not have it)",
    ]


def outcomes(kept, lost, other):
    marks = ["kept"] * kept + ["lost"] * lost + ["not claimed"] * other
    return {str(at): (mark, "") for at, mark in enumerate(marks)}


def test_the_readme_says_what_the_fidelity_suite_found():
    known = comparison.load_peers()
    found = {
        "openai": outcomes(1, 3, 6),
        "litellm": outcomes(6, 4, 0),
        "mull": outcomes(10, 0, 0),
        "forgetful": outcomes(0, 10, 0),
        "mull-gateway": outcomes(10, 0, 0),
    }
    kept, lost = ("kept", ""), ("lost", "why")
    crossed = {"chat-to-kimi/faithful/blocking": kept, "chat-to-kimi/forgetful/blocking": lost}
    text = comparison.fidelity_text(found, {"mull-gateway": crossed}, known)
    assert "holds 10 conversations" in text
    assert "| mull | 10 of 10 | litellm | 6 of 10 | openai | 1 of 4 |" in text
    assert "forgetful |" not in text
    assert "| `mull serve` | 1 of 1 | 0 of 1 |" in text


def test_the_readme_says_what_a_chunk_costs():
    asked = Figure("mull ask, whole, ms CPU", 150.0, "ms CPU", "python", 8.1, "≤ 9")
    text = comparison.speed_text({"road": road(), "startup": result(asked)})
    assert "takes 150 ms of CPU time: 8.10 times an empty Python program." in text
    assert (
        "| Chat Completions, async | 2.00 µs | 5.00 µs (2.50× the limit) |"
        " openai 3.0: 90.0 µs (18.0× mull) |" in text
    )


def test_the_readme_says_where_less_is_gained():
    text = comparison.speed_text(
        {
            "road": road(
                Figure("a, 2,000 a second: x 1, sync", 9.0, "µs CPU", "mull, sync", 1.86),
                Figure("a, 2,000 a second: x 1, async", 9.0, "µs CPU", "mull, async", 2.94),
                Figure("a, a document: x 1, document", 9.0, "µs CPU", "mull, document", 0.89),
            )
        }
    )
    assert (
        "beside mull, the vendors' SDKs take 1.9 to 2.9 times the CPU time where chunks come one"
        " at a time (2,000 a second) and 0.9 times for a response of 200 kB in one piece." in text
    )


def test_the_page_of_the_gateway_says_how_many_are_needed():
    gateway = result(
        Figure("CPU of an agent's request, 107 kB: mull, chat", 4000.0, "µs CPU"),
        Figure("CPU of a streamed chunk: mull, chat", 8.0, "µs CPU"),
        Figure("CPU of a streamed chunk: litellm-proxy 1.0", 900.0, "µs CPU"),
    )
    memory = result(
        Figure("memory after 40,000 requests: mull", 100.0, "MB"),
        Figure("memory for each open stream: mull", 50.0, "kB"),
    )
    text = comparison.sizes_text({"gateway": gateway, "memory": memory})
    assert "a response of 500 chunks takes 8.00 ms in all" in text
    assert "| Cores, one worker each | 1 | 8 |" in text
    assert "| Memory, at 30 s a response | 0.23 GB | 2.30 GB |" in text
    assert comparison.sizes_text({}) == "`make bench` measures it."


def test_a_goal_is_decided_by_figures_with_a_target_only():
    assert [f.name for f in decisive(Goal("x", "road", "mull"), {"road": road()})] == [
        "openai-chat: mull, sync",
        "openai-chat: mull, async",
    ]
