"""Conversations drawn at random through the library, on servers that enforce the providers' rules.

Answers break off anywhere, models change in the middle of a tool chain and back, the oldest turns
are dropped and histories are stored and loaded between any two turns. No server may refuse
anything, not even once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from effort import tried
from mull import Conversation, message_from_json, message_to_json
from mull.neutral.errors import RemoteError
from mull.testing import Call, Say, StrictServer, Think
from mull.testing.script import Act
from mull.testing.server import CUT, Reply
from mull.testing.verdict import Verdict

MODELS = {
    "anthropic": "anthropic/claude-sonnet-4-5",
    "anthropic-bound": "anthropic/claude-opus-5-5",
    "deepseek": "deepseek/deepseek-v4-pro",
    "gemini": "google/gemini-3-pro-preview",
    "kimi": "moonshotai/kimi-k2.5",
    "openai": "openai/gpt-5",
    "openrouter": "openrouter/anthropic/claude-sonnet-4.5",
}


BOUND = "bound to a different conversation"
"""What a history of plain messages may cost once: it does not say what thinking is bound to. (A
session stores that too.) mull repairs the request, and then it knows."""


class Endpoint(StrictServer):
    """A strict server that plays what it is handed; with `cut` the stream ends at that part.

    If `is_rebuilt`, the conversation has been made anew of plain messages since the last request.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, self)
        self.acts: Sequence[Act] = ()
        self.cut: float | None = None
        self.is_rebuilt = False

    def __iter__(self) -> Iterator[Sequence[Act]]:
        return self

    def __next__(self) -> Sequence[Act]:
        return self.acts

    def _refuse(self, recorded: Any, verdict: Verdict) -> Reply:
        reply = super()._refuse(recorded, verdict)
        if self.is_rebuilt and BOUND in verdict.reason:
            self.refusals.pop()
        self.is_rebuilt = False
        return reply

    def _answer(self, *asked: Any) -> Reply:
        self.is_rebuilt = False
        reply = super()._answer(*asked)
        if self.cut is None:
            return reply
        steps = [step for step in reply.steps if isinstance(step, bytes)]
        first, rest = steps[0], b"".join(steps[1:])
        at, self.cut = int(self.cut * len(rest)), None
        self._unsay(first + rest[:at])
        return Reply(reply.status, reply.headers, (first, rest[:at], CUT))

    def _unsay(self, sent: bytes) -> None:
        """Forget what was still to come when an answer broke off: the provider keeps no answers,
        and knows thinking by its signature or data alone, once these were sent.
        """
        if not self.name.startswith("anthropic"):
            return
        issued = self._ledger.answers.pop()
        events = sent[: sent.rfind(b"\n\n")]
        whole = events.count(b"event: content_block_stop")
        known = [at for mark, at in issued.marks.items() if mark.encode() in events]
        whole = max([whole, *(at + 1 for at in known if is_thought(issued.pieces[at]))])
        marks = {mark: at for mark, at in issued.marks.items() if at < whole}
        carriers = [mark for mark in issued.carriers if mark in marks]
        pieces = issued.pieces[:whole]
        self._ledger.record(replace(issued, pieces=pieces, marks=marks, carriers=carriers))


def is_thought(block: Mapping[str, Any]) -> bool:
    return block["type"] in ("thinking", "redacted_thinking")


@contextmanager
def endpoints() -> Iterator[dict[str, Endpoint]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(Endpoint(name)) for name in MODELS}


@pytest.fixture(scope="module")
def everyone():
    with endpoints() as made:
        yield made


@dataclass(frozen=True)
class Step:
    """An answer, who gives it, and where it breaks off."""

    model: str
    acts: Sequence[Act]
    cut: float | None = None


@dataclass(frozen=True)
class Scene:
    """Turns of answers; before each turn, what becomes of the history."""

    turns: Sequence[Sequence[Step]]
    between: Sequence[str]
    settings: dict[str, Any] = field(default_factory=dict)


