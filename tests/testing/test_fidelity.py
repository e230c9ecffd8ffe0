"""The fidelity suite: its data is valid and fresh, its judge can fail, mull keeps every case."""

from __future__ import annotations

import ast
import re
import runpy
import sys
from itertools import pairwise, product
from pathlib import Path
from urllib.request import Request, urlopen

import msgspec
import pytest
from fidelity.build import rendered
from hypothesis import given
from hypothesis import strategies as st
from tools.fidelity import pages, results

from mull.testing.fidelity import KINDS, AdapterProcess, Judge, load_cases, load_pairs, run_case
from mull.testing.fidelity.case import Case, Check, Reply, Shows
from mull.testing.fidelity.invoke import as_converse
from mull.testing.fidelity.paths import values_at
from mull.testing.fidelity.peers import load_peers
from mull.testing.fidelity.verdict import Heard, Seen, judge
from mull.testing.rules.bedrock import check_bedrock

ADAPTERS = Path(__file__).parents[2] / "fidelity" / "adapters"
CASES = load_cases()
PAIRS = load_pairs()


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
        crosses = load_peers()[name].crosses_apis
        assert set(result.outcomes) == {case.id for case in CASES}, f"make fidelity PEERS={name}"
        assert set(result.pairs) == {pair.id for pair in PAIRS if crosses}
    assert {mark for mark, _ in results()["mull"].outcomes.values()} == {"kept"}
    assert {mark for mark, _ in results()["mull-gateway"].pairs.values()} == {"kept"}


def test_mull_is_measured_as_it_comes():
    assert load_peers()["mull"].environ == {}
    assert "settings" not in (ADAPTERS / "mull_adapter.py").read_text("utf-8")


def test_the_cases_are_many_and_each_has_its_report():
    assert len(CASES) >= 150
    assert len({case.id for case in CASES}) == len(CASES)
    assert {case.kind for case in [*CASES, *PAIRS]} == set(KINDS)
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


def test_the_pairs_join_every_api_to_every_other():
    apis = {"anthropic", "gemini", "openai-chat", "openai-responses"}
    joined = {
        (pair.client.dialect, pair.endpoints["a"].dialect, pair.client.forgets, pair.call)
        for pair in PAIRS
    }
    assert joined == set(product(apis, apis, (False, True), ("blocking", "streaming")))
    assert len(PAIRS) == len(joined)
    assert all(source.startswith("https://") for pair in PAIRS for source in pair.sources)


CALL_ID = re.compile(r'"(?:call_id|id|toolUseId)":"(c[0-9a-f]{7}\d)"')


def call_ids(case: Case) -> set[str]:
    return set(CALL_ID.findall(msgspec.json.encode(case.replies).decode()))


def test_no_two_cases_share_the_id_of_a_call_or_what_carries_a_thought():
    """A gateway may remember them."""
    owner: dict[str, str] = {}
    for case in [*CASES, *PAIRS]:
        wanted = [check for requests in case.requests.values() for one in requests for check in one]
        orders = [way.order or () for check in wanted for way in (check.any_of or (check,))]
        carriers = {mark for order in orders for mark in order if mark.startswith("b3BhcXVl")}
        assert call_ids(case) or len(case.replies["a"]) < 3
        for value in carriers | call_ids(case):
            assert owner.setdefault(value, case.id) == case.id
    assert len(owner) > len(CASES)


def test_a_gateway_may_choose_the_ids_of_calls_but_nothing_else():
    asked = [check for pair in PAIRS for checks in pair.requests["a"] for check in checks]
    ways = [way for check in asked for way in (check.any_of or (check,))]
    ids = {name for pair in PAIRS for name in call_ids(pair)}
    assert not any(mark in ids for way in ways for mark in way.order or ())
    pair = next(one for one in PAIRS if one.id == "messages-to-kimi/faithful/blocking")
    thoughts = [reply.shows.thoughts for reply in pair.replies["a"]]
    last = pair.requests["a"][-1]
    assert last[0].order == tuple(text for (text,) in thoughts[:3])


SAME = [
    pair
    for pair in PAIRS
    if pair.client.dialect == pair.endpoints["a"].dialect and not pair.client.forgets
]
"""Pairs that need no gateway."""


