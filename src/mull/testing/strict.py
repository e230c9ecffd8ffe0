"""A server that imitates a provider with its real rules, and a model that follows a script.

It issues fresh ids and carriers with every answer and remembers them, so it can tell whether what
comes back is what it sent, byte for byte and in its place. A request that breaks a rule is rejected
with the provider's status and words, and does not consume an answer of the script. Uncertain
findings are marked as such.
"""

from __future__ import annotations

import secrets
import ssl
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

import msgspec

from mull.testing.ledger import Ledger
from mull.testing.providers import PROVIDERS
from mull.testing.providers.provider import Asked
from mull.testing.script import Act, calls_in, thoughts_in
from mull.testing.server import Recorded, Reply, ScriptedServer
from mull.testing.verdict import Verdict

__all__ = ["Answered", "Doubt", "Noted", "Refused", "StrictServer", "UntestedWarning"]


@dataclass(frozen=True)
class Refused:
    """A request that broke a rule, and which, in the provider's words.

    It is `certain` if the provider itself is known to reject this. Otherwise the request shows that
    reasoning was lost or altered, and it is unknown whether the provider checks that closely.
    """

    reason: str
    request: Recorded
    certain: bool = True


@dataclass(frozen=True)
class Doubt:
    """Why a good verdict is worth less than it seems: something in an answered request may be
    rejected by the real provider, or a part of the script was not played.
    """

    reason: str
    request: Recorded


@dataclass(frozen=True)
class Answered:
    """An answered request, and the carriers of reasoning that it brought back."""

    request: Recorded
    returned: tuple[str, ...]


Noted: TypeAlias = Refused | Doubt | Answered


class UntestedWarning(UserWarning):
    """The script has thinking, but no request asked for any: none of it was tested."""


