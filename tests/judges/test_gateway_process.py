"""`mull serve` as a process of its own: workers, signals, reload, TLS, and hostile clients."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from mull.testing import Gate, Reply, ScriptedServer
from ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

BODY = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
LIMIT = 60


def chunk(text, reason=None):
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]}


def answer(text="Milk."):
    return Reply.events(chunk(text, "stop"), "[DONE]")


def until(found, limit=LIMIT):
    """Wait until something is so; what it is then."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if result := found():
            return result
        time.sleep(0.02)
    raise AssertionError(f"not so after {limit} s: {found}")


class Process:
    """A gateway and where it is reached."""

    def __init__(self, folder: Path, config: str, *words: str, port: int | None = None):
        self.port = port or free_port()
        self.file = folder / "serve.toml"
        self.log = folder / "log"
        self.configure(config)
        environ = {
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_DATA_HOME": str(folder / "data"),
            "PATH": os.environ["PATH"],
            "PYTHONUNBUFFERED": "1",
        }
        command = [sys.executable, "-m", "mull", "serve", "--config", str(self.file), *words]
        if not any(word.startswith("unix:") for word in words):
            command += ["--listen", f"127.0.0.1:{self.port}"]
        self.open: list[http.client.HTTPConnection] = []
        with self.log.open("ab") as log:
            self.child = subprocess.Popen(
                command,
                env=environ,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def configure(self, text: str) -> None:
        fresh = self.file.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(self.file)

    def said(self, words: str) -> bool:
        return words in self.log.read_text()

    def connect(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        self.open.append(connection)
        return connection

    def get(self, path: str, **headers) -> tuple[int, dict]:
        connection = self.connect()
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def ask(self, **more) -> http.client.HTTPResponse:
        connection = self.connect()
        connection.request("POST", "/v1/chat/completions", json.dumps({**BODY, **more}))
        return connection.getresponse()

    def children(self) -> list[int]:
        found = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children").read_text()
        return [int(word) for word in found.split()]

    def refuses(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) != 0


@contextmanager
def serving(folder, config, *words, **more):
    process = Process(folder, config, *words, **more)
    try:
        until(lambda: process.said("mull serves at") or process.child.poll() is not None)
        assert process.child.poll() is None, process.log.read_text()
        yield process
    finally:
        for connection in process.open:
            connection.close()
        if process.child.poll() is None:
            process.child.kill()
        process.child.wait(LIMIT)


def models(url, name="m", more=""):
    served = f'model = "moonshotai/kimi-k2.5"\nbase_url = "{url}"\n'
    return f"[serve]\n{more}\n[serve.models.{name}]\n{served}"


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_lets_answers_finish_and_takes_no_more(tmp_path, workers, number):
    gate = Gate()
    with (
        ScriptedServer([Reply.events(chunk("Mi"), gate, chunk("lk.", "stop"), "[DONE]")]) as server,
        serving(tmp_path, models(server.url), "--workers", workers) as process,
    ):
        response = process.ask(stream=True)
        gate.wait_reached()
        children = process.children()
        assert len(children) == (2 if workers == "2" else 0)
        process.child.send_signal(number)
        until(process.refuses)
        assert process.child.poll() is None
        gate.open()
        assert response.read().endswith(b"data: [DONE]\n\n")
        assert process.child.wait(LIMIT) == 0
        assert not any(map(is_alive, children))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_told_twice_it_ends_at_once(tmp_path, workers):
    gate = Gate()
    with (
        ScriptedServer([Reply.events(chunk("Mi"), gate)]) as server,
        serving(tmp_path, models(server.url, more="grace = 1000"), "--workers", workers) as process,
    ):
        response = process.ask(stream=True)
        gate.wait_reached()
        process.child.terminate()
        until(process.refuses)
        process.child.terminate()
        assert process.child.wait(LIMIT) == 0
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            response.read()
        gate.open()


def test_grace_ends(tmp_path):
    gate = Gate()
    with (
        ScriptedServer([Reply.events(chunk("Mi"), gate)]) as server,
        serving(tmp_path, models(server.url, more="grace = 0.5")) as process,
    ):
        process.ask(stream=True)
        gate.wait_reached()
        process.child.terminate()
        assert process.child.wait(LIMIT) == 0
        gate.open()


def test_a_worker_that_dies_is_started_again_and_none_outlives_the_first(tmp_path):
    with (
        ScriptedServer([answer()] * 50) as server,
        serving(tmp_path, models(server.url), "--workers", "2") as process,
    ):
        one, _ = until(lambda: len(process.children()) == 2 and process.children())
        assert process.ask().status == 200
        os.kill(one, signal.SIGKILL)
        until(lambda: one not in process.children() and len(process.children()) == 2)
        assert process.said("worker 1 ended (signal 9)") or process.said(
            "worker 2 ended (signal 9)"
        )
        for _ in range(20):
            assert process.ask().status == 200
        left = process.children()
        process.child.kill()
        until(lambda: not any(map(is_alive, left)))
        until(process.refuses)


def test_a_conversation_goes_on_on_another_worker(tmp_path):
    """Two workers share one store: what one wrote the other finds."""
    first = {"choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}}]}
    reply = Reply.events(first, chunk("Milk.", "stop"), "[DONE]")
    with (
        ScriptedServer([reply] * 40) as server,
        serving(tmp_path, models(server.url), "--workers", "2") as process,
    ):
        process.ask().read()
        said = [*BODY["messages"], {"role": "assistant", "content": "Milk."}, *BODY["messages"]]
        for _ in range(20):  # connections are new each time, so both are asked
            process.ask(messages=said).read()
        sent = [request.json["messages"][1] for request in server.requests[1:]]
        assert all(one.get("reasoning_content") == "Hm." for one in sent)


def test_a_changed_file_holds_for_the_next_request(tmp_path):
    gate = Gate()
    old = Reply.events(chunk("old "), gate, chunk("end", "stop"), "[DONE]")
    with (
        ScriptedServer([old]) as one,
        ScriptedServer([answer("new")] * 9) as two,
        serving(tmp_path, models(one.url)) as process,
    ):
        response = process.ask(stream=True)
        gate.wait_reached()
        process.configure(models(two.url, name="other", more='hosts = ["gate.example"]'))
        until(lambda: process.get("/v1/models")[1]["data"][0]["id"] == "other")
        assert process.ask(model="other").status == 200
        assert process.ask(model="m").status == 404
        assert process.get("/v1/models", host="gate.example")[0] == 200
        gate.open()
        assert b"end" in response.read()


def test_a_bad_file_keeps_the_old_and_says_so_until_it_is_mended(tmp_path):
    with (
        ScriptedServer([answer()] * 9) as server,
        serving(tmp_path, models(server.url)) as process,
    ):
        process.configure('[serve]\nworkers = "many"\ncolour = 1\n')
        until(lambda: "config" in process.get("/health")[1])
        assert process.said("workers cannot be")
        assert process.said("colour")
        assert process.ask().status == 200
        process.file.unlink()
        until(lambda: process.said("no longer exists"))
        assert process.ask().status == 200
        process.configure(models(server.url, more='listen = "127.0.0.1:1"\ngrace = 9'))
        until(lambda: "config" not in process.get("/health")[1])
        assert process.get("/health")[1] == {"status": "ok", "restart_for": ["grace"]}
        assert process.ask().status == 200


@pytest.mark.parametrize("workers", ["1", "2"])
def test_sighup_reads_keys_of_the_file_anew(tmp_path, workers):
    with (
        ScriptedServer([answer()] * 9) as server,
        serving(tmp_path, models(server.url), "--workers", workers) as process,
    ):
        assert process.ask().status == 200
        process.child.send_signal(signal.SIGHUP)
        until(lambda: process.said("configuration reloaded"))
        assert process.ask().status == 200


def test_check_says_everything_that_is_wrong(tmp_path):
    file = tmp_path / "serve.toml"
    file.write_text(
        '[serve]\nlisten = "0.0.0.0:80"\n'
        '[serve.models.a]\nmodel = "openai/gpt-5"\nkey_env = "NO_SUCH_KEY"\n'
        '[serve.models."b-*"]\ntargets = [{model = "nobody/nothing"}, {model = "local/smollm2"}]\n'
    )
    command = [sys.executable, "-m", "mull", "serve", "--config", str(file), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=LIMIT)
    assert done.returncode == 2
    for words in (
        "a: openai/gpt-5: no API key: set the environment variable NO_SUCH_KEY",
        "b-*: nobody/nothing",
        "listen",
    ):
        assert words in done.stderr


def test_a_taken_port_is_told(tmp_path):
    with ScriptedServer([]) as server, serving(tmp_path, models(server.url)) as process:
        command = [sys.executable, "-m", "mull", "serve", "-m", "local/smollm2"]
        command += ["--listen", f"127.0.0.1:{process.port}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2
    assert "cannot listen on" in done.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_unix_socket(tmp_path, workers):
    path = tmp_path / "s.sock"
    with ScriptedServer([answer()] * 2) as server:
        words = ("--listen", f"unix:{path}", "--workers", workers)
        for _ in range(2):  # the second finds what the first one, killed, has left
            with serving(tmp_path, models(server.url), *words) as process:
                assert path.stat().st_mode & 0o777 == 0o600
                connection = process.connect()
                connection.sock = socket.socket(socket.AF_UNIX)
                connection.sock.connect(str(path))
                connection.request("POST", "/v1/chat/completions", json.dumps(BODY))
                assert connection.getresponse().status == 200
            (tmp_path / "log").unlink()
    with serving(tmp_path, models("http://127.0.0.1:9"), *words) as process:
        process.child.terminate()
        assert process.child.wait(LIMIT) == 0
        assert not path.exists()


def test_tls_and_http_2(tmp_path):
    import trustme

    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    cert, key, root = (tmp_path / name for name in ("cert.pem", "key.pem", "root.pem"))
    issued.cert_chain_pems[0].write_to_path(cert)
    issued.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(root)
    more = f'cert = "{cert}"\nkey = "{key}"'
    with (
        ScriptedServer([answer()] * 2) as server,
        serving(tmp_path, models(server.url, more=more)) as process,
    ):
        trusted = ssl.create_default_context(cafile=str(root))
        trusted.set_alpn_protocols(["http/1.1"])
        connection = http.client.HTTPSConnection("localhost", process.port, context=trusted)
        process.open.append(connection)
        connection.request("POST", "/v1/chat/completions", json.dumps(BODY))
        assert connection.getresponse().status == 200
        if curl := shutil.which("curl"):
            url = f"https://localhost:{process.port}/health"
            command = [curl, "-sS", "--http2", "--cacert", str(root), "-w", " %{http_version}", url]
            assert subprocess.check_output(command, text=True) == '{"status":"ok"} 2'


def test_half_requests_and_silent_connections_are_closed(tmp_path):
    """Heads within 30 s, bodies within 30 s and what they take at a low rate, silence within 15."""
    with ScriptedServer([answer()]) as server, serving(tmp_path, models(server.url)) as process:
        at = ("127.0.0.1", process.port)
        post = (
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{"
        )
        beginnings = {
            "nothing": b"",
            "head": b"GET / HTTP/1.1\r\nHo",
            "body": post,
            "h2": b"PRI * H",
        }
        got = {}

        def wait(name):
            with socket.create_connection(at, timeout=90) as one:
                one.sendall(beginnings[name])
                got[name] = one.recv(1_000)

        threads = [threading.Thread(target=wait, args=(name,)) for name in beginnings]
        for thread in threads:
            thread.start()
        assert process.ask().status == 200
        for thread in threads:
            thread.join(90)
        assert set(got) == set(beginnings)
        assert b"408" in got.pop("body")
        assert set(got.values()) == {b""}


def test_more_connections_than_are_taken_wait_and_nothing_is_lost(tmp_path):
    with (
        ScriptedServer([answer()] * 20) as server,
        serving(tmp_path, models(server.url, more="connections = 8")) as process,
    ):
        idle = [socket.create_connection(("127.0.0.1", process.port)) for _ in range(40)]
        # what was opened first and says nothing is closed in time; then there is room
        assert process.ask().status == 200
        for one in idle:
            one.close()
