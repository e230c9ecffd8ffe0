"""Flows are driven over real HTTP on loopback; sessions are held until they are to be renewed."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mull.auth.flow import HttpReply, HttpRequest, Show, Wait, ask
from mull.auth.secret import Secret
from mull.client.access import Access
from mull.client.auth_drive import Sessions, drive, send
from mull.neutral.errors import NetworkError, RefusedError, RemoteError

CANARY = "canary-9a31"


class Site(BaseHTTPRequestHandler):
    def do_GET(self):
        getattr(self, f"do_{self.path.strip('/')}")()

    do_POST = do_GET

    def _say(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_echo(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        said = {"method": self.command, "x": self.headers["X-A"], "body": body.decode()}
        self._say(200, json.dumps(said).encode())

    def do_refused(self):
        self._say(403, b'{"message":"no"}')

    def do_moved(self):
        self._say(302, Location="/echo")

    def do_large(self):
        self._say(200, b"x" * 1_000_001)

    def do_silent(self):
        self.server.hold.wait(5)

    def do_cut(self):
        self.wfile.write(b"nonsense\r\n")

    def log_message(self, *words):
        pass


@pytest.fixture(scope="module")
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.hold = threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.hold.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_request_goes_out_as_it_is_and_the_time_of_its_reply_is_told(site):
    before = time.time()
    reply = send(HttpRequest("POST", f"{site}/echo", {"x-a": "1"}, b"{}"))
    assert json.loads(reply.body) == {"method": "POST", "x": "1", "body": "{}"}
    assert reply.status == 200
    assert before <= reply.at <= time.time()


def test_any_status_is_a_reply(site):
    reply = send(HttpRequest("GET", f"{site}/refused", {}))
    assert (reply.status, reply.body) == (403, b'{"message":"no"}')


def test_a_redirect_is_not_followed_with_the_token(site):
    assert send(HttpRequest("GET", f"{site}/moved", {"x-a": CANARY})).status == 302


def test_a_reply_without_end_is_refused(site):
    with pytest.raises(RemoteError, match="larger than 1,000,000 bytes"):
        send(HttpRequest("GET", f"{site}/large", {}))


@pytest.mark.parametrize(
    ("path", "headers", "told"),
    [
        ("silent", {}, "cannot be reached: it took too long to answer"),
        ("cut", {}, "cannot be reached: BadStatusLine"),
        ("echo", {"x-a": f"{CANARY}\n"}, "cannot be reached: ValueError"),
    ],
)
def test_no_reply_is_a_network_error_without_what_was_sent(site, path, headers, told):
    with pytest.raises(NetworkError, match=told) as caught:
        send(HttpRequest("GET", f"{site}/{path}", headers), 0.3)
    assert CANARY not in str(caught.value)


def test_a_closed_port_is_a_network_error():
    with pytest.raises(NetworkError, match=r"127.0.0.1:1 cannot be reached: Connection refused"):
        send(HttpRequest("GET", "http://127.0.0.1:1/", {}))


def test_steps_are_done_in_order():
    done = []

    def flow():
        yield Show("A", "https://x", 9)
        yield Wait(7)
        first = yield from ask(HttpRequest("GET", "u", {}))
        try:
            yield HttpRequest("GET", "down", {})
        except NetworkError as error:
            done.append(f"caught {error}")
        second = yield from ask(HttpRequest("GET", "u", {}))
        return first.at + second.at

    def scripted(request):
        done.append(request.url)
        if request.url == "down":
            raise NetworkError("gone")
        return HttpReply(200, b"", 20.0)

    outcome = drive(
        flow(), show=lambda step: done.append(step.code), send=scripted, wait=done.append
    )
    assert outcome == 40.0
    assert done == ["A", 7, "u", "down", "caught gone", "u"]


# sessions


class Github:
    def __init__(self, status=200):
        self.asked, self.now, self.status = [], 1_000.0, status

    def __call__(self, request):
        self.asked.append(request.headers["authorization"])
        body = {
            "token": f"session-{len(self.asked)}",
            "refresh_in": 100,
            "endpoints": {"api": "https://api.business.githubcopilot.com"},
        }
        return HttpReply(self.status, json.dumps(body).encode(), self.now)


WAY = Access("https://api.githubcopilot.com", Secret("gho_1"), {"x-a": "b"}, "github-copilot")


@pytest.fixture
def github():
    return Github()


@pytest.fixture
def sessions(github):
    return Sessions(github, lambda: github.now)


def test_a_login_becomes_a_session_with_its_own_address(github, sessions):
    assert sessions.enter(WAY) == Access(
        "https://api.business.githubcopilot.com", Secret("session-1"), {"x-a": "b"}
    )
    assert github.asked == ["token gho_1"]


def test_a_session_is_held_until_it_is_to_be_renewed(github, sessions):
    assert sessions.enter(WAY) == sessions.enter(WAY)
    github.now = 1_099.9
    assert sessions.enter(WAY).key == Secret("session-1")
    github.now = 1_100.0
    assert sessions.enter(WAY).key == Secret("session-2")


def test_each_login_has_its_own_session(github, sessions):
    sessions.enter(WAY)
    other = Access(WAY.base_url, Secret("gho_2"), login=WAY.login)
    assert sessions.enter(other).key == Secret("session-2")
    assert github.asked == ["token gho_1", "token gho_2"]


def test_a_session_that_was_refused_is_fetched_anew(github, sessions):
    sessions.enter(WAY)
    sessions.forget(WAY)
    sessions.forget(WAY)
    assert sessions.enter(WAY).key == Secret("session-2")


def test_an_address_of_the_users_own_stays(github, sessions):
    for base_url in ("http://127.0.0.1:9/v1", "https://proxy.example", "https://githubcopilot.com"):
        way = Access(base_url, Secret("gho_1"), login="github-copilot")
        assert sessions.enter(way).base_url == base_url


def test_a_way_without_a_login_is_left_as_it_is(github, sessions):
    plain = Access("https://x", Secret("k"))
    assert sessions.enter(plain) is plain
    sessions.forget(plain)
    assert github.asked == []


def test_a_refused_login_is_told_and_nothing_is_held(github, sessions):
    github.status = 401
    with pytest.raises(RefusedError):
        sessions.enter(WAY)
    github.status = 200
    assert sessions.enter(WAY).key == Secret("session-2")


def test_threads_fetch_one_session_between_them(github, sessions):
    threads = [threading.Thread(target=sessions.enter, args=(WAY,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(github.asked) == 1
