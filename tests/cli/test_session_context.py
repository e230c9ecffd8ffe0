"""`mull sessions context`, `compress` and `rename --auto` as a person runs them."""

from __future__ import annotations

import json
import os

import pytest

from mull.cli.main import main
from mull.history.log import Entry, Summary, Undone
from mull.neutral.blocks import TextBlock, ThinkingBlock
from mull.neutral.messages import assistant, user
from mull.neutral.usage import Usage
from mull.testing.server import ScriptedServer
from session_samples import turn
from side_calls import chat

KIMI, UNKNOWN = "moonshotai/kimi-k2-thinking", "mine/model"
COMMAND = "sessions"


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("MOONSHOT_API_KEY", "k")


def long_talk(store, tmp_path, url=None, model=KIMI):
    made = store.create(folder=os.path.realpath(tmp_path), model=model, base_url=url)
    records = [r for n in range(6) for r in turn(f"question {n} " + "so " * 400, "hm " * 50, "ok")]
    store.append(made.id, 0, *records)
    return made.id


def test_the_meter_of_a_stored_session_with_its_parts(run, store, tmp_path):
    session = long_talk(store, tmp_path)
    first, *rest = run("context", session).splitlines()
    used, window = first.split(" ")[0].split("/")
    assert window == "262144"
    parts = [line.split() for line in rest if line.startswith("  ")]
    assert [" ".join(part[:-1]) for part in parts] == [
        "your messages",
        "answers",
        "thinking sent back",
    ]
    assert sum(int(part[-1].replace(",", "")) for part in parts) == int(used)
    assert f"Stored: {int(used):,} tokens by mull's own count." in rest
    assert "Cost so far: unknown." in rest


def test_a_setting_changes_the_meter_at_once_and_nothing_stored(run, store, tmp_path):
    session = long_talk(store, tmp_path)
    before = store.load(session)
    all_of_it = json.loads(run("context", session, "--json"))
    less = json.loads(run("context", session, "--json", "--set", "reasoning.stripFromContext=all"))
    assert less["parts"]["thinking"] == 0 < all_of_it["parts"]["thinking"]
    assert less["effective"] == all_of_it["effective"] - all_of_it["parts"]["thinking"]
    assert less["raw"] == all_of_it["raw"]
    assert less["thinkingLeftOut"] == all_of_it["parts"]["thinking"]
    small = run("context", session, "--set", "context.limit=50000").splitlines()[0]
    assert small.startswith(f"{all_of_it['effective']}/50000 ")
    assert store.load(session) == before


def test_what_is_not_known_is_said_to_be_unknown(run, store, tmp_path):
    long_talk(store, tmp_path, "http://127.0.0.1:9", UNKNOWN)
    first, *rest = run("context").splitlines()
    assert first.endswith("/?")
    assert "Context window: unknown; set it with context.limit." in rest
    assert json.loads(run("context", "--json"))["cost"] is None


def test_the_cost_and_the_providers_own_count_are_told(run, store, tmp_path):
    made = store.create(folder=os.path.realpath(tmp_path), model=KIMI)
    with_origin = assistant(
        ThinkingBlock("t", "reasoning_content"),
        TextBlock("a"),
        origin=_origin(),
        usage=Usage(input=1_000_000, output=0),
    )
    store.append(made.id, 0, Entry(user("q")), Entry(with_origin))
    lines = run("context").splitlines()
    assert "Cost so far: $0.60." in lines
    assert any("The provider counted 1,000,000 tokens in the last request." in x for x in lines)


@pytest.mark.parametrize("model", [KIMI, "openai/gpt-5.2", "anthropic/claude-opus-4-5"])
@pytest.mark.parametrize("reported", [None, 1, 9, 4_203, 1_000_000])
@pytest.mark.parametrize("shortened", [False, True], ids=["whole", "summarised"])
def test_what_the_provider_counts_beyond_our_count_is_a_part_of_its_own(
    run, store, tmp_path, model, reported, shortened
):
    """Proxies add prompts of their own, which are nobody's messages."""
    made = store.create(folder=os.path.realpath(tmp_path), model=model)
    usage = None if reported is None else Usage(input=reported, output=1)
    answer = assistant(TextBlock("Yes."), origin=_origin(model), usage=usage)
    earlier = [Entry(user("so " * 200)), Entry(assistant(TextBlock("ok")))] if shortened else []
    summary = [Summary(0, 1, "A summary.", "user")] if shortened else []
    store.append(made.id, 0, *earlier, Entry(user("Q1")), Entry(answer), *summary)
    told = json.loads(run("context", "--json"))
    assert sum(told["parts"].values()) == told["effective"] == int(told["meter"].split("/")[0])
    own = sum(told["counted"].values())
    assert told["parts"]["surplus"] == max(told["effective"] - own, 0)
    if told["parts"]["surplus"]:
        assert {**told["parts"], "surplus": 0} == told["counted"]
    first, *rest = run("context").splitlines()
    rows = dict(line.rsplit(maxsplit=1) for line in rest if line.startswith("  "))
    assert sum(int(count.replace(",", "")) for count in rows.values()) == told["effective"]
    assert first.startswith(told["meter"])
    assert ("  provider counts more" in rows) == (told["parts"]["surplus"] > 0)
    assert (told["parts"]["surplus"] > 4_000) == ((reported or 0) > 4_000)
    elsewhere = json.loads(run("context", "--json", "-m", "zai/glm-4.6"))
    assert elsewhere["parts"] == elsewhere["counted"]
    assert sum(elsewhere["parts"].values()) == elsewhere["effective"] < 100


