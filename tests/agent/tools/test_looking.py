"""Commands that run unasked: what their words lead to is looked up."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mull.agent.tools.looking import command_subject
from mull.agent.tools.table import builtin_tools
from mull.agent.tools.workspace import Workspace
from mull.policy.approval import Asked, decide, parse_rule
from tool_calls import call


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    outside, folder = tmp_path / "outside", tmp_path / "work"
    for made in (outside, folder / "src/deep", folder / "docs", tmp_path / "home"):
        made.mkdir(parents=True)
    (outside / "secret.txt").write_text("secret\n")
    for name in ("a.txt", "b.txt", "src/c.py", "src/deep/d.py", "docs/e.md", ".hidden"):
        (folder / name).write_text(f"{name}\n")
    (folder / "link.txt").symlink_to(outside / "secret.txt")
    (folder / "docs/out").symlink_to(outside)
    (folder / "fine").symlink_to("src")
    (folder / "far").symlink_to("src/deep")
    return folder


def reason(folder, command, *deny):
    rules = [parse_rule("deny", text) for text in deny]
    return command_subject(command, Workspace(folder), rules).judged.reason


@pytest.mark.parametrize(
    "command",
    [
        "cat a.txt src/c.py",
        "cat ./src/../a.txt",
        "cat {folder}/a.txt",
        "cat fine/c.py",
        "cat missing.txt",
        "cat [ab].txt src/*.py src/*/*.py",
        "ls src/*",
        "cat 'a.txt' -- b.txt",
        "cd src && cat deep/*.py",
        "cd {folder}/src && cd deep && cat d.py ../c.py ../../a.txt",
        "head < a.txt",
        "grep -r x .",
        "diff a.txt b.txt",
        "find . -newer a.txt",
        "cat /dev/null",
    ],
)
def test_what_is_in_the_folder_is_read_unasked(folder, command):
    assert reason(folder, command.format(folder=folder)) == ""


@pytest.mark.parametrize(
    "command",
    [
        "cat link.txt",
        "cat docs/out/secret.txt",
        "cat docs/out/*",
        "cat *.txt",
        "cat docs/*/secret.txt",
        "cat ../outside/secret.txt",
        "cat src/../../outside/secret.txt",
        "cat {folder}/../outside/secret.txt",
        "cat /etc/passwd",
        "cat ../*/secret.txt",
        "cat /*/passwd",
        "cat docs/ou[t]/secret.txt",
        "cat docs/o?t/secret.txt",
        "cat [[:alpha:]]*",
        "cat [K-M]ink.txt",
        "cd docs/out && cat secret.txt",
        "cd .. && ls",
        "cat < link.txt",
        "grep -f link.txt a.txt",
        "grep --file=link.txt a.txt",
        "find . -newer ../outside",
        "diff a.txt link.txt",
        "diff src docs",
        "sort -k 1 link.txt",
        "realpath --relative-to=.. a.txt",
        "jq --slurpfile a link.txt . a.txt",
        "wc -l < ../outside/secret.txt",
        "cd far/../.. && cat outside/secret.txt",
        "cd far && cd ../.. && cat outside/secret.txt",
        "cd far/../.. && ls",
        "echo ../outside/*",
        "test -e ../outside/secret.txt",
        "[ -s /etc/shadow ]",
        "true docs/out/*",
        "ruff check --isolated --no-cache .",
        "mypy --config-file= --cache-dir=/dev/null src",
    ],
)
def test_what_leads_out_of_the_folder_is_asked_about(folder, command):
    assert reason(folder, command.format(folder=folder))


@pytest.mark.parametrize("name", ["-", "-P", "shut"])
def test_cd_that_goes_elsewhere_than_it_looks_is_asked_about(folder, monkeypatch, name):
    (folder / name).mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "shut")
    assert "leaves" in reason(folder, f"cd {name} && cat a.txt")


@pytest.mark.parametrize("command", ["cat ٣</dev/null", "cat ²>&1", "cat 12&>/dev/null", "ls .*"])
def test_words_that_bash_may_see_where_others_see_none_are_looked_up(folder, command):
    for name in ("٣", "²", "12"):
        (folder / name).symlink_to("../outside/secret.txt")
    assert "leads out of the folder" in reason(folder, command)


@pytest.mark.parametrize("name", ["-n", "--output=x.txt", "+x.txt", "@x.txt", "!x.txt", "(.txt"])
def test_a_file_whose_name_is_more_than_a_name_is_asked_about(folder, name):
    (folder / "link.txt").unlink()
    assert reason(folder, "sort *.txt *") == ""
    (folder / name).write_text("x\n")
    assert "becomes" in reason(folder, "sort *.txt *")
    assert reason(folder, "sort ./*") == ""


@pytest.mark.parametrize(
    ("deny", "asked", "fine"),
    [
        ("read(.env*)", "cat .env", "cat a.txt"),
        ("read(.env*)", "cat .en?", "cat *.py"),
        ("read(.env*)", "cat ./src/../.ENV", "ls -la"),
        ("read(.env*)", "grep -r x .", "grep x .gitignore a.txt"),
        ("read(.env*)", "grep -r x", "ls | grep x"),
        ("read(.env*)", "rg --hidden x", "rg x"),
        ("read(.env*)", "rg -uu x", "rg -i x"),
        ("read(.env*)", "rg -g '.e*' x", "rg x src"),
        ("read(.env*)", "rg -t py x", "rg --files-with-matches x"),
        ("read(.env*)", "rg --ignore-file=a.txt x", "rg -F x"),
        (
            "read(src/c.py)",
            "ruff check --isolated --no-cache src",
            "ruff check --isolated --no-cache docs",
        ),
        ("read(src/c.py)", "cd src && ruff check --isolated --no-cache", "cat docs/e.md"),
        ("read(src/c.py)", "cd src && true | ruff check --isolated --no-cache", "cat docs/e.md"),
        ("read(a.txt)", "rg x", "rg x src"),
        ("read(a.txt)", "cat b.txt | rg x < /dev/null", "cat b.txt | grep x"),
        ("read(.env*)", "sort < .env", "sort < a.txt"),
        ("read(src/deep/)", "grep -r x src", "grep -r x docs"),
        ("read(src/deep/**)", "rg x", "rg x docs"),
        ("read(src/deep/**)", "grep -r x src/deep", "grep -r x docs"),
        ("read(src/deep/**)", "cd src/deep && rg x", "cd docs && rg x"),
        ("read(src/deep/*.py)", "cd src && cat deep/d.py", "cd src && cat c.py"),
        ("read(*.py)", "cat src/c.py", "cat a.txt"),
        ("read", "cat a.txt", "pwd"),
        ("*(*.py)", "rg x src", "rg x docs"),
        ("list(src)", "ls src", "ls docs"),
    ],
)
def test_what_a_rule_denies_is_asked_about(folder, deny, asked, fine):
    (folder / ".env").write_text("KEY=x\n")
    assert reason(folder, asked) == ""
    assert reason(folder, asked, deny)
    assert reason(folder, fine, deny) == ""


def test_what_a_module_may_import_is_looked_up(folder):
    for link in ("link.txt", "docs/out"):
        (folder / link).unlink()
    command = "mypy --config-file= --cache-dir=/dev/null src/c.py"
    assert reason(folder, command) == ""
    assert "d.py, which is denied" in reason(folder, command, "read(src/deep/d.py)")


@pytest.mark.parametrize("line", ["!.env", "!/.env", "!.env*", "!.e[n]v", "!*", "!**/.env "])
@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".rgignore", "../.ignore"])
def test_an_ignore_file_that_shows_hidden_files_is_heeded(folder, name, line):
    (folder / ".env").write_text("KEY=x\n")
    (folder / name).write_text("!.env.example\n!src/.keep\n")
    assert reason(folder, "rg x", "read(.env)") == ""
    (folder / name).write_text(f"*.log\n{line}\n")
    assert reason(folder, "rg x", "read(.env)") == ". has .env, which is denied"


def allowed(folder, rule, command, *deny):
    rules = [parse_rule("deny", text) for text in deny]
    subject = command_subject(command, Workspace(folder), rules)
    rules.append(parse_rule("allow", rule))
    return decide(Asked("run", True, subject), "ask", rules).verdict == "run"


@pytest.mark.parametrize("command", ["grep -r x", "rg --hidden x", "rg -u x"])
def test_a_star_reads_nothing_that_is_denied_without_a_name(folder, command):
    rule = f"run({command.split()[0]} *)"
    assert allowed(folder, rule, command, "read(.env*)")
    (folder / ".env").write_text("KEY=x\n")
    assert not allowed(folder, rule, command, "read(.env*)")
    assert not allowed(folder, f"run({command} *)", command, "read(.env*)")
    assert allowed(folder, f"run({command})", command, "read(.env*)")


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("run(ruff format *)", "ruff format src"),
        ("run(ruff format *)", "ruff format"),
        ("run(black *)", "black -q src/deep"),
        ("run(tool *)", "tool ./src"),
    ],
)
@pytest.mark.parametrize("deny", ["edit(kept.py)", "write(src/**/kept.py)", "*(kept.py)"])
def test_nor_does_a_star_write_what_is_denied_in_a_folder(folder, rule, command, deny):
    assert allowed(folder, rule, command, deny)
    (folder / "src/deep/kept.py").write_text("x\n")
    assert not allowed(folder, rule, command, deny)
    assert allowed(folder, rule, f"{rule[4:-3]} src/c.py", deny)
    assert allowed(folder, f"run({command})", command, deny)
    assert allowed(folder, rule, command, "list(kept.py)")


def test_nor_does_git_behind_a_star(repository):
    (repository / ".env").write_text("KEY=x\n")
    assert allowed(repository, "run(git diff *)", "git diff", "read(.env*)")
    subprocess.run(("git", "add", "-f", ".env"), cwd=repository, check=True)
    assert not allowed(repository, "run(git diff *)", "git diff", "read(.env*)")
    assert allowed(repository, "run(git status *)", "git status", "read(.env*)")


def test_a_star_stands_for_paths_that_are_there_and_not_for_addresses(folder):
    (folder / "mirror").mkdir()
    assert allowed(folder, "run(tool *)", "tool a.txt src/c.py ./new.txt")
    assert not allowed(folder, "run(curl *)", "curl example.org")
    assert not allowed(folder, "run(curl *)", "curl example.org/a.txt")
    assert allowed(folder, "run(git push *)", "git push -u origin main")
    assert not allowed(folder, "run(git push *)", "git push mirror main")
    assert not allowed(folder, "run(git fetch *)", "git fetch src/deep")


def test_a_folder_with_too_much_in_it_is_asked_about(folder, monkeypatch):
    monkeypatch.setattr("mull.agent.tools.looking._MOST", 3)
    assert reason(folder, "grep -r x .") == ""
    assert reason(folder, "grep -r x .", "read(.env)") == ". is too much to look at"
    assert reason(folder, "ls *") == "* is too much to look at"


def test_a_program_that_the_folder_has_a_say_in_is_asked_about(folder, tmp_path, monkeypatch):
    place = folder / ".venv/bin"
    place.mkdir(parents=True)
    (place / "cat").write_text("#!/bin/sh\ntouch PWNED\n")
    (place / "cat").chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:/usr/bin:/bin")
    assert reason(folder, "cat a.txt") == "cat is a program in the folder"
    assert reason(folder, "head a.txt") == ""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/cat").symlink_to(place / "cat")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    assert reason(folder, "cat a.txt") == "cat is a program in the folder"
    (tmp_path / "shims").mkdir()
    (tmp_path / "bin/cat").rename(tmp_path / "shims/head")
    monkeypatch.setenv("PATH", f"{tmp_path}/shims:/usr/bin:/bin")
    assert reason(folder, "head a.txt") == "which head it is depends on the folder"
    for path in (".:/bin", "/bin:", "bin:/bin"):
        monkeypatch.setenv("PATH", path)
        assert reason(folder, "cat a.txt") == "PATH has folders that are not absolute"


def git(folder, *words):
    who = ("-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(folder):
    git(folder, "init", "-q")
    (folder / ".env").write_text("KEY=x\n")
    (folder / ".gitignore").write_text(".env\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git diff HEAD -- src/*.py",
        "git log -p -1",
        "git show HEAD:a.txt",
        "cd src && git log --oneline",
        "git -C src status",
        "git branch --list",
    ],
)
def test_git_that_only_looks_runs_unasked(repository, command):
    assert reason(repository, command) == ""
    assert reason(repository, command, "read(.env)") == ""
    (repository / ".git/config").write_text("[core]\nfsmonitor = touch PWNED\n")
    assert reason(repository, command)


@pytest.mark.parametrize(
    "command",
    [
        "git diff /dev/null /etc/passwd",
        "git diff ../outside/secret.txt a.txt",
        "git -C .. status",
        "git -C docs/out log",
        "git blame ../x",
        "git log -- /etc",
        "git diff :(top)../x",
        "git log --format=%G?",
        "git log --format=%+GG",
        "git show -s --pretty='format:%-GK'",
        "git log -p -U ..",
        "git blame --abbrev ..",
    ],
)
def test_git_that_leads_elsewhere_is_asked_about(repository, command):
    assert reason(repository, command)


def test_git_shows_nothing_that_is_denied(repository):
    denied = ("read(.env)", "read(src/c.py)")
    for command in ("git show HEAD:.env", "git log -p -- .env", "git diff ':(icase).env'"):
        assert reason(repository, command, denied[0]) == ".env is denied"
    assert reason(repository, "git diff", denied[0]) == ""
    assert reason(repository, "git diff", denied[1]) == "src/c.py is denied"
    assert reason(repository, "git status", denied[1]) == ""


def test_git_shows_nothing_outside_the_folder(repository):
    assert reason(repository / "src", "git status") == ""
    assert (
        reason(repository / "src", "git diff") == "its repository is larger than the working folder"
    )
    assert reason(repository / "docs", "git -C ../src status")


def test_a_folder_that_is_no_ordinary_repository_is_asked_about(folder):
    assert reason(folder, "git status") == "git has no repository here"
    git(folder, "init", "-q", "--bare", ".")
    assert reason(folder, "git log") == "git has no repository here"


def test_the_tool_runs_it_unasked_and_asks_for_the_rest(repository):
    run = builtin_tools(Workspace(repository), rules=[parse_rule("deny", "read(.env)")])["run"]
    verdicts = {
        command: decide(run.prepare(call("run", command=command)).asked, mode, ()).verdict
        for command, mode in [
            ("ls -la | head -3", "ask"),
            ("git status", "read-only"),
            ("cat .env", "ask"),
            ("cat ../outside/secret.txt", "accept-edits"),
            ("touch x", "ask"),
        ]
    }
    assert list(verdicts.values()) == ["run", "run", "ask", "ask", "ask"]


def test_a_deny_rule_for_commands_still_refuses_what_is_harmless(folder):
    subject = command_subject("ls | cat", Workspace(folder), ())
    asked = builtin_tools(Workspace(folder))["run"].prepare(call("run", command="ls | cat")).asked
    assert subject.is_harmless
    assert decide(asked, "ask", [parse_rule("deny", "run(cat *)")]).verdict == "refuse"


def test_a_star_stands_for_no_protected_file_however_it_is_called(folder):
    run = builtin_tools(Workspace(folder), rules=[parse_rule("deny", "edit(docs/)")])["run"]
    (folder / "AGENTS.md").write_text("x\n")
    (folder / "notes.md").symlink_to("AGENTS.md")
    rules = [parse_rule("allow", "run(fmt2 *)")]
    for word, verdict in [
        ("src/c.py", "run"),
        ("AGENTS.md", "ask"),
        ("./notes.md", "ask"),
        ("./*.md", "ask"),
        ("docs/e.md", "ask"),
        ("link.txt", "ask"),
    ]:
        asked = run.prepare(call("run", command=f"fmt2 {word}")).asked
        assert decide(asked, "ask", rules).verdict == verdict, word


def test_a_rule_and_what_is_harmless_allow_a_command_together(folder):
    run = builtin_tools(Workspace(folder))["run"]
    rules = [parse_rule("allow", "run(make *)")]
    for command, verdict in [
        ("cd src && make test 2>&1 | tail -20", "run"),
        ("make test | tail -20 link.txt", "ask"),
        ("make test && rm x", "ask"),
    ]:
        asked = run.prepare(call("run", command=command)).asked
        assert decide(asked, "ask", rules).verdict == verdict
