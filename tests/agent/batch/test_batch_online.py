"""`mull.batch`: results as they come, one limiter, a file that survives a crash."""

from __future__ import annotations

import asyncio
import errno
import gc
import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from dataclasses import replace as changed

import pytest

import mull
from mull.agent.batch import file as batch_file
from mull.agent.batch.file import BatchFile
from mull.agent.batch.progress import display_for
from mull.client import limiter
from mull.testing.server import CUT, Gate, Reply, ScriptedServer

MODEL, OTHER = "openai-compatible/m", "openai-compatible/n"
LIMITED = {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}


@pytest.fixture(autouse=True)
def fresh_limiters(monkeypatch):
    monkeypatch.setattr(limiter, "_limiters", type(limiter._limiters)())


def chunk(text, thought=None, finish=None):
    delta = {"content": text, **({"reasoning_content": thought} if thought else {})}
    return {"id": "c", "choices": [{"delta": delta, "finish_reason": finish}]}


def reply(text, **headers):
    usage = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}
    made = Reply.events(chunk(text, f"about {text}", "stop"), usage, "[DONE]")
    return changed(made, headers={**made.headers, **headers})


def question(request):
    content = request.json["messages"][-1]["content"]
    return content if isinstance(content, str) else content[0]["text"]


def echo(request):
    return reply(question(request).upper())


def limited(milliseconds=1):
    return Reply.json(LIMITED, 429, headers={"retry-after-ms": str(milliseconds)})


def texts(results):
    return [one.result.text if one.result else type(one.error).__name__ for one in results]


def run(server, items, **options):
    return mull.batch(items, MODEL, base_url=server.url, progress=False, **options)


def test_results_come_as_they_are_there_and_in_order():
    slow = Gate()

    def script(request):
        made = echo(request)
        return changed(made, steps=(slow, *made.steps)) if question(request) == "a" else made

    with ScriptedServer(script) as server:
        batch = run(server, ["a", "b", "c"], concurrency=3)
        first = [next(batch), next(batch)]
        assert sorted(texts(first)) == ["B", "C"]
        slow.open()
        assert texts(batch.results()) == ["A", "B", "C"]
        assert [one.result.thinking for one in run(server, ["x", "y"]).results()] == [
            "about X",
            "about Y",
        ]
        progress = batch.progress
        assert (progress.total, progress.done, progress.failed) == (3, 3, 0)
        assert (progress.usage.input, progress.usage.output) == (30, 15)


def test_items_of_every_kind():
    picture = mull.Message(role="user", blocks=(mull.TextBlock("message"),))
    history = [mull.user("one"), mull.assistant(mull.TextBlock("two")), mull.user("three")]
    items = [
        "text",
        picture,
        history,
        [{"role": "system", "content": "be brief"}, {"role": "user", "content": "foreign"}],
        {
            "prompt": "with options",
            "id": "mine",
            "temperature": 0.5,
            "model": OTHER,
        },
        {"messages": history, "id": 7},
        5,
        {"prompt": "x", "messages": []},
        {"prompt": "x", "nonsense": 1},
        {"prompt": "x", "max_tokens": -1},
        "",
    ]
    with ScriptedServer(echo) as server:
        results = run(server, items, system="hello", concurrency=1).results()
    ok = ["TEXT", "MESSAGE", "THREE", "FOREIGN", "WITH OPTIONS", "THREE"]
    assert texts(results) == [*ok, *["LocalError"] * 5]
    assert [one.id for one in results[4:6]] == ["mine", "7"]
    assert [one.item for one in results] == items
    bodies = [request.json for request in server.requests]
    assert bodies[3]["messages"][0] == {"role": "system", "content": "hello\n\nbe brief"}
    assert (bodies[4]["model"], bodies[4]["temperature"]) == ("n", 0.5)
    assert [one["content"] for one in bodies[2]["messages"][1:]] == ["one", "two", "three"]
    assert "'nonsense'" in str(results[8].error)
    with pytest.raises(mull.LocalError, match="either a prompt or messages"):
        results[7].unwrap()


