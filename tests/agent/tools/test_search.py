"""`search`, by the stand-in; tests/judges/test_ripgrep.py compares it with ripgrep itself."""

import asyncio
import os

import pytest

from mull.agent.processes import members
from mull.agent.tools import search
from mull.agent.tools.table import builtin_tools
from mull.agent.tools.tool import Preview
from mull.policy.approval import parse_rule
from tool_calls import answer, call, fail, fill, preview, start, use


@pytest.fixture(autouse=True)
def _without_ripgrep(monkeypatch):
    monkeypatch.setattr(search, "find_program", lambda *_: None)


def test_matching_lines_come_file_by_file(tmp_path):
    workspace = fill(tmp_path, {"b.py": "x = 1\ny\nx\n", "a/c.py": "x\r\n", "d.py": "z\n"})
    assert use(workspace, "search", pattern="x") == "a/c.py\n1: x\n\nb.py\n1: x = 1\n3: x"
    assert use(workspace, "search", pattern="x", path="a") == "a/c.py\n1: x"
    assert use(workspace, "search", pattern="x$", path="b.py") == "b.py\n3: x"
    assert use(workspace, "search", pattern="nothing") == "[no matches]"


def test_case_counts_unless_said_otherwise(tmp_path):
    workspace = fill(tmp_path, {"a": "Hello\nhello\n"})
    assert use(workspace, "search", pattern="hello") == "a\n2: hello"
    assert use(workspace, "search", pattern="HELLO", ignore_case=True) == "a\n1: Hello\n2: hello"


def test_a_glob_chooses_files(tmp_path):
    names = ("a.py", "src/b.py", "src/c.ts", "src/deep/d.tsx")
    workspace = fill(tmp_path, dict.fromkeys(names, "x\n"))

    def found(glob, path="."):
        output = use(workspace, "search", pattern="x", glob=glob, path=path)
        return [row for row in output.split("\n") if row in names]

    assert found("*.py") == ["a.py", "src/b.py"]
    assert found("src/**/*.{ts,tsx}") == ["src/c.ts", "src/deep/d.tsx"]
    assert found("deep/*", path="src") == ["src/deep/d.tsx"]
    assert found("src/*.ts", path="src") == ["src/c.ts"]
    assert "more than 64" in fail(workspace, "search", pattern="x", glob="{a,b}" * 9)


def test_lines_around_a_match_are_shown_with_gaps_between_groups(tmp_path):
    workspace = fill(tmp_path, {"a": "1\n2\nx\n4\n5\n6\n7\nx\nx\n10\n"})
    assert use(workspace, "search", pattern="x", context=1) == (
        "a\n2- 2\n3: x\n4- 4\n--\n7- 7\n8: x\n9: x\n10- 10"
    )
    assert use(workspace, "search", pattern="x", context=1, offset=1, limit=1) == (
        "a\n7- 7\n8: x\n[there are more matches: continue with offset=2]"
    )


def test_many_matches_are_read_on_with_an_offset(tmp_path):
    workspace = fill(tmp_path, {f"{n}": "x\nx\n" for n in range(5)})
    pages, offset = [], 0
    while True:
        page = use(workspace, "search", pattern="x", limit=3, offset=offset).split("\n")
        pages += [row for row in page if ": x" in row]
        if not page[-1].startswith("[there are more"):
            break
        offset = int(page[-1].split("=")[1].rstrip("]"))
    assert len(pages) == 10
    assert use(workspace, "search", pattern="x", offset=10) == "[no more than 10 matches]"


def test_a_page_is_limited_by_its_size(tmp_path):
    workspace = fill(tmp_path, {"a": f"{'x' * 2000}\n" * 300})
    page = use(workspace, "search", pattern="x", limit=1000)
    assert len(page) < 65_000
    assert f"{'x' * 500} […]" in page
    assert page.endswith(f"continue with offset={page.count(': x')}]")


