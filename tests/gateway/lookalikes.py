"""Conversations of one client that look alike, and what each must be sent upstream.

All ask the same questions and get the same answers; only the thinking differs. A conversation that
sends its thinking back has it all. One that drops it has it all if something tells it from the
others; otherwise none of what may be another's, and the client is told. None ever has another's,
nor its own in another place: also not one whose client had an answer generated anew, dropped its
oldest turn, deleted one, went on in two ways at once, or put both ways together.
"""

from __future__ import annotations

import json
import random
import re
import urllib.request
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from gateway.talking import World
from mull.testing import Call, Say, Think
from mull.testing.script import Act
from talks import TALKS, Heard, Manner, Result, Talk, events_of

_THOUGHT = re.compile(r"thought-\d{6}")
ALL = "Be brief."
QUESTIONS = ("hi", "go on", "and now?")
SAID = ("Hello!", "Sure.", "Done.")
UPSTREAMS = ("anthropic", "openai", "gemini", "kimi")
DIALECTS = ("chat", "messages", "contents", "responses")
NAMING: dict[str, tuple[str, ...]] = {
    "chat": ("x-session-id", "user", "prompt_cache_key", "metadata.session_id"),
    "messages": ("x-claude-code-session-id", "metadata.user_id", "system blocks"),
    "contents": ("x-conversation-id", "session_id"),
    "responses": ("session-id", "safety_identifier", "prompt_cache_key", "metadata.chat_id"),
}
"""Where a client may name its session: in a header, or in a field of its request."""
MANNERS = (
    Manner(),
    Manner(renames=True, respaces=True),
    Manner(splits=True),
    Manner(nameless=True),
)
LEFT_OUT = re.compile("nothing to tell them apart|not found")


@dataclass
class One:
    """A conversation: how its client treats answers, and what tells it from the others."""

    talk: Talk
    upstream: str
    stream: bool
    where: str = ""
    """Where it names itself; empty if nowhere."""
    name: str = ""
    calls: bool = False
    is_branched: bool = False
    thoughts: list[list[str]] = field(default_factory=list)
    """Those of the answers in its history, by turn."""
    last: tuple[int, int] = (0, 0)
    """How many entries and thoughts the last answer has."""
    alike: set[str] = field(default_factory=set)
    """Those of answers that nothing tells from other answers."""

    @property
    def own(self) -> list[str]:
        return [thought for turn in self.thoughts for thought in turn]

    def ask(self, text: str) -> None:
        self.talk.ask(text)
        self.thoughts.append([])

    def heard(self, thought: str, *, after_call: bool, anew: bool) -> None:
        manner = self.talk.manner
        is_told = (bool(self.where) and not self.is_branched) or (
            after_call and not (manner.nameless and isinstance(self.talk, TALKS["contents"]))
        )
        self.thoughts[-1].append(thought)
        if manner.drops and (anew or not is_told):
            self.alike.add(thought)

    def request(self) -> tuple[dict[str, str], Any]:
        """The headers and the body of the next request."""
        body, headers = self.talk.body(self.upstream, self.stream), {}
        outer, _, inner = self.where.partition(".")
        match outer:
            case "" | "system":
                pass
            case "system blocks":
                cached = {"type": "text", "text": self.name, "cache_control": {"type": "ephemeral"}}
                body["system"] = [{"type": "text", "text": ALL}, cached]
            case "metadata":
                body["metadata"] = {inner: self.name}
            case name if "-" in name:
                headers[name] = self.name
            case name:
                body[name] = self.name
        return {"content-type": "application/json", **headers}, body


