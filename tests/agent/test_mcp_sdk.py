"""A server written with the official SDK, in the newest protocol, over stdio and over HTTP."""

import socket
import subprocess
import sys
import time

import pytest
from msgspec.structs import replace

from mcp_servers import FIXTURES, serving, with_sdk
from mull.neutral.blocks import MediaBlock, ToolResultBlock
from mull.store.mcp import McpConfig
from ports import free_port


@pytest.fixture(scope="module")
def url():
    port = free_port()
    command = [sys.executable, str(FIXTURES / "with_sdk.py"), "http", str(port)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        wait_for(port)
        yield f"http://127.0.0.1:{port}/mcp"
        server.kill()


def wait_for(port):
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.02)
    raise AssertionError("the server did not start")


@pytest.fixture(params=["stdio", "http"])
def config(request):
    if request.param == "stdio":
        return with_sdk(timeout=5)
    return McpConfig(url=request.getfixturevalue("url"), timeout=5)


def result(output, **more):
    return ToolResultBlock("call_1", output, **more)


def test_its_tools_are_called_and_its_changes_noticed(config, tmp_path):
    async def body(servers):
        answers = {
            "add": await servers.call("mcp__a__add", a=1, b=2),
            "names": await servers.call("mcp__a__names"),
            "report": await servers.call("mcp__a__report"),
            "picture": await servers.call("mcp__a__picture"),
            "refuse": await servers.call("mcp__a__refuse"),
            "wrong": await servers.call("mcp__a__add", a="one", b=2),
        }
        await servers.call("mcp__a__grow")
        await servers.until(lambda: "mcp__a__late" in servers.tools)
        return answers, (await servers.call("mcp__a__late")).output, servers.states("a")

    answers, late, states = serving({"a": config}, tmp_path, body)
    wrong = answers.pop("wrong")
    assert answers == {
        "add": result("3"),
        "names": result("ann\nbob"),
        "report": result('{\n  "found": 3\n}'),
        "picture": result("", media=(MediaBlock("image/png", data="aGk="),)),
        "refuse": result("Error executing tool refuse", is_error=True),
    }
    assert wrong.is_error
    assert "Input should be a valid integer" in wrong.output
    assert late == "late"
    assert states == ["ready", "ready"]


@pytest.mark.slow
def test_hanging_and_flooding_calls_leave_it_usable(config, tmp_path):
    async def body(servers):
        return [
            await servers.call("mcp__a__hang"),
            await servers.call("mcp__a__flood", size=17_000_000),
            await servers.call("mcp__a__add", a=2, b=2),
        ]

    hung, flood, after = serving({"a": replace(config, timeout=1.5)}, tmp_path, body)
    assert hung == result(
        "hang of a did not finish within 1.5 seconds and was cancelled", is_error=True
    )
    assert flood.is_error
    assert flood.output.startswith("the response has ")
    assert flood.output.endswith(": ask for less")
    assert after == result("4")