def test_the_same_question_twice_is_asked_twice_and_two_equal_ids_are_an_error():
    with ScriptedServer(echo) as server:
        results = run(server, ["a", "a"]).results()
        assert results[0].id != results[1].id
        assert len(server.requests) == 2
        items = [{"prompt": "a", "id": "x"}, {"prompt": "b", "id": "x"}, {"prompt": "c"}]
        first, second, third = run(server, items).results()
    assert (first.error, third.error) == (None, None)
    with pytest.raises(mull.LocalError, match="two items have the id 'x'"):
        second.unwrap()


@dataclass
class City:
    name: str


def test_schemas_and_tools_pass_through(tmp_path):
    def script(request):
        if any(message["role"] == "tool" for message in request.json["messages"]):
            return reply("done")
        if "tools" in request.json:
            call = {"index": 0, "id": "1", "function": {"name": "add", "arguments": '{"a": 1}'}}
            delta = {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
            return Reply.events(delta, "[DONE]")
        return reply('{"name": "Paris"}')

    called = []

    def add(a: int) -> str:
        """Add."""
        called.append(a)
        return "2"

    schema = {"name": "add", "parameters": {"type": "object"}}
    with ScriptedServer(script) as server:
        file = tmp_path / "values.jsonl"
        (one,) = run(server, ["where?"], schema=City, file=file).results()
        assert one.result.value == City("Paris")
        (again,) = run(server, ["where?"], schema=City, file=file).results()
        assert (again.result.value, again.stored) == (City("Paris"), True)
        assert texts(run(server, ["go"], tools=[add])) == ["done"]
        assert called == [1]
        (offered,) = run(server, ["go"], tools=[schema]).results()
        assert [call.name for call in offered.result.tool_calls] == ["add"]
        assert called == [1]


def test_all_pause_together_when_one_is_told_to():
    told = []

    def script(request):
        told.append(question(request))
        return limited(400) if len(told) == 1 else echo(request)

    with ScriptedServer(script) as server:
        items = [f"q{at}" for at in range(12)]
        assert texts(run(server, items, concurrency=1).results()) == [one.upper() for one in items]
    assert told == ["q0", *items]


def test_a_crowd_of_refusals_is_no_failure():
    count = 0

    def script(request):
        nonlocal count
        count += 1
        return limited() if count % 3 else echo(request)

    with ScriptedServer(script) as server:
        items = [f"q{at}" for at in range(15)]
        assert texts(run(server, items, concurrency=5).results()) == [one.upper() for one in items]


def test_a_rejected_key_ends_the_batch_and_loses_nothing(tmp_path):
    file = tmp_path / "out.jsonl"
    refusal = Reply.json({"error": {"message": "bad key"}}, 401)
    script = [reply("A"), refusal]
    with ScriptedServer(script) as server:
        results = run(server, ["a", "b", "c", "d"], concurrency=1, file=file).results()
        assert texts(results) == ["A", *["AuthenticationError"] * 3]
        assert len(server.requests) == 2
    with ScriptedServer(echo) as server:
        again = run(server, ["a", "b", "c", "d"], file=file)
        assert texts(again.results()) == ["A", "B", "C", "D"]
        assert len(server.requests) == 3


def test_one_refusal_is_the_error_of_its_item():
    bad = Reply.json({"error": {"message": "flagged", "code": "content_filter"}}, 400)
    with ScriptedServer([bad, reply("B")]) as server:
        results = run(server, ["a", "b"], concurrency=1).results()
    assert texts(results) == ["ContentFilterError", "B"]
    assert results[0].error.status == 400


def test_an_answer_that_breaks_off_is_asked_again_and_then_kept_with_its_error():
    cut = Reply.events(chunk("half"), CUT)
    with ScriptedServer([cut, reply("whole"), cut, cut, cut]) as server:
        good, bad = run(server, ["a", "b"], concurrency=1).results()
    assert (good.result.text, good.error) == ("whole", None)
    assert (bad.result.text, type(bad.error)) == ("half", mull.NetworkError)


def test_functions_are_not_run_again_for_an_answer_that_breaks_off():
    called = []

    def look() -> str:
        """Look."""
        called.append(1)
        return "seen"

    call = {"index": 0, "id": "1", "function": {"name": "look", "arguments": "{}"}}
    delta = {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    script = [Reply.events(delta, "[DONE]"), Reply.events(chunk("half"), CUT)]
    with ScriptedServer(script) as server:
        (one,) = run(server, ["a"], tools=[look]).results()
    assert (one.result.text, type(one.error), called) == ("half", mull.NetworkError, [1])


def test_without_retries_one_refusal_is_final():
    once = mull.ExchangeOptions(retry=mull.RetryRules(attempts=1))
    with ScriptedServer([limited(), reply("B")]) as server:
        results = run(server, ["a", "b"], concurrency=1, limits=once).results()
    assert texts(results) == ["RateLimitError", "B"]


def test_a_wait_of_hours_is_not_waited_for():
    late = Reply.json(LIMITED, 429, headers={"retry-after": "86400"})
    with ScriptedServer([late]) as server:
        results = run(server, ["a", "b"], concurrency=1).results()
        assert texts(results) == ["RateLimitError"] * 2
        assert len(server.requests) == 1


def test_a_prompt_that_is_no_unicode_is_asked_as_anywhere_else():
    with ScriptedServer(echo) as server:
        (one,) = run(server, ["a\udcff"]).results()
    assert one.result.text == "A\ufffd"


def test_what_has_an_answer_is_not_asked_again(tmp_path):
    file = tmp_path / "out.jsonl"
    with ScriptedServer(echo) as server:
        first = run(server, ["a", {"prompt": "b", "id": "b"}], file=file)
        before = first.results()
        again = run(server, [{"prompt": "b", "id": "b"}, "new", "a"], file=file)
        after = again.results()
        assert texts(after) == ["B", "NEW", "A"]
        assert [one.stored for one in after] == [True, False, True]
        assert after[0].result == changed_(before[1].result)
        assert after[2].result.message == before[0].result.message
        assert len(server.requests) == 3
        assert again.progress.stored == 2


def changed_(result):
    """A stored result does not keep the limits of its time."""
    from msgspec.structs import replace

    return replace(result, rate_limit=None)


def test_a_changed_item_is_noticed_and_asked_again(tmp_path):
    file = tmp_path / "out.jsonl"
    with ScriptedServer(echo) as server:
        run(server, [{"prompt": "a", "id": "1"}], file=file).results()
        again = run(server, [{"prompt": "b", "id": "1"}], file=file)
        assert texts(again.results()) == ["B"]
        assert again.notes == (f"item '1' has changed since {file}: it is asked again",)
        third = run(server, [{"prompt": "b", "id": "1"}], file=file)
        assert [one.stored for one in third.results()] == [True]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_tokens": 5}, "another max_tokens (None, now 5)"),
        ({"system": "x"}, "another system"),
        ({"schema": City}, "another schema"),
        ({"settings": {"reasoning.effort": "high"}}, "another reasoning.effort (None, now 'high')"),
    ],
)
def test_changed_options_are_noticed(tmp_path, options, words):
    file = tmp_path / "out.jsonl"
    with ScriptedServer(echo) as server:
        run(server, ["a"], file=file).results()
        kept = file.read_bytes()
        with pytest.raises(mull.LocalError) as raised:
            run(server, ["a"], file=file, **options).results()
        assert words in str(raised.value)
        with pytest.raises(mull.LocalError, match="another model"):
            mull.batch(["a"], "openai-compatible/n", base_url=server.url, file=file).results()
    assert file.read_bytes() == kept


