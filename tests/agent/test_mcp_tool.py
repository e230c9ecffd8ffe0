"""Which of a server's tools are offered, and how each is described, whatever the server says."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

from mull.agent.mcp import connection
from mull.agent.mcp.connection import Connection
from mull.agent.mcp.memory import Listing
from mull.agent.mcp.server import Server
from mull.agent.mcp.tool import offered_tools
from mull.agent.tools.tool import Preview
from mull.neutral.blocks import ToolCallBlock
from mull.policy.approval import Asked, Subject
from mull.store.mcp import McpConfig
from tool_calls import answer, call, preview


def offered(*listed, **settings):
    config = McpConfig(command="x", **settings)
    server = Server("s", config, environ={}, logs=Path("/nowhere"), on_change=lambda server: None)
    server.listing = Listing([{"inputSchema": {}, **tool} for tool in listed])
    return offered_tools(server)


def test_a_schema_is_always_of_an_object_and_a_title_stands_in_for_a_description():
    (tool,), notes = offered({"name": "a", "annotations": {"title": "An A"}})
    assert tool.definition.parameters == {"type": "object"}
    assert tool.definition.description == "An A"
    assert notes == []


def test_only_a_plain_yes_makes_a_tool_read_only():
    hints = {"a": True, "b": "true", "c": None, "d": False}
    tools, _ = offered(*({"name": n, "annotations": {"readOnlyHint": h}} for n, h in hints.items()))
    assert [tool.changes for tool in tools] == [False, True, True, True]


def test_a_tool_that_says_it_destroys_is_asked_about_whatever_else_it_says():
    both = {"readOnlyHint": True, "destructiveHint": True}
    tools, _ = offered({"name": "drop", "annotations": both})
    assert tools[0].changes
    assert preview(tools[0]) == Preview("s: drop (may be destructive)")
    (trusted,), _ = offered({"name": "drop", "annotations": both}, read_only=("drop",))
    assert not trusted.changes  # the user's own word counts for more than the server's


def test_rules_are_compared_with_the_arguments_as_json():
    (tool,), _ = offered({"name": "a"})
    assert tool.prepare(call("mcp__s__a", b=1, a={"d": 1, "c": 2})).asked == Asked(
        "mcp__s__a", True, Subject("text", '{"a":{"c":2,"d":1},"b":1}'), asks=True
    )


def test_arguments_that_are_no_object_are_told_without_asking_anyone():
    (tool,), _ = offered({"name": "a"})
    for written in ('{"a": ', "[1]", "null"):
        result = asyncio.run(answer(tool, ToolCallBlock("c", "a", {}, arguments=written)))
        assert result.is_error
        assert result.output.startswith(f"the arguments are not a JSON object: {written}")


def test_of_two_tools_with_one_name_the_first_counts():
    (tool,), _ = offered({"name": "a", "description": "1"}, {"name": "a", "description": "2"})
    assert tool.definition.description == "1"


def test_what_would_fill_the_context_is_left_out_and_told_of():
    many = [{"name": f"t{number:03}"} for number in range(250)]
    huge = {"name": "huge", "inputSchema": {"description": "x" * 100_000}}
    wordy = {"name": "a", "description": "x" * 10_000}
    tools, notes = offered(*many, huge, wordy)
    assert notes == [
        "mcp__s__huge is left out: its schema is too large",
        "only 200 of its 251 tools are offered: choose them with `tools`",
    ]
    assert [tool.definition.name for tool in tools[:2]] == ["mcp__s__a", "mcp__s__t000"]
    assert "\n[… 2,000 of 10,000 characters cut …]\n" in tools[0].definition.description


def test_a_preview_cannot_move_the_cursor_and_shows_all():
    (tool,), _ = offered({"name": "a\x1b[2J"})
    assert preview(tool) == Preview("s: a\\x1b[2J")
    assert len(preview(tool, text="x" * 100_000).detail) > 100_000


def test_changes_are_listened_for_again_when_the_server_stops_telling(monkeypatch):
    from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

    monkeypatch.setattr(connection, "_LISTEN_AGAIN", 0.0)
    asked, noticed = [], []

    class Client:
        @asynccontextmanager
        async def listen(self, *, tools_list_changed):
            asked.append(tools_list_changed)
            if len(asked) == 3:
                raise ListenNotSupportedError("2025-06-18")

            async def changes():
                yield "changed"
                if len(asked) == 1:
                    raise SubscriptionLost("gone")

            yield changes()

    asyncio.run(Connection(Client(), None).listen(lambda: noticed.append(len(asked))))
    assert asked == [True, True, True]
    assert noticed == [1, 1, 2, 2]
