"""`mull sweep` on a strict server: asked once each, graded, resumed, and drawn."""

import errno
import itertools
import json
import os
import sys

import pytest

from mull.cli.main import main
from mull.testing import Reply, Say, ScriptedServer, StrictServer, Think

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
        (["--checker", "no-such-command-here"], "cannot run the checker no-such-command-here"),
        (["--checker", '"open'], "is not a command: No closing quotation"),
        (["--checker", " "], "--checker needs a command"),
        (["--levels", "low,hgih"], "'hgih' is not a level"),
        (["--html", "no/such/page.html"], "cannot write no/such/page.html: there is no directory"),
        (["--html", "."], "cannot write .: it is a directory"),
        (["--html", "./tasks.jsonl"], "would replace the tasks or answers"),
        (["--html", "a.html", "-o", "./a.html"], "would replace the tasks or answers"),
        (["--checker", "./tasks.jsonl"], "the checker ./tasks.jsonl: it is not executable"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_asked(
    tasks, tmp_path, monkeypatch, capsys, words, said
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEEPSEEK_API_KEY", "k")
    with StrictServer("deepseek", itertools.repeat(ANSWER)) as server:
        model = ["-m", "deepseek/deepseek-reasoner", "--base-url", server.url]
        assert main(["sweep", tasks, *model, *words]) == 2
    assert said in capsys.readouterr().err
    assert server.requests == []
    assert [file.name for file in tmp_path.iterdir()] == ["tasks.jsonl"]


def test_a_missing_key_of_the_second_model_is_said_first(tasks, monkeypatch, capsys):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert main(["sweep", tasks, "-m", "claude-sonnet-4-5", "-m", "gpt-5"]) == 2
    told = capsys.readouterr()
    assert "no API key for OpenAI" in told.err
    assert told.out == ""


def test_an_invalid_schema_is_named_with_its_line_before_anything_is_asked(tmp_path, capsys):
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"prompt": "a"}\n\n{"prompt": "b", "schema": {"type": "nonsense"}}\n')
    with StrictServer("deepseek", itertools.repeat(ANSWER)) as server:
        assert main(["sweep", str(file), "-m", MODEL, "--base-url", server.url]) == 2
    assert "line 3: the schema is not valid" in capsys.readouterr().err
    assert server.requests == []


def test_a_task_without_an_answer_is_named_by_its_line(tmp_path, capsys):
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"prompt": "a"}\n\n{"prompt": "b"}\n')
    choice = {"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
    replies = [Reply.json({"choices": [choice]}), Reply.json({"error": "no"}, 400)]
    with ScriptedServer(replies) as server:
        words = ["sweep", str(file), "-m", MODEL, "--base-url", server.url, "--concurrency", "1"]
        assert main(words) == 3
    assert f"no answer from {MODEL} to line 3 of tasks.jsonl: " in capsys.readouterr().err


def test_thinking_that_was_off_is_zero_and_hidden_thinking_unknown(tasks, monkeypatch, capsys):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    said = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "408"}]}
    with ScriptedServer(lambda _: Reply.json({**said, "stop_reason": "end_turn"})) as server:
        words = ["sweep", tasks, "-m", "claude-sonnet-4-5", "--levels", "none,high", "--json"]
        assert main([*words, "--base-url", server.url]) == 0
    off, high = json.loads(capsys.readouterr().out)["cells"]
    assert (off["thinkingTokens"], off["estimated"]) == (0, False)
    assert high["thinkingTokens"] is None


@pytest.mark.parametrize(
    ("model", "level", "said"),
    [
        (MODEL, "hgih", "'hgih' is not a level: use none, minimal, low"),
        (f"{MODEL}/low", "high", f"{MODEL}/low has a level already"),
    ],
)
def test_a_server_of_any_model_is_not_asked_for_one_named_as_a_level(
    tasks, capsys, model, level, said
):
    with StrictServer("deepseek", itertools.repeat(ANSWER)) as server:
        words = ["sweep", tasks, "-m", model, "--base-url", server.url, "--levels", level]
        assert main(words) == 2
    assert said in capsys.readouterr().err
    assert server.requests == []


