"""The client behind every interface: targets, keys, connections, and lessons from rejections."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Self, TypeAlias, Unpack
from urllib.parse import urlsplit

from msgspec.structs import replace

from mull.agent.options import check_names
from mull.agent.setup import Setup, isolated_setup, load_setup
from mull.client.access import Access, access, missing_key
from mull.client.connection import running_loop
from mull.client.connections import ConnectionOptions, Connections
from mull.neutral.errors import (
    ConfigError,
    LocalError,
    NoModelError,
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
    from mull.client.answer import Client
    from mull.client.auth_drive import Sessions
    from mull.client.exchange import ExchangeOptions, Work
    from mull.client.grants import Tokens
    from mull.neutral.request import WireRequest
    from mull.policy.failure import Failure
    from mull.policy.heal.healing import Repaired
    from mull.policy.tokens import Counter, SafeCounter

__all__ = ["EMBEDDED", "LOCAL_PROVIDERS", "Engine"]

_Place: TypeAlias = tuple[str, str, str | None]

EMBEDDED = "local"
"""The provider whose server mull runs itself."""
LOCAL_PROVIDERS = ("ollama", "llama.cpp", "lmstudio", "vllm", "sglang")
"""Providers whose addresses in the catalog are on this machine."""
CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
SMALL = "this model is very small: its thinking is real, but its answers are often wrong"


class Engine:
    """Resolves targets, finds out how to reach them, and sends requests. Connections are kept until
    it is closed.

    An `isolated` engine uses nothing from outside: no config file, profile, environment variable,
    stored key or lesson affects it, and it writes nothing. Keys and addresses are then given in
    code. The machine's proxies and certificates still apply.

    If the program uses OpenTelemetry, each turn is a span. With `record_content` it contains
    messages, thinking and tool calls; the variable
    `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` does the same.

    `http_client`, `proxy`, `verify` and `cert` apply to all requests of conversations that are not
    given their own.

    Raises:
        LocalError: it is isolated, but was given a setup from outside.
        ConfigError: the proxy, the certificates or the HTTP client cannot be used.
    """

    def __init__(
        self,
        setup: Setup | None = None,
        *,
        isolated: bool = False,
        record_content: bool | None = None,
        **options: Unpack[ConnectionOptions],
    ) -> None:
        check_names(options, ConnectionOptions.__optional_keys__, "Engine")
        if setup is not None and isolated and not setup.isolated:
            raise LocalError(
                "an isolated engine creates its own setup: give `isolated` or `setup`, not both"
            )
        self.setup: Setup = setup or (isolated_setup() if isolated else load_setup())
        self._isolated = self.setup.isolated
        self._record_content = record_content
        self.keys: Keys = GivenKeys() if self._isolated else Keys(data_dir(), os.environ)
        self._lessons: Lessons | None = None
        self._inspected: set[_Place] = set()
        self._served: dict[_Place, Served] = {}
        self._counters: dict[_Place, SafeCounter] = {}
        self._connections = Connections(options, self.setup.config.connection)
        self._sessions: Sessions | None = None
        self._tokens: Tokens | None = None

    @property
    def lessons(self) -> Lessons:
        """What earlier rejections taught about endpoints."""
        if self._lessons is None:
            self._lessons = Lessons() if self._isolated else load_lessons(data_dir())
        return self._lessons

    def watch(self, turn: Turn, conversation: str | None = None) -> None:
        """Record the turn's spans, if the program uses OpenTelemetry."""
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
        """The target of a model name, or of the model in the settings.

        Raises:
            CatalogError: no model, or more than one, has this name.
            NoModelError: no model is given anywhere.
        """
        name = model or self.setup.settings.snapshot().model
        if name is None:
            raise NoModelError(
                "no model given: use -m PROVIDER/MODEL, or set one permanently with"
                ' model = "PROVIDER/MODEL" in config.toml or with MULL_MODEL'
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
        """The target with everything that rejections have taught about it, and what its server has
        reported in this process: the server may have been restarted with another window since.
        """
        taught = apply_lessons(target, self.lessons)
        served = self._served.get(_place(target))
        if served is None:
            return taught
        from mull.agent.discover import describe

        return describe(taught, served)

    def may_inspect(self, target: Target) -> bool:
        """Whether `inspect_server` may have something to query."""
        place = _place(target)
        known = self._served.get(place)
        if place in self._inspected and (known is None or known.settled):
            return False
        own = target.provider in self.setup.config.providers and not target.known
        return own or target.provider in LOCAL_PROVIDERS

    def runs_own_server(self, target: Target, way: Access) -> bool:
        """Whether the endpoint is a model server of the user's own, which may be queried about its
        models: one of the known kinds, or on this machine or its network."""
        if target.provider in LOCAL_PROVIDERS:
            return True
        own = target.provider in self.setup.config.providers or not target.known
        return own and _is_near(way.base_url)

    def served_by(self, target: Target) -> Served | None:
        """What the server of the target has said about it in this process."""
        return self._served.get(_place(target))

    def note_served(self, target: Target, served: Served) -> None:
        """Use what a server says about a target from now on."""
        self._served[_place(target)] = served

    async def inspect_server(self, target: Target, way: Access, *, again: bool = False) -> bool:
        """Query a server of the user's own about the model; returns whether that is news.

        It is queried once, and again as long as its answer may change. With `again`, it is queried
        in any case.
        """
        if not again and not self.may_inspect(target):
            return False
        if not again and target.provider not in LOCAL_PROVIDERS and not _is_loopback(way.base_url):
            return False
        from mull.agent.discover import look

        place = _place(target)
        known = self._served.get(place)
        self._inspected.add(place)
        way = await self._enter(way)
        served = await look(target, way, self._client_of(way))
        if served is None or served == known:
            return False
        self.note_served(target, served)
        if counter := self._server_counter(target, way, served):
            self._counters[place] = counter
        return True

    async def inspected(self, target: Target, *, base_url: str | None = None) -> Target:
        """The target with everything known about it, querying its server if it is the user's own;
        for callers that send nothing else. Closes the connections.
        """
        async with self:
            with suppress(ConfigError):  # without a key there is nothing to query
                await self.inspect_server(target, self.way_to(target, base_url=base_url))
        return self.learnt(target)

    def counter_for(self, target: Target) -> Counter:
        """The token counter for requests to this target: its own server, if that is local and
        offers it, otherwise the known or a substitute vocabulary.
        """
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
        """How the target is reached; starts the embedded model if that is the target.

        Raises:
            ConfigError: a key or an address is missing; says how to provide it.
        """
        if target.provider == EMBEDDED and base_url is None:
            return Access("")  # its address is known once it runs: see _enter
        base_url = base_url or self.setup.address_of(target.provider)
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
                raise ConfigError(f"a key must be text or a function, not {type(key).__name__}")
            return replace(way, key=None, login=None, cloud=None, fetch=key)
        own_server = base_url is not None or _is_loopback(way.base_url)
        if not own_server and (problem := missing_key(target, way)):
            raise ConfigError(problem)
        return way

    def sender(
        self,
        way: Access,
        options: ExchangeOptions | None = None,
        *,
        patient: bool = False,
        work: Work | None = None,
    ) -> Send:
        """A function that sends prepared requests; a `patient` one retries for longer, unless the
        options say how long. `work` writes them, if that may take long.

        A known rejection is fixed once; the lesson is stored if the fix was accepted.
        """
        from mull.client.exchange import Aid, ExchangeOptions, exchange, here
        from mull.client.retry import PATIENT, RetryRules

        if options is None:
            options = ExchangeOptions(retry=PATIENT if patient else RetryRules())
        return partial(
            exchange,
            way=way,
            transport=self._client_of(way),
            options=options,
            aid=Aid(self._enter, self._heal, self._learn, work or here),
        )

    async def call(self, wire: WireRequest, target: Target, way: Access) -> bytes:
        """A call to a provider beside its answers; returns the body of the response.

        Raises:
            RemoteError: the provider rejected it, or cannot be reached.
        """
        from mull.client.calls import call
        from mull.client.clock import SystemClock

        way = await self._enter(way)
        return await call(wire, target, way, transport=self._client_of(way), clock=SystemClock())

    async def _enter(self, way: Access) -> Access:
        """The endpoint ready for use: the embedded model is running, tokens are fetched."""
        running_loop()
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
        """A function that ends the thinking of a running answer, by its id; None if the endpoint
        has no such call.
        """
        if target.compat.end_thinking is None:
            return None

        async def end(answer: str) -> bool:
            from mull.client.control import end_thinking

            try:
                reached = await self._enter(way)
            except Exception:  # without the key, the stream is stopped instead
                return False
            return await end_thinking(target, reached, self._client_of(way), answer)

        return end

    def _heal(self, refused: Prepared, refusal: Failure) -> Repaired | None:
        """The fixed request, if it can be fixed here; one that is too long must be shortened by the
        caller, who knows what may be left out.

        Raises:
            TooLongError: it may be too long; what the rejection says about the window is learnt.
        """
        from mull.policy.failure import overflow_of
        from mull.policy.heal.healing import heal  # needed only for rejections

        repaired = heal(refused, refusal)
        overflow = None if repaired is not None else overflow_of(refusal)
        if overflow is None:
            return repaired
        from mull.client.refusal import refused_error
        from mull.policy.heal.overflow import far_below, overflow_lesson

        if far_below(refused, overflow) is not None:
            return None
        target = refused.target
        self._keep_lesson(target, overflow_lesson(target, overflow, _recounted(refused)))
        raise refused_error(refusal, target, target.endpoint or "", "", time.time(), refused)

    def _learn(self, target: Target, repaired: Repaired) -> None:
        if repaired.learn is not None:
            self._keep_lesson(target, repaired.learn)

    def _keep_lesson(self, target: Target, lesson: Lesson) -> None:
        if lesson == Lesson():
            return
        if "limit" in lesson.facts:
            self._served.pop(_place(target), None)  # what the server reported was wrong
        self._lessons = self.lessons.learn(target, lesson)
        if not self._isolated:
            save_lessons(data_dir(), self._lessons)

    def _trade(self, way: Access) -> Access:
        """Exchange a login for a session token; those of this process are cached."""
        if self._sessions is None:
            from mull.client.auth_drive import Sessions

            self._sessions = Sessions()
        return self._sessions.enter(way)

    async def _granted(self, way: Access) -> Access:
        """The endpoint with a cloud's token, if its login is exchanged for one."""
        if self._tokens is None:
            from mull.client.grants import Tokens

            self._tokens = Tokens()
        return await self._tokens.enter(way, self._client_of(way))

    def client(self, options: Mapping[str, Any]) -> Client:
        """What carries requests for which these connection options were given.

        Raises:
            ConfigError: they cannot be used; says why.
        """
        return self._connections.client(options)

    def _client_of(self, way: Access) -> Client:
        return way.client or self._connections.client()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close idle connections; active requests continue, and close theirs at the end. An
        `http_client` that was given stays open."""
        await self._connections.close()


def _place(target: Target) -> _Place:
    """A model at an address, whatever the dialect."""
    at = target.origin
    return at.provider, at.model, at.endpoint


def _recounted(prepared: Prepared) -> int:
    """The tokens of the request by the vocabulary of its target."""
    from mull.tokenizers import counter_for

    counter = counter_for(prepared.target)  # a server's own count needs no correction
    if prepared.counter == counter.name:
        return prepared.tokens
    made = replace(prepared.made, counter=counter)
    return replace(prepared, made=made).anew(prepared.target, made.amendment).tokens


async def _fetched(fetch: Callable[[], str | Awaitable[str]]) -> Secret:
    """The key that the caller provides for this request.

    Raises:
        ConfigError: it is not a key.
    """
    from mull.auth.secret import parse_secret

    # a function that blocks, as those for cloud tokens do, must not hold up other requests
    given = fetch() if _is_asynchronous(fetch) else await asyncio.to_thread(fetch)
    if isawaitable(given):
        given = await given
    if not isinstance(given, str):
        raise ConfigError(f"the key function did not return text: {type(given).__name__}")
    return parse_secret(given, "the key returned by the function")


def _is_asynchronous(function: Callable[..., Any]) -> bool:
    return iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)


def _is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")


def _is_near(url: str) -> bool:
    """Whether an address is on this machine or its own network: a private address, or a name that
    the internet does not have, as those of containers."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".lan", ".home.arpa"))


def _embedded_way() -> Access:
    """Start the embedded model if it is not running; its address and key are new each time."""
    from mull.auth.secret import Secret
    from mull.local.manage import ensure

    running = ensure(data_dir() / "local")
    return Access(running.base_url, Secret(running.key))