def _origin(model=KIMI):
    from mull.agent.engine import Engine

    return Engine().target(model).origin


def test_context_of_a_session_that_runs_elsewhere(run, store, tmp_path):
    session = long_talk(store, tmp_path)
    with store.hold(session):
        assert "/262144" in run("context", session)


def test_compress_by_command_and_undo(run, call, store, tmp_path):
    with ScriptedServer([chat("All six were answered with ok.")]) as server:
        session = long_talk(store, tmp_path, server.url)
        before = run("context", session)
        status, said, _ = call("compress", session)
    assert (status, said[:11]) == (0, "Compressed ")
    summary = store.load(session)[1][-1]
    assert isinstance(summary, Summary)
    assert "All six were answered with ok." in summary.text
    assert run("context", session) != before
    assert run("compress", session, "--undo").startswith("Undid the last summary")
    assert isinstance(store.load(session)[1][-1], Undone)
    assert run("context", session) == before
    assert "has no summary to undo" in run("compress", session, "--undo", status=2)


def test_another_model_summarises_if_one_is_named(store, tmp_path, capsys):
    with ScriptedServer([chat("All six were answered with ok.")]) as server:
        session, config = long_talk(store, tmp_path), tmp_path / "own.toml"
        config.write_text(f'[providers.moonshotai]\nbase_url = "{server.url}"\n')
        words = "compress", session, "-m", "moonshotai/kimi-k2.5", "--config", str(config)
        assert main(["sessions", *words]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("Compressed ")
    assert "to moonshotai/kimi-k2.5" in said.err
    assert [request.json["model"] for request in server.requests] == ["kimi-k2.5"]
    assert store.info(session).model == KIMI


def test_truncate_asks_no_model(run, store, tmp_path):
    session = long_talk(store, tmp_path, "http://127.0.0.1:9")
    assert run("compress", "--strategy", "truncate").startswith("Compressed ")
    assert store.load(session)[1][-1].strategy == "truncate"


@pytest.mark.parametrize(
    ("replies", "why"),
    [
        ([chat("", thought="hm"), chat("", thought="hm")], "it was empty, only thoughts"),
        ([chat("", calls=True, finish="tool_calls")], "it called a tool instead of answering"),
    ],
    ids=["empty", "call"],
)
def test_g02_no_summary_changes_nothing_and_says_why(run, store, tmp_path, replies, why):
    with ScriptedServer(replies) as server:
        session = long_talk(store, tmp_path, server.url)
        before = store.load(session)[1]
        assert why in run("compress", session, status=2)
    assert store.load(session)[1] == before


def test_a_session_that_runs_elsewhere_is_not_compressed(run, store, tmp_path):
    session = long_talk(store, tmp_path)
    with store.hold(session):
        assert f"session {session} is open" in run("compress", session, status=2)


def test_g05_a_title_by_the_sessions_model(run, store, tmp_path):
    with ScriptedServer([chat('"Six short questions."', thought="a title, hm")]) as server:
        session = long_talk(store, tmp_path, server.url)
        assert run("rename", session, "--auto") == (
            f"Session {session} is now called Six short questions.\n"
        )
    assert store.info(session).name == "Six short questions"


def test_g05_no_title_is_better_than_a_thought(run, store, tmp_path):
    with ScriptedServer([chat("", thought="We need a title", finish="length")]) as server:
        session = long_talk(store, tmp_path, server.url)
        assert f"{KIMI} gave no title, and nothing was changed" in run(
            "rename", session, "--auto", status=2
        )
    assert store.info(session).name is None


def test_a_long_title_is_cut_to_what_a_name_may_be(run, store, tmp_path):
    with ScriptedServer([chat("word " * 15)]) as server:
        session = long_talk(store, tmp_path, server.url)
        run("rename", session, "--auto")
    assert store.info(session).name == ("word " * 15)[:63] + "…"


@pytest.mark.parametrize("words", [[], ["name", "--auto"]])
def test_rename_wants_a_name_or_a_model_that_makes_one(run, store, tmp_path, words):
    session = long_talk(store, tmp_path)
    assert "give a name, or --auto" in run("rename", session, *words, status=2)