def test_a_client_that_sends_all_back_keeps_the_pairs_of_one_api_without_a_gateway():
    found = run("faithful_adapter.py", SAME)
    assert len(found) == 8
    assert {outcome.mark for outcome in found.values()} == {"kept"}


def test_a_client_that_forgets_loses_them():
    forgotten = [
        msgspec.structs.replace(pair, client=msgspec.structs.replace(pair.client, forgets=True))
        for pair in SAME
    ]
    found = run("faithful_adapter.py", forgotten)
    assert {outcome.mark for outcome in found.values()} <= {"refused", "lost"}


def evidence():
    return msgspec.json.decode((ADAPTERS.parent / "evidence.json").read_bytes())


def test_every_rule_has_its_evidence():
    used = {end.rules for case in CASES for end in case.endpoints.values()}
    assert {name for rule in evidence()["refuses"] for name in rule["rules"]} == used
    wanted = {case.id.partition("/")[0] for case in CASES}
    assert {one["endpoint"] for one in evidence()["wants"]} == wanted
    for one in (*evidence()["refuses"], *evidence()["wants"]):
        assert one["evidence"]
        assert all(url.startswith("https://") for url in one["evidence"])


def test_nobody_is_refused_without_evidence():
    known = [rule["says"] for rule in evidence()["refuses"]]
    reasons = {
        reason
        for result in results().values()
        for mark, reason in result.outcomes.values()
        if mark == "refused"
    }
    assert {one for one in reasons if not any(says in one for says in known)} == set()


@pytest.mark.sweep
@pytest.mark.timeout(120)
def test_mull_keeps_every_case():
    found = run("mull_adapter.py")
    assert {name: one for name, one in found.items() if one.mark != "kept"} == {}


@pytest.mark.sweep
@pytest.mark.timeout(120)
def test_mulls_gateway_keeps_every_pair():
    pytest.importorskip("granian")
    found = run("mull_gateway_adapter.py", [pair for pair in PAIRS if pair.call == "streaming"])
    assert {name: one for name, one in found.items() if one.mark != "kept"} == {}


def test_a_client_that_sends_all_back_is_refused_only_where_an_echo_is_not_enough():
    found = run("faithful_adapter.py")
    assert {name for name, one in found.items() if one.mark not in ("kept", "not claimed")} == {
        "anthropic/limit/streaming",
        "anthropic/thought-only/streaming",
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
            "tool_calls": reply.document["choices"][0]["message"]["tool_calls"],
        }
        for reply, shows in zip(TWO.replies["a"], SHOWN[:2], strict=False)
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


@pytest.mark.parametrize("case", [*CASES, *PAIRS], ids=lambda case: case.id)
def test_a_client_that_asks_nothing_keeps_nothing(case):
    assert judge(case, [], []).mark == "lost"
    assert judge(case, [], [Seen(error="500 oops")] * 9).mark == "lost"


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


def fails(check: Check, body: object) -> bool:
    reply = Reply(shows=Shows())
    case = Case(
        id="x",
        kind="order",
        title="",
        sources=("s",),
        call="blocking",
        endpoints={},
        steps=(),
        replies={"a": (reply,)},
        requests={"a": ((check,),)},
    )
    request = Heard("a", body, reply)
    return judge(case, [request], [Seen(text="")]).mark != "kept"


def test_the_order_of_what_comes_back_matters():
    check = Check(path="m[*]", order=("a", "b"))
    for values, lost in (("ab", False), ("axb", False), ("ba", True), ("aab", True)):
        assert fails(check, {"m": list(values)}) == lost


@given(st.text(min_size=1), st.data())
def test_a_joined_text_may_be_divided_but_not_changed(text, data):
    def divided(told):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(told)), max_size=4)))
        edges = [0, *cuts, len(told)]
        parts = [{"type": "text", "text": told[a:b]} for a, b in pairwise(edges)]
        return {"m": [{"thinking": parts}]}

    check = Check(path="m[*].thinking", joined=text)
    assert not fails(check, divided(text))
    at = data.draw(st.integers(0, len(text) - 1))
    assert fails(check, divided(text[:at] + text[at + 1 :]))
    assert fails(check, divided(text + text))
    apart = [{"thinking": [{"text": text[:at]}]}, {"thinking": [{"text": text[at:] + "."}]}]
    assert fails(check, {"m": apart})
    assert fails(check, {"m": [{"thinking": text}]})
    assert fails(check, {"m": [{"thinking": [{"text": text}, {"text": None}]}]})


