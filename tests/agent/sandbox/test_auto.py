"""The mode `auto`: commands run unasked in the sandbox, and more than that is asked for.

Everything here goes through the gate and the runner, as a model's calls do.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from pathlib import Path

import pytest

from caged import FILES, fill_repository, git, make_place, need_tier
from mull.agent.calls import Calls
from mull.agent.checkpoints import Keeper, plan_restoring
from mull.agent.sandbox.cage import Cage
from mull.agent.sandbox.guard import set_aside
from mull.agent.tools.approve import ApprovalAnswer, Gate
from mull.agent.tools.table import builtin_tools
from mull.agent.tools.tool import ToolContext
from mull.agent.tools.workspace import Workspace
from mull.neutral.blocks import ToolCallBlock
from mull.policy.approval import parse_rule
from mull.store.checkpoints import Checkpoints


class Person:
    """Gives these answers, and remembers what was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def ask(self, request):
        self.asked.append(request)
        return self.answers.pop(0)

    @property
    def wants(self):
        return [request.wants for request in self.asked]


class Work:
    """A folder with tools in the mode `auto`."""

    def __init__(
        self,
        folder,
        *answers,
        mode="auto",
        wish="auto",
        rules=(),
        tiers=("namespaces",),
        nobody=False,
    ):
        self.folder = folder
        self.person = Person(*answers)
        self.warnings = []
        self.workspace = Workspace(folder)
        self.cage = Cage(folder, rules, lambda: wish, self.warnings.append, tiers)
        self.gate = Gate(
            mode,
            rules,
            None if nobody else self.person,
            warn=self.warnings.append,
            cage=lambda: self.cage,
        )
        self.tools = builtin_tools(self.workspace, rules=rules, cage=lambda: self.cage)
        self.events = []

    def use(self, name, **given):
        """The result of one call."""

        async def go():
            calls = Calls(
                (ToolCallBlock("c1", name, given),), self.tools, self.gate.admit, self.events.append
            )
            await calls.run()
            return calls.results()[0]

        return asyncio.run(go())

    def run(self, command, **more):
        return self.use("run", command=command, **more)


@pytest.fixture
def folder():
    need_tier("namespaces")
    for place in make_place():
        (place / "work").mkdir()
        yield fill_repository(place / "work")


def rules(*denied, allow=()):
    return [
        *(parse_rule("deny", one) for one in denied),
        *(parse_rule("allow", one) for one in allow),
    ]


def test_commands_and_edits_run_unasked(folder):
    work = Work(folder)
    assert work.run("echo 2 >> a.py; cat a.py").output == "print(1)\n2"
    assert not work.use("edit", path="a.py", old_text="2\n", new_text="3\n").is_error
    assert (folder / "a.py").read_text() == "print(1)\n3\n"
    assert work.person.asked == []


def test_protected_files_are_asked_about_in_the_file_tools_too(folder):
    work = Work(folder, False)
    assert work.use("write", path="AGENTS.md", content="evil").is_error
    assert len(work.person.asked) == 1


def test_so_are_hooks_wherever_git_looks_for_them(folder):
    (folder / "tools").mkdir()
    git(folder, "config", "core.hooksPath", "tools")
    work = Work(folder, False)
    assert work.use("write", path="tools/pre-commit", content="evil").is_error
    assert len(work.person.asked) == 1


def test_a_protected_file_is_asked_for_and_just_that_is_granted(folder):
    work = Work(folder, True)
    result = work.run("echo new > AGENTS.md && echo x >> .git/config; echo x > ../beside; true")
    assert work.person.wants == []  # it did not fail
    result = work.run("echo new > AGENTS.md")
    assert work.person.wants == ["wants to write AGENTS.md"]
    assert result.output == "(no output)"
    assert (folder / "AGENTS.md").read_text() == "new\n"


