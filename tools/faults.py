"""Breaks answers on their way, everywhere, and looks whether mull holds: `python -m tools.faults`.

For each provider a turn that thinks, speaks and calls a tool goes through a proxy
(`mull.testing.FaultProxy`), once for every fault at every position, or at every nth byte. Then a
second question is asked on the same session. What must hold:

- What came is stored: no text, thought, call or count of it lost, doubled or made up.
- An answer whose end did not come is never called complete, and one whose end came ends as it said.
- A request is sent again only where nothing had come.
- The next question is answered, and the provider's rules refuse nothing; where the fault altered
  bytes, a signature among them, one refusal may be healed.
- The session on disk is the session in memory, and its database is whole.

Writes docs/reliability.md with the counts.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from mull import Engine, open_session
from mull.agent.session import Session
from mull.client.exchange import ExchangeOptions
from mull.client.retry import RetryRules
from mull.dialects.registry import decoder
from mull.neutral.assemble import assemble
from mull.neutral.errors import MullError
from mull.neutral.events import TextDelta, ThinkingDelta, ToolCallDelta
from mull.neutral.messages import Message
from mull.neutral.usage import Usage
from mull.store.sessions.sqlite import SqliteSessions
from mull.testing import Call, Fault, FaultProxy, Say, StrictServer, Think
from mull.testing.faults import KINDS, Kind, Response, Unit, inflict
from mull.testing.providers.provider import Asked
from mull.testing.script import Act
from mull.testing.server import CUT, RESET, STALL, Step
from mull.testing.verdict import Verdict
from tools.attack.table import with_section_of

__all__ = ["MODELS", "PAGE", "PHASES", "Case", "Field", "Outcome", "main", "page", "sampled"]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reliability.md"
MODELS = {
    "anthropic": "anthropic/claude-sonnet-4-5",
    "gemini": "google/gemini-3-pro-preview",
    "kimi": "moonshotai/kimi-k2-thinking",
    "openai": "openai/gpt-5",
    "openrouter": "openrouter/anthropic/claude-sonnet-4.5",
}
SPOKEN = {
    "anthropic": "Messages",
    "gemini": "generateContent",
    "kimi": "Chat Completions",
    "openai": "Responses",
    "openrouter": "Chat Completions with `reasoning_details`",
}
PHASES = ("head", "thought", "text", "call", "end")
ALTERING: frozenset[Kind] = frozenset({"corrupt", "drop", "duplicate", "reorder"})
FIRST: list[Act] = [
    Think("The user wants to know; I should look, und zwar überall."),
    Say("Let me look."),
    Call("look", {"at": "the door"}),
]
LATER: list[Act] = [Think("That is enough."), Say("It is a door.")]
SILENCE_S = 2.5
"""How long mull waits for a byte that may never come: longer than a busy machine stands still."""
SLOW: frozenset[Kind] = frozenset({"delay", "throttle"})


def look(at: str = "") -> str:
    """Look at something."""
    return f"saw {at}"


class Case(NamedTuple):
    """A fault, and in which part of the answer it happens."""

    fault: Fault
    phase: str


class Outcome(NamedTuple):
    """What became of a case; nothing is wrong where there are no problems."""

    provider: str
    case: Case
    problems: tuple[str, ...]


class _Certain(StrictServer):
    """Refuses only what the provider is known to refuse: what a fault has altered comes back as it
    was read, and that is no loss of the client's."""

    def _judge(self, asked: Asked) -> list[Verdict]:
        return [verdict for verdict in super()._judge(asked) if verdict.certain]


