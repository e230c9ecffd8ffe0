"""`mull batch`: questions from a file, answers as JSON lines, and what it says of the rest."""

from __future__ import annotations

import io
import json
import sys
from types import SimpleNamespace

import pytest

from batch_servers import KEY, PlayedOpenAI
from mull.agent.batch import provider
from mull.cli.main import main
from mull.testing.server import Reply, ScriptedServer

QUESTIONS = ['"one"', '{"prompt": "two", "id": "b"}', "", '[{"role": "user", "content": "three"}]']


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "questions.jsonl").write_text("\n".join(QUESTIONS))


def echo(request):
    text = request.json["messages"][-1]["content"].upper()
    delta = {"content": text, "reasoning_content": "hm"}
    return Reply.events({"choices": [{"delta": delta, "finish_reason": "stop"}]}, "[DONE]")


def run(capfdbinary, *words, url="http://127.0.0.1:9"):
    status = main(["batch", *words, "-m", "openai-compatible/m", "--base-url", url])
    out, err = capfdbinary.readouterr()
    return status, [json.loads(line) for line in out.splitlines()], err.decode()


def test_answers_are_printed_as_they_come(capfdbinary):
    with ScriptedServer(echo) as server:
        status, lines, err = run(
            capfdbinary, "questions.jsonl", "--system", "brief", "--max-tokens", "9", url=server.url
        )
    assert (status, err) == (0, "")
    told = {line["index"]: line["result"] for line in lines}
    assert [told[at]["text"] for at in range(3)] == ["ONE", "TWO", "THREE"]
    assert told[0]["thinking"] == "hm"
    assert {line["id"] for line in lines} >= {"b"}
    body = server.requests[0].json
    assert (body["messages"][0]["content"], body["max_tokens"]) == ("brief", 9)


def test_questions_come_from_standard_input(capfdbinary, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b'"only"\n')))
    with ScriptedServer(echo) as server:
        status, (line,), _ = run(capfdbinary, "-", url=server.url)
    assert (status, line["result"]["text"]) == (0, "ONLY")


def test_a_second_run_asks_only_what_has_no_answer(capfdbinary, tmp_path):
    bad = Reply.json({"error": {"message": "flagged", "code": "content_filter"}}, 400)
    replies = []

    def script(request):
        replies.append(request)
        return bad if len(replies) == 2 else echo(request)

    with ScriptedServer(script) as server:
        words = ("questions.jsonl", "-o", "answers.jsonl", "--concurrency", "1")
        status, lines, err = run(capfdbinary, *words, url=server.url)
        assert (status, lines) == (3, [])
        assert "no answer to item 1: " in err
        assert "3/3 · 1 failed" in err
        status, lines, err = run(capfdbinary, *words, url=server.url)
        assert (status, lines) == (0, [])
        assert "3/3 · 2 from the file" in err
        assert len(server.requests) == 4
    kept = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert [line["type"] for line in kept] == ["batch", *["result"] * 4]


def test_values_by_schema(capfdbinary, tmp_path):
    (tmp_path / "schema.json").write_text('{"type": "object", "properties": {"A": {}}}')
    (tmp_path / "questions.jsonl").write_text(json.dumps('{"a": 1}'))
    with ScriptedServer(echo) as server:
        words = ("questions.jsonl", "--schema", "schema.json")
        status, (line,), _ = run(capfdbinary, *words, url=server.url)
    assert (status, line["result"]["value"]) == (0, {"A": 1})


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        (None, ("missing.jsonl",), 'cannot read "missing.jsonl"'),
        ("{", ("questions.jsonl",), 'line 1 of "questions.jsonl" is not JSON'),
        ('"a"\n\nplain text', ("questions.jsonl",), "line 3 of"),
        ('"a"', ("questions.jsonl", "--concurrency", "0"), "concurrency must be"),
        ('"a"', ("questions.jsonl", "--no-wait"), "--no-wait needs --provider-batch"),
        ('"a"', ("questions.jsonl", "--cancel"), "--cancel needs --provider-batch"),
        ('"a"', ("questions.jsonl", "--provider-batch", "--no-wait"), "--no-wait needs -o"),
        ('"a"', ("questions.jsonl", "--provider-batch"), "has no batch API"),
        ('"a"', ("questions.jsonl", "-o", "questions.jsonl"), "is not the file of a batch"),
        ('"a"', ("questions.jsonl", "--schema", "nothing.json"), "nothing.json"),
    ],
)
def test_what_cannot_be_is_a_usage_error(capfdbinary, tmp_path, text, words, told):
    if text is not None:
        (tmp_path / "questions.jsonl").write_text(text)
    status, lines, err = run(capfdbinary, *words)
    assert (status, lines) == (2, [])
    assert told in err


def test_an_item_cannot_send_the_key_elsewhere(capfdbinary, tmp_path):
    line = json.dumps({"prompt": "a", "base_url": "http://127.0.0.1:1"})
    (tmp_path / "questions.jsonl").write_text(line)
    with ScriptedServer(echo) as server:
        status, (told,), _ = run(capfdbinary, "questions.jsonl", url=server.url)
        assert server.requests == []
    assert status == 3
    assert "'base_url'" in told["error"]["message"]


def test_the_providers_batch_is_submitted_collected_and_cancelled(
    capfdbinary, tmp_path, monkeypatch
):
    monkeypatch.setattr(provider, "FIRST_LOOK", 0.001)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    (tmp_path / "questions.jsonl").write_text('"a"\n"b"\n')

    def go(*words):
        base = ["batch", "questions.jsonl", "-m", "openai/gpt-4.1", "--base-url", played.url]
        status = main([*base, "--provider-batch", *words])
        return status, capfdbinary.readouterr().err.decode()

    with PlayedOpenAI() as played:
        played.is_over = False
        status, err = go("-o", "out.jsonl", "--no-wait")
        assert status == 0
        assert "2 at the provider: run the same command again to collect them" in err
        status, err = go("-o", "out.jsonl", "--cancel")
        assert (status, played.batches["batch_0"]["status"]) == (0, "cancelling")
        played.is_over = True
        status, err = go("-o", "out.jsonl")
        assert status == 3
        assert "1 failed" in err
        status, err = go("-o", "out.jsonl")
        assert status == 0
        assert "2/2 · 1 from the file · $" in err