def test_a_no_leaves_everything_and_tells_the_model(folder):
    work = Work(folder, ApprovalAnswer("no", "leave it"))
    result = work.run("echo new > AGENTS.md")
    assert result.is_error
    assert result.output.endswith(
        "[the sandbox denied it to write AGENTS.md; the user refused, and says: leave it]"
    )
    assert (folder / "AGENTS.md").read_text() == FILES["AGENTS.md"]
    again = work.run("echo newer > AGENTS.md")  # asked once
    assert len(work.person.asked) == 1
    assert "it ran in a sandbox" in again.output


def test_what_is_outside_is_asked_for_by_its_folder(folder):
    other = folder.parent / "other"
    other.mkdir()
    work = Work(folder, True)
    assert work.run(
        "echo x > ../other/new/y || mkdir ../other/new && echo x > ../other/new/y"
    ).output
    assert work.person.wants == [f"wants to write {other}/new (all of {other})"]
    assert (other / "new/y").read_text() == "x\n"


def test_the_network_is_asked_for_by_the_name_that_was_looked_up(folder):
    work = Work(folder, False)
    result = work.run("getent ahosts www.example.org")
    assert work.person.wants == ["wants the network: www.example.org"]
    assert "[the sandbox denied it the network: www.example.org;" in result.output


def test_a_success_without_the_network_it_wanted_is_told(folder):
    work = Work(folder)
    result = work.run("getent ahosts www.example.org | cat")
    assert not result.is_error
    assert "[the sandbox denied it the network: www.example.org; the user is" in result.output
    assert "sandbox" not in work.run("echo | cat").output


def test_a_temporary_file_of_others_is_asked_for(folder, tmp_path):
    (tmp_path / "build.log").write_text("broken\n")
    work = Work(folder, True)
    assert work.run(f"cat {tmp_path}/build.log").output == "broken"
    assert work.person.wants == [f"wants to read {tmp_path}/build.log"]


def test_a_server_of_this_machine_is_asked_for_and_then_reached(folder):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5).send(b'x')"
        work = Work(folder, True)
        result = work.run(f'{sys.executable} -I -c "{code}"')
        assert work.person.wants == [f"wants the network: 127.0.0.1:{port}"]
        assert not result.is_error
        server.settimeout(5)
        server.accept()[0].close()


def test_a_port_that_nobody_has_is_no_question(folder):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
    work = Work(folder)
    assert work.run(f'{sys.executable} -I -c "{code}"').is_error
    assert work.person.asked == []


def test_two_wants_one_after_the_other(folder):
    work = Work(folder, True, True)
    assert not work.run("echo 1 > AGENTS.md && git config a.b c").is_error
    assert work.person.wants == ["wants to write AGENTS.md", "wants to write .git/config"]
    assert "[a]" in (folder / ".git/config").read_text()


def test_a_new_protected_file_stays_only_if_the_user_says_so(folder):
    work = Work(folder, True, False)
    assert not work.run("echo x > .envrc").is_error
    assert (folder / ".envrc").read_text() == "x\n"
    result = work.run("mkdir .vscode; echo evil > .vscode/tasks.json")
    assert work.person.wants == ["wants to write .envrc", "wants to write .vscode"]
    assert not (folder / ".vscode").exists()
    place = result.output.split("[moved to ")[1].split(":")[0]
    assert Path(place, "0/.vscode/tasks.json").read_text() == "evil\n"
    assert "refused that before" in work.run("mkdir .vscode; chmod 0 .vscode .").output
    assert not (folder / ".vscode").exists()


def test_nothing_behind_a_link_is_moved_away(folder, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/.envrc").write_text("of others\n")
    (folder / "linked").symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="link"):
        set_aside((f"{folder}/linked/.envrc",))
    assert (tmp_path / "mine/.envrc").exists()


def test_no_name_hides_what_is_asked_for(folder):
    work = Work(folder, False)
    work.run("mkdir $'a\\n\\e[2J'; echo x > $'a\\n\\e[2J/.envrc'")
    assert work.person.wants == [r"wants to write a\n\x1b[2J/.envrc"]


