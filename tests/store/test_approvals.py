"""tools.toml: the user's rules, a project's, and the one thing that mull writes."""

import os
import re
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mull.neutral.errors import ConfigError, SettingError
from mull.policy.approval import Rule
from mull.store.approvals import RuleFile, ToolPolicy, load_policy


@pytest.fixture
def places(tmp_path):
    """The config directory and a project."""
    (tmp_path / "config").mkdir()
    (tmp_path / "project/.mull").mkdir(parents=True)
    return tmp_path / "config", tmp_path / "project"


def own(places, text):
    (places[0] / "tools.toml").write_text(text)


def theirs(places, text):
    (places[1] / ".mull/tools.toml").write_text(text)


def test_no_files_are_no_rules(tmp_path):
    assert load_policy(tmp_path / "none", tmp_path / "nowhere") == ToolPolicy()


def test_the_rules_of_both_files_are_read(places):
    own(places, '[tools]\nallow = ["run(make *)"]\ndeny = ["read(.env)"]\nenvironment = ["A_KEY"]')
    theirs(places, '[tools]\ndeny = ["run(rm *)"]')
    assert load_policy(*places) == ToolPolicy(
        rules=(
            Rule("deny", "read", ".env", "tools.toml"),
            Rule("deny", "run", "rm *", ".mull/tools.toml"),
            Rule("allow", "run", "make *", "tools.toml"),
        ),
        environment=("A_KEY",),
    )


def test_a_project_may_not_allow_anything(places):
    theirs(places, '[tools]\nallow = ["run"]\ndeny = ["write"]\nenvironment = ["OPENAI_API_KEY"]')
    policy = load_policy(*places)
    assert policy.rules == (Rule("deny", "write", None, ".mull/tools.toml"),)
    assert policy.environment == ()
    (warning,) = policy.warnings
    assert "a project may only deny" in warning
    assert str(places[0] / "tools.toml") in warning


def test_a_project_may_not_trust_itself(places):
    theirs(places, f'[tools]\nallow = ["run"]\ntrusted = ["{places[1]}"]')
    assert load_policy(*places).rules == ()


def test_a_trusted_project_may_allow(places):
    theirs(places, '[tools]\nallow = ["run(make)"]\nenvironment = ["A"]')
    (places[1].parent / "door").symlink_to(places[1])
    own(places, f'[tools]\ntrusted = ["{places[1].parent}/door"]')
    policy = load_policy(*places)
    assert policy.rules == (Rule("allow", "run", "make", ".mull/tools.toml"),)
    assert policy.environment == ("A",)
    assert policy.warnings == ()


