"""What a server's tool is called: always allowed, always the same, never another tool's name."""

import re

from hypothesis import given
from hypothesis import strategies as st

from mull.agent.mcp.tool import tool_name

SERVERS = st.sampled_from(["a", "b", "a_b", "a-b", "0", "x" * 32])
TOOLS = st.text("a_-./é", max_size=4) | st.text("x", min_size=20, max_size=70) | st.text()


def test_a_plain_name_keeps_its_letters():
    assert tool_name("time", "convert_time") == "mcp__time__convert_time"


def test_what_apis_refuse_is_replaced_and_marked():
    assert tool_name("s", "get.weather") == "mcp__s__get_weather_b92101a4"
    assert tool_name("s", "get/weather") == "mcp__s__get_weather_1ddab89a"
    assert tool_name("s", "get_weather") == "mcp__s__get_weather"
    assert len(tool_name("s", "x" * 100)) == 64
    assert tool_name("s", "x" * 100) != tool_name("s", "x" * 101)


@given(SERVERS, TOOLS)
def test_every_name_is_one_that_apis_take(server, tool):
    assert re.fullmatch(r"mcp__[A-Za-z0-9_-]{1,59}", tool_name(server, tool))
    assert len(tool_name(server, tool)) <= 64


@given(SERVERS, TOOLS, SERVERS, TOOLS)
def test_two_tools_have_two_names(server, tool, other_server, other_tool):
    same = (server, tool) == (other_server, other_tool)
    assert (tool_name(server, tool) == tool_name(other_server, other_tool)) == same


def test_names_that_join_to_the_same_letters_are_told_apart():
    # a server cannot be called a__b, so the first double underscore ends its name
    assert tool_name("a", "b__c") == "mcp__a__b__c"
    assert tool_name("a_b", "c") == "mcp__a_b__c"
