"""Patches as codex writes them: parsed, applied whole or not at all, asked about file by file."""

import asyncio

import pytest

from growth import ends
from mull.agent.calls import Calls, allow_all
from mull.agent.tools.approve import ApprovalAnswer, Gate
from mull.agent.tools.patch import apply_hunks, parse_patch
from mull.agent.tools.table import builtin_tools
from mull.agent.tools.tool import ToolFailure
from mull.neutral.blocks import ToolCallBlock
from mull.policy.approval import parse_rule
from tool_calls import fill

PATCH = """\
*** Begin Patch
*** Add File: new/hello.txt
+Hello
+
+world
*** Update File: src/app.py
*** Move to: src/main.py
@@ def greet():
-    print("Hi")
+    print("Hello")
*** Update File: notes.txt
@@
 one
-two
+2
 three
*** Delete File: old.txt
*** End Patch
"""
FILES = {
    "src/app.py": 'def other():\n    print("Hi")\n\ndef greet():\n    print("Hi")\n',
    "notes.txt": "one\r\ntwo\r\nthree",
    "old.txt": "gone\n",
}


def apply(folder, patch, approve=allow_all, name="apply_patch", given=None):
    """The output of the call, and the files afterwards."""

    async def run():
        tools = builtin_tools(fill(folder, FILES))
        made = [ToolCallBlock("c", name, given or {"input": patch})]
        calls = Calls(made, tools, approve, lambda event: None)
        await calls.run()
        return calls.results()[0]

    result = asyncio.run(run())
    files = {
        str(path.relative_to(folder)): path.read_bytes().decode()
        for path in folder.rglob("*")
        if path.is_file()
    }
    return result, files


def test_files_are_added_changed_moved_and_deleted(tmp_path):
    fill(tmp_path, FILES)
    (tmp_path / "src/app.py").chmod(0o750)
    result, files = apply(tmp_path, PATCH)
    assert (tmp_path / "src/main.py").stat().st_mode & 0o777 == 0o750
    assert not result.is_error, result.output
    assert result.output.split("\n") == [
        "created new/hello.txt: 3 lines, 13 bytes",
        "moved src/app.py to src/main.py",
        "edited notes.txt (+1 −1)",
        "deleted old.txt",
    ]
    assert files == {
        "new/hello.txt": "Hello\n\nworld\n",
        "src/main.py": 'def other():\n    print("Hi")\n\ndef greet():\n    print("Hello")\n',
        "notes.txt": "one\r\n2\r\nthree",
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("-two", "-tow"), "part 1 of the patch does not match notes.txt"),
        (
            ("Delete File: old.txt", "Delete File: odl.txt"),
            "odl.txt does not exist; closest matches",
        ),
        (("Add File: new/hello.txt", "Add File: old.txt"), "old.txt already exists"),
        (("Add File: new/hello.txt", "Add File: ../x"), "outside the working folder"),
        (("Move to: src/main.py", "Move to: notes.txt"), "notes.txt already exists"),
        (("Add File: new/hello.txt", "Add File: src/../src/main.py"), "names src/main.py twice"),
        (("+world", "world"), "does not start with +"),
        (("*** Begin Patch\n", ""), "does not start with"),
    ],
)
def test_a_patch_that_fails_anywhere_changes_nothing(tmp_path, change, said):
    result, files = apply(tmp_path, PATCH.replace(*change))
    assert result.is_error
    assert said in result.output
    assert files == FILES


@pytest.mark.parametrize("other", ["notes.txt", "./notes.txt", "link"])
def test_a_file_is_changed_once_by_whatever_name(tmp_path, other):
    (tmp_path / "link").symlink_to("notes.txt")
    parts = "".join(
        f"*** Update File: {name}\n@@\n-{old}\n+x\n"
        for name, old in (("notes.txt", "one"), (other, "three"))
    )
    result, _ = apply(tmp_path, f"*** Begin Patch\n{parts}*** End Patch")
    assert result.output == "the patch names notes.txt twice: combine both under one header"
    assert (tmp_path / "notes.txt").read_bytes() == FILES["notes.txt"].encode()


def test_arguments_that_are_no_patch_are_answered_with_the_shape(tmp_path):
    result, _ = apply(tmp_path, 7)
    assert result.output.endswith('expected: {"patch": string}')