def test_a_level_that_a_model_does_not_have_is_told(tasks, monkeypatch, capsys):
    monkeypatch.setenv("DEEPSEEK_API_KEY", "k")
    with StrictServer("deepseek", itertools.repeat([Say("408")])) as server:
        words = ["sweep", tasks, "-m", "deepseek/deepseek-chat", "--base-url", server.url]
        main([*words, "--levels", "none,high"])
    said = [line for line in capsys.readouterr().err.splitlines() if "does not reason" in line]
    assert said == ["mull: deepseek/deepseek-chat/high: deepseek-chat does not reason"]


@pytest.mark.parametrize(
    ("checker", "right", "said"),
    [
        ("kill -9 $$", None, "the checker did not judge 3 answers: signal 9 ended it (line "),
        ("no-such-command-here", None, "the checker did not judge 3 answers: "),
        ("sleep 60", None, "the checker did not judge 3 answers: it was stopped after 1 s (line "),
        ("sleep 60 & exit 0", True, ""),
        ("echo broken >&2; exit 2", False, "the checker found nothing right; of line "),
    ],
)
def test_a_checker_that_fails_is_no_wrong_answer(
    tmp_path, monkeypatch, capsys, checker, right, said
):
    monkeypatch.setattr("mull.agent.checker.LONGEST", 1.0)
    file = tmp_path / "open.jsonl"
    file.write_text("\n".join(json.dumps({"prompt": f"{n}?"}) for n in range(3)))
    with StrictServer("deepseek", itertools.repeat(ANSWER)) as server:
        words = ["sweep", str(file), "-m", MODEL, "--base-url", server.url]
        words += ["-o", str(tmp_path / "runs.jsonl"), "--checker", f"sh -c '{checker}'"]
        status = main(words)
        told = capsys.readouterr().err
        main([*words, "--json"])
    assert status == (3 if right is None else 0)
    assert said in told
    assert len(server.requests) == 3
    outcomes = json.loads(capsys.readouterr().out)["outcomes"]
    assert {one.get("right") for one in outcomes} == {right}


def test_checkers_run_at_once(tmp_path, capsys):
    file, seen = tmp_path / "open.jsonl", tmp_path / "seen"
    seen.mkdir()
    file.write_text("\n".join(json.dumps({"prompt": f"{n}?"}) for n in range(3)))
    # each waits until all three are there
    wait = f"touch {seen}/$$; until test $(ls {seen} | wc -l) = 3; do sleep 0.02; done"
    with StrictServer("deepseek", itertools.repeat(ANSWER)) as server:
        words = ["sweep", str(file), "-m", MODEL, "--base-url", server.url, "--json"]
        main([*words, "--checker", f"timeout 20 sh -c '{wait}'"])
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert (cell["right"], cell["graded"]) == (3, 3)


def test_an_answer_that_misses_its_schema_is_counted_and_not_asked_for_again(tmp_path, capsys):
    file, runs = tmp_path / "schema.jsonl", tmp_path / "runs.jsonl"
    file.write_text(json.dumps({"prompt": "?", "schema": {"type": "object", "required": ["a"]}}))
    found = []
    with StrictServer("deepseek", itertools.repeat(ANSWER)) as server:
        words = ["sweep", str(file), "-m", MODEL, "--base-url", server.url, "-o", str(runs)]
        for _ in range(2):
            assert main([*words, "--json"]) == 0
            found.append(json.loads(capsys.readouterr().out))
            assert len(server.requests) == 2  # the answer, and a second chance
    assert found[0]["cells"] == found[1]["cells"]
    (outcome,) = found[0]["outcomes"]
    assert (outcome["right"], outcome["answer"]) == (False, "It is 408.")
    assert outcome["tokens"] > 0
    assert outcome["thinkingTokens"] > 0


