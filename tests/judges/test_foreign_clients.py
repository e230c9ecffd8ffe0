"""Requests over the real httpx, httpx2 and aiohttp: what goes out, what comes back, how it ends."""

from __future__ import annotations

import asyncio
import ssl
import zlib
from contextlib import asynccontextmanager, suppress

import pytest

pytestmark = pytest.mark.slow
httpx = pytest.importorskip("httpx")
httpx2 = pytest.importorskip("httpx2")
aiohttp = pytest.importorskip("aiohttp")
aiohttp_socks = pytest.importorskip("aiohttp_socks")
trustme = pytest.importorskip("trustme")

import mull  # noqa: E402
from loops import run_moved, until  # noqa: E402
from mull.client.foreign import client_over  # noqa: E402
from mull.client.transport import HttpRequest  # noqa: E402
from mull.neutral.errors import (  # noqa: E402
    ConfigError,
    LocalError,
    NetworkError,
    SilenceError,
    UnusableError,
)
from mull.testing.server import CUT, STALL, Gate, Reply, ScriptedServer  # noqa: E402

YES = b'data: {"choices":[{"index":0,"delta":{"content":"yes"}}]}\n\n'
WHOLE = YES + b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
EVENTS = {"content-type": "text/event-stream"}
LIBRARIES = {"httpx": httpx, "httpx2": httpx2}


@pytest.fixture(params=["httpx", "httpx2", "aiohttp"])
def kind(request):
    return request.param


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def created(kind, *, verify=None, proxy=None, timeout=None, cert=None, **options):
    """A client of the library, in its own words."""
    if kind == "aiohttp":
        if verify is not None:
            options["connector"] = aiohttp.TCPConnector(ssl=verify)
        if timeout is not None:
            options["timeout"] = aiohttp.ClientTimeout(sock_read=timeout)
        return aiohttp.ClientSession(proxy=proxy, **options)
    given = {"verify": verify, "proxy": proxy, "timeout": timeout}
    given = {name: value for name, value in given.items() if value is not None}
    return LIBRARIES[kind].AsyncClient(**given, **options)


@asynccontextmanager
async def opened(kind, **options):
    async with created(kind, **options) as foreign:
        yield client_over(foreign)


def run(step, kind, **options):
    async def main():
        async with opened(kind, **options) as client:
            return await step(client)

    return asyncio.run(main())


def post(server, path="/v1/x", body=b"{}", **headers):
    return HttpRequest("POST", server.url + path, headers, body)


async def read_all(client, request, heard=None, **limits):
    heard = [] if heard is None else heard
    async with client.send(request, **limits) as answer:
        async for chunk in answer:
            heard.append(chunk)
    return heard


def test_the_request_arrives_as_given(kind):
    with ScriptedServer([Reply.json({"ok": True}, 201, {"X-Thing": "A"})]) as server:

        async def step(client):
            given = {"authorization": "Bearer k1", "content-type": "application/json"}
            path = "/v1/model/claude-v1%3A0/x%20y?a=b%2Fc"
            async with client.send(post(server, path, b'{"a":1}', **given)) as answer:
                assert (answer.status, answer.headers["x-thing"]) == (201, "A")
                return await answer.read(100)

        assert run(step, kind) == b'{"ok":true}'
    (got,) = server.requests
    assert (got.method, got.body) == ("POST", b'{"a":1}')
    assert got.path == "/v1/model/claude-v1%3A0/x%20y?a=b%2Fc"
    assert got.headers["authorization"] == "Bearer k1"
    assert got.headers["content-type"] == "application/json"
    assert got.headers["accept-encoding"] == "identity"
    assert got.headers["content-length"] == "7"
    assert got.headers["user-agent"].startswith("mull/")


def test_headers_of_the_client_are_sent_and_those_of_the_request_go_first(kind):
    own = {"user-agent": "corp", "x-team": "a", "authorization": "no"}
    with ScriptedServer([Reply.json(1)]) as server:
        run(lambda client: read_all(client, post(server, authorization="yes")), kind, headers=own)
    got = server.requests[0].headers
    assert (got["user-agent"], got["x-team"], got["authorization"]) == ("corp", "a", "yes")