def test_a_file_from_before_settings_were_recorded_still_opens(tmp_path):
    file = tmp_path / "out.jsonl"
    settings = {"reasoning.effort": "high"}
    with ScriptedServer(echo) as server:
        run(server, ["a"], file=file, settings=settings).results()
        head, *rest = file.read_text().splitlines()
        old = json.loads(head) | {"version": 1}
        del old["options"]["reasoning.effort"]
        file.write_text("\n".join([json.dumps(old), *rest, ""]))
        again = run(server, ["a"], file=file, settings=settings)
        assert [one.stored for one in again.results()] == [True]
        with pytest.raises(mull.LocalError, match="another max_tokens"):
            run(server, ["a"], file=file, max_tokens=5).results()


def test_a_torn_line_is_removed_and_its_item_asked_again(tmp_path):
    file = tmp_path / "out.jsonl"
    items = ["a", "b", "c"]
    with ScriptedServer(echo) as server:
        run(server, items, file=file, concurrency=1).results()
        whole = file.read_bytes()
        for cut in range(len(whole) - 2, len(whole) - 40, -7):
            file.write_bytes(whole[:cut])
            asked = len(server.requests)
            again = run(server, items, file=file)
            assert texts(again.results()) == ["A", "B", "C"]
            assert len(server.requests) == asked + 1
            (note,) = again.notes
            assert "was incomplete and is removed" in note
            lines = file.read_bytes().split(b"\n")
            assert [json.loads(line)["type"] for line in lines[:-1]] == ["batch", *["result"] * 3]
            assert not lines[-1]
        file.write_bytes(whole[:-1])  # only the end of the line is missing
        assert all(one.stored for one in run(server, ["a", "b"], file=file))
        assert file.read_bytes() == whole
        assert all(one.stored for one in run(server, items, file=file))


