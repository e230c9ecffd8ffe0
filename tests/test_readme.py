"""What the README says is what happens.

The whole tour runs here, in order, against a server on loopback that stands in for all models; the
slow tests run those of the small model for real.
"""

import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mull.agent import shared
from mull.agent.engine import Engine
from mull.cli.main import main
from mull.client.access import Access
from mull.testing.server import Reply, ScriptedServer
from page_examples import blocks, command_lines, is_only_parsed, parse_command, run_page, words_of

ROOT = Path(__file__).parents[1]
PATH = ROOT / "README.md"
README = PATH.read_text()
PAGE = blocks(PATH)
COMMANDS = [line for block in PAGE if block.kind == "sh" for line in command_lines(block.text)]
CODE = next(block.text for block in PAGE if block.kind == "python")


def chunk(delta, finish=None):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def answer(request):
    if request.path == "/messages":
        said = {"content": [{"type": "text", "text": "No."}], "stop_reason": "end_turn"}
        return Reply.json({"type": "message", "role": "assistant", **said})
    is_long = request.json["messages"][-1]["content"] == "Tell me all about it."
    return Reply.events(
        chunk({"reasoning_content": "Air scatters light."}),
        chunk({"content": "Because of air. " * (400 if is_long else 1)}),
        chunk({}, "stop"),
        "[DONE]",
    )


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    engine = Engine()
    monkeypatch.setattr(shared, "engine", lambda: engine)
    with ScriptedServer(answer) as server:
        monkeypatch.setattr("mull.agent.engine._embedded_way", lambda: Access(server.url))
        yield server
        shared.loop().run(engine.close)


def test_the_tour_works_from_beginning_to_end(server, monkeypatch, capsys, tmp_path):
    tour = tmp_path / "tour.md"
    tour.write_text(README.partition("## As a library")[0])
    assert run_page(tour, monkeypatch, capsys) > 7
    sent = [request.json["messages"] for request in server.requests]
    assert [message["content"] for message in sent[1]][::2] == [
        "Why is the sky blue?",
        "And at night?",
    ]
    assert server.requests[2].json["chat_template_kwargs"]["enable_thinking"] is False
    assert "Air scatters light." in (tmp_path / "sky.html").read_text()


@pytest.mark.parametrize("line", [c for c in COMMANDS if is_only_parsed(c)])
def test_what_needs_a_key_works_where_there_is_an_endpoint(line, server, monkeypatch, capsys):
    words = words_of(line)
    if words[0] != "ask":
        parse_command(line)
        return
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    if "--base-url" in words:
        words[words.index("--base-url") + 1] = server.url
    else:
        words += ["--base-url", server.url]
    assert main(words) == 0
    assert re.search("Because of air|No[.]", capsys.readouterr().out)


def test_the_python_of_the_tour_runs(server, capsys):
    exec(compile(CODE, "README", "exec"), {})
    thought, text, how, *events = capsys.readouterr().out.splitlines()
    assert (thought, text.strip()) == ("Air scatters light.", "Because of air.")
    assert how.startswith("complete")
    assert any(event.startswith("ThinkingDelta(") for event in events)


def test_the_python_for_ones_own_tests_runs(capsys):
    code = next(b.text for b in PAGE if b.kind == "python" and "StrictServer" in b.text)
    exec(compile(code, "README", "exec"), {})
    assert capsys.readouterr().out.startswith("http://127.0.0.1:")


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


def test_the_number_of_dependencies_is_true():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (only,) = project["dependencies"]
    assert f"One dependency, {only.partition('>')[0]};" in README
    for extra in project["optional-dependencies"].keys() - {"all", "dev", "fuzz", "judges"}:
        assert re.search(rf"^\| [^|]*`{extra}`[^|]* \| ", README, re.MULTILINE), extra


def test_the_measurements_are_those_of_the_last_run():
    """Whoever measures anew writes the numbers here too."""
    results = (ROOT / "bench/RESULTS.md").read_text().splitlines()
    rows = re.findall(r"^\| (\S+)(?: SDK)? ([\d.]+) \| ([\d,.]+) \| ([\d.]+) × \|$", README, re.M)
    assert len(rows) == 3
    for name, version, micros, ratio in rows:
        (line,) = (x for x in results if name in x and f"{version} | {micros} µs" in x)
        measured = float(re.findall(r"([\d.]+)×", line)[0])
        assert f"{measured:.1f}" == ratio
    own, python = re.findall(
        r"([\d.]+) ms after `mull ask`, .* in ([\d.]+) ms", " ".join(README.split())
    )[0]
    assert any("first byte" in x and f"| {own} ms |" in x for x in results)
    assert any(x.startswith("| python, ms |") and f"| {python} ms |" in x for x in results)


def test_links_and_pictures_lead_somewhere():
    places = re.findall(r"\]\((?!https?:)([^)]+)\)", README)
    places += re.findall(r'(?:src|srcset)="([^"]+)"', README)
    assert len(places) > 10
    for place in places:
        assert (ROOT / place).exists(), place


def test_the_picture_of_a_question_shows_what_the_tutorial_asks_first():
    drawn = "".join(ElementTree.parse(ROOT / "docs/images/ask.svg").getroot().itertext())
    first = re.search(r"^mull ask (-m \S+) (.*)", (ROOT / "docs/tutorial.md").read_text(), re.M)
    assert f"$ mull ask {first[1]} --thinking show {first[2]}" in drawn


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("command", [c for c in COMMANDS if "ask -m local/smollm2" in c])
def test_the_small_model_really_answers(command):
    words = command.replace("mull ask", f"{shlex.quote(sys.executable)} -m mull ask")
    done = subprocess.run(words, shell=True, capture_output=True, text=True, check=False, input="")
    assert (done.returncode, bool(done.stdout.strip())) == (0, True), done.stderr


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_python_of_the_tour_really_runs():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert (done.returncode, "ThinkingDelta(" in done.stdout) == (0, True), done.stderr
