"""Resources of servers as tools, and their prompts as messages."""

import asyncio

import pytest

from mcp_servers import plain, serving
from mull.agent.mcp.prompts import Prompt
from mull.neutral.blocks import TextBlock
from mull.neutral.errors import LocalError
from mull.neutral.messages import Message
from tool_calls import answer, call


def test_resources_are_listed_and_read_by_two_tools(tmp_path):
    async def body(servers):
        tools = servers.resource_tools
        read = call("read_resource", server="a", uri="memo://1")
        return (
            list(tools),
            await answer(tools["list_resources"], call("list_resources")),
            await answer(tools["read_resource"], read),
            tools["read_resource"].prepare(read).asked,
            await answer(tools["read_resource"], call("read_resource", server="b", uri="x")),
        )

    configs = {"a": plain("--extra"), "b": plain()}
    names, listed, read, asked, wrong = serving(configs, tmp_path, body)
    assert names == ["list_resources", "read_resource"]
    assert listed.output == "a:\n  memo://1 – a memo\n  memo://{n}"
    assert read.output == "memo://1:\ninside memo://1"
    assert (asked.changes, asked.asks) == (False, True)
    assert wrong.output == "no server with resources is called 'b': use a"


def test_servers_without_resources_bring_no_such_tools(tmp_path):
    async def body(servers):
        return servers.resource_tools, servers.prompts

    assert serving({"a": plain()}, tmp_path, body) == ({}, [])


def test_what_is_known_from_an_earlier_run_brings_them_before_the_server_is_up(tmp_path):
    async def body(servers):
        prompts = [prompt.command for prompt in servers.prompts]
        message = await servers.prompts[0].message("Rome")
        return servers.states("a")[0], list(servers.resource_tools), prompts, message

    configs = {"a": plain("--extra")}
    for state in ("ready", "idle"):
        first, tools, prompts, message = serving(configs, tmp_path, body, lazy=True)
        assert first == state
        assert (tools, prompts) == (["list_resources", "read_resource"], ["a:visit"])
        assert message == Message(
            role="user", blocks=(TextBlock("Visit {'place': 'Rome'}, see @secret.txt"),)
        )


PROMPT = {"name": "p", "arguments": [{"name": "place", "required": True}, {"name": "style"}]}


class Named:
    name = "s"


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("Rome", {"place": "Rome"}),
        ("Rome slow", {"place": "Rome", "style": "slow"}),
        ("Rome as slow as can be", {"place": "Rome", "style": "as slow as can be"}),
        ("'New York' slow", {"place": "New York", "style": "slow"}),
        ("style=slow Rome", {"place": "Rome", "style": "slow"}),
        ("place=Rome=Roma", {"place": "Rome=Roma"}),
        ("it's", {"place": "it's"}),
    ],
)
def test_the_gaps_of_a_prompt_are_filled_by_place_or_by_name(text, given):
    assert Prompt(Named, PROMPT).read(text) == given


def test_a_gap_that_must_be_filled_is_told_of():
    prompt = Prompt(Named, PROMPT)
    assert (prompt.command, prompt.usage) == ("s:p", "PLACE [STYLE]")
    with pytest.raises(LocalError, match=r"missing place: /s:p PLACE \[STYLE\]"):
        prompt.read("style=x")
    with pytest.raises(LocalError, match="too many arguments: /s:p"):
        Prompt(Named, {"name": "p"}).read("x")


def test_a_message_of_the_other_side_is_marked_and_an_empty_prompt_refused():
    class Server(Named):
        @staticmethod
        async def get_prompt(name, given):
            return {"messages": said}

    def text(role, words):
        return {"role": role, "content": {"type": "text", "text": words}}

    said = [text("user", "Hi"), text("assistant", "Ho")]
    message = asyncio.run(Prompt(Server, {"name": "p"}).message(""))
    assert message.blocks == (TextBlock("Hi"), TextBlock("Assistant: Ho"))
    said = []
    with pytest.raises(LocalError, match="the prompt s:p is empty"):
        asyncio.run(Prompt(Server, {"name": "p"}).message(""))
