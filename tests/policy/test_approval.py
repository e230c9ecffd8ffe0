"""What runs, what is asked about, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.neutral.errors import SettingError
from mull.policy.approval import Asked, Decision, Rule, Subject, decide, parse_rule, suggest
from mull.policy.commands import NotUnderstoodError, parse


def a_command(text):
    return Asked("run", True, Subject("command", text))


def a_path(tool, path, *, changes=True):
    return Asked(tool, changes, Subject("path", path, f"/home/me/project/{path}"))


def rules(allow=(), deny=()):
    return [
        *(parse_rule("allow", text) for text in allow),
        *(parse_rule("deny", text) for text in deny),
    ]


def verdict(asked, mode="ask", **texts):
    return decide(asked, mode, rules(**texts)).verdict


def test_what_changes_nothing_runs_and_what_changes_is_asked_about():
    assert verdict(a_path("read", "a.py", changes=False)) == "run"
    assert verdict(a_path("edit", "a.py")) == "ask"
    assert verdict(a_command("ls")) == "ask"


def test_yes_runs_all_and_read_only_refuses_all_that_changes():
    assert verdict(a_command("make"), "yes") == "run"
    assert verdict(a_path("read", "a", changes=False), "read-only") == "run"
    assert decide(a_command("make"), "read-only", rules(allow=["run"])) == Decision(
        "refuse", "mull is in read-only mode and run changes something"
    )


@pytest.mark.parametrize("mode", ["ask", "yes", "read-only"])
def test_a_deny_rule_beats_everything(mode):
    texts = {"allow": ["*", "read", "run"], "deny": ["read(.env)", "run(rm *)"]}
    assert verdict(a_path("read", "sub/.env", changes=False), mode, **texts) == "refuse"
    assert verdict(a_command("rm -rf x"), mode, **texts) == "refuse"


def test_a_refusal_names_the_rule_and_where_it_stands():
    rule = parse_rule("deny", "run(rm *)", ".mull/tools.toml")
    assert decide(a_command("rm x"), "ask", [rule]).reason == (
        "the rule run(rm *) (.mull/tools.toml) denies it"
    )


@pytest.mark.parametrize(
    ("rule", "allowed", "asked"),
    [
        ("edit", ["a", "src/a"], []),
        ("edit(*)", ["a", "src/a"], []),
        ("edit(**)", ["a", "src/a"], []),
        ("edit(src/**)", ["src/a", "src/b/c"], ["a", "lib/src/a"]),
        ("edit(src/)", ["src/a", "src/b/c"], ["src"]),
        ("edit(./src/*.py)", ["src/a.py"], ["src/b/a.py", "a.py"]),
        ("edit(*.md)", ["README.md", "docs/a.md"], ["README.mdx"]),
        ("edit(/home/me/project/src/**)", ["src/a"], ["a"]),
        ("e*(src/**)", ["src/a"], ["a"]),
        ("write", [], ["a"]),
    ],
)
def test_path_patterns(rule, allowed, asked):
    paths = (*allowed, *asked)
    found = [path for path in paths if verdict(a_path("edit", path), allow=[rule]) == "run"]
    assert found == allowed


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", "sub/.git/config", ".mull/tools.toml", ".GIT/config"]
)
def test_folders_that_decide_what_runs_later_have_to_be_named(path):
    for wide in ("write", "write(*)", "write(**)", "*", "write(sub/**)"):
        assert verdict(a_path("write", path), allow=[wide]) == "ask"
    assert verdict(a_path("write", ".git/hooks/x"), allow=["write(.git/hooks/*)"]) == "run"
    assert verdict(a_path("write", path), deny=["write(**)"]) == "refuse"


@pytest.mark.parametrize("pattern", ["secrets", "secrets/", "SECRETS/**", "secrets/*.pem"])
def test_deny_reaches_into_folders_and_takes_no_case(pattern):
    for path in ("secrets/key.pem", "Secrets/KEY.pem"):
        asked = a_path("read", path, changes=False)
        assert verdict(asked, deny=[f"read({pattern})"]) == "refuse"
    assert verdict(a_path("read", "a.pem", changes=False), deny=[f"read({pattern})"]) == "run"


@pytest.mark.parametrize("path", ["．env", ".ｅｎｖ", ".e\u200cnv", ".ENV", "sub/．env.local"])
def test_deny_compares_names_as_a_file_system_may(path):
    assert verdict(a_path("read", path, changes=False), deny=["read(.env*)"]) == "refuse"
    assert verdict(a_path("read", ".env", changes=False), deny=["read(．env*)"]) == "refuse"
    assert verdict(a_path("edit", path), allow=["edit(.env*)"]) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git status -s",
        "git status 'a b'",
        'git status "a b"',
        "git status -s\n",
        "git  status",
        "(git status)",
        "git status # and so on",
        "git status <<< x",
    ],
)
def test_a_command_with_its_arguments_is_allowed(command):
    assert verdict(a_command(command), allow=["run(git status *)"]) == "run"


@pytest.mark.parametrize(
    "command",
    [
        "git status; rm -rf /",
        "git status && rm -rf /",
        "git status || rm -rf /",
        "git status | sh",
        "git status |& sh",
        "git status & rm -rf /",
        "git status\nrm -rf /",
        "git status\rrm -rf /",
        "git status $(rm -rf /)",
        "git status `rm -rf /`",
        "git status ${IFS}",
        "git status $'\\x41'",
        "git status > ~/.bashrc",
        "git status >> ~/.bashrc",
        "git status 2>&1 > ~/.bashrc",
        "git status < /etc/passwd",
        "git status <(rm -rf /)",
        "git status << EOF\nEOF\nrm -rf /",
        "git status \\\n; rm -rf /",
        'git status "$(rm -rf /)"',
        "git status '; rm' ; rm -rf /",
        "PATH=/tmp/evil git status",
        "sudo git status",
        "git statusx",
        "gitstatus",
        "git push",
        "",
    ],
)
def test_a_pattern_is_not_fooled_by_what_follows_or_hides_in_the_command(command):
    assert verdict(a_command(command), allow=["run(git status *)"]) == "ask"


def test_each_part_of_a_compound_command_needs_a_rule():
    both = ["run(make *)", "run(tail *)"]
    assert verdict(a_command("make test 2>&1 | tail -20"), allow=both) == "run"
    assert verdict(a_command("make test > /dev/null && tail log"), allow=both) == "run"
    assert verdict(a_command("make test | tail -20"), allow=both[:1]) == "ask"
    assert verdict(a_command("make test | tail -20 | sh"), allow=both) == "ask"
    assert verdict(a_command("make 'a | b' | tail"), allow=both) == "ask"


def test_a_command_that_was_allowed_as_it_is_is_allowed_as_it_is():
    command = "rm *.pyc; echo $HOME > [a]\\b"
    (exact,) = suggest(a_command(command))
    assert verdict(a_command(command), allow=[exact]) == "run"
    for other in (command.replace("*", "x"), command + " ", command.replace("a", "b")):
        assert verdict(a_command(other), allow=[exact]) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "rm x",
        "rm\t-rf x",
        "  rm x",
        "/bin/rm x",
        "ls; rm x",
        "ls && rm x",
        "ls|rm x",
        "$(rm x)",
        "`rm x`",
        "{ rm x; }",
        "(rm x)",
        "A=1 B=2 rm x",
        "'rm' x",
        'r"m" x',
        "r\\m x",
        "ls\nrm x",
        'A="1 2" rm x',
        "env A=1 rm x",
        "sudo -u me /bin/rm x",
        "timeout 5 nice -n 1 rm x",
        "sh -c 'rm x'",
        '/bin/bash -c "cd /; rm x"',
        "eval rm x",
        "if true; then rm x; fi",
        "while true; do rm x; done",
        "! rm x",
        "time rm x",
        "ls | xargs rm",
        "find . -exec rm {} +",
        "command exec rm x",
        "r\\\nm x",
        "ls | r'm' x",
    ],
)
def test_a_denied_command_is_found_wherever_it_begins(command):
    assert verdict(a_command(command), "yes", deny=["run(rm *)"]) == "refuse"


@pytest.mark.parametrize("command", ["echo rm x", "git rm x", "farm x", "A=rm ls", "./x rm"])
def test_a_word_that_only_looks_like_a_denied_command_is_none(command):
    assert verdict(a_command(command), "yes", deny=["run(rm *)"]) == "run"


def test_a_very_long_command_is_decided_in_no_time():
    words = "sudo " * 200_000
    assert verdict(a_command(words), "yes", deny=["run(rm *)"]) == "run"
    assert verdict(a_command("a=" * 200_000), "yes", deny=["run(rm *)"]) == "run"


def test_other_tools_are_compared_by_their_arguments_as_json():
    asked = Asked("mcp__db__query", True, Subject("text", '{"sql":"select 1"}'))
    assert verdict(asked) == "ask"
    assert verdict(asked, allow=["mcp__db__*"]) == "run"
    assert verdict(asked, allow=["mcp__web__*"]) == "ask"
    assert verdict(asked, allow=['mcp__db__query({"sql":"select*)']) == "run"
    assert verdict(asked, "yes", deny=["mcp__db__query(*SELECT*)"]) == "refuse"


@pytest.mark.parametrize(
    ("asked", "suggested"),
    [
        (a_command("git status -s"), ("run(git status -s)", "run(git status *)")),
        (a_command("rm -rf build"), ("run(rm -rf build)",)),
        (a_command("make"), ("run(make)", "run(make *)")),
        (a_command("pytest -q tests/a.py"), ("run(pytest -q tests/a.py)", "run(pytest *)")),
        (a_command("pytest -p evil"), ("run(pytest -p evil)",)),
        (a_command("git commit -m 'x y'"), ("run(git commit -m 'x y')", "run(git commit *)")),
        (a_command("uv run pytest -x"), ("run(uv run pytest -x)", "run(uv run pytest *)")),
        (a_command("A=1 pytest"), ("run(A=1 pytest)", "run(A=1 pytest *)")),
        (a_command("git diff --output=x"), ("run(git diff --output=x)",)),
        (a_command("./deploy.sh now"), ("run(./deploy.sh now)",)),
        (a_command("pytest > x"), ("run(pytest > x)",)),
        (a_command("a b | c d"), ("run(a b | c d)",)),
        (a_path("edit", "src/a.py"), ("edit(src/a.py)", "edit(src/**)", "edit(**)")),
        (a_path("edit", "a[1].py"), ("edit(./a\\[1].py)", "edit(**)")),
        (a_path("edit", ".git/config"), ("edit(.git/config)",)),
        (Asked("mcp__a__b", True, Subject("text", "{}")), ("mcp__a__b",)),
    ],
)
def test_rules_are_suggested_from_narrow_to_wide_and_each_allows_the_call(asked, suggested):
    assert suggest(asked) == suggested
    for text in suggested:
        assert verdict(asked, allow=[text]) == "run"


@pytest.mark.parametrize("text", ["", " ", "run(", "run()", "run x", "(a)", "a b(c)"])
def test_what_is_no_rule_is_refused(text):
    with pytest.raises(SettingError, match="is not a rule: write a tool"):
        parse_rule("allow", text)


def test_a_rule_is_written_as_it_was_read():
    for text in ("run", "run(a (b) c)", "mcp__*"):
        assert parse_rule("allow", text).text == text
    assert parse_rule("deny", " run(a) ", "f") == Rule("deny", "run", "a", "f")


SHELL = st.text("ab '\"\\$`;&|<>(){}*#!~\n\r=", max_size=20)


@given(SHELL, SHELL)
def test_a_rule_never_allows_a_command_with_another_one_in_it(before, after):
    command = f"git status {before}; rm -rf / {after}"
    try:
        names = [one.words[0].text for one in parse(command) if one.words]
    except NotUnderstoodError:
        names = ["rm"]
    allowed = verdict(a_command(command), allow=["run(git status *)"]) == "run"
    assert not allowed or set(names) == {"git"}  # the rest is quoted, or a comment


def test_accepted_edits_run_and_everything_else_is_asked_about():
    mode = "accept-edits"
    assert verdict(a_path("edit", "src/a.py"), mode) == "run"
    assert verdict(a_path("write", "new.txt"), mode) == "run"
    assert verdict(a_command("make"), mode) == "ask"
    assert verdict(Asked("mcp__x__y", True, Subject("text", "{}")), mode) == "ask"
    assert verdict(Asked("edit", True, Subject("path", "/etc/hosts", "/etc/hosts")), mode) == "ask"
    assert verdict(a_path("edit", ".git/hooks/pre-commit"), mode) == "ask"
    assert verdict(Asked("edit", True, Subject("path", "a", "/p/a", guarded=True)), mode) == "ask"
    assert verdict(a_path("edit", "a.py"), mode, deny=["edit(*.py)"]) == "refuse"
    assert verdict(a_command("git status"), mode, allow=["run(git status)"]) == "run"