@pytest.mark.parametrize("misfits", [True, False])
@pytest.mark.parametrize("error", ["5", "[1]", '"odd"', '{"type":7}', '{"type":"OtherError"}'])
def test_an_error_of_any_shape_is_no_answer(tmp_path, error, misfits):
    file = tmp_path / "out.jsonl"
    head = {"type": "batch", "version": 2, "model": MODEL, "options": {}}
    odd = f'{{"type":"result","id":"1","hash":"h","result":{{}},"error":{error}}}'
    file.write_text(f"{json.dumps(head)}\n{odd}\n")
    opened = BatchFile(file, MODEL, {}, misfits=misfits)
    assert not opened.has("1", "h")
    opened.close()


def test_a_file_of_something_else_is_left_alone(tmp_path):
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"prompt": "a"}\n')
    with ScriptedServer(echo) as server, pytest.raises(mull.LocalError, match="not the file of a"):
        run(server, ["a"], file=file).results()
    assert file.read_text() == '{"prompt": "a"}\n'


def test_two_processes_do_not_write_one_file(tmp_path):
    file = tmp_path / "out.jsonl"
    gate = Gate()

    def script(request):
        made = echo(request)
        return changed(made, steps=(gate, *made.steps)) if question(request) == "b" else made

    with ScriptedServer(script) as server:
        batch = run(server, ["a", "b"], file=file)
        next(batch)
        with pytest.raises(mull.LocalError, match="another process runs this batch"):
            run(server, ["a"], file=file).results()
        batch.close()
        gate.open()
        assert [one.stored for one in run(server, ["a"], file=file)] == [True]


KILLED = """
import sys, mull
batch = mull.batch(["a", "b", "c"], "openai-compatible/m", base_url=sys.argv[1], file=sys.argv[2],
                   concurrency=1, progress=False)
for one in batch:
    print(one.result.text, flush=True)
"""


