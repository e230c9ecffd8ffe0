"""One plain GET against a real server on loopback: sizes, redirects, refusals, slowness."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mull.client.download import download
from mull.neutral.errors import ConfigError, RemoteError


class Site(BaseHTTPRequestHandler):
    def do_GET(self):
        getattr(self, f"do_{self.path.strip('/').partition('?')[0]}")()

    def _say(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_ok(self):
        self._say(200, b"x" * 100_000)

    def do_agent(self):
        self._say(200, self.headers["User-Agent"].encode())

    def do_endless(self):
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"x" * 65536)
        except OSError:
            pass

    def do_cut(self):
        self._say(200, b"half", Content_Length="8")

    def do_missing(self):
        self._say(404)

    def do_moved(self):
        self._say(302, Location="/ok")

    def do_ftp(self):
        self._say(302, Location="ftp://127.0.0.1/x")

    def do_file(self):
        self._say(302, Location="file:///etc/passwd")

    def do_round(self):
        self._say(302, Location="/round?")

    def do_garbage(self):
        self.wfile.write(b"hello\r\n")

    def do_silent(self):
        self.rfile.read()  # until the other side is gone

    def do_drip(self):
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"x")
                time.sleep(0.05)
        except OSError:
            pass

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_a_body(site):
    assert download(f"{site}/ok", 100_000, 5) == b"x" * 100_000
    assert download(f"{site}/agent", 100, 5).startswith(b"mull/")


def test_a_redirect(site):
    assert download(f"{site}/moved", 100_000, 5) == b"x" * 100_000


@pytest.mark.parametrize(
    ("path", "limit", "text"),
    [
        ("ok", 99_999, "the response of {host} is larger than 99,999 bytes"),
        ("endless", 1_000_000, "the response of {host} is larger than 1,000,000 bytes"),
        ("cut", 100, "{host} broke off after 4 of 8 bytes"),
        ("missing", 100, "{host} answered 404 Not Found"),
        ("ftp", 100, "{host} redirects to 'ftp://127.0.0.1/x', which is not a web address"),
        (
            "file",
            100,
            "{host} answered 302 Found - Redirection to url 'file:///etc/passwd' is not allowed",
        ),
        ("garbage", 100, "{host} cannot be reached: hello"),
    ],
)
def test_refusals(site, path, limit, text):
    with pytest.raises(RemoteError) as caught:
        download(f"{site}/{path}", limit, 5)
    assert str(caught.value).strip() == text.format(host=site.removeprefix("http://"))


def test_going_round_in_circles(site):
    with pytest.raises(RemoteError) as caught:
        download(f"{site}/round", 100, 5)
    host = site.removeprefix("http://")
    assert str(caught.value).startswith(f"{host} answered 302 The HTTP server returned a redirect")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", ["silent", "drip"])
def test_slowness(site, path):
    with pytest.raises(RemoteError, match=r"took too long to answer$"):
        download(f"{site}/{path}", 1_000_000, 0.2)


def test_nobody_there(site):
    with pytest.raises(RemoteError, match=r"^127\.0\.0\.1:9 cannot be reached: "):
        download("http://127.0.0.1:9/x", 100, 2)


@pytest.mark.parametrize("url", ["ftp://h/x", "file:///etc/passwd", "h/x", "http://", "http://[x"])
def test_only_web_addresses(url):
    with pytest.raises(ConfigError, match=r"is not an http or https address$"):
        download(url, 100, 2)