def test_chunks_arrive_live_and_as_they_were_sent(kind):
    gates = [Gate(), Gate()]
    steps = (b"data: a\n\n", gates[0], b": ping\n\n", gates[1], b"x" * 100_000)
    with ScriptedServer([Reply(steps=steps)]) as server:

        async def step(client):
            got = b""
            async with client.send(post(server)) as answer:
                assert await anext(answer) == b"data: a\n\n"
                gates[0].open()  # only now: the first chunk was not held back
                assert await anext(answer) == b": ping\n\n"
                gates[1].open()
                async for chunk in answer:
                    got += chunk
            return got

        assert run(step, kind) == b"x" * 100_000


@pytest.mark.parametrize("reply", [Reply(steps=(b"x", STALL)), Reply(before=(STALL,))])
def test_cancelling_closes_the_socket_at_once(kind, reply):
    with ScriptedServer([reply]) as server:

        async def step(client):
            task = asyncio.create_task(read_all(client, post(server)))
            assert await asyncio.to_thread(server.wait_requests)
            task.cancel()
            assert await asyncio.to_thread(server.requests[0].wait_left)
            assert task.cancelled()

        run(step, kind)


def test_leaving_closes_the_socket_at_once(kind):
    with ScriptedServer([Reply(steps=(b"x", STALL))]) as server:

        async def step(client):
            async with client.send(post(server)) as answer:
                await anext(answer)
            assert await asyncio.to_thread(server.requests[0].wait_left)

        run(step, kind)


def test_connections_are_kept_although_nobody_reads_to_the_end(kind, monkeypatch):
    monkeypatch.setattr("mull.client.foreign.DRAIN_SECONDS", 30)
    reply = Reply(headers=EVENTS, steps=(WHOLE,))
    with ScriptedServer(lambda _: reply) as server:

        async def main():
            async with created(kind) as foreign:
                for _ in range(3):
                    given = {"base_url": server.url, "http_client": foreign}
                    result = await mull.ask_async("hi", "openai-compatible/m", **given)
                    assert result.text == "yes"

        asyncio.run(main())
    assert [request.connection for request in server.requests] == [0, 0, 0]


@pytest.mark.parametrize("where", ["before", "in the middle"])
def test_silence_is_noticed_at_the_stated_time_and_no_sooner(kind, where):
    reply = Reply(before=(STALL,)) if where == "before" else Reply(steps=(b"x", STALL))
    heard = []

    async def main(loop):
        async with opened(kind) as client:
            task = asyncio.create_task(read_all(client, post(server), heard, idle=600))
            assert await asyncio.to_thread(server.wait_requests)
            await until(lambda: len(heard) == (where != "before"))
            for _ in range(20):
                await loop.advance(29)  # the libraries' own limits are long over
                assert not task.done()
            await loop.advance(30)
            await asyncio.wait([task])
            return task.exception()

    with ScriptedServer([reply]) as server:
        error = run_moved(main)
        assert type(error) is SilenceError
        assert str(error) == f"127.0.0.1:{server.port} sent nothing for 10 min"
        assert server.requests[0].wait_left()


def test_a_timeout_that_was_set_applies(kind):
    async def main(loop):
        async with opened(kind, timeout=50) as client:
            task = asyncio.create_task(read_all(client, post(server), idle=600))
            assert await asyncio.to_thread(server.wait_requests)
            for _ in range(3):
                await loop.advance(0)
            assert not task.done()
            await loop.advance(51)
            await asyncio.wait([task], timeout=None)
            return task.exception()

    with ScriptedServer([Reply(before=(STALL,))]) as server:
        error = run_moved(main)
    assert type(error) is SilenceError
    assert "the timeout of the http_client" in str(error)


def test_redirects_are_not_followed(kind):
    with ScriptedServer(lambda _: Reply(302, {"location": "/elsewhere"})) as server:
        options = {"follow_redirects": True} if kind != "aiohttp" else {}

        async def step(client):
            async with client.send(post(server, authorization="Bearer k")) as answer:
                return answer.status, answer.headers["location"]

        assert run(step, kind, **options) == (302, "/elsewhere")
    assert len(server.requests) == 1


@pytest.mark.parametrize("wbits", [31, 15, -15])
def test_compressed_bodies(kind, wbits):
    squeeze = zlib.compressobj(wbits=wbits)
    body = squeeze.compress(WHOLE) + squeeze.flush()
    told = {"content-encoding": "gzip" if wbits == 31 else "deflate"}
    with ScriptedServer([Reply(headers=told, steps=(body,))]) as server:

        async def step(client):
            return b"".join(await read_all(client, post(server)))

        assert run(step, kind) == WHOLE


