"""Thoughts that are bound to what stands before them: which go back, which stay, what is said."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import snapshot, target
from mull.history.log import Entry, Log, Record, Summary, Undone
from mull.neutral.blocks import (
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import RequestOptions, Tool
from mull.policy.prepare import prepare
from mull.policy.view import binding
from mull.policy.view.binding import binding_warning

LOOSE = target(
    "anthropic-adaptive",
    dialect="anthropic",
    options=[{"type": "effort", "values": ("low", "high")}],
    compat={"requires_reasoning": "tool_calls"},
)
COMPAT = msgspec.structs.replace(LOOSE.compat, binds_thinking=True)
BINDS = msgspec.structs.replace(LOOSE, compat=COMPAT)
TOOL = Tool("look", "Looks.", {"type": "object"})


def test_the_hash_of_what_is_on_disk_stays_what_it_was():
    """Made when an empty thought was not written: a session from then keeps its thoughts."""
    odd = {"type": "thinking", "thought": "", "z": 1}
    messages = (
        user("q"),
        assistant(
            ThinkingBlock(redacted="abc"),
            ThinkingBlock("x", signature="s"),
            OpaqueBlock(odd),
            TextBlock('say "type":"thinking","thought":"" twice'),
        ),
    )
    bound = binding.Bound(binding.hash_opening(RequestOptions(system="Be brief.")), {})
    bound.follow(messages)
    assert bound.prefix == "053e5030ba1f8def3a84dab9cf865df2"


def signed(text):
    return ThinkingBlock(text, "thinking", signature=f"SIG {text}")


class Talk:
    """A conversation with a model that binds, and what each thought was really thought after."""

    def __init__(self, where=BINDS):
        self.log = Log()
        self.where = where
        self.options = RequestOptions(system="s")
        self.settings = {"includeInContext": True}
        self.thought_after = {}

    def prepared(self, log=None):
        return prepare(log or self.log, snapshot(**self.settings), self.where, self.options)

    def ask(self, text, *, call=False):
        """Say something, or go on after a call; the answer is a thought, and a word or a call."""
        if text is not None:
            self.log.append(user(text))
        prepared = self.prepared()
        name = f"T{len(self.log)}"
        says = ToolCallBlock(f"c{len(self.log)}", "look", {}) if call else TextBlock("so")
        answer = assistant(signed(name), says, origin=self.where.origin)
        self.thought_after[name] = self.seen(prepared, len(prepared.request.messages))
        self.log.add(Entry(answer, prefix=prepared.prefix))
        if call:
            result = ToolResultBlock(says.id, "seen")
            self.log.append(Message(role="tool", blocks=(result,)))
        return prepared

    def seen(self, prepared, at):
        """What stands before a message, as an endpoint sees it."""
        request = prepared.request
        before = [(message.role, message.blocks) for message in request.messages[:at]]
        return request.system, request.tools, before


def thoughts(prepared):
    return [block.thought for m in prepared.request.messages for block in m.thinking]


def notes(prepared):
    return [(n.text, n.warning) for n in prepared.notes if n.kind == "bound"]


def test_a_conversation_that_only_grows_keeps_all_its_thoughts():
    talk = Talk()
    for text in ("one", "two", "three"):
        talk.ask(text, call=True)
        talk.ask(None)
    talk.log.append(user("and?"))
    prepared = talk.prepared()
    assert len(thoughts(prepared)) == 6
    assert notes(prepared) == []


def test_where_nothing_is_bound_nothing_is_hashed(monkeypatch):
    monkeypatch.setattr(binding, "_hash", None)
    talk = Talk(LOOSE)
    talk.ask("one")
    talk.options = RequestOptions(system="other")
    assert thoughts(talk.ask("two")) == ["T1"]
    assert talk.prepared().prefix is None


@pytest.mark.parametrize(
    "other", [RequestOptions(system="other"), RequestOptions(system="s", tools=(TOOL,))]
)
def test_another_opening_leaves_all_thoughts_out_and_the_old_one_brings_them_back(other):
    talk = Talk()
    before = talk.options
    talk.ask("one")
    talk.options = other
    talk.log.append(user("two"))
    changed = talk.prepared()
    assert thoughts(changed) == []
    assert changed.request.messages[1].text == "so"
    said = "1 thought left out: bound to a conversation that has changed since"
    assert notes(changed) == [(said, True)]
    talk.options = before
    again = talk.prepared()
    assert thoughts(again) == ["T1"]
    assert notes(again) == []
    assert changed.parts.thinking == 0 < again.parts.thinking == again.stored.thinking


def test_what_is_left_out_is_news_until_a_thought_was_thought_without_it():
    talk = Talk()
    talk.ask("one")
    talk.options = RequestOptions(system="other")
    assert [warning for _, warning in notes(talk.ask("two"))] == [True]
    assert [warning for _, warning in notes(talk.ask("three"))] == [False]
    talk.options = RequestOptions(system="third")
    assert [warning for _, warning in notes(talk.ask("four"))] == [True]


def test_a_summary_takes_away_what_later_thoughts_are_bound_to():
    talk = Talk()
    for text in ("one", "two", "three"):
        talk.ask(text)
    talk.log.add(Summary(1, 4, "they spoke"))
    talk.log.append(user("and?"))
    assert thoughts(talk.prepared()) == []
    talk.log.add(Undone(6, 7))
    assert thoughts(talk.prepared()) == ["T1", "T3", "T5"]


def test_thoughts_of_which_nothing_is_known_are_taken_for_good():
    talk = Talk()
    talk.log.append(user("one"))
    talk.log.append(assistant(signed("A"), TextBlock("so"), origin=BINDS.origin))
    talk.options = RequestOptions(system="other")
    assert thoughts(talk.ask("two")) == ["A"]
    old = msgspec.json.encode(Entry(assistant(signed("A"), origin=BINDS.origin)))
    assert msgspec.json.decode(old, type=Record).prefix is None


def test_a_new_message_is_hashed_once(monkeypatch):
    talk = Talk()
    for number in range(20):
        talk.ask(f"{number}")
    talk.prepared()
    told, real = [], binding._hash
    monkeypatch.setattr(binding, "_hash", lambda what: told.append(what) or real(what))
    talk.log.append(user("one more"))
    prepared = talk.prepared()
    assert len(thoughts(prepared)) == 20
    (opening, new) = told
    assert opening == ["s", ()]
    assert new[1:] == ["user", (TextBlock("one more"),)]


STEPS = st.tuples(
    st.sampled_from(["ask", "chain", "undo", "summary"]),
    st.booleans(),
    st.sampled_from(["none", "none", "allButLast", "all"]),
    st.sampled_from(["s", "s", "other"]),
)


@given(st.lists(STEPS, max_size=8))
def test_a_thought_is_sent_after_exactly_what_it_was_thought_after(steps):
    talk = Talk()
    for kind, include, strip, system in steps:
        talk.settings = {"includeInContext": include, "stripFromContext": strip}
        talk.options = RequestOptions(system=system)
        if kind == "undo" and len(talk.log) > 2:
            talk.log.add(Undone(len(talk.log) - 2, len(talk.log)))
        elif kind == "summary" and len(talk.log) > 3:
            talk.log.add(Summary(1, 3, "they spoke"))
        talk.ask("q", call=kind == "chain")
        if kind == "chain":
            check(talk)
            talk.ask(None)
        check(talk)


def check(talk):
    prepared = talk.prepared()
    for at, message in enumerate(prepared.request.messages):
        for block in message.thinking:
            assert talk.thought_after[block.thought] == talk.seen(prepared, at)
    wire = b"".join(map(msgspec.json.encode, talk.log)).decode()
    stored = [msgspec.json.decode(msgspec.json.encode(one), type=Record) for one in talk.log]
    afresh = talk.prepared(Log(records=stored))
    assert afresh.request == prepared.request
    assert (afresh.tokens, afresh.prefix) == (prepared.tokens, prepared.prefix)
    assert wire.count('"prefix"') == len(talk.thought_after)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("compression", "after compression"),
        ("system", "with another system prompt"),
        ("tools", "with other tools"),
        ("strip", "under another strip policy"),
    ],
)
def test_the_user_is_warned_before_such_a_change(change, words):
    talk = Talk()
    assert binding_warning(talk.prepared(), change) is None
    talk.ask("one")
    talk.ask("two")
    assert binding_warning(talk.prepared(), change) == (
        "acme/thinker accepts thinking back only after the same messages as before:"
        f" 2 thoughts may be left out {words}"
    )
    loose = Talk(LOOSE)
    loose.ask("one")
    assert binding_warning(loose.prepared(), change) is None
