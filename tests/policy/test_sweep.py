"""Tasks are read whole or refused, answers graded, and cells summed up with honest intervals."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.neutral.errors import ConfigError
from mull.policy.sweep.cells import Cell, Outcome, interval, pareto, sum_up
from mull.policy.sweep.grading import grade
from mull.policy.sweep.tasks import Task, read_tasks


def test_lines_and_lists_are_the_same_tasks():
    lines = b'{"prompt": "a", "expect": 1}\n\n{"prompt": "b", "id": "two"}\n'
    listed = b'[{"prompt": "a", "expect": 1}, {"prompt": "b", "id": "two"}]'
    assert list(read_tasks(lines).values()) == list(read_tasks(listed).values())
    assert list(read_tasks(b"\n" + lines)) == ["line 2", "line 4"]
    assert list(read_tasks(b"\n" + listed)) == ["task 1", "task 2"]
    first, second = read_tasks(lines).values()
    assert (first.prompt, first.expect, second.id) == ("a", 1, "two")
    assert len(first.id) == 12


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no tasks"),
        (b"[]", "no tasks"),
        (b"[1", "not a JSON list"),
        (b'{"prompt": "a"}\n{"promt": "b"}', "line 2: not a task"),
        (b'{"prompt": " "}', "line 1: the prompt is empty"),
        (
            b'{"prompt": "a", "matches": "("}',
            "line 1: matches is not a regular expression: missing",
        ),
        (b'{"prompt": "a"}\n\n{"prompt": "a"}', "line 1 and line 3 are the same task"),
        (b'[{"prompt": "a"}, {"prompt": "b", "matches": "a{9999999999}"}]', "task 2: matches"),
        (b"\xff", "not a task"),
        (b'{"prompt": "a", "expect": ""}', "line 1: expect must be a text or a number"),
        (b'{"prompt": "a", "expect": []}', "line 1: expect must be"),
        (b'{"prompt": "a", "expect": ["b", {"c": 1}]}', "line 1: expect must be"),
    ],
)
def test_what_is_no_file_of_tasks_is_refused_with_its_place(data, said):
    with pytest.raises(ConfigError, match=said):
        read_tasks(data)


@pytest.mark.parametrize(
    ("expect", "text", "right"),
    [
        ("408", "17 * 24 is **408**.", True),
        (408, "The answer is $408$", True),
        (1024, "That is 1,024 bytes.", True),
        ("408", "4080", False),
        ("408", "1,408", False),
        ("5", "It is 5.5", False),
        ("5", "It is -5", False),
        ("5", "It is 5.", True),
        (2.5, "2.5 litres", True),
        ("Oslo", "the city is OSLO", True),
        ("New  York", "new york.", True),
        (["yes", "true"], "That is true", True),
        (["yes", "true"], "No", False),
        ("x = 1", "so `x = 1` holds", True),
        ("", "anything", False),
        ("*", "it is `*`, as in a * b", True),
        ("*", "it is +", False),
        ("Württemberg", "Baden-Württemberg", True),
        ("Paris", "It is ...Paris", True),
        ("is", "this", False),
    ],
)
def test_an_expected_text_is_found_as_a_person_would_find_it(expect, text, right):
    assert grade(Task(prompt="q", expect=expect), text) is right


def test_other_ways_to_be_right():
    assert grade(Task(prompt="q", exact="a b"), " a b\n") is True
    assert grade(Task(prompt="q", exact="a b"), "a b.") is False
    assert grade(Task(prompt="q", matches=r"\b4\d8\b"), "it is 408") is True
    assert grade(Task(prompt="q", expect="4", matches="5"), "4 and 6") is False
    assert grade(Task(prompt="q", schema={}, expect={"a": 1}), "", {"a": 1}) is True
    assert grade(Task(prompt="q", schema={}, expect={"a": 1}), "", {"a": 2}) is False
    assert grade(Task(prompt="q", schema={}), "", {"a": 2}) is True
    assert grade(Task(prompt="q"), "anything") is None


@given(st.integers(1, 500).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_the_interval_holds_the_share_and_narrows(pair):
    right, of = pair
    low, high = interval(right, of)
    assert 0 <= low <= right / of <= high <= 1
    assert low < high
    wider = interval(right * 4, of * 4)
    assert wider[1] - wider[0] < high - low


def test_the_interval_is_wilsons():
    low, high = interval(8, 10)
    assert math.isclose(low, 0.4901625, abs_tol=1e-6)
    assert math.isclose(high, 0.9433178, abs_tol=1e-6)
    assert interval(0, 0) == (None, None)


def outcome(model, right, **more):
    return Outcome(task=more.pop("task", "t"), model=model, right=right, **more)


def test_cells_sum_up_what_is_known():
    cells = sum_up(
        [
            outcome("a", True, level="low", thinking_tokens=10, cost=0.5, first=1.0, seconds=2.0),
            outcome("a", False, level="low", thinking_tokens=30, first=3.0, seconds=9.0),
            outcome("a", None, level="low", error="refused"),
            outcome("b", None, estimated=True, thinking_tokens=1),
        ]
    )
    first, second = cells
    assert (first.name, first.answers, first.errors) == ("a/low", 2, 1)
    assert (first.right, first.graded, first.accuracy) == (1, 2, 0.5)
    assert (first.thinking_tokens, first.cost, first.first, first.seconds) == (20, 0.5, 2.0, 5.5)
    assert (second.name, second.accuracy, second.low, second.estimated) == ("b", None, None, True)
    assert second.cost is None


points = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=9)


@given(points)
def test_nothing_beats_what_the_line_joins(pairs):
    cells = [named(str(at), tokens, right / 10) for at, (tokens, right) in enumerate(pairs)]
    line = pareto(cells, "tokens")
    for one in cells:
        beaten = any(
            other.tokens <= one.tokens
            and other.accuracy >= one.accuracy
            and (other.tokens, other.accuracy) != (one.tokens, one.accuracy)
            for other in cells
        )
        if one in line:
            assert not beaten
    assert max(one.accuracy for one in cells) == line[-1].accuracy
    assert [one.tokens for one in line] == sorted(one.tokens for one in line)


def named(name, tokens, accuracy):
    return Cell(
        name=name, answers=1, errors=0, graded=1, right=1, accuracy=accuracy, low=0, high=1,
        thinking_tokens=None, estimated=False, tokens=tokens, cost=None, first=None, seconds=None,
    )  # fmt: skip


def test_a_task_is_the_same_question_whatever_its_right_answer_is():
    (first,) = read_tasks(b'{"prompt": "a", "expect": "408"}').values()
    (second,) = read_tasks(b'{"prompt": "a", "expect": "409"}').values()
    assert first.id == second.id
