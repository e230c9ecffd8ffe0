"""docs/batch.md: every example runs, and prints what stands below it."""

from __future__ import annotations

import re
from pathlib import Path

from batch_servers import PlayedOpenAI
from mull.cli.main import parse
from mull.testing.server import Reply, ScriptedServer
from page_examples import blocks, command_lines, words_of

PAGE = Path(__file__).parents[1] / "docs" / "batch.md"
COUNTRIES = {"Oslo": "Norway", "Rome": "Italy", "Lima": "Peru"}


def answer(request):
    said = request.json["messages"][-1]["content"]
    city = re.search("Oslo|Rome|Lima", said)[0]
    text = f'{{"name": "{COUNTRIES[city]}"}}' if "JSON" in said else COUNTRIES[city]
    delta = {"reasoning_content": f"{city} is a capital.", "content": text}
    return Reply.events({"choices": [{"delta": delta, "finish_reason": "stop"}]}, "[DONE]")


def test_every_example_prints_what_is_shown(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("batch_servers.KEY", "sk-secret")
    with ScriptedServer(answer) as server, PlayedOpenAI() as provider:
        provider.is_over = False
        names = {
            "BASE_URL": server.url,
            "PROVIDER_URL": provider.url,
            "PROVIDER_IS_DONE": lambda: setattr(provider, "is_over", True),
        }
        found = blocks(PAGE)
        for at, block in enumerate(found):
            if block.kind != "python":
                continue
            exec(compile(block.text, "batch.md", "exec"), names)
            after = found[at + 1]
            assert capsys.readouterr().out == (after.text if after.kind == "text" else "")


def test_every_command_can_be_given():
    lines = [line for one in blocks(PAGE) if one.kind == "sh" for line in command_lines(one.text)]
    assert len(lines) == 3
    for line in lines:
        assert parse(words_of(line)).file == "questions.jsonl"
