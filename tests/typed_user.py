"""A program as a strict user of the library writes it: a type checker finds the marked lines wrong,
and nothing else. `test_typing.py` has mypy read it; nothing runs it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import assert_type

import mull


def temperature(city: str, unit: str = "celsius") -> float:
    """The temperature outside."""
    return 4.0


async def token() -> str:
    return "a-fresh-token"


def shown(event: mull.Event) -> str:
    if isinstance(event, mull.Failed):
        assert_type(event, mull.Failed)
        return event.code or event.text
    match event:
        case mull.TextDelta(text=text) | mull.ThinkingDelta(text=text):
            return assert_type(text, str)
        case mull.ToolStarted():
            return event.title
        case mull.UsageReported():
            print(event.text)  # wrong: attr-defined
        case mull.Answered():  # wrong: attr-defined
            pass
        case _:
            pass
    return ""


class Careful:
    async def ask(self, request: mull.ApprovalRequest) -> mull.ApprovalAnswer:
        return mull.ApprovalAnswer("no", request.preview.title)


class Careless:
    def ask(self, request: mull.ApprovalRequest) -> bool:
        return True


def questions() -> None:
    assert_type(mull.ask("x", "a/b", max_tokens=10, key=token, keys={"c": "d"}), mull.Result)
    mull.ask("x", "a/b", max_token=10)  # wrong: call-arg
    mull.ask("x", tools="none")  # wrong: arg-type
    mull.ask(None)  # wrong: arg-type
    mull.stream("x", modl="a/b")  # wrong: call-arg
    mull.stream_async("x", temprature=1.0)  # wrong: call-arg
    mull.open_session("x", folde="y")  # wrong: call-arg
    mull.open_session("x", max_token=1)  # wrong: call-arg
    mull.Conversation("a/b", sytem="y")  # wrong: call-arg
    mull.Conversation("a/b", dialect="openai")  # wrong: arg-type
    mull.Conversation(
        "a/b", limits=mull.ExchangeOptions(idle=60, retry=mull.RetryRules(attempts=2))
    )


async def streams(talk: mull.Conversation) -> None:
    async with talk.stream_async("x") as events:
        async for event in events:
            assert_type(event, mull.Event)
    with talk.stream("x") as blocking:
        for event in blocking:
            shown(event)
        assert_type(blocking.result.usage, mull.Usage | None)
    await talk.ask("x")  # wrong: misc


def sessions() -> None:
    store: mull.SessionStore = mull.SqliteSessions(Path("sessions.db"))
    store = mull.MemorySessions()
    store = mull.Log()  # wrong: assignment
    toolbox = mull.Toolbox(mull.load_setup(), Path.cwd(), mode="read-only", approver=Careful())
    mull.Toolbox(mull.load_setup(), Path.cwd(), mode="write")  # wrong: arg-type
    mull.Toolbox(mull.load_setup(), Path.cwd(), approver=Careless())  # wrong: arg-type
    with mull.open_session("x", model="a/b", store=store, toolbox=toolbox) as session:
        assert_type(session, mull.Session)
        assert_type(session.undo(), mull.Message)


def errors() -> None:
    try:
        mull.ask("x")
    except mull.RefusedError as error:
        assert_type(error.status, int)
        assert_type(error.retry_after, float | None)
        assert_type(error.request_id, str | None)
        assert_type(error.headers, dict[str, str])
        assert_type(error.rate_limit, mull.RateLimit | None)
    except mull.RemoteError as error:
        assert_type(error.retryable, bool)


async def batches() -> None:
    batch = mull.batch(["a", mull.user("b"), {"prompt": "c"}], "a/b", max_tokens=5, file="x.jsonl")
    for one in batch:
        assert_type(one, mull.BatchResult)
        assert_type(one.unwrap(), mull.Result)
    assert_type(batch.progress.cost.known, float)
    assert_type(await mull.batch_async(["a"]), list[mull.BatchResult])
    mull.batch([1])  # wrong: list-item
    mull.batch(["a"], max_token=5)  # wrong: call-arg


def codecs(target: mull.Target) -> mull.Message:
    prepared = mull.prepare(mull.Log([mull.user("x")]), mull.Settings().snapshot(), target)
    wire = assert_type(mull.encode_request(prepared.request, target), mull.WireRequest)
    reader = mull.decoder(target)
    return mull.assemble([*reader.feed(wire.body), *reader.close()])


class Database:
    def city(self) -> str:
        return "Oslo"


@mull.tool(changes=True, timeout=5)
def marked(n: int, context: mull.ToolContext[Database]) -> str:
    assert_type(context.deps, Database)
    context.emit(context.deps.cty())  # wrong: attr-defined
    return context.deps.city()


@mull.tool
async def simply(context: mull.ToolContext) -> str:
    return str(context.deps)


async def later(request: mull.ApprovalRequest) -> bool:
    return bool(request.arguments)


def tools() -> None:
    assert_type(marked(1, mull.ToolContext(Database())), str)
    marked("1", mull.ToolContext(Database()))  # wrong: arg-type
    ready = mull.Tool("a", "A tool.", {"type": "object"}, print, changes=False)
    assert_type(ready.definition, mull.ToolDefinition)
    mull.Conversation("a/b", tools=[marked, simply, ready], approve=later, context=Database())
    mull.ask("x", approve=lambda request: "no", mcp={"a": {"command": "b"}})
    mull.ask("x", approve=True)  # wrong: arg-type
    mull.ask("x", mcp=["a"])  # wrong: arg-type
    mull.ask(["What is this?", mull.file("a.png"), mull.file(b"x", "image/png")])
    mull.ask(["What is this?", b"x"])  # wrong: list-item
    mull.Toolbox(mull.load_setup(), Path(), approver=later)


class Logged:
    def __init__(self) -> None:
        self._client = mull.HttpClient(proxy="http://proxy:3128", verify=Path("ca.pem"))

    @asynccontextmanager
    async def send(self, request: mull.HttpRequest) -> AsyncGenerator[mull.HttpResponse, None]:
        async with self._client.send(request) as response:
            assert_type(response.status, int)
            yield mull.HttpResponse(response.status, response.headers, response.chunks)


def connections() -> None:
    transport: mull.Transport = Logged()
    mull.Conversation("a/b", http_client=transport, verify=False, cert=("me.pem", "me.key"))
    mull.Engine(http_client=mull.HttpClient(), proxy=False)
    mull.ask("x", "a/b", http_client="corp", proxy=True)  # wrong: arg-type
    mull.Engine(verfy=False)  # wrong: call-arg
    mull.Engine(http_client=object())  # wrong: arg-type
