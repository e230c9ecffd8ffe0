"""`mull mcp`: the file is changed in one place only, no key gets into it, and `test` tells all."""

import json
import sys
import tomllib

import pytest

from mcp_servers import FIXTURES
from mull.cli.main import main
from mull.store.paths import config_dir, data_dir

PLAIN = [sys.executable, str(FIXTURES / "plain.py")]
FILE = '# mine\nmodel = "a/b"  # the best\n\n[settings]\nreasoning.effort = "high"\n'


@pytest.fixture
def config():
    path = config_dir() / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(FILE)
    path.chmod(0o644)
    return path


@pytest.fixture
def mull(capsys):
    def mull(*words, status=0):
        assert main(["mcp", *words]) == status
        return capsys.readouterr()

    return mull


def test_a_command_is_added_with_all_its_words(mull, config):
    said = mull(
        "add", "time", "--env", "TZ=$TZ", "--timeout", "5", "--", "uvx", "-q", "x", "--", "--url"
    )
    assert said.out == f"Added time to {config}; `mull mcp test time` tests it.\n"
    assert config.read_text() == FILE + (
        '\n[mcp.time]\ncommand = "uvx"\nargs = ["-q", "x", "--", "--url"]\ntimeout = 5.0\n'
        'env = { TZ = "$TZ" }\n'
    )
    assert config.stat().st_mode & 0o777 == 0o644


def test_an_address_is_added_with_its_headers(mull, config):
    mull("add", "web", "--url", "https://host/mcp", "--header", "Authorization=Bearer $WEB_TOKEN")
    assert tomllib.loads(config.read_text())["mcp"] == {
        "web": {"url": "https://host/mcp", "headers": {"Authorization": "Bearer $WEB_TOKEN"}}
    }


def test_the_first_server_makes_the_file(mull):
    mull("add", "time", "uvx", "mcp-server-time")
    path = config_dir() / "config.toml"
    assert path.read_text() == '[mcp.time]\ncommand = "uvx"\nargs = ["mcp-server-time"]\n'
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_was_added_is_removed_to_the_byte(mull, config):
    mull("add", "one", "--", "x")
    mull("add", "two", "--", "y")
    said = mull("remove", "one")
    assert said.out == f"Removed one from {config}.\n"
    assert config.read_text() == FILE + '\n[mcp.two]\ncommand = "y"\n'
    mull("remove", "two")
    assert config.read_text() == FILE


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["add", "x"],
            "give the command of the server, `mull mcp add x -- COMMAND ARG`, or its URL with "
            "--url",
        ),
        (
            ["add", "x", "--env", "GITHUB_TOKEN=hunter2", "--", "y"],
            "--env GITHUB_TOKEN contains what looks like a key, which would stay in the file: put "
            "it into an environment variable and write --env 'GITHUB_TOKEN=${X_GITHUB_TOKEN}', "
            "in single quotes",
        ),
        (
            ["add", "x", "--header", "Authorization=Bearer hunter2hunter2", "--url", "https://h/m"],
            "--header Authorization contains what looks like a key, which would stay in the file: "
            "put it into an environment variable and write --header 'Authorization=Bearer "
            "${X_TOKEN}', in single quotes",
        ),
        (
            ["add", "x", "--", "y", "--token", "sk-hunter2hunter2hunter2"],
            "the command contains what looks like a key, which would stay in the file: "
            "pass it with --env 'NAME=${VAR}', in single quotes",
        ),
        (
            ["add", "x", "--", "y", "--api-key", "hunter2"],
            "the command contains what looks like a key, which would stay in the file: "
            "pass it with --env 'NAME=${VAR}', in single quotes",
        ),
        (
            ["add", "x", "--", "y", "--password=hunter2"],
            "the command contains what looks like a key, which would stay in the file: "
            "pass it with --env 'NAME=${VAR}', in single quotes",
        ),
        (
            ["add", "z", "--url", "https://h/mcp?a=1&token=hunter2"],
            "--url contains what looks like a key, which would stay in the file: put it into an "
            "environment variable and write --url 'https://h/mcp?a=1&token=${Z_TOKEN}', in "
            "single quotes",
        ),
        (
            ["add", "z", "--url", "https://h/mcp?accessToken=hunter2#top"],
            "--url contains what looks like a key, which would stay in the file: put it into an "
            "environment variable and write --url 'https://h/mcp?accessToken=${Z_ACCESS_TOKEN}', "
            "in single quotes",
        ),
        (
            ["add", "z", "--url", "https://h/s/3f9c0e6b7d2a4f1e8b5c9d0a/mcp"],
            "--url contains what looks like a key, which would stay in the file: put it into an "
            "environment variable and write --url 'https://h/s/${Z_KEY}/mcp', in single quotes",
        ),
        (["add", "x", "--env", "A", "--", "y"], '--env "A" has no value: use --env NAME=TEXT'),
        (
            ["add", "a__b", "--", "y"],
            "an MCP server cannot be called \"a__b\": use letters and digits, with single '-' and "
            "'_' between them, 32 characters at most",
        ),
        (
            ["add", "x", "--url", "https://h/m", "--", "y"],
            "config.toml: mcp.x has both a command and a url: give exactly one of them",
        ),
        (
            ["remove", "nothing"],
            'unknown MCP server "nothing": `mull mcp list` lists them',
        ),
        (["test", "nothing"], 'unknown MCP server "nothing": `mull mcp list` lists them'),
    ],
)
def test_what_cannot_be_is_refused_and_the_file_stays(mull, config, words, message):
    said = mull(*words, status=2)
    assert said.err == f"mull: {message}\n"
    assert said.out == ""
    assert config.read_text() == FILE


