"""Servers at an address, over streamable HTTP: an older one that keeps sessions, on loopback."""

import gzip
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mcp_servers import serving
from mull.agent.mcp import bodies
from mull.agent.mcp import server as one_server
from mull.neutral.blocks import ToolResultBlock
from mull.store.mcp import McpConfig
from ports import closed_port

TOOLS = ["echo", "forget", "flood", "flood_events", "refuse", "break", "error", "raw", "packed"]
BOMB = gzip.compress(bytes(60_000_000))


class Address(ThreadingHTTPServer):
    """Speaks the protocol of 2025-06-18; `mode` makes it something else altogether."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.mode = ""
        self.sessions = 0
        self.heads = []
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def send(self, status, body=b"", kind="application/json", **heads):
        self.send_response(status)
        for name, text in {"Content-Type": kind, "Content-Length": len(body), **heads}.items():
            self.send_header(name.replace("_", "-"), str(text))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send(405)

    do_DELETE = do_GET

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.heads.append({name.lower(): text for name, text in self.headers.items()})
        if self.server.mode == "locked":
            return self.send(401)
        if self.server.mode == "page":
            return self.send(200, b"<html>", "text/html")
        if "id" not in request:
            return self.send(202)
        return getattr(self, request["method"].replace("/", "_"), self.unknown)(request)

    def unknown(self, request):
        error = {"code": -32601, "message": f"no {request['method']}"}
        self.send(200, json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode())

    def result(self, request, result, **heads):
        body = {"jsonrpc": "2.0", "id": request["id"], "result": result}
        self.send(200, json.dumps(body).encode(), **heads)

    def initialize(self, request):
        self.server.sessions += 1
        result = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "address", "version": "1"},
        }
        self.result(request, result, Mcp_Session_Id=f"session-{self.server.sessions}")

    def tools_list(self, request):
        schema = {"type": "object"}
        self.result(request, {"tools": [{"name": n, "inputSchema": schema} for n in TOOLS]})

    def tools_call(self, request):
        name = request["params"]["name"]
        if name == "forget":
            self.server.sessions += 1
            status, text = request["params"]["arguments"]["said"]
            return self.send(status, json.dumps(text).encode())
        if name == "refuse":
            return self.send(503)
        if name == "error":
            code, message = request["params"]["arguments"]["said"]
            answer = {"id": request["id"], "error": {"code": code, "message": message}}
            return self.send(200, json.dumps({"jsonrpc": "2.0", **answer}).encode())
        if name == "raw":
            body, kind = request["params"]["arguments"]["said"]
            return self.send(200, body.replace("ID", str(request["id"])).encode(), kind)
        if name == "packed":
            kind, encoding = request["params"]["arguments"]["said"]
            result = {"content": [{"type": "text", "text": "small"}]}
            plain = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()
            body = {"bomb": BOMB, "small": gzip.compress(plain), "torn": b"\x1f\x8bno"}[kind]
            return self.send(200, body, Content_Encoding=encoding)
        if name == "break":
            self.close_connection = True
            return self.connection.shutdown(socket.SHUT_RDWR)
        if name == "flood_events":
            return self.send(200, b"data: " + b"x" * 17_000_000 + b"\n\n", "text/event-stream")
        said = "x" * 17_000_000 if name == "flood" else str(request["params"]["arguments"])
        return self.result(request, {"content": [{"type": "text", "text": said}]})


@pytest.fixture
def address(monkeypatch):
    monkeypatch.setattr(one_server, "PAUSES", (0.0, 0.0, 0.0))
    server = Address()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def failed(output):
    return ToolResultBlock("call_1", output, is_error=True)


def test_headers_are_filled_in_and_sent_without_a_proxy(address, tmp_path, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    config = McpConfig(url=f"{address.url}?key=$KEY", headers={"Authorization": "Bearer $TOKEN"})
    environ = {"TOKEN": "0123456789", "KEY": "abcdefghij"}

    async def body(servers):
        return await servers.call("mcp__a__echo", said="my 0123456789 and abcdefghij"), servers

    answered, servers = serving({"a": config}, tmp_path, body, environ)
    assert answered.output == "{'said': 'my *** and ***'}"
    assert {head["authorization"] for head in address.heads} == {"Bearer 0123456789"}
    assert {head["accept-encoding"] for head in address.heads} == {"identity"}
    assert servers.states("a") == ["ready", "stopped"]


ERROR = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "No valid session ID"}}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ((404, ""), "404 Not Found"),
        ((400, {"error": "no id, so no error of the protocol"}), "400 Bad Request"),
        ((400, ERROR), "400 Bad Request"),
    ],
)
def test_an_address_that_forgot_the_session_is_asked_for_a_new_one(address, tmp_path, said, reason):
    async def body(servers):
        lost = await servers.call("mcp__a__forget", said=said)
        return lost, await servers.call("mcp__a__echo", n=1), servers

    lost, found, servers = serving({"a": McpConfig(url=address.url)}, tmp_path, body)
    assert lost == failed("the server a ended and was restarted: try again")
    assert found == ToolResultBlock("call_1", "{'n': 1}")
    assert servers.states("a") == ["ready", "restarting", "ready", "stopped"]
    assert servers.told[1].reason == f"{address.url} answered {reason}"


def test_a_broken_connection_is_made_anew(address, tmp_path):
    async def body(servers):
        lost, found = await servers.call("mcp__a__break"), await servers.call("mcp__a__echo", n=1)
        return lost, found, servers

    lost, found, servers = serving({"a": McpConfig(url=address.url)}, tmp_path, body)
    assert lost == failed("the server a ended and was restarted: try again")
    assert found == ToolResultBlock("call_1", "{'n': 1}")
    assert servers.told[1].reason == (
        f"cannot reach {address.url}: Server disconnected without sending a response."
    )


@pytest.mark.parametrize("name", ["flood", "flood_events"])
def test_a_flood_is_not_read_and_the_connection_stays(address, tmp_path, name):
    async def body(servers):
        flood = await servers.call(f"mcp__a__{name}")
        return flood, await servers.call("mcp__a__echo", n=1), servers

    flood, after, servers = serving({"a": McpConfig(url=address.url)}, tmp_path, body)
    assert flood == failed("the response has more than 16 MiB and was not read: ask for less")
    assert after == ToolResultBlock("call_1", "{'n': 1}")
    assert servers.states("a") == ["ready", "stopped"]


@pytest.mark.parametrize("code", [-32000, -32001, -32603, 5])
def test_an_error_of_the_servers_own_is_told_and_the_connection_stays(address, tmp_path, code):
    async def body(servers):
        refused = await servers.call("mcp__a__error", said=(code, "Connection closed"))
        return refused, await servers.call("mcp__a__echo", n=1), servers

    refused, after, servers = serving({"a": McpConfig(url=address.url)}, tmp_path, body)
    assert refused == failed("Connection closed")
    assert after == ToolResultBlock("call_1", "{'n': 1}")
    assert servers.states("a") == ["ready", "stopped"]
    assert address.sessions == 1


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize(
    "body",
    [
        '{"jsonrpc":"2.0","id":ID,"result":"text"}',
        '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"\\ud800"}]}}',
        '{"jsonrpc":"2.0","id":ID,"result":',
    ],
)
def test_an_answer_that_cannot_be_read_fails_its_call_at_once(address, tmp_path, body, kind):
    async def asked(servers):
        said = body if kind == "application/json" else f"data: {body}\n\n"
        broken = await servers.call("mcp__a__raw", said=(said, kind))
        return broken, await servers.call("mcp__a__echo", n=1), servers

    config = McpConfig(url=address.url, timeout=3600)
    broken, after, servers = serving({"a": config}, tmp_path, asked)
    assert broken.is_error
    assert "Failed to parse" in broken.output
    assert after == ToolResultBlock("call_1", "{'n': 1}")
    assert servers.states("a") == ["ready", "stopped"]


@pytest.mark.parametrize(
    ("kind", "encoding", "output"),
    [
        ("small", "gzip", "small"),
        ("bomb", "gzip", "the response has more than 16 MiB and was not read: ask for less"),
        ("torn", "gzip", "cannot be decompressed"),
        ("small", "br", "the response is compressed as br"),
        ("small", "gzip, gzip", "the response is compressed as gzip, gzip"),
    ],
)
def test_a_compressed_answer_is_opened_within_the_limit(
    address, tmp_path, monkeypatch, kind, encoding, output
):
    largest = []
    opened = bodies._unpacked

    def watched():
        unpack = opened()
        return lambda piece: (largest.append(len(part)) or part for part in unpack(piece))

    monkeypatch.setattr(bodies, "_unpacked", watched)

    async def body(servers):
        return await servers.call("mcp__a__packed", said=(kind, encoding))

    answered = serving({"a": McpConfig(url=address.url)}, tmp_path, body)
    assert output in answered.output
    assert max(largest, default=0) <= 64 * 1024
    assert sum(largest) <= 16 * 1024 * 1024 + 64 * 1024


def test_a_refusal_is_told_with_its_status(address, tmp_path):
    async def body(servers):
        refused = await servers.call("mcp__a__refuse")
        return refused, await servers.call("mcp__a__echo", n=1)

    refused, after = serving({"a": McpConfig(url=address.url)}, tmp_path, body)
    assert refused == failed(f"{address.url} answered 503 Service Unavailable")
    assert after == ToolResultBlock("call_1", "{'n': 1}")


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("locked", "{url} answered 401 Unauthorized: log in with `mull mcp login a`"),
        ("page", "Unexpected content type: text/html"),
    ],
)
def test_what_is_no_server_of_tools_fails_with_its_reason(address, tmp_path, mode, reason):
    address.mode = mode

    async def body(servers):
        return servers.statuses[0]

    status = serving({"a": McpConfig(url=address.url)}, tmp_path, body)
    assert (status.state, status.reason) == ("failed", reason.format(url=address.url))


def test_an_address_where_nobody_is(address, tmp_path):
    async def body(servers):
        return servers.statuses[0]

    url = f"http://127.0.0.1:{closed_port()}/mcp"
    status = serving({"a": McpConfig(url=f"{url}?secret=1")}, tmp_path, body)
    assert status.reason == f"cannot reach {url}: All connection attempts failed"


def test_a_key_that_is_no_longer_taken_is_told_of(address, tmp_path):
    async def body(servers):
        address.mode = "locked"
        return await servers.call("mcp__a__echo"), servers.statuses[0].state

    answered, state = serving({"a": McpConfig(url=address.url)}, tmp_path, body)
    assert answered == failed(
        f"{address.url} answered 401 Unauthorized: log in with `mull mcp login a`"
    )
    assert state == "ready"
