"""The calls of one answer: every one gets a result that can be stored and sent."""

import asyncio
import threading

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import tried
from mull.agent.calls import STOPPED, Calls, allow_all
from mull.agent.functions import tools_from
from mull.agent.tools import builtin
from mull.agent.tools.approve import ApprovalAnswer, Gate
from mull.agent.tools.table import builtin_tools
from mull.agent.tools.tool import Outcome, PreparedCall, Preview
from mull.agent.tools.workspace import Workspace
from mull.neutral.blocks import ToolCallBlock
from mull.neutral.events import ToolOutput, ToolRan, ToolStarted
from mull.neutral.request import Tool
from mull.policy.approval import Asked, Subject
from tool_calls import fill


def number(n: int) -> str:
    """Say a number; seven cannot be said."""
    if n == 7:
        raise ValueError("seven")
    return str(n)


def run(functions, *calls):
    events = []

    async def main():
        running = Calls(calls, tools_from(functions), allow_all, events.append)
        await running.run()
        return running.results()

    return asyncio.run(main()), events


def test_of_twenty_calls_at_once_one_fails_and_all_are_answered_in_order():
    calls = [ToolCallBlock(f"c{n}", "number", {"n": n}) for n in range(20)]
    results, events = run([number], *calls)
    assert [result.call_id for result in results] == [f"c{n}" for n in range(20)]
    assert [result.output for result in results if not result.is_error] == [
        str(n) for n in range(20) if n != 7
    ]
    assert (results[7].output, results[7].is_error) == ("ValueError: seven", True)
    assert sorted(event.call_id for event in events if isinstance(event, ToolRan)) == sorted(
        f"c{n}" for n in range(20)
    )


def half() -> str:
    """Give half a character."""
    return "a\ud800é"


def fail_by_half() -> str:
    """Fail with half a character."""
    raise ValueError("\udfff")


@pytest.mark.parametrize(
    ("function", "output"), [(half, "a?é"), (fail_by_half, "ValueError: ?")], ids=["good", "bad"]
)
def test_half_a_character_of_a_tool_does_not_spoil_the_session(function, output):
    results, events = run([function], ToolCallBlock("c", function.__name__, {}))
    assert results[0].output == events[-1].output == output
    assert msgspec.json.encode(results)


def test_a_tool_that_takes_itself_back_leaves_a_result():
    async def cancels() -> str:
        raise asyncio.CancelledError

    results, _ = run(
        [cancels, number], ToolCallBlock("a", "cancels", {}), ToolCallBlock("b", "number", {"n": 1})
    )
    assert [result.output for result in results] == [STOPPED, "1"]


class Held:
    """A tool that ends when it is let go; preparing it can take its time."""

    source, changes, definition = "function", False, Tool("held")

    def __init__(self, before=None, after=None):
        self.before, self.after = before, after

    def prepare(self, call):
        if self.before is not None:
            assert self.before.wait(20)
        if self.after is not None:
            self.after.set()

        async def work(context):
            context.emit(call.id)
            await call.input["go"].wait()
            return Outcome(call.id)

        asked = Asked("held", self.changes, Subject("path", "a", call.input.get("path", "")))
        return PreparedCall(call, self.source, asked, Preview("held"), work)


@given(st.permutations(range(5)), st.sets(st.integers(0, 4)))
def test_results_are_shown_in_the_order_of_the_calls_whichever_is_done_first(order, twins):
    """Calls that a model gave one and the same id are told apart by their number alone."""

    async def main():
        gates = [asyncio.Event() for _ in order]
        made = [
            ToolCallBlock("twin" if n in twins else f"c{n}", "held", {"go": gate})
            for n, gate in enumerate(gates)
        ]
        shown, finished, waiting = [], [], list(order)

        def put(event):
            nonlocal shown
            if isinstance(event, ToolRan):
                finished.append(event.call_id)
            shown += calls.in_order(event)
            begun = sum(isinstance(event, ToolStarted) for event in shown)
            if begun == len(made) and waiting and len(finished) == len(made) - len(waiting):
                gates[waiting.pop(0)].set()

        calls = Calls(made, {"held": Held()}, allow_all, put)
        await calls.run()
        return made, shown, finished

    made, shown, finished = asyncio.run(main())
    assert finished == [made[n].id for n in order]
    told = [event.call_id for event in shown if isinstance(event, ToolRan)]
    assert told == [call.id for call in made]
    begun = [event.call_id for event in shown if isinstance(event, ToolStarted)]
    assert begun == [call.id for call in made]
    assert len([event for event in shown if isinstance(event, ToolOutput)]) == len(made)


