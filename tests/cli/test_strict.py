"""`mull strict`: what is seen of a client, and the exit status."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from mull.cli.main import main

CLIENT = """
import json, os, sys, urllib.error, urllib.request
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
history = [{"role": "user", "content": "go"}]
tools = [{"type": "function", "function": {"name": "look"}}]
for _ in range(3):
    body = json.dumps({"model": "m", "messages": history, "tools": tools}).encode()
    with opener.open(urllib.request.Request(url, body)) as answer:
        message = json.load(answer)["choices"][0]["message"]
    if sys.argv[1] == "forget":
        del message["reasoning_content"]
    history.append(message)
    for call in message.get("tool_calls", ()):
        history.append({"role": "tool", "tool_call_id": call["id"], "content": "r"})
    if not message.get("tool_calls"):
        break
"""
SCRIPT = [
    [{"think": "I have to look."}, {"call": "look", "input": {"at": "door"}}],
    [{"think": "Enough."}, {"say": "A door."}],
]


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(SCRIPT))
    return str(path)


def run(*words, client="keep"):
    return main(["strict", *words, "--run", sys.executable, "-c", CLIENT, client])


def test_a_client_that_keeps_reasoning(script, capfd):
    assert run("kimi", "--script", script) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert "✓ POST /v1/chat/completions: answered, 1 thought came back" in err
    assert err.endswith("\n2 answered, 0 refused, 0 doubts\n2 thoughts sent, 1 of them came back\n")


def test_a_client_that_forgets(script, capfd):
    assert run("kimi", "--script", script, client="forget") == 1
    err = capfd.readouterr().err
    assert "✗ POST /v1/chat/completions: refused: thinking is enabled but reasoning_content" in err
    assert "1 answered, 1 refused, 0 doubts" in err


def test_a_server_that_nobody_asked_says_that_nothing_was_tested(capfd):
    assert main(["strict", "gemini", "--run", sys.executable, "-c", ""]) == 4
    assert "no reasoning was tested: no thought was sent" in capfd.readouterr().err


def test_a_command_that_fails_gives_its_status(capfd):
    assert main(["strict", "gemini", "--run", sys.executable, "-c", "raise SystemExit(7)"]) == 7


def test_a_command_that_is_not_there(capsys):
    assert main(["strict", "gemini", "--run", "/nowhere/at-all"]) == 2
    assert "cannot start /nowhere/at-all: No such file" in capsys.readouterr().err


def test_without_a_script_there_are_no_calls(capfd):
    assert run("deepseek") == 0
    assert (
        "no tool was called: the requirements of tool chains were not tested"
        in capfd.readouterr().err
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "a script must be a list"),
        ("[]", "at least one answer"),
        ("[3]", "answer 1 is not a list"),
        ('[[{"say": "x"}], [{"thnk": "x"}]]', 'answer 2: each part needs "think", "say" or "call"'),
        ('[[{"think": 3}]]', "answer 1: Expected `str`, got `int`"),
        ('[[{"call": "f", "arguments": {}}]]', "unknown field `arguments`"),
        ("[[", "Input data was truncated"),
    ],
)
def test_a_script_that_makes_no_sense(text, said, tmp_path, capsys):
    path = tmp_path / "bad.json"
    path.write_text(text)
    assert main(["strict", "kimi", "--script", str(path)]) == 2
    assert said in capsys.readouterr().err


def test_a_port_that_is_taken(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["strict", "kimi", "--port", str(port)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"mull: cannot use port {port} (Address already in use)")


def test_being_told_to_end_gives_the_summary():
    command = [sys.executable, "-m", "mull", "strict", "kimi"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        assert process.wait(30) == 4
    assert lines[0].startswith("kimi listens at http://127.0.0.1:")
    assert lines[1].startswith("  OPENAI_BASE_URL=http://127.0.0.1:")
    assert "0 answered, 0 refused, 0 doubts" in rest


def test_what_a_client_sends_cannot_steer_the_terminal(capfd, script):
    raw = (
        "import os, socket\n"
        'host, port = os.environ["OPENAI_BASE_URL"][7:-3].split(":")\n'
        "with socket.create_connection((host, int(port))) as s:\n"
        '    s.sendall(b"POST /\\x1b[2J HTTP/1.1\\r\\ncontent-length: 2\\r\\n\\r\\n{}")\n'
        "    s.recv(10)\n"
    )
    main(["strict", "kimi", "--run", sys.executable, "-c", raw])
    err = capfd.readouterr().err
    assert "\x1b" not in err
    assert "POST /␛[2J" in err
