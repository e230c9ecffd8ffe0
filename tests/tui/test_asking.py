"""A question as a list with a cursor: what moves it, what answers it, and what fits."""

from __future__ import annotations

import asyncio
import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loops import run_moved
from mull.agent.tools.approve import ApprovalAnswer, ApprovalRequest
from mull.agent.tools.tool import Preview
from mull.tui.conversation.approving import FrontApprover
from mull.tui.screen import asking as module
from mull.tui.screen.asking import Asking
from mull.tui.screen.front import LOOK, Choice, Question
from mull.tui.text.lines import line_width, plain_text
from tui.fronts import FakeFront
from tui.screens import BARE

ROWS = (
    Choice("yes", "Yes"),
    Choice("always", "Yes, and do not ask again in this folder for: pytest *"),
    Choice("session", "Yes, for this session: pytest *"),
    Choice("no", "No", takes_text=True, refuses=True),
    Choice(LOOK, "Look at the whole"),
)
RUN = Question("Run this command?", ROWS, follows=True)


def text_of(drawing):
    prompt = [drawing.prompt] if drawing.prompt else []
    return plain_text([*drawing.above, *prompt, *drawing.below])


def asked(question, *steps, quiet=0.0):
    """What is answered if these are done one after the other; None if nothing is."""

    async def ask():
        asking = Asking(lambda: None)
        task = asyncio.create_task(asking.choose(question))
        await asyncio.sleep(quiet)
        for step in steps:
            step(asking)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait({task})
        return None

    return asyncio.run(ask())


def press(asking, key, held=""):
    """What a key does; returns what is typed by then."""
    if key in ("up", "down"):
        asking.move(-1 if key == "up" else 1)
    elif key.isdecimal() and key.isascii() and asking.takes_digits and asking.digit(key):
        pass
    else:
        held += key
        held = asking.typed(held) + held
    return held


def drawn(question, *, at=0, width=60, room=20, typed=1, text=""):
    async def draw():
        asking = Asking(lambda: None)
        task = asyncio.create_task(asking.choose(question))
        await asyncio.sleep(0)
        asking.typed(text)
        asking.at = at
        drawing = asking.drawing(BARE, width, room, typed)
        task.cancel()
        await asyncio.wait({task})
        return drawing

    return asyncio.run(draw())


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        ([], ("yes", "")),
        (["3"], ("session", "")),
        (["2", "1"], ("yes", "")),
        (["down", "down"], ("session", "")),
        (["down"] * 9 + ["up"], ("no", "")),
        (["up"] * 3, ("yes", "")),
        (["4"], ("no", "")),
        (["4", "1"], ("yes", "")),
        ([*"actually no"], ("no", "actually no")),
        ([*"always"], ("no", "always")),
        ([*"y"], ("no", "y")),
        ([*"2 is enough"], ("no", "2 is enough")),
        ([*"use port 8080"], ("no", "use port 8080")),
        ([*"12 or 3?"], ("no", "12 or 3?")),
        ([*"1no wait"], ("no", "no wait")),
        ([*"4too long"], ("no", "too long")),
        ([*"124 too long"], ("no", " too long")),
        ([*"9"], ("no", "9")),
        ([*"日本語"], ("no", "日本語")),
        ([*"wait", "up"], ("session", "")),
        ([*"wait", "1", "up", "1"], ("yes", "")),
    ],
)
def test_enter_answers_with_the_row_of_the_cursor_and_what_is_typed_is_a_reason(keys, answer):
    def work(asking):
        held = ""
        for key in keys:
            held = press(asking, key, held)
        asking.confirm(held)

    assert asked(RUN, work) == answer


@given(st.lists(st.sampled_from([*"abcyns 0123456789é日", "up", "down"]), max_size=40))
def test_no_keys_but_enter_and_esc_answer(keys):
    def work(asking):
        held = ""
        for key in keys:
            held = press(asking, key, held)

    assert asked(RUN, work) is None


@given(st.text(string.ascii_letters + string.digits + " ,.'", min_size=1, max_size=40))
def test_no_sentence_approves(text):
    """A number is no sentence: a letter is in it, wherever."""

    def work(asking):
        held = ""
        for key in f"{text}x" if text.isdecimal() else text:
            held = press(asking, key, held)
        asking.confirm(held)

    answer = asked(RUN, work)
    assert answer is not None
    assert answer[0] == "no"


def test_esc_refuses():
    assert asked(RUN, lambda asking: asking.refuse()) == ("no", "")


