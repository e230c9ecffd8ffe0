"""Requirements and cases that several modules meet together, by their ids."""

import io
import json
import os

import pytest

from mull.cli.main import main
from mull.history.log import Log
from mull.neutral.blocks import TextBlock, ThinkingBlock
from mull.neutral.messages import assistant, user
from mull.policy.compress.decide import decide
from mull.policy.prepare import prepare
from mull.policy.tokens import CHARACTERS
from mull.settings.layers import Settings
from mull.testing.server import Reply, ScriptedServer
from mull.tui.conversation.view import render_message
from mull.tui.screen.colour import Rgb, contrast, luminance
from mull.tui.screen.theme import theme_for
from tui.screens import cells

DARK, LIGHT = Rgb(30, 30, 46), Rgb(250, 250, 250)
MESSAGE = assistant(ThinkingBlock("Hm."), TextBlock("Four."))


def drawn(background, message=MESSAGE):
    """The styles of the thought's letters and of the answer's."""
    theme = theme_for("auto", background, "truecolor")
    found = {
        c: style for line in cells(render_message(message, theme, 40, "full")) for c, style in line
    }
    return found["H"], found["F"]


@pytest.mark.parametrize("background", [DARK, LIGHT])
def test_req_think_007_1_req_think_007_2_a_thought_is_inline_shaded_and_italic(background):
    thought, answer = drawn(background)
    assert (thought.italic, answer.italic) == (True, False)
    assert thought.bg not in (None, background)
    assert answer.bg is None


def test_req_think_007_3_the_shade_is_lighter_in_the_dark_and_darker_in_the_light():
    assert luminance(drawn(DARK)[0].bg) > luminance(DARK)
    assert luminance(drawn(LIGHT)[0].bg) < luminance(LIGHT)
    for background in (DARK, LIGHT):
        thought, _ = drawn(background)
        assert contrast(thought.fg, thought.bg) >= 4.5


def thoughtful():
    pieces = [{"reasoning_content": "Air scatters."}, {"content": "Because of air."}]
    chunks = [{"choices": [{"index": 0, "delta": p, "finish_reason": None}]} for p in pieces]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return Reply.events(*chunks, end, "[DONE]")


@pytest.mark.parametrize("is_shown", [True, False])
def test_req_think_007_4_include_in_response_hides_thoughts_at_the_terminal(
    is_shown, capsys, monkeypatch
):
    read_end, write_end = os.pipe()
    os.write(write_end, b"Why?\n")
    os.close(write_end)
    with ScriptedServer([thoughtful()]) as server, open(read_end) as typed:
        monkeypatch.setattr("sys.stdin", typed)
        place = ["-m", "openai-compatible/any", "--base-url", server.url, "--tools", "none"]
        setting = f"reasoning.includeInResponse={str(is_shown).lower()}"
        assert main([*place, "--plain", "--set", setting]) == 0
    out = capsys.readouterr().out
    assert "Because of air." in out
    assert ("Air scatters." in out) == is_shown


def test_r04_thoughts_stay_out_of_a_pipe_and_are_in_its_json(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with ScriptedServer([thoughtful()] * 3) as server:
        place = ["ask", "-m", "openai-compatible/any", "--base-url", server.url, "Why?"]
        assert main(place) == 0
        assert capsys.readouterr().out == "Because of air.\n"
        assert main([*place, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["text"], found["thinking"]) == ("Because of air.", "Air scatters.")
        assert main([*place, "--stream-json"]) == 0
        events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    said = {kind: [e["text"] for e in events if e["type"] == kind] for kind in ("thinking", "text")}
    assert said == {"thinking": ["Air scatters."], "text": ["Because of air."]}


@pytest.mark.parametrize(("strip", "compressed"), [("none", True), ("all", False)])
def test_req_think_005_2_compression_goes_by_the_effective_count(strip, compressed, target):
    log = Log([user("q"), assistant(ThinkingBlock("thought " * 4000), TextBlock("a")), user("q")])
    said = {"reasoning.includeInContext": True, "reasoning.stripFromContext": strip}
    snapshot = Settings().snapshot(request={**said, "context.limit": 16_000})
    prepared = prepare(log, snapshot, target, counter=CHARACTERS)
    assert prepared.raw_tokens > 10_000
    assert (decide(prepared, snapshot) is not None) == compressed


@pytest.fixture
def target():
    from mull.catalog.resolve import resolve

    return resolve("openai-compatible/any", base_url="http://127.0.0.1:1/v1")
