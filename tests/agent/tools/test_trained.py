"""Calls by the names that models were trained on are calls of mull's own tools."""

import asyncio
import contextlib
import tempfile

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.agent.calls import Calls
from mull.agent.functions import tools_from
from mull.agent.tools import trained
from mull.agent.tools.approve import Gate
from mull.agent.tools.table import TOOL_NAMES, builtin_tools
from mull.agent.tools.tool import ToolFailure
from mull.agent.tools.trained import NAMES, own_call
from mull.agent.tools.workspace import Workspace
from mull.neutral.blocks import ToolCallBlock
from mull.policy.approval import parse_rule
from tool_calls import fill


@pytest.fixture
def tools(tmp_path):
    return builtin_tools(fill(tmp_path, {"a.txt": "one\ntwo\n", "src/b.py": "x = 1\n"}))


def test_every_name_means_a_tool_that_there_is():
    assert set(NAMES.values()) <= set(TOOL_NAMES)


@pytest.mark.parametrize(
    ("name", "sent", "own", "meant"),
    [
        ("Read", {"file_path": "a", "offset": 2}, "read", {"path": "a", "offset": 2}),
        ("ReadFile", {"path": "a", "line_offset": 1, "n_lines": 5}, "read",
         {"path": "a", "offset": 1, "limit": 5}),
        ("Bash", {"command": "ls", "description": "List"}, "run", {"command": "ls"}),
        ("shell", {"command": ["bash", "-lc", "ls -l | wc"], "timeout_ms": 1500}, "run",
         {"command": "ls -l | wc", "timeout": 2}),
        ("shell", {"command": ["ls", "a b"], "workdir": "src"}, "run",
         {"command": "cd src && ls 'a b'"}),
        ("exec_command", {"cmd": "ls", "workdir": ".", "yield_time_ms": 1}, "run",
         {"command": "ls"}),
        ("container.exec", {"cmd": ["ls"]}, "run", {"command": "ls"}),
        ("Grep", {"pattern": "x", "-i": True, "-n": True, "output_mode": "content"}, "search",
         {"pattern": "x", "ignore_case": True}),
        ("search_file_content", {"pattern": "x", "include": "*.py"}, "search",
         {"pattern": "x", "glob": "*.py"}),
        ("glob", {"pattern": "**/*.py"}, "list", {"pattern": "**/*.py"}),
        ("LS", {"path": "src", "ignore": ["x"]}, "list", {"path": "src"}),
        ("Edit", {"file_path": "a", "old_string": "x", "new_string": "y"}, "edit",
         {"path": "a", "old": "x", "new": "y"}),
        ("MultiEdit", {"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}]}, "edit",
         {"path": "a", "edits": [{"old": "x", "new": "y"}]}),
        ("StrReplaceFile", {"path": "a", "edit": {"old": "x", "new": "y"}}, "edit",
         {"path": "a", "edits": [{"old": "x", "new": "y"}]}),
        ("str_replace_editor", {"command": "view", "path": "a", "view_range": [3, 5]}, "read",
         {"path": "a", "offset": 3, "limit": 3}),
        ("str_replace_editor", {"command": "create", "path": "a", "file_text": "x"}, "write",
         {"path": "a", "content": "x"}),
        ("str_replace_based_edit_tool",
         {"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"}, "edit",
         {"path": "a", "old": "x", "new": "y"}),
        ("apply_patch", {"input": "p"}, "edit", {"patch": "p"}),
        ("write_file", {"file_path": "a", "content": "x"}, "write", {"path": "a", "content": "x"}),
    ],
)  # fmt: skip
def test_names_and_arguments_are_understood(tools, name, sent, own, meant):
    call = own_call(ToolCallBlock("c", name, sent), tools)
    assert (call.id, call.name, call.input) == ("c", own, meant)


@pytest.mark.parametrize("own", ["read", "list", "search", "edit", "write", "run"])
def test_own_calls_are_left_as_they_are(tools, own):
    fields = tools[own].definition.parameters["properties"]
    call = ToolCallBlock("c", own, dict.fromkeys(fields, "x"))
    assert own_call(call, tools) is call


def test_a_tool_that_is_really_called_so_goes_first(tools):
    def bash(cmd: str) -> str:
        return cmd

    def read(file_path: str) -> str:
        return file_path

    for name, sent in (("bash", {"cmd": "x"}), ("read", {"file_path": "x"})):
        call = ToolCallBlock("c", name, sent)
        assert own_call(call, {**tools, **tools_from([bash, read])}) is call


def test_what_is_not_offered_is_not_reached_by_another_name(tools):
    few = {name: tools[name] for name in ("read", "edit")}
    for name in ("bash", "Write", "apply_patch", "functions.apply_patch", "edit"):
        call = ToolCallBlock("c", name, {"command": "x", "input": "p"})
        assert own_call(call, few).name not in few


KEYS = sorted(
    {"command", "questions", "timeout_ms", "workdir", "status", "view_range", "items", "options"}
    | {other for row in trained._ARGUMENTS.values() for others in row.values() for other in others}
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "x", "view", "apply_patch"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=8,
)
CALLED = st.sampled_from([*NAMES, *TOOL_NAMES, *trained._EDITORS, "other", ""])


@given(CALLED, st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4))
def test_whatever_a_model_sends_is_a_call_or_a_failure_and_is_not_changed(name, sent):
    before = msgspec.json.encode(sent)
    with tempfile.TemporaryDirectory() as folder:
        tools = builtin_tools(Workspace(folder))
        meant = own_call(ToolCallBlock("c", name, sent), tools)
        assert msgspec.json.encode(sent) == before
        assert own_call(meant, tools) == meant
        if meant.name in tools:
            with contextlib.suppress(ToolFailure):
                tools[meant.name].prepare(meant)


def run(tools, gate, *calls):
    async def go():
        events = []
        running = Calls(calls, tools, gate.admit, events.append)
        await running.run()
        return [result.output for result in running.results()], events

    return asyncio.run(go())


def test_rules_are_about_the_tool_that_is_meant(tools):
    gate = Gate("yes", [parse_rule("deny", "run(rm *)"), parse_rule("deny", "read(a.txt)")])
    said, events = run(
        tools,
        gate,
        ToolCallBlock("1", "Bash", {"command": "rm -rf x"}),
        ToolCallBlock("2", "shell", {"command": ["bash", "-lc", "rm x"]}),
        ToolCallBlock("3", "Read", {"file_path": "a.txt"}),
        ToolCallBlock("4", "Read", {"file_path": "src/b.py"}),
    )
    assert [text.startswith("not run: the rule") for text in said] == [True, True, True, False]
    assert said[3] == "     1\tx = 1"
    assert {event.name for event in events} == {"run", "read"}


def test_arguments_that_are_no_json_are_answered_with_the_shape(tools):
    said, _ = run(tools, Gate(), ToolCallBlock("1", "Read", {}, arguments="{"))
    assert said[0].startswith("the arguments are not a JSON object: {\nexpected: {")