def test_people_are_asked_in_the_order_of_the_calls_whatever_their_previews_take():
    asked, seen = [], threading.Event()
    tools = {"slow": Held(before=seen), "quick": Held(after=seen)}
    made = [ToolCallBlock("a", "slow", {}), ToolCallBlock("b", "quick", {})]

    async def refuse(prepared):
        asked.append(prepared.call.id)
        return "no"

    async def main():
        running = Calls(made, tools, refuse, lambda event: None)
        task = asyncio.ensure_future(running.run())
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.05, seen.set)
        await task

    asyncio.run(main())
    assert asked == ["a", "b"]


def test_a_tool_that_takes_itself_back_holds_no_other_result_up():
    async def cancels() -> str:
        raise asyncio.CancelledError

    _, events = run(
        [cancels, number], ToolCallBlock("a", "cancels", {}), ToolCallBlock("b", "number", {"n": 1})
    )
    assert {event.call_id: event.output for event in events if isinstance(event, ToolRan)} == {
        "a": STOPPED,
        "b": "1",
    }


class Promise:
    """A tool that does not keep what it promised."""

    source, changes, definition = "test", False, Tool("promise")

    def __init__(self, text):
        self.text = text

    def prepare(self, call):
        async def work(context):
            return Outcome(self.text)

        asked = Asked("promise", False, Subject("text", ""))
        return PreparedCall(call, self.source, asked, Preview("promise"), work)


class Word(str):
    """A text with something to it."""


def test_what_a_tool_gives_is_plain_text_or_its_own_failure():
    tools = {"word": Promise(Word("hi")), "none": Promise(None), **tools_from([number])}
    made = [ToolCallBlock("a", "word"), ToolCallBlock("b", "none")]
    made.append(ToolCallBlock("c", "number", {"n": 1}))

    async def main():
        running = Calls(made, tools, allow_all, lambda event: None)
        await running.run()
        return running.results()

    word, none, one = asyncio.run(main())
    assert (type(word.output), word.output) == (str, "hi")
    assert none.is_error
    assert none.output.startswith("AttributeError")
    assert one.output == "1"


class Person:
    """Says yes to everything, and keeps what was asked."""

    def __init__(self):
        self.asked = []

    async def ask(self, request):
        self.asked.append(request)
        return ApprovalAnswer("yes")


def use_files(folder, files, *made, approve=allow_all):
    """The results of calls on files of a folder, as one answer makes them."""
    calls = [ToolCallBlock(f"c{n}", name, given) for n, (name, given) in enumerate(made)]

    async def main():
        tools = builtin_tools(fill(folder, files))
        running = Calls(calls, tools, approve, lambda event: None)
        await running.run()
        return running.results()

    return asyncio.run(main())


def edit(old, new, path="a"):
    return "edit", {"path": path, "old": old, "new": new}


def test_edits_of_one_file_in_one_answer_all_arrive(tmp_path):
    made = [edit(f"<{n}>", f"[{n}]") for n in range(20)]
    results = use_files(tmp_path, {"a": "".join(f"<{n}>\n" for n in range(20))}, *made)
    assert [result.output for result in results if result.is_error] == []
    assert (tmp_path / "a").read_text() == "".join(f"[{n}]\n" for n in range(20))


def test_a_call_may_build_on_an_earlier_one_of_the_same_file(tmp_path):
    made = (
        ("write", {"path": "a", "content": "one\n"}),
        edit("one", "two"),
        edit("two", "three"),
        ("read", {"path": "./a"}),
    )
    person = Person()
    results = use_files(tmp_path, {}, *made, approve=Gate(approver=person).admit)
    assert [result.output for result in results] == [
        "created a: 1 line, 4 bytes",
        "edited a (+1 −1) at line 1",
        "edited a (+1 −1) at line 1",
        "     1\tthree",
    ]
    assert [request.preview.detail.split("\n")[3:] for request in person.asked] == [
        ["+one"],
        ["-one", "+two"],
        ["-two", "+three"],
    ]


