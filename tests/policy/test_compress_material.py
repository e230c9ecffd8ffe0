"""What a summariser reads: everything that was said and thought, shortened until it fits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compressing import TARGETS, flat, turn
from mull.history.log import Condensed, Log, Summary
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.messages import Message, assistant, user
from mull.policy.compress.material import (
    MOST_PARTS,
    condense_request,
    material,
    shorten,
    summary_request,
)
from mull.policy.tokens import CHARACTERS


@given(st.text(max_size=400), st.integers(1, 200))
def test_a_shortened_text_keeps_both_ends_and_says_how_much_is_missing(text, limit):
    short = shorten(text, limit, CHARACTERS)
    if CHARACTERS.count(text) <= limit:
        assert short == text
        return
    head, note, tail = short.partition("\n[… ")[0], "characters left out …]\n", short[-1]
    assert text.startswith(head)
    assert note in short
    assert text.endswith(tail)
    kept = short.replace(short[len(head) : short.index(note) + len(note)], "", 1)
    assert CHARACTERS.count(kept) <= limit or len(kept) == 2


def test_every_kind_of_block_has_its_heading():
    calls = (ToolCallBlock("c1", "look", {"at": 1}), ToolCallBlock("c2", "find", arguments="{bad"))
    results = (ToolResultBlock("c2", "gone", is_error=True), ToolResultBlock("c1", ""))
    signed = ThinkingBlock("let me see", "thinking", signature="SIG")
    hidden = ThinkingBlock("", "thinking", redacted="DATA")
    log = Log(
        [
            Message(role="system", blocks=(TextBlock("be kind"),)),
            Message(
                role="user", blocks=(TextBlock("this?"), MediaBlock("image/png", name="a.png"))
            ),
            assistant(signed, hidden, OpaqueBlock({"x": 1}), *calls),
            Message(role="tool", blocks=results),
            Message(role="tool", blocks=(ToolResultBlock("c9", "stray"),)),
            assistant(TextBlock("it is"), status="interrupted"),
        ]
    )
    (part,) = material(log, 0, 6, CHARACTERS, 100_000)
    assert part == "\n\n".join(
        [
            "## System\nbe kind",
            "## User\nthis?",
            "## User\n(a.png, not shown)",
            "## Assistant, thinking\nlet me see",
            '## Assistant calls look\n{"at":1}',
            "## Assistant calls find\n{bad",
            "## Result of find, an error\ngone",
            "## Result of look\n(nothing)",
            "## Result of a tool\nstray",
            "## Assistant, broken off\nit is",
        ]
    )


def test_a_thought_that_has_a_short_form_goes_in_it():
    log = Log([user("q"), assistant(ThinkingBlock("long " * 99), TextBlock("a"))])
    log.add(Condensed(1, 0, "in short"))
    (part,) = material(log, 1, 2, CHARACTERS, 1000)
    assert part == "## Assistant, thinking\nin short\n\n## Assistant\na"


def test_an_earlier_summary_stands_for_what_it_covers():
    log = Log(flat(turn(TARGETS["anthropic"], n) for n in "0123"))
    log.add(Summary(1, 4, "the gist"))
    (part,) = material(log, 1, 6, CHARACTERS, 100_000)
    assert part.startswith("## Summary of earlier messages\nthe gist\n\n## User\nquestion 2")
    assert "question 1" not in part


@given(st.lists(st.integers(1, 4000), min_size=1, max_size=60), st.integers(120, 3000))
def test_parts_are_few_and_fit_and_hold_the_end_of_everything(sizes, budget):
    log = Log([user("." * size + f"END{n}") for n, size in enumerate(sizes)])
    parts = material(log, 0, len(log), CHARACTERS, budget)
    note = 40
    for part in parts:
        assert CHARACTERS.count(part) <= budget + note + part.count("\n\n## ")
    tight = sum(min(size, 80) for size in sizes) > budget
    assert len(parts) <= MOST_PARTS or tight
    assert all(f"END{n}" in "\n\n".join(parts) for n in range(len(sizes)))


def test_the_request_for_a_summary_comes_last_and_names_its_length():
    first = summary_request("## User\nq", None, 500).text
    assert first.startswith("# Conversation\n\n## User\nq\n\nAbove is")
    assert first.endswith("at most about 500 words. Answer with the summary and nothing else.")
    later = summary_request("## User\nq", "so far", 1500).text
    assert later.startswith("# Summary of what came before\n\nso far\n\n# Conversation\n\n")
    assert "1,500 words" in later
    notes = condense_request("hm", 100).text
    assert notes.startswith("# Thoughts\n\nhm\n\nAbove are")
    assert notes.endswith("Answer\nwith the notes and nothing else.")
