"""`--json` and `--stream-json` keep one shape, whatever happens."""

import io
import json

import pytest

from mull.cli.main import main
from mull.store.sessions.sqlite import open_sessions
from mull.testing.server import CUT, Reply, ScriptedServer

FIELDS = [
    "text",
    "thinking",
    "status",
    "usage",
    "notes",
    "message",
    "value",
    "model",
    "session",
    "cost",
    "duration",
    "requestId",
    "error",
]
FORMS = ("--json", "--stream-json")


def chunk(**delta):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


@pytest.fixture
def ask(capsys, monkeypatch):
    def run(form, *words):
        monkeypatch.setattr("sys.stdin", io.StringIO())
        status = main(["ask", form, *words])
        said = capsys.readouterr()
        document = said.out if form == "--json" else said.out.splitlines()[-1]
        shown = json.loads(document)
        assert form == "--json" or shown.pop("type") == "result"
        assert list(shown) == FIELDS
        return status, shown, said.err

    return run


def at(server):
    return "-m", "openai-compatible/thinker", "--base-url", server.url


@pytest.mark.parametrize("form", FORMS)
def test_a_server_that_dies_in_the_middle(ask, form):
    half = Reply.events(chunk(reasoning_content="hm"), chunk(content="ha"), CUT)
    with ScriptedServer([half]) as server:
        status, shown, _ = ask(form, *at(server), "q")
    assert status == 5
    assert (shown["text"], shown["thinking"], shown["status"]) == ("ha", "hm", "interrupted")
    assert shown["error"]["kind"] == "network"
    assert shown["error"]["message"]
    assert shown["session"] == open_sessions().list()[0].id


def test_a_server_that_is_not_there(ask):
    with ScriptedServer([]) as server:
        gone = at(server)
    status, shown, _ = ask("--json", *gone, "q")
    assert (status, shown["status"], shown["error"]["kind"]) == (5, "error", "network")
    assert (shown["text"], shown["usage"], shown["message"]) == ("", None, None)


@pytest.mark.parametrize("form", FORMS)
def test_a_session_that_is_open_elsewhere(ask, form):
    good = Reply.events(chunk(content="yes"), "[DONE]")
    with ScriptedServer([good]) as server:
        _, shown, _ = ask(form, *at(server), "q")
        store = open_sessions()
        with store.hold(shown["session"]):
            status, shown, err = ask(form, *at(server), "--session", shown["session"], "more")
    assert (status, shown["status"], shown["error"]["kind"]) == (2, "error", "session")
    assert err == f"mull: {shown['error']['message']}\n"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("-m", "no-such-model-anywhere", "q"), "model"),
        (("-m", "local/smollm2"), "usage"),
        (("-m", "local/smollm2", "--set", "no.such=1", "q"), "usage"),
    ],
)
def test_what_is_wrong_with_the_command(ask, form, words, kind):
    status, shown, err = ask(form, *words)
    assert (status, shown["status"], shown["error"]["kind"]) == (2, "error", kind)
    assert shown["session"] is None
    assert err == f"mull: {shown['error']['message']}\n"


def test_what_is_not_saved_has_no_session(ask):
    with ScriptedServer([Reply.events(chunk(content="yes"), "[DONE]")]) as server:
        _, shown, _ = ask("--json", *at(server), "--no-save", "q")
    assert (shown["text"], shown["session"], shown["error"]) == ("yes", None, None)