def test_a_corrected_answer_is_graded_without_asking_and_a_changed_question_is_told(
    tmp_path, capsys
):
    file, runs = tmp_path / "tasks.jsonl", tmp_path / "runs.jsonl"
    with StrictServer("deepseek", itertools.repeat(ANSWER)) as server:
        words = ["sweep", str(file), "-m", MODEL, "--base-url", server.url, "-o", str(runs)]
        for task, right, asked in (
            ({"prompt": "a", "expect": "409"}, "0/1", 1),
            ({"prompt": "a", "expect": "408"}, "1/1", 1),
            ({"prompt": "b", "expect": "408", "id": "b"}, "1/1", 2),
            ({"prompt": "c", "expect": "408", "id": "b"}, "1/1", 3),
        ):
            file.write_text(json.dumps(task))
            assert main(words) == 0
            told = capsys.readouterr()
            assert right in told.out
            assert len(server.requests) == asked
            assert ("has changed" in told.err) == (asked == 3)


def test_answers_under_another_budget_are_not_taken_for_these(tasks, tmp_path, capsys):
    runs = tmp_path / "runs.jsonl"
    with StrictServer("deepseek", itertools.repeat(ANSWER)) as server:
        words = ["sweep", tasks, "-m", MODEL, "--base-url", server.url, "-o", str(runs)]
        assert main([*words, "--thinking-budget", "2000"]) == 0
        assert main([*words, "--thinking-budget", "9000"]) == 2
    assert "another reasoning.maxTokens (2000, now 9000)" in capsys.readouterr().err


def test_the_page_is_written_though_nobody_reads_the_output(tasks, tmp_path, monkeypatch):
    page = tmp_path / "page.html"

    def closed(*_):
        raise BrokenPipeError

    monkeypatch.setattr("mull.cli.sweep.table", closed)
    monkeypatch.setattr("mull.cli.main._forget_stdout", lambda: None)
    with StrictServer("deepseek", itertools.repeat(ANSWER)) as server:
        words = ["sweep", tasks, "-m", MODEL, "--base-url", server.url]
        assert main([*words, "--html", str(page)]) == 0
    assert "<svg" in page.read_text()


def test_a_full_disk_is_said_and_no_traceback(tasks, capfd, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("mull.cli.sweep.table", full)
    monkeypatch.setattr("mull.cli.main._forget_stdout", lambda: None)
    with StrictServer("deepseek", itertools.repeat(ANSWER)) as server:
        assert main(["sweep", tasks, "-m", MODEL, "--base-url", server.url]) == 1
    assert capfd.readouterr().err == "mull: cannot write the output: No space left on device\n"


def test_a_page_replaces_no_device(tasks, tmp_path, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with StrictServer("deepseek", itertools.repeat(ANSWER)) as server:
        words = ["sweep", tasks, "-m", MODEL, "--base-url", server.url, "--html", str(pipe)]
        assert main(words) == 2
    assert f"cannot write {pipe}: it is not a regular file" in capsys.readouterr().err
    assert server.requests == []


def test_a_rejected_key_is_not_tried_with_every_task(tmp_path, capsys):
    file = tmp_path / "tasks.jsonl"
    file.write_text("\n".join(json.dumps({"prompt": f"{n}?"}) for n in range(20)))
    message = {"role": "assistant", "content": "ok"}
    answer = Reply.json({"choices": [{"message": message, "finish_reason": "stop"}]})
    refusal = Reply.json({"error": {"message": "bad key"}}, 401)
    with ScriptedServer(lambda asked: refusal if asked.json["model"] == "a" else answer) as server:
        words = ["sweep", str(file), "-m", "openai-compatible/a", "-m", "openai-compatible/b"]
        assert main([*words, "--base-url", server.url, "--concurrency", "1", "--json"]) == 3
    first, second = json.loads(capsys.readouterr().out)["cells"]
    assert (first["errors"], second["answers"]) == (20, 20)
    assert sum(request.json["model"] == "a" for request in server.requests) == 1
