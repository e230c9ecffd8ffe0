"""The ways to an endpoint: TLS with a certificate authority of one's own, and real proxies."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from contextlib import contextmanager, suppress

import pytest
import trustme
import uvloop

from mull.client.http import HttpClient
from mull.client.transport import HttpRequest
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
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
    for name in (*proxies, "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def ask(url, body=b"{}", **options):
    async def main():
        transport = HttpClient(**options)
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
        ask(server.url.replace("http:", "https:"), connect_seconds=0.5)


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
            transport = HttpClient()
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


@pytest.fixture
def ca(authority, tmp_path):
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return tmp_path / "ca.pem"


def through(proxy, url, scheme="http", tls=None, **options):
    """Ask by a proxy that is given outright."""

    async def main():
        async with await asyncio.start_server(proxy.accept, "127.0.0.1", 0, ssl=tls) as listening:
            port = listening.sockets[0].getsockname()[1]
            transport = HttpClient(proxy=f"{scheme}://us:canary@127.0.0.1:{port}", **options)
            try:
                asked = [HttpRequest("POST", url, {"x-api-key": "k"}) for _ in range(2)]
                for request in asked:
                    async with transport.send(request) as answer:
                        assert await answer.read(1000) == b'"in"'
            finally:
                await transport.close()
                await asyncio.wait_for(asyncio.gather(*proxy.serving), 5)

    run(main())


def test_a_proxy_that_is_given_is_for_every_address(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "*")
    with ScriptedServer(lambda _: Reply.json("in")) as server:
        proxy = RealProxy(server.port)
        through(proxy, server.url)
    (head,) = proxy.heads  # and the connection is kept for the second request
    assert head.startswith(f"POST {server.url}/ HTTP/1.1\r\n".encode())
    assert b"proxy-authorization: Basic dXM6Y2FuYXJ5\r\n" in head


def test_no_proxy_at_all(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with ScriptedServer(lambda _: Reply.json("in")) as server:
        url = server.url.replace("127.0.0.1", "localhost.localdomain")
        monkeypatch.setattr(socket, "getaddrinfo", _loopback(socket.getaddrinfo))
        assert ask(url, proxy=False) == b'"in"'
        with pytest.raises(NetworkError, match="HTTP_PROXY names"):
            ask(url)


def _loopback(look_up):
    def found(host, *args, **kwargs):
        named = host in (b"localhost.localdomain", "localhost.localdomain")
        return look_up(b"127.0.0.1" if named else host, *args, **kwargs)

    return found


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_over_tls(authority, tls, ca, scheme):
    with ScriptedServer(
        lambda _: Reply.json("in"), tls=tls if scheme == "https" else None
    ) as server:
        proxy = RealProxy(server.port)
        through(proxy, f"{scheme}://model.example/v1", "https", tls, verify=ca)
    (head,) = proxy.heads
    said = b"CONNECT model.example:443 " if scheme == "https" else b"POST http://model.example/v1 "
    assert head.startswith(said)
    assert b"proxy-authorization: Basic dXM6Y2FuYXJ5\r\n" in head
    assert (b"x-api-key" in head) == (scheme == "http")


def test_a_proxy_over_tls_that_is_not_trusted(tls):
    proxy = RealProxy(0)
    with pytest.raises(UnusableError) as caught:
        through(proxy, "https://model.example/v1", "https", tls)
    assert str(caught.value).startswith("cannot trust the proxy 127.0.0.1: ")
    assert proxy.heads == []


def test_a_given_proxy_that_refuses_is_named_without_its_password():
    with pytest.raises(NetworkError) as caught:
        through(RealProxy(0, 407), "https://model.example/v1")
    assert str(caught.value) == (
        "cannot connect to model.example: the proxy 127.0.0.1 answered 407\n"
        "(through the proxy given as proxy=)"
    )


def test_whom_to_trust(authority, tls, ca, tmp_path, monkeypatch):
    context = ssl.create_default_context(cafile=ca)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / f"{_subject_hash(ca.read_bytes())}.0").write_bytes(ca.read_bytes())
    with ScriptedServer(lambda _: Reply.json("in"), tls=tls) as server:
        for verify in (ca, str(ca), folder, context, False):
            assert ask(server.url, verify=verify) == b'"in"'
        with pytest.raises(UnusableError):
            ask(server.url)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(ca))
        assert ask(server.url) == b'"in"'
        monkeypatch.setenv("SSL_CERT_FILE", ssl.get_default_verify_paths().openssl_cafile)
        if ssl.get_default_verify_paths().cafile:  # which goes first
            with pytest.raises(UnusableError):
                ask(server.url)


def test_a_certificate_of_ones_own_is_shown(authority, ca, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    mine = authority.issue_cert("me.example")
    mine.private_key_and_cert_chain_pem.write_to_path(tmp_path / "both.pem")
    mine.private_key_pem.write_to_path(tmp_path / "key.pem")
    mine.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    own = ssl.create_default_context(cafile=ca)
    own.load_cert_chain(tmp_path / "both.pem")
    with ScriptedServer(lambda _: Reply.json("in"), tls=context) as server:
        for cert in (tmp_path / "both.pem", (str(tmp_path / "cert.pem"), tmp_path / "key.pem")):
            assert ask(server.url, verify=ca, cert=cert) == b'"in"'
        assert ask(server.url, verify=own) == b'"in"'
    with _refusing(context) as port, pytest.raises(UnusableError) as caught:
        ask(f"https://127.0.0.1:{port}", verify=ca)
    assert str(caught.value) == (
        f"the connection to 127.0.0.1:{port} broke: tlsv13 alert certificate required.\n"
        "Give it a client certificate that it accepts with cert="
    )


@contextmanager
def _refusing(context):
    """A server that says so when it is shown no certificate; asyncio's just hang up."""

    def serve():
        plain, _ = listener.accept()
        options = {"server_side": True, "do_handshake_on_connect": False}
        with context.wrap_socket(plain, **options) as connection:
            with pytest.raises(ssl.SSLError):
                connection.do_handshake()
            with suppress(OSError):  # a close with bytes unread would be a reset
                while socket.socket.recv(connection, 65536):
                    pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=serve)
        serving.start()
        yield listener.getsockname()[1]
        serving.join(30)