def test_where_no_row_takes_text_letters_select_the_refusal():
    question = Question("Trust it?", (Choice("y", "Yes"), Choice("n", "No", refuses=True)),
                        follows=True)  # fmt: skip

    def work(asking):
        press(asking, "o")
        asking.confirm("ok")

    assert asked(question, work) == ("n", "")


def test_an_answer_in_own_words_needs_words():
    rows = (Choice("own", "", takes_text=True), Choice("none", "No answer", refuses=True))
    question = Question("Answer?", rows, numbered=False, follows=True)
    assert asked(question, lambda asking: asking.confirm("  ")) is None
    assert asked(question, lambda asking: asking.confirm("2")) == ("own", "2")


def test_a_question_listens_when_nobody_has_typed_for_a_while():
    question = Question("Run it?", ROWS)
    seen = []

    async def ask(loop):
        lent = []
        asking = Asking(lambda: None, lent.append)
        task = asyncio.create_task(asking.choose(question))
        for _ in range(4):
            await loop.advance(0.9 * module.QUIET)
            asking.pressed()
            seen.append((asking.is_open, text_of(asking.drawing(BARE, 50, 20)), [*lent]))
        await loop.advance(1.1 * module.QUIET)
        asking.pressed()
        seen.append((asking.is_open, [*lent]))
        asking.confirm("")
        answer = await task
        return answer, lent

    answer, lent = run_moved(ask)
    assert seen[:4] == [(False, "Run it? …", [])] * 4
    assert seen[4] == (True, [""])
    assert answer == ("yes", "")
    assert lent == ["", None]


def test_a_question_that_is_not_on_the_screen_yet_does_not_listen(monkeypatch):
    monkeypatch.setattr(module, "QUIET", 0.02)

    async def ask():
        away, opened = [True], asyncio.Event()
        asking = Asking(lambda: asking.is_open and opened.set(), is_away=lambda: away[0])
        task = asyncio.create_task(asking.choose(Question("Run it?", ROWS)))
        await asyncio.sleep(0.1)
        before = asking.is_open
        away[0] = False
        await opened.wait()
        task.cancel()
        await asyncio.wait({task})
        return before

    assert asyncio.run(ask()) is False


def test_two_questions_are_asked_one_after_the_other():
    async def both():
        asking = Asking(lambda: None)
        first = asyncio.create_task(asking.choose(RUN))
        second = asyncio.create_task(asking.secret("Key?"))
        await asyncio.sleep(0)
        assert asking.question is RUN
        assert not asking.wants_secret
        asking.confirm("")
        assert await first == ("yes", "")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert asking.wants_secret
        assert asking.question is None
        asking.give("because")
        return await second

    assert asyncio.run(both()) == "because"


@pytest.mark.parametrize("is_looking", [False, True])
def test_a_question_that_nobody_waits_for_is_gone(is_looking):
    async def look():
        await asyncio.sleep(60)

    async def stopped():
        asking = Asking(lambda: None)
        question = Question("Run it?", ROWS, follows=True, look=look)
        task = asyncio.create_task(asking.choose(question))
        await asyncio.sleep(0)
        if is_looking:
            asking.digit("5")
            asking.confirm("")
        task.cancel()
        await asyncio.wait({task})
        asking.confirm("")
        return asking.question, asking.is_looking, text_of(asking.drawing(BARE, 40, 10))

    assert asyncio.run(stopped()) == (None, False, "")


def test_a_look_keeps_the_question_and_what_was_typed():
    async def ask():
        looked, resumed = [], asyncio.Event()

        async def look():
            looked.append((asking.is_looking, asking.at))

        asking = Asking(lambda: None, resume=resumed.set)
        question = Question("Run it?", ROWS, follows=True, look=look)
        task = asyncio.create_task(asking.choose(question))
        await asyncio.sleep(0)
        asking.typed("why")
        asking.move(1)
        asking.confirm("why")
        await resumed.wait()
        assert asking.is_open
        asking.move(-1)
        asking.confirm("why")
        return await task, looked

    assert asyncio.run(ask()) == (("no", "why"), [(True, 4)])


def test_a_list_has_a_cursor_numbers_and_the_keys():
    assert text_of(drawn(RUN, at=1)).split("\n") == [
        "Run this command?",
        "  1. Yes",
        "❯ 2. Yes, and do not ask again in this folder for: pytest *",
        "  3. Yes, for this session: pytest *",
        "  4. No (type the reason)",
        "  5. Look at the whole",
        "  ↑↓ or a number chooses · Enter confirms · Esc refuses",
    ]


