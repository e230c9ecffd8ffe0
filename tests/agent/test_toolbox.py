"""The tools of a session: which are offered, also when a server fails or takes its own back."""

import asyncio
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import msgspec
import pytest

from mcp_servers import plain
from mull.agent.opening import open_session
from mull.agent.setup import load_setup
from mull.agent.toolbox import Toolbox
from mull.agent.tools.table import TOOL_NAMES
from mull.neutral.blocks import ToolCallBlock
from mull.neutral.errors import LocalError
from mull.store.paths import config_dir
from tool_calls import answer

DAY = date(2026, 3, 1)


def box(folder, wanted="all", servers=None, **more):
    setup = load_setup()
    setup.config = msgspec.structs.replace(setup.config, mcp=servers or {})
    return Toolbox(setup, folder, wanted=wanted, **more)


def working(toolbox, body):
    async def main():
        try:
            await toolbox.start()
            return await body()
        finally:
            await toolbox.close()

    return asyncio.run(main())


async def use(toolbox, name):
    return await answer(toolbox.all[name], ToolCallBlock("c", name, {}))


class Person:
    async def ask(self, request):
        raise AssertionError("nobody is asked here")


MODES = {
    "under version control": (True, {}, True, "auto"),
    "not under version control": (False, {}, True, "ask"),
    "with nobody to ask": (True, {}, False, "ask"),
    "without sandbox": (True, {"tools.sandbox": "off"}, True, "ask"),
    "as set": (False, {"tools.mode": "read-only"}, True, "read-only"),
    "auto as set": (False, {"tools.mode": "auto"}, False, "auto"),
}