STREAMED = [
    (case.id, reply)
    for case in CASES
    for name, replies in case.replies.items()
    if case.endpoints[name].dialect == "gemini"
    for reply in replies
    if reply.stream
]


def test_a_gemini_stream_is_also_an_array_of_the_same_values():
    assert STREAMED
    for name, reply in STREAMED:
        stream, array = b"".join(reply.pieces()), b"".join(reply.array_pieces())
        lines = [line[5:] for line in stream.splitlines() if line.startswith(b"data:")]
        whole = array + b"]" if reply.broken else array
        assert msgspec.json.decode(whole) == [msgspec.json.decode(line) for line in lines], name
        inside = {piece[-1] >= 0x80 for piece in reply.array_pieces()}
        assert (True in inside) == ("/utf8-cut/" in name or "/byte-by-byte/" in name)


def test_the_line_ends_of_a_stream_are_those_of_its_provider():
    for case in CASES:
        for name, replies in case.replies.items():
            google = case.endpoints[name].dialect == "gemini"
            for stream in (reply.stream for reply in replies if reply.stream):
                if "/crlf/" not in case.id:
                    assert stream.count("\r\n") == (stream.count("\n") if google else 0), case.id


@pytest.mark.parametrize("query", ["?alt=sse", "?key=x&alt=sse", "", "?key=x"])
def test_a_gemini_stream_comes_as_it_is_asked_for(query):
    case = of("gemini/tool-round/streaming")
    tool = {"functionDeclarations": [{"name": "look"}]}
    body = {"contents": [{"role": "user", "parts": [{"text": "q"}]}], "tools": [tool]}
    with Judge() as judging:
        judging.begin(case)
        model = case.endpoints["a"].model
        url = f"{judging.address('a')}/v1beta/models/{model}:streamGenerateContent{query}"
        with urlopen(Request(url, msgspec.json.encode(body))) as response:
            kind, given = response.headers["content-type"], response.read()
    reply = case.replies["a"][0]
    wanted = reply.pieces() if "alt=sse" in query else reply.array_pieces()
    assert given == b"".join(wanted)
    assert kind.startswith("text/event-stream" if "alt=sse" in query else "application/json")


def test_invoke_model_is_judged_as_converse_is():
    case = of("bedrock/tool-round/streaming")
    given = [reply.invoke.document["content"] for reply in case.replies["a"]]
    call = given[0][-1]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "nothing there"}
    asked = {"role": "user", "content": "q"}
    tail = [
        {"role": "assistant", "content": given[0]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": given[1]},
        asked,
    ]
    about = {"max_tokens": 8000, "thinking": {"type": "enabled", "budget_tokens": 2000}}
    about["tools"] = [{"name": "look", "input_schema": {"type": "object"}}]
    whole = [[asked], [asked, *tail[:2]], [asked, *tail]]
    bodies = [as_converse({**about, "messages": messages}) for messages in whole]
    shown = [reply.shows for reply in case.replies["a"]]
    told = [Seen(text=one.text, thinking="".join(one.thoughts)) for one in shown]
    assert judge(case, heard(case, *bodies), told).mark == "kept"
    given[0][0]["signature"] = "another"
    bodies = [as_converse({**about, "messages": messages}) for messages in whole]
    assert judge(case, heard(case, *bodies), told).mark == "lost"
    assert check_bedrock(bodies[1]) is None
    given[0].pop(0)
    assert "Expected `thinking`" in check_bedrock(as_converse({**about, "messages": whole[1]}))


def test_an_empty_id_in_a_later_delta_does_not_replace_the_real_one():
    join = runpy.run_path(str(ADAPTERS / "line.py"))["join"]
    deltas = [
        {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{"}}]},
        {"tool_calls": [{"index": 0, "id": "", "function": {"name": "", "arguments": "}"}}]},
    ]
    (call,) = join(deltas)["tool_calls"]
    assert call == {"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{}"}}


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
