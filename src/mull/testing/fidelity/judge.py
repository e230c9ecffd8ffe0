"""The endpoints of a case on loopback: they answer with its bytes and enforce their rules."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from mull.testing.fidelity.case import Case, Endpoint, Invoked, Reply
from mull.testing.fidelity.invoke import as_converse
from mull.testing.fidelity.paths import values_at
from mull.testing.fidelity.verdict import Heard
from mull.testing.ledger import Issued, Ledger
from mull.testing.providers import PROVIDERS
from mull.testing.providers.anthropic import Anthropic
from mull.testing.providers.chat import Chat
from mull.testing.providers.provider import Asked, Provider
from mull.testing.rules.bedrock import check_bedrock
from mull.testing.script import Say
from mull.testing.server import CUT, Recorded, ScriptedServer, Step
from mull.testing.server import Reply as Sent
from mull.testing.verdict import Verdict, refused

__all__ = ["RULES", "Judge"]

AMAZON = "application/vnd.amazon.eventstream"

_CONVERSE = re.compile(r"/model/(?P<model>[^/]+)/converse(?P<stream>-stream)?$")
_INVOKE = re.compile(r"/model/(?P<model>[^/]+)/invoke(?P<stream>-with-response-stream)?$")


class _Converse(Anthropic):
    """Bedrock's Converse for Claude, and InvokeModel, which is read in the names of Converse. What
    it issued is not compared: only its rules are known.
    """

    name: ClassVar[str] = "converse"

    def read(self, path: str, body: Mapping[str, Any]) -> Asked | None:
        if found := _INVOKE.search(path):
            return Asked(as_converse(body), found["model"], bool(found["stream"]))
        found = _CONVERSE.search(path)
        return Asked(body, found["model"], bool(found["stream"])) if found else None

    def restore(self, asked: Asked, ledger: Ledger) -> Asked | Verdict:
        return asked

    def verdicts(self, asked: Asked, ledger: Ledger) -> Iterator[Verdict]:
        yield from refused(check_bedrock(asked.body))

    def issue(self, asked: Asked, document: Mapping[str, Any]) -> Issued:
        return Issued(asked.model, document["output"]["message"]["content"], {})


RULES: Mapping[str, type[Provider]] = {
    **PROVIDERS,
    **{kind.name: kind for kind in (Chat, _Converse)},
}
"""The strict providers that a case can name."""


class _Playing:
    """An endpoint while its case is played."""

    def __init__(self, endpoint: Endpoint, replies: tuple[Reply, ...]) -> None:
        self.endpoint = endpoint
        self.provider = RULES[endpoint.rules]()
        self.ledger = Ledger(b"")
        self._replies = replies
        self._next = 0

    def take(self) -> Reply:
        """The next reply; the last one again if there are no more."""
        reply = self._replies[min(self._next, len(self._replies) - 1)]
        self._next += 1
        return reply


class Judge(ScriptedServer):
    """Plays one case after the other. An endpoint's address is `address(name)`.

    A request whose address names no endpoint goes to the first one that understands its path, so
    that a gateway with a fixed upstream can be judged too. Each case offers a tool: a request that
    offers none is a client's own business, and gets a short answer that is not part of the case.
    """

    def __init__(self, *, port: int = 0) -> None:
        super().__init__(self._reply, port=port)
        self._playing: dict[str, _Playing] = {}
        self.heard: list[Heard] = []

    def begin(self, case: Case) -> None:
        """Play this case from now on."""
        self.heard = []
        self._playing = {
            name: _Playing(endpoint, case.replies[name])
            for name, endpoint in case.endpoints.items()
        }

    def address(self, name: str) -> str:
        """Where an endpoint of the case is, without a version."""
        return f"{self.url}/{name}"

    def _reply(self, recorded: Recorded) -> Sent:
        path = recorded.path.partition("?")[0]
        first, _, rest = path.lstrip("/").partition("/")
        named = {first: self._playing[first]} if first in self._playing else self._playing
        if recorded.method != "POST":
            return self._look(recorded.method, f"/{rest}" if first in named else path)
        try:
            body = recorded.json
        except msgspec.DecodeError as error:
            return Sent.json({"error": {"message": f"not JSON: {error}"}}, 400)
        for name, playing in named.items():
            if (counted := playing.provider.count(path, body)) is not None:
                return Sent.json(counted)
            try:
                asked = playing.provider.read(path, body)
                if asked is not None:
                    return self._answer(name, playing, asked, recorded.path)
            except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                reason = f"the request cannot be read: {error!r}"
                return self._refuse(name, playing, body, Verdict(reason))
        return Sent.json({"error": {"message": f"there is no {path} here"}}, 404)

    def _look(self, method: str, path: str) -> Sent:
        for playing in self._playing.values():
            found = playing.provider.look(method, path, playing.ledger)
            if found is not None:
                return Sent.json(found)
        return Sent.json({}, 200 if method == "HEAD" else 404)

    def _answer(self, name: str, playing: _Playing, asked: Asked, path: str) -> Sent:
        if not any(asked.body.get(key) for key in ("tools", "toolConfig")):
            aside = playing.provider.write([Say("Done.")], asked, playing.ledger)
            if not asked.streams or _wants_array(path):
                return Sent.json([aside.whole] if asked.streams else aside.whole)
            return Sent.events(*aside.events)
        restored = playing.provider.restore(asked, playing.ledger)
        if isinstance(restored, Verdict):
            return self._refuse(name, playing, asked.body, restored)
        for forbidden in playing.endpoint.forbids:
            if values_at(forbidden.path, asked.body):
                verdict = Verdict(forbidden.message)
                return self._refuse(name, playing, asked.body, verdict, forbidden.status)
        for verdict in playing.provider.verdicts(restored, playing.ledger):
            if verdict.certain:  # what is only suspected is for the checks of the case
                return self._refuse(name, playing, restored.body, verdict)
        reply = playing.take()
        self.heard.append(Heard(name, restored.body, reply))
        if (issued := reply.delivered or reply.document) is not None:
            playing.ledger.record(playing.provider.issue(restored, issued))
        if _INVOKE.search(path) and reply.invoke is not None:
            return _invoked(reply.invoke, asked)
        return _sent(reply, asked, array=_wants_array(path))

    def _refuse(
        self, name: str, playing: _Playing, body: Any, verdict: Verdict, status: int = 0
    ) -> Sent:
        self.heard.append(Heard(name, body, refusal=verdict.reason))
        usual, error = playing.provider.error(verdict)
        return Sent.json(error, status or usual)


def _wants_array(path: str) -> bool:
    """Whether Gemini is asked for a stream that is a JSON array, which it is without `alt=sse`."""
    method, _, query = path.partition("?")
    return method.endswith(":streamGenerateContent") and "alt=sse" not in query.split("&")


def _invoked(reply: Invoked, asked: Asked) -> Sent:
    if not asked.streams:
        return Sent.json(reply.document)
    return Sent(200, {"content-type": AMAZON}, (b64decode(reply.stream64),))


def _sent(reply: Reply, asked: Asked, *, array: bool) -> Sent:
    pieces = reply.array_pieces() if array else reply.pieces()
    if pieces is None or (reply.document is not None and not asked.streams):
        return Sent.json(reply.document)
    steps: tuple[Step, ...] = (*pieces, *((CUT,) if reply.broken else ()))
    kind = "text/event-stream" if reply.stream is not None else AMAZON
    if array:
        kind = "application/json; charset=UTF-8"
    return Sent(200, {"content-type": kind}, steps)
