"""`mull keys` as a person runs it: what is stored, what is said, and that no key is shown."""

from __future__ import annotations

import getpass
import io
import json
import os
import stat
import sys
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mull.auth import copilot
from mull.cli.main import COMMANDS, main
from mull.store.vault import SystemVault

CANARY = "canary-e01c"


@pytest.fixture(autouse=True)
def _no_keyring(monkeypatch):
    monkeypatch.setitem(COMMANDS, "keys", ("mull.cli.keys", "keys"))
    monkeypatch.setattr(SystemVault, "keep", lambda *words: False)


@pytest.fixture
def file():
    return Path(os.environ["MULL_DATA_DIR"]) / "keys.json"


@pytest.fixture
def run(capsys):
    def run(*words, status=0):
        assert main(["keys", *words]) == status
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        assert CANARY not in out + err
        assert (out == "") if status == 2 else (status or err == "")
        return err if status else out

    return run


@pytest.fixture
def pipe(monkeypatch):
    return lambda text: monkeypatch.setattr(sys, "stdin", io.StringIO(text))


@pytest.fixture
def terminal(monkeypatch):
    """A terminal on which a text is typed at the hidden prompt; gives the prompts it showed."""
    prompts = []
    monkeypatch.setattr(sys, "stdin", type("Tty", (io.StringIO,), {"isatty": lambda self: True})())

    def typing(text):
        def answer(prompt):
            prompts.append(prompt)
            return text

        monkeypatch.setattr(getpass, "getpass", answer)
        return prompts

    return typing


def kept(file):
    return json.loads(file.read_bytes())["keys"]


def test_a_key_is_typed_hidden_and_stored_for_the_user_alone(run, terminal, file):
    prompts = terminal(CANARY)
    assert run("set", "OpenAI") == f"Stored the key for openai in {file}.\n"
    assert prompts == ["Key for openai (hidden): "]
    assert kept(file) == {"openai": CANARY}
    assert os.name != "posix" or stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("words", [(), ("--stdin",), ("--file",)])
def test_a_key_is_piped_in(run, pipe, file, words):
    pipe(f"{CANARY}\n")
    run("set", "anthropic", *words)
    assert kept(file) == {"anthropic": CANARY}


def test_a_terminal_with_stdin_is_read_without_a_prompt(run, terminal, file):
    prompts = terminal("typed")
    sys.stdin.write(CANARY)
    sys.stdin.seek(0)
    run("set", "anthropic", "--stdin")
    assert (prompts, kept(file)) == ([], {"anthropic": CANARY})


def test_a_keyring_is_used_where_there_is_one(run, pipe, file, monkeypatch):
    held = {}
    monkeypatch.setattr(SystemVault, "keep", lambda self, n, key: held.update({n: key}) or True)
    pipe(CANARY)
    assert run("set", "openai") == "Stored the key for openai in the system's keyring.\n"
    assert kept(file) == {"openai": None}
    assert held["openai"].reveal() == CANARY
    assert run("list") == "openai  keyring\n"
    pipe(CANARY)
    assert str(file) in run("set", "openai", "--file")


def test_a_key_on_the_command_line_is_refused_without_repeating_it(run, file):
    err = run("set", "openai", CANARY, status=2)
    assert err == (
        "mull: a key on the command line stays in the shell history: run "
        "`mull keys set PROVIDER` and type it, or pipe it in with --stdin\n"
    )
    assert not file.exists()


@pytest.mark.parametrize("text", ["", "\n", f"{CANARY} {CANARY}", f"{CANARY}\nmore"])
def test_what_cannot_be_a_key_is_not_stored(run, pipe, file, text):
    pipe(text)
    assert run("set", "openai", status=2).startswith("mull: the input ")
    assert not file.exists()


def test_a_terminal_that_would_echo_is_not_used(run, terminal, file, monkeypatch):
    terminal("")

    def echoing(prompt):
        warnings.warn("Can not control echo", getpass.GetPassWarning, stacklevel=2)
        raise AssertionError("it went on")

    monkeypatch.setattr(getpass, "getpass", echoing)
    assert "cannot hide what you type: pipe the key in" in run("set", "openai", status=2)


def test_end_of_input_at_the_prompt_stores_nothing(run, terminal, file, monkeypatch):
    terminal("")

    def ended(prompt):
        raise EOFError

    monkeypatch.setattr(getpass, "getpass", ended)
    assert run("set", "openai", status=2) == "mull: no key entered; nothing was stored\n"


@pytest.mark.parametrize("action", ["set", "delete", "login"])
def test_an_unknown_provider_gets_a_suggestion(run, pipe, action):
    pipe(CANARY)
    assert run(action, "opnai", status=2) == (
        'mull: unknown provider "opnai": did you mean openai?\n'
    )
    assert "`mull models` lists providers" in run(action, "zzzzzzzzz", status=2)


def test_a_key_pasted_as_the_provider_is_not_repeated(run):
    pasted = "sk-ant-api03-0123456789abcdefghij"
    err = run("set", pasted, status=2)
    assert "0123456789" not in err
    assert "looks like a key" in err


