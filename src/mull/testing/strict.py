"""A server that plays a provider by its real rules, with a model that follows a script.

It issues fresh ids and carriers with every answer and remembers them, so it can tell whether what
comes back is what it sent, byte for byte and in its place. What breaks a rule is refused with the
provider's status and words, and does not use up an answer of the script. What is not certain is
marked as that.
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

    It is `certain` where the provider itself is known to refuse this. Else the request shows that
    reasoning was lost or altered, and whether the provider looks that closely is not known.
    """

    reason: str
    request: Recorded
    certain: bool = True


@dataclass(frozen=True)
class Doubt:
    """Why a good verdict is worth less than it seems: something in a request that was answered may
    be refused in life, or a part of the script was not played."""

    reason: str
    request: Recorded


@dataclass(frozen=True)
class Answered:
    """A request that was answered, and the carriers of reasoning that it brought back."""

    request: Recorded
    returned: tuple[str, ...]


Noted: TypeAlias = Refused | Doubt | Answered


class UntestedWarning(UserWarning):
    """The script has thoughts, and no request asked for any: nothing about them was tested."""


class StrictServer(ScriptedServer):
    """Plays one provider on loopback. Use it with `with`; its address is `url`.

    Each inner list of the script is one answer. It comes as a stream or whole, as the request
    asks; thoughts are left out where the request asks the model not to think. With `aside`, a
    request that offers no tools gets that answer and takes none of the script: agents ask for
    titles and summaries in between. `told` is called with each verdict and answer as it is
    reached, in the server's thread.

    Raises:
        ValueError: there is no such provider here.
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
            raise ValueError(f"no provider {provider!r} is played here: use {', '.join(PROVIDERS)}")
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
        self.called = 0

    def __exit__(self, *ending: object) -> None:
        super().__exit__(*ending)
        if self.untested and not any(ending):
            warnings.warn(self.untested, UntestedWarning, stacklevel=2)

    @property
    def name(self) -> str:
        """The provider that is played."""
        return self._provider.name

    @property
    def issued(self) -> tuple[str, ...]:
        """Every carrier of reasoning that went out, in order: signatures, encrypted and redacted
        content, ids of stored reasoning, and where a provider has none of these, the thoughts
        themselves."""
        return tuple(self._ledger.carriers)

    @property
    def answered(self) -> int:
        """How many answers went out. `returned` has as many entries: the carriers that each of
        these requests brought back."""
        return len(self._ledger.answers)

    @property
    def variables(self) -> Mapping[str, str]:
        """What many clients of this provider read from the environment, for this server."""
        return {
            name: value.replace("{url}", self.url)
            for name, value in self._provider.variables.items()
        }

    @property
    def untested(self) -> str | None:
        """Why nothing about reasoning was tested, where the script has thoughts that were all
        left out."""
        if not self._left_out or self._thought:
            return None
        return (
            f"none of the script's thoughts went out: no request asked for them with"
            f" {self._provider.asks_by}"
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
        """Whoever only looks whether somebody is there, or what, is never refused."""
        if method == "HEAD":
            return Reply.json({})
        found = self._provider.look(method, path, self._ledger)
        return self._not_found(f"there is no {path} here") if found is None else Reply.json(found)

    def _judge(self, asked: Asked) -> list[Verdict]:
        """What is wrong, up to the first that is refused."""
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
            return self._unplayed(recorded, "the script is over")
        if not _is_answer(acts):
            wrong = "the next answer of the script is no list of Think, Say, Call"
            return self._unplayed(recorded, wrong)
        allowed = self._provider.allowed(acts, asked)
        if left := len(acts) - len(allowed):
            self._left_out += left
            self._doubt(recorded, f"the request does not ask for thoughts: {left} left out")
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
"""What reading a body raises that is no request at all."""
