"""What was learnt of an endpoint is kept for it, applied before the next request, and told no one
else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import blocks, target
from mull.neutral.errors import ConfigError
from mull.policy.heal.lessons import (
    KEPT_CARRIERS,
    Lesson,
    Lessons,
    apply_lesson,
    apply_lessons,
    fingerprints,
    lessons_from_json,
    lessons_to_json,
)

HERE = target("openai-effort", options=[{"type": "effort", "values": ("low", "high")}])
THERE = target("openai-effort", model="another")
ADAPTIVE = Lesson(compat={"thinkingWriter": "anthropic-adaptive"})


def test_a_lesson_holds_for_its_own_target_alone():
    lessons = Lessons().learn(HERE, ADAPTIVE)
    assert lessons.for_target(HERE) == ADAPTIVE
    assert lessons.for_target(THERE) is None
    assert apply_lessons(HERE, lessons).compat.thinking_writer == "anthropic-adaptive"
    assert apply_lessons(THERE, lessons) is THERE
    assert apply_lessons(HERE, Lessons()) is HERE


def test_what_nothing_was_said_of_stays():
    kept = target("openai-effort", compat={"budget_field": "b", "extra_body": {"x": 1}})
    taught = apply_lesson(kept, Lesson(compat={"reasoningOut": "never"}, facts={"family": "f"}))
    assert taught.compat.budget_field == "b"
    assert taught.compat.extra_body == {"x": 1}
    assert taught.compat.reasoning_out == "never"
    assert taught.facts.family == "f"
    assert taught.facts.limit == kept.facts.limit


def test_later_lessons_overrule_earlier_ones_key_by_key():
    first = Lesson(compat={"reasoningOut": "never", "tags": []}, refused=("a", "b"))
    second = Lesson(compat={"reasoningOut": "same"}, facts={"reasoning": False}, refused=("b", "c"))
    learnt = Lessons().learn(HERE, first).learn(THERE, ADAPTIVE).learn(HERE, second)
    assert learnt.for_target(HERE) == Lesson(
        compat={"reasoningOut": "same", "tags": []},
        facts={"reasoning": False},
        refused=("a", "b", "c"),
    )
    assert learnt.for_target(THERE) == ADAPTIVE


def test_a_row_that_was_written_since_knows_better_than_a_refusal():
    deaf, field = (
        Lesson(compat={"thinkingWriter": "none"}),
        Lesson(compat={"reasoningOut": "never"}),
    )
    unknown = target("usual", compat={"tags": (("<a>", "</a>"),)})
    lessons = Lessons().learn(unknown, deaf | Lesson(compat={"tags": []})).learn(unknown, field)
    for kept in (lessons, lessons_from_json(lessons_to_json(lessons))):
        taught = apply_lessons(unknown, kept)
        assert (taught.compat.thinking_writer, taught.compat.tags) == ("none", ())
        assert apply_lessons(taught, kept) == taught
        settled = target("enable-thinking", compat={"tags": (("<b>", "</b>"),)})
        knows = apply_lessons(settled, kept).compat
        assert (knows.thinking_writer, knows.tags) == ("enable-thinking", (("<b>", "</b>"),))
        assert knows.reasoning_out == "never"


def test_a_lesson_about_a_lesson_holds_from_either():
    lessons = Lessons().learn(HERE, ADAPTIVE)
    taught = apply_lessons(HERE, lessons)
    again = lessons.learn(taught, Lesson(compat={"thinkingWriter": "none"}))
    for where in (HERE, taught):
        assert apply_lessons(where, again).compat.thinking_writer == "none"


def test_the_oldest_carriers_are_forgotten_first():
    many = tuple(map(str, range(KEPT_CARRIERS)))
    learnt = Lessons().learn(HERE, Lesson(refused=many)).learn(HERE, Lesson(refused=("new",)))
    refused = learnt.for_target(HERE).refused
    assert len(refused) == KEPT_CARRIERS
    assert refused[-1] == "new"
    assert "0" not in refused


def test_a_move_to_another_dialect_brings_the_lessons_learnt_there():
    moved = Lesson(compat={"thinkingWriter": "responses"}, dialect="openai-responses")
    responses = apply_lesson(HERE, moved)
    assert responses.dialect == "openai-responses"
    assert responses.compat.thinking_writer == "responses"
    lessons = Lessons().learn(HERE, moved).learn(responses, Lesson(facts={"reasoning": False}))
    assert apply_lessons(HERE, lessons).facts.reasoning is False
    back = lessons.learn(responses, Lesson(dialect="openai-chat"))
    assert apply_lessons(HERE, back).dialect in ("openai-chat", "openai-responses")


def test_the_json_form_brings_everything_back():
    lessons = Lessons().learn(HERE, Lesson(facts={"can_be_off": False}, refused=("x",)))
    lessons = lessons.learn(THERE, ADAPTIVE)
    assert lessons_from_json(lessons_to_json(lessons)) == lessons


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"entries":[{}]}', b'{"other":1}', b"\xff"])
def test_what_holds_no_lessons_is_a_clear_error(data):
    with pytest.raises(ConfigError, match="not lessons"):
        lessons_from_json(data)


def test_lessons_of_another_version_are_left_out():
    odd = Lessons().learn(HERE, Lesson(compat={"noSuchKey": 1})).learn(THERE, ADAPTIVE)
    odd = odd.learn(target(model="third"), Lesson(facts={"reasoning": "yes"}))
    read = lessons_from_json(lessons_to_json(odd))
    assert read.for_target(HERE) is None
    assert read.for_target(THERE) == ADAPTIVE
    assert len(read.entries) == 1


@given(st.lists(blocks, max_size=4))
def test_fingerprints_are_short_and_hold_nothing_of_the_carrier(some):
    for block in some:
        for name in fingerprints(block):
            assert len(name) == 16
            assert int(name, 16) >= 0