def ask(server, kind, url=None, **options):
    """Ask once through mull; the error, and the retries."""

    async def main():
        async with created(kind, **options) as foreign:
            limits = mull.ExchangeOptions(retry=mull.RetryRules(attempts=2, longest_wait=1))
            talk = mull.Conversation(
                "openai-compatible/m",
                base_url=url or server.url,
                key="sk-canary-key",
                http_client=foreign,
                limits=limits,
            )
            retries = []
            talk.subscribe(lambda e: retries.append(e) if isinstance(e, mull.Retrying) else None)
            try:
                return (await talk.ask_async("hi")).text, len(retries)
            except mull.MullError as error:
                return error, len(retries)

    answer, retries = asyncio.run(main())
    assert "canary" not in f"{answer}{getattr(answer, '__cause__', '')}"
    return answer, retries


def test_what_may_pass_is_tried_again_by_mull(kind):
    replies = [Reply.hang_up(), Reply(headers=EVENTS, steps=(WHOLE,))]
    with ScriptedServer(replies) as server:
        assert ask(server, kind) == ("yes", 1)
    assert len(server.requests) == 2
    with ScriptedServer([Reply.json({}, 503), Reply(headers=EVENTS, steps=(WHOLE,))]) as server:
        assert ask(server, kind) == ("yes", 1)


def test_an_error_status_is_mulls_to_explain(kind):
    options = {"raise_for_status": True} if kind == "aiohttp" else {}
    reply = Reply.json({"error": {"message": "no such model"}}, 404)
    with ScriptedServer([reply]) as server:
        error, retries = ask(server, kind, **options)
    assert isinstance(error, mull.RefusedError)
    assert (error.status, retries) == (404, 0)


def test_breaking_in_the_middle_keeps_what_came(kind):
    with ScriptedServer([Reply(headers=EVENTS, steps=(YES, CUT))]) as server:
        text, retries = ask(server, kind)
    assert (text, retries) == ("yes", 0)


def test_nobody_listens(kind):
    error, retries = ask(None, kind, "http://127.0.0.1:9/v1")
    assert (type(error), retries) == (NetworkError, 1)
    assert str(error) == "cannot connect to 127.0.0.1:9: connection refused\nTried 2 times"