LETTER = st.sampled_from("xyz")
PATH = st.sampled_from(["a", "b"])
CHANGE = st.builds(edit, LETTER, LETTER, PATH) | st.builds(
    lambda path, content: ("write", {"path": path, "content": content}),
    PATH,
    st.text("xyz", max_size=3),
)


def one_after_another(files, made):
    """What the files hold and which calls fail, if each call waits for all before it."""
    files, failed = dict(files), []
    for name, values in made:
        before = files.get(values["path"])
        if name == "write":
            files[values["path"]] = values["content"]
            failed.append(False)
            continue
        old, new = values["old"], values["new"]
        failed.append(before is None or before.count(old) != 1 or old == new)
        if not failed[-1]:
            files[values["path"]] = before.replace(old, new)
    return files, failed


@tried(0.5)
@given(st.lists(CHANGE, max_size=6))
def test_changes_of_one_answer_come_to_what_they_would_one_after_another(tmp_path_factory, made):
    folder = tmp_path_factory.mktemp("changes")
    results = use_files(folder, {"a": "xyz"}, *made)
    files, failed = one_after_another({"a": "xyz"}, made)
    assert [result.is_error for result in results] == failed
    assert {path.name: path.read_text() for path in folder.iterdir()} == files


def test_calls_that_only_look_at_one_file_run_at_once():
    """The first ends only when the second has begun."""

    async def main():
        go = asyncio.Event()
        go_on = asyncio.Event()
        go_on.set()
        calls = [
            ToolCallBlock("a", "held", {"path": "/a", "go": go}),
            ToolCallBlock("b", "held", {"path": "/a", "go": go_on}),
        ]

        def hear(event):
            if isinstance(event, ToolStarted) and event.call_id == "b":
                go.set()

        running = Calls(calls, {"held": Held()}, allow_all, hear)
        async with asyncio.timeout(20):
            await running.run()
        return running.results()

    assert [result.output for result in asyncio.run(main())] == ["a", "b"]


class Obliging:
    """Says yes, and changes something before it does."""

    def __init__(self, *meanwhile):
        self.seen = []
        self._meanwhile = list(meanwhile)

    async def __call__(self, prepared):
        self.seen.append((prepared.preview.title, prepared.preview.detail))
        if self._meanwhile:
            self._meanwhile.pop(0)()


def test_a_file_that_changes_meanwhile_is_asked_about_again(tmp_path):
    person = Obliging(lambda: (tmp_path / "a").write_text("one\nmine\n"))
    write = ("write", {"path": "a", "content": "two\n"})
    (result,) = use_files(tmp_path, {"a": "one\n"}, write, approve=person)
    first, second = person.seen
    assert first[0] == "write a (+1 −1)"
    assert second[0] == "write a (+1 −2), changed since you were asked"
    assert second[1].endswith("-one\n-mine\n+two")
    assert (tmp_path / "a").read_text() == "two\n"
    assert not result.is_error


def test_an_edit_of_a_file_that_changes_elsewhere_is_asked_about_again(tmp_path):
    far = "\n" * 20
    person = Obliging(lambda: (tmp_path / "a").write_text(f"one\n{far}mine\n"))
    (_,) = use_files(tmp_path, {"a": f"one\n{far}"}, edit("one", "two"), approve=person)
    assert len(person.seen) == 2
    assert (tmp_path / "a").read_text() == f"two\n{far}mine\n"


def test_a_link_that_is_turned_meanwhile_is_asked_about_again(tmp_path):
    (tmp_path / "hooks").mkdir()

    def turn():
        (tmp_path / "docs").rmdir()
        (tmp_path / "docs").symlink_to("hooks")

    (tmp_path / "docs").mkdir()
    person = Obliging(turn)
    write = ("write", {"path": "docs/x", "content": "two\n"})
    use_files(tmp_path, {}, write, approve=person)
    assert [title for title, _ in person.seen] == [
        "write docs/x (+1 −0), new",
        "write hooks/x (+1 −0), new, changed since you were asked",
    ]