def test_providers_of_the_config_file_and_any_server_have_keys_too(run, pipe, file):
    config = Path(os.environ["MULL_CONFIG_DIR"])
    config.mkdir(parents=True)
    (config / "config.toml").write_text('[providers.mine]\nbase_url = "https://mine.example"\n')
    pipe(CANARY)
    run("set", "mine")
    pipe(CANARY)
    run("set", "openai-compatible")
    assert set(kept(file)) == {"mine", "openai-compatible"}


def test_the_list_says_where_each_key_is_found_and_which_is_used(run, pipe, monkeypatch):
    assert run("list") == "No key found. `mull keys set PROVIDER` stores one.\n"
    monkeypatch.setenv("GEMINI_API_KEY", CANARY)
    monkeypatch.setenv("AZURE_RESOURCE_NAME", "no key")
    for provider in ("anthropic", "google"):
        pipe(CANARY)
        run("set", provider)
    assert run("list") == (
        "anthropic  file\n"
        "google     environment  GEMINI_API_KEY\n"
        "google     file         (not used)\n"
    )
    assert json.loads(run("list", "--json")) == [
        {"provider": "anthropic", "found": "file", "variable": None, "used": True},
        {"provider": "google", "found": "environment", "variable": "GEMINI_API_KEY", "used": True},
        {"provider": "google", "found": "file", "variable": None, "used": False},
    ]


def test_storing_a_key_that_is_overruled_says_so(run, pipe, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    pipe(CANARY)
    told = run("set", "openai").splitlines()
    assert told[1:] == ["It is not used while OPENAI_API_KEY is set."]


def test_deleting_a_key(run, pipe, file, monkeypatch):
    pipe(CANARY)
    run("set", "openai")
    assert run("delete", "OPENAI") == f"Deleted the key for openai from {file}.\n"
    assert kept(file) == {}
    assert "no key is stored for openai" in run("delete", "openai", status=2)
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    pipe(CANARY)
    run("set", "openai")
    assert run("delete", "openai").endswith("OPENAI_API_KEY is still set and will be used.\n")


def test_a_key_of_a_provider_that_is_no_more_can_be_deleted(run, file):
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"version": 1, "keys": {"gone": CANARY}}))
    file.chmod(0o600)
    assert "gone" in run("list")
    run("delete", "gone")
    assert kept(file) == {}


def test_the_path(run, file):
    assert run("path") == f"{file}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_file_that_others_can_read_is_refused(run, pipe, file):
    pipe(CANARY)
    run("set", "openai")
    file.chmod(0o644)
    assert f"run `chmod 600 {file}`" in run("list", status=2)


# the login


class Github(BaseHTTPRequestHandler):
    """Answers each request with the next of the server's replies."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, body = self.server.replies.pop(0)
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST

    def log_message(self, *words):
        pass


@pytest.fixture
def github(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Github)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    for name in ("_DEVICE_URL", "_TOKEN_URL", "_SESSION_URL"):
        monkeypatch.setattr(copilot, name, f"http://127.0.0.1:{server.server_port}/{name}")
    server.replies = [
        (
            200,
            {
                "device_code": "d",
                "user_code": "ABCD-1234",
                "verification_uri": "https://github.com/login/device",
                "expires_in": 900,
                "interval": 0.001,
            },
        )
    ]
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_login_shows_the_code_and_stores_the_outcome(run, github, file, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_of_something_else")
    github.replies += [
        (200, {"error": "authorization_pending"}),
        (200, {"access_token": f"gho_{CANARY}"}),
        (200, {"token": f"tid={CANARY}", "refresh_in": 1500}),
    ]
    assert run("login", "github-copilot") == (
        "Open https://github.com/login/device and enter the code ABCD-1234 within 15 minutes.\n"
        f"Logged in to github-copilot; the login is stored in {file}.\n"
    )
    assert kept(file) == {"github-copilot": f"gho_{CANARY}"}
    assert run("list").splitlines()[:2] == [
        "github-copilot  file",
        "github-copilot  environment  GITHUB_TOKEN  (not used)",
    ]


@pytest.mark.parametrize(
    ("replies", "told"),
    [
        ([(200, {"error": "access_denied"})], "the login was declined on GitHub"),
        (
            [(200, {"access_token": f"gho_{CANARY}"}), (403, {"message": "No Copilot."})],
            'GitHub did not grant a Copilot session: "No Copilot."',
        ),
    ],
)
def test_a_login_that_is_refused_stores_nothing(run, github, file, replies, told):
    github.replies += replies
    assert told in run("login", "github-copilot", status=3)
    assert not file.exists()


def test_a_login_without_a_network(run, file, monkeypatch):
    monkeypatch.setattr(copilot, "_DEVICE_URL", "http://127.0.0.1:1/")
    assert run("login", "github-copilot", status=5) == (
        "mull: 127.0.0.1:1 cannot be reached: Connection refused\n"
    )
    assert not file.exists()


def test_a_provider_without_a_login(run):
    assert run("login", "openai", status=2) == (
        "mull: openai has no login: store its key with `mull keys set openai`; "
        "login works for github-copilot\n"
    )


@pytest.mark.parametrize(("word", "shown"), [("keys", "list"), ("sessions", "list")])
def test_a_command_alone_shows_what_there_is(word, shown, monkeypatch, capsys):
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    assert main([word]) == 0
    alone = capsys.readouterr().out
    assert main([word, shown]) == 0
    assert capsys.readouterr().out == alone
    assert ("ANTHROPIC_API_KEY" in alone) == (word == "keys")