def test_a_killed_process_loses_only_what_was_under_way(tmp_path):
    file = tmp_path / "out.jsonl"
    gate = Gate()

    def script(request):
        made = echo(request)
        return changed(made, steps=(gate, *made.steps)) if question(request) == "c" else made

    with ScriptedServer(script) as server:
        command = [sys.executable, "-c", KILLED, server.url, str(file)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert [process.stdout.readline() for _ in "ab"] == ["A\n", "B\n"]
            assert gate.wait_reached()
            process.kill()
            assert process.wait() == -signal.SIGKILL
        gate.open()
        results = run(server, ["a", "b", "c"], file=file).results()
    assert texts(results) == ["A", "B", "C"]
    assert [one.stored for one in results] == [True, True, False]


def test_a_full_disk_stops_the_batch(tmp_path, monkeypatch):
    class Full(io.FileIO):
        def write(self, data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def opened(path, _):
        return io.BufferedRandom(Full(path, "r+"))  # which tries once more when it is closed

    with ScriptedServer(echo) as server:
        with monkeypatch.context() as patched:
            patched.setattr(batch_file, "open", opened, raising=False)
            with pytest.raises(mull.UnwritableError, match="No space left"):
                run(server, ["a"], file=tmp_path / "full").results()
        assert texts(run(server, ["a"], file=tmp_path / "full").results()) == ["A"]
        with pytest.raises(mull.LocalError, match="not a regular file"):
            run(server, ["a"], file=tmp_path).results()
        with pytest.raises(mull.UnwritableError, match="cannot open"):
            run(server, ["a"], file=tmp_path / "missing" / "out").results()


def test_on_an_event_loop():
    async def both(server):
        options = {"base_url": server.url, "progress": False}
        results = await mull.batch_async(["a", "b"], MODEL, **options)
        come = [one async for one in mull.batch_async(["c", "d"], MODEL, **options)]
        async with mull.batch_async(["e", "f"], MODEL, concurrency=1, **options) as batch:
            async for _ in batch:
                break
        return texts(results), sorted(texts(come))

    with ScriptedServer(echo) as server:
        assert asyncio.run(both(server)) == (["A", "B"], ["C", "D"])


def test_leaving_stops_what_is_under_way():
    gate = Gate()

    def script(request):
        made = echo(request)
        return made if question(request) == "a" else changed(made, steps=(gate, *made.steps))

    with ScriptedServer(script) as server:
        with run(server, ["a", "b", "c"], concurrency=2) as batch:
            next(batch)
            assert gate.wait_reached()
        held = [request for request in server.requests if question(request) != "a"]
        assert held[0].wait_left()
        with pytest.raises(StopIteration):
            next(batch)


def test_dropping_an_async_batch_stops_what_is_under_way():
    gate = Gate()

    def script(request):
        made = echo(request)
        return made if question(request) == "a" else changed(made, steps=(gate, *made.steps))

    async def go(server):
        batch = mull.batch_async(["a", "b"], MODEL, base_url=server.url, progress=False)
        async for _ in batch:
            break
        await asyncio.to_thread(gate.wait_reached)
        del batch
        gc.collect()
        (held,) = (request for request in server.requests if question(request) == "b")
        return await asyncio.to_thread(held.wait_left)

    with ScriptedServer(script) as server:
        assert asyncio.run(go(server))


@pytest.mark.parametrize(
    ("items", "options", "words"),
    [
        ("text", {}, "needs a list of items"),
        ({"prompt": "x"}, {}, "needs a list of items"),
        ([], {"concurrency": 0}, "concurrency must be"),
        ([], {"messages": []}, "belong to its items"),
        ([], {"wait": False}, "needs provider_batch=True"),
        ([], {"provider_batch": True}, "no batch API"),
        ([], {"max_tokens": "x"}, "max_tokens must be"),
    ],
)
def test_what_cannot_be_is_told_at_once(items, options, words):
    with pytest.raises(mull.LocalError, match=words):
        mull.batch(items, MODEL, base_url="http://127.0.0.1:9", **options)


def test_an_empty_batch_is_over():
    with ScriptedServer(()) as server:
        assert run(server, []).results() == []
        assert run(server, iter(())).results() == []


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_one_line_on_a_terminal_and_nothing_in_a_pipe(monkeypatch):
    screen, pipe = Screen(), io.StringIO()
    with ScriptedServer(echo) as server:
        monkeypatch.setattr(sys, "stderr", screen)
        mull.batch(["a", "b"], MODEL, base_url=server.url).results()
        monkeypatch.setattr(sys, "stderr", pipe)
        mull.batch(["a", "b"], MODEL, base_url=server.url).results()
    last = screen.getvalue().rpartition("\r")[2]
    assert last.startswith("[####################] 2/2")
    assert screen.getvalue().count("\n") == 1
    assert pipe.getvalue() == ""


def test_progress_is_a_bar_in_a_notebook(monkeypatch):
    drawn = []

    class Handle:
        def update(self, data, raw):
            drawn.append(data)

    class IPython:
        class display:
            @staticmethod
            def display(data, raw, display_id):
                drawn.append(data)
                return Handle()

        @staticmethod
        def get_ipython():
            return type("Shell", (), {"kernel": object()})()

    monkeypatch.setitem(sys.modules, "IPython", IPython)
    with ScriptedServer(echo) as server:
        batch = mull.batch(["a", "b"], MODEL, base_url=server.url)
        batch.results()
    assert '<progress value="2" max="2">' in drawn[-1]["text/html"]
    assert batch._repr_html_().startswith("<div><progress")
    assert display_for(False) is None


def test_the_file_is_for_other_programs_too(tmp_path):
    file = tmp_path / "out.jsonl"
    bad = Reply.json({"error": {"message": "flagged", "code": "content_filter"}}, 400)
    with ScriptedServer([reply("A"), bad]) as server:
        run(server, [{"prompt": "a", "id": "1"}, {"prompt": "b", "id": "2"}], file=file,
            concurrency=1).results()  # fmt: skip
    head, first, second = map(json.loads, file.read_text().splitlines())
    assert head == {"type": "batch", "version": 2, "model": MODEL, "options": {}}
    assert (first["id"], first["index"]) == ("1", 0)
    assert (first["result"]["text"], first["result"]["thinking"]) == ("A", "about A")
    assert first["result"]["usage"]["output"] == 5
    assert second["error"]["type"] == "ContentFilterError"
    assert second["error"]["status"] == 400


def test_tools_that_are_only_described_are_offered_in_every_form():
    """The same forms as for `complete`, and what the provider runs."""
    schema = {"type": "object", "properties": {}}
    search = mull.HostedTool("openai-chat", {"type": "web_search"})
    with ScriptedServer(echo) as server:
        declared = {"functionDeclarations": [{"name": "f", "parameters": schema}]}
        (result,) = run(server, ["a"], tools=[declared, search]).results()
    assert result.error is None
    assert server.requests[-1].json["tools"][0]["function"]["name"] == "f"


def test_results_are_all_results_also_after_some_were_iterated_over():
    with ScriptedServer(echo) as server:
        batch = run(server, ["a", "b", "c"])
        next(batch)
        assert texts(batch.results()) == ["A", "B", "C"] == texts(batch.results())

        async def rest():
            asked = mull.batch_async(["a", "b"], MODEL, base_url=server.url, progress=False)
            await anext(asked)
            return await asked

        assert texts(asyncio.run(rest())) == ["A", "B"]


def broken_items():
    yield "a"
    yield "b"
    raise KeyError("title")


def test_items_that_cannot_be_read_end_the_batch_after_those_before_them(tmp_path):
    file = tmp_path / "answers.jsonl"
    slow = Gate()

    def script(request):
        made = echo(request)
        return changed(made, steps=(slow, *made.steps)) if question(request) == "a" else made

    with ScriptedServer(script) as server:
        batch = run(server, broken_items(), file=file)
        assert next(batch).result.text == "B"
        slow.open()
        with pytest.raises(mull.LocalError, match=r"item 2 .*KeyError: 'title'.*the same file"):
            batch.results()
        assert texts(batch.results()) == ["A", "B"]
        again = run(server, ["a", "b", "c"], file=file).results()
    assert [one.stored for one in again] == [True, True, False]
    with ScriptedServer(echo) as server:
        batch = mull.batch_async(broken_items(), MODEL, base_url=server.url, progress=False)
        with pytest.raises(mull.LocalError, match="item 2"):
            asyncio.run(batch.results())


@pytest.mark.parametrize(("columns", "has_bar"), [(30, False), (100, True)])
def test_progress_fits_on_one_line_of_a_narrow_terminal(monkeypatch, columns, has_bar):
    monkeypatch.setattr("mull.agent.batch.progress._columns", lambda _: columns)
    out = io.StringIO()
    with ScriptedServer(echo) as server:
        mull.batch(list("abc"), MODEL, base_url=server.url, progress=out).results()
    lines = [line.removesuffix("\x1b[K") for line in out.getvalue().strip().split("\r")]
    assert max(map(len, lines)) < columns
    assert any("3/3" in line for line in lines)
    assert any("[#" in line for line in lines) == has_bar


def test_an_answer_that_misses_its_schema_is_there_with_its_usage(tmp_path):
    file = tmp_path / "out.jsonl"
    with ScriptedServer(echo) as server:
        items = [{"prompt": "a", "id": "1", "schema": {"type": "object"}}]
        (one,) = run(server, items, file=file).results()
        asked = len(server.requests)
        run(server, items, file=file).results()
    assert isinstance(one.error, mull.MisfitError)
    assert one.result.usage.output > 0
    assert len(server.requests) == 2 * asked  # a batch asks again: the next answer may match
