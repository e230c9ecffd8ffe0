"""Keys are planted wherever keys can be, and endpoints say them back in every way they can.

Whatever such an endpoint does, the key is in nothing that `mull ask` and `mull doctor` print or
write: output, errors, the stored session, what was learnt.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from mull.cli.main import main
from mull.client.clock import SystemClock
from mull.store.vault import SystemVault
from mull.testing.server import CUT, Reply, ScriptedServer

# no piece of these has the shape of a real key: hiding what looks like one is not enough
ENVIRONMENT, STORED, HEADER, OWN, ADDRESS = (
    f"plover-{word}-quill" for word in ("env", "stored", "header", "own", "address")
)
CANARIES = (ENVIRONMENT, STORED, HEADER, OWN, ADDRESS)
SENT = {
    "environment": ("openai-compatible/m", ENVIRONMENT),
    "stored": ("filed/m", STORED),
    "config": ("mine/m", OWN),
    "header": ("mine/m", HEADER),
}
FORMS = {
    "ask": ["ask"],
    "ask on stderr": ["ask", "--thinking", "stderr"],
    "json": ["ask", "--json"],
    "stream-json": ["ask", "--stream-json"],
    "doctor": ["doctor", "--live"],
}


def chunk(finish=None, **delta):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "model": "m", "choices": [choice]}


WHOLE = (chunk(reasoning_content="hm"), chunk(content="yes"), chunk("stop"), "[DONE]")


def refuse(message, status=401, headers=None, **more):
    return Reply.json({"error": {"message": message, **more}}, status, headers)


def page(key):
    body = f"<html><title>No {key}</title>{key}</html>".encode()
    return Reply(200, {"content-type": "text/html"}, (body,))


ECHOES = {
    "message": lambda key: refuse(f"Incorrect API key provided: {key}."),
    "code": lambda key: refuse("no", code=key),
    "type": lambda key: refuse("no", 400, type=key),
    "bearer": lambda key: refuse(f"Authorization: Bearer {key} is not valid", 403),
    "other fields": lambda key: refuse("no", 400, param=key, metadata={key: [key]}),
    "plain text": lambda key: Reply(400, {}, (f"bad key {key}".encode(),)),
    "odd json": lambda key: Reply.json({"odd": {"headers": {"authorization": key}}}, 400),
    "headers": lambda key: refuse("no", 400, {"x-echo": key, "www-authenticate": key}),
    "retry-after": lambda key: refuse("no", 400, {"retry-after": key, "x-request-id": key}),
    "page": page,
    "error page": lambda key: Reply(502, {"x-should-retry": "false"}, page(key).steps),
    "retried": lambda key: refuse(f"slow, {key}", 429, {"retry-after": "0"}),
    "in the stream": lambda key: Reply.events({"error": {"message": f"no {key}", "code": key}}),
    "late in the stream": lambda key: Reply.events(
        chunk(content="yes"), {"error": {"message": f"no {key}", "type": key, "param": key}}
    ),
    "after a thought": lambda key: Reply.events(
        chunk(reasoning_content="hm"), {"error": {"message": f"no {key}"}}, CUT
    ),
    "damaged frame": lambda key: Reply.events(chunk(content="yes"), f'{{"error": "{key}'),
    "frame that is no object": lambda key: Reply.events(chunk(content="yes"), f'["{key}"]', CUT),
    "not an answer": lambda key: Reply.json({"result": f"hello {key}"}),
    "not json": lambda key: Reply(200, {"content-type": "application/json"}, (key.encode(),)),
    "healed": lambda key: refuse(f"Unsupported parameter: 'stream_options' for {key}", 400),
    "redirect query": lambda key: Reply(302, {"location": f"https://other.example/?k={key}"}),
    "redirect user": lambda key: Reply(302, {"location": f"https://u:{key}@other.example/"}),
    "redirect path": lambda key: Reply(302, {"location": f"https://other.example/{key}/v1"}),
    "redirect host": lambda key: Reply(302, {"location": f"https://{key}.other.example/v1"}),
}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def write(directory, name, text):
    path = Path(os.environ[directory]) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)


async def at_once(clock, seconds):
    """Waiting to ask again takes no time."""


@pytest.fixture
def planted(monkeypatch, tmp_path):
    """Plants the keys; `plant(url)` makes the server at that address the one they are for."""
    monkeypatch.setattr(SystemVault, "keep", lambda *words: False)
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", ENVIRONMENT)
    monkeypatch.setenv("MINE_VARIABLE", OWN)
    monkeypatch.setattr(SystemClock, "sleep", at_once)
    monkeypatch.chdir(tmp_path)
    write("MULL_DATA_DIR", "keys.json", json.dumps({"version": 1, "keys": {"filed": STORED}}))

    def plant(url):
        write(
            "MULL_CONFIG_DIR",
            "config.toml",
            f"""
            [providers.openai-compatible]
            base_url = "{url}"
            [providers.filed]
            base_url = "{url}"
            [providers.mine]
            base_url = "{url}"
            key_env = "MINE_VARIABLE"
            headers = {{ "X-Gate" = "{HEADER}", "X-Filled" = "${{MINE_VARIABLE}}" }}
            """,
        )

    return plant


def leaks(text):
    return [canary for canary in CANARIES if canary in text]


def leaks_in_files(*directories):
    """The canaries in any file but the two that they were planted in."""
    found = []
    for directory in directories:
        for path in Path(directory).rglob("*"):
            if path.is_file() and path.name not in ("keys.json", "config.toml"):
                found += [(path.name, canary) for canary in leaks(path.read_text(errors="replace"))]
    return found


def printed(words, capsys, monkeypatch):
    """All that one command says, a traceback included."""
    monkeypatch.setattr("sys.stdin", Terminal())
    try:
        main(words)
    except Exception as error:
        print("".join(traceback.format_exception(error)), file=sys.stderr)
    out, err = capsys.readouterr()
    return out + err


def words_for(form, model):
    command, *options = FORMS[form]
    return [command, model, *options] if command == "doctor" else [command, "-m", model, *options]


class Echo:
    """Says the key back in one way; a second request of a healed or retried one passes."""

    def __init__(self, way, key):
        self.way, self.key = way, key
        self.count = 0

    def __call__(self, recorded):
        if recorded.method == "GET":
            return Reply.json({"data": []})
        assert self.key in " ".join(recorded.headers.values()), "the key was not sent"
        self.count += 1
        if self.way in ("healed", "retried") and self.count % 2 == 0:
            return Reply.events(*WHOLE)
        return ECHOES[self.way](self.key)


@pytest.mark.parametrize("way", ECHOES)
def test_a_key_that_is_said_back_is_shown_and_written_nowhere(
    planted, capsys, monkeypatch, tmp_path, way
):
    check_silence(planted, capsys, monkeypatch, tmp_path, way)


@pytest.mark.parametrize("way", ["message", "page", "after a thought"])
def test_nor_in_tracebacks(planted, capsys, monkeypatch, tmp_path, way):
    monkeypatch.setenv("DEBUG", "1")
    check_silence(planted, capsys, monkeypatch, tmp_path, way)


def pairs(way):
    """Every form and every key with this way; over all ways, every form with every key."""
    turn = list(ECHOES).index(way)
    keys, forms = list(SENT), list(FORMS)
    met = {(keys[(at + turn) % len(keys)], form) for at, form in enumerate(forms)}
    return {sent: [form for key, form in sorted(met) if key == sent] for sent in keys}


def test_every_form_meets_every_key():
    met = {(sent, form) for way in ECHOES for sent, forms in pairs(way).items() for form in forms}
    assert met == {(sent, form) for sent in SENT for form in FORMS}
    assert all(all(pairs(way).values()) for way in ECHOES)


def check_silence(planted, capsys, monkeypatch, tmp_path, way):
    told = {}
    for sent, forms in pairs(way).items():
        model, key = SENT[sent]
        with ScriptedServer(Echo(way, key)) as server:
            planted(server.url)
            for form in forms:
                question = [] if form == "doctor" else ["hello there"]
                words = [*words_for(form, model), *question]
                told[sent, form] = printed(words, capsys, monkeypatch)
            asked = [one for one in server.requests if one.method == "POST"]
            assert len(asked) >= len(forms)
    assert {place: leaks(text) for place, text in told.items() if leaks(text)} == {}
    assert leaks_in_files(os.environ["HOME"], tmp_path) == []
    assert all(told.values())
    assert (Path(os.environ["MULL_DATA_DIR"]) / "sessions.db").exists()


def test_what_was_learnt_from_a_refusal_that_names_the_key(planted, capsys, monkeypatch):
    with ScriptedServer(Echo("healed", OWN)) as server:
        planted(server.url)
        printed(["ask", "-m", "mine/m", "hello"], capsys, monkeypatch)
    lessons = (Path(os.environ["MULL_DATA_DIR"]) / "lessons.json").read_text()
    assert "streamUsage" in lessons
    assert leaks(lessons) == []


@pytest.mark.parametrize("form", FORMS)
def test_a_good_answer_shows_no_key_either(planted, capsys, monkeypatch, form):
    with ScriptedServer(lambda _: Reply.events(*WHOLE)) as server:
        planted(server.url)
        for model, key in SENT.values():
            question = [] if form == "doctor" else ["hello there"]
            assert leaks(printed([*words_for(form, model), *question], capsys, monkeypatch)) == []
            assert key in " ".join(server.requests[-1].headers.values())
    assert leaks_in_files(os.environ["HOME"]) == []


ADDRESSES = {
    "user": "http://me:{key}@127.0.0.1:{port}/v1",
    "token": "http://{key}@127.0.0.1:{port}/v1",
    "query": "http://127.0.0.1:{port}/v1?key={key}",
    "fragment": "http://127.0.0.1:{port}/v1#{key}",
}


@pytest.mark.parametrize("debug", ["", "1"], ids=["plain", "debug"])
@pytest.mark.parametrize("way", ADDRESSES)
def test_a_key_in_the_address_is_not_shown(planted, capsys, monkeypatch, way, debug):
    monkeypatch.setenv("DEBUG", debug)
    with ScriptedServer(lambda _: Reply.events(*WHOLE)) as server:
        url = ADDRESSES[way].format(key=ADDRESS, port=server.port)
        planted(url)
        for form in FORMS:
            question = [] if form == "doctor" else ["hello there"]
            for place in (["--base-url", url], []):
                words = [*words_for(form, "openai-compatible/m"), *place, *question]
                said = printed(words, capsys, monkeypatch)
                assert said
                assert leaks(said) == [], words
    assert leaks_in_files(os.environ["HOME"]) == []


def test_a_real_process(planted, tmp_path):
    """Nothing is printed at exit, by threads or by the interpreter, that main() did not see."""
    with ScriptedServer(Echo("after a thought", OWN)) as server:
        planted(server.url)
        for form in FORMS:
            words = words_for(form, "mine/m")
            question = [] if form == "doctor" else ["hello there"]
            run = subprocess.run(
                [sys.executable, "-X", "dev", "-m", "mull", *words, *question],
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "DEBUG": "1"},
                check=False,
            )
            assert run.stdout + run.stderr
            assert leaks(run.stdout + run.stderr) == []
        assert len(server.requests) >= len(FORMS)
    assert leaks_in_files(os.environ["HOME"], tmp_path) == []


def test_the_search_finds_what_is_there(tmp_path):
    (tmp_path / "last.json").write_text(f"key={STORED}")
    assert leaks_in_files(tmp_path) == [("last.json", STORED)]
    assert leaks(f"Bearer {ENVIRONMENT}") == [ENVIRONMENT]
