"""The gateway's page in a real browser: live thoughts, one request in detail, search, tokens."""

from __future__ import annotations

import http.client
import json
import os
import threading
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from browser import Page, browsing, find_chromium
from gateway.conftest import serving
from mull.gateway.tokens import ClientToken, hashed
from mull.gateway.watching import Watch
from mull.store.serve import ServedModel
from mull.testing import Gate, Reply, ScriptedServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        find_chromium() is None, reason="chromium is not installed: apt-get install chromium"
    ),
]

EVIL = "<img src=x onerror=document.title='broken-in'> & <script>document.title='x'</script>"
THOUGHT = f"The user wants milk. {EVIL}"
KIMI = "moonshotai/kimi-k2.5"
USAGE = {
    "prompt_tokens": 1200,
    "completion_tokens": 300,
    "total_tokens": 1500,
    "prompt_tokens_details": {"cached_tokens": 800},
    "completion_tokens_details": {"reasoning_tokens": 180},
}
DONE = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": USAGE}


def piece(**delta):
    return {"choices": [{"index": 0, "delta": delta}]}


def answer(*between):
    return Reply.events(piece(reasoning_content=THOUGHT), *between, piece(content="Milk."), DONE)


def post(url, path, body, **headers):
    where = urlsplit(url)
    link = http.client.HTTPConnection(where.hostname, where.port, timeout=60)
    with closing(link):
        link.request(
            "POST", path, json.dumps(body), {"content-type": "application/json", **headers}
        )
        return link.getresponse().read()


def ask(url, question, **headers):
    body = {
        "model": "kimi",
        "max_tokens": 4000,
        "stream": True,
        "messages": [{"role": "user", "content": question}],
    }
    return post(url, "/v1/messages", body, **headers)


@pytest.fixture(params=[(1280, False), (1280, True), (390, True)], ids=["light", "dark", "phone"])
def look(request):
    return request.param


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("UPSTREAM_KEY", "sk-very-secret-key-0123456789")


def test_requests_are_seen_as_they_stream(look, tmp_path):
    width, dark = look
    gate = Gate()
    with ScriptedServer([answer(), answer(gate), Reply(status=429)]) as upstream:
        models = {"kimi": ServedModel(KIMI, base_url=upstream.url, key_env="UPSTREAM_KEY")}
        with (
            serving(models, watch=Watch()) as url,
            browsing(tmp_path) as browser,
        ):
            page = Page(browser, width=width, height=900, dark=dark)
            page.visit(url)
            page.wait_until("document.getElementById('state').className == 'live'")
            ask(url, "What shall I buy? (sk-very-secret-key-0123456789)")
            page.wait_until("document.querySelectorAll('#requests li').length == 1")
            second = threading.Thread(target=ask, args=(url, "And tomorrow?"))
            second.start()
            page.wait_until("document.querySelectorAll('#requests li').length == 2")
            assert gate.wait_reached()
            page.click("#requests li button")
            page.wait_until("document.querySelector('.said.thought')")
            assert page.evaluate("document.querySelector('.said.thought').innerText") == THOUGHT
            assert not page.evaluate("document.querySelector('.said.text')")
            picture(page, f"live-{width}-{dark}")
            gate.open()
            second.join(30)
            page.wait_until("document.querySelector('.said.text')?.innerText == 'Milk.'")
            page.wait_until(
                "document.querySelector('#requests .facts').innerText.includes('1,200')"
            )
            ask(url, "Once more?")
            page.wait_until("document.querySelector('#requests .bad')")
            road(page)
            search(page)
            picture(page, f"done-{width}-{dark}")
            assert page.evaluate("document.title") == "mull serve"
            assert page.evaluate("document.body.scrollWidth <= innerWidth")
            assert all(asked.startswith(url) for asked in page.requests())
            assert page.complaints() == []


def road(page):
    """One request in detail: three forms of it, the key masked."""
    page.click("#requests li:last-child button")
    page.wait_until("document.getElementById('detail').textContent.includes('shall I buy')")
    texts = page.evaluate(
        "[...document.querySelectorAll('#detail details pre')].map((e) => e.textContent)"
    )
    assert "What shall I buy?" in texts[0]
    assert "What shall I buy?" in texts[2]
    assert "chat/completions" in texts[2]
    assert "sk-very-secret" not in "".join(texts)
    page.evaluate("document.querySelector('#detail details:last-child').open = true")


def search(page):
    page.evaluate(
        "(() => { const e = document.getElementById('search'); e.value = 'TOMORROW';"
        " e.dispatchEvent(new Event('input')) })()"
    )
    page.wait_until("document.querySelectorAll('#requests li').length == 1")
    page.evaluate(
        "(() => { const e = document.getElementById('search'); e.value = '';"
        " e.dispatchEvent(new Event('input')) })()"
    )
    page.wait_until("document.querySelectorAll('#requests li').length == 3")


def test_a_token_sees_its_own_requests_alone(tmp_path):
    tokens = (ClientToken("ann", hashed("token-a")), ClientToken("bob", hashed("token-b")))
    with ScriptedServer([answer(), answer()]) as upstream:
        models = {"kimi": ServedModel(KIMI, base_url=upstream.url, key_env="UPSTREAM_KEY")}
        with (
            serving(models, watch=Watch(), tokens=tokens) as url,
            browsing(tmp_path) as browser,
        ):
            ask(url, "Ann's own", **{"x-api-key": "token-a"})
            ask(url, "Bob's own", **{"x-api-key": "token-b"})
            page = Page(browser, width=1000, height=800, dark=False)
            page.visit(url)
            page.wait_until("!document.getElementById('door').hidden")
            enter(page, "wrong")
            page.wait_until("document.getElementById('refused').innerText")
            enter(page, "token-a")
            page.wait_until("document.querySelectorAll('#requests li').length == 1")
            page.click("#requests li button")
            page.wait_until("document.querySelector('#detail details pre')")
            text = page.evaluate("document.querySelector('#detail').textContent")
            assert "Ann's own" in text
            assert "Bob's own" not in text
            assert not any("token-" in asked for asked in page.requests())
            page.visit(f"{url}/?key=token-b")
            page.wait_until("document.querySelectorAll('#requests li').length == 1")
            assert page.evaluate("location.search") == ""


def enter(page, token):
    page.evaluate(
        f"(() => {{ document.getElementById('token').value = {token!r};"
        " document.getElementById('door').requestSubmit() })()"
    )


def picture(page, name):
    """Keep what it looks like, where asked for."""
    if folder := os.environ.get("PICTURES"):
        Path(folder, f"gateway-{name}.png").write_bytes(page.screenshot())