def test_a_context_that_offers_another_protocol(authority, ca):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    context.set_alpn_protocols(["h2"])
    own = ssl.create_default_context(cafile=ca)
    own.set_alpn_protocols(["h2", "http/1.1"])
    with ScriptedServer(tls=context) as server, pytest.raises(ConfigError, match="offers h2"):
        ask(server.url, verify=own)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"verify": "/nowhere/ca.pem"}, r"^verify names '/nowhere/ca\.pem', which does not exist$"),
        ({"verify": 7}, r"^verify must be True, False, a file or folder .*, not int$"),
        ({"verify": __file__}, r"^verify: no certificates can be read from "),
        ({"cert": "/nowhere/me.pem"}, r"^cert names '/nowhere/me\.pem', which does not exist$"),
        ({"cert": (1, 2)}, r"^cert must be a file, a pair of certificate and key files"),
        ({"cert": __file__}, r"^the client certificate '.*' cannot be used: "),
        ({"cert": __file__, "verify": ssl.create_default_context()}, r"^cert cannot be combined"),
        ({"proxy": "socks5://us:canary@h"}, r"^proxy names a SOCKS proxy"),
        ({"proxy": "http://us:can ary@"}, r"^proxy must be an address such as http://HOST:PORT$"),
    ],
)
def test_what_cannot_be_used_is_said(options, said):
    with pytest.raises(ConfigError, match=said) as caught:
        ask("https://127.0.0.1:9/", **options)
    assert "canary" not in str(caught.value)
