"""DEBUG=1: the lines of document 003, in order."""

from __future__ import annotations

import io
import json

import pytest

from mull.cli.main import main
from mull.testing.server import Reply, ScriptedServer


def chunk(delta, finish=None):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


@pytest.fixture(autouse=True)
def nothing_piped(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
def test_what_was_asked_for_found_and_had_is_told(field, capsys, monkeypatch):
    monkeypatch.setenv("DEBUG", "1")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    reply = Reply.events(
        chunk({field: "so"}), chunk({field: " be it"}), chunk({"content": "yes"}, "stop"), "[DONE]"
    )
    with ScriptedServer([reply]) as server:
        main(["ask", "-m", "zai/glm-4.7", "--base-url", server.url, "--no-save", "q"])
    out, err = capsys.readouterr()
    assert out == "yes\n"
    assert [line.removeprefix("mull: ") for line in err.splitlines()] == [
        "*** Thinking: on (preserve: true)",
        f"Reasoning detected via field: {field}",
        "Reasoning: ON",
    ]


@pytest.mark.parametrize("form", ["--json", "--stream-json"])
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_programs_get_their_json_and_people_the_same_lines(field, form, capsys, monkeypatch):
    monkeypatch.setenv("DEBUG", "1")
    reply = Reply.events(chunk({field: "so"}), chunk({"content": "yes"}, "stop"), "[DONE]")
    with ScriptedServer([reply]) as server:
        main(["ask", "-m", "zai/glm-4.7", "--base-url", server.url, "--no-save", form, "q"])
    out, err = capsys.readouterr()
    lines = [
        "*** Thinking: on (preserve: true)",
        f"Reasoning detected via field: {field}",
        "Reasoning: ON",
    ]
    if form == "--json":
        assert err.splitlines() == [f"mull: {line}" for line in lines]
        assert json.loads(out)["text"] == "yes"
    else:
        told = [json.loads(line) for line in out.splitlines()]
        assert [line["text"] for line in told if line.get("code") == "debug"] == lines


def test_without_it_nothing_is_told(capsys, monkeypatch):
    monkeypatch.delenv("DEBUG", raising=False)
    reply = Reply.events(chunk({"reasoning": "so"}), chunk({"content": "yes"}, "stop"), "[DONE]")
    with ScriptedServer([reply]) as server:
        main(["ask", "-m", "zai/glm-4.7", "--base-url", server.url, "--no-save", "q"])
    assert capsys.readouterr().err == ""


def test_an_effort_is_named(capsys, monkeypatch):
    monkeypatch.setenv("DEBUG", "1")
    reply = Reply.events(chunk({"content": "yes"}, "stop"), "[DONE]")
    with ScriptedServer([reply]) as server:
        place = ["-m", "openai-compatible/gpt-oss-120b/high", "--base-url", server.url]
        main(["ask", *place, "--no-save", "q"])
    err = capsys.readouterr().err
    assert "*** Thinking: on (effort: high) (preserve: false)" in err
    assert "Reasoning: OFF (effort: high)" in err


@pytest.mark.parametrize(
    ("model", "settings", "sent"),
    [
        ("kimi-k2.5", [], True),
        ("kimi-k2.5", ["reasoning.stripFromContext=allButLast"], True),
        ("kimi-k2.5", ["reasoning.stripFromContext=all"], False),
        ("kimi-k2.5", ["reasoning.enabled=false"], False),
        ("kimi-k2.5", ["reasoning.effort=none"], False),
        ("kimi-k2-thinking", ["reasoning.enabled=false"], False),
        ("openai-compatible/m", [], False),
        ("openai-compatible/m", ["reasoning.includeInContext=true"], True),
        ("openai-compatible/m", ["reasoning.includeInContext=true", "reasoning.enabled=0"], False),
    ],
)
def test_preserve_says_whether_an_earlier_thought_goes_back(
    model, settings, sent, capsys, monkeypatch
):
    monkeypatch.setenv("DEBUG", "1")
    monkeypatch.setenv("MOONSHOT_API_KEY", "k")
    reply = Reply.events(
        chunk({"reasoning_content": "so"}), chunk({"content": "yes"}, "stop"), "[DONE]"
    )
    chosen = [word for setting in settings for word in ("--set", setting)]
    with ScriptedServer([reply, reply]) as server:
        for go_on in ([], ["--continue"]):
            capsys.readouterr()
            main(["ask", *go_on, "-m", model, "--base-url", server.url, *chosen, "q"])
    told = capsys.readouterr().err.splitlines()[0]
    assert f"(preserve: {str(sent).lower()})" in told
    answered = server.requests[-1].json["messages"][1]
    assert ("reasoning_content" in answered) is sent


def test_details_that_nobody_signed_are_left_out_of_a_finished_turn():
    details = [{"type": "reasoning.text", "text": "so", "index": 0}]
    reply = Reply.events(
        chunk({"reasoning_details": details}), chunk({"content": "yes"}, "stop"), "[DONE]"
    )
    with ScriptedServer([reply, reply]) as server:
        for go_on in ([], ["--continue"]):
            main(["ask", *go_on, "-m", "openai-compatible/m", "--base-url", server.url, "q"])
    assert "reasoning_details" not in server.requests[-1].json["messages"][1]


@pytest.mark.parametrize(
    ("chosen", "sent"),
    [
        ([], True),
        (["reasoning.stripFromContext=allButLast"], True),
        (["reasoning.includeInContext=false"], False),
        (["reasoning.stripFromContext=all"], False),
        (["reasoning.enabled=false"], False),
        (["model.presets=false"], False),
    ],
)
def test_what_a_server_that_nobody_knows_has_signed_goes_back_unless_the_user_says_otherwise(
    chosen, sent, capsys, monkeypatch
):
    monkeypatch.setenv("DEBUG", "1")
    details = [{"type": "reasoning.text", "text": "so", "signature": "SIG", "index": 0}]
    reply = Reply.events(
        chunk({"reasoning_details": details}), chunk({"content": "yes"}, "stop"), "[DONE]"
    )
    words = [word for setting in chosen for word in ("--set", setting)]
    with ScriptedServer([reply, reply]) as server:
        for go_on in ([], ["--continue"]):
            capsys.readouterr()
            main(
                ["ask", *go_on, "-m", "openai-compatible/m", "--base-url", server.url, *words, "q"]
            )
    assert f"(preserve: {str(sent).lower()})" in capsys.readouterr().err
    answered = server.requests[-1].json["messages"][1]
    assert ("reasoning_details" in answered) is sent


@pytest.mark.parametrize(
    ("model", "level", "effort"),
    [
        ("anthropic/claude-sonnet-4-5", "low", "low"),
        ("anthropic/claude-haiku-4-5", "max", "max"),
        ("google/gemini-2.5-flash", "medium", "medium"),
        ("anthropic/claude-opus-5", "low", "low"),
        ("anthropic/claude-sonnet-4-5", "none", None),
    ],
)
def test_document_003_the_effort_is_told_where_it_is_sent_as_a_number(
    model, level, effort, capsys, monkeypatch
):
    monkeypatch.setenv("DEBUG", "1")
    monkeypatch.setenv("REASONING_EFFORT", level)
    with ScriptedServer([Reply.json({"error": {"message": "no"}}, 403)]) as server:
        main(["ask", "-m", model, "--base-url", server.url, "--no-save", "q"])
        err = capsys.readouterr().err
        told = f"on (effort: {effort})" if effort else "off"
        assert f"*** Thinking: {told} (preserve: " in err
        if "4-5" in model and effort:  # a number of one's own is no effort
            main(["ask", "-m", f"{model}/5000", "--base-url", server.url, "--no-save", "q"])
            assert "*** Thinking: on (preserve: " in capsys.readouterr().err