class StrictServer(ScriptedServer):
    """Imitates one provider on loopback. Use it with `with`; its address is `url`.

    Each inner list of the script is one answer. It is sent as a stream or as a document, as
    requested; thinking is left out if the request turns it off. With `aside`, a request that offers
    no tools gets that answer and takes none of the script: agents ask for titles and summaries in
    between. `told` is called with each verdict and answer, in the server's thread.

    Raises:
        ValueError: the provider is unknown.
    """

    def __init__(
        self,
        provider: str,
        script: Iterable[Sequence[Act]] = (),
        *,
        tls: ssl.SSLContext | None = None,
        port: int = 0,
        aside: Sequence[Act] | None = None,
        told: Callable[[Noted], object] | None = None,
    ) -> None:
        if provider not in PROVIDERS:
            raise ValueError(f"unknown provider {provider!r}: use {', '.join(PROVIDERS)}")
        super().__init__(self._reply, tls=tls, port=port)
        self._provider = PROVIDERS[provider]()
        self._answers = iter(script)
        self._aside = aside
        self._ledger = Ledger(secrets.token_bytes(32))
        self._tell = told or (lambda _: None)
        self._left_out = 0
        self._thought = 0
        self.refusals: list[Refused] = []
        self.doubts: list[Doubt] = []
        self.returned: list[tuple[str, ...]] = []
        self.called: int = 0

    def __exit__(self, *ending: object) -> None:
        super().__exit__(*ending)
        if self.untested and not any(ending):
            warnings.warn(self.untested, UntestedWarning, stacklevel=2)

    @property
    def name(self) -> str:
        """The imitated provider."""
        return self._provider.name

    @property
    def issued(self) -> tuple[str, ...]:
        """Every carrier of reasoning that was sent, in order: signatures, encrypted and redacted
        content, ids of stored reasoning, and if a provider has none of these, the thinking itself.
        """
        return tuple(self._ledger.carriers)

    @property
    def answered(self) -> int:
        """How many answers were sent. `returned` has as many entries: the carriers that each of
        these requests brought back.
        """
        return len(self._ledger.answers)

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables that many clients of this provider read, for this server."""
        return {
            name: value.replace("{url}", self.url)
            for name, value in self._provider.variables.items()
        }

    @property
    def untested(self) -> str | None:
        """Why no reasoning was tested, if the script has thinking that was all left out."""
        if not self._left_out or self._thought:
            return None
        return (
            "none of the script's thoughts was sent: no request asked for them with "
            f"{self._provider.asks_by}"
        )

    def _reply(self, recorded: Recorded) -> Reply:
        path = recorded.path.partition("?")[0]
        if recorded.method != "POST":
            return self._look(recorded.method, path)
        try:
            body = recorded.json
            if (counted := self._provider.count(path, body)) is not None:
                return Reply.json(counted)
            asked = self._provider.read(path, body)
            if asked is None:
                return self._unplayed(recorded, f"there is no {recorded.path} here")
            restored = self._provider.restore(asked, self._ledger)
            if isinstance(restored, Verdict):
                return self._refuse(recorded, restored)
            verdicts = self._judge(restored)
            carriers = self._provider.carriers(restored.body)
        except _UNREADABLE as error:
            return self._refuse(recorded, Verdict(f"the request cannot be read: {error!r}"))
        for verdict in verdicts:
            if verdict.refuses:
                return self._refuse(recorded, verdict)
            self._doubt(recorded, verdict.reason)
        return self._answer(recorded, restored, carriers)

    def _look(self, method: str, path: str) -> Reply:
        """Requests that only look something up are never rejected."""
        if method == "HEAD":
            return Reply.json({})
        found = self._provider.look(method, path, self._ledger)
        return self._not_found(f"there is no {path} here") if found is None else Reply.json(found)

    def _judge(self, asked: Asked) -> list[Verdict]:
        """What is wrong, up to the first rejection."""
        found: list[Verdict] = []
        for verdict in self._provider.verdicts(asked, self._ledger):
            if verdict.refuses:
                return [verdict]
            found.append(verdict)
        return found

    def _refuse(self, recorded: Recorded, verdict: Verdict) -> Reply:
        refused = Refused(verdict.reason, recorded, verdict.certain)
        self.refusals.append(refused)
        self._tell(refused)
        status, body = self._provider.error(verdict)
        return Reply.json(body, status)

    def _doubt(self, recorded: Recorded, reason: str) -> None:
        doubt = Doubt(reason, recorded)
        self.doubts.append(doubt)
        self._tell(doubt)

    def _unplayed(self, recorded: Recorded, reason: str) -> Reply:
        self._doubt(recorded, f"{reason}: not judged")
        return self._not_found(reason)

    def _not_found(self, reason: str) -> Reply:
        return Reply.json(self._provider.error(Verdict(reason))[1], 404)

    def _answer(self, recorded: Recorded, asked: Asked, carriers: Sequence[str]) -> Reply:
        is_aside = self._aside is not None and not asked.body.get("tools")
        acts: object = self._aside if is_aside else next(self._answers, None)
        if acts is None:
            return self._unplayed(recorded, "the script has ended")
        if not _is_answer(acts):
            wrong = "the next answer of the script is not a list of Think, Say, Call"
            return self._unplayed(recorded, wrong)
        allowed = self._provider.allowed(acts, asked)
        if left := len(acts) - len(allowed):
            self._left_out += left
            self._doubt(recorded, f"the request does not ask for thinking: {left} left out")
        self._thought += len(thoughts_in(allowed))
        written = self._provider.write(allowed, asked, self._ledger)
        self._ledger.record(written.issued)
        self.returned.append(tuple(carriers))
        self.called += len(calls_in(allowed))
        self._tell(Answered(recorded, self.returned[-1]))
        return Reply.events(*written.events) if asked.streams else Reply.json(written.whole)


def _is_answer(acts: object) -> TypeGuard[Sequence[Act]]:
    return isinstance(acts, Sequence) and all(isinstance(act, Act) for act in acts)


_UNREADABLE: tuple[type[Exception], ...] = (
    msgspec.DecodeError,
    AttributeError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
)
"""What parsing a body raises if it is not a request at all."""
