"""The examples that the embedded model learns from: right, and the same for the same seed."""

from __future__ import annotations

import re
from itertools import islice
from random import Random

import pytest
from training.families import ERRANDS, PROBLEMS, conversations
from training.problem import is_right

FAMILIES = (*PROBLEMS, *ERRANDS)
_TERM = r"(\d+(?: [-+x] \d+)+)"
_EQUATION = re.compile(rf"{_TERM} = (\d+)(?! x)|(\d+) = {_TERM}")


def made(family, count=200):
    make = (PROBLEMS.get(family) or ERRANDS[family])[0]
    return [make(Random(f"{family} {number}")) for number in range(count)]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_answer_passes_its_own_check(family):
    for task in made(family):
        assert is_right(task.answer, task.expected, task.check), task


@pytest.mark.parametrize("family", FAMILIES)
def test_thoughts_can_be_sent_back_as_they_are(family):
    """Inside the template's tags, and as one block: nothing that would close or split them."""
    for task in made(family):
        steps = getattr(task, "steps", ())
        for thought in (task.thought, *(step.thought for step in steps)):
            assert thought == thought.strip()
            assert "<" not in thought
            assert "\n" not in thought


@pytest.mark.parametrize("family", PROBLEMS)
def test_every_equation_in_a_thought_holds(family):
    for task in made(family):
        for left, total, whole, right in _EQUATION.findall(task.thought):
            assert eval((left or right).replace("x", "*")) == int(total or whole), task


@pytest.mark.parametrize(
    ("family", "least"),
    [("addition", 190), ("subtraction", 190), ("multiplication", 190), ("primes", 150)],
)
def test_the_arithmetic_is_written_out(family, least):
    """Not every thought needs an equation, but most do."""
    assert sum(bool(_EQUATION.search(task.thought)) for task in made(family)) >= least


def test_the_same_seed_makes_the_same_conversations():
    first, again, other = (
        [one.messages for one in islice(conversations(seed), 100)] for seed in ("a", "a", "b")
    )
    assert first == again
    assert first != other


def test_all_families_are_practised():
    seen = {one.family for one in islice(conversations("all"), 1000)}
    assert seen == set(FAMILIES)


def test_a_call_is_always_followed_by_its_result():
    for one in islice(conversations("calls"), 300):
        roles = [message["role"] for message in one.messages]
        calls = [at for at, message in enumerate(one.messages) if message.get("tool_calls")]
        assert all(roles[at + 1] == "tool" for at in calls)
        offered = {tool["function"]["name"] for tool in one.tools}
        assert all(one.messages[at]["tool_calls"][0]["function"]["name"] in offered for at in calls)
        assert one.messages[-1]["learn"]


@pytest.mark.parametrize(
    ("answer", "expected", "check", "right"),
    [
        ("17 + 25 = 42", "42", "number", True),
        ("17 + 25 = 1,042", "1042", "number", True),
        ("It is 42, not 43", "42", "number", False),
        ("none", "42", "number", False),
        ("Yes, it is.", "Yes", "begins", True),
        ("Oh yes", "Yes", "begins", False),
        ("The port is 8080.", "8080", "holds", True),
        ("The port is 18080.", "8080", "holds", False),
        ("a\nb", "a b", "exact", True),
        ("a b.", "a b", "exact", False),
    ],
)
def test_marks(answer, expected, check, right):
    assert is_right(answer, expected, check) is right
