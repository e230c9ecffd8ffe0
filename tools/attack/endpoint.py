"""Endpoints that break off, never end, flood, lie about lengths, redirect, and talk nonsense."""

from __future__ import annotations

import json
import re
import socket
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mull.neutral.events import Event, Finished, TextDelta, ThinkingDelta, ToolCallDelta
from mull.neutral.messages import Dialect
from tools.attack.ground import (
    KEY,
    Home,
    Play,
    Server,
    Trial,
    all_dialects,
    attack,
    calling,
    chunked,
    crash_of,
    frames,
    good,
    head,
    home,
    saying,
)

_KIND = "Endpoint"
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
_LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LEGAL_AT_GEMINI = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_VALUE = re.compile(rb'(?<=":)(?:"[^"]*"|\d+|null)')
_FLOOD = 320 << 20
"""Bytes after which an endless answer ends all the same."""


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _sending(*pieces: bytes, reset: bool = False) -> Play:
    def play(connection: socket.socket, number: int) -> None:
        for piece in pieces:
            connection.sendall(piece)
        if reset:
            _reset(connection)

    return play


def _flooding(start: bytes, piece: bytes) -> Play:
    def play(connection: socket.socket, number: int) -> None:
        connection.sendall(start)
        for _ in range(_FLOOD // len(piece)):
            connection.sendall(piece)

    return play


def _asked(play: Play, *wanted: int, dialect: Dialect = "openai-chat") -> str | None:
    with home() as place, Server(play) as server:
        return crash_of(place.ask(dialect, server.url), *wanted)


@attack(_KIND, "reset or closed before, in and after the head")
def _early_ends() -> Iterator[Trial]:
    for form, pieces in {"before": (), "in": (_OK[:20],), "after": (_CHUNKED,)}.items():
        for reset in (False, True):
            yield f"{form}, reset {reset}", _asked(_sending(*pieces, reset=reset), 4, 5)


@attack(_KIND, "cut in a thought, a text or a call; what came is kept, the next request is whole")
def _cuts() -> Iterator[Trial]:
    for dialect in all_dialects():
        call = ToolCallDelta(2, "c", "read", '{"path":')
        events = (ThinkingDelta("deep thought", 0), TextDelta("said so far", 1), call)
        for kept in (1, 2, 3):
            pieces = _begun(dialect, *events[:kept])
            if not pieces:  # the dialect's writer joins it with what follows
                continue
            with home() as place:
                with Server(_sending(head(dialect), *pieces, reset=True)) as server:
                    problem = crash_of(place.ask(dialect, server.url), 0, 4, 5)
                yield f"{dialect}, after {kept}", problem or _goes_on(place, dialect, "deep")


def _begun(dialect: Dialect, *events: Event) -> list[bytes]:
    """The events as a stream that goes on; some dialects hold a piece back until they know."""
    return frames(dialect, *events, Finished("stop"))[:-1]


def _goes_on(place: Home, dialect: Dialect, kept: str = "") -> str | None:
    """Whether the session holds what came, and the next question is answered and well formed."""
    if kept and kept not in _stored(place):
        return f"{kept!r} is not kept"
    with Server(_sending(head(dialect), *good(dialect))) as server:
        ran = place.ask(dialect, server.url, "--continue", "and?")
        problem = crash_of(ran, 0)
        return problem or next(filter(None, map(_malformed, server.bodies)), None)


def _stored(place: Home) -> str:
    store = place.data / "sessions.db"
    texts = [path.read_bytes() for path in place.data.glob(f"{store.name}*") if path.is_file()]
    return b"".join(texts).decode("utf-8", "replace")


def _malformed(body: bytes) -> str | None:
    """What a provider would refuse in a request: names and arguments of calls."""
    for value in _walk(json.loads(body)):
        function = value.get("function") if "arguments" not in value else value
        named = function if isinstance(function, dict) else value
        is_call = "arguments" in named or value.get("type") == "tool_use" or "args" in value
        legal = _LEGAL_AT_GEMINI if "args" in value else _LEGAL
        if is_call and not legal.fullmatch(str(named.get("name"))):
            return f"the name {named.get('name')!r} is sent"
        if isinstance(named.get("arguments"), str):
            try:
                given = json.loads(named["arguments"])
            except ValueError:
                return f"the arguments {named['arguments'][:60]!r} are sent"
            if not isinstance(given, dict):
                return f"the arguments {named['arguments'][:60]!r} are sent"
        if value.get("type") == "tool_use" and not isinstance(value.get("input"), dict):
            return "an input that is no object is sent"
    return None


def _walk(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner)


@attack(_KIND, "connection held open after the answer's own end")
def _held_open() -> Iterator[Trial]:
    for dialect in all_dialects():
        for form in ("silent", "pings"):

            def play(
                connection: socket.socket, number: int, d: Dialect = dialect, f: str = form
            ) -> None:
                connection.sendall(head(d, more=b"Transfer-Encoding: chunked\r\n"))
                connection.sendall(chunked(*good(d)))
                connection.settimeout(0.5)
                for _ in range(200):
                    with suppress(TimeoutError):
                        if not connection.recv(10):
                            return
                    if f == "pings":
                        connection.sendall(chunked(b": ping\n\n"))

            with home() as place, Server(play) as server:
                ran = place.ask(dialect, server.url)
                wrong = None if "fine" in ran.out else "the answer is not told"
                yield f"{dialect}, {form}", crash_of(ran, 0) or wrong


@attack(_KIND, "what a server offers is asked for, and answered without end or not at all")
def _looks() -> Iterator[Trial]:
    def silent(connection: socket.socket, number: int) -> None:
        with suppress(OSError):
            connection.recv(10)

    forms = {
        "silent": silent,
        "endless": _flooding(head("openai-chat"), b"x" * (1 << 20)),
        "deep": _sending(head("openai-chat") + b'{"data":' * 100_000),
        "odd": _sending(head("openai-chat") + b'{"data":[1,{"id":[]},null]}'),
    }
    for form, looked in forms.items():
        with home() as place, Server(saying("openai-chat", TextDelta("fine")), looked) as server:
            yield form, crash_of(place.ask("openai-chat", server.url), 0)


@attack(_KIND, "text after the answer's own end")
def _after_the_end() -> Iterator[Trial]:
    for dialect in all_dialects():
        late = frames(dialect, TextDelta("smuggled", 1), Finished("stop"))

        def play(
            connection: socket.socket,
            number: int,
            d: Dialect = dialect,
            more: bytes = b"".join(late),
        ) -> None:
            connection.sendall(head(d) + b"".join(good(d)))
            if d == "gemini":  # its end has no mark of its own: for five seconds words may follow
                time.sleep(8)
            connection.sendall(more)

        with home() as place, Server(play) as server:
            ran = place.ask(dialect, server.url)
            added = "text was added" if "smuggled" in ran.out else None
            yield dialect, crash_of(ran, 0) or added


@attack(_KIND, "one endless event, comment, head, blank or document")
def _endless() -> Iterator[Trial]:
    million = b"x" * (1 << 20)
    forms = {
        "event": (head("openai-chat"), b'data: {"a":"', million),
        "comment": (head("openai-chat"), b": ", million),
        "blanks": (head("openai-chat"), b"", b"\n" * (1 << 16)),
        "document": (head("openai-chat"), b'{"a":"', million),
        "head": (b"HTTP/1.1 200 OK\r\n", b"A: ", million),
        "continue": (b"", b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
        "error": (b"HTTP/1.1 400 No\r\nConnection: close\r\n\r\n", b"", million),
        "page": (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", b"", million),
    }
    for form, (start, first, piece) in forms.items():
        yield form, _asked(_flooding(start + first, piece), 3, 4, 5)


@attack(_KIND, "compressed bombs, broken and foreign compression")
def _compressed() -> Iterator[Trial]:
    packer = zlib.compressobj(9, wbits=31)
    zeros = b"\n" * (1 << 20)
    bomb = b"".join(packer.compress(zeros) for _ in range(1500)) + packer.flush()
    packed = zlib.compress(b'data: {"choices":[]}\n\n', wbits=31)
    forms = {
        "bomb": (b"gzip", bomb),
        "bomb in a document": (b"gzip", zlib.compress(b'{"a":"' + zeros * 400, wbits=31)),
        "broken": (b"gzip", b"\x1f\x8b nonsense"),
        "cut": (b"gzip", packed[:-9]),
        "foreign": (b"br", b"\x0b\x02\x80"),
        "deflate": (b"deflate", b"\x00" * 100),
    }
    for form, (coding, body) in forms.items():
        start = _OK + b"Content-Encoding: " + coding + b"\r\nConnection: close\r\n\r\n"
        yield form, _asked(_sending(start, body), 3, 4, 5)


@attack(_KIND, "lengths and framing that lie")
def _framing() -> Iterator[Trial]:
    body = b"".join(good("openai-chat"))
    forms = {
        "5,000 digits": b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n" + body,
        "negative": b"Content-Length: -5\r\n\r\n" + body,
        "twice": b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + body,
        "too long": b"Content-Length: 99999\r\n\r\n" + body,
        "too short": b"Content-Length: 9\r\n\r\n" + body,
        "and chunked": b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n" + body,
        "no chunk": b"Transfer-Encoding: chunked\r\n\r\nhello",
        "huge chunk": b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\nx",
        "NUL": b"A: \x00b\r\nConnection: close\r\n\r\n" + body,
    }
    for form, rest in forms.items():
        yield form, _asked(_sending(_OK + rest), 0, 4, 5)
    yield "HTTP/0.9", _asked(_sending(body), 3, 4, 5)
    yield "HTTP/2", _asked(_sending(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 3, 4, 5)


@attack(_KIND, "a broken chunk in one packet with text: kept, and not asked for again")
def _broken_chunk() -> Iterator[Trial]:
    for dialect in all_dialects():
        pieces = _begun(dialect, TextDelta("worth keeping", 0))
        start = head(dialect, more=b"Transfer-Encoding: chunked\r\n")
        with home() as place, Server(_sending(start + chunked(*pieces) + b"ZZ\r\n")) as server:
            problem = crash_of(place.ask(dialect, server.url), 0, 4, 5)
            if not problem and len(server.requests) != 1:
                problem = f"{len(server.requests)} requests"
            if not problem and "worth keeping" not in _stored(place):
                problem = "the text is lost"
            yield dialect, problem


@attack(_KIND, "redirects to another host")
def _redirects() -> Iterator[Trial]:
    for status in (301, 302, 303, 307, 308):
        with home() as place, Server(saying("openai-chat", TextDelta("x"))) as other:
            moved = b"HTTP/1.1 %d X\r\nLocation: %s/chat/completions\r\nContent-Length: 0\r\n\r\n"
            with Server(_sending(moved % (status, other.url.encode()))) as server:
                problem = crash_of(place.ask("openai-chat", server.url), 3, 4, 5)
                leaked = f"{len(other.requests)} requests there" if other.requests else None
                yield str(status), problem or leaked


@attack(_KIND, "JSON nested 900 to 100,000 deep, in errors and in answers, then going on")
def _deep() -> Iterator[Trial]:
    for depth in (900, 930, 960, 974, 990, 5000, 100_000):
        nested = b'{"a":' * depth + b"1" + b"}" * depth
        body = b'{"error":{"message":"no","detail":' + nested + b"}}"
        start = b"HTTP/1.1 400 No\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
        yield f"error, {depth}", _asked(_sending(start + body), 3, 4, 5)
    for depth in (900, 960, 974, 990, 20_000):
        arguments = '{"a":' * depth + "1" + "}" * depth
        for dialect in ("openai-chat", "anthropic"):
            with home() as place:
                with Server(calling(dialect, [("read", arguments)])) as server:
                    ran = place.ask(dialect, server.url, "--tools", "read", "q")
                    problem = crash_of(ran, 0, 3, 4, 5)
                yield f"{dialect}, arguments, {depth}", problem or _goes_on(place, dialect)


_NAMES = (
    "",
    "read file",
    "functions.read",
    "read<|channel|>commentary",
    "\x00",
    "ü",
    "a" * 300,
    "�",
)
_ARGUMENTS = (
    *("", "null", "[1]", '"x"', "NaN", '{"path":', "{'path': 'a'}", '{"a":1}{"b":2}'),
    *("```json\n{}\n```", '{"a":NaN}', "\x00", "{" * 2000),
)


@attack(_KIND, "tool calls with impossible names and arguments; the next requests are legal")
def _odd_calls() -> Iterator[Trial]:
    forms = [(name, "{}") for name in _NAMES] + [("read", given) for given in _ARGUMENTS]
    for dialect in all_dialects():
        for form in forms:
            with home() as place, Server(calling(dialect, [form])) as server:
                ran = place.ask(dialect, server.url, "--tools", "read", "q")
                problem = crash_of(ran, 0, 4)
                wrong = next(filter(None, map(_malformed, server.bodies[1:])), None)
                yield f"{dialect}, {form[0][:20]!r} {form[1][:20]!r}", problem or wrong


@attack(_KIND, "a call cut at the token limit, then the next question")
def _cut_call() -> Iterator[Trial]:
    for dialect in all_dialects():
        call = ToolCallDelta(0, "c", "write", '{"path":"a","content":"hal')
        with home() as place:
            with Server(saying(dialect, call, finish="length")) as server:
                ran = place.ask(dialect, server.url, "--tools", "all", "--yes", "q")
                problem = crash_of(ran, 0, 4)
            yield dialect, problem or _goes_on(place, dialect)


@attack(_KIND, "values of wrong types, NaN, NUL, half characters, in every field")
def _odd_values() -> Iterator[Trial]:
    odd = ("null", "[]", "{}", "1e999", "NaN", "true", '"\\ud800"', '"\\u0000"', "[[[]]]", "-1")
    for dialect in all_dialects():
        stream = b"".join(good(dialect))
        for number, value in enumerate(odd):
            body, count = _VALUE.subn(value.encode().replace(b"\\", b"\\\\"), stream)
            with home() as place, Server(_sending(head(dialect) + body)) as server:
                ran = place.ask(dialect, server.url)
                problem = crash_of(ran, 0, 3, 4, 5) if count else "nothing was replaced"
                yield f"{dialect}, {number}", problem


@attack(_KIND, "hostile error texts: 40,000 titles, retry times, patterns")
def _error_texts() -> Iterator[Trial]:
    page = b"HTTP/1.1 500 X\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"
    no = b"HTTP/1.1 400 X\r\nConnection: close\r\n%s\r\n"
    forms = {
        "titles": page.replace(b"500", b"400") + b"<title" * 40_000,
        "retry never": no % b"Retry-After: 99999999999\r\n",
        "retry before": no % b"Retry-After: -5\r\n",
        "retry in words": no % b"Retry-After: soon\r\n",
        "maximum": no % b""
        + b'{"error":{"message":"'
        + b"maximum context length is " * 9000
        + b'"}}',
        "blanks": no % b"" + b'{"error":{"message":"' + b" " * 200_000 + b'x"}}',
    }
    for form, answer in forms.items():
        yield form, _asked(_sending(answer), 3, 4, 5)


@attack(_KIND, "100,000 unreadable frames")
def _unreadable() -> Iterator[Trial]:
    for frame in (b"data: {oops\n\n", b"data: [}\n\n"):
        with home() as place, Server(_sending(head("openai-chat"), frame * 100_000)) as server:
            ran = place.ask("openai-chat", server.url)
            lines = len(ran.err.splitlines())
            yield frame.decode(), crash_of(ran) or (f"{lines} lines" if lines > 100 else None)


@attack(_KIND, "endpoint repeats the key in errors and headers")
def _echoed() -> Iterator[Trial]:
    forms = [
        b'HTTP/1.1 401 No\r\nX-Key: %s\r\nConnection: close\r\n\r\n{"error":{"message":"%s"}}',
        b"HTTP/1.1 500 %s\r\nConnection: close\r\n\r\n<title>%s</title>",
        b"HTTP/1.1 302 X\r\nLocation: https://x.example/%s\r\nX: %s\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 400 X\r\nRetry-After: %s\r\nConnection: close\r\n\r\n%s",
    ]
    for number, form in enumerate(forms):
        with home() as place, Server(_sending(form % (KEY.encode(), KEY.encode()))) as server:
            for words in (("q",), ("--json", "q"), ("--stream-json", "q")):
                ran = place.ask("openai-chat", server.url, *words, DEBUG="1")
                told = "the key is told" if KEY in ran.said else None
                yield f"{number}, {words[0]}", crash_of(ran) or told
