"""Commands are taken apart as bash would, or not at all."""

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.policy.commands import NotUnderstoodError, parse


def texts(command):
    return [[word.text for word in one.words] for one in parse(command)]


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("ls -la | head -3", [["ls", "-la"], ["head", "-3"]]),
        ("a && b || c; d\ne", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("a |\n b &&\n\n c", [["a"], ["b"], ["c"]]),
        ("""echo 'a b' "c d" e\\ f g"h"'i'""", [["echo", "a b", "c d", "e f", "ghi"]]),
        ('echo "a\\"b" \'it\'\'s\' ""', [["echo", 'a"b', "its", ""]]),
        ("ls \\\n -l", [["ls", "-l"]]),
        ("l\\\ns", [["ls"]]),
        ("echo a#b # c; rm x", [["echo", "a#b"]]),
        ("# nothing\nls", [["ls"]]),
        ("! test -f x", [["test", "-f", "x"]]),
        ("[ -f x ] && ls", [["[", "-f", "x", "]"], ["ls"]]),
        ("(cd x; ls) | wc", [["cd", "x"], ["ls"], ["wc"]]),
        ("{ ls; pwd; }", [["ls"], ["pwd"]]),
        ("find . \\( -name 'a*' \\)", [["find", ".", "(", "-name", "a*", ")"]]),
        ("echo 5$ $ a$", [["echo", "5$", "$", "a$"]]),
        ("git show HEAD@{1}", [["git", "show", "HEAD@{1}"]]),
        ("ls;", [["ls"]]),
        ("", []),
    ],
)
def test_words(command, parts):
    assert texts(command) == parts


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("echo $(git status; ls)", [["git", "status"], ["ls"]]),
        ('echo "a $(ls "b c") d"', [["ls", "b c"]]),
        ("echo `ls -l`", [["ls", "-l"]]),
        ("echo $(echo $(rm x))", [["rm", "x"], ["echo", ""]]),
    ],
)
def test_commands_in_substitutions_are_found_and_the_word_is_open(command, inner):
    *found, last = parse(command)
    assert [[word.text for word in one.words] for one in found] == inner
    assert all(one.inner for one in found)
    assert last.words[1].open


@pytest.mark.parametrize(
    "word",
    ["$x", "${x}", "$1", '"$x"', "a$?", "{a,b}", "{1..3}", "~", "~/x", "--x=~/y", "$(ls)", "`ls`"],
)
def test_a_word_that_is_not_known_is_open(word):
    (*_, command) = parse(f"ls {word}")
    assert command.words[1].open


@pytest.mark.parametrize(
    "word", ["'$x'", "\\$x", "'{a,b}'", "\\~", "a~b", "{a}", "a{b}c", "'`ls`'"]
)
def test_a_word_that_is_quoted_is_itself(word):
    (command,) = parse(f"ls {word}")
    assert not command.words[1].open


def test_patterns_of_file_names_and_what_is_quoted_in_them():
    (command,) = parse("ls *.py 'a*'? [ab]c \\*x 'x*' [ x]")
    assert [word.glob for word in command.words[1:]] == ["*.py", "a\\*?", "[ab]c", "", "", "", ""]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("ls > x", [(">", "x")]),
        ("ls 2>&1 >/dev/null", [(">&", "1"), (">", "/dev/null")]),
        ("ls &>> 'a b'", [("&>>", "a b")]),
        ("<in cat", [("<", "in")]),
        ("cat <<< word", [("<<<", "word")]),
        ("cat <<'E'\na $x\nb\nE\n", [("<<", "a $x\nb")]),
        ("cat <<-E\n\ta\n\tE", [("<<-", "\ta")]),
        ("echo 2 >x", [(">", "x")]),
        ("echo 2&>x", [("&>", "x")]),
        ("echo ٣>&1", [(">&", "1")]),
    ],
)
def test_redirections(command, found):
    (one,) = parse(command)
    assert [(each.operator, each.target.text) for each in one.redirections] == found


def test_what_follows_a_here_document_is_found():
    assert texts("cat <<'E' | grep x\nrm y\nE\nrm z") == [["cat"], ["grep", "x"], ["rm", "z"]]


def test_assignments_are_not_the_program():
    (one,) = parse("A=1 B='x y' ls C=2")
    assert [word.raw for word in one.assignments] == ["A=1", "B='x y'"]
    assert [word.text for word in one.words] == ["ls", "C=2"]


@pytest.mark.parametrize(
    "command",
    [
        "a & b", "a &", "for i in a; do b; done", "if a; then b; fi", "while a; do b; done",
        "case a in b) c;; esac", "f() { a; }", "function f { a; }", "[[ a ]]", "((1))", "()",
        "echo $((1))",
        "echo $[1]", "a <(b)", "a >(b)", "a=(1 2)", "echo ${x:-y}", "echo ${x//a/b}", "echo $'a'",
        'echo $"a"', "ls)", "(ls", "{ ls", "{ ls }", "ls;;", "&& ls", "ls &&", "ls ||", "ls |",
        "ls 1234567890</dev/null",
        "echo 'a", 'echo "a', "echo `a", "echo $(a", "ls >", "cat <<E\n$x\nE", "cat <<E\n`a`\nE",
        "cat <<E\na", "cat <<E 'a\nE\n'", "cat <<A <<B\nA\nB", "time ls", "ls\rrm", "ls\0",
        "ls\u00a0x",
        "ls\u2028rm", "ls \u200b", "@(a)", "a" * 20_001, "(" * 20 + "ls" + ")" * 20,
    ],
)  # fmt: skip
def test_what_is_not_understood_is_told(command):
    with pytest.raises(NotUnderstoodError):
        parse(command)


SHELL = st.text("ab -.=,'\"\\$`;&|<>(){}[]*?#!~\n\t:@+^%0", max_size=14) | st.lists(
    st.sampled_from(
        ["a", " b ", "$(", ")", "`", "'", '"', "<<a", "\n", "a\n", "; ", "| ", "\\", "#"]
    ),
    max_size=9,
).map("".join)
BASH = shutil.which("bash")
LISTEN = """command_not_found_handle() { printf '%s\\0' "$@" $'\\1' >&9; }; set -f; """


@pytest.mark.skipif(BASH is None, reason="there is no bash")
@given(st.lists(SHELL, min_size=1, max_size=8))
def test_bash_runs_nothing_that_was_not_found(tmp_path_factory, commands):
    """It tells what it would run, where no program can be found."""
    folder = tmp_path_factory.getbasetemp() / "bash"
    folder.mkdir(exist_ok=True)
    for command in (f"ab {text}" for text in commands):
        try:
            found = parse(command)
        except NotUnderstoodError:
            continue
        (folder / "heard").write_bytes(b"")
        subprocess.run(
            [BASH, "-c", f"exec 9>heard\n{LISTEN}\n{command}"],
            cwd=folder,
            env={"PATH": "/nowhere"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        heard = (folder / "heard").read_bytes().split(b"\0\1\0")[:-1]
        for ran in (words.decode().split("\0") for words in heard):
            assert any(_is(one, ran) for one in found), (command, ran)


def _is(one, ran):
    """Whether bash ran this: what an open word becomes is not known."""
    if not any(word.open for word in one.words):
        return [word.text for word in one.words] == ran
    return bool(one.words[0].open) or one.words[0].text == ran[0]