class Field:
    """A provider, the proxy before it and a store, for as many cases as one likes."""

    def __init__(self, provider: str, folder: Path) -> None:
        self.provider = provider
        self._folder = folder
        self._path = folder / f"{provider}.sqlite"
        self._store = SqliteSessions(self._path)
        self._server = _Certain(provider, self._script())
        self._begins = True
        self._target = Engine(isolated=True).target(MODELS[provider])

    def _script(self) -> Iterator[Sequence[Act]]:
        while True:
            begins, self._begins = self._begins, False
            yield FIRST if begins else LATER

    def __enter__(self) -> Field:
        self._server.start()
        self._proxy = FaultProxy(self._server.url)
        self._proxy.start()
        for problem in self._problems(None):
            raise AssertionError(problem)
        self.response = self._proxy.responses[0]
        return self

    def __exit__(self, *_: object) -> None:
        self._proxy.stop()
        self._server.stop()

    def cases(
        self, units: Iterable[Unit], kinds: Iterable[Kind] = KINDS, every: int = 1
    ) -> Iterator[Case]:
        """Every fault before and in every piece; of bytes every nth."""
        for unit in units:
            phases = self._phases(unit)
            for kind in kinds:
                for at in range(0, len(phases), every if unit == "byte" else 1):
                    yield Case(Fault(kind, at, unit), phases[at])

    def _phases(self, unit: Unit) -> list[str]:
        """In which part of the answer each piece of the response stands."""
        reader, phase, phases = decoder(self._target), "head", list[str]()
        raw, read, said = b"", 0, 0
        for piece in self.response.pieces(unit):
            raw += piece
            body = _dechunked(raw[len(self.response.head) :])[0] if self.response.chunked else raw
            for event in reader.feed(body[read:]):
                if type(event) in _PHASES:
                    phase, said = _PHASES[type(event)], len(phases) + 1
            read = len(body)
            phases.append(phase)
        return phases[:said] + ["end"] * (len(phases) - said)

    def run(self, case: Case) -> Outcome:
        """Ask twice, the first time with the fault, and see what is wrong then."""
        try:
            problems = tuple(self._problems(case.fault))
        except Exception as error:
            problems = (f"raised {error!r}",)
        return Outcome(self.provider, case, problems)

    def _problems(self, fault: Fault | None) -> Iterator[str]:
        self._begins = True
        asked, refused = len(self._server.requests), len(self._server.refusals)
        harmed = len(self._proxy.responses)
        self._proxy.harm([fault])
        session = self._opened(None if fault is None or fault.kind in SLOW else SILENCE_S)
        with suppress(MullError):
            session.ask("What is it?")
        first, second = ([*self._server.requests[asked:], None, None])[:2]
        if fault is not None:
            again = first is not None and second is not None and first.body == second.body
            yield from self.misread(
                inflict(self._proxy.responses[harmed], fault), session.log.messages, again=again
            )
        answer = session.ask("And now?")
        if answer.status != "complete":
            yield f"the second answer is {answer.status}"
        healed = 1 if fault is not None and fault.kind in ALTERING else 0
        if len(self._server.refusals) - refused > healed:
            yield f"refused: {self._server.refusals[-1].reason}"
        yield from self._badly_stored(session)

    def _opened(self, idle: float | None) -> Session:
        limits = ExchangeOptions(idle=idle, retry=RetryRules(attempts=2, longest_wait=0.0))
        return open_session(
            model=MODELS[self.provider],
            base_url=self._proxy.url,
            store=self._store,
            engine=Engine(isolated=True),
            key="none",
            limits=limits,
            tools=[look],
            folder=str(self._folder),
        )

    def misread(
        self, steps: Sequence[Step], kept: Iterable[Message], *, again: bool = False
    ) -> Iterator[str]:
        """What is wrong with what was stored of the harmed answer."""
        bodies, is_sure = heard(steps, self.response)
        came = [self.read(body) for body in bodies]
        stored = next((one for one in kept if one.role == "assistant"), None)
        if again or stored is None:
            if is_sure and all(_content(message).is_something for message in came):
                what = "asked again after this had come" if again else "lost"
                yield f"{what}: {_content(came[0])!r}"
            return
        alike = [one for one in came if _content(one) == _content(stored)]
        if not alike:
            yield f"stored {_content(stored)!r}, came {_content(came[0])!r}"
        elif _ending(stored) not in map(_ending, alike):
            yield f"ended as {_ending(stored)!r}, came {_ending(alike[0])!r}"

    def read(self, body: bytes) -> Message:
        """The answer that a body says."""
        reader = decoder(self._target, reads_on=False)
        return assemble([*reader.feed(body), *reader.close()], self._target.origin)

    def _badly_stored(self, session: Session) -> Iterator[str]:
        name, held = session.info.id, tuple(session.log)
        session.close()
        _, records = self._store.load(name)
        if tuple(records) != held:
            yield "the session on disk is not the one in memory"

    def check_store(self) -> str | None:
        """What SQLite finds wrong with its file, after all cases."""
        with closing(sqlite3.connect(self._path)) as database:
            (found,) = database.execute("PRAGMA integrity_check").fetchone()
        return None if found == "ok" else str(found)


class Content(NamedTuple):
    """What an answer holds, as far as it came."""

    text: str
    thoughts: str
    calls: tuple[tuple[str, str | None], ...]
    usage: Usage | None

    @property
    def is_something(self) -> bool:
        return bool(self.text or self.thoughts or self.calls)


def _content(message: Message) -> Content:
    thoughts = "".join(block.thought for block in message.thinking)
    calls = tuple((call.name, call.arguments) for call in message.tool_calls)
    return Content(message.text, thoughts, calls, message.usage)


def _ending(message: Message) -> tuple[bool, str | None]:
    """Whether it is complete, and the reason it gave; what broke off gave none that counts."""
    is_complete = message.status == "complete"
    return is_complete, message.stop_reason if is_complete else None


_PHASES: Mapping[type, str] = {
    ThinkingDelta: "thought",
    TextDelta: "text",
    ToolCallDelta: "call",
}


def heard(steps: Sequence[Step], whole: Response) -> tuple[list[bytes], bool]:
    """The bodies that a client may take from these steps, and whether it must take one of them.

    Where the head itself was altered, nobody can say what a client makes of it, and it may give up.
    """
    raw = b""
    for step in steps:
        if isinstance(step, bytes):
            raw += step
        elif step in (CUT, RESET, STALL):
            break
    if not raw.startswith(whole.head):
        return [b"", whole.body, _dechunked(raw.partition(b"\r\n\r\n")[2])[0]], False
    rest = raw[len(whole.head) :]
    if not whole.chunked:
        return [rest], True
    sure, more = _dechunked(rest)
    return [sure, sure + more], True


