"""docs/mcp.md: its files load, and it names every key and every limit there is."""

import re
import tomllib
from pathlib import Path

from mull.agent.mcp import lines, log, results, server
from mull.store.config import read_config
from mull.store.mcp import McpConfig

TEXT = (Path(__file__).parents[2] / "docs/mcp.md").read_text()


def test_the_example_loads_and_uses_every_key():
    (text,) = re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    servers = read_config(text.encode(), "config.toml").mcp
    assert list(servers) == ["files", "tracker"]
    used = {key for table in tomllib.loads(text)["mcp"].values() for key in table}
    assert used == set(McpConfig.__struct_fields__)


def test_the_table_names_every_key_and_its_default():
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", TEXT, re.MULTILINE))
    assert list(rows) == list(McpConfig.__struct_fields__)
    assert rows["timeout"] == f"the longest call, {McpConfig().timeout}"
    assert rows["start_timeout"].startswith(f"the longest start, {McpConfig().start_timeout};")


def test_the_limits_are_those_of_the_code():
    assert f"more than {lines.MOST_BYTES >> 20} MiB" in TEXT
    assert f"more than {results.MOST_CHARACTERS:,} characters" in TEXT
    assert f"{2 * log.MOST_BYTES >> 20} MiB at most" in TEXT
    assert len(server.PAUSES) == 3
    assert "at most three times in a row" in TEXT
