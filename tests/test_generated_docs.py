"""The generated pages are what the code says, and the tool notices when they are not."""

from tools import docs

from mull.settings.environment import env_name
from mull.settings.registry import REGISTRY
from mull.tui.commands.table import COMMANDS


def test_the_pages_are_fresh():
    assert docs.main(["--check"]) == 0, "run `make docs`"


def test_every_setting_is_on_the_settings_page():
    text = docs.PAGES["docs/reference/settings.md"]()
    for key in REGISTRY:
        assert f"| `{key}` |" in text
        assert f"`{env_name(key)}`" in text


def test_subcommands_are_on_the_commands_page():
    text = docs.PAGES["docs/reference/cli.md"]()
    assert "## mull settings\n" in text
    assert "## mull profile set-default\n" in text


def test_every_command_of_the_terminal_is_on_its_page():
    text = docs.PAGES["docs/reference/commands.md"]()
    for command in COMMANDS:
        shown = command.shown.replace("|", "\\|")
        assert f"| `{shown}` | {command.line}" in text
    assert "| Shift-Tab | the next approval mode: ask, accept-edits, read-only |" in text


def test_a_changed_page_is_stale_and_written_anew(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(docs, "PAGES", {"docs/page.md": lambda: "text"})
    assert docs.stale(tmp_path) == ["docs/page.md"]
    assert docs.write(tmp_path) == ["docs/page.md"]
    page = tmp_path / "docs/page.md"
    assert page.read_text() == f"{docs._FIRST_LINE}\ntext\n"
    assert docs.write(tmp_path) == []
    page.write_text("other")
    assert docs.stale(tmp_path) == ["docs/page.md"]
    monkeypatch.setattr(docs, "stale", lambda: ["docs/page.md"])
    assert docs.main(["--check"]) == 1
    assert "docs/page.md" in capsys.readouterr().err