def test_what_is_not_http(kind):
    with ScriptedServer(lambda _: Reply(before=(b"SSH-2.0-OpenSSH\r\n\r\n", CUT))) as server:
        error, _ = ask(server, kind)
    assert isinstance(error, NetworkError)
    assert str(error).startswith(f"the connection to 127.0.0.1:{server.port} broke: ")


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def tls(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost", "model.example").configure_cert(context)
    return context


@pytest.fixture
def trust(authority):
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def test_certificates_are_the_clients(kind, tls, trust):
    with ScriptedServer(lambda _: Reply(headers=EVENTS, steps=(WHOLE,)), tls=tls) as server:
        assert ask(server, kind, verify=trust) == ("yes", 0)
        error, retries = ask(server, kind)
    assert (type(error), retries) == (UnusableError, 0)
    assert str(error).startswith(f"cannot trust 127.0.0.1:{server.port}: ")


class Proxy:
    """CONNECT and SOCKS 5, joined to a port on loopback; the first bytes are written down."""

    def __init__(self, port, status=200):
        self.heads, self._port, self._status, self.serving = [], port, status, []

    def accept(self, reader, writer):
        self.serving.append(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader, writer):
        with suppress(OSError, asyncio.IncompleteReadError):
            first = await reader.readexactly(1)
            await (self._socks(reader, writer) if first == b"\5" else self._http(reader, writer))
        writer.close()

    async def _http(self, reader, writer):
        self.heads.append(b"C" + await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 %d x\r\n\r\n" % self._status)
        if self._status == 200:
            await self._join(reader, writer)

    async def _socks(self, reader, writer):
        await reader.readexactly((await reader.readexactly(1))[0])
        writer.write(b"\5\2")
        user = await reader.readexactly((await reader.readexactly(2))[1])
        password = await reader.readexactly((await reader.readexactly(1))[0])
        writer.write(b"\1\0")
        kind = (await reader.readexactly(4))[3]
        size = 4 if kind == 1 else (await reader.readexactly(1))[0]
        self.heads.append(user + b":" + password + b"@" + await reader.readexactly(size))
        await reader.readexactly(2)
        writer.write(b"\5\0\0\1\x7f\0\0\1\0\0")
        await self._join(reader, writer)

    async def _join(self, reader, writer):
        away, back = await asyncio.open_connection("127.0.0.1", self._port)
        await asyncio.gather(self._pipe(reader, back), self._pipe(away, writer))

    async def _pipe(self, source, sink):
        with suppress(OSError):
            while data := await source.read(65536):
                sink.write(data)
        sink.close()


def ask_through(proxy, kind, scheme, trust):
    async def main():
        async with await asyncio.start_server(proxy.accept, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            address = f"{scheme}://us:canary@127.0.0.1:{port}"
            if scheme == "http":
                foreign = created(kind, verify=trust, proxy=address)
            elif kind == "aiohttp":
                connector = aiohttp_socks.ProxyConnector.from_url(address, ssl=trust, rdns=True)
                foreign = aiohttp.ClientSession(connector=connector)
            else:
                foreign = created(kind, verify=trust, proxy=address)
            async with foreign:
                try:
                    result = await mull.ask_async(
                        "hi",
                        "openai-compatible/m",
                        base_url="https://model.example",
                        key="sk-canary-key",
                        http_client=foreign,
                        limits=mull.ExchangeOptions(retry=mull.RetryRules(attempts=1)),
                    )
                except mull.MullError as error:
                    return error
                finally:
                    listening.close()
            await asyncio.gather(*proxy.serving)
            return result.text

    return asyncio.run(main())


def test_tls_through_a_proxy(kind, tls, trust):
    with ScriptedServer([Reply(headers=EVENTS, steps=(WHOLE,))], tls=tls) as server:
        proxy = Proxy(server.port)
        assert ask_through(proxy, kind, "http", trust) == "yes"
    (head,) = proxy.heads
    assert head.startswith(b"CONNECT model.example:443 ")
    assert b"dXM6Y2FuYXJ5" in head
    assert b"canary-key" not in head


def test_a_proxy_that_refuses_is_told_without_its_password(kind, trust):
    error = ask_through(Proxy(0, 407), kind, "http", trust)
    assert type(error) is NetworkError
    assert str(error).startswith("cannot connect to model.example: ")
    assert "407" in str(error)
    assert "canary" not in f"{error}{error.__cause__}"


def test_socks(kind, tls, trust):
    with ScriptedServer([Reply(headers=EVENTS, steps=(WHOLE,))], tls=tls) as server:
        proxy = Proxy(server.port)
        assert ask_through(proxy, kind, "socks5", trust) == "yes"
    assert proxy.heads == [b"us:canary@model.example"]


def test_http2(kind, tls, trust, authority, tmp_path):
    if kind == "aiohttp":
        pytest.skip("aiohttp has no HTTP/2")
    pytest.importorskip("h2")
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    made = authority.issue_cert("127.0.0.1")
    made.private_key_pem.write_to_path(tmp_path / "key.pem")
    made.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    versions = []

    async def app(scope, receive, send):
        if scope["type"] != "http":
            return
        versions.append(scope["http_version"])
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for piece in (YES, WHOLE[len(YES) :]):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def main():
        import socket

        config, ended = Config(), asyncio.Event()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            config.bind = [f"fd://{listener.detach()}"]
        config.certfile, config.keyfile = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
        config.loglevel, config.alpn_protocols = "CRITICAL", ["h2"]
        serving = asyncio.create_task(serve(app, config, shutdown_trigger=ended.wait))
        try:
            async with created(kind, verify=trust, http2=True) as foreign:
                given = {"base_url": f"https://127.0.0.1:{port}", "http_client": foreign}
                asked = [mull.ask_async("hi", "openai-compatible/m", **given) for _ in range(5)]
                return [result.text for result in await asyncio.gather(*asked)]
        finally:
            ended.set()
            await serving

    assert asyncio.run(main()) == ["yes"] * 5
    assert versions == ["2"] * 5


def test_blocking_calls_use_an_asynchronous_client(kind, monkeypatch):
    monkeypatch.setattr("mull.client.foreign.DRAIN_SECONDS", 30)
    if kind == "aiohttp":
        pytest.skip("a session belongs to the loop that it was created on")
    foreign = created(kind)
    with ScriptedServer(lambda _: Reply(headers=EVENTS, steps=(WHOLE,))) as server:
        talk = mull.Conversation("openai-compatible/m", base_url=server.url, http_client=foreign)
        assert [talk.ask("hi").text, talk.ask("again").text] == ["yes", "yes"]
        assert [request.connection for request in server.requests] == [0, 0]
        with pytest.raises(LocalError, match="in use on another event loop"):
            asyncio.run(talk.ask_async("third"))
        mull.agent.shared.loop().run(foreign.aclose)
        with pytest.raises(LocalError, match="the http_client was closed"):
            talk.ask("fourth")


@pytest.mark.filterwarnings("ignore:BasicAuth is deprecated")
def test_credentials_of_a_session_that_exclude_the_key_are_told(tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1\nlogin me\npassword canary\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    error, _ = ask(None, "aiohttp", "http://127.0.0.1:9", trust_env=True)
    assert type(error) is ConfigError
    assert "credentials of its own for 127.0.0.1:9" in str(error)


def test_a_session_on_another_loop_is_told():
    async def main():
        async with aiohttp.ClientSession() as session:
            talk = mull.Conversation("openai-compatible/m", base_url=url, http_client=session)
            with pytest.raises(LocalError, match="can only be used on the event loop"):
                await asyncio.to_thread(talk.ask, "hi")
        with pytest.raises(LocalError, match="the http_client was closed"):
            await talk.ask_async("hi")

    url = "http://127.0.0.1:9"
    asyncio.run(main())


@pytest.mark.parametrize("package", [httpx, httpx2])
def test_a_client_that_blocks_is_refused(package):
    said = rf"must be asynchronous, and {package.__name__}\.Client is not: use"
    with package.Client() as client, pytest.raises(ConfigError, match=said):
        mull.Conversation("openai/gpt-5", key="k", http_client=client)


@pytest.mark.parametrize("package", [httpx, httpx2])
@pytest.mark.parametrize("coding", [None, "gzip"])
def test_mocks(package, coding):
    def answer(request):
        assert request.headers["authorization"] == "Bearer k"
        if coding is None:
            return package.Response(200, content=WHOLE)
        squeeze = zlib.compressobj(wbits=31)
        body = squeeze.compress(WHOLE) + squeeze.flush()
        return package.Response(200, headers={"content-encoding": coding}, content=body)

    client = package.AsyncClient(transport=package.MockTransport(answer))
    given = {"base_url": "https://h.example", "key": "k", "http_client": client}
    assert mull.ask("hi", "openai-compatible/m", **given).text == "yes"


@pytest.mark.timeout(300)
def test_the_types_are_those_of_the_packages(tmp_path):
    """A checker takes each of them, and no blocking one."""
    import subprocess
    import sys

    (tmp_path / "use.py").write_text(
        "import aiohttp, httpx, httpx2, mull\n"
        "async def main() -> None:\n"
        "    mull.Conversation('m', http_client=httpx.AsyncClient())\n"
        "    mull.Conversation('m', http_client=httpx2.AsyncClient())\n"
        "    mull.Conversation('m', http_client=aiohttp.ClientSession())\n"
        "    mull.Engine(http_client=mull.HttpClient(proxy='http://h'), verify=False)\n"
        "    mull.Conversation('m', http_client=httpx.Client())  # wrong\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", str(tmp_path / "use.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert [line.split(":")[1] for line in errors] == ["7"], done.stdout


@pytest.mark.parametrize("package", ["azure.identity", "azure.identity.aio"])
def test_tokens_of_microsofts_own_package(package):
    identity = pytest.importorskip(package)
    from azure.core.credentials import AccessToken

    class Fixed:
        def get_token(self, *scopes, **options):
            return AccessToken("entra", 1 << 40)

    class AsyncFixed(Fixed):
        async def get_token(self, *scopes, **options):
            return AccessToken("entra", 1 << 40)

    credential = AsyncFixed() if package.endswith("aio") else Fixed()
    provider = identity.get_bearer_token_provider(credential, "https://x/.default")
    with ScriptedServer([Reply(headers=EVENTS, steps=(WHOLE,))]) as server:
        given = {"base_url": server.url, "dialect": "openai-chat", "key": provider}
        assert mull.ask("hi", "azure/gpt-5.1", **given).text == "yes"
    headers = server.requests[0].headers
    assert headers["authorization"] == "Bearer entra"
    assert "api-key" not in headers
