"""The ways to an endpoint: TLS with a certificate authority of one's own, and real proxies."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress

import pytest
import trustme
import uvloop

from mull.client.http import HttpRequest, Transport, TransportOptions
from mull.neutral.errors import ConfigError, NetworkError, UnusableError
from mull.testing.server import Reply, ScriptedServer

run = asyncio.run
"""The event loop that a test runs on."""


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def tls(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost", "model.example").configure_cert(context)
    return context


@pytest.fixture(autouse=True, params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def _on_every_loop(request, monkeypatch):
    monkeypatch.setitem(globals(), "run", request.param)


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
    for name in names:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def ask(url, body=b"{}", **options):
    async def main():
        transport = Transport(TransportOptions(**options))
        try:
            async with transport.send(HttpRequest("POST", url, {}, body)) as answer:
                return await answer.read(1000)
        finally:
            await transport.close()

    return run(main())


def test_a_certificate_file_of_ones_own(authority, tls, tmp_path, monkeypatch):
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with ScriptedServer(lambda _: Reply.json("in"), tls=tls) as server:
        assert ask(server.url) == b'"in"'
        assert ask(server.url.replace("127.0.0.1", "localhost")) == b'"in"'


def test_a_certificate_folder(authority, tls, tmp_path, monkeypatch):
    pem = authority.cert_pem.bytes()
    (tmp_path / f"{_subject_hash(pem)}.0").write_bytes(pem)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    with ScriptedServer(lambda _: Reply.json("in"), tls=tls) as server:
        assert ask(server.url) == b'"in"'


def _subject_hash(pem: bytes) -> str:
    """OpenSSL's name for a certificate in a folder of them."""
    import subprocess

    command = ["openssl", "x509", "-hash", "-noout"]
    return (
        subprocess.run(command, input=pem, capture_output=True, check=True).stdout.decode().strip()
    )


def test_an_unknown_authority_is_not_trusted(tls):
    server = ScriptedServer(lambda _: Reply.json("in"), tls=tls)
    with server, pytest.raises(UnusableError) as caught:  # which is not tried again
        ask(server.url)
    assert str(caught.value) == (
        f"cannot trust 127.0.0.1:{server.port}: unable to get local issuer certificate.\n"
        "For your own certificate authority, set SSL_CERT_FILE to its certificate"
    )
    assert server.requests == []


def test_a_certificate_for_another_host_is_not_trusted(authority, tmp_path, monkeypatch):
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("elsewhere.example").configure_cert(context)
    server = ScriptedServer(lambda _: Reply.json("in"), tls=context)
    with server, pytest.raises(NetworkError, match=r"^cannot trust 127\.0\.0\.1:.*mismatch"):
        ask(server.url)
    assert server.requests == []


def test_a_certificate_file_that_is_not_there(tls, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    server = ScriptedServer(lambda _: Reply.json("in"), tls=tls)
    with server, pytest.raises(ConfigError, match=r"^SSL_CERT_FILE names '/nowhere/ca\.pem'"):
        ask(server.url)


def test_tls_where_there_is_none():
    server = ScriptedServer(lambda _: Reply.json("in"))
    with server, pytest.raises(NetworkError, match=r"^cannot (speak TLS|connect)"):
        ask(server.url.replace("http:", "https:"), connect=0.5)


class RealProxy:
    """A proxy as they are: CONNECT is joined to a port on loopback, other requests forwarded."""

    def __init__(self, port: int, status: int = 200) -> None:
        self.heads: list[bytes] = []
        self.serving: list[asyncio.Task[None]] = []
        self._port = port
        self._status = status

    def accept(self, reader, writer):
        self.serving.append(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        if self._status != 200:
            writer.write(b"HTTP/1.1 %d No\r\ncontent-length: 0\r\n\r\n" % self._status)
            await self._end(writer)
            return
        away, back = await asyncio.open_connection("127.0.0.1", self._port)
        if head.startswith(b"CONNECT "):
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            back.write(head)
        await asyncio.gather(self._pipe(reader, back), self._pipe(away, writer))

    async def _pipe(self, source, sink):
        with suppress(OSError):
            while data := await source.read(65536):
                sink.write(data)
        await self._end(sink)

    async def _end(self, writer):
        with suppress(OSError):
            writer.close()
            await writer.wait_closed()


def ask_through(proxy, variable, monkeypatch, url, credentials=""):
    async def main():
        async with await asyncio.start_server(proxy.accept, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            monkeypatch.setenv(variable, f"http://{credentials}127.0.0.1:{port}")
            transport = Transport()
            try:
                async with transport.send(HttpRequest("POST", url, {"x-api-key": "k"})) as answer:
                    return await answer.read(1000)
            finally:
                await transport.close()
                await asyncio.wait_for(asyncio.gather(*proxy.serving), 5)

    return run(main())


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_plain_http_through_a_proxy(variable, monkeypatch):
    with ScriptedServer(lambda _: Reply.json("in")) as server:
        proxy = RealProxy(server.port)
        url = "http://model.example/v1?a=b"
        assert ask_through(proxy, variable, monkeypatch, url, "us:pw@") == b'"in"'
    (head,) = proxy.heads
    assert head.startswith(b"POST http://model.example/v1?a=b HTTP/1.1\r\n")
    assert b"proxy-authorization: Basic dXM6cHc=\r\n" in head
    assert b"host: model.example\r\n" in head


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
def test_tls_through_a_proxy_hides_the_key_from_it(authority, tls, tmp_path, monkeypatch, variable):
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with ScriptedServer(lambda _: Reply.json("in"), tls=tls) as server:
        proxy = RealProxy(server.port)
        url = "https://model.example/v1"
        assert ask_through(proxy, variable, monkeypatch, url, "us:pw@") == b'"in"'
    (head,) = proxy.heads
    assert head.startswith(b"CONNECT model.example:443 HTTP/1.1\r\n")
    assert b"proxy-authorization: Basic dXM6cHc=\r\n" in head
    assert b"x-api-key" not in head
    assert "proxy-authorization" not in server.requests[0].headers


def test_a_proxy_that_refuses(monkeypatch):
    proxy = RealProxy(0, 407)
    with pytest.raises(NetworkError) as caught:
        ask_through(proxy, "HTTPS_PROXY", monkeypatch, "https://model.example/v1", "us:canary@")
    assert str(caught.value) == (
        "cannot connect to model.example: the proxy 127.0.0.1 answered 407\n"
        "(through the proxy that HTTPS_PROXY names)"
    )


def test_a_proxy_that_is_not_there(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    monkeypatch.setenv("HTTPS_PROXY", f"http://us:canary@127.0.0.1:{port}")
    with pytest.raises(NetworkError) as caught:
        ask("https://model.example/v1")
    assert str(caught.value) == (
        "cannot connect to model.example: connection refused\n"
        "(through the proxy that HTTPS_PROXY names)"
    )


def test_exceptions_go_directly(monkeypatch):
    with ScriptedServer(lambda _: Reply.json("in")) as server:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        assert ask(server.url) == b'"in"'