def test_a_write_that_fails_takes_back_what_was_written_before(tmp_path, monkeypatch):
    from mull.agent.tools import change

    def refuse(place):
        raise ToolFailure("no")

    monkeypatch.setattr(change, "remove_file", refuse)
    patch = PATCH[: PATCH.index("*** Add")] + PATCH[PATCH.index("*** Update File: notes") :]
    result, files = apply(tmp_path, patch)
    assert (result.output, result.is_error) == ("no", True)
    assert files == FILES


class Person:
    def __init__(self, choice):
        self.choice = choice
        self.asked = []
        self.shown = []

    async def ask(self, request):
        self.shown.append(request.preview.detail)
        self.asked.append((request.tool, request.preview.title, request.rules))
        return ApprovalAnswer(self.choice)


def test_it_is_asked_about_once_and_rules_hold_for_every_file(tmp_path):
    person = Person("session")
    gate = Gate(approver=person)
    result, _ = apply(tmp_path, PATCH, gate.admit)
    assert not result.is_error
    assert person.shown[0].split("\n")[:5] == [
        "write new/hello.txt (+3 −0), new", "move src/app.py to src/main.py", "delete src/app.py",
        "edit notes.txt (+1 −1)", "delete old.txt",
    ]  # fmt: skip
    title = "write new/hello.txt (+3 −0), new and 4 more changes"
    ((tool, title_shown, rules),) = person.asked
    assert (tool, title_shown) == ("write", title)
    assert set(rules) == {
        "write(new/**)", "write(src/**)", "edit(src/**)", "edit(./notes.txt)", "edit(./old.txt)",
    }  # fmt: skip
    assert [rule.text for rule in gate.session] == list(rules)


@pytest.mark.parametrize("rule", ["edit(old.txt)", "write(new/**)", "edit(src/app.py)"])
def test_a_rule_that_denies_one_file_denies_the_patch(tmp_path, rule):
    gate = Gate("yes", [parse_rule("deny", rule)])
    result, files = apply(tmp_path, PATCH, gate.admit)
    assert f"the rule {rule} denies it" in result.output
    assert files == FILES


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("shell", {"command": ["apply_patch", PATCH]}),
        ("bash", {"command": f"apply_patch <<'EOF'\n{PATCH}EOF\n"}),
        ("functions.apply_patch", {"patch": PATCH}),
    ],
)
def test_a_patch_by_way_of_a_shell_is_no_command(tmp_path, name, given):
    gate = Gate("yes", [parse_rule("deny", "run")])
    result, files = apply(tmp_path, PATCH, gate.admit, name, given)
    assert not result.is_error, result.output
    assert "old.txt" not in files


@pytest.mark.parametrize(
    ("before", "hunks", "after"),
    [
        ("a\nb\n", "@@\n a\n+x\n b\n", "a\nx\nb\n"),
        ("a\nb\n", "@@ b\n+x\n", "a\nb\nx\n"),
        ("a\nb\n", "+x\n", "a\nb\nx\n"),
        ("", "+x\n", "x\n"),
        ("x\na\nx\n", "@@\n-x\n+y\n*** End of File\n", "x\na\ny\n"),
        ("  a  \n\tb\n", "@@\n   a\n-b\n+c\n", "  a  \nc\n"),
        ("a\r\nb\r\nc\n", "@@\n-b\n+x\n", "a\r\nx\r\nc\n"),
        ("a\nb\na\nb\n", "@@\n-b\n+1\n@@\n-b\n+2\n", "a\n1\na\n2\n"),
        ("a\n", "@@\n-a\n", ""),
    ],
)
def test_lines_are_found_and_the_others_keep_every_byte(before, hunks, after):
    [file] = parse_patch(f"*** Begin Patch\n*** Update File: f\n{hunks}*** End Patch")
    assert apply_hunks(before, file.hunks, "f", may_quote=True) == after


def test_a_large_patch_takes_time_that_grows_with_it():
    hunks = "".join(f"@@\n x\n-{n}\n+y\n" for n in range(20_000))
    with ends():
        [file] = parse_patch(f"*** Begin Patch\n*** Update File: f\n{hunks}*** End Patch")
        text = "".join(f"x\n{n}\n" for n in range(20_000))
        assert apply_hunks(text, file.hunks, "f", may_quote=True) == "x\ny\n" * 20_000