class Play:
    def __init__(self, everyone: dict[str, Endpoint], settings: dict[str, Any]) -> None:
        self.everyone = everyone
        self.settings = settings
        self.steps: list[Step] = []
        self.talk: Conversation | None = None

    def look(self, at: str = "") -> str:
        """Look at something."""
        self.prepare()
        return at

    def prepare(self) -> None:
        """Let the next answer be the next step's. Parallel calls all come here."""
        if self.called:
            self.called -= 1
        if self.called or not self.steps:
            return
        step = self.steps.pop(0)
        server = self.everyone[step.model]
        server.acts, server.cut = step.acts, step.cut
        self.called = sum(isinstance(act, Call) for act in step.acts)
        self.reach(step.model)

    def reach(self, model: str) -> None:
        where = {"base_url": self.everyone[model].url, "key": "x"}
        if self.talk is None:
            self.start(model)
        else:
            self.talk.switch(MODELS[model], **where)
        self.at = model

    def start(self, model: str, messages: Sequence[Any] = ()) -> None:
        where = {"base_url": self.everyone[model].url, "key": "x"}
        options = {"settings": self.settings, "messages": messages, "tools": [self.look]}
        self.talk = Conversation(MODELS[model], **where, **options)

    def turn(self, number: int, steps: Sequence[Step]) -> None:
        self.steps, self.called = list(steps), 0
        self.prepare()
        with suppress(RemoteError):
            for _ in self.talk.stream(f"question {number}"):
                pass

    def between(self, how: str) -> None:
        if self.talk is None or how == "nothing":
            return
        messages = self.talk.messages
        if how == "drop":
            asked = [at for at, one in enumerate(messages) if one.role == "user"]
            messages = messages[asked[len(asked) // 2] :]
        self.start(self.at, [message_from_json(message_to_json(one)) for one in messages])
        for server in self.everyone.values():
            server.is_rebuilt = True


words = st.sampled_from(["", "a", " two\n", "ünï 𝄞", "x" * 40])
inputs = st.sampled_from([{}, {"at": ""}, {"at": "door"}, {"at": 'say "no"\\\n'}])
thoughts = st.builds(Think, words.filter(bool), st.sampled_from([False, False, True]))
says = st.builds(Say, words.filter(bool))
calls = st.builds(Call, st.just("look"), inputs)
cuts = st.none() | st.none() | st.floats(0, 1, exclude_max=True)


@st.composite
def steps(draw: Any, models: Any, *, last: bool) -> Step:
    acts: list[Act] = [draw(thoughts), *draw(st.lists(thoughts | says, max_size=2))]
    if last:
        acts.append(draw(says))
    else:
        acts.append(draw(calls))
        for gap in draw(st.lists(st.lists(thoughts, max_size=1), max_size=2)):
            acts += [*gap, draw(calls)]
    return Step(draw(models), acts, draw(cuts))


@st.composite
def scenes(draw: Any) -> Scene:
    some = draw(st.lists(st.sampled_from(tuple(MODELS)), min_size=1, max_size=2, unique=True))
    models = st.sampled_from(some)
    turns = []
    for _ in range(draw(st.integers(1, 4))):
        middle = [draw(steps(models, last=False)) for _ in range(draw(st.integers(0, 3)))]
        turns.append([*middle, draw(steps(models, last=True))])
    hows = st.sampled_from(["nothing", "nothing", "resume", "drop"])
    settings = {"reasoning.includeInContext": True} if draw(st.booleans()) else {}
    return Scene(turns, [draw(hows) for _ in turns], settings)


def refusals_of(scene: Scene, everyone: dict[str, Endpoint]) -> set[tuple[str, str]]:
    """Play a scene; returns what the servers refused."""
    play = Play(everyone, scene.settings)
    for server in everyone.values():
        server.refusals.clear()
        server.is_rebuilt = False
    for number, (how, turn) in enumerate(zip(scene.between, scene.turns, strict=True)):
        play.between(how)
        play.turn(number, turn)
    return {
        (name, refused.reason) for name, server in everyone.items() for refused in server.refusals
    }


@tried(0.2)
@given(scenes())
def test_no_scene_is_refused(everyone, scene):
    assert not refusals_of(scene, everyone)


def interleaved(model: str) -> Scene:
    """Every kind of thought between texts and calls, a switch and back, and a stored history."""
    other = "kimi" if model != "kimi" else "gemini"
    thought = [Think(" one\n"), Say("a"), Think("two", hidden=True), Call("look", {"at": "door"})]
    between = [Think("three\n"), Call("look", {}), Call("look", {"at": ""})]
    last = [Think("four", hidden=True), Say("b")]
    turn = [Step(model, [*thought, *between]), Step(model, thought), Step(model, last)]
    switched = [Step(model, thought), Step(other, thought), Step(model, last)]
    settings = {"reasoning.includeInContext": True}
    return Scene([turn, switched, turn], ["nothing", "nothing", "resume"], settings)


@pytest.mark.parametrize("model", MODELS)
def test_thoughts_between_texts_and_calls_come_back(everyone, model):
    server = everyone[model]
    first = server.answered
    assert not refusals_of(interleaved(model), everyone)
    issued = [mark for one in server._ledger.answers[first : first + 2] for mark in one.carriers]
    assert len(issued) >= 2
    assert [mark for mark in server.returned[first + 2] if mark in issued] == issued


def test_thoughts_whose_context_is_sent_otherwise_now_stay_out(everyone):
    """A newer Claude rejects thinking after a conversation in which anything else has changed."""
    server = everyone["anthropic-bound"]
    server.refusals.clear()
    play = Play(everyone, {})
    thought = [Think("one"), Call("look", {})]
    for number, whole in enumerate((True, False, True, True)):
        play.reach("anthropic-bound")
        play.talk.set("reasoning.includeInContext", whole)
        play.turn(number, [Step(play.at, thought), Step(play.at, [Think("two"), Say("a")])])
    assert not server.refusals