def test_what_is_typed_is_in_its_row():
    drawing = drawn(RUN, at=3, text="why")
    assert plain_text(drawing.above).split("\n")[-1].startswith("  3. ")
    assert plain_text([drawing.prompt]) == "❯ 4. No: "
    assert plain_text(drawing.below).split("\n") == [
        "  5. Look at the whole",
        "  ↑↓ chooses · Enter sends it · Esc refuses",
    ]
    assert plain_text([drawn(RUN, at=0, text="why").prompt]) == "  4. No: "


def test_what_it_wants_and_what_will_be_written_stand_below_the_title():
    wants, written = ("wants the network: example.org",), 'allow = [\n  "x",\n]'
    question = Question("Run it?", ROWS, wants, written, follows=True)
    assert text_of(drawn(question)).split("\n")[:5] == [
        "Run it?",
        "  wants the network: example.org",
        "    allow = [",
        '      "x",',
        "    ]",
    ]


@given(
    st.integers(12, 120),
    st.integers(2, 24),
    st.integers(0, 4),
    st.integers(1, 6),
    st.sampled_from(["", "why"]),
    st.booleans(),
)
def test_every_window_shows_the_row_of_the_cursor_and_nothing_is_too_wide(
    width, room, at, typed, text, long
):
    wide = Choice("wide", "one 日本語 two three four five six " * (4 if long else 1))
    quoted = "x" * 150 if long else ""
    question = Question("Run this command?", (*ROWS[:2], wide, *ROWS[3:]), ("wants more",), quoted,
                        follows=True)  # fmt: skip
    typed = min(typed, max(room // 2 - 1, 1))
    drawing = drawn(question, at=at, width=width, room=room, typed=typed, text=text)
    lines = [*drawing.above, *([drawing.prompt] if drawing.prompt else []), *drawing.below]
    assert all(line_width(line) <= width for line in lines)
    taken = len(drawing.above) + len(drawing.below) + (typed if drawing.prompt else 0)
    assert taken <= max(room, 2)
    assert sum(plain_text([line]).startswith(f"❯ {at + 1}. ") for line in lines) == 1


def test_the_cursor_is_where_it_was_put_after_any_keys():
    """The list never loses its cursor."""
    keys = random.Random(7)

    def work(asking):
        held = ""
        for _ in range(2000):
            held = press(asking, keys.choice([*"ab12345 ", "up", "down"]), held)[-20:]
            assert 0 <= asking.at < len(ROWS)

    assert asked(RUN, work) is None


class Painter:
    """Shows nothing; other calls may be open."""

    asks = False

    def __init__(self, *, only=True):
        self.only = only

    def is_only(self, call_id):
        return self.only

    def tells_all(self, call_id, text):
        return True


def approver_asks(request, *answers, only=True):
    """The questions that are asked about a call, and what is made of the answers."""
    given, questions = list(answers), []

    class Answering(FakeFront):
        async def ask(self, question):
            questions.append(question)
            return given.pop(0)

    approver = FrontApprover(Answering(), Painter(only=only))
    return asyncio.run(approver.ask(request)), questions


REQUEST = ApprovalRequest(
    "c1",
    "run",
    "built in",
    Preview("run: make a", "make a", "command"),
    ("run(make a *)",),
    wants="wants to write \x1b[2JAGENTS.md",
    altered="the tool has changed",
    kept='~/tools.toml, line 4:\n  "run(make a *)",',
)


def test_what_a_call_wants_has_a_line_of_its_own():
    answer, (question,) = approver_asks(REQUEST, ("no", "not now"))
    assert answer == ApprovalAnswer("no", "not now")
    assert question.about == ("wants to write ␛[2JAGENTS.md", "the tool has changed")
    assert [choice.key for choice in question.choices] == ["yes", "always", "session", "no", LOOK]
    assert (question.text_row, question.refusal) == (3, 3)


def test_a_call_beside_others_is_named_in_its_question():
    _, (question,) = approver_asks(REQUEST, ("yes", ""), only=False)
    assert question.about[0] == "run: make a"


def test_what_is_kept_is_asked_about_once_more():
    back, keep = [("always", ""), ("back", "")], [("always", ""), ("always", "")]
    answer, questions = approver_asks(REQUEST, *back, *keep)
    assert answer == ApprovalAnswer("always")
    first, kept, again, _ = questions
    assert kept.about == ("It will be written to ~/tools.toml, line 4:",)
    assert kept.quoted == '  "run(make a *)",'
    assert kept.choices[kept.start].key == "yes"
    assert (first.start, first.follows) == (0, False)
    assert (again.start, again.follows) == (1, True)
    assert approver_asks(REQUEST, ("always", ""), ("yes", ""))[0] == ApprovalAnswer("yes")
