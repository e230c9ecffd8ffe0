"""A server that plays a provider by its real rules, with a model that follows a script.

It issues fresh ids and carriers with every answer and remembers them, so it can tell whether what
comes back is what it sent, byte for byte and in its place. What breaks a rule is refused with the
provider's status and words, and does not use up an answer of the script.
"""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import msgspec

from mull.testing.ledger import Ledger
from mull.testing.providers import PROVIDERS
from mull.testing.providers.provider import Asked
from mull.testing.script import Act
from mull.testing.server import Recorded, Reply, ScriptedServer

__all__ = ["Refused", "StrictServer"]


@dataclass(frozen=True)
class Refused:
    """A request that broke a rule, and which, in the provider's words."""

    reason: str
    request: Recorded


class StrictServer(ScriptedServer):
    """Plays one provider on loopback. Use it with `with`; its address is `url`.

    Each inner list of the script is one answer. It comes as a stream or whole, as the request
    asks; thoughts are left out where the request asks the model not to think.

    Raises:
        ValueError: there is no such provider here.
    """

    def __init__(
        self,
        provider: str,
        script: Iterable[Sequence[Act]] = (),
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        if provider not in PROVIDERS:
            raise ValueError(f"no provider {provider!r} is played here: use {', '.join(PROVIDERS)}")
        super().__init__(self._reply, tls=tls)
        self._provider = PROVIDERS[provider]()
        self._answers = iter(script)
        self._ledger = Ledger(secrets.token_bytes(32))
        self.refusals: list[Refused] = []
        self.returned: list[tuple[str, ...]] = []

    @property
    def issued(self) -> tuple[str, ...]:
        """Every carrier of reasoning that went out, in order: signatures, encrypted and redacted
        content, and where a provider has none of these, the thoughts themselves."""
        return tuple(self._ledger.carriers)

    @property
    def answered(self) -> int:
        """How many answers went out. `returned` has as many entries: the carriers that each of
        these requests brought back."""
        return len(self._ledger.answers)

    def _reply(self, recorded: Recorded) -> Reply:
        try:
            body = recorded.json
            asked = self._provider.read(recorded.path.partition("?")[0], body)
            if asked is None:
                return self._not_found(f"there is no {recorded.path} here")
            reason = self._provider.refusal(asked, self._ledger)
            carriers = self._provider.carriers(body)
        except _UNREADABLE as error:
            return self._refuse(recorded, f"the request cannot be read: {error!r}")
        if reason is not None:
            return self._refuse(recorded, reason)
        return self._answer(asked, carriers)

    def _refuse(self, recorded: Recorded, reason: str) -> Reply:
        self.refusals.append(Refused(reason, recorded))
        status, body = self._provider.error(reason)
        return Reply.json(body, status)

    def _not_found(self, reason: str) -> Reply:
        return Reply.json(self._provider.error(reason)[1], 404)

    def _answer(self, asked: Asked, carriers: Sequence[str]) -> Reply:
        acts: object = next(self._answers, None)
        if acts is None:
            return self._not_found("the script is over")
        if not _is_answer(acts):
            return self._not_found("the next answer of the script is no list of Think, Say, Call")
        written = self._provider.write(acts, asked, self._ledger)
        self._ledger.record(written.issued)
        self.returned.append(tuple(carriers))
        return Reply.events(*written.events) if asked.streams else Reply.json(written.whole)


def _is_answer(acts: object) -> TypeGuard[Sequence[Act]]:
    return isinstance(acts, Sequence) and all(isinstance(act, Act) for act in acts)


_UNREADABLE: tuple[type[Exception], ...] = (
    msgspec.DecodeError,
    AttributeError,
    IndexError,
    KeyError,
    TypeError,
)
"""What reading a body raises that is no request at all."""
