"""docs/configuration.md: its files load, and it names every key there is."""

import re
import tomllib
from pathlib import Path

import pytest

from mull.agent.instructions import AGENTS_FILE
from mull.agent.setup import load_setup
from mull.catalog.compat import read_rows
from mull.catalog.entry import _Checked
from mull.catalog.match import Match
from mull.settings.registry import REGISTRY
from mull.store import approvals, catalog, keys, lessons
from mull.store.config import Config, ProviderConfig, load_config
from mull.store.connection import CONNECTION_KEYS
from mull.store.sessions.sqlite import sessions_path
from mull.tui.screen.keys import KEYS
from mull.tui.screen.look import Surroundings
from mull.tui.screen.theme_text import ROLES

TEXT = (Path(__file__).parents[1] / "docs/configuration.md").read_text()
FILES = re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def read(tmp_path):
    def read(text):
        path = tmp_path / "config.toml"
        path.write_text(text)
        return load_config(path)

    return read


def section(head):
    return TEXT.partition(f"\n## {head}\n")[2].partition("\n## ")[0]


def named(head):
    """The keys in the first column of a section's table."""
    cells = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", section(head), re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"\w+", cell)]


@pytest.mark.parametrize("text", FILES)
def test_every_file_on_the_page_loads(read, text):
    assert read(text) != Config()


def test_the_example_says_all_that_a_file_can_say(read, tmp_path):
    (text,) = [text for text in FILES if text.startswith("model =")]
    config = read(text)
    assert set(tomllib.loads(text)) == set(Config.__struct_fields__)
    provider = tomllib.loads(text)["providers"]["acme"]
    assert set(provider) == set(ProviderConfig.__struct_fields__)
    target = load_setup(config=tmp_path / "config.toml").resolve("acme/thinker-1/high")
    assert target.endpoint == config.providers["acme"].base_url
    assert target.facts.efforts == ("low", "medium", "high")
    assert target.compat.thinking_writer == "enable-thinking"


def test_every_setting_is_shown_and_with_its_default(read):
    (text,) = [text for text in FILES if "reasoning.enabled" in text]
    config = read(text)
    assert set(config.settings) == set(REGISTRY)
    defaults, _, unset = text.partition("\n\n")
    for key, setting in REGISTRY.items():
        assert (key in defaults) == (setting.default is not None)
        assert (key in unset) == (setting.default is None)
        if setting.default is not None:
            assert config.settings[key] == setting.default


def test_the_tables_name_every_key():
    assert named("Providers") == list(ProviderConfig.__struct_fields__)
    assert set(named("Models")) == set(_Checked.__struct_fields__)
    assert set(named("Proxies and certificates")) == set(CONNECTION_KEYS)


def test_every_role_of_a_theme_is_named_and_the_examples_are_themes(read):
    words = TEXT.partition("\nThe roles: ")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"`(\w+)`", words)) == ROLES
    for text in FILES:
        for name, table in read(text).themes.items():
            theme = Surroundings("truecolor", None, own={name: table}).theme(name)
            assert theme.thinking.bg is not None


def test_a_row_may_hold_everything_that_is_named(read):
    (text,) = [text for text in FILES if "source =" in text]
    (row,) = read(text).compat
    assert set(row) == {"match", "dialect", "set", "source", "seen"}
    assert read_rows([row])
    assert all(f"`{name}`" in section("Endpoint compatibility") for name in _patterns())


def _patterns():
    return [name for name in Match.__struct_fields__ if not name.startswith("_")]


def test_the_files_are_called_so():
    for name in (
        catalog.MODELS_FILE,
        catalog.UPDATE_FILE,
        keys.KEYS_FILE,
        lessons.LESSONS_FILE,
        sessions_path().name,
        approvals.TOOLS_FILE,
        AGENTS_FILE,
    ):
        assert f"| `{name}` |" in section("File locations")


def test_every_action_that_a_key_can_have_is_named():
    text = section("Terminal keys")
    assert {key.action for key in KEYS if key.action and f"`{key.action}`" not in text} == set()