def test_binary_files_links_fifos_and_ignored_files_are_passed_over(tmp_path):
    workspace = fill(
        tmp_path,
        {
            "ok": "needle\n",
            "bin": b"needle\0needle",
            "node_modules/a": "needle\n",
            "build/out": "needle\n",
            ".gitignore": "build/\n",
            ".hidden": "needle\n",
        },
    )
    (tmp_path / ".git").mkdir()
    (tmp_path / "link").symlink_to("ok")
    os.mkfifo(tmp_path / "fifo")
    assert use(workspace, "search", pattern="needle") == ".hidden\n1: needle\n\nok\n1: needle"
    assert use(workspace, "search", pattern="needle", path="build") == "build/out\n1: needle"


def test_other_encodings_are_searched(tmp_path):
    workspace = fill(tmp_path, {"a": "\ufeffnädel\n".encode("utf-16-le"), "b": b"n\xe4del\n"})
    assert use(workspace, "search", pattern="n.del") == "a\n1: nädel\n\nb\n1: nädel"


def test_a_very_long_line_is_searched_at_its_beginning_and_counts_as_one(tmp_path):
    workspace = fill(tmp_path, {"a": f"{'x' * 3_000_000}\nneedle\n"})
    assert use(workspace, "search", pattern="needle") == "a\n2: needle"


def test_what_is_no_expression_says_why(tmp_path):
    assert fail(fill(tmp_path, {}), "search", pattern="(a") == (
        "(a is not a regular expression: missing ), unterminated subpattern at position 0"
    )


def test_an_expression_that_runs_for_ever_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(search, "LOOKING", 0.2)
    workspace = fill(tmp_path, {"a": f"{'a' * 60}!\n"})
    assert use(workspace, "search", pattern="^(a+)+$") == (
        "[stopped after 0.2 seconds: narrow the search with path or glob]"
    )


def test_an_expression_may_begin_with_a_dash(tmp_path):
    assert use(fill(tmp_path, {"a": "--null\n"}), "search", pattern="--null") == "a\n1: --null"


def test_modules_in_the_folder_that_is_searched_are_not_run(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", ".")
    evil = "open('owned', 'w')\n"
    workspace = fill(
        tmp_path,
        {"re.py": evil, "sitecustomize.py": evil, "msgspec.py": evil, "mull/__init__.py": evil},
    )
    assert "re.py" in use(workspace, "search", pattern="owned")
    assert not (tmp_path / "owned").exists()


def test_what_run_put_aside_can_be_searched_under_its_name(tmp_path):
    workspace = fill(tmp_path, {})
    handle, path = workspace.put_aside()
    with os.fdopen(handle, "w") as file:
        file.write("1\nneedle\n")
    assert use(workspace, "search", pattern="needle", path=str(path)) == f"{path}\n2: needle"
    assert "is outside the working folder" in fail(workspace, "write", path=str(path), content="")


def test_a_cancelled_search_ends_its_process(tmp_path, monkeypatch):
    workspace = fill(tmp_path, {"b": f"{'a' * 60}!\n"})
    start_command = search.Command.start
    commands = []

    async def cancel():
        started = asyncio.Event()

        async def watch(*arguments):
            commands.append(await start_command(*arguments))
            started.set()
            return commands[0]

        monkeypatch.setattr(search.Command, "start", watch)
        searching = asyncio.ensure_future(start(workspace, "search", pattern="^(a+)+$"))
        await started.wait()
        searching.cancel()
        await asyncio.wait((searching,))
        return searching.cancelled()

    assert asyncio.run(cancel())
    assert members(commands[0]._session) == []


def test_what_may_not_be_read_is_not_found_by_searching_either(tmp_path):
    names = (".env", "a", "keys/k", "b")
    workspace = fill(tmp_path, dict.fromkeys(names, "needle\n"))
    denied = ("read(.env)", f"read({tmp_path}/keys/)", "search(b)")
    rules = [parse_rule("deny", text) for text in denied]
    tool = builtin_tools(workspace, rules=rules)["search"]
    result = asyncio.run(answer(tool, call("search", pattern="needle")))
    assert result.output == "a\n1: needle"


def test_the_preview_says_what_is_searched_for(tmp_path):
    tool = builtin_tools(fill(tmp_path, {"src/a": ""}))["search"]
    shown = preview(tool, pattern="a\x1bb", path="src", glob="*.py")
    assert shown == Preview("search a\\x1bb in src (*.py)")
