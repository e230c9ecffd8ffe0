"""What is kept of a server: its list lets it start late, and what it changes is asked about."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from effort import tried
from mcp_servers import plain, serving
from mull.agent.mcp import memory
from mull.agent.mcp.memory import Hints, Listing, Memory
from mull.agent.tools.approve import ApprovalAnswer, Gate
from mull.agent.tools.tool import ToolContext
from mull.neutral.blocks import ToolCallBlock
from mull.policy.approval import parse_rule
from mull.store.mcp import McpConfig

CONFIG = McpConfig(command="x")
GUARDED, FREE = {}, {"readOnlyHint": True, "openWorldHint": False}


def tool(name="t", description="d", schema=None, hints=FREE):
    schema = schema or {"type": "object"}
    return {
        "name": name,
        "description": description,
        "inputSchema": schema,
        "annotations": hints,
    }


def starts(path):
    return path.read_text().count("started") if path.exists() else 0


def states(servers):
    return {status.name: status.state for status in servers.statuses}


# The list


def test_a_server_whose_list_is_kept_starts_when_it_is_called(tmp_path):
    began = tmp_path / "starts"
    config = {"a": plain("--starts", str(began))}

    async def look(servers):
        return states(servers), list(servers.tools)

    assert serving(config, tmp_path, look, lazy=True) == ({"a": "ready"}, ["mcp__a__echo"])
    assert serving(config, tmp_path, look, lazy=True) == ({"a": "idle"}, ["mcp__a__echo"])
    assert starts(began) == 1

    async def use(servers):
        both = asyncio.gather(*(servers.call("mcp__a__echo", text=t) for t in "xy"))
        return [answer.output for answer in await both], states(servers)

    assert serving(config, tmp_path, use, lazy=True) == (["x", "y"], {"a": "ready"})
    assert starts(began) == 2


def test_only_servers_that_are_wanted_start(tmp_path):
    configs = {name: plain("--starts", str(tmp_path / name)) for name in ("a", "b")}

    async def body(servers):
        await servers.start("read_file,mcp__b__*")
        return states(servers)

    async def main():
        from mcp_servers import Running

        servers = Running(configs, tmp_path / "logs")
        try:
            return await body(servers)
        finally:
            await servers.close()

    assert asyncio.run(main()) == {"a": "idle", "b": "ready"}
    assert (starts(tmp_path / "a"), starts(tmp_path / "b")) == (0, 1)


@pytest.mark.parametrize(
    "changed",
    [
        {"config": McpConfig(command="y")},
        {"config": McpConfig(command="x", env={"A": "1"})},
        {"version": "9.9"},
        {"later": 8 * 24 * 3600},
        {"later": -3600},
        {"content": b"{]"},
        {"content": b'{"version":2}'},
    ],
)
def test_a_kept_list_counts_for_one_configuration_one_version_and_a_week(
    tmp_path, monkeypatch, changed
):
    path = tmp_path / "a.json"
    Memory(path, CONFIG).learn(Listing([tool()]))
    assert Memory(path, CONFIG).listing == Listing([tool()])
    assert Memory(path, replace(CONFIG, timeout=5, tools=("t",))).listing is not None
    now = memory.time.time()
    monkeypatch.setattr(memory.time, "time", lambda: now + changed.get("later", 0))
    monkeypatch.setattr(memory, "__version__", changed.get("version", memory.__version__))
    if "content" in changed:
        path.write_bytes(changed["content"])
    assert Memory(path, changed.get("config", CONFIG)).listing is None


def test_a_list_that_is_too_large_is_not_kept_but_what_was_seen_is(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_LARGEST", 5_000)
    path = tmp_path / "a.json"
    Memory(path, CONFIG).learn(Listing([tool(description="x" * 10_000)]))
    again = Memory(path, CONFIG)
    assert again.listing is None
    assert again.standing(tool()).altered == ("description",)


def test_what_is_kept_is_for_its_owner_alone_and_so_are_the_folders(tmp_path):
    path = tmp_path / "data" / "mcp" / "a.json"
    Memory(path, CONFIG).learn(Listing([tool()]))
    modes = [one.stat().st_mode & 0o777 for one in (path, path.parent, path.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]


# What was approved


@pytest.mark.parametrize(
    ("now", "altered"),
    [
        (tool(), ()),
        (tool(description="send all to me"), ("description",)),
        (tool(schema={"type": "object", "properties": {"x": {}}}), ("arguments",)),
        (tool(hints=GUARDED), ("hints",)),
        (tool(hints={**FREE, "title": "other"}), ("description",)),
        (tool(hints={**FREE, "idempotentHint": True}), ()),
    ],
)
def test_a_tool_that_is_not_as_it_was_first_listed_is_altered(tmp_path, now, altered):
    kept = Memory(tmp_path / "a.json", CONFIG)
    kept.learn(Listing([tool()]))
    kept.learn(Listing([now]))
    again = Memory(tmp_path / "a.json", CONFIG)
    for one in (kept, again):
        assert one.standing(now).altered == altered
        one.approve([now])
        assert one.standing(now).altered == ()


def test_a_tool_that_comes_later_is_new_until_it_is_approved(tmp_path):
    kept = Memory(tmp_path / "a.json", CONFIG)
    kept.learn(Listing([tool()]))
    kept.learn(Listing([tool(), tool("late")]))
    assert (kept.standing(tool()).is_new, kept.standing(tool("late")).is_new) == (False, True)
    kept.approve([tool("late")])
    assert not Memory(tmp_path / "a.json", CONFIG).standing(tool("late")).is_new


@pytest.mark.parametrize("said", ["yes", "true", 1, 1.0, [True], {"a": 1}, None, False, ...])
def test_only_a_plain_true_makes_a_tool_read_only(tmp_path, said):
    kept = Memory(tmp_path / "a.json", CONFIG)
    listed = tool(hints={} if said is ... else {"readOnlyHint": said, "openWorldHint": False})
    kept.learn(Listing([listed]))
    assert kept.standing(listed).guarded.changes
    assert Hints.of(listed).changes


@pytest.mark.parametrize("said", ["no", "false", 0, 0.0, "", [], None, True, ...])
def test_only_a_plain_false_says_that_a_tool_does_not_reach_out(said):
    assert Hints.of(tool(hints={} if said is ... else {"openWorldHint": said})).reaches_out


def test_what_was_guarded_stays_so_whatever_the_server_says_later(tmp_path):
    kept = Memory(tmp_path / "a.json", CONFIG)
    kept.learn(Listing([tool(hints=GUARDED)]))
    kept.approve([tool()])
    assert kept.standing(tool()).guarded == Hints(changes=True, reaches_out=True, destroys=False)
    kept.learn(Listing([tool()]))
    kept.trust()
    assert not kept.standing(tool()).guarded.changes


@tried(0.5)
@given(st.lists(st.sampled_from(["open", "guarded", "approve"]), max_size=12))
def test_no_series_of_lists_and_approvals_unguards_a_tool(tmp_path_factory, steps):
    kept = Memory(tmp_path_factory.mktemp("kept") / "a.json", CONFIG)
    listed, was_guarded = tool(), False
    kept.learn(Listing([listed]))
    for step in steps:
        if step == "approve":
            kept.approve([listed])
            was_guarded |= listed["annotations"] == GUARDED
        else:
            listed = tool(hints=GUARDED if step == "guarded" else FREE)
            kept.learn(Listing([listed]))
        guarded = kept.standing(listed).guarded.changes
        assert guarded == (was_guarded or listed["annotations"] == GUARDED)


class Person:
    """Answers what it is told to, and remembers the questions."""

    def __init__(self, *choices):
        self.choices = list(choices)
        self.titles = []

    async def ask(self, request):
        self.titles.append(request.preview.title)
        return ApprovalAnswer(self.choices.pop(0) if self.choices else "no")


async def through(gate, tool, **given):
    """A call that passes the gate, as the runner makes it."""
    prepared = tool.prepare(ToolCallBlock("c", tool.definition.name, given))
    refusal = await gate.admit(prepared)
    if refusal is not None:
        return refusal
    result = await prepared.run(ToolContext(None))
    return result.output


def test_a_hint_that_comes_after_an_approval_does_not_count(tmp_path):
    person = Person("yes", "yes", "yes", "no")

    async def body(servers):
        gate = Gate(approver=person)
        done = [await through(gate, servers.tools["mcp__a__echo"], text="1")]
        told = len(servers.told)
        await servers.call("mcp__a__turn", text="hints")
        await servers.until(lambda: len(servers.told) > told)
        for number in "234":
            done.append(await through(gate, servers.tools["mcp__a__echo"], text=number))
        return done, servers.statuses[0].notes

    done, notes = serving({"a": plain("--tools", "echo,turn")}, tmp_path, body)
    assert done[:3] == ["1", "2", "3"]
    assert done[3].startswith("not run: the user refused")
    assert person.titles == [
        "a: echo",
        "a: echo (the server has changed its hints since you approved it)",
        "a: echo",
        "a: echo",
    ]
    assert notes[0] == (
        "it changed the hints of mcp__a__echo: mull asks before each call until you approve it "
        "again"
    )


def test_a_rule_for_a_tool_does_not_cover_what_the_server_made_of_it(tmp_path):
    rule = [parse_rule("allow", "mcp__a__*")]
    person = Person("session")

    async def body(servers):
        gate = Gate(rules=rule, approver=person)
        before = await through(gate, servers.tools["mcp__a__echo"], text="1")
        told = len(servers.told)
        await through(gate, servers.tools["mcp__a__turn"], text="Sends {} to me.")
        await servers.until(lambda: len(servers.told) > told)
        asked = [await through(gate, servers.tools["mcp__a__echo"], text=t) for t in "23"]
        alone = Gate(rules=rule)
        return before, asked, await through(alone, servers.tools["mcp__a__turn"], text="x")

    before, asked, alone = serving({"a": plain("--tools", "echo,turn")}, tmp_path, body)
    assert (before, asked) == ("1", ["2", "3"])
    assert person.titles == [
        "a: echo (the server has changed its description since you approved it)"
    ]
    assert alone == (
        "not run: there is nobody to ask and the server a has changed its description since you "
        "approved it: `mull mcp trust a` accepts the change"
    )


def test_a_list_that_changed_between_runs_is_found_before_anything_is_called(tmp_path):
    """The kept list was offered and approved; what runs is the server as it is now."""
    script = tmp_path / "server.py"
    arguments = tmp_path / "arguments.json"
    script.write_text(
        "import json, runpy, sys\n"
        f"sys.argv[1:] = json.load(open({str(arguments)!r}))\n"
        f"runpy.run_path({plain().args[0]!r}, run_name='__main__')\n"
    )
    config = {"a": replace(plain(), args=(str(script),))}
    free = ["--tools", "echo", "--hinted", "echo", "--closed", "echo"]

    async def use(servers):
        gate = Gate(approver=person)
        return [await through(gate, servers.tools["mcp__a__echo"], text=t) for t in "12"]

    person = Person()
    arguments.write_text(json.dumps(free))
    assert serving(config, tmp_path, use, lazy=True) == ["1", "2"]
    arguments.write_text(json.dumps([*free, "--described", "Mails {} to me."]))
    changed, asked = serving(config, tmp_path, use, lazy=True)
    assert changed == (
        "not run: the server a has changed echo since; read its description again and repeat "
        "the call"
    )
    assert asked.startswith("not run: the user refused")
    assert person.titles == [
        "a: echo (the server has changed its description since you approved it)"
    ]


def test_a_tool_that_reaches_out_is_asked_about_although_it_only_reads(tmp_path):
    person = Person()

    async def body(servers):
        gate = Gate(approver=person)
        names = ("closed", "open", "named")
        return [await through(gate, servers.tools[f"mcp__a__{name}"]) for name in names]

    flags = ("--tools", "closed,open,named", "--hinted", "closed,open", "--closed", "closed")
    done = serving({"a": plain(*flags, read_only=("named",))}, tmp_path, body)
    assert [one.startswith("not run") for one in done] == [False, True, False]
    assert person.titles == ["a: open"]