def _dechunked(data: bytes) -> tuple[bytes, bytes]:
    """The payload up to where the framing breaks, and what of the broken chunk is there.

    A line may end with several CR or, if its size did, with none; blanks around a size do not
    matter.
    """
    body = b""
    while data:
        line, found, rest = data.partition(b"\n")
        bare = not line.endswith(b"\r")
        try:
            size = int(line.partition(b";")[0].strip(), 16)
        except ValueError:
            return body, b""
        if not found or size == 0:
            return body, b""
        after, _, data = rest[size:].partition(b"\n")
        if after.rstrip(b"\r") or (not after and not bare):
            return body, rest[:size]
        body += rest[:size]
    return body, b""


def sampled(cases: Iterable[Case], most: int) -> Iterator[Case]:
    """The first few cases of each fault, unit and phase."""
    seen: Counter[tuple[str, str, str]] = Counter()
    for case in cases:
        kind = (case.fault.kind, case.fault.unit, case.phase)
        seen[kind] += 1
        if seen[kind] <= most:
            yield case


def run_all(provider: str, every: int) -> Iterator[Outcome]:
    """Every case of a provider, and at last what its database came to."""
    with tempfile.TemporaryDirectory() as folder, Field(provider, Path(folder)) as field:
        pieces = field.cases(["chunk", "event"])
        yield from map(field.run, chain(pieces, field.cases(["byte"], every=every)))
        if wrong := field.check_store():
            yield Outcome(provider, Case(Fault("cut"), "end"), (wrong,))


_INTRO = """\
A turn that thinks, speaks and calls a tool goes through a proxy that breaks it
([FaultProxy](testing.md#broken-connections)): every fault at every chunk and every event of the
stream, and at every {every}th byte of the response, head and framing included. Then a second
question is asked on the same session. **{cases} cases, {broken} broken.** What must hold:

- What came is stored: no text, thought, call or count of it is lost, doubled or made up.
- An answer whose end did not come is never called complete, and one whose end came ends as it
  said.
- A request is sent again only where nothing had come.
- The next question is answered, and the provider's rules refuse nothing; where the fault altered
  bytes, a signature among them, one refusal may be healed.
- The session on disk is the session in memory, and its database is whole.

The columns are the part of the answer in which it happened. A number is that of cases in which all
of this held, and where it did not always, *held of all*.
"""
_OUTRO = """\
A duplicated, dropped or reordered event is a lie that an API without numbered events cannot show:
there, what came is what was on the wire. `python -m tools.faults` tries the same cases again and
writes this page, in about a quarter of an hour on one core; `--every 29` tries more bytes, and a
provider's name that provider alone. The default tests run a sample of the cases, the judges more.
"""


def page(outcomes: Sequence[Outcome], every: int) -> str:
    """docs/reliability.md."""
    broken = sum(bool(outcome.problems) for outcome in outcomes)
    intro = _INTRO.format(cases=f"{len(outcomes):,}", broken=broken, every=every)
    lines = [
        "# Broken connections",
        "",
        "<!-- generated by `python -m tools.faults`: change the code, not this page -->",
        "",
        intro,
        *_table("Fault", {kind: kind for kind in KINDS}, outcomes, lambda o: o.case.fault.kind),
        "",
        *_table("API", SPOKEN, outcomes, lambda o: o.provider),
        "",
        _OUTRO.rstrip(),
    ]
    return "\n".join(lines) + "\n"


def _table(
    head: str,
    names: Mapping[str, str],
    outcomes: Sequence[Outcome],
    row: Callable[[Outcome], str],
) -> Iterator[str]:
    yield f"| {head} | {' | '.join(PHASES)} | all |"
    yield "|---" * (len(PHASES) + 2) + "|"
    for name, shown in names.items():
        of = [outcome for outcome in outcomes if row(outcome) == name]
        cells = [_cell(o for o in of if o.case.phase == phase) for phase in PHASES]
        yield f"| {shown} | {' | '.join(cells)} | {_cell(of)} |"


def _cell(outcomes: Iterable[Outcome]) -> str:
    told = [bool(outcome.problems) for outcome in outcomes]
    held = told.count(False)
    return f"{held:,}" if held == len(told) else f"{held:,} of {len(told):,}"


def main() -> int:
    """Run the cases, say what broke, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "provider", nargs="*", help="these alone, and no page: " + ", ".join(MODELS)
    )
    parser.add_argument("--every", type=int, default=197, metavar="N", help="every nth byte")
    options = parser.parse_args()
    outcomes: list[Outcome] = []
    for provider in options.provider or MODELS:
        began = time.monotonic()
        found = [*run_all(provider, options.every)]
        outcomes += found
        print(f"{provider}: {len(found)} cases in {time.monotonic() - began:.0f} s")
        for outcome in found:
            for problem in outcome.problems:
                print(f"  {outcome.case.fault} in {outcome.case.phase}: {problem}")
    if not options.provider:
        before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        text = with_section_of(before, page(outcomes, options.every))
        PAGE.write_text(text, encoding="utf-8")
    return 1 if any(outcome.problems for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
