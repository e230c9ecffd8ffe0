"""Many tools on demand: what the request holds, and what `find_tools` brings."""

import asyncio

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from effort import tried
from mcp_servers import plain
from mull.agent.mcp.find import FIND_TOOLS, OnDemand
from mull.agent.setup import load_setup
from mull.agent.toolbox import Toolbox
from mull.agent.tools.table import TOOL_NAMES
from mull.neutral.request import Tool
from tool_calls import answer, call, preview


class Some:
    """A tool that is only described."""

    changes = False

    def __init__(self, name, description="", source="mcp:s", size=0):
        self.definition = Tool(name, description, {"type": "object", "x": "y" * size})
        self.source = source


def some(*tools):
    return {tool.definition.name: tool for tool in tools}


TOOLS = some(
    Some("read", source="built in"),
    Some("mcp__git__commit", "Record changes to the repository."),
    Some("mcp__git__log", "Show the history of commits."),
    Some("mcp__mail__send", "Send a letter to somebody."),
)


def find(demand, query, tools=TOOLS, most=2):
    finder = demand.narrow(tools, most, 10**6)[FIND_TOOLS]
    return asyncio.run(answer(finder, call(FIND_TOOLS, query=query)))


def test_few_tools_are_all_in_the_request():
    assert OnDemand().narrow(TOOLS, 3, 10**6) is TOOLS


def test_many_tools_or_many_tokens_are_looked_for():
    assert list(OnDemand().narrow(TOOLS, 2, 10**6)) == ["read", FIND_TOOLS]
    large = {**TOOLS, **some(Some("mcp__s__large", size=8_000))}
    assert list(OnDemand().narrow(large, 40, 1_000)) == ["read", FIND_TOOLS]
    assert OnDemand().narrow(large, 40, 3_000) is large


def test_what_is_found_is_described_and_offered_from_then_on():
    demand = OnDemand()
    found = find(demand, "send a letter")
    assert found.output == (
        "mcp__mail__send: Send a letter to somebody.\n"
        'arguments: {"type":"object","x":""}\n\nYou can call these tools now.'
    )
    find(demand, "mcp__git__log")
    offered = list(demand.narrow(TOOLS, 2, 10**6))
    assert offered == ["read", FIND_TOOLS, "mcp__mail__send", "mcp__git__log"]


def test_a_word_in_the_name_counts_for_more():
    found = find(OnDemand(), "commit").output
    assert found.index("mcp__git__commit") < found.index("mcp__git__log")


def test_what_fits_nothing_gets_the_names():
    assert find(OnDemand(), "weather").output == (
        "no tool matches 'weather'; available: mcp__git__commit, mcp__git__log, mcp__mail__send"
    )
    assert find(OnDemand(), " ").is_error


def test_looking_for_tools_needs_no_approval():
    finder = OnDemand().narrow(TOOLS, 2, 10**6)[FIND_TOOLS]
    assert not finder.prepare(call(FIND_TOOLS, query="x")).asked.changes
    assert preview(finder, query="x").title == "find tools: x"


@tried(0.5)
@given(st.text(max_size=30), st.integers(1, 6))
def test_whatever_is_looked_for_the_request_grows_and_its_beginning_stays(query, most):
    demand = OnDemand()
    before = list(demand.narrow(TOOLS, most, 10**6))
    if FIND_TOOLS in before:
        find(demand, query, most=most)
    assert list(demand.narrow(TOOLS, most, 10**6))[: len(before)] == before


def test_a_session_with_many_tools_gets_one_that_finds_them(tmp_path):
    setup = load_setup(sets=["tools.onDemandOver=3"])
    names = ",".join(f"tool{number}" for number in range(5))
    servers = {"a": plain("--tools", f"echo,{names}")}
    setup.config = msgspec.structs.replace(setup.config, mcp=servers)
    toolbox = Toolbox(setup, tmp_path)

    async def main():
        await toolbox.start()
        try:
            before = list(toolbox.offered())
            await answer(toolbox.offered()[FIND_TOOLS], call(FIND_TOOLS, query="mcp__a__echo"))
            echo = toolbox.offered()["mcp__a__echo"]
            return before, await answer(echo, call("mcp__a__echo", text="here"))
        finally:
            await toolbox.close()

    before, said = asyncio.run(main())
    assert before == [*TOOL_NAMES, FIND_TOOLS]
    assert said.output == "here"
