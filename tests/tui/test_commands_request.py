"""/context, /compress, /stats and /why: what a request holds, leaves out, costs, and why."""

from __future__ import annotations

import msgspec
import pytest

from mull.history.log import Condensed, Entry, Summary
from mull.neutral.blocks import TextBlock, ThinkingBlock
from mull.neutral.errors import LocalError, SettingError
from mull.neutral.messages import Origin, assistant, user
from mull.neutral.usage import Usage
from mull.tui.commands.stats import by_model
from mull.tui.conversation.standing import Standing
from mull.tui.screen.colour import Rgb
from mull.tui.screen.theme import theme_for
from mull.tui.text.lines import plain_text
from tui.fronts import FakeFront, answer, at_terminal, drive

COUNTS = {
    "prompt_tokens": 2000,
    "completion_tokens": 300,
    "total_tokens": 2300,
    "completion_tokens_details": {"reasoning_tokens": 100},
}


def test_context_draws_parts_that_fill_the_bar_and_add_up(tmp_path):
    with at_terminal(tmp_path, answer("An answer. " * 2000, "A thought. " * 3000)) as talk:
        text = drive(talk, "A question. " * 1000, "/context")
        prepared = talk.session.prepared()
    lines = text.split("\n")
    assert lines[0].startswith(prepared.meter)
    assert len(lines[1]) == 59
    amounts = {
        line[3:25].strip(): int(line.split()[-2].replace(",", ""))
        for line in lines[2:]
        if line.endswith("%")
    }
    assert amounts["thinking sent back"] == prepared.parts.thinking > 5000
    assert amounts["your messages"] == prepared.parts.user
    assert sum(amounts.values()) == prepared.window
    assert lines[1].count("a") < lines[1].count(".")
    assert set(lines[1]) <= set("abcdef.-")


def test_context_tells_what_is_not_sent_and_why(tmp_path):
    with at_terminal(tmp_path, answer("yes", "a long thought " * 50)) as talk:
        text = drive(talk, "q", "/set reasoning.stripFromContext all", "/context")
    assert "Not sent: " in text
    assert "tokens of stored thinking." in text
    assert "  · 1 stored thought not sent, as set" in text


def test_context_says_what_the_provider_counted(tmp_path):
    counts = {**COUNTS, "prompt_tokens": 30_000}
    with at_terminal(tmp_path, answer("yes", usage=counts)) as talk:
        text = drive(talk, "word " * 20_000, "/context")
        ours = talk.session.prepared().tokens
    assert "The provider counted 30,000" in text
    used, window = text.split(" ")[0].split("/")
    assert 20_000 < ours < 21_000
    assert 30_000 < int(used) < 30_100, "the provider's count, and the answer since"
    assert int(window) == 204_800
    rows = {
        line[3:25].strip(): int(line.split()[-2].replace(",", ""))
        for line in text.split("\n")
        if line.endswith("%")
    }
    assert rows["provider counts more"] == int(used) - ours
    assert rows["your messages"] < 21_000
    assert sum(rows.values()) == int(window)


def test_context_in_colours_has_no_letters_in_its_bar(tmp_path):
    front = FakeFront(60, theme_for("dark", Rgb(20, 20, 24), "truecolor"))
    with at_terminal(tmp_path, answer("yes"), front=front) as talk:
        bar = drive(talk, "q", "/context").split("\n")[1]
    assert set(bar) == {"█", "░", " "}
    assert len(bar) == 59


def test_context_lists_instructions(tmp_path):
    from mull.agent.toolbox import Toolbox
    from mull.store.config import Config

    (tmp_path / "AGENTS.md").write_text("Speak softly.")
    box = _toolbox(Toolbox, Config(), tmp_path)
    with at_terminal(tmp_path, toolbox=box) as talk:
        text = " ".join(drive(talk, "/context").split())
    assert "Instructions" in text
    assert "AGENTS.md, 13 characters" in text.replace("AGENTS. md", "AGENTS.md")


