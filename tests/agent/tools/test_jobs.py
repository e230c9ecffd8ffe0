"""Commands in the background: started, looked at, ended, and gone with the workspace."""

import asyncio
import os
import subprocess
import sys
import time

import pytest

from mull.agent.tools import background, run
from mull.agent.tools.table import builtin_tools
from tool_calls import Screen, call, fail, fill, is_running, preview, start, use, wait_until_gone


@pytest.fixture
def workspace(tmp_path):
    made = fill(tmp_path, {})
    yield made
    made.jobs.end()


@pytest.fixture
def quick(monkeypatch):
    """Do not look first whether a command ends at once."""
    monkeypatch.setattr(run, "_FIRST_LOOK", 0)


def until(done):
    """Wait for what another process does; the test's own time limit ends it."""
    while not (found := done()):
        time.sleep(0.01)
    return found


def test_one_is_started_looked_at_and_ended(workspace, tmp_path):
    command = "echo up $$; touch ready; until [ -e go ]; do sleep 0.02; done; echo went; sleep 999"
    said = use(workspace, "run", command=command, background=True)
    assert said.endswith("[job 1 runs]")
    pid = int(said.split()[1])
    assert is_running(pid)
    assert use(workspace, "jobs", id=1) == "[job 1 runs]"
    (tmp_path / "go").touch()
    assert until(lambda: use(workspace, "jobs", id="1").removesuffix("[job 1 runs]")) == "went\n"
    assert use(workspace, "jobs") == f"1: {command} [runs]"
    assert use(workspace, "jobs", id=1, end=True) == "[job 1 ended with exit status -15]"
    assert not is_running(pid)
    assert use(workspace, "jobs") == f"1: {command} [ended with exit status -15]"
    assert [(one.id, one.is_running) for one in workspace.jobs.statuses] == [(1, False)]


def test_one_that_ends_at_once_says_how(workspace):
    said = use(workspace, "run", command="echo no such; exit 3", background=True)
    assert said == "no such\n[job 1 ended with exit status 3]"


def test_its_end_can_be_waited_for(workspace, tmp_path, quick):
    waits = "until [ -e go ]; do sleep 0.02; done; echo done"
    use(workspace, "run", command=waits, background=True)

    async def wait():
        looking = asyncio.ensure_future(start(workspace, "jobs", id=1, wait=500))
        await asyncio.sleep(0)
        (tmp_path / "go").touch()
        return (await looking).output

    assert asyncio.run(wait()) == "done\n[job 1 ended with exit status 0]"


def test_whoever_stops_waiting_is_free_at_once(workspace, quick):
    use(workspace, "run", command="sleep 999", background=True)

    async def wait():
        async with asyncio.timeout(0.1):
            await start(workspace, "jobs", id=1, wait=600)

    with pytest.raises(TimeoutError):
        asyncio.run(wait())
    assert workspace.jobs.statuses[0].is_running


def test_processes_that_it_starts_end_with_it(workspace, tmp_path, quick):
    command = "sleep 999 & echo $! > pid; trap '' TERM; wait; sleep 999"
    use(workspace, "run", command=command, background=True)
    written = tmp_path / "pid"
    pid = int(until(lambda: written.exists() and written.read_text().strip()))
    use(workspace, "jobs", id=1, end=True)
    assert not is_running(pid)


def test_they_run_on_between_event_loops_however_much_they_print(workspace, tmp_path, quick):
    command = "until [ -e go ]; do sleep 0.02; done; seq 1 200000; touch done; sleep 999"
    use(workspace, "run", command=command, background=True)
    (tmp_path / "go").touch()
    until((tmp_path / "done").exists)
    until(lambda: workspace.jobs.find(1).path.stat().st_size == 1_288_895)
    said = asyncio.run(start(workspace, "jobs", screen=Screen(300), id=1)).output
    assert "lines" in said
    path = said.split("read path=")[1].split("]")[0]
    assert use(workspace, "read", path=path, offset=200000) == "200000\t200000"


def test_what_it_prints_beyond_the_limit_is_counted(workspace, monkeypatch):
    monkeypatch.setattr(background, "_LARGEST", 10)
    said = use(workspace, "run", command="printf 0123456789abcdef", background=True)
    assert said == (
        "0123456789\n[6 bytes more were printed but not kept]\n[job 1 ended with exit status 0]"
    )


def test_there_is_a_limit_of_how_many_run(workspace, monkeypatch, quick):
    monkeypatch.setattr(background, "_MOST_RUNNING", 1)
    use(workspace, "run", command="sleep 999", background=True)
    assert "end one with jobs" in fail(workspace, "run", command="sleep 999", background=True)
    assert fail(workspace, "jobs", id=7) == "there is no background command 7: 1"


def test_the_preview_says_that_it_runs_on(workspace):
    shown = preview(builtin_tools(workspace)["run"], command="make serve", background=True)
    assert shown.title == "run in the background: make serve"
    asked = builtin_tools(workspace)["run"].prepare(call("run", command="x", background=True)).asked
    assert (asked.tool, asked.changes, asked.subject.text) == ("run", True, "x")


def test_they_end_with_the_workspace(tmp_path):
    workspace = fill(tmp_path, {})
    pid = int(use(workspace, "run", command="echo $$; exec sleep 999", background=True).split()[0])
    del workspace
    wait_until_gone(pid)


SCRIPT = """
import asyncio, sys
from mull.agent.tools.table import builtin_tools
from mull.agent.tools.tool import ToolContext
from mull.agent.tools.workspace import Workspace
from mull.neutral.blocks import ToolCallBlock
kept = Workspace(sys.argv[1])
call = ToolCallBlock("c", "run", {"command": "echo $$; exec sleep 999", "background": True})
print(asyncio.run(builtin_tools(kept)["run"].prepare(call).run(ToolContext(None))).output.split()[0])
"""


def test_they_end_with_the_program(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert not is_running(int(done.stdout))


def test_no_descriptor_is_left(workspace):
    use(workspace, "run", command="true", background=True)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        use(workspace, "run", command="echo x", background=True)
    assert len(os.listdir("/proc/self/fd")) == before
