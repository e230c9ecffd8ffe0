"""Tools in a conversation: approval, context, progress, nested questions, MCP servers."""

import asyncio
import threading

import pytest

import mull
from mcp_servers import plain
from mull.agent.mcp.servers import log_folder
from mull.testing import Call, Say, StrictServer, Think

KIMI = "moonshotai/kimi-k2-thinking"
MODELS = {
    "kimi": KIMI,
    "anthropic": "anthropic/claude-sonnet-4-5",
    "gemini": "google/gemini-3-pro-preview",
    "openai": "openai/gpt-5",
}


def script(*calls, end="Done."):
    return [[Think("I must."), *calls], [Think("That was it."), Say(end)]]


def results(result):
    """What the model was told, by call."""
    return [
        (block.output, block.is_error)
        for message in result.messages
        if message.role == "tool"
        for block in message.blocks
    ]


def asked(question, calls, **options):
    """Ask on a server that makes these calls."""
    with StrictServer("kimi", script(*calls)) as server:
        return mull.ask(question, KIMI, base_url=server.url, key="k", **options)


# approval


def delete(name: str) -> str:
    """Delete a file."""
    return f"deleted {name}"


@mull.tool(changes=False)
def look(name: str) -> str:
    """Look at a file."""
    return f"saw {name}"


BOTH = (Call("delete", {"name": "a"}), Call("look", {"name": "a"}))


async def allow_later(request: mull.ApprovalRequest) -> bool:
    await asyncio.sleep(0)
    return True


class Approving:
    async def __call__(self, request):
        return True


REFUSED = ("not run: the user refused; ask what to do instead, or continue without it", True)
FAILED = ("not run: asking for approval failed", True)