@pytest.mark.parametrize("is_over", [True, False])
def test_a_protected_file_is_told_although_the_user_stops_the_command(folder, is_over):
    """While it runs, or while it is asked about."""
    work = Work(folder)
    asked = asyncio.Event()

    async def ask(_):
        asked.set()
        await asyncio.Event().wait()

    work.person.ask = ask
    command = "echo evil > .envrc" + ("" if is_over else "; echo up; sleep 600")

    async def go():
        block = ToolCallBlock("c1", "run", {"command": command})
        prepared = work.tools["run"].prepare(block)
        assert await work.gate.admit(prepared) is None
        context = ToolContext(None, on_emit=lambda _: asked.set())
        task = asyncio.create_task(prepared.run(context))
        await asked.wait()
        task.cancel()
        await asyncio.wait((task,))

    asyncio.run(go())
    assert any(".envrc" in one for one in work.warnings), work.warnings


def test_with_nobody_to_ask_it_is_denied(folder):
    work = Work(folder, nobody=True)
    assert work.run("echo x > ok").output == "(no output)"
    assert "there is nobody to ask" in work.run("echo x > AGENTS.md").output
    assert "there is nobody to ask" in work.run("echo x > .envrc").output
    assert (folder / "AGENTS.md").read_text() == FILES["AGENTS.md"]
    assert not (folder / ".envrc").exists()


def test_a_rule_runs_a_command_outside_and_a_denial_does_not_run_it(folder):
    work = Work(folder, rules=rules("run(rm *)", allow=["run(touch ../beside)"]))
    assert not work.run("touch ../beside").is_error
    assert (folder.parent / "beside").exists()
    assert "denies it" in work.run("rm a.py").output
    assert (folder / "a.py").exists()


def test_what_rules_deny_is_no_question(folder):
    work = Work(folder, rules=rules("read(.env*)"))
    result = work.run("cat .env")
    assert "SECRET" not in result.output
    assert work.person.asked == []


def test_nor_is_what_they_deny_behind_a_link(folder):
    (folder.parent / "secrets").write_text("SECRET=3\n")
    (folder / ".env.link").symlink_to("../secrets")
    work = Work(folder, rules=rules("read(.env*)"))
    assert "SECRET" not in work.run("cat ../secrets .env.link").output
    assert work.person.asked == []


def test_what_only_looks_is_confined_too(folder):
    work = Work(folder)
    prepared = work.tools["run"].prepare(ToolCallBlock("c1", "run", {"command": "cat a.py"}))
    assert prepared.asked.subject.is_harmless
    assert asyncio.run(work.gate.admit(prepared)) is None
    assert prepared.permit.confined
    work.gate.choose("ask")
    prepared = work.tools["run"].prepare(ToolCallBlock("c1", "run", {"command": "cat a.py"}))
    assert asyncio.run(work.gate.admit(prepared)) is None
    assert not prepared.permit.confined


def test_the_home_directory_is_never_granted_as_a_whole(folder, monkeypatch):
    home = folder.parent / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    work = Work(folder, True)
    assert not work.run("echo x > ~/.newrc").is_error
    assert work.person.wants == ["wants to write ~/.newrc, outside the sandbox"]
    assert (home / ".newrc").read_text() == "x\n"


def test_where_there_is_no_sandbox_the_mode_becomes_ask(folder):
    work = Work(folder, False, wish="off")
    assert work.run("echo x > ok").is_error
    assert work.gate.mode == "ask"
    assert work.warnings == [
        "the mode auto is not possible here, so mull asks: tools.sandbox is off"
    ]
    assert work.person.wants == [""]


def test_a_mode_that_nobody_chose_needs_the_whole_sandbox(folder):
    need_tier("landlock")
    work = Work(folder, False, tiers=("landlock",))
    work.gate.is_chosen = False
    assert work.run("echo x > ok").is_error
    assert (work.gate.mode, work.warnings) == ("ask", [])
    work.gate.choose("auto")
    assert not work.run("echo x > ok").is_error


def test_an_approved_command_runs_outside(folder):
    work = Work(folder, True, mode="ask")
    assert not work.run("touch ../beside").is_error
    assert (folder.parent / "beside").exists()


