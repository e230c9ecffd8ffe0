"""The examination in words that nobody trained on: that it is one, and what the card says of it."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from training import examine
from training.examine import Question, is_right, questions, read_marks, table
from training.families import ERRANDS, PROBLEMS, conversations

CARD = Path(__file__).parents[2] / "docs" / "embedded-model.md"


def test_it_asks_enough_of_every_family_and_nothing_twice():
    asked = [question.ask for question in questions()]
    assert len(asked) >= 200
    assert len({*asked}) == len(asked)
    families = [question.family["name"] for question in questions()]
    assert len({*families}) == len(PROBLEMS) + len(ERRANDS)
    assert min(map(families.count, families)) >= 10


def test_nobody_practised_its_words():
    """`python -m training.overlap` compares it with the whole training set."""
    asked = {question.ask.casefold() for question in questions()}
    practised = {
        message["content"].casefold()
        for one in islice(conversations("practice 0"), 20_000)
        for message in one.messages
        if message["role"] == "user"
    }
    assert not asked & practised


@pytest.mark.parametrize(
    ("grade", "right", "wrong", "answer", "held"),
    [
        ("number", 42, None, "17 + 25 = 42.", True),
        ("number", 4200, None, "It is 4,200 euros.", True),
        ("number", 42, None, "It is 42, not 41.", False),
        ("number", 300, None, "3 metres = 300asgow", False),
        ("number", 42, None, "I don't know.", False),
        ("numbers", [2, 5, 9], None, "2, 5, 9", True),
        ("numbers", [2, 5, 9], None, "9, 5, 2", False),
        ("numbers", [2, 5, 9], None, "2, 5, 9, 11", False),
        ("form", "CAT", None, ' "CAT." ', True),
        ("form", "CAT", None, "cat", False),
        ("form", "CAT", None, "It is CAT", False),
        ("words", r"\byes\b", r"\bno\b", "Yes, it is.", True),
        ("words", r"\byes\b", r"\bno\b", "Yes and no.", False),
        ("words", r"\byes\b", None, "I don't know.", False),
    ],
)
def test_how_answers_are_graded(grade, right, wrong, answer, held):
    assert is_right(Question({"grade": grade}, "?", right, wrong), answer, called=False) is held


def test_a_question_about_files_is_right_only_with_a_call():
    question = Question({"grade": "words", "files": {}}, "?", "tulip", None)
    assert is_right(question, "It is tulip.", called=True)
    assert not is_right(question, "It is tulip.", called=False)


def test_the_kept_answers_are_those_of_the_questions_and_graded_so():
    marks = read_marks()
    assert [mark.question for mark in marks] == [question.ask for question in questions()]
    for question, mark in zip(questions(), marks, strict=True):
        assert mark.right is is_right(question, mark.answer, called=mark.called), mark


def test_the_card_begins_with_its_result():
    card = CARD.read_text()
    result = table(read_marks())
    assert result in card
    others = [at for at in range(len(card)) if card.startswith("100 %", at)]
    assert card.index(result) < min(others)
    assert "python -m training.examine" in card[: card.index(result) + len(result) + 2000]
    right = sum(mark.right for mark in read_marks())
    assert f"**{right} of {len(read_marks())}**" in card[:1500]
    assert examine.LEVEL in card[:3000]
