"""Conversations drawn at random, held through gateways with providers that keep their rules."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from hypothesis import strategies as st

from gateway.conftest import serving
from mull.store.serve import ServedModel
from mull.testing import Call, Say, StrictServer, Think
from mull.testing.script import Act, calls_in
from talks import TALKS, Heard, Manner, Result, Talk

UPSTREAMS = {
    "kimi": "moonshotai/kimi-k2.5",
    "deepseek": "deepseek/deepseek-reasoner",
    "anthropic": "anthropic/claude-sonnet-4-5",
    "anthropic-bound": "anthropic/claude-opus-5-5",
    "gemini": "google/gemini-3-pro-preview",
    "openai": "openai/gpt-5",
    "openrouter": "openrouter/anthropic/claude-sonnet-4.5",
}
SPEAKS = {"kimi": "chat", "deepseek": "chat", "openrouter": "chat", "gemini": "contents"}
SPEAKS |= {"anthropic": "messages", "anthropic-bound": "messages", "openai": "responses"}


class Upstream:
    """A strict server that goes on for as long as it is fed, and what it said last."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.script: deque[Sequence[Act]] = deque()
        self.server = StrictServer(name, self)
        self.whole: Any = None
        write = self.server._provider.write

        def written(acts, asked, ledger):
            made = write(acts, asked, ledger)
            self.whole = made.whole
            return made

        self.server._provider.write = written  # type: ignore[method-assign]
        if name == "kimi":  # ids that repeat their tool's name and hold what clients replace
            issue = self.server._ledger.name

            def odd(prefix: str) -> str:
                return issue("functions.look:") if prefix == "call_" else issue(prefix)

            self.server._ledger.name = odd  # type: ignore[method-assign]

    def __iter__(self) -> Upstream:
        return self

    def __next__(self) -> Sequence[Act]:
        if not self.script:
            raise StopIteration
        return self.script.popleft()

    @property
    def said(self) -> Heard:
        """Its last answer, as a client of its own dialect reads it."""
        return TALKS[SPEAKS[self.name]]().read(self.whole)

    @property
    def issued(self) -> tuple[str, ...]:
        """The carriers of its last answer."""
        return tuple(self.server._ledger.answers[-1].carriers)


@dataclass
class World:
    """Gateways and what stands behind them."""

    urls: Sequence[str]
    upstreams: dict[str, Upstream]
    remembers: bool = True


@contextmanager
def world(*memories: Any, remembers: bool = True) -> Iterator[World]:
    """Every upstream behind as many gateways as there are memories."""
    with ExitStack() as stack:
        upstreams = {name: Upstream(name) for name in UPSTREAMS}
        for one in upstreams.values():
            stack.enter_context(one.server)
        models = {
            name: ServedModel(UPSTREAMS[name], base_url=one.server.url)
            for name, one in upstreams.items()
        }
        urls = [stack.enter_context(serving(models, memory)) for memory in memories]
        yield World(urls, upstreams, remembers)


@dataclass(frozen=True)
class Round:
    """One request, and what the client does with the calls in its answer."""

    acts: Sequence[Act]
    upstream: str
    stream: bool
    gateway: int
    results: Sequence[Result] = ()
    order: Sequence[int] = ()


@dataclass(frozen=True)
class Turn:
    text: str
    rounds: Sequence[Round]


@dataclass(frozen=True)
class Change:
    """What the client does to its history between two turns."""

    how: str
    where: float


@dataclass
class Held:
    """A conversation as it goes on: for each entry of a turn whose carriers it must bring."""

    talk: Talk
    carriers: list[list[tuple[str, tuple[str, ...]]]] = field(default_factory=list)
    altered: bool = False
    question: str = ""
    answers: list[tuple[Any, ...]] = field(default_factory=list)
    words: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    def begin(self, question: str) -> None:
        self.question = question
        self.talk.ask(question)
        self.carriers.append([])

    def take_turn(self, world: World, turn: Turn) -> None:
        self.begin(turn.text)
        for step in turn.rounds:
            self.take_round(world, step)

    def take_round(self, world: World, step: Round) -> None:
        upstream = world.upstreams[step.upstream]
        upstream.script.append(step.acts)
        refusals = len(upstream.server.refusals)
        heard = self.talk.hear(world.urls[step.gateway], step.upstream, stream=step.stream)
        assert not upstream.script
        assert [r.reason for r in upstream.server.refusals[refusals:]] == []
        check_heard(step, heard, upstream.said)
        here = {name for name, _ in self.carriers[-1]}
        switched = step.upstream == "anthropic" and not here <= {step.upstream}
        if not self.altered and not switched:
            wanted = [
                one
                for turn in self.carriers
                for name, some in turn
                for one in some
                if name == step.upstream
            ]
            came = list(upstream.server.returned[-1])
            if not world.remembers:  # what others thought may be told to whom it can be told
                came = [one for one in came if one in wanted]
            missing = [one for one in wanted if one not in came]
            if self.talk.manner.drops:  # of equal answers to equal questions, nothing tells which
                alike = {said for said, times in Counter(self.answers).items() if times > 1}
                missing = [one for one in missing if self.words[one] not in alike]
                if self.talk.manner.nameless:  # without ids of calls, equal calls are alike too
                    missing = []
            assert not missing, f"{step.upstream}: came {came}, not {wanted}"
            assert came == [one for one in wanted if one in came], f"{step.upstream}: {came}"
        self.carriers[-1].append((step.upstream, upstream.issued))
        said = (self.question, *(act.text for act in step.acts if isinstance(act, Say)))
        said = (len(self.answers),) if calls_in(step.acts) else said  # calls have ids
        self.answers.append(said)
        self.words |= dict.fromkeys(upstream.issued, said)
        if self.talk.manner.nameless:  # then their order is all that there is
            self.talk.answer(
                heard.calls, [replace(one, text=one.text or "") for one in step.results]
            )
            return
        self.talk.answer(
            [heard.calls[at] for at in step.order], [step.results[at] for at in step.order]
        )

    def change(self, change: Change) -> None:
        at = int(change.where * len(self.talk.turns))
        match change.how:
            case "retell" if self.talk.turns:
                self.talk.retell(at, "I said something else.")
                self.altered = True
            case "delete" if self.talk.turns:
                del self.talk.turns[at], self.carriers[at]
                self.altered = True
            case "compact" if self.talk.turns:
                self.talk.compact()
                self.carriers = [[]]
            case "drop":
                del self.talk.turns[:at], self.carriers[:at]
            case "back":
                del self.talk.turns[at:], self.carriers[at:]


