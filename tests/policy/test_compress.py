"""When to compress, what is summarised and what is kept, and which summaries are accepted."""

from __future__ import annotations

import pytest

from compressing import (
    TARGETS,
    answer,
    body_of,
    filler,
    flat,
    prepared_for,
    round_of,
    snapshot_for,
    turn,
)
from conversations import target as made_up
from mull.history.log import Condensed, Entry, Log, Undone
from mull.neutral.blocks import MediaBlock, OpaqueBlock, TextBlock, ThinkingBlock, ToolCallBlock
from mull.neutral.messages import Message, assistant, user
from mull.policy.compress.decide import (
    Rejected,
    accept,
    decide,
    left_out_text,
    summary_limit,
    summary_record,
    summary_text,
)
from mull.policy.compress.plan import CompressionPlan, NotCompressed, plan
from mull.policy.tokens import CHARACTERS
from mull.testing.rules import refusal

CLAUDE = TARGETS["anthropic"]


def planned(log, strategy="middle-out", target=CLAUDE, **values):
    found = plan(log, prepared_for(log, target, **values), CHARACTERS, strategy)
    assert isinstance(found, CompressionPlan), found
    return found


def compressed(log, strategy="middle-out", body="SHORT", target=CLAUDE, **values):
    found = planned(log, strategy, target, **values)
    text = left_out_text(found) if strategy == "truncate" else summary_text(found, body)
    log.add(summary_record(found, text))
    return found


def outline(log):
    """Who says what first, of all that requests are made from."""
    return [f"{m.role[0]}:{' '.join(m.text.split()[:2])}" for m in log.active]


def talk(turns, **more):
    return Log(flat(turn(CLAUDE, str(n), **more) for n in range(turns)))


class TestDeciding:
    def test_the_threshold_is_a_share_of_the_usable_window(self):
        log = Log([user("a" * 2000)])
        where = made_up(context=2000, output=500)
        prepared = prepared_for(log, where)
        assert prepared.usable == 1500
        over, share = prepared.tokens, prepared.tokens / 1500
        assert decide(prepared, snapshot_for(where, compression__threshold=share)) is None
        assert decide(prepared, snapshot_for(where, compression__threshold=share - 0.001)) == (
            f"the request holds {over:,} of 1,500 usable tokens, over {share - 0.001:.0%}"
        )

    def test_f03_thoughts_that_are_not_sent_do_not_trigger(self):
        said = [user("q"), assistant(ThinkingBlock("deep " * 9000), TextBlock("a")), user("r")]
        prepared = prepared_for(Log(said), made_up(context=10_000))
        assert prepared.raw_tokens > 20_000
        assert decide(prepared, snapshot_for(prepared.target)) is None

    def test_an_unknown_window_never_triggers(self):
        prepared = prepared_for(Log([user("a" * 100_000)]), made_up(context=None))
        assert decide(prepared, snapshot_for(prepared.target)) is None