def test_switched_on_every_command_is_confined(folder):
    for mode, answers in (("ask", [True, True]), ("yes", [])):
        work = Work(folder, *answers, mode=mode, wish="on")
        work.run("touch ../beside || true")
        assert not (folder.parent / "beside").exists()
        if mode == "yes":
            assert "tools.sandbox is on" in work.run("echo x > AGENTS.md").output
    allowed = Work(folder, wish="on", rules=rules(allow=["run"]))
    allowed.run("touch ../beside || true")
    assert not (folder.parent / "beside").exists()


def test_switched_on_where_there_is_none_nothing_runs(folder):
    work = Work(folder, mode="yes", wish="on", tiers=("seatbelt",))
    assert "there is no sandbox" in work.run("touch ran").output
    assert not (folder / "ran").exists()


def test_a_mode_that_changes_after_admission_frees_no_command(folder):
    work = Work(folder)

    async def go():
        call = ToolCallBlock("c1", "run", {"command": "touch ../beside || true"})
        prepared = work.tools["run"].prepare(call)
        assert await work.gate.admit(prepared) is None
        work.gate.choose("yes")
        from tool_calls import Screen

        return await prepared.run(Screen())

    asyncio.run(go())
    assert not (folder.parent / "beside").exists()


def test_where_protected_files_are_put_back_it_asks_and_runs_again(folder):
    need_tier("landlock")
    work = Work(folder, True, tiers=("landlock",))
    work.run("rm AGENTS.md; echo new > AGENTS.md")
    assert work.person.wants == ["wants to write AGENTS.md"]
    assert (folder / "AGENTS.md").read_text() == "new\n"


def test_a_background_command_is_confined_and_reached_by_later_ones(folder):
    work = Work(folder)
    serve = (
        "import socket; s = socket.create_server(('127.0.0.1', 4712)); print('up', flush=True)\n"
        "while True: s.accept()[0].send(b'hello')"
    )
    (folder / "serve.py").write_text(serve)
    result = work.run(f"touch ../beside; exec {sys.executable} -I serve.py", background=True)
    try:
        assert "only other commands here reach its ports" in result.output
        ask = "import socket; print(socket.create_connection(('127.0.0.1', 4712), 5).recv(9))"
        again = f'until {sys.executable} -I -c "{ask}"; do sleep 0.2; done'
        answer = work.run(again, timeout=40)
        assert "b'hello'" in answer.output
    finally:
        work.workspace.jobs.end()
    assert not (folder.parent / "beside").exists()
    assert work.person.asked == []


def test_what_appears_beside_a_background_command_is_told_not_taken(folder):
    work = Work(folder)
    work.run("echo x > .envrc", background=True)
    until = time.monotonic() + 20
    while not work.warnings and time.monotonic() < until:
        time.sleep(0.05)
    assert ".envrc: it changed while" in work.warnings[0]
    assert (folder / ".envrc").exists()


def test_everything_that_ran_unasked_can_be_undone(folder, tmp_path):
    work = Work(folder)
    kept = Checkpoints(tmp_path / "kept")
    work.workspace.keeper = Keeper(kept, lambda: 0, work.warnings.append)
    result = work.run("echo 2 >> a.py; rm -r sub; echo new > b.py")
    assert "+2" in result.diff
    assert "+++ b/b.py" in result.diff
    plan_restoring(kept, [0]).run()
    assert (folder / "a.py").read_text() == FILES["a.py"]
    assert not (folder / "b.py").exists()


def test_the_environment_has_no_way_out(folder, monkeypatch):
    monkeypatch.setenv("SSH_AUTH_SOCK", "/somewhere")
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/somewhere")
    monkeypatch.setenv("ACME_API_KEY", "SECRET")
    output = Work(folder).run("env").output
    assert "/somewhere" not in output
    assert "SECRET" not in output
    assert "TMPDIR=/tmp" in output


def test_long_commands_are_ended_with_everything_they_started(folder):
    mark = str(10**7 + os.getpid())  # no other run of the tests has it
    result = Work(folder).run(f"setsid sleep {mark} & sleep 600", timeout=1)
    assert "[ended after 1 seconds" in result.output
    assert not any(mark in line for line in _commands())


def _commands():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                yield file.read()
        except OSError:
            continue
