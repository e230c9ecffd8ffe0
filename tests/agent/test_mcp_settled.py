"""A server's configuration with its variables filled in; secrets are known and not shown."""

import pytest

from mull.agent.mcp.settled import names_secret, settle
from mull.neutral.errors import ConfigError
from mull.store.mcp import McpConfig


def test_references_are_filled_and_only_what_programs_need_is_passed_on():
    config = McpConfig(command="x", env={"A": "$ONE-${TWO}", "B": "cost: $$5", "C": "as it is"})
    environ = {"ONE": "1", "TWO": "2", "PATH": "/bin", "LC_ALL": "C", "OPENAI_API_KEY": "k"}
    assert settle("s", config, environ).env == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "A": "1-2",
        "B": "cost: $5",
        "C": "as it is",
    }


@pytest.mark.parametrize(
    ("written", "run"),
    [("~/bin/x", "/home/me/bin/x"), ("./x", "./x"), ("x", "x"), ("/a b/x", "/a b/x")],
)
def test_a_command_may_lie_in_the_users_home(monkeypatch, written, run):
    monkeypatch.setenv("HOME", "/home/me")
    assert settle("s", McpConfig(command=written), {}).command == run


def test_an_address_and_its_headers_are_filled():
    config = McpConfig(
        url="https://host/mcp?key=$URL_KEY", headers={"Authorization": "Bearer $TOKEN"}
    )
    environ = {"URL_KEY": "abcdefgh1", "TOKEN": "0123456789"}
    settled = settle("s", config, environ)
    assert settled.url == "https://host/mcp?key=abcdefgh1"
    assert settled.headers == {"Authorization": "Bearer 0123456789"}
    assert settled.secrets == ("0123456789", "abcdefgh1")
    assert settled.shown_url == "https://host/mcp"
    assert repr(settled) == "Settled(https://host/mcp)"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            McpConfig(command="x", env={"A": "$ONE $TWO ${ONE}"}),
            "mcp.s: env.A needs ONE and TWO in the environment: set it",
        ),
        (
            McpConfig(url="https://host/$ONE"),
            "mcp.s: url needs ONE in the environment: set it",
        ),
        (
            McpConfig(url="https://host", headers={"X": "$BAD"}),
            "mcp.s: headers.X contains a line break or a non-ASCII character: "
            "use one line of ASCII text",
        ),
    ],
)
def test_what_cannot_be_filled_is_told_without_its_value(config, message):
    with pytest.raises(ConfigError) as caught:
        settle("s", config, {"BAD": "secret\nY: z"})
    assert str(caught.value) == message


def test_secrets_are_known_by_name_by_look_and_by_reference():
    config = McpConfig(
        command="x",
        env={
            "MY_TOKEN": "named-secret",
            "PLAIN": "$GITHUB_PAT",
            "LOOKS": "sk-0123456789abcdefghij",
            "ROOT": "$HOME",
            "PASSWORD": "short",
        },
    )
    environ = {"GITHUB_PAT": "by-reference", "HOME": "/home/someone"}
    assert settle("s", config, environ).secrets == (
        "sk-0123456789abcdefghij",
        "by-reference",
        "named-secret",
    )


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("GITHUB_TOKEN", True),
        ("Authorization", True),
        ("X-Api-Key", True),
        ("db_password", True),
        ("KEYBOARD", False),
        ("TOKENIZER", False),
        ("PATH", False),
    ],
)
def test_names_that_speak_of_secrets(name, is_secret):
    assert names_secret(name) == is_secret
