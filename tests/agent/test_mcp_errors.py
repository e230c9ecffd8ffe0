"""An error of a server's own is told and ends nothing; an answer nobody can read fails its call."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import tried
from mcp_servers import plain, serving
from mull.agent.mcp.lines import answered_id
from mull.neutral.blocks import ToolResultBlock


def failed(output):
    return ToolResultBlock("call_1", output, is_error=True)


@pytest.mark.parametrize("code", [-32000, -32001, -32603, -32042, 7])
def test_an_error_of_any_code_is_told_and_the_server_stays(tmp_path, code):
    async def body(servers):
        said = json.dumps([code, "the quota is used up"])
        refused = await servers.call("mcp__a__refuse", text=said)
        return refused, await servers.call("mcp__a__echo", text="after"), servers

    refused, after, servers = serving({"a": plain("--tools", "refuse,echo")}, tmp_path, body)
    assert refused == failed("the quota is used up")
    assert after.output == "after"
    assert servers.states("a") == ["ready", "stopped"]


def test_even_the_words_of_a_lost_connection_are_the_servers_own(tmp_path):
    async def body(servers):
        said = json.dumps([-32000, "Connection closed"])
        return await servers.call("mcp__a__refuse", text=said), servers

    refused, servers = serving({"a": plain("--tools", "refuse")}, tmp_path, body)
    assert refused == failed("Connection closed")
    assert servers.states("a") == ["ready", "stopped"]


@pytest.mark.parametrize("kind", ["type", "surrogate", "deep", "cut"])
def test_an_answer_that_cannot_be_read_fails_its_call_at_once(tmp_path, kind):
    """The call's own limit is an hour: the test would not live to see it."""

    async def body(servers):
        broken = await servers.call("mcp__a__twist", text=kind)
        return broken, await servers.call("mcp__a__echo", text="after"), servers

    config = plain("--tools", "twist,echo", timeout=3600)
    broken, after, servers = serving({"a": config}, tmp_path, body)
    assert broken == failed("its response is not a valid message of the protocol")
    assert after.output == "after"
    assert servers.states("a") == ["ready", "stopped"]


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (b'{"jsonrpc":"2.0","id":5,"result":"text"}', 5),
        (b'{"id":5,"jsonrpc":"1.0","result":{}}', 5),
        (b'{"result":[[[[[', None),
        (b'{"jsonrpc":"2.0","id":7,"result":[[[[[', 7),
        (b'{"result":"\xff","jsonrpc":"2.0","id":8}', 8),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping"}', None),
        (b'{"jsonrpc":"2.0","id":true,"result":1}', None),
        (b'{"jsonrpc":"2.0","id":"5","result":1}', None),
        (b"[1]", None),
        (b"Welcome!", None),
    ],
)
def test_the_request_that_a_line_answers_is_found_where_it_can_be(line, number):
    assert answered_id(line) == number


@tried(1)
@given(st.binary(max_size=200))
def test_looking_for_it_never_fails(line):
    assert answered_id(line) is None or isinstance(answered_id(line), int)