def _toolbox(toolbox, config, folder):
    from mull.agent.setup import load_setup

    try:
        return toolbox(config, folder)
    except AttributeError:
        return toolbox(load_setup(), folder, trusted=True)


# /compress


def test_compress_and_undo(tmp_path):
    turns = [answer(f"answer {n} " + "word " * 400) for n in range(6)]
    with at_terminal(tmp_path, *turns) as talk:
        questions = [f"question {n} " + "word " * 400 for n in range(6)]
        before = talk.session.prepared
        drive(talk, *questions)
        whole = before().tokens
        text = drive(talk, "/compress truncate")
        assert text.startswith("Compressed ")
        assert "/compress undo reverts it" in " ".join(text.split())
        assert before().tokens < whole
        assert "Undid the last summary" in drive(talk, "/compress undo")
        assert before().tokens == whole
        with pytest.raises(LocalError, match="there is no summary"):
            drive(talk, "/compress undo")


def test_one_value_for_the_total_its_parts_the_status_line_and_compression(tmp_path):
    """A provider that counts half of what we do, as for text that our vocabulary does not fit."""
    half = [{**COUNTS, "prompt_tokens": 900 * n} for n in range(1, 7)]
    turns = [answer(f"answer {n} " + "word " * 400, usage=half[n]) for n in range(6)]
    with at_terminal(tmp_path, *turns) as talk:
        drive(talk, *(f"question {n} " + "word " * 1500 for n in range(6)))
        before = talk.session.prepared().estimate
        assert before < 0.7 * talk.session.prepared().tokens
        told = " ".join(drive(talk, "/compress truncate").split())
        after = talk.session.prepared().estimate
        assert f"{before:,} → {after:,} tokens" in told
        line = plain_text([Standing().line(talk.session, None, "full", talk.front.theme, 200, 0)])
        assert f" · {after / 1000:.1f}k/" in line
        heading, *lines = drive(talk, "/context").split("\n")
        assert heading.startswith(f"{after}/")
        amounts = {
            row[3:25].strip(): int(row.split()[-2].replace(",", ""))
            for row in lines
            if row.endswith("%")
        }
        kept = ("free", "kept for the answer")
        assert sum(n for name, n in amounts.items() if name not in kept) == after


def test_compress_refuses_an_unknown_strategy_and_an_empty_session(tmp_path):
    with at_terminal(tmp_path) as talk:
        with pytest.raises(SettingError, match="middle-out, truncate or one-shot"):
            drive(talk, "/compress quickly")
        with pytest.raises(LocalError, match="nothing to compress"):
            drive(talk, "/compress")


def test_what_cannot_be_compressed_is_told_as_a_warning(tmp_path):
    with at_terminal(tmp_path, answer("one"), answer("two")) as talk:
        drive(talk, "q", "r", "/compress truncate")
    assert talk.warnings[0].startswith("Not compressed: ")


# /stats


def test_stats_by_turn_and_by_model_with_unknowns(tmp_path):
    replies = (answer("one", usage=COUNTS), answer("two"), answer("three", usage=COUNTS))
    with at_terminal(tmp_path, *replies) as talk:
        text = drive(talk, "a", "b", "/model zai/glm-4.5", "c", "/stats")
    lines = text.split("\n")
    assert lines[0].startswith("3 turns, cost ≥ $0.00")
    assert "  read            ≥ 4,000" in lines
    assert "  of it thinking    ≥ 200" in lines
    assert "  read     9?9" in lines
    rows = [line.split() for line in lines]
    assert ["2", "?", "?", "?", "?"] in rows
    assert ["1", "2k", "300", "100", "$0.00186"] in rows
    assert text.index("zai/glm-4.7") < text.index("2 answers, read ≥ 2k, written ≥ 300")
    assert text.index("zai/glm-4.5") < text.index("1 answer, read 2k, written 300")


