"""What the README says is what happens.

Every command and the Python of the tour run here against a server on loopback that stands in for
all models; the slow tests run those of the small model for real.
"""

import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mull.cli.main import main
from mull.client.access import Access
from mull.testing.server import Reply, ScriptedServer

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?:\$ )?((?:echo ('[^']*'|\"[^\"]*\") \| )?mull [^#]*)")
COMMANDS = [
    found[1].strip()
    for _, text in BLOCKS
    for line in text.splitlines()
    if (found := _COMMAND.match(line))
]
ASKS = [command for command in COMMANDS if "mull ask" in command]
(CODE,) = [text for kind, text in BLOCKS if kind == "python"]


def chunk(delta, finish=None):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def answer(request):
    if request.path == "/messages":
        said = {"content": [{"type": "text", "text": "No."}], "stop_reason": "end_turn"}
        return Reply.json({"type": "message", "role": "assistant", **said})
    return Reply.events(
        chunk({"reasoning_content": "Air scatters."}),
        chunk({"content": "Because of air."}),
        chunk({}, "stop"),
        "[DONE]",
    )


@pytest.fixture
def server(monkeypatch):
    with ScriptedServer(answer) as server:
        monkeypatch.setattr("mull.agent.engine._embedded_way", lambda: Access(server.url))
        yield server


@pytest.fixture
def run(monkeypatch):
    def run(command, *more):
        before, _, after = command.rpartition(" | ")
        piped = shlex.split(before)[1] if before else ""
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(piped.encode())))
        return main([*shlex.split(after)[1:], *more])

    return run


@pytest.mark.parametrize("command", [c for c in COMMANDS if c not in ASKS])
def test_the_commands_of_the_tour_work(command, run, capsys):
    assert run(command) == 0
    said = capsys.readouterr()
    assert said.out or "--local" in command


def test_the_questions_of_the_tour_are_answered(run, server, capsys):
    assert len(ASKS) > 5
    for command in ASKS:
        own = "--base-url" in command or "local/" in command or "--continue" in command
        if "--base-url" in command:
            command = re.sub(r"http://\S+", server.url, command)
        assert run(command, *([] if own else ["--base-url", server.url])) == 0
        assert re.search("Because of air|No[.]", capsys.readouterr().out)
    sent = [request.json for request in server.requests]
    assert [message["content"] for message in sent[1]["messages"]][::2] == [
        "Why is the sky blue?",
        "And at night?",
    ]
    assert sent[2]["chat_template_kwargs"] == {"enable_thinking": False}
    assert sent[5]["thinking"]["type"] == "enabled"


@pytest.mark.parametrize("start", ["mull models show", "echo"])
def test_the_shown_output_is_the_output(start, run, capsys):
    shown = next(text for _, text in BLOCKS if text.startswith(f"$ {start}"))
    command, *lines = shown.splitlines()
    run(command.removeprefix("$ "))
    out = capsys.readouterr().out.splitlines()
    for line in lines:
        if line.strip() != "...":
            at = out.index(line)
            out = out[at + 1 :]


def test_the_python_of_the_tour_runs(server, capsys):
    exec(compile(CODE, "README", "exec"), {})
    thought, text, how, *events = capsys.readouterr().out.splitlines()
    assert (thought, text) == ("Air scatters.", "Because of air.")
    assert how.startswith("complete")
    assert any(event.startswith("ThinkingDelta(") for event in events)


def test_the_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    named = re.findall(r"^make (\w+)", README, re.MULTILINE)
    assert named[:2] == ["demo", "test"]
    for name in named:
        assert re.search(rf"^{name}:", makefile, re.MULTILINE)


def test_the_number_of_models_is_true():
    from mull.catalog.load import load

    models = sum(len(provider.models) for provider in load().providers.values())
    assert {int(n.replace(",", "")) for n in re.findall(r"([\d,]+) models", README)} == {models}


def test_links_lead_somewhere():
    for place in re.findall(r"\]\((?!https?:)([^)]+)\)", README):
        assert (ROOT / place).exists(), place


def test_the_picture_shows_what_the_demo_runs():
    drawn = "".join(ElementTree.parse(ROOT / "docs/images/ask.svg").getroot().itertext())
    demo = re.search(r"\$\(BIN\)/(mull ask .*)", (ROOT / "Makefile").read_text())[1]
    assert f"$ {demo}" in drawn


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("command", [c for c in ASKS if "local/smollm2" in c])
def test_the_small_model_really_answers(command):
    words = command.replace("mull ask", f"{shlex.quote(sys.executable)} -m mull ask")
    done = subprocess.run(words, shell=True, capture_output=True, text=True, check=False, input="")
    assert (done.returncode, bool(done.stdout.strip())) == (0, True), done.stderr


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_python_of_the_tour_really_runs():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert (done.returncode, "ThinkingDelta(" in done.stdout) == (0, True), done.stderr
