"""Servers of tools that others wrote, from the registries, over stdio and streamable HTTP.

The servers for time, git and fetch come from PyPI (the Python SDK), those called everything,
filesystem and memory from npm (the TypeScript SDK, an older protocol with sessions). The latter are
installed beside the virtual environment once; a judge that cannot be installed is a failure.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from tools.agents import NODE_TRUSTS

from mcp_servers import serving
from mull.neutral.blocks import ToolCallBlock
from mull.store.mcp import McpConfig
from mull.testing import Call, Say, StrictServer, Think
from ports import free_port
from tool_calls import answer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

SCOPE = "@modelcontextprotocol"
PACKAGES = ("server-everything", "server-filesystem", "server-memory")
VERSION = "2026.8.31"
HOME = Path(sys.prefix) / "mcp-judge"
BIN = Path(sys.executable).parent  # Node.js may come as a Python package
PATH = f"{BIN}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture(scope="session")
def npm():
    """The command of a server from npm; they are installed if they are not there."""
    scripts = {name: HOME / "node_modules" / SCOPE / name / "dist/index.js" for name in PACKAGES}
    if not all(script.exists() for script in scripts.values()):
        subprocess.run(
            [
                str(shutil.which("npm", path=PATH)),
                "install",
                "--silent",
                "--prefix",
                str(HOME),
                *(f"{SCOPE}/{name}@{VERSION}" for name in PACKAGES),
            ],
            env={**NODE_TRUSTS, **os.environ, "PATH": PATH},
            check=True,
            timeout=170,
        )
    node = str(shutil.which("node", path=PATH))
    return {name: [node, str(script)] for name, script in scripts.items()}


@pytest.fixture(scope="session")
def everything(npm):
    return npm["server-everything"]


@contextmanager
def listening(command, port):
    environ = {"PATH": PATH, "PORT": str(port)}
    with subprocess.Popen(
        [*command, "streamableHttp"], env=environ, stdout=-3, stderr=-3, start_new_session=True
    ) as process:
        try:
            for _ in range(1000):
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    time.sleep(0.02)
            yield
        finally:  # `node` from a Python package starts another process
            os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(params=["stdio", "http"])
def server(request, everything):
    if request.param == "stdio":
        yield McpConfig(command=everything[0], args=(everything[1], "stdio"))
        return
    port = free_port()
    with listening(everything, port):
        yield McpConfig(url=f"http://127.0.0.1:{port}/mcp")


def test_the_time_server_of_pypi_converts_a_time(tmp_path):
    command = shutil.which("mcp-server-time", path=str(Path(sys.executable).parent))
    assert command, "the judge mcp-server-time is missing: make judges installs it"

    async def body(servers):
        given = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        right = await servers.call("mcp__time__convert_time", **given)
        wrong = await servers.call("mcp__time__convert_time", **{**given, "time": "noon"})
        return list(servers.tools), right, wrong

    names, right, wrong = serving({"time": McpConfig(command=command)}, tmp_path, body)
    assert names == ["mcp__time__convert_time", "mcp__time__get_current_time"]
    assert json.loads(right.output)["target"]["datetime"].endswith("T21:00:00+09:00")
    assert (right.is_error, wrong.is_error) == (False, True)
    assert "HH:MM" in wrong.output


@pytest.fixture
def six(npm, tmp_path):
    """Six servers of others, and the folder that two of them work in."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)

    def run(words, *more):
        return McpConfig(command=str(words[0]), args=(*map(str, words[1:]), *more))

    memory = {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}
    return folder, {
        "files": run(npm["server-filesystem"], str(folder)),
        "everything": run(npm["server-everything"], "stdio"),
        "memory": replace(run(npm["server-memory"]), env=memory),
        "time": run([BIN / "mcp-server-time"]),
        "git": run([BIN / "mcp-server-git"], "--repository", str(folder)),
        "fetch": run([BIN / "mcp-server-fetch"]),
    }


def test_six_servers_are_known_from_the_first_run_and_start_when_they_are_called(six, tmp_path):
    folder, configs = six
    environ = {"PATH": PATH, "HOME": str(tmp_path)}

    async def look(servers):
        return {status.name: status.state for status in servers.statuses}, list(servers.tools)

    first, tools = serving(configs, tmp_path, look, environ, lazy=True)
    assert set(first.values()) == {"ready"}
    assert len(tools) > 45
    assert serving(configs, tmp_path, look, environ, lazy=True) == (
        dict.fromkeys(configs, "idle"),
        tools,
    )

    async def use(servers):
        read = await servers.call("mcp__files__read_text_file", path=str(folder / "a.txt"))
        status = await servers.call("mcp__git__git_status", repo_path=str(folder))
        graph = await servers.call("mcp__memory__read_graph")
        states = {status.name: status.state for status in servers.statuses}
        return read, status, graph, states, [one.notes for one in servers.statuses]

    read, status, graph, states, notes = serving(configs, tmp_path, use, environ, lazy=True)
    assert read.output == "one\ntwo\n"
    assert "a.txt" in status.output
    assert json.loads(graph.output) == {"entities": [], "relations": []}
    started = [name for name, state in states.items() if state == "ready"]
    assert started == ["files", "memory", "git"]
    assert set(notes) == {()}