class TestMiddleOut:
    def test_g01_the_task_and_the_newest_turns_stay_and_the_cut_is_between_turns(self):
        log = talk(11, rounds=1, size=4000)
        found = compressed(log)
        assert (found.start, found.role) == (1, "assistant")
        kept = outline(log)
        assert kept[:3] == ["u:question 0", "a:[31 earlier", "u:question 8"]
        assert len(log.active) == 2 + 3 * 4
        assert found.messages == 31

    def test_at_least_the_last_whole_turn_is_kept_beside_an_open_one(self):
        log = Log([*flat(turn(CLAUDE, str(n), size=900) for n in range(3)), user("and now?")])
        compressed(log)
        assert outline(log) == [
            "u:question 0",
            "a:[3 earlier",
            "u:question 2",
            "a:answer 2",
            "u:and now?",
        ]

    def test_a_long_chain_is_cut_between_its_rounds_and_its_question_stays(self):
        log = Log(turn(CLAUDE, "task", rounds=12, size=4000, closed=False))
        found = compressed(log)
        assert found.role == "user"
        first, *rest = log.active
        assert first.text.startswith("question task")
        assert "messages are summarised here.]\n\nSHORT" in first.text
        assert rest[0].tool_calls
        assert len(rest) == 2 * 3
        assert not found.quotes

    def test_the_question_of_a_later_chain_that_is_cut_is_quoted_word_for_word(self):
        question = "Rename  α to β,\nplease: 100 % of them."
        chain = turn(CLAUDE, "x", rounds=12, closed=False)[1:]
        log = Log([*turn(CLAUDE, "0"), *turn(CLAUDE, "1"), user(question), *chain])
        found = compressed(log)
        assert found.quotes == (f"[The user's latest message]\n{question}",)
        assert log.active[0].text.endswith(f"SHORT\n\n{found.quotes[0]}")
        assert log.active[1].tool_calls

    def test_words_that_mull_wrote_are_neither_quoted_nor_a_place_to_cut(self):
        chain = turn(CLAUDE, "x", rounds=12, closed=False)
        log = Log([*turn(CLAUDE, "0"), *turn(CLAUDE, "1"), *chain[:-6]])
        log.add(Entry(user("go on, please"), own=True))
        for message in chain[-6:]:
            log.append(message)
        found = compressed(log)
        assert found.quotes == (f"[The user's latest message]\n{chain[0].text}",)
        assert "go on" not in log.active[0].text
        assert log.active[1].tool_calls

    def test_a_question_with_a_picture_is_not_covered(self):
        picture = Message(role="user", blocks=(TextBlock("this?"), MediaBlock("image/png", "aGk=")))
        chain = turn(CLAUDE, "x", rounds=12, closed=False)[1:]
        log = Log([*turn(CLAUDE, "0"), picture, *chain])
        found = compressed(log)
        assert found.start == 3
        assert log.active[2].blocks[:2] == picture.blocks
        assert log.active[2].text.startswith("this?\n\n[")

    def test_a_task_longer_than_a_fifth_of_the_window_is_quoted_shortened(self):
        task = "BEGIN " + "middle " * 2000 + "END"
        log = Log([user(task), answer(CLAUDE, "0"), *flat(turn(CLAUDE, n) for n in "1234")])
        found = compressed(log, context__limit=20_000)
        assert (found.start, found.role) == (0, "user")
        (quote,) = found.quotes
        assert quote.startswith("[The task, in the user's words]\nBEGIN middle")
        assert quote.endswith("END")
        assert "characters left out" in quote
        assert CHARACTERS.count(quote) < 1200
        assert log.active[0].role == "user"

    @pytest.mark.parametrize("words", [0, 1, 3])
    @pytest.mark.parametrize("strategy", ["middle-out", "truncate", "one-shot"])
    @pytest.mark.parametrize("dialect", ["openai-responses", "anthropic"])
    def test_an_item_in_place_of_a_conversation_that_was_given_up_stays(
        self, dialect, strategy, words
    ):
        """The item of OpenAI's compact endpoint comes after the user's messages."""
        target, item = TARGETS[dialect], {"type": "compaction", "encrypted_content": "gAAA"}
        kept = [user(f"word {number} " + "and " * 500) for number in range(words)]
        log = Log([*kept, assistant(OpaqueBlock(item))])
        for number in range(8):
            for message in turn(target, str(number), size=4000):
                log.append(message)
        compressed(log, strategy, target=target)
        assert "gAAA" in str(body_of(prepared_for(log, target)))
        assert len(log.active) < len(log.messages)

    def test_nothing_to_gain_is_said_and_not_done(self):
        for said, reason in (
            ([], "nothing to compress"),
            ([user("q")], "before the last turn"),
            (turn(CLAUDE, "0", size=2000), "before the last turn"),
            (flat(turn(CLAUDE, str(n), size=40) for n in range(2)), "too little"),
        ):
            log = Log(said)
            found = plan(log, prepared_for(log, CLAUDE), CHARACTERS, "middle-out")
            assert isinstance(found, NotCompressed)
            assert reason in found.reason

    @pytest.mark.parametrize("dialect", TARGETS)
    def test_signed_messages_are_kept_whole_or_not_at_all(self, dialect):
        target = TARGETS[dialect]
        log = Log(turn(target, "t", rounds=12, closed=False))
        before = {id(message) for message in log.active}
        compressed(log, target=target)
        assert all(id(message) in before for message in log.active[1:])
        assert refusal(dialect, body_of(prepared_for(log, target))) is None


class TestAgain:
    def test_a_second_compression_covers_the_first_and_counts_the_originals(self):
        log = talk(8)
        compressed(log, body="FIRST")
        for message in flat(turn(CLAUDE, str(n)) for n in range(8, 16)):
            log.append(message)
        found = compressed(log, body="SECOND")
        assert len(log.summaries()) == 1
        assert found.messages == log.messages.index(log.active[2]) - 1
        assert "SECOND" in log.active[1].text
        assert "FIRST" not in log.active[1].text
        assert log.active[0] is log.messages[0]

    def test_a_second_cut_in_one_chain_quotes_its_question_again(self):
        chain = turn(CLAUDE, "x", rounds=12, closed=False)
        log = Log([*turn(CLAUDE, "0"), *chain])
        first = compressed(log, body="FIRST")
        for number in range(12):
            for message in round_of(CLAUDE, f"y{number}"):
                log.append(message)
        second = compressed(log, body="SECOND")
        assert second.quotes == first.quotes
        assert log.active[0].text.count("The user's latest message") == 1
        assert "FIRST" not in log.active[0].text

    def test_a_summary_alone_is_not_summarised_again(self):
        log = talk(4)
        compressed(log, "one-shot")
        found = plan(log, prepared_for(log, CLAUDE), CHARACTERS, "one-shot")
        assert found == NotCompressed("everything that could be summarised already is")

    def test_taking_the_second_back_brings_the_first_back(self):
        log = talk(8)
        compressed(log, body="FIRST")
        between = outline(log)
        compressed(log, "one-shot", body="SECOND")
        log.add(Undone(len(log) - 1, len(log)))
        assert outline(log) == between