@pytest.mark.parametrize(
    ("approve", "told"),
    [
        (lambda request: True, ("deleted a", False)),
        (allow_later, ("deleted a", False)),
        (Approving(), ("deleted a", False)),
        (lambda request: "yes", ("deleted a", False)),
        (lambda request: mull.ApprovalAnswer("session"), ("deleted a", False)),
        (lambda request: False, REFUSED),
        (lambda request: "no", REFUSED),
        (lambda request: mull.ApprovalAnswer("no"), REFUSED),
        (
            lambda request: "not on a Friday",
            ("not run: the user refused, and says: not on a Friday", True),
        ),
        (
            lambda request: mull.ApprovalAnswer("no", "not on a Friday"),
            ("not run: the user refused, and says: not on a Friday", True),
        ),
        (lambda request: 1, FAILED),
        (lambda request: "Yes", ("not run: the user refused, and says: Yes", True)),
        (lambda request: {"allow": True}, FAILED),
        (lambda request: None, FAILED),
        (lambda request: 1 // 0, FAILED),
    ],
)
def test_approve_decides_on_what_may_change_something(approve, told):
    result = asked("Go.", BOTH, tools=[delete, look], approve=approve)
    assert results(result) == [told, ("saw a", False)]


@pytest.mark.parametrize("said", ["session", "always"])
def test_an_answer_for_the_session_holds_in_the_turns_that_follow(said):
    seen = []

    def approve(request):
        seen.append(request.rules)
        return said

    with StrictServer("kimi", [*script(BOTH[0]), *script(BOTH[0])]) as server:
        talk = mull.Conversation(
            KIMI, base_url=server.url, key="k", tools=[delete], approve=approve
        )
        told = [results(talk.ask("Go.")), results(talk.ask("Again."))]
    assert told == [[("deleted a", False)]] * 2
    assert seen == [("delete",)]


def test_without_approve_everything_runs():
    assert results(asked("Go.", BOTH, tools=[delete, look]))[0] == ("deleted a", False)


def test_approve_sees_the_call_one_at_a_time_and_in_order():
    seen, inside = [], threading.Lock()

    def approve(request: mull.ApprovalRequest) -> bool:
        assert inside.acquire(blocking=False)
        seen.append((request.tool, request.arguments, request.preview.title, request.call_id))
        inside.release()
        return True

    calls = [Call("delete", {"name": str(n)}) for n in range(5)]
    result = asked("Go.", calls, tools=[delete], approve=approve)
    made = result.messages[0].tool_calls
    assert seen == [
        ("delete", {"name": str(n)}, f"delete(name='{n}')", made[n].id) for n in range(5)
    ]


def test_a_failing_approve_is_logged(caplog):
    asked("Go.", BOTH, tools=[delete, look], approve=lambda request: None)
    assert "approve failed, so delete was not run" in caplog.text
    assert "the answer was None: use True, False," in caplog.text


def test_approve_must_be_a_function():
    with pytest.raises(mull.LocalError, match="approve must be a function, not bool"):
        mull.Conversation(KIMI, key="k", approve=True)


def test_a_conversation_asks_on_any_event_loop():
    calls = [Call("delete", {"name": "a"}), Call("delete", {"name": "b"})]
    with StrictServer("kimi", [*script(*calls), *script(*calls)]) as server:
        talk = mull.Conversation(
            KIMI, base_url=server.url, key="k", tools=[delete], approve=allow_later
        )
        first = talk.ask("Go.")
        second = asyncio.run(talk.ask_async("Again."))
    assert results(first) == results(second) == [("deleted a", False), ("deleted b", False)]


def test_a_toolbox_decides_on_its_own_tools_only(tmp_path):
    toolbox = mull.Toolbox(mull.load_setup(), tmp_path, wanted="write")
    calls = [Call("write", {"path": "a", "content": "x"}), Call("delete", {"name": "a"})]
    with StrictServer("kimi", script(*calls)) as server:
        options = {"model": KIMI, "base_url": server.url, "key": "k", "tools": [delete]}
        with mull.open_session(toolbox=toolbox, approve=lambda r: "no", **options) as session:
            told = results(session.ask("Go."))
    assert told[0][0].startswith("not run: write needs approval and there is nobody to ask")
    assert told[1] == REFUSED


# context and progress


class Deps:
    def __init__(self, user):
        self.user = user


def test_tools_get_the_context_of_their_conversation():
    seen = []

    async def who(context: mull.ToolContext[Deps], more: str = "") -> str:
        seen.append((context.call.name, context.call.input, [m.role for m in context.messages]))
        return context.deps.user

    def steps(n: int):
        for at in range(n):
            yield f"step {at}"
        return "finished"

    calls = [Call("who", {"more": "x"}), Call("steps", {"n": 2})]
    with StrictServer("kimi", script(*calls)) as server:
        talk = mull.Conversation(
            KIMI, base_url=server.url, key="k", tools=[who, steps], context=Deps("ada")
        )
        events = list(talk.stream("Go."))
    assert seen == [("who", {"more": "x"}, ["user", "assistant"])]
    shown = [event.text for event in events if isinstance(event, mull.ToolOutput)]
    assert shown == ["step 0\n", "step 1\n"]
    ran = [event.output for event in events if isinstance(event, mull.ToolRan)]
    assert ran == ["ada", "finished"]


@pytest.mark.parametrize("provider", MODELS)
def test_the_model_gets_every_line_that_a_tool_yields(provider):
    def lines():
        yield "first"
        yield "second"

    async def later():
        yield "first"
        yield "second"

    def numbers():
        return map(int, "12")

    calls = [Call(name, {}) for name in ("lines", "later", "numbers")]
    with StrictServer(provider, script(*calls)) as server:
        place = {"base_url": server.url, "key": "k", "tools": [lines, later, numbers]}
        mull.ask("Go.", MODELS[provider], **place)
    sent = server.requests[-1].body.decode()
    assert sent.count("first\\nsecond") == 2
    assert "[1,2]" in sent
    assert "object at 0x" not in sent


def test_an_interrupted_turn_tells_blocking_tools():
    begun, ended = threading.Event(), threading.Event()

    def wait(context: mull.ToolContext) -> str:
        begun.set()
        if context.cancelled.wait(50):
            ended.set()
        return ""

    with StrictServer("kimi", script(Call("wait", {}))) as server:
        talk = mull.Conversation(KIMI, base_url=server.url, key="k", tools=[wait])
        with talk.stream("Go.") as events:
            for event in events:
                if isinstance(event, mull.ToolStarted):
                    assert begun.wait(50)
                    break
    assert ended.wait(50)


def test_tools_may_ask_questions_of_their_own():
    inner = [[Think("Deep."), Say("inner")] for _ in range(3)]
    with StrictServer("kimi", inner) as other:
        given = {"base_url": other.url, "key": "k"}

        async def blocking_inside() -> str:
            return mull.ask("Inner?", KIMI, **given).text

        async def awaited() -> str:
            return (await mull.ask_async("Inner?", KIMI, **given)).text

        def in_a_thread() -> str:
            return mull.ask("Inner?", KIMI, **given).text

        tools = [blocking_inside, awaited, in_a_thread]
        result = asked("Go.", [Call(one.__name__, {}) for one in tools], tools=tools)
    assert results(result) == [("inner", False)] * 3


def test_a_question_inside_a_question_inside_a_question():
    def inside(depth):
        async def deeper() -> str:
            if depth == 3:
                return "bottom"
            return asked("Go.", [Call("deeper", {})], tools=[inside(depth + 1)]).messages[1].text

        def deeper_too() -> str:
            return asyncio.run(deeper())

        deeper_too.__name__ = "deeper"
        return deeper if depth % 2 else deeper_too

    result = asked("Go.", [Call("deeper", {})], tools=[inside(1)])
    assert result.text == "Done."


# MCP servers


def mcp(*flags, **more):
    config = plain(*flags)
    return {"command": config.command, "args": config.args, **more}


ECHO = Call("mcp__a__echo", {"text": "hi"})


def test_servers_start_with_the_first_question_and_end_with_the_conversation():
    with StrictServer("kimi", [*script(ECHO), [Say("Yes.")]]) as server:
        options = {"base_url": server.url, "key": "k", "mcp": {"a": mcp()}}
        with mull.Conversation(KIMI, **options) as talk:
            assert talk.tools == {}
            result = talk.ask("Go.")
            assert "mcp__a__echo" in talk.tools
            assert asyncio.run(talk.ask_async("And?")).text == "Yes."
        assert talk.tools == {}
    assert results(result) == [("hi", False)]
    offered = server.requests[0].json["tools"]
    assert [one["function"]["name"] for one in offered] == ["mcp__a__echo"]


def test_servers_of_an_isolated_engine_leave_nothing_behind():
    with StrictServer("kimi", script(ECHO)) as server:
        given = {"base_url": server.url, "key": "k", "engine": mull.Engine(isolated=True)}
        result = mull.ask("Go.", KIMI, mcp={"a": plain()}, **given)
    assert results(result) == [("hi", False)]
    assert not log_folder().exists()


def test_servers_can_be_used_on_another_event_loop():
    with StrictServer("kimi", [*script(ECHO), *script(ECHO)]) as server:
        options = {"base_url": server.url, "key": "k", "mcp": {"a": plain()}}
        talk = mull.Conversation(KIMI, **options)
        first = talk.ask("Go.")
        second = asyncio.run(talk.ask_async("Again."))
        talk.close()
    assert results(first) == results(second) == [("hi", False)]


def test_servers_restart_if_their_event_loop_has_ended():
    with StrictServer("kimi", [*script(ECHO), *script(ECHO)]) as server:
        options = {"base_url": server.url, "key": "k", "mcp": {"a": plain()}}
        talk = mull.Conversation(KIMI, **options)
        first = asyncio.run(talk.ask_async("Go."))
        second = talk.ask("Again.")
        talk.close()
    assert results(first) == results(second) == [("hi", False)]


def test_running_servers_are_left_to_whoever_started_them():
    async def main(url):
        async with mull.McpServers({"a": plain()}) as servers:
            async with mull.Conversation(KIMI, base_url=url, key="k", mcp=servers) as talk:
                result = await talk.ask_async("Go.")
            return results(result), [one.state for one in servers.statuses]

    with StrictServer("kimi", script(ECHO)) as server:
        assert asyncio.run(main(server.url)) == ([("hi", False)], ["ready"])


def test_servers_on_an_event_loop_that_is_blocked_are_told_of(monkeypatch):
    monkeypatch.setattr("mull.agent.mcp.elsewhere._PATIENCE", 0.01)

    async def main():
        async with mull.McpServers({"a": plain()}) as servers:
            talk = mull.Conversation(KIMI, base_url=server.url, key="k", mcp=servers)
            with pytest.raises(mull.LocalError, match="is blocked: use the asynchronous func"):
                talk.ask("Go.")  # which blocks the loop that the servers run on

    with StrictServer("kimi", script(ECHO)) as server:
        asyncio.run(main())
    assert server.requests == []


@pytest.mark.parametrize("given", [delete, "delete", {"name": "delete"}, 3])
def test_tools_are_a_list(given):
    with pytest.raises(mull.LocalError, match="tools must be a list of functions, not"):
        mull.Conversation(KIMI, key="k", tools=given)


def test_a_tool_without_a_handler_is_for_complete():
    only = mull.Tool("look", "Look.", {"type": "object", "properties": {}})
    with StrictServer("kimi", script(Call("look", {}))) as server:
        result = mull.complete("Go.", KIMI, base_url=server.url, key="k", tools=[only])
    assert [call.name for call in result.tool_calls] == ["look"]
    with pytest.raises(mull.LocalError, match="the tool look has no handler"):
        mull.Conversation(KIMI, key="k", tools=[only])


def test_a_single_question_ends_its_servers():
    ends = []

    class Servers(mull.McpServers):
        async def close(self):
            await super().close()
            ends.append([one.state for one in self.statuses])

    with StrictServer("kimi", [*script(ECHO), *script(ECHO)]) as server:
        options = {"base_url": server.url, "key": "k"}
        result = mull.ask("Go.", KIMI, mcp=Servers({"a": plain()}), **options)
        list(mull.stream("Go.", KIMI, mcp=Servers({"a": plain()}), **options))
    assert results(result) == [("hi", False)]
    assert ends == [["stopped"], ["stopped"]]


def test_a_server_that_does_not_start_is_told_of_before_anything_is_sent():
    with StrictServer("kimi", []) as server:
        talk = mull.Conversation(
            KIMI, base_url=server.url, key="k", mcp={"a": plain(), "b": plain("--fail", "no")}
        )
        for _ in range(2):
            with pytest.raises(mull.LocalError, match="the MCP server b did not start: its proc"):
                talk.ask("Go.")
        assert talk.messages == ()
    assert server.requests == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"a": {}}, "Conversation: mcp.a has no command and no url"),
        ({"a": {"command": "x", "arg": []}}, "arg"),
        ({"a b": {"command": "x"}}, "cannot be called"),
        ({"a__b": plain()}, "cannot be called"),
        ({"a": "npx server"}, r"Conversation: mcp\.a cannot be"),
        ("npx server", "mcp must be a mapping of names to servers"),
    ],
)
def test_a_server_that_cannot_be_is_refused_at_once(given, said):
    with pytest.raises(mull.LocalError, match=said):
        mull.Conversation(KIMI, key="k", mcp=given)


def test_approve_is_asked_about_the_tools_of_servers():
    calls = [Call("mcp__a__look", {"text": "x"}), Call("mcp__a__touch", {"text": "x"})]
    servers = {"a": plain("--tools", "look,touch", read_only=("look",))}
    result = asked("Go.", calls, mcp=servers, approve=lambda request: f"no {request.tool}")
    assert [failed for _, failed in results(result)] == [False, True]
    assert results(result)[1] == ("not run: the user refused, and says: no mcp__a__touch", True)


def test_a_fork_uses_the_same_servers_and_leaves_them_running():
    with StrictServer("kimi", [*script(ECHO), *script(ECHO), *script(ECHO)]) as server:
        options = {"base_url": server.url, "key": "k", "mcp": {"a": plain()}}
        with mull.Conversation(KIMI, **options) as talk:
            first = talk.ask("Go.")
            with talk.fork() as other:
                second = other.ask("Go on.")
            third = talk.ask("And on.")
    assert results(first) == results(second) == results(third) == [("hi", False)]
