"""A conversation on the screen: wire order, live and after a reload, hidden and shown again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mull.agent.tools.output import Kept
from mull.neutral.assemble import assemble
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.events import (
    BlockEnded,
    Compressed,
    Failed,
    Finished,
    Healed,
    Nudged,
    OpaqueReceived,
    Reclassified,
    Retrying,
    Started,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    ToolOutput,
    ToolRan,
    ToolStarted,
    UsageReported,
    Warned,
)
from mull.neutral.messages import Message, assistant, user
from mull.neutral.usage import Usage
from mull.tui.conversation import sections
from mull.tui.conversation.thought import MODES
from mull.tui.conversation.view import ConversationView, render_message
from mull.tui.screen.theme import theme_for
from mull.tui.text.lines import line_width, plain_text
from mull.tui.text.markdown import markdown_lines
from tui.screens import DARK, cells

PLAIN = theme_for("auto", None, "none")


def view_of(mode="full", width=60, theme=PLAIN):
    return ConversationView(theme, width, mode)


def live(events, view):
    lines = []
    for event in events:
        view.event(event)
        lines += view.commit()
        view.open_lines()
    return lines


def said(lines):
    return plain_text(lines).split("\n")


def test_r01_thoughts_text_and_calls_stay_in_the_order_of_the_wire():
    events = [
        Started(),
        TextDelta("\n\n"),
        ThinkingDelta("First I look."),
        TextDelta("I look."),
        ThinkingDelta("Then I read."),
        ToolCallDelta(id="c", name="read", arguments='{"path":"a.py"}'),
        TextDelta("Done."),
        Finished("stop"),
    ]
    lines = live(events, view_of())
    assert said(lines) == [
        "│ First I look.",
        "│ Thought · ~4 tokens",
        "",
        "I look.",
        "",
        "│ Then I read.",
        "│ Thought · ~3 tokens",
        "",
        "● read  a.py",
        "",
        "Done.",
    ]
    assert lines == render_message(assemble(events), PLAIN, 60, "full")


def test_r01_the_label_ends_with_the_first_character_of_the_answer():
    view = view_of("preview")
    view.event(ThinkingDelta("Hm, well."), 0.0)
    assert said(view.open_lines(3.0)) == ["│ Thinking… 3 s · ~3 tokens", "│ Hm, well."]
    assert view.thinking(3.0) == "Thinking… 3 s · ~3 tokens"
    view.event(TextDelta("A"), 4.0)
    assert said(view.commit()) == ["│ Thought for 4 s · ~3 tokens · Hm, well."]
    assert said(view.open_lines(5.0)) == ["", "A"]
    assert view.thinking(5.0) == ""


pieces = st.text("ab *`\n", min_size=1, max_size=8)
block_events = st.one_of(
    st.lists(pieces, min_size=1, max_size=3).map(lambda p: [TextDelta(x) for x in p]),
    st.lists(pieces, min_size=1, max_size=3).map(lambda p: [ThinkingDelta(x) for x in p]),
    st.lists(pieces, min_size=1, max_size=2).map(
        lambda p: [BlockEnded(), *(ThinkingDelta(x, kind="summary") for x in p), BlockEnded()]
    ),
    st.just([ThinkingDelta(""), ThinkingCarrier(signature="s")]),
    st.just([ToolCallDelta(name="look", arguments='{"a":'), ToolCallDelta(arguments="1}")]),
    st.just([OpaqueReceived({"type": "search"})]),
)
answers = st.lists(
    block_events.flatmap(lambda e: st.sampled_from([e, [*e, BlockEnded()]])), max_size=6
).map(lambda blocks: [event for block in blocks for event in block])


@settings(deadline=None)
@given(answers, st.sampled_from(MODES))
def test_r01_what_is_committed_live_is_what_is_drawn_after_a_reload(events, mode):
    """Calls have ids and keys of their own here, as every dialect gives them."""
    events = [
        ToolCallDelta(n, f"c{n}" if e.name else None, e.name, e.arguments)
        if isinstance(e, ToolCallDelta)
        else e
        for n, e in zip(_call_numbers(events), events, strict=True)
    ]
    view = view_of(mode, theme=DARK)
    lines = live([*events, Finished("stop")], view)
    message = assemble([*events, Finished("stop")])
    stored = Message(role="assistant", blocks=message.blocks)
    assert cells(lines) == cells(render_message(stored, DARK, 60, mode))
    assert cells(lines) == cells(view.redraw(replaceable=len(lines)).lines)


def _call_numbers(events):
    number = 0
    for event in events:
        number += isinstance(event, ToolCallDelta) and event.name is not None
        yield number


def test_r02_modes_switch_both_ways_for_past_and_present_thoughts():
    view = view_of("full")
    view.message(assistant(ThinkingBlock("An old thought."), TextBlock("Old.")))
    view.event(Started())
    view.event(ThinkingDelta("A new thought that "))
    committed = view.commit()
    full = [*committed, *view.open_lines()]
    gone, hidden = view.redraw(mode="hidden", replaceable=99)
    assert gone == len(committed)
    assert said(hidden) == ["Old."]
    assert view.open_lines() == []
    gone, preview = view.redraw(mode="preview", replaceable=99)
    assert gone == 1
    assert said(preview) == ["│ Thought · ~4 tokens · An old thought.", "", "Old."]
    view.event(ThinkingDelta("goes on."))
    assert said(view.open_lines())[-1] == "│ A new thought that goes on."
    view.redraw(mode="hidden", replaceable=99)
    again = [*view.redraw(mode="full", replaceable=99).lines, *view.open_lines()]
    assert said(again)[:4] == said(full)[:4]
    assert said(again)[-2] == "│ A new thought that goes on."


def test_a_redraw_takes_another_width_and_theme_and_only_what_can_be_replaced():
    view = view_of(width=60)
    for number in range(20):
        view.message(user(f"question {number}"))
        view.message(assistant(TextBlock("some words of an answer")))
    assert said(view.commit())[-9:-4] == [
        "some words of an answer", "", "❯ question 18", "", "some words of an answer",
    ]  # fmt: skip
    gone, lines = view.redraw(width=20, theme=DARK, replaceable=7)
    assert gone == 6  # the question before them would need two lines more
    assert said(lines) == [
        "", "some words of an", "answer", "",
        "❯ question 19", "", "some words of an", "answer",
    ]  # fmt: skip
    assert max(map(line_width, lines)) <= 20
    assert view.redraw(width=30, replaceable=1) == (0, [])


def test_an_open_section_that_has_lines_out_of_reach_goes_on_at_another_width():
    view = view_of(width=60)
    view.event(TextDelta("\n\n".join(f"paragraph {n}" for n in range(9)) + "\n\nlast words come"))
    assert len(view.commit()) > 3
    assert view.redraw(width=12, replaceable=3) == (0, [])
    view.event(Finished("stop"))
    assert said(view.commit()) == ["", "last words", "come"]


turns = st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=8)
looks = st.lists(
    st.tuples(st.sampled_from(MODES), st.integers(20, 70), st.integers(0, 40)), max_size=6
)


@given(turns, looks)
def test_however_often_it_is_redrawn_everything_stands_on_the_terminal_once(said_turns, changes):
    """The terminal is a list of lines here, whose last ones can be replaced."""
    view, lines = view_of("preview", 70), []
    for number, (size, thinks) in enumerate(said_turns):
        view.message(user(f"question-{number}"))
        blocks = [ThinkingBlock(f"thought-{number}")] if thinks else []
        text = "\n\n".join(f"answer-{number}-{n}" for n in range(size))
        view.message(assistant(*blocks, TextBlock(text)))
    lines += view.commit()
    for mode, width, replaceable in changes:
        gone, new = view.redraw(mode=mode, width=width, replaceable=min(replaceable, len(lines)))
        assert gone <= replaceable
        lines[len(lines) - gone :] = new
    text = plain_text(lines).split()
    for number, (size, _) in enumerate(said_turns):
        assert text.count(f"question-{number}") == 1
        assert text.count(f"thought-{number}") <= 1
        assert [text.count(f"answer-{number}-{n}") for n in range(size)] == [1] * size


def test_a_long_log_is_opened_without_drawing_all_of_it(monkeypatch):
    drawn = []

    def draw(text, theme, width):
        drawn.append(text)
        return markdown_lines(text, theme, width)

    monkeypatch.setattr(sections, "markdown_lines", draw)
    view = view_of()
    for number in range(500):
        view.message(assistant(TextBlock(f"answer {number}")))
    assert said(view.commit_last(3)) == ["answer 498", "", "answer 499"]
    assert set(drawn) == {"answer 499", "answer 498", "answer 497"}
    assert view.commit() == []


def test_of_a_command_the_end_is_shown_also_under_a_name_that_models_know():
    view = view_of()
    for event in [
        ToolCallDelta(0, "a", "Bash", '{"command":"pytest"}'),
        Finished("tool_calls"),
        ToolRan("a", "run", "one\ntwo\n3 failed\n[exit status 1]", is_error=True),
    ]:
        view.event(event)
    assert said(view.commit())[1:] == [
        "  └ failed: exit status 1", "    one", "    two", "    3 failed"
    ]  # fmt: skip
    stored = view_of()
    stored.message(assistant(ToolCallBlock("a", "Bash", {"command": "x"})))
    stored.message(Message(role="tool", blocks=(ToolResultBlock("a", "one\nlast"),)))
    assert said(stored.commit())[1:] == ["  └ 2 lines", "    one", "    last"]
    long = view_of()
    long.message(assistant(ToolCallBlock("a", "run", {"command": "seq 9"})))
    output = "\n".join(map(str, range(1, 10)))
    long.message(Message(role="tool", blocks=(ToolResultBlock("a", output),)))
    assert said(long.commit())[1:] == [
        "  └ 6 lines above (Ctrl-O)", "    7", "    8", "    9"
    ]  # fmt: skip


def test_what_a_command_changed_is_shown_folded_live_and_from_storage():
    rows = "\n".join(f"+{number}" for number in range(20))
    diff = f"--- a/a.py\n+++ b/a.py\n@@ -1 +1,20 @@\n-x\n{rows}"
    live, stored, several = view_of(), view_of(), view_of()
    for event in [
        ToolCallDelta(0, "a", "run", '{"command":"make"}'),
        Finished("tool_calls"),
        ToolRan("a", "run", "done", diff=diff),
    ]:
        live.event(event)
    stored.message(assistant(ToolCallBlock("a", "run", {"command": "make"})))
    stored.message(Message(role="tool", blocks=(ToolResultBlock("a", "done", diff=diff),)))
    shown = said(live.commit())[1:]
    assert shown[:3] == ["  └ changed a.py +20 −1", "    done", "   1 - x"]
    assert shown[-1] == "  … 9 more lines"
    assert said(stored.commit())[1:] == shown
    more = f"{diff}\nb.bin changed: not text"
    several.message(assistant(ToolCallBlock("a", "run", {"command": "make"})))
    several.message(Message(role="tool", blocks=(ToolResultBlock("a", "done", diff=more),)))
    assert said(several.commit())[1] == "  └ changed 2 files +20 −1"


def test_lines_that_were_left_out_are_counted_too():
    kept = Kept(None, 4096)
    for number in range(100_000):
        kept.add(f"row {number}\n")
    view = view_of()
    view.message(assistant(ToolCallBlock("a", "run", {"command": "rows"})))
    view.message(Message(role="tool", blocks=(ToolResultBlock("a", kept.text()),)))
    assert said(view.commit())[1:3] == ["  └ 99,997 lines above (Ctrl-O)", "    row 99997"]


def test_calls_and_results_stand_together_and_a_result_apart_from_its_call_has_a_name():
    view = view_of()
    for event in [
        ToolCallDelta(0, "a", "read", '{"path":"x"}'),
        Finished("tool_calls"),
        ToolRan("a", "read", "one\ntwo\nthree\n"),
        Started(),
        ToolCallDelta(0, "b", "read", '{"path":"y"}'),
        ToolCallDelta(1, "c", "run", '{"command":"make","seconds":3}'),
        Finished("tool_calls"),
        ToolRan("b", "read", ""),
        ToolRan("c", "run", "no rule", is_error=True),
    ]:
        view.event(event)
    live_lines = view.commit()
    assert said(live_lines) == [
        "● read  x",
        "  └ one (+2 lines)",
        "● read  y",
        "● run  make, seconds: 3",
        "  └ read y: (nothing)",
        "  └ run make, seconds: 3: failed: no rule",
    ]
    stored = view_of()
    stored.message(assistant(ToolCallBlock("a", "read", {"path": "x"})))
    stored.message(Message(role="tool", blocks=(ToolResultBlock("a", "one\ntwo\nthree\n"),)))
    stored.message(
        assistant(
            ToolCallBlock("b", "read", {"path": "y"}),
            ToolCallBlock("c", "run", {"command": "make", "seconds": 3}),
        )
    )
    stored.message(
        Message(
            role="tool",
            blocks=(ToolResultBlock("b", ""), ToolResultBlock("c", "no rule", is_error=True)),
        )
    )
    assert stored.commit() == live_lines


def test_a_call_that_is_being_written_and_a_tool_that_runs_are_seen():
    view = view_of()
    view.event(ToolCallDelta(0, "a", "write", '{"text":"'))
    view.event(ToolCallDelta(0, arguments="x" * 400))
    assert view.commit() == []
    assert said(view.open_lines()) == ["● write  … 409 characters"]
    view.event(ToolCallDelta(0, arguments='"}'))
    view.event(Finished("tool_calls"))
    view.event(ToolStarted("a", "write", {}))
    assert said(view.open_lines()) == ["    write …"]
    view.event(ToolOutput("a", "1\n2\n3\n\x1b[2J4\n"))
    assert said(view.open_lines()) == ["    2", "    3", "    ␛[2J4"]
    view.event(ToolRan("a", "write", "ok"))
    assert view.open_lines() == []


def test_of_calls_that_run_at_once_the_one_whose_result_is_next_is_seen():
    view = view_of()
    view.event(ToolCallDelta(0, "a", "run", "{}"))
    view.event(ToolCallDelta(1, "b", "list", "{}"))
    view.event(Finished("tool_calls"))
    view.event(ToolStarted("a", "run", {}))
    view.event(ToolStarted("b", "list", {}))
    view.event(ToolOutput("b", "of b\n"))
    view.event(ToolOutput("a", "of a\n"))
    assert said(view.open_lines()) == ["    of a"]
    view.event(ToolRan("a", "run", "ok"))
    assert said(view.open_lines()) == ["    of b"]
    view.event(ToolRan("b", "list", "ok"))
    assert view.open_lines() == []


def test_a_call_is_titled_by_whoever_knows_the_tool():
    view = ConversationView(PLAIN, 40, title=lambda call: f"runs `{call.input['a']}`")
    view.message(assistant(ToolCallBlock("c", "run", {"a": "ls"})))
    assert said(view.commit()) == ["● run  runs `ls`"]


def test_control_characters_of_tools_and_users_are_made_visible():
    view = view_of(theme=DARK)
    view.message(user("a\x1b[31m"))
    view.message(assistant(ToolCallBlock("c\x07", "r\x1b[1m", {"a": "\x1b]0;t\x07"})))
    view.message(Message(role="tool", blocks=(ToolResultBlock("c\x07", "\x1b[2J"),)))
    view.say("note\x9b")
    text = plain_text(view.commit())
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert "␛[31m" in text
    assert "␛[2J" in text


def test_remarks_stand_between_sections():
    view = view_of()
    for event in [
        TextDelta("One."),
        Warned("odd", "Something odd."),
        Retrying(2, 3.2, "busy"),
        Healed("bad field", "sent without it"),
        Nudged(1, 2),
        Compressed(False, "Nothing was left out."),
        Failed("The connection broke."),
    ]:
        view.event(event)
    assert said(view.commit()) == [
        "One.",
        "",
        "Something odd.",
        "busy; retrying",
        "The endpoint rejected the request (bad field): sent without",
        "it",
        "Turn not finished: asking again (1/2)",
        "Nothing was left out.",
        "The connection broke.",
    ]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("complete", []),
        ("interrupted", ["", "Interrupted; what arrived is kept."]),
        ("truncated", ["", "The answer was cut off at its token limit."]),
    ],
)
def test_an_end_that_is_not_complete_is_said_live_and_later(status, words):
    view = view_of()
    view.event(TextDelta("Half an"))
    view.end(status)
    assert said(view.commit()) == ["Half an", *words]
    stored = assistant(TextBlock("Half an"), status=status)
    assert said(render_message(stored, PLAIN, 60)) == ["Half an", *words]


def test_the_providers_count_is_shown_once_it_is_known():
    events = [
        Started(),
        ThinkingDelta("Well."),
        TextDelta("Yes."),
        UsageReported(Usage(reasoning=1240)),
        Finished("stop"),
    ]
    view = view_of("preview")
    for event, now in zip(events, [0, 0, 12, 13, 13], strict=True):
        view.event(event, now)
    assert said(view.commit())[0] == "│ Thought for 12 s · ~2 tokens · Well."
    redrawn = view.redraw(replaceable=9).lines
    assert said(redrawn)[0] == "│ Thought for 12 s · 1,240 tokens · Well."
    assert render_message(assemble(events), PLAIN, 60, thought_seconds=12) == redrawn


def test_text_that_was_a_thought_is_one_after_a_redraw():
    view = view_of()
    view.event(TextDelta("I think.\n\nSo I am. "))
    assert said(view.commit()) == ["I think."]
    view.event(Reclassified(source_field="think_tags"))
    view.event(TextDelta("Hello."))
    view.event(Finished("stop"))
    assert said(view.commit()) == ["", "The text above was thinking.", "", "Hello."]
    gone, lines = view.redraw(mode="hidden", replaceable=9)
    assert gone == 5
    assert said(lines) == ["The text above was thinking.", "", "Hello."]


def test_a_carrier_that_comes_late_opens_no_new_thought():
    view = view_of()
    view.event(ThinkingDelta("Well.", key="rs_1"))
    view.event(TextDelta("Yes.", key="msg_1"))
    view.event(ThinkingCarrier(key="rs_1", encrypted="…"))
    view.event(TextDelta(" No.", key="msg_1"))
    view.event(Finished("stop"))
    assert said(view.commit()) == ["│ Well.", "│ Thought · ~2 tokens", "", "Yes. No."]


def test_what_a_user_sends_is_drawn_behind_the_prompt():
    message = Message(
        role="user",
        blocks=(TextBlock("Look at\nthis"), MediaBlock("image/png", data="AA", name="a.png")),
    )
    assert said(render_message(message, PLAIN, 40)) == ["❯ Look at", "  this", "  [a.png]"]


def test_unknown_blocks_are_named_and_the_prompt_of_the_system_is_not_drawn():
    block = OpaqueBlock({"type": "web_search_call"})
    assert said(render_message(assistant(block), PLAIN, 70)) == [
        "Content that mull cannot show (web_search_call); it is stored."
    ]
    assert render_message(Message(role="system", blocks=(TextBlock("x"),)), PLAIN, 60) == []