class TestOtherStrategies:
    def test_truncate_says_how_many_messages_were_left_out_and_keeps_more(self):
        log, other = talk(11, size=4000), talk(11, size=4000)
        compressed(log, "truncate")
        compressed(other, "middle-out")
        assert log.active[1].text == "[11 earlier messages were left out here to save space.]"
        assert len(log.active) > len(other.active)

    def test_truncate_keeps_the_text_of_a_summary_but_not_of_an_earlier_truncation(self):
        log = talk(6)
        compressed(log, body="WRITTEN BY A MODEL")
        for message in flat(turn(CLAUDE, str(n)) for n in range(6, 14)):
            log.append(message)
        compressed(log, "truncate")
        assert "WRITTEN BY A MODEL" in log.active[1].text
        only = talk(6)
        compressed(only, "truncate")
        for message in flat(turn(CLAUDE, str(n)) for n in range(6, 14)):
            only.append(message)
        compressed(only, "truncate")
        assert only.active[1].text.count("left out") == 1

    def test_one_shot_leaves_the_task_and_the_summary(self):
        log = talk(3)
        assert compressed(log, "one-shot").role == "assistant"
        assert outline(log) == ["u:question 0", "a:[5 earlier"]

    def test_one_shot_keeps_a_question_that_waits(self):
        log = talk(3)
        log.append(user("and now?"))
        compressed(log, "one-shot")
        assert outline(log) == ["u:question 0", "a:[5 earlier", "u:and now?"]

    def test_one_shot_in_an_open_chain_ends_with_the_users_words(self):
        log = Log([*turn(CLAUDE, "0"), *turn(CLAUDE, "1", rounds=2, closed=False)])
        found = compressed(log, "one-shot")
        assert found.role == "user"
        (message,) = log.active
        assert message.role == "user"
        assert message.text.startswith("question 0")
        assert "[The user's latest message]\nquestion 1" in message.text

    def test_one_shot_never_takes_a_call_from_its_coming_result(self):
        waiting = assistant(ToolCallBlock("c9", "look"), origin=CLAUDE.origin)
        log = Log([*flat(turn(CLAUDE, n) for n in "01"), user("more"), waiting])
        compressed(log, "one-shot")
        assert log.active[-1] is waiting


class TestAccepting:
    def said(self, text="", thinks=False, status="complete", *more):
        blocks = (ThinkingBlock("We need to"),) if thinks else ()
        blocks += (TextBlock(text),) if text else ()
        return assistant(*blocks, *more, status=status)

    def test_g02_visible_text_is_accepted_without_its_thoughts(self):
        assert accept(self.said(" the gist \n", thinks=True)) == "the gist"

    @pytest.mark.parametrize(
        ("answer", "reason", "again"),
        [
            (("", True, "no_answer"), "it was empty, only thoughts", True),
            (("  ", False, "no_answer"), "it was empty", True),
            (
                ("", True, "truncated_in_reasoning"),
                "it reached its length limit without any text, only thoughts",
                True,
            ),
            (("half a", False, "truncated"), "it was truncated at its length limit", True),
            (("half a", False, "interrupted"), "the answer broke off", False),
            (("half a", False, "error"), "the answer broke off", False),
            (
                ("text", False, "complete", ToolCallBlock("c", "look")),
                "it called a tool instead of answering",
                False,
            ),
        ],
    )
    def test_g02_anything_else_is_refused_with_its_reason(self, answer, reason, again):
        assert accept(self.said(*answer)) == Rejected(reason, again)


def test_the_room_for_a_summary_follows_the_window():
    assert [summary_limit(n) for n in (None, 4_000, 32_000, 200_000)] == [4096, 512, 2000, 8192]


def test_a_short_form_made_inside_a_covered_range_still_holds_for_a_thought_before_it():
    long = ThinkingBlock("long " * 50, source_field="reasoning_content")
    log = Log([user("q"), assistant(long, TextBlock("a")), user(filler("r", 900))])
    log.add(Condensed(1, 0, "short"))
    log.append(assistant(TextBlock(filler("b", 900))))
    log.append(user("s"))
    log.add(summary_record(CompressionPlan(2, 5, "assistant", "middle-out", 2, 900), "gist"))
    assert [message.text for message in log.active] == ["q", "a", "gist", "s"]
    assert log.condensed[id(long)].thought == "short"