def check_heard(step: Round, heard: Heard, said: Heard) -> None:
    """The client has the whole answer."""
    assert heard.text == said.text
    assert [(c.name, c.input) for c in heard.calls] == [(c.name, c.input) for c in said.calls]
    assert len({call.id for call in heard.calls}) == len(heard.calls)
    assert "".join(heard.thoughts.split()) == "".join(said.thoughts.split())
    assert heard.usage[:2] == said.usage[:2]
    if said.usage.reasoning is not None and heard.usage.reasoning is not None:
        assert heard.usage.reasoning == said.usage.reasoning


# how they are drawn
_numbers = count(1)
words = st.sampled_from(["a", "Why?", " two\n", "\n\nthree ", "ünïcödé 𝄞 — „x“", "x" * 70, "<b>&"])
inputs = st.sampled_from(
    [{}, {"at": ""}, {"at": "door"}, {"at": "ü 𝄞"}, {"at": 'say "no"\\\n'}, {"at": "x" * 30}]
)
thoughts = st.builds(Think, words, st.sampled_from([False, False, False, True]))
says = st.builds(Say, words)
calls = st.builds(Call, st.just("look"), inputs)
results = st.builds(
    Result,
    st.sampled_from(["r", "r", "", "ünï", "line\r\n", "x" * 50, None]),
    st.booleans(),
    st.sampled_from([False, False, True]),
)
manners = st.builds(
    Manner, st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.booleans()
)


@st.composite
def rounds(draw: Any, upstreams: st.SearchStrategy[str], *, last: bool, gateways: int) -> Round:
    acts: list[Act] = draw(st.lists(thoughts | says, max_size=3))
    made: list[Result] = []
    if last:
        acts.append(draw(says))
    else:
        between = st.lists(st.just([]) | st.builds(lambda one: [one], thoughts), max_size=3)
        acts.append(draw(calls))
        for gap in draw(between):
            acts += [*gap, draw(calls)]
        made = draw(st.lists(results, min_size=len(calls_in(acts)), max_size=len(calls_in(acts))))
        if all(one.text is None for one in made):
            made[0] = replace(made[0], text="r")  # with none at all, two answers would be in a row
    upstream = draw(upstreams)
    if upstream == "anthropic" and not isinstance(acts[0], Think):
        acts.insert(0, draw(thoughts))  # as it thinks at all, it begins so
    return Round(
        acts,
        upstream,
        draw(st.booleans()),
        draw(st.integers(0, gateways - 1)),
        made,
        draw(st.permutations(range(len(made)))),
    )


@st.composite
def turns(draw: Any, upstreams: st.SearchStrategy[str], gateways: int) -> Turn:
    """A turn; one model has a whole one more often than not."""
    one = draw(upstreams)
    among = st.just(one) if draw(st.sampled_from([True, True, False])) else upstreams
    count = draw(st.integers(0, 3))
    middle = [draw(rounds(among, last=False, gateways=gateways)) for _ in range(count)]
    end = draw(rounds(among, last=True, gateways=gateways))
    return Turn(draw(st.sampled_from(["go", "go", "again", "why so?\n"])), [*middle, end])


changes = st.builds(
    Change,
    st.sampled_from(["retell", "delete", "back", "compact"]),
    st.floats(0, 1, exclude_max=True),
)


def conversations(gateways: int = 1) -> st.SearchStrategy[list[Turn | Change]]:
    """Turns, and what the client does to its history between them."""
    upstreams = st.sampled_from(tuple(UPSTREAMS))
    return st.lists(turns(upstreams, gateways) | changes, min_size=1, max_size=5)


@st.composite
def shortened_conversations(draw: Any) -> list[Turn | Change]:
    """Turns, and a client that drops the oldest ones at any time."""
    upstreams = st.sampled_from(tuple(UPSTREAMS))
    drops = st.builds(Change, st.just("drop"), st.floats(0, 1, exclude_max=True))
    return draw(st.lists(turns(upstreams, 1) | drops, min_size=1, max_size=5))


def own(question: str) -> str:
    """A question that nobody asks again: what looks alike is judged elsewhere."""
    return f"{question} {next(_numbers)}"


def hold(world: World, talk: Talk, conversation: Sequence[Turn | Change]) -> None:
    held = Held(talk)
    for step in conversation:
        if isinstance(step, Turn):
            held.take_turn(world, replace(step, text=own(step.text)))
        else:
            held.change(step)