@pytest.mark.parametrize("where", MODES)
def test_the_mode_that_nobody_chose(tmp_path, monkeypatch, where):
    versioned, settings, asks, mode = MODES[where]
    monkeypatch.setattr("mull.agent.toolbox.is_likely", lambda: True)
    if versioned:
        (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    setup = load_setup(sets=[f"{key}={value}" for key, value in settings.items()])
    toolbox = Toolbox(setup, tmp_path / "sub", mode=None, approver=Person() if asks else None)
    assert toolbox.gate.mode == mode
    assert toolbox.gate.is_chosen == ("tools.mode" in settings)
    assert Toolbox(setup, tmp_path, approver=Person()).gate.mode == "ask"
    monkeypatch.setattr("mull.agent.toolbox.is_likely", lambda: False)
    expected = mode if settings.get("tools.mode") else "ask"
    assert Toolbox(setup, tmp_path, mode=None, approver=Person()).gate.mode == expected


def test_a_start_loads_nothing_of_the_sandbox(tmp_path):
    """Only the first command does."""
    code = (
        "import sys; from pathlib import Path; from mull.agent.setup import load_setup;"
        "from mull.agent.toolbox import Toolbox; Toolbox(load_setup(), Path.cwd(), mode=None);"
        "print([m for m in sys.modules if m.startswith('mull.agent.sandbox.') or m == 'ctypes'])"
    )
    done = subprocess.run(
        (sys.executable, "-c", code), cwd=tmp_path, check=True, capture_output=True
    )
    assert done.stdout == b"[]\n"


def test_a_word_that_fits_no_tool_is_told_at_once_where_no_server_could_bring_it(tmp_path):
    with pytest.raises(LocalError, match='unknown tool "rea": did you mean read'):
        box(tmp_path, "rea")


@pytest.mark.parametrize(
    ("wanted", "offered"),
    [
        ("all", ["read", "list"]),
        ("read", ["read", "list"]),
        ("read,run", ["read", "list", "run", "jobs"]),
    ],
)
def test_a_model_that_was_taught_few_tools_gets_others_by_name_only(tmp_path, wanted, offered):
    assert list(box(tmp_path, wanted).offered(("read", "list"))) == offered


def test_a_server_that_fails_is_told_of_and_the_rest_works(tmp_path):
    servers = {"bad": plain("--fail", "no licence"), "good": plain()}
    toolbox = box(tmp_path, servers=servers)

    async def body():
        return list(toolbox.offered()), toolbox.trouble

    names, trouble = working(toolbox, body)
    assert names == [*TOOL_NAMES, "mcp__good__echo"]
    assert trouble == (
        "the MCP server bad did not start: its process ended with status 1; its last output: "
        "no licence",
    )


def test_a_word_for_the_tools_of_a_failed_server_ends_before_anything_is_asked(tmp_path):
    toolbox = box(tmp_path, "read,mcp__bad__*", {"bad": plain("--fail", "no")})

    async def body():
        with pytest.raises(LocalError, match=r'unknown tool "mcp__bad__\*"'):
            toolbox.system(today=DAY)

    working(toolbox, body)


def test_tools_that_a_server_takes_back_in_the_middle_do_not_end_the_turn(tmp_path):
    changed = asyncio.Event()
    toolbox = box(
        tmp_path,
        "list,mcp__a__*",
        {"a": plain("--tools", "shrink")},
        on_change=lambda status: None if status.tools else changed.set(),
    )

    async def body():
        before = list(toolbox.offered())
        changed.clear()
        await use(toolbox, "mcp__a__shrink")
        async with asyncio.timeout(50):
            await changed.wait()
        return before, list(toolbox.offered())

    assert working(toolbox, body) == (["list", "mcp__a__shrink"], ["list"])


def test_read_only_offers_nothing_that_changes_things_not_even_when_it_is_named(tmp_path):
    toolbox = box(
        tmp_path,
        "run,list,mcp__a__*",
        {"a": plain("--tools", "look,touch", "--hinted", "look")},
        mode="read-only",
    )

    async def body():
        return list(toolbox.offered())

    assert working(toolbox, body) == ["list", "mcp__a__look"]


def test_instructions_that_were_not_read_are_told_of(tmp_path):
    (tmp_path / "secret").write_text("s")
    project = tmp_path / "project"
    project.mkdir()
    os.symlink(tmp_path / "secret", project / "AGENTS.md")
    assert box(project).trouble == (
        f"{project}/AGENTS.md: not read: it is a link that leads out of the repository",
    )


@pytest.mark.parametrize(
    ("model", "adapter", "packed", "unasked"),
    [
        ("local/smollm2", None, TOOL_NAMES, ()),
        ("local/smollm2", Path("thinking.gguf"), ("read", "list"), ("read", "list")),
        ("moonshotai/kimi-k2-thinking", None, TOOL_NAMES, TOOL_NAMES),
    ],
)
def test_a_small_model_gets_the_tools_it_can_use_and_others_if_they_are_asked_for(
    tmp_path, monkeypatch, model, adapter, packed, unasked
):
    monkeypatch.setattr("mull.local.untaught.find_adapter", lambda: adapter)
    toolbox = box(tmp_path)
    with open_session(model=model, toolbox=toolbox, key="k") as session:
        assert set(session.tools) == set(packed)  # whoever packs a box asks for it
        toolbox.unasked = True
        assert set(session.tools) == set(unasked)
        toolbox.choose("list,run")
        assert set(session.tools) == {"list", "run", "jobs"}


def test_variables_that_the_config_fills_in_do_not_reach_commands(tmp_path, monkeypatch):
    config_dir().mkdir(parents=True, exist_ok=True)
    (config_dir() / "config.toml").write_text(
        """
        [providers.mine]
        base_url = "https://mine.example/${PLACE}/v1"
        headers = { "X-Team" = "${TEAM}" }
        [mcp.a]
        url = "https://a.example/${WAY}"
        headers = { "X-A" = "$WORD" }
        [mcp.b]
        command = "b"
        env = { B = "${BEE}" }
        """
    )
    hidden = [
        "PLACE", "TEAM", "WAY", "WORD", "BEE", "ANTHROPIC_AUTH_TOKEN", "AWS_SESSION_TOKEN",
        "GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "MYSQL_PWD", "npm_config__auth",
        "TOKEN", "ACME_API_KEY_2", "ACME_KEYS", "ANTHROPIC_CUSTOM_HEADERS",
        "OTEL_EXPORTER_OTLP_HEADERS",
    ]  # fmt: skip
    shown = ["KEYBOARD", "OLDPWD", "SSH_AUTH_SOCK"]
    for name in (*hidden, *shown):
        monkeypatch.setenv(name, "canary")
    run = Toolbox(load_setup(), tmp_path).all["run"]
    seen = run._environment()
    assert [name for name in hidden if name in seen] == []
    assert [seen[name] for name in shown] == ["canary"] * len(shown)
