"""The gateway as a part of applications that others wrote: FastAPI, Starlette, on uvicorn."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from contextlib import asynccontextmanager, contextmanager
from http.client import HTTPConnection

import pytest

import mull
from mull.testing import Say, StrictServer, Think

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

SCRIPT = [[Think("Hm."), Say("Milk.")]] * 3
BODY = {"model": "m", "messages": [{"role": "user", "content": "q"}]}


@contextmanager
def run(app):
    """The port of an application on uvicorn."""
    uvicorn = pytest.importorskip("uvicorn")
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(60)


def ask(port, path, body=None):
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST" if body else "GET", path, json.dumps(body) if body else None)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def file_for(folder, url):
    file = folder / "serve.toml"
    file.write_text(
        f'[serve.models.m]\nmodel = "moonshotai/kimi-k2.5"\nbase_url = "{url}"\n'
        '[serve]\nstore = "none"\n'
    )
    return file


def use(port, prefix):
    status, body = ask(port, f"{prefix}/v1/chat/completions", {**BODY, "stream": True})
    assert status == 200
    assert b'"reasoning_content"' in body
    assert body.endswith(b"data: [DONE]\n\n")
    status, body = ask(
        port,
        f"{prefix}/v1/messages",
        {**BODY, "max_tokens": 9_999, "thinking": {"type": "enabled", "budget_tokens": 2_000}},
    )
    assert [one["type"] for one in json.loads(body)["content"]] == ["thinking", "text"]
    assert ask(port, f"{prefix}/health") == (200, b'{"status":"ok"}')
    assert ask(port, f"{prefix}/nowhere")[0] == 404


def test_below_a_path_of_fastapi(tmp_path):
    fastapi = pytest.importorskip("fastapi")
    with StrictServer("kimi", SCRIPT) as server:
        gateway = mull.serve_app(file_for(tmp_path, server.url))

        @asynccontextmanager
        async def lifespan(app):
            yield
            await gateway.close()

        app = fastapi.FastAPI(lifespan=lifespan)
        app.mount("/llm", gateway)

        @app.get("/")
        def own() -> dict:
            return {"own": True}

        with run(app) as port:
            assert ask(port, "/") == (200, b'{"own":true}')
            use(port, "/llm")
    assert not server.refusals


def test_below_a_path_of_starlette_without_a_lifespan(tmp_path):
    applications = pytest.importorskip("starlette.applications")
    from starlette.routing import Mount

    with StrictServer("kimi", SCRIPT) as server:
        gateway = mull.serve_app(file_for(tmp_path, server.url))
        inner = applications.Starlette(routes=[Mount("/b", gateway)])
        with run(applications.Starlette(routes=[Mount("/a", inner)])) as port:
            use(port, "/a/b")
        asyncio.run(gateway.close())
    assert not server.refusals


def test_alone_with_a_lifespan(tmp_path):
    with (
        StrictServer("kimi", SCRIPT) as server,
        run(mull.serve_app(file_for(tmp_path, server.url))) as port,
    ):
        use(port, "")
    assert not server.refusals