def test_trust_does_not_reach_into_other_folders(places):
    inner = places[1] / "vendor/thing"
    (inner / ".mull").mkdir(parents=True)
    (inner / ".mull/tools.toml").write_text('[tools]\nallow = ["run"]')
    own(places, f'[tools]\ntrusted = ["{places[1]}"]')
    assert load_policy(places[0], inner).rules == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tols]", 'tools.toml: "tols" is unknown: did you mean tools?'),
        ("tools = 1", "tools.toml: tools cannot be 1: use a table"),
        ('[tools]\nalow = ["a"]', 'tools.toml: tools: "alow" is unknown: did you mean allow?'),
        ('[tools]\nallow = "run"', 'allow cannot be "run": use a list of rules'),
        ("[tools]\ndeny = [1]", "deny cannot be a list: use a list of rules"),
        ('[tools]\nallow = ["run("]', 'tools.allow: "run(" is not a rule'),
        ('[tools]\nenvironment = ["A B"]', "environment cannot be a list: use a list of names"),
        ("[tools]\nallow = [", "tools.toml"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_guessed(places, text, said):
    own(places, text)
    with pytest.raises(ConfigError) as caught:
        load_policy(*places)
    assert said in str(caught.value)


def test_a_project_file_that_is_no_file_is_an_error_and_does_not_block(places):
    path = places[1] / ".mull/tools.toml"
    os.mkfifo(path)
    with pytest.raises(ConfigError, match="is not a file of rules"):
        load_policy(*places)
    path.unlink()
    with open(path, "wb") as file:
        file.truncate(5 << 30)
    with pytest.raises(ConfigError, match="is not a file of rules"):
        load_policy(*places)


def test_rules_of_one_folder_hold_in_that_folder(places, tmp_path):
    own(places, f'[folders."{places[1]}"]\nallow = ["run(make)"]\ndeny = ["write"]')
    assert load_policy(*places).rules == (
        Rule("deny", "write", None, "tools.toml"),
        Rule("allow", "run", "make", "tools.toml"),
    )
    assert load_policy(places[0], tmp_path).rules == ()
    assert load_policy(places[0], places[1] / ".mull").rules == ()


def test_a_project_has_no_say_about_folders(places):
    theirs(places, f'[folders."{places[1]}"]\nallow = ["run"]')
    with pytest.raises(ConfigError, match=r'\.mull/tools\.toml: "folders" is unknown'):
        load_policy(*places)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[HERE]\nallow = [\n  "run(make)",\n]\n'),
        ("# mine\n", '# mine\n\n[HERE]\nallow = [\n  "run(make)",\n]\n'),
        (
            '[tools]\nallow = ["run(make)"]',
            '[tools]\nallow = ["run(make)"]\n\n[HERE]\nallow = [\n  "run(make)",\n]\n',
        ),
        (
            '[HERE]\ndeny = ["a"]\n[tools]\nallow = ["b"]\n',
            '[HERE]\nallow = [\n  "run(make)",\n]\ndeny = ["a"]\n[tools]\nallow = ["b"]\n',
        ),
        (
            '[HERE]\ndeny = []\nallow = ["edit"] # ok\n',
            '[HERE]\ndeny = []\nallow = [\n  "run(make)",\n  "edit"] # ok\n',
        ),
        (
            '[HERE]\nallow = [ # list\n  "edit", # files\n]\n',
            '[HERE]\nallow = [\n  "run(make)",\n   # list\n  "edit", # files\n]\n',
        ),
        ("[HERE]\nallow = []\n", '[HERE]\nallow = [\n  "run(make)",\n  ]\n'),
        ('[HERE]\nallow = ["run(make)"]\n', '[HERE]\nallow = ["run(make)"]\n'),
    ],
)
def test_always_adds_one_rule_for_one_folder_and_leaves_the_rest(places, before, after):
    here = f'folders."{places[1]}"'
    own(places, before.replace("HERE", here))
    shown = RuleFile(*places).preview(["run(make)"])
    RuleFile(*places).keep(["run(make)"])
    written = (places[0] / "tools.toml").read_text()
    assert written == after.replace("HERE", here)
    if before == after:
        assert shown == ""
        return
    head, _, lines = shown.partition("\n")
    number = re.fullmatch(rf"{places[0]}/tools\.toml, line (\d+):", head)
    first = int(number[1]) - 1
    there = written.split("\n")[first : first + lines.count("\n") + 1]
    assert lines.split("\n") == there
    assert '  "run(make)",' in there
    assert len(there) <= len(after.split("\n")) - len(before.split("\n")) + 1


def test_what_is_shown_of_several_rules_is_what_is_written(places):
    own(places, '[tools]\nallow = ["edit"]\n')
    rules = ["edit(a/**)", "edit(b/**)"]
    shown = RuleFile(*places).preview(rules).split("\n")
    RuleFile(*places).keep(rules)
    assert shown[0].endswith("tools.toml, line 4:")
    assert (places[0] / "tools.toml").read_text().split("\n")[3:-1] == shown[1:]


def test_always_makes_the_file_where_there_is_none(places):
    config, folder = places[0] / "new", places[1]
    RuleFile(config, folder).keep(["edit(src/**)"])
    assert load_policy(config, folder).rules == (Rule("allow", "edit", "src/**", "tools.toml"),)
    assert load_policy(config, folder.parent).rules == ()
    assert oct((config / "tools.toml").stat().st_mode)[-3:] == "600"


@pytest.mark.parametrize(
    "text",
    [
        'folders = { "HERE" = { allow = ["a"] } }\n',
        'folders."HERE".allow = ["a"]\n',
        "[folders.'HERE']\n",
        "[tools",
    ],
)
def test_a_form_that_cannot_be_added_to_is_left_alone(places, text):
    text = text.replace("HERE", str(places[1]))
    own(places, text)
    with pytest.raises(ConfigError):
        RuleFile(*places).keep(["run(make)"])
    assert (places[0] / "tools.toml").read_text() == text


def test_always_takes_only_rules(places):
    with pytest.raises(SettingError):
        RuleFile(*places).keep(["run("])
    assert not (places[0] / "tools.toml").exists()


@settings(max_examples=25)
@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=30))
def test_any_command_can_be_allowed_for_good(tmp_path_factory, command):
    folder = tmp_path_factory.mktemp("always")
    rule = f"run({command})"
    for one in ("edit", rule, rule):
        RuleFile(folder, folder).keep([one])
    tables = tomllib.loads((folder / "tools.toml").read_text())
    assert tables == {"folders": {str(folder): {"allow": [rule, "edit"]}}}
