"""The list of tools, what a model is told of them, and the choice among them."""

import pytest

from mull.agent.functions import Tool
from mull.agent.tools import table
from mull.agent.tools.table import GROUPS, TOOL_NAMES, builtin_tools, choose_tools
from mull.neutral.errors import LocalError
from tool_calls import fill


@pytest.fixture
def tools(tmp_path):
    return builtin_tools(fill(tmp_path, {}))


def test_the_names_are_those_of_the_tools(tools):
    assert tuple(tools) == TOOL_NAMES == (
        "read", "list", "search", "edit", "write", "run", "jobs", "todo", "ask_user"
    )  # fmt: skip
    assert {name: tool.definition.name for name, tool in tools.items()} == {n: n for n in tools}
    assert [name for name, tool in tools.items() if tool.changes] == ["edit", "write", "run"]
    assert {tool.source for tool in tools.values()} == {"built in"}


def test_every_parameter_is_described(tools):
    for tool in tools.values():
        schema = tool.definition.parameters
        assert tool.definition.description
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert all(said["description"] for said in schema["properties"].values())


def test_the_schema_of_edit(tools):
    schema = tools["edit"].definition.parameters
    assert schema["required"] == ["path"]
    assert list(schema["properties"]["edits"]["items"]["properties"]) == [
        "old", "new", "replace_all"
    ]  # fmt: skip
    assert "$" not in str(schema)
    assert schema["properties"]["replace_all"] == {
        "type": "boolean",
        "description": "replace every occurrence, not just one",
        "default": False,
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("all", list(TOOL_NAMES)),
        ("read", ["read", "list", "search", "todo", "ask_user"]),
        ("none", []),
        ("", []),
        ("run, edit", ["edit", "run", "jobs"]),
        ("jobs", []),
        ("read,write", ["read", "list", "search", "write", "todo", "ask_user"]),
        ("*e*", ["read", "search", "edit", "write", "ask_user"]),
    ],
)
def test_tools_are_chosen_by_groups_names_and_patterns(tools, text, names):
    assert list(choose_tools(text, tools)) == names


def test_a_word_that_fits_nothing_is_refused(tools):
    with pytest.raises(LocalError, match='unknown tool "raed": did you mean read'):
        choose_tools("raed", tools)
    with pytest.raises(LocalError, match="use all, read, none, list, search, edit, write, run"):
        choose_tools("mcp__github__*", tools)


def test_functions_can_be_chosen_too(tools):
    def weather(city: str) -> str:
        return city

    every = {**tools, "weather": Tool(handler=weather)}
    assert list(choose_tools("weather", every)) == ["weather"]
    assert "weather" in choose_tools("read", every)
    assert set(GROUPS).isdisjoint({"weather"})


def test_a_system_that_cannot_confine_tools_gets_none(tmp_path, monkeypatch):
    workspace = fill(tmp_path, {})
    monkeypatch.setattr(table.os, "name", "nt")
    with pytest.raises(LocalError, match="need Linux or macOS"):
        builtin_tools(workspace)