def test_stats_of_nothing_say_so(tmp_path):
    with at_terminal(tmp_path) as talk:
        assert drive(talk, "/stats") == "No requests yet."


def test_many_turns_are_drawn_together_and_the_last_are_listed(tmp_path):
    with at_terminal(tmp_path) as talk:
        for n in range(100):
            talk.session.log.append(user(f"q{n}"))
            usage = Usage(input=100 + n, output=10)
            talk.session.log.append(assistant(TextBlock("a"), usage=usage))
        text = drive(talk, "/stats")
    assert "90 earlier turns" in text
    chart = text.split("\n")[text.split("\n").index("By turn") + 1]
    assert chart.startswith("  read     ")
    assert len(chart.split()[1]) == 40
    assert "unknown\n" in text, "an answer that nobody signed"


def test_side_calls_belong_to_the_model_that_made_them():
    small = Origin("zai", "openai-chat", "glm-4.5-air")
    usage = Usage(input=5, output=2)
    records = [
        Entry(user("q")),
        Entry(assistant(ThinkingBlock("t"), usage=usage)),
        Summary(0, 2, "s", by=small, usage=usage),
        Condensed(1, 0, "t", by=small, usage=None),
    ]
    found = by_model(records, lambda message: 1.0 if message.usage else None)
    assert {name: [row.output for row in rows] for name, rows in found.items()} == {
        "unknown": [2],
        "zai/glm-4.5-air": [2, None],
    }


# /why


def test_why_tells_what_was_asked_sent_and_changed(tmp_path):
    with at_terminal(tmp_path, answer("one", usage=COUNTS), answer("two")) as talk:
        text = drive(
            talk, "a", "/thinking effort xhigh", "/set reasoning.stripFromContext all", "b", "/why"
        )
    assert text.startswith("The last request\n  to       zai/glm-4.7 (openai-chat)")
    assert (
        """\
reasoning.effort
  asked for  xhigh
  became     on
  sent as    {"thinking": {"type": "enabled"}}
"""
        in text
    )
    changed = text[text.index("Changed") :]
    assert "⚠ This model's thinking is on or off" in changed
    assert "1 stored thought not sent" in changed
    assert changed.index("⚠") < changed.index("·"), "what is worth attention comes first"


def test_why_before_anything_was_sent_speaks_of_the_next_request(tmp_path):
    with at_terminal(tmp_path) as talk:
        assert drive(talk, "/why").startswith("Nothing sent yet; the next request")


def test_why_body_is_the_body_that_was_sent_and_shows_no_key(tmp_path):
    with at_terminal(tmp_path, answer("one"), answer("two")) as talk:
        text = drive(talk, "a", "b " * 500, "/why body")
        sent = talk.server.requests[1]
        assert sent.headers["authorization"] == "Bearer k"
        assert "authorization: Bearer ***" in text
        assert text.startswith(f"POST {talk.server.url}/chat/completions")
        assert "(600 more characters)" in " ".join(text.split())
        drive(talk, "/why body out.json")
        assert msgspec.json.decode((tmp_path / "out.json").read_bytes()) == sent.json
        with pytest.raises(LocalError, match="already exists"):
            drive(talk, "/why body out.json")
        with pytest.raises(LocalError, match="/why body"):
            drive(talk, "/why not")


def test_headers_of_the_users_own_are_named_and_masked(tmp_path, monkeypatch):
    import os
    from pathlib import Path

    config = Path(os.environ["MULL_CONFIG_DIR"])
    config.mkdir(parents=True)
    secret = "an-opaque-password"
    config.joinpath("config.toml").write_text(
        f'[providers.zai]\nheaders = {{ "X-Gate" = "{secret}" }}\n'
    )
    with at_terminal(tmp_path, answer("one")) as talk:
        text = drive(talk, "a", "/why body")
        assert talk.server.requests[0].headers["x-gate"] == secret
    assert "x-gate: ***" in text
    assert secret not in text