def test_prompts_and_resources_of_the_everything_server(everything, tmp_path):
    async def body(servers):
        prompts = {prompt.command: prompt for prompt in servers.prompts}
        read = servers.resource_tools["read_resource"]

        async def resource(uri):
            given = {"server": "e", "uri": uri}
            return await answer(read, ToolCallBlock("c", "read_resource", given))

        return (
            await prompts["e:args-prompt"].message("Rome"),
            await resource("demo://resource/static/document/features.md"),
            await resource("demo://nowhere"),
        )

    config = McpConfig(command=everything[0], args=(everything[1], "stdio"))
    prompt, found, missing = serving({"e": config}, tmp_path, body)
    assert [block.text for block in prompt.blocks] == ["What's weather in Rome?"]
    assert "# Everything Server" in found.output
    assert missing.is_error
    assert "not found" in missing.output


def asked(script, servers, folder, monkeypatch):
    """`mull ask --tools all` with these servers in its config.toml and this script for a model."""
    config = folder / "config"
    config.mkdir()
    monkeypatch.setenv("MULL_CONFIG_DIR", str(config))
    (config / "config.toml").write_text(servers)
    with StrictServer("kimi", script) as model:
        place = ["-m", "moonshotai/kimi-k2.5", "--base-url", model.url]
        done = subprocess.run(
            [sys.executable, "-m", "mull", "ask", *place, "--tools", "all", "--yes", "Go."],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
    assert model.refusals == []
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    sent = model.requests[-1].json["messages"]
    return [message["content"] for message in sent if message["role"] == "tool"]


def test_the_assistant_uses_real_servers_over_stdio_and_http(everything, tmp_path, monkeypatch):
    time_server = BIN / "mcp-server-time"
    port = free_port()
    servers = (
        f"[mcp.time]\ncommand = {json.dumps(str(time_server))}\n"
        f"[mcp.all]\nurl = 'http://127.0.0.1:{port}/mcp'\n"
    )
    script = [
        [
            Think("Both at once."),
            Call("mcp__time__get_current_time", {"timezone": "Asia/Tokyo"}),
            Call("mcp__all__get-sum", {"a": 2, "b": 3}),
        ],
        [Think("Once more."), Call("mcp__all__echo", {"message": "hé"})],
        [Think("Good."), Say("done")],
    ]
    with listening(everything, port):
        clock, total, echo = asked(script, servers, tmp_path, monkeypatch)
    assert json.loads(clock)["datetime"].endswith("+09:00")
    assert (total, echo) == ("The sum of 2 and 3 is 5.", "Echo: hé")


def test_the_everything_server_of_npm_answers_in_every_form(server, tmp_path):
    async def body(servers):
        emitted = []
        return emitted, {
            "echo": await servers.call("mcp__e__echo", message="hé"),
            "sum": await servers.call("mcp__e__get-sum", a=2, b=3),
            "image": await servers.call("mcp__e__get-tiny-image"),
            "json": await servers.call("mcp__e__get-structured-content", location="Chicago"),
            "links": await servers.call("mcp__e__get-resource-links", count=2),
            "inside": await servers.call(
                "mcp__e__get-resource-reference", resourceType="Text", resourceId=1
            ),
            "long": await servers.call(
                "mcp__e__trigger-long-running-operation", emitted, duration=1, steps=2
            ),
            "wrong": await servers.call("mcp__e__get-sum", a="two"),
        }

    emitted, answers = serving({"e": server}, tmp_path, body)
    assert [name for name, answer in answers.items() if answer.is_error] == ["wrong"]
    assert answers["echo"].output == "Echo: hé"
    assert answers["sum"].output == "The sum of 2 and 3 is 5."
    (image,) = answers["image"].media
    assert image.media_type == "image/png"
    assert image.data.startswith("iVBORw0KGgo")
    assert set(json.loads(answers["json"].output)) == {"temperature", "conditions", "humidity"}
    assert answers["links"].output.count("\nresource: demo://resource/") == 2
    assert "demo://resource/dynamic/text/1:\nResource 1: " in answers["inside"].output
    assert emitted == ["1 of 2\n", "2 of 2\n"]


def test_a_call_that_takes_too_long_leaves_the_server_usable(server, tmp_path):
    async def body(servers):
        slow = await servers.call("mcp__e__trigger-long-running-operation", duration=60, steps=1)
        return slow, await servers.call("mcp__e__echo", message="after")

    slow, after = serving({"e": replace(server, timeout=2)}, tmp_path, body)
    assert slow.output.endswith("did not finish within 2 seconds and was cancelled")
    assert after.output == "Echo: after"


def test_a_server_that_shows_its_environment_shows_no_secret(everything, tmp_path):
    config = McpConfig(
        command=everything[0], args=(everything[1], "stdio"), env={"API_TOKEN": "$MINE"}
    )

    async def body(servers):
        return (await servers.call("mcp__e__get-env")).output

    environ = {"MINE": "s3cret-value", "PATH": os.environ["PATH"], "OPENAI_API_KEY": "other"}
    shown = json.loads(serving({"e": config}, tmp_path, body, environ))
    assert shown["API_TOKEN"] == "***"
    assert not {"MINE", "OPENAI_API_KEY"} & set(shown)


def test_a_server_that_was_started_anew_has_forgotten_us_and_is_greeted_again(everything, tmp_path):
    port = free_port()

    async def body(servers):
        before = await servers.call("mcp__e__echo", message="one")
        first.__exit__(None, None, None)
        with listening(everything, port):
            lost = await servers.call("mcp__e__echo", message="two")
            after = await servers.call("mcp__e__echo", message="three")
        return before, lost, after

    first = listening(everything, port)
    first.__enter__()
    config = McpConfig(url=f"http://127.0.0.1:{port}/mcp")
    before, lost, after = serving({"e": config}, tmp_path, body)
    assert before.output == "Echo: one"
    # whether the loss is noticed before the call or by it is a matter of time
    assert lost.output in ("the server e ended and was restarted: try again", "Echo: two")
    assert after.output == "Echo: three"
