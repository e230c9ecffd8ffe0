"""A change that makes the endpoint read everything again is told before it is paid for (E14)."""

from __future__ import annotations

import pytest

from conversations import listed, snapshot, target
from mull.history.log import Entry, Log
from mull.neutral.blocks import TextBlock, ThinkingBlock
from mull.neutral.messages import assistant, user
from mull.neutral.usage import Usage
from mull.policy.prepare import prepare
from mull.tui.conversation.spend import LONG, cache_loss, change_of
from tui.fronts import answer, at_terminal, drive

PRICES = {"input": 3.0, "output": 15.0, "cache_read": 0.3}
READ = Usage(input=80_000, output=100, cache_read=79_000)
UNTOLD = Usage(input=80_000, output=100)


def request(words: int):
    return prepare(Log([user("word " * words)]), snapshot(), target())


def tokens_of(words: int) -> int:
    return request(words).tokens


def test_e14_a_long_request_is_told_with_its_price():
    asked = request(33_600)
    assert 83_500 < asked.tokens < 84_500, "the sample has the size that is spoken of"
    assert cache_loss(asked, READ, PRICES) == (
        "This invalidates the prompt cache: about 84,000 tokens are processed again: roughly $0.25."
    )


@pytest.mark.parametrize(
    ("usage", "prices", "end"),
    [
        (READ, None, "processed again, at an unknown price."),
        (READ, {"input": 0, "output": 0}, "processed again, which takes time."),
        (UNTOLD, PRICES, "roughly $0.25."),
        (UNTOLD, None, None),
        (None, PRICES, None),
    ],
)
def test_what_is_unknown_is_said_to_be(usage, prices, end):
    text = cache_loss(request(33_600), usage, prices)
    assert text is None if end is None else text.endswith(end)


def test_a_short_session_is_not_worth_a_word():
    words = 7_900
    while tokens_of(words) <= LONG:
        words += 1
    assert cache_loss(request(words), READ, PRICES) is not None
    assert cache_loss(request(words - 1), READ, PRICES) is None


def test_settings_that_change_a_request_are_known_by_their_kind():
    assert change_of("reasoning.effort") == change_of("reasoning.maxTokens") == "effort"
    assert change_of("reasoning.stripFromContext") == "strip"
    assert change_of("reasoning.includeInResponse") is None


COUNTS = {
    "prompt_tokens": 26_000,
    "completion_tokens": 30,
    "total_tokens": 26_030,
    "prompt_tokens_details": {"cached_tokens": 20_000},
}


@pytest.fixture
def long_talk(tmp_path):
    reply = answer("yes", "a thought", usage=COUNTS)
    with at_terminal(tmp_path, reply, reply) as talk:
        drive(talk, "word " * 25_000)
        yield talk


def test_e14_each_kind_of_change_is_told_once_in_a_session(long_talk):
    talk = long_talk
    drive(talk, "/thinking effort none", "/thinking effort high", "/thinking off")
    assert len(talk.warnings) == 1
    drive(talk, "/set reasoning.stripFromContext all", "/set reasoning.stripFromContext none")
    assert len(talk.warnings) == 2
    drive(talk, "/model zai/glm-4.5", "/model zai/glm-4.7")
    assert len(talk.warnings) == 3
    for text in talk.warnings:
        assert text.startswith(
            "This invalidates the prompt cache: about 25,000 tokens are processed"
        )
        assert "roughly $0.0" in text


def test_what_leaves_the_request_as_it_is_is_not_told(long_talk):
    drive(long_talk, "/set reasoning.includeInResponse false", "/set reasoning.effort unset")
    drive(long_talk, "/set reasoning.stripFromContext none", "/model zai/glm-4.7")
    assert long_talk.warnings == []


def test_a_refused_change_is_not_told(long_talk):
    from contextlib import suppress

    from mull.neutral.errors import LocalError

    for typed in ("/model no/such/model-at-all --thinking-budget=x", "/set reasoning.effort huge"):
        with suppress(LocalError):
            drive(long_talk, typed)
    assert long_talk.warnings == []


def test_thoughts_that_are_bound_to_what_was_said_are_warned_of_before_a_change(tmp_path):
    keeps = ["reasoning.includeInContext=true"]
    with at_terminal(tmp_path, compat={"bindsThinking": True}, sets=keeps) as talk:
        session = talk.session
        sealed = [{"type": "reasoning.encrypted", "data": "sig"}]
        signed = ThinkingBlock("so", "reasoning_content", wire=listed(sealed))
        session._keep(Entry(user("q")))
        session._keep(Entry(assistant(signed, TextBlock("a"), origin=session.target.origin)))
        for strip in ("all", "none", "allButLast"):
            drive(talk, f"/set reasoning.stripFromContext {strip}")
    assert talk.warnings == [
        "zai/glm-4.7 accepts thinking back only after the same messages as before:"
        " 1 thought may be left out under another strip policy"
    ]