class LookAlikes:
    """Holds them all through one gateway and judges each request that arrives upstream."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.seen: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._thoughts = count(1)
        self._issued: dict[str, str] = {}
        self._read: Counter[str] = Counter()

    def hold(self, number: int, *, sampled: int = 8) -> None:
        """So many conversations, continued in any order. Their first answers are samples of one
        request, several at a time; later their clients change what was said."""
        some = [self._drawn(at) for at in range(number)]
        for at in range(0, number, sampled):
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(self._begin, some[at : at + sampled]))
        for turn in range(1, len(QUESTIONS)):
            self._random.shuffle(some)
            for one in [*some]:
                if self._random.random() < 0.2:
                    self._again(one, SAID[turn - 1])
                some += self._changed(one, f"which way, {turn}?")
            for one in some:
                one.ask(QUESTIONS[turn])
                if one.calls:
                    heard = self._judged(one, "", Call("look", {"at": "a"}))
                    one.talk.answer(heard.calls, [Result()])
                self._judged(one, SAID[turn])

    def _again(self, one: One, said: str) -> None:
        """The client has its last answer generated anew."""
        entries, thoughts = one.last
        del one.talk.turns[-1][-entries:]
        del one.thoughts[-1][len(one.thoughts[-1]) - thoughts :]
        self._hear(one, said, anew=True)
        self.seen["generated anew"] += 1

    def _changed(self, one: One, question: str) -> list[One]:
        """What its client does to a conversation; returns those that it becomes besides."""
        made: list[One] = []
        match self._random.choice(["", "", "", "drop", "delete", "branch", "merge"]):
            case "drop" if len(one.thoughts) > 1:
                del one.talk.turns[0], one.thoughts[0]
            case "delete" if len(one.thoughts) > 1:
                del one.talk.turns[1], one.thoughts[1]
            case "branch":
                made = [self._branch(one)]
            case "merge":
                other = self._branch(one)
                for each in (other, one):
                    each.ask(question)
                    self._judged(each, "Both.")
                one.talk.turns.append(deepcopy(other.talk.turns[-1]))
                one.thoughts.append(list(other.thoughts[-1]))
                one.last, one.alike = other.last, one.alike | other.alike
                made = [other]
            case _:
                return []
        self.seen["changed"] += 1
        return made

    def _branch(self, one: One) -> One:
        """Another conversation that goes on from here."""
        one.is_branched = True
        return deepcopy(one)

    def _drawn(self, at: int) -> One:
        dialect = DIALECTS[at % 4]
        manner = self._random.choice(MANNERS)
        manner = Manner(
            at % 8 >= 4, manner.renames, manner.respaces, manner.splits, manner.nameless
        )
        talk = TALKS[dialect](manner)
        upstream = UPSTREAMS[at // 8 % len(UPSTREAMS)]
        one = One(talk, upstream, stream=at // 32 % 2 == 1, calls=at // 64 % 2 == 1)
        match self._random.randrange(4):
            case 0:
                one.where = "system"
                talk.system = f"You are number {at}."
            case 1:
                one.where, one.name = self._random.choice(NAMING[dialect]), f"number {at}"
            case _:
                pass
        return one

    def _begin(self, one: One) -> None:
        one.ask(QUESTIONS[0])
        self._hear(one, SAID[0])

    def _hear(self, one: One, said: str, *acts: Act, anew: bool = False) -> tuple[Heard, str]:
        """The next answer, with a thought of its own, and the notes beside it."""
        thought = f"thought-{next(self._thoughts):06}"
        self.world.upstreams[one.upstream].script.append(
            [Think(thought), *acts, *([Say(said)] if said else [])]
        )
        talk = one.talk
        headers, body = one.request()
        url = self.world.urls[0] + talk.address(one.upstream, one.stream)
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as answer:
            data, notes = answer.read(), answer.headers.get("x-mull-notes", "")
        heard = talk.read(talk.fold(events_of(data)) if one.stream else json.loads(data))
        assert heard.text == said
        given = _THOUGHT.findall(heard.thoughts)
        assert len(given) == 1 or "Thinking is off" in notes
        for each in given:
            after_call = bool(acts) or len(talk.turns[-1]) > 1
            one.heard(each, after_call=after_call, anew=anew)
        talk.turns[-1] += (kept := talk.kept(heard.entries))
        one.last = len(kept), len(given)
        return heard, notes

    def _judged(self, one: One, said: str, *acts: Act) -> Heard:
        """The next answer, and the verdict on the request that arrived upstream for it."""
        own = one.own
        heard, notes = self._hear(one, said, *acts)
        server = self.world.upstreams[one.upstream].server
        told = _THOUGHT.findall(server.requests[-1].body.decode())
        sealed = [self._thought_of(one.upstream, carrier) for carrier in server.returned[-1]]
        came = {*told, *sealed}
        assert came <= {*own}, f"another's: {came - {*own}} of {one}"
        for some in (told, sealed):
            assert _is_in_order(dict.fromkeys(some), own), f"misplaced: {some} of {one}"
        lost = {*own} - came
        if "Thinking is off" not in notes:  # as in a turn of Claude's that has lost a thought
            assert lost <= one.alike, f"lost: {lost - one.alike} of {one}: {notes}"
        self.seen["judged"] += 1
        self.seen["restored"] += bool(came)
        if lost:
            assert LEFT_OUT.search(notes), (one, notes)
            self.seen["none, and said"] += 1
        return heard

    def _thought_of(self, upstream: str, carrier: str) -> str:
        """The thought whose carrier this is."""
        answers = self.world.upstreams[upstream].server._ledger.answers
        for answer in answers[self._read[upstream] :]:
            (thought,) = _THOUGHT.findall(repr(answer.pieces))[:1] or ("hidden",)
            self._issued |= dict.fromkeys(answer.carriers, thought)
        self._read[upstream] = len(answers)
        return self._issued[carrier]


def _is_in_order(some: Iterable[str], of: Sequence[str]) -> bool:
    rest = iter(of)
    return all(one in rest for one in some)