def test_a_name_is_given_once(mull, config):
    mull("add", "time", "--", "x")
    said = mull("add", "time", "--", "y", status=2)
    assert said.err == "mull: the server time already exists: run `mull mcp remove time` first\n"


def test_words_after_the_dashes_belong_to_add_alone(mull, config, capsys):
    with pytest.raises(SystemExit):
        main(["mcp", "list", "--", "x"])
    assert "unrecognized arguments: x" in capsys.readouterr().err


def test_the_list_shows_names_of_variables_and_never_a_key(mull, config):
    config.write_text(
        '[mcp.web]\nurl = "https://host/mcp?key=abc"\nheaders = { Authorization = "hunter2" }\n'
        '[mcp.run-it]\ncommand = "npx"\nargs = ["-y", "a b", "sk-hunter2hunter2hunter2"]\n'
        'enabled = false\nenv = { TOKEN = "hunter2" }\n'
    )
    web = "https://host/mcp  (headers: Authorization)"
    run = "npx -y 'a b' …  (env: TOKEN)"
    assert mull("list").out == f"web     {web}\nrun-it  (off)  {run}\n"
    assert json.loads(mull("list", "--json").out) == [
        {"name": "web", "enabled": True, "reached": web},
        {"name": "run-it", "enabled": False, "reached": run},
    ]


def test_nothing_configured_is_told_with_what_to_do(mull):
    line = "No MCP servers configured. `mull mcp add NAME -- COMMAND` adds one.\n"
    assert mull("list").out == line
    assert mull("test").out == line


def test_test_lists_tools_and_reasons(mull, config):
    good = [*PLAIN, "--tools", "echo,die", "--hinted", "echo", "--closed", "echo"]
    config.write_text(
        f"[mcp.good]\ncommand = {good[0]!r}\nargs = {good[1:]!r}\nread_only = ['gone']\n"
        f"[mcp.bad]\ncommand = {PLAIN[0]!r}\nargs = {[*PLAIN[1:], '--fail', 'no licence']!r}\n"
        "[mcp.resting]\ncommand = 'x'\nenabled = false\n"
    )
    lines = mull("test", status=1).out.splitlines()
    assert lines[0].startswith("✓ good: 2 tools in ")
    assert lines[1:] == [
        "    mcp__good__die   changes      Does die.",
        "    mcp__good__echo  read-only    Does echo.",
        "    ⚠ it has no tool gone",
        "✗ bad: its process ended with status 1; its last output: no licence",
        f"    log: {data_dir() / 'mcp/bad.log'}",
        "– resting: off",
    ]
    (status,) = json.loads(mull("test", "good", "--json").out)
    assert status["tools"] == ["mcp__good__die", "mcp__good__echo"]
    assert status["state"] == "ready"


def test_one_that_is_off_can_be_tried_by_its_name(mull, config):
    config.write_text(f"[mcp.a]\ncommand = {PLAIN[0]!r}\nargs = {PLAIN[1:]!r}\nenabled = false\n")
    assert mull("test", "a").out.startswith("✓ a: 1 tool in ")


def test_another_file_can_be_given(mull, config, tmp_path):
    other = tmp_path / "other.toml"
    mull("add", "time", "--config", str(other), "--", "x")
    assert mull("list", "--config", str(other)).out == "time  x\n"
    assert config.read_text() == FILE
