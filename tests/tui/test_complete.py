"""Completion from the registries, and files that a message mentions."""

from __future__ import annotations

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from mull.settings.registry import REGISTRY
from mull.tui.commands.complete import SlashCompleter, offers
from mull.tui.commands.complete_files import ProjectFiles
from mull.tui.commands.known import Known, ModelIndex
from mull.tui.commands.table import COMMANDS
from mull.tui.screen.theme import THEMES
from tui.fronts import at_terminal, drive


@pytest.fixture
def known(talk):
    return Known(talk)


def texts(known, typed):
    return [offer.text for offer in offers(known, typed)]


def completed(known, typed):
    """What stands in the line after each offer is taken."""
    return [typed[: offer.start] + offer.text for offer in offers(known, typed)]


def test_a_slash_offers_every_command(known):
    assert texts(known, "/") == [f"/{command.name}" for command in COMMANDS]


def test_commands_that_begin_so_come_before_those_that_hold_it(known):
    assert texts(known, "/s")[:3] == ["/set", "/sessions", "/stats"]
    assert texts(known, "/cm") == ["/compress"]
    assert texts(known, "/zz") == []


def test_settings_then_their_values(known):
    assert texts(known, "/set ") == [*REGISTRY, "model"]
    assert texts(known, "/set strip") == ["reasoning.stripFromContext"]
    assert completed(known, "/set reasoning.stripFromContext a")[:2] == [
        "/set reasoning.stripFromContext all",
        "/set reasoning.stripFromContext allButLast",
    ]
    assert completed(known, "/set model.presets=f")[0] == "/set model.presets=false"
    assert texts(known, "/set reasoning.enabled ") == ["true", "false", "unset"]
    assert "openai/o3" in texts(known, "/set compression.model openai/o3")
    assert texts(known, "/set no.such ") == []


def test_unset_offers_only_what_was_set_here(talk, known):
    assert texts(known, "/unset ") == []
    drive(talk, "/set reasoning.effort low", "/set context.limit 5")
    assert texts(known, "/unset ") == ["reasoning.effort", "context.limit"]


def test_models_by_their_beginning_a_part_and_some_letters(known):
    assert texts(known, "/model anthropic/claude-sonnet-4-5")[0] == "anthropic/claude-sonnet-4-5"
    assert all("sonnet" in name for name in texts(known, "/model sonnet"))
    assert "anthropic/claude-sonnet-4-5" in texts(known, "/model anthsonnet45")
    assert texts(known, "/model qqqqzzzz") == []
    assert completed(known, "/model x --th") == ["/model x --thinking-budget="]


def test_models_with_a_key_come_first(tmp_path, monkeypatch):
    monkeypatch.setenv("DEEPSEEK_API_KEY", "k" * 20)
    with at_terminal(tmp_path) as talk:
        assert texts(Known(talk), "/model deepseek-v4")[0].startswith("deepseek/")


def test_a_model_with_a_slash_offers_the_levels_it_really_has(known):
    levels = ["none", "minimal", "low", "medium", "high"]
    name = "anthropic/claude-sonnet-4-5"
    assert texts(known, f"/model {name}/") == [f"{name}/{level}" for level in levels]
    assert texts(known, f"/model {name}/med") == [f"{name}/medium"]
    assert texts(known, "/model claude-sonnet-4-5/hi") == ["claude-sonnet-4-5/high"]


def test_thinking_offers_the_levels_of_the_model_in_use(talk, known):
    assert texts(known, "/thinking ") == ["effort", "budget", "on", "off", "clear"]
    assert texts(known, "/thinking effort ") == ["none", "high", "unset"]
    drive(talk, "/model openai/o3")
    assert texts(known, "/thinking effort ") == ["low", "medium", "high", "unset"]
    assert texts(known, "/thinking clear t") == ["true"]
    assert texts(known, "/thinking on ") == []


def test_profiles_sessions_themes_views_and_strategies(talk, known):
    drive(talk, "/profile save careful")
    assert texts(known, "/profile l") == ["list", "load", "delete", "set-default"]
    assert texts(known, "/profile load c") == ["careful"]
    assert texts(known, "/profile set-default ") == ["careful", "none"]
    store = talk.session.store
    from mull.history.log import Entry
    from mull.neutral.messages import user

    for name in ("whales", None):
        info = store.create(folder=talk.session.info.folder, name=name)
        store.append(info.id, 0, Entry(user("hello")))
    assert texts(known, "/resume ") == [info.id, "whales"]
    assert texts(known, "/theme ") == list(THEMES)
    assert texts(known, "/view h") == ["hidden"]
    assert texts(known, "/compress ") == ["middle-out", "truncate", "one-shot", "undo"]
    assert texts(known, "/why ") == ["body"]
    assert texts(known, "/help qu") == ["quit"]
    assert texts(known, "/new ") == []


def test_tools_and_servers(tmp_path):
    from mull.agent.setup import load_setup
    from mull.agent.toolbox import Toolbox

    with at_terminal(tmp_path, toolbox=Toolbox(load_setup(), tmp_path)) as talk:
        known = Known(talk)
        assert texts(known, "/tools read") == ["read-only", "read", "read"]
        assert {"ask", "yes", "all", "none", "edit", "run"} <= set(texts(known, "/tools "))
        assert texts(known, "/mcp ") == ["restart"]
        assert texts(known, "/mcp restart ") == []


