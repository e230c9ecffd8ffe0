"""Hostile clients and upstreams, over raw sockets to a served gateway.

Whatever they send is refused or bounded, nothing of anybody else's is told, and the next request is
answered.
"""

from __future__ import annotations

import gzip
import json
import re
import socket
import zlib
from base64 import b64encode
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import tried
from gateway.conftest import SECRET, serving
from mull.gateway import job
from mull.gateway.envelope import Envelopes, Sealed
from mull.gateway.http import MOST_BODY, check_head, head_of
from mull.gateway.tokens import ClientToken, hashed
from mull.gateway.watching import Watch
from mull.neutral.blocks import ThinkingBlock
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Origin
from mull.store.serve import ServedModel
from mull.testing import CUT, Reply, ScriptedServer

KEY = "sk-upstream-0123456789abcdef-SECRET"
ANN, BOB = "mull-" + "a" * 40, "mull-" + "b" * 40
QUESTION = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
BODY = json.dumps(QUESTION).encode()
CHUNKED = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
LENGTH = b"Content-Length: %d" % len(BODY)
HOST = b"Host: localhost"
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")


def chunk(text, reason=None):
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]}


def good(_=None):
    return Reply.events(chunk("Milk.", "stop"), "[DONE]")


class World:
    """A gateway with two clients, and its upstream, which answers as `reply` says."""

    def __init__(self):
        self.reply = good
        self.upstream = ScriptedServer(lambda request: self.reply(request))
        self.url = ""

    def raw(self, data: bytes, *, half: bool = False) -> bytes:
        """All that is answered to these bytes, until the connection is closed."""
        port = int(self.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as one:
            try:
                one.sendall(data)
                if half:
                    one.shutdown(socket.SHUT_WR)
            except OSError:  # refused before all of it was read
                pass
            heard = bytearray()
            try:
                while piece := one.recv(1 << 16):
                    heard += piece
            except ConnectionError:
                pass
        for secret in (KEY, ANN, BOB):
            assert secret.encode() not in heard
        return bytes(heard)

    def send(self, *lines: bytes, line=b"POST /v1/chat/completions HTTP/1.1", body=BODY, who=ANN):
        shown = b"Authorization: Bearer " + who.encode()
        head = b"\r\n".join((line, shown, b"Connection: close", *lines))
        return self.raw(head + b"\r\n\r\n" + body)

    def post(self, body, path="/v1/chat/completions", who=ANN, method="POST", more=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        line = f"{method} {path} HTTP/1.1".encode("latin-1")
        length = b"Content-Length: %d" % len(data)
        return self.send(HOST, length, *more, line=line, body=data, who=who)


@pytest.fixture(scope="module")
def served():
    tokens = tuple(ClientToken(name, hashed(one)) for name, one in (("ann", ANN), ("bob", BOB)))
    world = World()
    with pytest.MonkeyPatch.context() as patch, world.upstream:
        patch.setenv("HOSTILE_KEY", KEY)
        model = ServedModel(
            "moonshotai/kimi-k2.5", base_url=world.upstream.url, key_env="HOSTILE_KEY"
        )
        with serving({"m": model}, watch=Watch(), tokens=tokens) as world.url:
            yield world


@pytest.fixture
def world(served):
    """The world, which is as good as before when the test is over."""
    served.reply = good
    before = len(served.upstream.requests)
    yield served
    served.reply = good
    assert b"Milk." in served.post(BODY)
    for request in served.upstream.requests[before:]:
        told = f"{request.path}{request.headers}{request.body!r}"
        assert ANN not in told
        assert BOB not in told
        assert request.headers["authorization"] == f"Bearer {KEY}"


def status_of(answer: bytes) -> int:
    found = STATUS.match(answer)
    assert found, answer[:200]
    return int(found[1])


HEADS = {
    "two lengths": (400, (HOST, LENGTH, b"Content-Length: 5")),
    "a list of lengths": (400, (HOST, LENGTH + b", 5")),
    "a signed length": (400, (HOST, b"Content-Length: +5")),
    "an endless length": (400, (HOST, b"Content-Length: " + b"9" * 30)),
    "too large a length": (413, (HOST, b"Content-Length: %d" % (MOST_BODY + 1))),
    "chunks, then identity": (400, (HOST, b"Transfer-Encoding: chunked, identity")),
    "identity, then chunks": (400, (HOST, b"Transfer-Encoding: identity, chunked")),
    "packed chunks": (400, (HOST, b"Transfer-Encoding: gzip, chunked")),
    "two codings": (400, (HOST, b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked")),
    "a blank before the colon": (400, (HOST, b"Transfer-Encoding : chunked")),
    "a folded line": (400, (HOST, LENGTH, b"X-A: a\r\n b")),
    "NUL in a header": (400, (HOST, LENGTH, b"X-A: a\0b")),
    "a bare CR": (400, (HOST, b"X-A: a\rContent-Length: 5", LENGTH)),
    "no host": (403, (LENGTH,)),
    "a foreign host": (403, (b"Host: evil.example", LENGTH)),
    "a foreign host first": (400, (b"Host: evil.example", HOST, LENGTH)),
    "a foreign host last": (400, (HOST, b"Host: evil.example", LENGTH)),
    "userinfo in the host": (403, (b"Host: localhost@evil.example", LENGTH)),
    "two names in a host": (403, (b"Host: localhost,evil.example", LENGTH)),
    "a number for a host": (403, (b"Host: 2130706433", LENGTH)),
    "a foreign page": (403, (HOST, LENGTH, b"Origin: http://evil.example")),
    "no page": (403, (HOST, LENGTH, b"Origin: null")),
    "two tokens": (400, (HOST, LENGTH, b"Authorization: Bearer x")),
    "too many headers": (431, (HOST, *(b"X-%d: a" % at for at in range(300)))),
}
CHUNKS = {
    "a size beyond all numbers": b"f" * 20 + b"\r\n" + BODY,
    "a size with a sign": b"-1\r\n" + BODY,
    "a size with a prefix": b"0x%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY),
    "an endless extension": b"%x;" % len(BODY) + b"a" * 17_000 + b"\r\n" + BODY,
    "a line end in an extension": b"%x;a\nb\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_head_that_can_be_read_in_two_ways_is_refused(world, name):
    status, lines = HEADS[name]
    before = len(world.upstream.requests)
    chunked = any(b"chunked" in line for line in lines)
    answer = world.send(*lines, body=CHUNKED if chunked else BODY)
    assert status_of(answer) == status
    assert len(STATUS.findall(answer)) == 1  # what follows is no second request
    assert len(world.upstream.requests) == before


def test_with_a_length_and_chunks_nothing_follows_the_request(world):
    """The server below reads the chunks, as HTTP has it, and closes the connection."""
    shown = b"Authorization: Bearer " + ANN.encode()
    framing = (b"Content-Length: 5", b"Transfer-Encoding: chunked")
    for order in (framing, framing[::-1]):
        lines = (b"POST /v1/chat/completions HTTP/1.1", HOST, shown, *order, b"", CHUNKED)
        second = b"\r\n".join((b"GET /health HTTP/1.1", HOST, shown, b"", b""))
        assert len(STATUS.findall(world.raw(b"\r\n".join(lines) + second))) == 1


@pytest.mark.parametrize(
    "pairs",
    [
        [(b"content-length", b"5"), (b"transfer-encoding", b"chunked")],
        [(b"Content-Length", b"5"), (b"content-length", b"5")],
        [(b"Host", b"localhost"), (b"host", b"localhost")],
        [(b"transfer-encoding", b"chunked, chunked")],
    ],
)
def test_other_servers_may_leave_the_head_to_the_application(pairs):
    scope = {"headers": pairs}
    with pytest.raises(ConfigError):
        check_head(scope, head_of(scope))


@pytest.mark.parametrize("name", CHUNKS)
def test_broken_chunks_are_refused(world, name):
    answer = world.send(HOST, b"Transfer-Encoding: chunked", body=CHUNKS[name])
    assert status_of(answer) == 400
    assert b'"invalid_request_error"' in answer


@pytest.mark.parametrize("framing", [b"Content-Length: 999", b"Transfer-Encoding: chunked"])
def test_half_a_request_goes_nowhere(world, framing):
    before = len(world.upstream.requests)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer " + ANN.encode()
    sent = b"\r\n".join((head, HOST, framing, b"", CHUNKED[:-7]))
    assert b" 200 " not in world.raw(sent, half=True)
    assert len(world.upstream.requests) == before


PATHS = {
    "//v1/models": 404,
    "/v1//models": 404,
    "/v1/../v1/models": 404,
    "/%2576%2531/models": 404,
    "/v1/models/..%2f..%2fhealth": 404,
    "/v1/models/%00": 404,
    "/v1/models/a%0d%0aX-Evil:%20b": 404,
    "/v1/models/%ff": 404,
    "/v1/models/http:%2F%2F169.254.169.254%2Fx": 404,
    "/v1/models/openai-compatible%2Fx": 404,
    "/v1/responses/..%2F..%2Fhealth": 404,
    "/" + "a" * 60_000: 404,
    "http://evil.example/nothing": 404,
    "*": 404,
}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:40])
def test_a_path_leads_nowhere_else(world, path):
    answer = world.post(b"", path, method="GET")
    assert status_of(answer) == PATHS[path]
    assert b"\r\nX-Evil" not in answer


@pytest.mark.parametrize(
    ("line", "lines", "status"),
    [
        (b"GET http://evil.example/v1/models HTTP/1.1", (), 403),
        (b"GET http://evil.example/v1/models HTTP/1.0", (), 403),
        (b"GET http://localhost@evil.example/v1/models HTTP/1.1", (), 403),
        (b"GET http://evil.example/v1/models HTTP/1.1", (b"Host: evil.example",), 403),
        (b"GET http://localhost/v1/models HTTP/1.1", (b"Host: evil.example",), 403),
        (b"GET http://localhost/v1/models HTTP/1.1", (HOST,), 200),
    ],
)
def test_an_address_in_the_request_line_is_checked_as_the_host(world, line, lines, status):
    answer = world.send(*lines, line=line, body=b"")
    assert status_of(answer) == status
    assert (b'"m"' in answer) == (status == 200)


@pytest.mark.parametrize("method", ["TRACE", "POST", "PUT", "CONNECT", "OPTIONS", "X" * 500])
@pytest.mark.parametrize("path", ["/", "/health", "/watch/requests"])
def test_pages_are_only_read(world, method, path):
    assert status_of(world.post(b"", path, method=method)) == 405


def said(text: bytes) -> bytes:
    return b'{"model":"m","messages":[{"role":"user","content":' + text + b"}]}"


PACKED = gzip.compress(BODY)
BODIES = {
    "invalid UTF-8": (400, said(b'"\xff"'), b""),
    "an encoded surrogate": (400, said(b'"\xed\xa0\x80"'), b""),
    "a lone surrogate": (400, said(b'"\\ud800"'), b""),
    "NaN": (400, said(b"NaN"), b""),
    "a number beyond all bounds": (400, said(b"1e999"), b""),
    "a long number": (400, said(b"9" * 5_000), b""),
    "too deep": (400, said(b"[" * 100_000), b""),
    "nothing": (400, b"", b""),
    "null": (400, b"null", b""),
    "UTF-16": (400, BODY.decode().encode("utf-16"), b""),
    "a bomb": (413, gzip.compress(bytes(MOST_BODY + 1)), b"gzip"),
    "packed, cut": (400, PACKED[:-6], b"gzip"),
    "packed, and more": (400, PACKED + BODY, b"gzip"),
    "packed twice": (400, gzip.compress(PACKED), b"gzip, gzip"),
    "packed otherwise": (400, zlib.compress(BODY)[2:-4], b"deflate"),
    "not packed": (400, BODY, b"gzip"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_cannot_be_read_is_refused_in_the_dialects_shape(world, name):
    status, body, packing = BODIES[name]
    more = (b"Content-Encoding: " + packing,) if packing else ()
    for path in ("/v1/chat/completions", "/v1/messages", "/v1/responses"):
        answer = world.post(body, path, more=more)
        assert status_of(answer) == status
        assert "error" in json.loads(answer.partition(b"\r\n\r\n")[2])


def test_no_request_names_an_address_and_mull_fetches_nothing(world):
    lure = world.upstream.url + "/lure"
    image = {"type": "image_url", "image_url": {"url": lure}}
    asked = [{"role": "user", "content": [image, {"type": "text", "text": "q"}]}]
    more = {"base_url": lure, "api_base": lure, "extra_headers": {"X-Evil": "1"}}
    tool = {"type": "mcp", "server_label": "a", "server_url": lure, "require_approval": "never"}
    read = {"role": "user", "content": [{"type": "input_image", "image_url": lure}]}
    source = {"type": "image", "source": {"type": "url", "url": lure}}
    part = {"fileData": {"fileUri": lure, "mimeType": "image/png"}}
    bodies = {
        "/v1/chat/completions": {**QUESTION, "messages": asked, **more},
        "/v1/responses": {"model": "m", "input": [read], "tools": [tool]},
        "/v1/messages": {
            "model": "m",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": [source]}],
            "mcp_servers": [{"type": "url", "url": lure, "name": "a"}],
        },
        "/v1beta/models/m:generateContent": {"contents": [{"role": "user", "parts": [part]}]},
    }
    for path, body in bodies.items():
        world.post(body, path)
    for name in ("openai-compatible/x", lure, f"m/{lure}", "../m", "m\r\nX-Evil: 1"):
        assert status_of(world.post({**QUESTION, "model": name})) == 404
    assert not [one for one in world.upstream.requests if "lure" in one.path]
    assert not [one for one in world.upstream.requests if "x-evil" in one.headers]


def raw(*steps):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    return Reply(raw=(head, *steps, CUT))


def event(value) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


REFUSED = {"message": f"bad key {KEY}", "code": KEY}
ESCAPED = "".join(f"\\u{ord(one):04x}" for one in KEY).encode()
UPSTREAMS = {
    "garbage": (502, Reply(raw=(b"\x00\xff" * 500, CUT))),
    "a garbled stream": (502, raw(b"\xff\xfe\x00\n\n" * 9)),
    "a redirect": (502, Reply(307, {"location": "http://169.254.169.254/"})),
    "a web page": (502, Reply(200, {"content-type": "text/html"}, (KEY.encode(),))),
    "no status of HTTP": (502, Reply(raw=(b"HTTP/1.1 999 X\r\nConnection: close\r\n\r\n{}", CUT))),
    "the key in a refusal": (401, Reply.json({"error": REFUSED}, 401)),
    "the key, escaped": (400, Reply(400, {}, (b'{"error":{"message":"' + ESCAPED + b'"}}',))),
    "the key in headers": (429, Reply.json({"error": {}}, 429, {"retry-after": KEY, "x-a": KEY})),
    "odd bytes in headers": (429, Reply.json({"error": {}}, 429, {"retry-after-ms": "\xff"})),
    "an error in the stream": (502, raw(event({"error": REFUSED}))),
    "an error after a part": (502, raw(event(chunk("Mi")), event({"error": REFUSED}))),
    "an end after a part": (502, raw(event(chunk("Mi")))),
    "a head without end": (502, Reply(raw=(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000, CUT))),
}


@pytest.mark.parametrize("name", UPSTREAMS)
def test_a_hostile_upstream_is_told_as_an_error_without_its_secrets(world, name):
    status, reply = UPSTREAMS[name]
    world.reply = lambda _: reply
    answer = world.post(BODY)
    assert status_of(answer) == status
    head, _, body = answer.partition(b"\r\n\r\n")
    assert "error" in json.loads(body)
    assert b"***" not in head
    head.decode("ascii")
    streamed = world.post({**QUESTION, "stream": True})
    assert b'"error"' in streamed
    assert b"[DONE]" not in streamed


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_without_end_is_ended(world, monkeypatch, stream):
    monkeypatch.setattr(job, "MOST_ANSWER", 100_000)
    pieces = [event(chunk("a" * 9_000))] * 2_000
    world.reply = lambda _: raw(*pieces)
    answer = world.post({**QUESTION, "stream": stream})
    assert b"exceeds the limit" in answer
    assert len(answer) < 300_000


def test_one_client_sees_nothing_of_another(world):
    marked = {"model": "m", "input": "what only ann knows"}
    answer = world.post(marked, "/v1/responses")
    name = json.loads(answer.partition(b"\r\n\r\n")[2])["id"]
    at = f"/v1/responses/{name}"
    rows = [
        ("GET", at, b""),
        ("GET", f"{at}/input_items", b""),
        ("DELETE", at, b""),
        ("POST", f"{at}/cancel", b""),
        ("POST", "/v1/responses", {"model": "m", "input": "q", "previous_response_id": name}),
        ("GET", "/watch/requests", b""),
        ("GET", "/watch/search?q=ann", b""),
        *(("GET", f"/watch/request?id={number}", b"") for number in range(1, 200)),
    ]
    before = len(world.upstream.requests)
    for method, path, body in rows:
        heard = world.post(body, path, BOB, method)
        assert b"only ann" not in heard
        assert b'"ann"' not in heard
        if "/v1/responses" in path:
            assert status_of(heard) in (400, 404)
    assert b"only ann" in world.post(b"", f"{at}/input_items", ANN, "GET")
    assert len(world.upstream.requests) == before


ORIGIN = Origin("anthropic", "anthropic", "claude-sonnet-4-5")
SEALED = Sealed(ORIGIN, {0: ThinkingBlock("Only theirs.", signature="theirs")})


@cache
def forged() -> dict[str, str]:
    ours = Envelopes(SECRET).seal("bob", SEALED)
    other = Envelopes(b"x" * 32).seal("ann", SEALED)
    assert ours
    assert other
    bomb = zlib.compress(bytes(50_000_000))
    return {
        "of another client": ours,
        "of another key": other,
        "cut": ours[:-8],
        "altered": ours[:40] + ("A" if ours[40] != "A" else "B") + ours[41:],
        "a bomb": b64encode(b"mull1." + bytes(16) + bomb).decode(),
        "the mark alone": b64encode(b"mull1.").decode(),
        "no base64": ours[:8] + "\u00e9*" * 50,
    }


@pytest.mark.parametrize("name", forged())
def test_a_forged_envelope_is_never_opened_and_never_goes_out(world, name):
    carrier = forged()[name]
    block = {"type": "thinking", "thinking": "Mine.", "signature": carrier}
    said = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [block, {"type": "text", "text": "a"}]},
        {"role": "user", "content": "r"},
    ]
    answer = world.post({"model": "m", "max_tokens": 9, "messages": said}, "/v1/messages")
    assert status_of(answer) == 200
    sent = world.upstream.requests[-1].body.decode()
    assert "theirs" not in sent.lower()
    assert carrier not in sent


@given(st.binary(max_size=200), st.sampled_from(["ann", "bob", ""]), st.integers(0, 200))
@tried(0.5)
def test_nothing_but_what_was_sealed_is_opened(noise, scope, at):
    envelopes = Envelopes(SECRET)
    sealed = envelopes.seal("ann", SEALED)
    assert sealed is not None
    assert envelopes.open(scope, b64encode(b"mull1." + noise).decode()) is None
    spoilt = sealed[:at] + noise.hex() + sealed[at + 1 :]
    if spoilt != sealed:
        assert envelopes.open("ann", spoilt) is None
    assert (envelopes.open(scope, sealed) == SEALED) is (scope == "ann")
