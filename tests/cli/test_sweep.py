"""`mull sweep` on a strict server: asked once each, graded, resumed, and drawn."""

import itertools
import json
import sys

import pytest

from mull.cli.main import main
from mull.testing import Say, StrictServer, Think

TASKS = [
    {"prompt": "What is 17 * 24?", "expect": "408", "id": "product"},
    {"prompt": "A capital.", "expect": "Paris", "id": "capital"},
    {"prompt": "Anything.", "id": "open"},
]
MODEL = "openai-compatible/m"
ANSWER = [Think("17 * 24 = 408."), Say("It is 408.")]


@pytest.fixture
def tasks(tmp_path):
    file = tmp_path / "tasks.jsonl"
    file.write_text("\n".join(map(json.dumps, TASKS)))
    return str(file)


def test_every_task_is_asked_once_with_every_level(tasks, capsys):
    with StrictServer("deepseek", itertools.repeat(ANSWER)) as server:
        status = main(
            [
                "sweep",
                tasks,
                "-m",
                MODEL,
                "--levels",
                "low,high",
                "--base-url",
                server.url,
                "--json",
            ]
        )
    told = json.loads(capsys.readouterr().out)
    assert status == 0
    assert len(server.requests) == 6
    low, high = told["cells"]
    assert (low["name"], high["name"]) == (f"{MODEL}/low", f"{MODEL}/high")
    assert (low["right"], low["graded"], low["answers"]) == (1, 2, 3)
    assert low["thinkingTokens"] > 0
    efforts = sorted(request.json["reasoning_effort"] for request in server.requests)
    assert efforts == ["high"] * 3 + ["low"] * 3
    rights = {(one["task"], one.get("right")) for one in told["outcomes"]}
    assert rights == {("product", True), ("capital", False), ("open", None)}


def test_a_sweep_goes_on_where_it_was(tasks, tmp_path, capsys):
    page, runs = tmp_path / "page.html", tmp_path / "runs.jsonl"
    words = ["sweep", tasks, "-m", MODEL, "-o", str(runs), "--html", str(page)]
    with StrictServer("deepseek", itertools.repeat(ANSWER)) as server:
        assert main([*words, "--base-url", server.url]) == 0
        first = capsys.readouterr().out
        lines = runs.read_text().splitlines(keepends=True)
        runs.write_text("".join(lines[:-1]))  # the last answer was not stored
        assert main([*words, "--base-url", server.url]) == 0
    assert len(server.requests) == 4
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["MODEL", "RIGHT"]
    assert row.split()[:2] == [MODEL, "1/2"] == first.splitlines()[1].split()[:2]
    drawn = page.read_text()
    assert "What is 17 * 24?" in drawn
    assert "<svg" in drawn
    assert "http" not in drawn.replace("http-equiv", "")


@pytest.mark.parametrize(("ends", "right"), [(0, 3), (1, 0)])
def test_a_checker_has_the_last_word(tasks, capsys, tmp_path, ends, right):
    file = tmp_path / "open.jsonl"
    file.write_text("\n".join(json.dumps({"prompt": f"{n}?"}) for n in range(3)))
    code = f"import json,sys; d=json.load(sys.stdin); sys.exit({ends} if d['answer'] else 2)"
    checker = f'{sys.executable} -c "{code}"'
    with StrictServer("deepseek", itertools.repeat(ANSWER)) as server:
        words = ["sweep", str(file), "-m", MODEL, "--base-url", server.url, "--json"]
        main([*words, "--checker", checker])
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert (cell["right"], cell["graded"]) == (right, 3)


def test_an_answer_that_misses_its_schema_is_wrong_and_no_error(tmp_path, capsys):
    file = tmp_path / "schema.jsonl"
    file.write_text(json.dumps({"prompt": "?", "schema": {"type": "object", "required": ["a"]}}))
    with StrictServer("deepseek", itertools.repeat(ANSWER)) as server:
        assert main(["sweep", str(file), "-m", MODEL, "--base-url", server.url, "--json"]) == 0
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert (cell["right"], cell["graded"], cell["errors"]) == (0, 1, 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--samples", "0"], "--samples must be at least 1"),
        (["--checker", "no-such-command-here"], "cannot run the checker"),
    ],
)
def test_what_cannot_be_is_said(tasks, capsys, words, said):
    with StrictServer("deepseek", itertools.repeat(ANSWER)) as server:
        assert main(["sweep", tasks, "-m", MODEL, "--base-url", server.url, *words]) == 2
    assert said in capsys.readouterr().err
