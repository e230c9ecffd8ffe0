"""OAuth at a server on loopback: a login, tokens that renew themselves, and what is refused."""

import asyncio
import base64
import hashlib
import json
import secrets
import threading
import time
import urllib.request
import webbrowser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from mcp_servers import serving
from mull.agent.mcp import server as one_server
from mull.agent.mcp.oauth import Login, key_name
from mull.cli.main import main
from mull.store.keys import Keys
from mull.store.mcp import McpConfig
from mull.store.paths import config_dir, data_dir


class Guarded(ThreadingHTTPServer):
    """A server of tools and its authorization server in one."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.base = f"http://127.0.0.1:{self.server_port}"
        self.url = f"{self.base}/mcp"
        self.access, self.refresh = set(), set()
        self.codes, self.asked, self.clients = {}, [], []
        self.refuses = False
        self.token_endpoint = f"{self.base}/token"

    def tokens(self):
        access, refresh = f"at-{secrets.token_hex(8)}", f"rt-{secrets.token_hex(8)}"
        self.access.add(access)
        self.refresh.add(refresh)
        return {
            "access_token": access,
            "refresh_token": refresh,
            "token_type": "Bearer",
            "expires_in": 3600,
        }


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def send(self, status, body=None, **heads):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        heads = {"Content-Type": "application/json", "Content-Length": len(data), **heads}
        for name, text in heads.items():
            self.send_header(name.replace("_", "-"), str(text))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        place, site = urlsplit(self.path), self.server
        if place.path == "/authorize":
            return self.authorize(parse_qs(place.query))
        pages = {
            "/.well-known/oauth-protected-resource/mcp": {
                "resource": site.url,
                "authorization_servers": [site.base],
            },
            "/.well-known/oauth-authorization-server": {
                "issuer": site.base,
                "authorization_endpoint": f"{site.base}/authorize",
                "token_endpoint": site.token_endpoint,
                "registration_endpoint": f"{site.base}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            },
        }
        return self.send(200, pages[place.path]) if place.path in pages else self.send(404)

    def authorize(self, given):
        back = given["redirect_uri"][0]
        if self.server.refuses:
            said = {"error": "access_denied", "error_description": "not you"}
        else:
            code = secrets.token_hex(8)
            self.server.codes[code] = given["code_challenge"][0]
            said = {"code": code, "state": given["state"][0]}
        self.send(302, Location=f"{back}?{urlencode(said)}")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        match urlsplit(self.path).path:
            case "/register":
                client = {**json.loads(body), "client_id": f"client-{len(self.server.clients)}"}
                self.server.clients.append(client)
                return self.send(201, client)
            case "/token":
                return self.token({name: text[0] for name, text in parse_qs(body).items()})
            case _:
                return self.speak(json.loads(body))

    def token(self, given):
        self.server.asked.append(given["grant_type"])
        if given["grant_type"] == "refresh_token":
            is_known = given["refresh_token"] in self.server.refresh
            self.server.refresh.discard(given["refresh_token"])
        else:
            digest = hashlib.sha256(given["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            is_known = self.server.codes.pop(given["code"], None) == challenge
        if not is_known:
            return self.send(400, {"error": "invalid_grant"})
        return self.send(200, self.server.tokens())

    def speak(self, request):
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self.server.access:
            metadata = f"{self.server.base}/.well-known/oauth-protected-resource/mcp"
            return self.send(401, WWW_Authenticate=f'Bearer resource_metadata="{metadata}"')
        if "id" not in request:
            return self.send(202)
        results = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "who", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": f"you sent {token}"}]},
        }
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        if request["method"] not in results:
            return self.send(200, {**answer, "error": {"code": -32601, "message": "unknown"}})
        return self.send(200, {**answer, "result": results[request["method"]]})


@pytest.fixture
def guarded(monkeypatch):
    monkeypatch.setattr(one_server, "PAUSES", (0.0, 0.0, 0.0))
    site = Guarded()
    thread = threading.Thread(target=site.serve_forever, args=(0.01,))
    thread.start()
    config_dir().mkdir(parents=True)
    (config_dir() / "config.toml").write_text(f'[mcp.a]\nurl = "{site.url}"\n')
    yield site
    site.shutdown()
    thread.join()
    site.server_close()


@pytest.fixture
def browser(monkeypatch):
    """Goes where it is sent, as a person's browser would."""
    visits = []

    def visit(url):
        threading.Thread(target=lambda: urllib.request.urlopen(url).read()).start()
        visits.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", visit)
    return visits


async def ask(servers):
    if servers.statuses[0].state == "failed":
        return servers.statuses[0].reason
    return (await servers.call("mcp__a__who")).output


def asked(site, tmp_path):
    return serving({"a": McpConfig(url=site.url)}, tmp_path, ask, {})


