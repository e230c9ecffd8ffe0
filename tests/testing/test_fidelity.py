"""The fidelity suite: its data is valid and fresh, its judge can fail, mull keeps every case."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import msgspec
import pytest
from fidelity.build import rendered
from tools.fidelity import pages, results

from mull.testing.fidelity import KINDS, AdapterProcess, Judge, load_cases, run_case
from mull.testing.fidelity.case import Case, Check, Reply, Shows
from mull.testing.fidelity.paths import values_at
from mull.testing.fidelity.peers import load_peers
from mull.testing.fidelity.verdict import Heard, Seen, judge

ADAPTERS = Path(__file__).parents[2] / "fidelity" / "adapters"
CASES = load_cases()


def run(adapter: str, cases=CASES, **environ):
    command = [sys.executable, str(ADAPTERS / adapter)]
    with Judge() as judging, AdapterProcess(command, environ=environ) as process:
        return {case.id: run_case(case, judging, process) for case in cases}


def test_the_cases_are_fresh():
    stale = [path.name for path, text in rendered().items() if path.read_text("utf-8") != text]
    assert stale == [], "run `python -m fidelity.build`"


def test_the_page_is_made_of_the_results():
    for path, text in pages().items():
        assert path.read_text("utf-8") == text, "run `python -m tools.fidelity --write`"


def test_every_result_is_of_these_cases():
    for name, result in results().items():
        assert set(result.outcomes) == {case.id for case in CASES}, f"make fidelity PEERS={name}"
    assert {mark for mark, _ in results()["mull"].outcomes.values()} == {"kept"}


def test_the_cases_are_many_and_each_has_its_report():
    assert len(CASES) >= 150
    assert len({case.id for case in CASES}) == len(CASES)
    assert {case.kind for case in CASES} == set(KINDS)
    assert {end.dialect for case in CASES for end in case.endpoints.values()} == {
        "anthropic",
        "bedrock-converse",
        "gemini",
        "openai-chat",
        "openai-responses",
    }
    for case in CASES:
        assert all(source.startswith("https://github.com/") for source in case.sources)
        assert all(step.ask in case.endpoints for step in case.steps if step.ask)
        assert set(case.replies) == set(case.endpoints)


@pytest.mark.sweep
@pytest.mark.timeout(120)
def test_mull_keeps_every_case():
    found = run("mull_adapter.py")
    assert {name: one for name, one in found.items() if one.mark != "kept"} == {}


def test_a_client_that_sends_all_back_is_refused_only_where_an_echo_is_not_enough():
    found = run("faithful_adapter.py")
    assert {name for name, one in found.items() if one.mark not in ("kept", "not claimed")} == {
        "anthropic/limit/streaming",
        "anthropic/thought-only/streaming",
        "kimi/empty-field/blocking",
        "kimi/empty-field/streaming",
    }


def of(name: str) -> Case:
    return next(case for case in CASES if case.id == name)


def heard(case: Case, *bodies: object) -> list[Heard]:
    return [Heard("a", body, case.replies["a"][at]) for at, body in enumerate(bodies)]


TWO = of("kimi/two-rounds/streaming")
SHOWN = [reply.shows for reply in TWO.replies["a"]]
TOLD = [Seen(text=shows.text, thinking="".join(shows.thoughts)) for shows in SHOWN]


def messages(*, field: str = "reasoning_content", content: str = ""):
    """The requests of two tool rounds, as a client sends them."""
    said = [
        {
            "role": "assistant",
            "content": content or None,
            field: shows.thoughts[0],
            "tool_calls": [{"id": f"call0000{at}"}],
        }
        for at, shows in enumerate(SHOWN[:2], 1)
    ]
    return [{"messages": said[:count]} for count in range(3)]


def test_a_client_that_keeps_all_passes():
    assert judge(TWO, heard(TWO, *messages()), TOLD).mark == "kept"


@pytest.mark.parametrize(
    ("change", "mark"),
    [
        ({"field": "reasoning"}, "lost"),
        ({"content": SHOWN[0].thoughts[0]}, "leaked"),
    ],
)
def test_what_comes_back_decides(change, mark):
    assert judge(TWO, heard(TWO, *messages(**change)), TOLD).mark == mark


@pytest.mark.parametrize(
    ("report", "mark"),
    [
        (Seen(text=f"<think>{SHOWN[2].thoughts[0]}</think>{SHOWN[2].text}"), "leaked"),
        (Seen(text="", thinking=f"{SHOWN[2].thoughts[0]}{SHOWN[2].text}"), "leaked"),
        (Seen(text=SHOWN[2].text), "lost"),
        (Seen(text="Another answer.", thinking=SHOWN[2].thoughts[0]), "lost"),
        (Seen(error="TypeError"), "lost"),
        (Seen(text=f" {SHOWN[2].text}\n", thinking=f"{SHOWN[2].thoughts[0]}\n"), "kept"),
    ],
)
def test_what_is_reported_decides(report, mark):
    seen = [*TOLD[:2], report]
    assert judge(TWO, heard(TWO, *messages()), seen).mark == mark


def test_a_refusal_counts_unless_the_client_repairs_it():
    first, *rest = heard(TWO, *messages())
    refused = Heard("a", {}, refusal="no")
    assert judge(TWO, [first, refused, *rest], TOLD).mark == "kept"
    assert judge(TWO, [first, refused], TOLD[:1]).mark == "refused"
    again = [first, refused, *rest]
    assert judge(TWO, again, [TOLD[0], Seen(error="no"), *TOLD[2:]]).mark == "refused"


def test_a_broken_answer_must_be_reported():
    case = of("kimi/broken-thought/streaming")
    broken, good = case.replies["a"]
    requests = [Heard("a", {"messages": []}, broken), Heard("a", {"messages": []}, good)]
    whole = Seen(text=good.shows.text, thinking="".join(good.shows.thoughts))
    assert judge(case, requests, [Seen(text=""), whole]).mark == "lost"
    assert judge(case, requests, [Seen(text="", incomplete=True), whole]).mark == "kept"
    assert judge(case, requests, [Seen(error="cut"), whole]).mark == "kept"


def test_requests_that_never_came_are_lost():
    found = judge(TWO, heard(TWO, *messages()[:1]), [TOLD[0], Seen(error="TypeError: x")])
    assert found.mark == "lost"
    assert "TypeError: x" in found.reason


BODY = {
    "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": [{"a": 1}]}]
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("", [BODY]),
        ("messages[*].role", ["user", "assistant"]),
        ("messages[role=assistant].content[*].a", [1]),
        ("messages[role!=user].(role|content)", ["assistant", [{"a": 1}]]),
        ("messages[0]", None),
        ("nothing.at[*].all", []),
    ],
)
def test_paths(path, values):
    if values is None:
        with pytest.raises(ValueError, match="not"):
            values_at(path, BODY)
    else:
        assert values_at(path, BODY) == values


def test_the_order_of_what_comes_back_matters():
    check = Check(path="m[*]", order=("a", "b"))
    case = Case(
        id="x",
        kind="order",
        title="",
        sources=("s",),
        call="blocking",
        endpoints={},
        steps=(),
        replies={},
        requests={"a": ((check,),)},
    )
    reply = Reply(shows=Shows())
    for given, mark in (("ab", "kept"), ("axb", "kept"), ("ba", "lost"), ("aab", "lost")):
        request = Heard("a", {"m": list(given)}, reply)
        assert judge(case, [request], [Seen(text="")]).mark == mark


def test_an_adapter_that_ends_or_talks_nonsense_is_told_from_one_that_loses(tmp_path):
    cases = [of("kimi/tool-round/blocking")]
    for code, said in (
        ("raise SystemExit('no such thing')", "the adapter ended: no such thing"),
        ("input(); print('{\"answers\": 1}', flush=True); input()", "Expected `array`"),
        ('input(); print(\'hello\\n{"notClaimed": "x"}\', flush=True); input()', "x"),
    ):
        file = tmp_path / "adapter.py"
        file.write_text(code)
        with Judge() as judging, AdapterProcess([sys.executable, str(file)]) as process:
            outcome = run_case(cases[0], judging, process)
        assert said in outcome.reason


def test_every_adapter_parses_and_belongs_to_a_peer():
    named = {peer.adapter for peer in load_peers().values()}
    assert named == {file.name for file in ADAPTERS.glob("*_adapter.*")}
    for file in ADAPTERS.glob("*.py"):
        ast.parse(file.read_text("utf-8"))


def test_the_schema_is_one():
    schema = msgspec.json.decode((ADAPTERS.parent / "schema.json").read_bytes())
    assert schema["type"] == "array"
    assert "Case" in schema["$defs"]
