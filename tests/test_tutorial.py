"""docs/tutorial.md: every example runs, in order, with a server in the small model's place."""

import re
from pathlib import Path

import pytest

from mull.agent import shared
from mull.agent.engine import Engine
from mull.client.access import Access
from mull.testing.server import Reply, ScriptedServer
from page_examples import blocks, command_lines, is_only_parsed, run_page

PAGE = Path(__file__).parents[1] / "docs/tutorial.md"


def answer(request):
    pieces = [{"reasoning_content": "Air scatters."}, {"content": "Because of air."}]
    chunks = [{"choices": [{"index": 0, "delta": p, "finish_reason": None}]} for p in pieces]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return Reply.events(*chunks, end, "[DONE]")


def test_every_example_prints_what_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    engine = Engine()
    monkeypatch.setattr(shared, "engine", lambda: engine)
    with ScriptedServer(answer) as server:
        monkeypatch.setattr("mull.agent.engine._embedded_way", lambda: Access(server.url))
        assert run_page(PAGE, monkeypatch, capsys) > 10
        shared.loop().run(engine.close)
    asked = [request.json["messages"][-1]["content"] for request in server.requests]
    assert asked.count("Why is the sky blue?") == 6
    assert "And on Mars?" in asked
    assert (tmp_path / "sky.html").read_text().count("Because of air.") == 2


def test_what_needs_a_key_is_a_small_part():
    lines = [line for b in blocks(PAGE) if b.kind == "sh" for line in command_lines(b.text)]
    assert lines
    assert sum(map(is_only_parsed, lines)) < len(lines) / 2


def test_every_section_is_in_the_list():
    text = PAGE.read_text()
    listed = re.findall(r"^\d\. \[(.+)\]", text, re.MULTILINE)
    assert listed == re.findall(r"^## (.+)$", text, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_conversation_at_the_terminal_can_be_held_with_the_small_model(
    tmp_path, monkeypatch, capsys
):
    from page_examples import run_conversation

    monkeypatch.chdir(tmp_path)
    (talk,) = [block.text for block in blocks(PAGE) if block.kind == "terminal"]
    run_conversation(talk, monkeypatch)
    said = capsys.readouterr().out
    assert "Thought for" in said
    assert "The last request" in said