def test_a_login_is_made_in_the_browser_and_kept_with_the_keys(guarded, browser, tmp_path, capsys):
    before = asked(guarded, tmp_path)
    assert before == f"{guarded.url} answered 401 Unauthorized: log in with `mull mcp login a`"
    assert main(["mcp", "login", "a"]) == 0
    said = capsys.readouterr().out
    assert said.endswith("Logged in to a: 1 tools. The tokens are stored with your keys.\n")
    (url,) = browser
    assert url in said
    given = parse_qs(urlsplit(url).query)
    assert given["code_challenge_method"] == ["S256"]
    assert given["resource"] == [guarded.url]
    (client,) = guarded.clients
    assert client["redirect_uris"] == given["redirect_uri"]
    assert urlsplit(given["redirect_uri"][0]).hostname == "127.0.0.1"
    assert asked(guarded, tmp_path) == "you sent ***"
    assert (data_dir() / "keys.json").stat().st_mode & 0o777 == 0o600
    kept = (data_dir() / "keys.json").read_text() + (data_dir() / "mcp/a.json").read_text()
    assert not any(token in kept + said for token in guarded.access | guarded.refresh)


def test_tokens_that_ended_are_renewed_and_the_new_ones_kept(
    guarded, browser, tmp_path, monkeypatch
):
    assert main(["mcp", "login", "a"]) == 0
    guarded.access.clear()
    later = time.time() + 3600
    monkeypatch.setattr(time, "time", lambda: later)
    assert asked(guarded, tmp_path) == "you sent ***"
    assert guarded.asked == ["authorization_code", "refresh_token"]
    assert asked(guarded, tmp_path) == "you sent ***"
    assert guarded.asked == ["authorization_code", "refresh_token"]
    assert len(browser) == 1


def test_a_token_that_ends_before_its_time_is_renewed(guarded, browser, tmp_path):
    assert main(["mcp", "login", "a"]) == 0
    guarded.access.clear()
    assert asked(guarded, tmp_path) == "you sent ***"
    assert guarded.asked == ["authorization_code", "refresh_token"]
    assert len(browser) == 1


def test_tokens_that_another_process_renewed_are_taken(guarded, browser, tmp_path):
    """A refresh token is good for one use: who comes second finds it spent."""
    assert main(["mcp", "login", "a"]) == 0

    async def body(servers):
        guarded.access.clear()
        other = await asyncio.to_thread(asked, guarded, tmp_path / "other")
        return other, (await servers.call("mcp__a__who")).output, servers

    config = {"a": McpConfig(url=guarded.url)}
    other, output, servers = serving(config, tmp_path, body, {})
    assert (other, output) == ("you sent ***", "you sent ***")
    assert guarded.asked == ["authorization_code", "refresh_token", "refresh_token"]
    assert servers.states("a") == ["ready", "stopped"]


def test_without_a_person_nobody_is_asked(guarded, browser, tmp_path):
    assert main(["mcp", "login", "a"]) == 0
    guarded.access.clear()
    guarded.refresh.clear()
    assert asked(guarded, tmp_path) == "it requires a login: run `mull mcp login a`"
    assert len(browser) == 1


def test_tokens_go_to_the_address_they_were_given_for_alone(guarded, browser, tmp_path):
    assert main(["mcp", "login", "a"]) == 0
    keys = Keys(data_dir(), {})
    assert Login("a", guarded.url, keys).is_there
    assert not Login("a", guarded.url.replace("/mcp", "/other"), keys).is_there
    assert not Login("a", "http://127.0.0.1:9/mcp", keys).is_there


def test_a_logout_forgets_the_tokens_and_so_does_removing(guarded, browser, tmp_path, capsys):
    for words in (["logout", "a"], ["remove", "a"]):
        assert main(["mcp", "login", "a"]) == 0
        assert key_name("a") in Keys(data_dir(), {}).stored()
        assert main(["mcp", *words]) == 0
        assert key_name("a") not in Keys(data_dir(), {}).stored()
    (config_dir() / "config.toml").write_text(f'[mcp.a]\nurl = "{guarded.url}"\n')
    capsys.readouterr()
    assert main(["mcp", "logout", "a"]) == 2
    assert capsys.readouterr().err == (
        "mull: no login is stored for a: `mull mcp login a` creates one\n"
    )


def test_a_refused_login_says_why(guarded, browser, capsys):
    guarded.refuses = True
    assert main(["mcp", "login", "a"]) == 1
    assert capsys.readouterr().err == "mull: login to a failed: the login was rejected: not you\n"


def test_a_login_that_would_go_unencrypted_is_not_begun(guarded, browser, capsys):
    guarded.token_endpoint = "http://elsewhere.example/token"
    assert main(["mcp", "login", "a"]) == 1
    assert capsys.readouterr().err == (
        "mull: login to a failed: the login would go over http://elsewhere.example, which is not "
        "encrypted\n"
    )
    assert browser == []


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('command = "x"', "a is a command: only servers with a URL have a login"),
        (
            'url = "https://h/m"\nheaders = { Authorization = "Bearer $T" }',
            "a sends its own Authorization header: remove it to log in",
        ),
    ],
)
def test_servers_without_a_login_are_told_apart(table, message, capsys, monkeypatch):
    monkeypatch.setenv("T", "0123456789")
    config_dir().mkdir(parents=True)
    (config_dir() / "config.toml").write_text(f"[mcp.a]\n{table}\n")
    assert main(["mcp", "login", "a"]) == 2
    assert capsys.readouterr().err == f"mull: {message}\n"
