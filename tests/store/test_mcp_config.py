"""Servers of tools in config.toml: what may stand in their tables, and how a mistake is told."""

import pytest

from mull.neutral.errors import ConfigError
from mull.store.config import load_config
from mull.store.mcp import McpConfig

WHOLE = """
[mcp.files]
command = "npx"
args = ["-y", "server-files", ""]
env = { TOKEN = "$TOKEN", ROOT = "/srv" }
cwd = "~/project"
timeout = 5
start_timeout = 2.5
enabled = false
tools = ["read", "list"]
read_only = ["read"]

[mcp.web-2_b]
url = "https://host/mcp?key=$KEY"
headers = { Authorization = "Bearer $TOKEN" }
"""


def load(tmp_path, text):
    path = tmp_path / "config.toml"
    path.write_text(text)
    return load_config(path).mcp


def test_every_key_is_read_in_the_files_order(tmp_path):
    servers = load(tmp_path, WHOLE)
    assert list(servers) == ["files", "web-2_b"]
    assert servers["files"] == McpConfig(
        command="npx",
        args=("-y", "server-files", ""),
        env={"TOKEN": "$TOKEN", "ROOT": "/srv"},
        cwd="~/project",
        timeout=5,
        start_timeout=2.5,
        enabled=False,
        tools=("read", "list"),
        read_only=("read",),
    )
    assert servers["web-2_b"] == McpConfig(
        url="https://host/mcp?key=$KEY", headers={"Authorization": "Bearer $TOKEN"}
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mcp = 3", "mcp cannot be 3: use a table, [mcp]"),
        ("[mcp]\nx = 3", "mcp.x cannot be 3: use a table, [mcp.x]"),
        (
            '[mcp."a b"]',
            "an MCP server cannot be called \"a b\": use letters and digits, with single '-' and "
            "'_' between them, 32 characters at most",
        ),
        ("[mcp.x]", "mcp.x has no command and no url: give exactly one of them"),
        (
            "[mcp.x]\ncommand = 'a'\nurl = 'https://b'",
            "mcp.x has both a command and a url: give exactly one of them",
        ),
        (
            "[mcp.x]\ncommand = 'a'\nheaders = {}",
            "mcp.x: headers is for a server with an address, url: leave it out",
        ),
        (
            "[mcp.x]\nurl = 'https://b'\nargs = []",
            "mcp.x: args is for a server with a command: leave it out",
        ),
        ("[mcp.x]\ncomand = 'a'", 'mcp.x: "comand" is unknown: did you mean command?'),
        (
            "[mcp.x]\ncommand = 'npx -y a'",
            'mcp.x: command cannot be "npx -y a": write command = "npx" and the other words as '
            "args = [...]",
        ),
        ("[mcp.x]\ncommand = ''", 'mcp.x: command cannot be "": use one line of text'),
        (
            "[mcp.x]\ncommand = 'a'\nargs = 'b'",
            'mcp.x: args cannot be "b": use a list of texts such as ["a", "b"]',
        ),
        (
            "[mcp.x]\ncommand = 'a'\nenv = []",
            'mcp.x: env cannot be a list: use a table such as { "API_TOKEN" = "$API_TOKEN" }',
        ),
        (
            "[mcp.x]\ncommand = 'a'\nenv = { A = 3 }",
            'mcp.x: env."A" cannot be that: use a text for a name',
        ),
        (
            "[mcp.x]\ncommand = 'a'\nenv = { 'A B' = 'c' }",
            'mcp.x: env."A B" cannot be that: use a text for a name',
        ),
        ("[mcp.x]\ncommand = 'a'\ncwd = 3", "mcp.x: cwd cannot be 3: use one line of text"),
        (
            "[mcp.x]\nurl = 'ftp://a'",
            "mcp.x: url cannot be that: use an address such as https://host/mcp",
        ),
        (
            "[mcp.x]\nurl = 'https://me:pw@host/'",
            "mcp.x: url contains a user name or password before the @: remove it, and send it as "
            'headers = { Authorization = "Basic $VAR" }',
        ),
        (
            '[mcp.x]\nurl = "https://a"\nheaders = { X = "a\\r\\nY: b" }',
            'mcp.x: headers."X" cannot be that: use one line of text',
        ),
        (
            "[mcp.x]\ncommand = 'a'\ntimeout = 0",
            "mcp.x: timeout cannot be 0: use seconds above 0, 86,400 at most",
        ),
        (
            "[mcp.x]\ncommand = 'a'\nstart_timeout = true",
            "mcp.x: start_timeout cannot be true: use seconds above 0, 86,400 at most",
        ),
        (
            "[mcp.x]\ncommand = 'a'\ntimeout = nan",
            "mcp.x: timeout cannot be nan: use seconds above 0, 86,400 at most",
        ),
        (
            "[mcp.x]\ncommand = 'a'\nenabled = 'yes'",
            'mcp.x: enabled cannot be "yes": use true or false',
        ),
        (
            "[mcp.x]\ncommand = 'a'\ntools = ['']",
            'mcp.x: tools cannot be a list: use a list of texts such as ["a", "b"]',
        ),
    ],
)
def test_a_mistake_is_told_on_one_line_with_its_place(tmp_path, text, message):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert str(caught.value) == f"config.toml: {message}"


@pytest.mark.parametrize("name", ["a__b", "_a", "a_", "-", "ä", "x" * 33])
def test_names_that_would_blur_the_names_of_tools_are_refused(tmp_path, name):
    with pytest.raises(ConfigError, match="an MCP server cannot be called"):
        load(tmp_path, f'[mcp."{name}"]\ncommand = "a"')


def test_a_path_with_a_blank_is_one_command(tmp_path):
    (server,) = load(tmp_path, "[mcp.x]\ncommand = '/opt/my tools/serve'").values()
    assert server.command == "/opt/my tools/serve"
