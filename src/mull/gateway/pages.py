"""The watch page: the latest requests as they happen, and one request in detail.

The page is one document that loads nothing from elsewhere; its content security policy allows its
script by hash. Content from models and clients reaches the page as JSON, and the script inserts it
only as text, never as HTML.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import msgspec

from mull.client.secrets import scrub
from mull.dialects.registry import encode_request
from mull.gateway.app import Page
from mull.gateway.http import Receive, Scope, Send, give, leave, start
from mull.gateway.watching import Seen, Watch
from mull.transcripts.style import DARK, LIGHT

if TYPE_CHECKING:
    from mull.client.access import Access

__all__ = ["detail", "pages_of"]

_encode = msgspec.json.Encoder().encode
_KEEP_ALIVE = 15.0
_NOT_KEPT = b'{"error":"this request is no longer kept"}'


def pages_of(watch: Watch) -> dict[str, Page]:
    """The page at `/` and the paths that it fetches data from."""

    async def requests(scope: Scope, receive: Receive, send: Send) -> None:
        await _give(send, watch.summaries(_visible(scope)))

    async def search(scope: Scope, receive: Receive, send: Send) -> None:
        await _give(send, watch.search(_query(scope, "q"), _visible(scope)))

    async def request(scope: Scope, receive: Receive, send: Send) -> None:
        seen = watch.find(_query(scope, "id"), _visible(scope))
        if seen is None:
            await give(send, _NOT_KEPT, _HEADERS, 404)
        else:
            await _give(send, detail(seen))

    async def live(scope: Scope, receive: Receive, send: Send) -> None:
        await _live(watch, _visible(scope), receive, send)

    return {
        "/": Page(_document, public=True),
        "/watch/requests": Page(requests),
        "/watch/search": Page(search),
        "/watch/request": Page(request),
        "/watch/live": Page(live),
    }


def _visible(scope: Scope) -> str | None:
    """The scope whose requests this visitor may see; None, if the gateway has no client tokens,
    for all of them."""
    token = scope["user"]
    return None if token is None else token.scope


def _query(scope: Scope, name: str) -> str:
    return next(iter(parse_qs(scope["query_string"].decode("latin-1")).get(name, ())), "")


async def _give(send: Send, value: Any) -> None:
    await give(send, _encode(value), _HEADERS)


def detail(seen: Seen) -> dict[str, Any]:
    """One request at each stage: as the client sent it, as mull decoded it, and as it was sent
    upstream; with the answer and the notes. Keys are masked."""
    job = seen.job
    wire = encode_request(job.prepared.request, job.prepared.target)
    stages = {
        "client": {"body": _readable(job.body)},
        "neutral": _plain(job.prepared.request),
        "upstream": {
            "path": wire.path,
            "headers": dict(wire.headers),
            "body": _readable(wire.body),
        },
    }
    return {
        "request": seen.summary,
        "content": seen.content(),
        "notes": [{"text": f"{n.about}: {n.text}", "warning": n.warning} for n in job.notes],
        "road": scrub(stages, _secrets(job.route.way)),
    }


def _secrets(way: Access) -> tuple[str, ...]:
    return (*((way.key.reveal(),) if way.key is not None else ()), *way.secrets)


def _plain(value: Any) -> Any:
    """Any value as JSON data; our own sequence types become lists."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=list))


def _readable(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body.decode("utf-8", "replace")


async def _live(watch: Watch, visible: str | None, receive: Receive, send: Send) -> None:
    """Stream events to the visitor until it disconnects."""
    subscriber = watch.subscribe(visible)
    leaving = asyncio.ensure_future(leave(receive))
    try:
        await start(send, 200, "text/event-stream", _HEADERS)
        await send({"type": "http.response.body", "body": b": mull\n\n", "more_body": True})
        while True:
            following = asyncio.ensure_future(subscriber.next())
            await asyncio.wait(
                {following, leaving}, timeout=_KEEP_ALIVE, return_when=asyncio.FIRST_COMPLETED
            )
            if leaving.done():
                following.cancel()
                return
            if following.done():
                data = b"data: " + _encode(following.result()) + b"\n\n"
            else:
                following.cancel()
                data = b": still here\n\n"
            await send({"type": "http.response.body", "body": data, "more_body": True})
    finally:
        leaving.cancel()
        watch.unsubscribe(subscriber)


_HEADERS = (("cache-control", "no-store"), ("x-content-type-options", "nosniff"))


async def _document(scope: Scope, receive: Receive, send: Send) -> None:
    body, policy = _page()
    headers = (*_HEADERS, ("content-security-policy", policy), ("referrer-policy", "no-referrer"))
    await give(send, body, headers, media="text/html; charset=utf-8")


@cache
def _page() -> tuple[bytes, str]:
    """The document and its content security policy."""
    folder = files("mull.gateway") / "page"
    script = (folder / "page.js").read_text("utf-8")
    style = _colours() + (folder / "page.css").read_text("utf-8")
    html = (folder / "page.html").read_text("utf-8")
    body = html.replace("/*style*/", style).replace("/*script*/", script).encode()
    policy = (
        "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none';"
        f" frame-ancestors 'none'; script-src {_hash(script)}; style-src {_hash(style)}"
    )
    return body, policy


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _colours() -> str:
    return (
        f":root{{color-scheme:light dark;{_variables(LIGHT)}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}\n"
    )


def _variables(colours: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())
