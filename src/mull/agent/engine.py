"""The one client behind every face: targets, keys, the connection, and what refusals taught."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Self, TypeAlias
from urllib.parse import urlsplit

from msgspec.structs import replace

from mull.agent.setup import Setup, isolated_setup, load_setup
from mull.client.access import Access, access, missing_key
from mull.neutral.errors import (
    ConfigError,
    LocalError,
    NoModelError,
    TooLongError,
    UnknownModel,
)
from mull.neutral.messages import Dialect
from mull.neutral.target import Target
from mull.policy.heal.lessons import Lesson, Lessons, apply_lessons
from mull.policy.prepare import Prepared
from mull.store.keys import GivenKeys, Keys
from mull.store.lessons import load_lessons, save_lessons
from mull.store.paths import data_dir

if TYPE_CHECKING:
    from mull.agent.discover import Served
    from mull.agent.reach import Key
    from mull.agent.run import Send, Turn
    from mull.auth.secret import Secret
    from mull.client.auth_drive import Sessions
    from mull.client.exchange import ExchangeOptions
    from mull.client.grants import Tokens
    from mull.client.http import Transport
    from mull.policy.failure import Failure
    from mull.policy.heal.healing import Repaired
    from mull.policy.tokens import Counter, SafeCounter

__all__ = ["EMBEDDED", "Engine"]

_Place: TypeAlias = tuple[str, str, str | None]

EMBEDDED = "local"
"""The provider whose server mull runs itself."""
CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
SMALL = "this model is very small: it really thinks, but what it says is often wrong"


class Engine:
    """Finds targets, opens the way to them and sends. Connections are kept until it is closed.

    An `isolated` one takes nothing from outside: no config file, profile, environment variable,
    stored key or lesson steers it, and it writes nothing. Keys and addresses are then given in
    code. Proxies and certificates of the machine still hold.

    Where the program uses OpenTelemetry, each turn is a span. With `record_content` it holds what
    was said, thought and called; so does the variable
    `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`.

    Raises:
        LocalError: it is to be isolated, and was given a set-up from outside.
    """

    def __init__(
        self,
        setup: Setup | None = None,
        *,
        isolated: bool = False,
        record_content: bool | None = None,
    ) -> None:
        if setup is not None and isolated and not setup.isolated:
            raise LocalError("an isolated engine makes its own set-up: give one or the other")
        self.setup = setup or (isolated_setup() if isolated else load_setup())
        self._isolated = self.setup.isolated
        self._record_content = record_content
        self.keys = GivenKeys() if self._isolated else Keys(data_dir(), os.environ)
        self._lessons: Lessons | None = None
        self._inspected: set[_Place] = set()
        self._served: dict[_Place, Served] = {}
        self._counters: dict[_Place, SafeCounter] = {}
        self._transport: Transport | None = None
        self._sessions: Sessions | None = None
        self._tokens: Tokens | None = None

    @property
    def lessons(self) -> Lessons:
        """What earlier refusals taught about endpoints."""
        if self._lessons is None:
            self._lessons = Lessons() if self._isolated else load_lessons(data_dir())
        return self._lessons

    def watch(self, turn: Turn, conversation: str | None = None) -> None:
        """Have the turn's spans recorded, where the program records any."""
        if "opentelemetry.trace" not in sys.modules:
            return
        from mull.agent.telemetry import Spans, find_tracer

        content = self._record_content
        if content is None and not self._isolated:
            content = os.environ.get(CONTENT_VARIABLE, "").lower() in ("1", "true")
        if tracer := find_tracer():
            turn.hub.add(Spans(tracer, turn, conversation=conversation, content=bool(content)))

    def target(
        self,
        model: str | None = None,
        *,
        base_url: str | None = None,
        dialect: Dialect | None = None,
        compat: Mapping[str, Any] | None = None,
    ) -> Target:
        """The target of a model's name, or of the model that the settings name.

        Raises:
            CatalogError: no model, or more than one, has this name.
            NoModelError: no model is named anywhere.
        """
        name = model or self.setup.settings.snapshot().model
        if name is None:
            raise NoModelError(
                "no model is named: give one (-m PROVIDER/MODEL), or set one for good with"
                ' model = "PROVIDER/MODEL" in config.toml or MULL_MODEL'
            )
        target = self.setup.resolve(name, base_url=base_url, dialect=dialect, compat=compat)
        if target.provider == EMBEDDED:
            if not target.known:
                raise UnknownModel(
                    f"the embedded server has no model {target.model!r}: use local/smollm2",
                    ("local/smollm2",),
                )
            from mull.local.untaught import as_installed

            target = as_installed(replace(target, notes=(*target.notes, SMALL)))
        return self.learnt(target)

    def learnt(self, target: Target) -> Target:
        """The target with all that refusals have taught of it by now, and what its server said of
        it in this process: a server may have been started with another window since."""
        taught = apply_lessons(target, self.lessons)
        served = self._served.get(_place(target))
        if served is None:
            return taught
        from mull.agent.discover import describe

        return describe(taught, served)

    async def inspect_server(self, target: Target, way: Access) -> bool:
        """Ask a server of the user's own what it says of the model; whether that is news.

        It is asked once, and again as long as what it said may change.
        """
        place = _place(target)
        known = self._served.get(place)
        if place in self._inspected and (known is None or known.settled):
            return False
        from mull.agent.discover import LOCAL_PROVIDERS, look

        own = target.provider in self.setup.config.providers and not target.known
        if target.provider not in LOCAL_PROVIDERS and not (own and _is_loopback(way.base_url)):
            return False
        self._inspected.add(place)
        way = await self._enter(way)
        served = await look(target, way, self._connection())
        if served is None or served == known:
            return False
        self._served[place] = served
        if counter := self._server_counter(target, way, served):
            self._counters[place] = counter
        return True

    async def inspected(self, target: Target, *, base_url: str | None = None) -> Target:
        """The target with all that is known of it, its server asked if it is the user's own; for
        who sends nothing else. Closes the connections."""
        async with self:
            with suppress(ConfigError):  # without a key there is nobody to ask
                await self.inspect_server(target, self.way_to(target, base_url=base_url))
        return self.learnt(target)

    def counter_for(self, target: Target) -> Counter:
        """What counts the tokens of requests to this target: its own server, where that is on this
        machine and offers it, else the vocabulary that is known or stands in."""
        from mull.tokenizers import counter_for

        return self._counters.get(_place(target)) or counter_for(target)

    def _server_counter(self, target: Target, way: Access, served: Served) -> SafeCounter | None:
        from mull.client.access import request_headers
        from mull.client.tokenize import SHAPES, server_tokens
        from mull.neutral.request import WireRequest
        from mull.policy.tokens import SafeCounter
        from mull.tokenizers import counter_for

        shape, stand_in = SHAPES.get(served.tokenizes or ""), counter_for(target)
        if shape is None or stand_in.exact or not way.base_url.startswith("http://"):
            return None
        if not _is_loopback(way.base_url):
            return None
        root = re.sub(r"/v\d+$", "", way.base_url)
        headers = request_headers(way, target, WireRequest("/tokenize", b""))
        ask = partial(shape, target.model)
        name = f"{target.provider_name} itself"
        return SafeCounter(name, True, lambda: server_tokens(root, headers, ask, stand_in.count))

    def way_to(
        self,
        target: Target,
        *,
        key: Key | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Access:
        """How the target is reached; starts the embedded model if that is what was asked for.

        Raises:
            ConfigError: a key or an address is missing; says how to give it.
        """
        if target.provider == EMBEDDED and base_url is None:
            return Access("")  # its address is known when it runs: see _enter
        way = access(
            target,
            self.setup.config,
            self.keys,
            key=key if isinstance(key, str) else None,
            base_url=base_url,
            headers=headers,
        )
        if key is not None and not isinstance(key, str):
            if not callable(key):
                raise ConfigError(f"a key is text or a function, not {type(key).__name__}")
            return replace(way, key=None, login=None, cloud=None, fetch=key)
        own_server = base_url is not None or _is_loopback(way.base_url)
        if not own_server and (problem := missing_key(target, way)):
            raise ConfigError(problem)
        return way

    def sender(
        self, way: Access, options: ExchangeOptions | None = None, *, patient: bool = False
    ) -> Send:
        """What sends prepared requests along this way; a `patient` one tries for longer, unless
        the options say how long.

        A known refusal is repaired once; what it taught is kept if the repair was accepted.
        """
        from mull.client.exchange import Aid, ExchangeOptions, exchange
        from mull.client.retry import PATIENT, RetryRules

        if options is None:
            options = ExchangeOptions(retry=PATIENT if patient else RetryRules())
        return partial(
            exchange,
            way=way,
            transport=self._connection(),
            options=options,
            aid=Aid(self._enter, self._heal, self._learn),
        )

    async def _enter(self, way: Access) -> Access:
        """The way with its key at hand: the embedded model runs, tokens are fetched."""
        if not way.base_url:
            return await asyncio.to_thread(_embedded_way)
        if way.fetch is not None:
            way = replace(way, key=await _fetched(way.fetch))
        if way.login is not None:
            way = await asyncio.to_thread(self._trade, way)
        if way.cloud is not None and way.key is None:
            way = await self._granted(way)
        return way

    def thought_ender(
        self, target: Target, way: Access
    ) -> Callable[[str], Coroutine[Any, Any, bool]] | None:
        """What ends the thought of a running answer there, by its id; None where nothing can."""
        if target.compat.end_thinking is None:
            return None

        async def end(answer: str) -> bool:
            from mull.client.control import end_thinking

            try:
                reached = await self._enter(way)
            except Exception:  # where the key is not to be had, the stream is stopped instead
                return False
            return await end_thinking(target, reached, self._connection(), answer)

        return end

    def _heal(self, refused: Prepared, refusal: Failure) -> Repaired | None:
        """The request repaired, if that can be done here; one that is too long has to be made
        shorter by whoever knows what may be left out.

        Raises:
            TooLongError: it is; what the refusal says of the window is learnt.
        """
        from mull.policy.failure import overflow_of
        from mull.policy.heal.healing import heal  # only what is refused needs it

        repaired = heal(refused, refusal)
        overflow = None if repaired is not None else overflow_of(refusal)
        if overflow is None:
            return repaired
        from mull.client.refusal import refused_error
        from mull.policy.heal.overflow import overflow_lesson

        target = refused.target
        self._keep_lesson(target, overflow_lesson(target, overflow, _recounted(refused)))
        said = refused_error(refusal, target, target.endpoint or "", "", 0.0)
        raise TooLongError(
            str(said),
            status=said.status,
            text=said.text,
            code=said.code,
            headers=said.headers,
            overflow=overflow,
        )

    def _learn(self, target: Target, repaired: Repaired) -> None:
        if repaired.learn is not None:
            self._keep_lesson(target, repaired.learn)

    def _keep_lesson(self, target: Target, lesson: Lesson) -> None:
        if lesson == Lesson():
            return
        if "limit" in lesson.facts:
            self._served.pop(_place(target), None)  # it was not true
        self._lessons = self.lessons.learn(target, lesson)
        if not self._isolated:
            save_lessons(data_dir(), self._lessons)

    def _trade(self, way: Access) -> Access:
        """Trade a login for a session; the sessions of this process are kept."""
        if self._sessions is None:
            from mull.client.auth_drive import Sessions

            self._sessions = Sessions()
        return self._sessions.enter(way)

    async def _granted(self, way: Access) -> Access:
        """The way with a cloud's token, where its login is traded for one."""
        if self._tokens is None:
            from mull.client.grants import Tokens

            self._tokens = Tokens()
        return await self._tokens.enter(way, self._connection())

    def _connection(self) -> Transport:
        if self._transport is None:
            from mull.client.http import Transport

            self._transport = Transport()
        return self._transport

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections that wait; what is under way goes on, and keeps none."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close()


def _place(target: Target) -> _Place:
    """A model at an address, in whatever dialect it is spoken to."""
    at = target.origin
    return at.provider, at.model, at.endpoint


def _recounted(prepared: Prepared) -> int:
    """What the request holds by the vocabulary of its target."""
    from mull.tokenizers import counter_for

    counter = counter_for(prepared.target)  # what a server says of itself needs no correction
    if prepared.counter == counter.name:
        return prepared.tokens
    made = replace(prepared.made, counter=counter)
    return replace(prepared, made=made).anew(prepared.target, made.amendment).tokens


async def _fetched(fetch: Callable[[], str | Awaitable[str]]) -> Secret:
    """The key that the caller gives for this one request.

    Raises:
        ConfigError: what it gives is no key.
    """
    from mull.auth.secret import parse_secret

    given = fetch()
    if isawaitable(given):
        given = await given
    if not isinstance(given, str):
        raise ConfigError(f"the function for the key gave no text: {type(given).__name__}")
    return parse_secret(given, "the key that the function gave")


def _is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")


def _embedded_way() -> Access:
    """Start the embedded model if it does not run; its address and key are new each time."""
    from mull.auth.secret import Secret
    from mull.local.manage import ensure

    running = ensure(data_dir() / "local")
    return Access(running.base_url, Secret(running.key))