def test_an_edit_that_does_not_fit_any_more_is_not_made(tmp_path):
    person = Obliging(lambda: (tmp_path / "a").write_text("other\n"))
    (result,) = use_files(tmp_path, {"a": "one\n"}, edit("one", "two"), approve=person)
    assert result.is_error
    assert "old is not in a" in result.output
    assert (tmp_path / "a").read_text() == "other\n"


def test_a_file_that_never_holds_still_is_given_up(tmp_path):
    numbers = iter(range(100))
    person = Obliging(*[lambda: (tmp_path / "a").write_text(f"{next(numbers)}\n")] * 50)
    write = ("write", {"path": "a", "content": "two\n"})
    (result,) = use_files(tmp_path, {"a": "one\n"}, write, approve=person)
    assert result.output == "not run: its target keeps changing"


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (ToolCallBlock("c", "edit", {"path": "../x", "old": "a", "new": "b"}), "outside"),
        (ToolCallBlock("c", "edit", {"path": "a", "old": "", "new": "b"}), "old is empty"),
        (ToolCallBlock("c", "edit", {"path": "a", "old": "b", "new": "c"}), "old is not in a"),
        (ToolCallBlock("c", "write", {"path": ".", "content": ""}), ". is a folder, not a file"),
        (ToolCallBlock("c", "write", {"path": "a", "content": "\ud800"}), "half a character"),
        (ToolCallBlock("c", "run", {}), "missing required field `command`"),
        (ToolCallBlock("c", "run", {}, arguments='{"comm'), "not a JSON object"),
        (ToolCallBlock("c", "run", {"command": "x\0"}), "zero byte"),
        (ToolCallBlock("c", "write", {"path": "a/b", "content": ""}), "a is not a folder"),
        (ToolCallBlock("c", "jobs", {"id": 7, "end": True}), "no background command 7"),
    ],
)
def test_what_cannot_be_done_is_told_without_asking_anyone(tmp_path, bad, said):
    person = Person()

    async def main():
        tools = builtin_tools(fill(tmp_path, {"a": "a\n"}))
        running = Calls([bad], tools, Gate(approver=person).admit, lambda event: None)
        await running.run()
        return running.results()

    (result,) = asyncio.run(main())
    assert result.is_error
    assert said in result.output
    assert "ToolFailure" not in result.output
    assert person.asked == []


def test_a_call_is_read_and_located_before_and_after_the_answer(tmp_path, monkeypatch):
    counted = {"read_arguments": 0, "locate": 0}

    def count(owner, name):
        original = getattr(owner, name)

        def counting(*given, **more):
            counted[name] += 1
            return original(*given, **more)

        monkeypatch.setattr(owner, name, counting)

    count(builtin, "read_arguments")
    count(Workspace, "locate")
    (result,) = use_files(
        tmp_path, {"a": "one\n"}, edit("one", "two"), approve=Gate(approver=Person()).admit
    )
    assert not result.is_error
    assert counted == {"read_arguments": 2, "locate": 2}


def many(n: int) -> str:
    return "0123456789\n" * n


def test_a_result_that_the_window_has_no_room_for_is_cut_and_told():
    async def main(tokens):
        made = [ToolCallBlock("c", "many", {"n": 10_000})]
        running = Calls(made, tools_from([many]), allow_all, lambda event: None, tokens)
        await running.run()
        return running.results()[0].output

    short = asyncio.run(main(200))
    assert len(short) < 200 * 3 + 1200
    assert " of 10,000 lines, " in short
    assert len(asyncio.run(main(None))) == 110_000


def test_a_failure_repeats_no_more_than_a_person_would_read():
    def fails() -> str:
        raise ValueError("x" * 20_000_000)

    calls = [
        ToolCallBlock("1", "y" * 20_000_000),
        ToolCallBlock("2", "fails"),
        ToolCallBlock("3", "fails", {"z" * 20_000_000: 1}),
    ]
    results, _ = run([fails], *calls)
    assert all(result.is_error and len(result.output) < 9_000 for result in results)