@pytest.fixture
def files(tmp_path):
    for name in (
        "src/app.py",
        "src/Apple.txt",
        ".hidden/x",
        "read me.md",
        "README.md",
        "my notes/a.md",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    return tmp_path


def test_files_in_a_message_behind_an_at(files, known):
    assert texts(known, "look at @sr")[:3] == ["@src/", "@src/app.py", "@src/Apple.txt"]
    assert texts(known, "look at @apl") == ["@src/Apple.txt"]
    assert texts(known, "look at @APP") == ["@src/app.py", "@src/Apple.txt"]
    assert texts(known, "@./sr") == ["@./src/"]
    assert texts(known, "@")[:2] == ['@"my notes/', '@"read me.md"']
    assert completed(known, "look at @src/a") == ["look at @src/app.py", "look at @src/Apple.txt"]
    assert completed(known, "see @read") == ['see @"read me.md"', "see @README.md"]
    assert completed(known, 'see @"read m') == ['see @"read me.md"']
    assert completed(known, "see @my") == ['see @"my notes/', 'see @"my notes/a.md"']
    assert completed(known, 'see @"my notes/a') == ['see @"my notes/a.md"']
    assert texts(known, "mail me@exam") == []
    assert texts(known, "@nowhere/") == []
    assert texts(known, "no mention") == []


def test_hidden_files_only_behind_a_dot(files, known):
    assert "@.hidden/" not in texts(known, "@")
    assert texts(known, "@.h")[0] == "@.hidden/"


def test_paths_of_commands(files, known):
    assert texts(known, "/image src/") == ["src/app.py", "src/Apple.txt"]
    assert texts(known, "/export src/app.") == ["src/app.py"]
    assert texts(known, "/export x.md --") == ["--no-thinking", "--force"]


def test_what_is_typed_halfway_is_no_error(known):
    assert texts(known, "/nosuch x") == []
    assert texts(known, '/model "half') == []


def test_completions_replace_what_was_typed(known, talk):
    completer = SlashCompleter(lambda: talk)
    typed = "/set reasoning.stripFromContext allb"
    (first, *_) = completer.get_completions(Document(typed), CompleteEvent())
    assert (first.text, first.start_position) == ("allButLast", -4)
    none = SlashCompleter(lambda: None)
    assert list(none.get_completions(Document("/"), CompleteEvent())) == []


def test_the_catalog_is_indexed_once_and_a_key_looks_at_names_alone(known, monkeypatch):
    """Thousands of models at every key: no entry is decoded and nothing is listed again."""
    from mull.catalog.load import Catalog

    assert len(known.models.names) > 5000
    for name in ("pairs", "entry", "facts"):
        monkeypatch.setattr(Catalog, name, lambda *_: pytest.fail("asked again"))
    for end in range(len("claude-sonnet")):
        assert texts(known, f"/model {'claude-sonnet'[: end + 1]}")


def test_an_index_finds_a_name_however_it_is_written():
    index = ModelIndex(["a/Big-Model", "b/small", "b/small", "c/x+y[z]"])
    assert index.names == ("a/Big-Model", "b/small", "c/x+y[z]")
    assert index.find("big") == ["a/Big-Model"]
    assert index.find("bgm") == ["a/Big-Model"]
    assert index.find("x+y[") == ["c/x+y[z]"]
    assert index.find("") == list(index.names)
    assert "A/BIG-MODEL" in index
    assert "small" in index
    assert "smal" not in index


def test_the_project_is_listed_without_what_is_ignored_and_again_when_it_is_old(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("build/\n*.log\n")
    (tmp_path / ".github").mkdir()
    for name in (
        "build/out.py",
        "deep/er/out.py",
        "a.log",
        ".github/out.yml",
        "node_modules/out.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    now = [0.0]
    files = ProjectFiles(str(tmp_path), lambda: now[0])
    assert [item.name for item in files.find("out")] == ["deep/er/out.py", ".github/out.yml"]
    (tmp_path / "out.txt").touch()
    assert len(list(files.find("out"))) == 2
    now[0] = 60.0
    assert next(item.name for item in files.find("out")) == "out.txt"


def test_the_file_whose_letters_are_closest_together_comes_first(tmp_path):
    for name in ("d14/file_199.py", "d4/file_99.py", "a/do4/files9x9.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [item.name for item in ProjectFiles(str(tmp_path)).find("d4file99")]
    assert found == ["d4/file_99.py", "d14/file_199.py", "a/do4/files9x9.py"]


def test_enter_takes_the_command_that_is_offered(talk, tmp_path):
    (tmp_path / "sessions.db").touch()
    completer = SlashCompleter(lambda: talk)
    assert completer.taken("/mo") == "/model"
    assert completer.taken("/th") == "/thinking"
    assert completer.taken("/model") == "/model"
    assert completer.taken("/exit") == "/exit"
    assert completer.taken("/qqqq") == "/qqqq"
    assert completer.taken("/model son") == "/model son"
    assert completer.taken("/") == "/"
    assert completer.taken("see @sessions.d") == "see @sessions.db"
    assert completer.taken("see @sessions.db") == "see @sessions.db"
    assert completer.taken("see @") == "see @"
    assert completer.taken("see @snsb") == "see @snsb"
    assert completer.taken("see @nowhere") == "see @nowhere"
    assert SlashCompleter(lambda: None).taken("/mo") == "/mo"
