"""A gateway for a team: who is let in, to what, how much, and what was used."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sqlite3
from contextlib import closing, redirect_stdout
from typing import Any

import pytest

from gateway.ledgers import NOON, Model
from gateway.stores import Flaky
from gateway.test_app import KIMI, QUESTION, SCRIPT, STREAMED, Answer, ask
from mull.agent.engine import Engine
from mull.cli.main import main
from mull.gateway.accounts import Accounts
from mull.gateway.app import GatewayApp, Page
from mull.gateway.door import Door
from mull.gateway.envelope import Envelopes
from mull.gateway.guard import Guarded
from mull.gateway.keyring import Keyring
from mull.gateway.ledger import Tally, day_of
from mull.gateway.ledger_sqlite import SqliteLedger
from mull.gateway.memory import InProcess
from mull.gateway.metrics import Metrics
from mull.gateway.routes import Routes
from mull.gateway.serve import build_app
from mull.gateway.service import Gateway
from mull.gateway.stores import STORE_FILE
from mull.gateway.tokens import Budget, ClientToken, Limits, hashed
from mull.store.paths import data_dir
from mull.store.serve import ServeConfig, ServedModel, ServedTarget
from mull.testing import CUT, Gate, Reply, Say, ScriptedServer, StrictServer, Think

SECRET = "mull-0123456789abcdefghijABCDEFGHIJ0123456789"
NOWHERE = "http://127.0.0.1:9"
CONTENTS = json.dumps({"contents": [{"role": "user", "parts": [{"text": "q"}]}]}).encode()
INPUT = json.dumps({"model": "m", "input": "q"}).encode()
MESSAGES = json.dumps({**json.loads(QUESTION), "max_tokens": 50}).encode()
DIALECTS = {
    "openai-chat": ("/v1/chat/completions", QUESTION),
    "openai-responses": ("/v1/responses", INPUT),
    "anthropic": ("/v1/messages", MESSAGES),
    "gemini": ("/v1beta/models/m:generateContent", CONTENTS),
}


class Team:
    """A gateway with one client, and requests to it, one after the other in one event loop."""

    def __init__(self, url: str = NOWHERE, limits: Limits | None = None, **door: Any) -> None:
        self.now = NOON
        self.monotonic = 0.0
        self.ledger = Model()
        self.limits = limits
        self.door = door
        self.url = url

    async def __aenter__(self) -> Team:
        engine = Engine(isolated=True)
        models = {
            "m": ServedModel(KIMI, base_url=self.url),
            "other": ServedModel("openai/gpt-5", base_url=NOWHERE),
        }
        keyring = Keyring(self.ledger, clock=lambda: self.monotonic)
        if self.limits is not None:
            token = ClientToken("ann", hashed(SECRET), limits=self.limits)
            assert await self.ledger.put_token(token, new=True)
        metrics, clock = Metrics(), lambda: self.now
        accounts = Accounts(self.ledger, keyring, clock, patience=600, metrics=metrics)
        routes = Routes(engine, ServeConfig(models=models))
        sealing = Envelopes(b"k" * 32)
        self.gateway = Gateway(engine, routes, InProcess(), sealing, [metrics], accounts)
        metrics.store_failures = lambda: self.gateway.store_failures
        door = Door(keyring, clock=clock, **self.door)
        self.app = GatewayApp(self.gateway, door, {"/metrics": Page(metrics.page)})
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.gateway.close()

    async def ask(self, path: str, body: bytes, **more: Any) -> Answer:
        """One request that shows the token."""
        shown = {"authorization": f"Bearer {SECRET}", **more}
        answer = await ask(self.app, "POST" if body else "GET", path, body, **shown)
        assert answer is not None
        return answer

    async def used(self) -> Tally:
        """What is written of the client once it has all been."""
        await self.gateway.close()
        rows = await self.ledger.usage(day_of(0), day_of(NOON))
        assert {(row.client, row.model) for row in rows} <= {("ann", KIMI)}
        return sum((row.tally for row in rows), Tally())


def run(work):
    return asyncio.run(work())


SAID = "this token may send 1 request a minute: try again in 60 s"


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (
            "openai-chat",
            {"message": SAID, "code": "rate_limit_exceeded", "param": None},
        ),
        ("openai-responses", {"message": SAID, "code": "rate_limit_exceeded"}),
        ("anthropic", {"message": SAID, "type": "rate_limit_error"}),
        ("gemini", {"message": SAID, "code": 429, "status": "RESOURCE_EXHAUSTED"}),
    ],
)
def test_a_rate_is_refused_in_each_dialect(dialect, body):
    async def work():
        path, question = DIALECTS[dialect]
        with StrictServer("kimi", SCRIPT * 2) as server:
            async with Team(server.url, Limits(requests_per_minute=1)) as team:
                assert (await team.ask(path, question)).status == 200
                refused = await team.ask(path, question)
                team.now += 60
                assert (await team.ask(path, question)).status == 200
        assert refused.status == 429
        assert refused.headers["retry-after"] == "60"
        assert body.items() <= refused.json["error"].items()

    run(work)


@pytest.mark.parametrize(
    ("dialect", "status", "word"),
    [
        ("openai-chat", 429, "insufficient_quota"),
        ("openai-responses", 429, "insufficient_quota"),
        ("anthropic", 402, "billing_error"),
        ("gemini", 429, "RESOURCE_EXHAUSTED"),
    ],
)
def test_a_used_up_budget_is_told_as_each_dialect_tells_it(dialect, status, word):
    async def work():
        path, question = DIALECTS[dialect]
        limits = Limits(dollars=(Budget(1e-9, "day"),), tokens=(Budget(10, "month"),))
        async with Team(limits=limits) as team:
            refused = await team.ask(path, question)
        assert refused.status == status
        assert word in refused.json["error"].values()
        assert refused.headers["x-should-retry"] == "false"

    run(work)


def test_a_stream_is_refused_before_it_begins():
    async def work():
        with StrictServer("kimi", SCRIPT) as server:
            async with Team(server.url, Limits(requests_per_minute=1)) as team:
                path = "/v1/chat/completions"
                assert (await team.ask(path, STREAMED)).status == 200
                refused = await team.ask(path, STREAMED)
        assert refused.status == 429
        assert refused.headers["content-type"] == "application/json"
        assert len(server.requests) == 1

    run(work)


def test_a_small_budget_is_used_up_before_anything_is_refused():
    async def work():
        asked = json.dumps({**json.loads(QUESTION), "max_tokens": 128_000}).encode()
        with StrictServer("kimi", SCRIPT * 9) as server:
            async with Team(server.url, Limits(tokens=(Budget(200, "day"),))) as team:
                statuses = []
                for question in (QUESTION, asked) * 4:
                    answer = await team.ask("/v1/chat/completions", question)
                    statuses.append(answer.status)
                tally = await team.used()
        answers = statuses.count(200)
        assert statuses == [200] * answers + [429] * (8 - answers)
        assert answers > 1
        assert 200 - tally.input // answers < tally.tokens  # another would not have fitted
        assert tally.tokens < 200 + tally.output // answers + 1  # and one answer beyond

    run(work)


def test_a_budget_of_money_says_where_it_cannot_count(monkeypatch):
    monkeypatch.setattr("mull.gateway.metering.cost_of", lambda *_: None)

    async def work():
        with StrictServer("kimi", SCRIPT) as server:
            async with Team(server.url, Limits(dollars=(Budget(1, "day"),))) as team:
                answer = await team.ask("/v1/chat/completions", STREAMED)
                tally = await team.used()
        assert answer.status == 200
        assert f"budget: the price of {KIMI} is unknown" in answer.headers["x-mull-notes"]
        assert (tally.unpriced, tally.nanodollars) == (1, 0)

    run(work)


@pytest.mark.parametrize("patterns", [("m",), ("moonshotai/*",), ("x", "kimi*", "?")])
def test_a_client_sees_and_uses_the_models_that_it_may(patterns):
    async def work():
        with StrictServer("kimi", SCRIPT) as server:
            async with Team(server.url, Limits(models=patterns)) as team:
                listed = (await team.ask("/v1/models", b"")).json
                assert [one["id"] for one in listed["data"]] == ["m"]
                assert (await team.ask("/v1/models/other", b"")).status == 403
                assert (await team.ask("/v1/chat/completions", QUESTION)).status == 200
                for path, body in (
                    ("/v1/messages", {**json.loads(MESSAGES), "model": "other"}),
                    ("/v1/messages/count_tokens", {**json.loads(MESSAGES), "model": "other"}),
                    ("/v1beta/models/other:streamGenerateContent", json.loads(CONTENTS)),
                ):
                    refused = await team.ask(path, json.dumps(body).encode())
                    assert refused.status == 403
                    assert 'this token may not use "other"' in refused.json["error"]["message"]
                unknown = await team.ask("/v1/chat/completions", b'{"model":"none","messages":[]}')
                assert unknown.status == 404
                assert "other" not in unknown.json["error"]["message"]

    run(work)


def test_what_was_asked_for_is_counted_with_its_cost():
    async def work():
        with StrictServer("kimi", SCRIPT) as server:
            async with Team(server.url, Limits()) as team:
                answer = await team.ask("/v1/chat/completions", QUESTION)
                usage = answer.json["usage"]
                tally = await team.used()
        assert (tally.requests, tally.errors, tally.estimated) == (1, 0, 0)
        assert (tally.input, tally.output) == (usage["prompt_tokens"], usage["completion_tokens"])
        assert tally.reasoning > 0
        assert tally.nanodollars > 0

    run(work)


def telling(app, heard):
    """The application, and when it has said something of an answer."""

    async def told(scope, receive, send):
        async def sending(message):
            await send(message)
            if message.get("body"):
                heard.set()

        await app(scope, receive, sending)

    return told


@pytest.mark.parametrize("how", ["cut", "left", "refused", "unreachable"])
def test_what_ends_badly_is_counted_once(how):
    chunk = {"choices": [{"index": 0, "delta": {"reasoning_content": "Hm, " * 4}}]}
    gate = Gate()
    replies = {
        "cut": Reply.events(chunk, CUT),
        "left": Reply.events(chunk, gate),
        "refused": Reply.json({"error": {"message": "no"}}, 429),
        "unreachable": Reply.json({}),
    }

    async def work():
        with ScriptedServer([replies[how]]) as server:
            url = NOWHERE if how == "unreachable" else server.url
            async with Team(url, Limits()) as team:
                heard = asyncio.Event()
                leave = heard.wait if how == "left" else None
                team.app = telling(team.app, heard)
                await team.ask("/v1/chat/completions", STREAMED, leave=leave)
                gate.open()
                tally = await team.used()
        costs = how in ("cut", "left")
        assert tally.requests == 1
        assert tally.errors == (how != "left")
        assert tally.estimated == costs
        assert (tally.output, tally.reasoning) == ((4, 4) if costs else (0, 0))
        assert (tally.input > 0) == (tally.nanodollars > 0) == costs

    run(work)


def test_a_running_gateway_notices_tokens_that_are_made_and_revoked():
    async def work():
        async with Team() as team:
            assert (await team.ask("/v1/models", b"")).status == 200
            token = ClientToken("ann", hashed("another"))
            await team.ledger.put_token(token, new=True)
            team.monotonic += 1.1
            assert (await team.ask("/v1/models", b"")).status == 401
            shown = {"authorization": "Bearer another"}
            assert (await team.ask("/v1/models", b"", **shown)).status == 200
            revoked = ClientToken("ann", hashed("another"), revoked=NOON)
            await team.ledger.put_token(revoked, new=False)
            team.monotonic += 1.1
            refused = await team.ask("/v1/models", b"", **shown)
            assert refused.status == 401
            assert "revoked" in refused.json["error"]["message"]
            await team.ledger.remove_token("ann")
            team.monotonic += 1.1
            assert (await team.ask("/v1/models", b"", **shown)).status == 200

    run(work)


def test_one_valid_token_among_other_keys_is_enough():
    async def work():
        async with Team(limits=Limits()) as team:
            shown = {"authorization": "Bearer sk-other", "x_api_key": SECRET}
            assert (await team.ask("/v1/models", b"", **shown)).status == 200
            shown = {"authorization": "Bearer sk-other", "x_api_key": "nor this"}
            assert (await team.ask("/v1/models", b"", **shown)).status == 401

    run(work)


def test_off_loopback_nobody_comes_in_without_a_token_even_if_there_is_none():
    async def work():
        async with Team(is_needed=True) as team:
            assert (await team.ask("/v1/models", b"")).status == 401

    run(work)


def test_tokens_stay_valid_while_they_cannot_be_read(monkeypatch):
    async def broken():
        raise OSError("gone")

    async def work():
        async with Team(limits=Limits()) as team:
            monkeypatch.setattr(team.ledger, "tokens", broken)
            refused = await team.ask("/v1/models", b"")
            assert refused.status == 503
            assert refused.headers["retry-after"] == "2"
            monkeypatch.undo()
            team.monotonic += 1.1
            assert (await team.ask("/v1/models", b"")).status == 200
            monkeypatch.setattr(team.ledger, "tokens", broken)
            team.monotonic += 1.1
            assert (await team.ask("/v1/models", b"")).status == 200
            assert (await team.ask("/v1/models", b"", authorization="Bearer x")).status == 401

    run(work)


def test_a_token_ends_on_its_day():
    async def work():
        async with Team() as team:
            token = ClientToken("ann", hashed(SECRET), expires=NOON + 5)
            await team.ledger.put_token(token, new=True)
            assert (await team.ask("/v1/models", b"")).status == 200
            team.now += 5
            refused = await team.ask("/v1/models", b"")
            assert refused.status == 401
            assert "expired" in refused.json["error"]["message"]

    run(work)


def test_a_token_is_never_forwarded_told_or_logged(caplog):
    caplog.set_level(logging.DEBUG)
    said = {"error": {"message": f"who is {SECRET}?"}}

    async def work():
        with ScriptedServer([Reply.json(said, 400)] * 4) as server:
            async with Team(server.url, Limits()) as team:
                for place in (
                    {"authorization": f"Bearer {SECRET}"},
                    {"authorization": "", "x_api_key": SECRET},
                    {"authorization": "", "x_goog_api_key": SECRET},
                ):
                    await team.ask("/v1/chat/completions", QUESTION, **place)
                asked = f"/v1beta/models/m:generateContent?key={SECRET}"
                answer = await team.ask(asked, CONTENTS, authorization="")
                assert answer.status == 400
                wrong = await team.ask("/v1/models", b"", authorization=f"Bearer {SECRET}x")
        assert wrong.status == 401
        assert SECRET not in wrong.body.decode()
        assert len(server.requests) == 4
        for request in server.requests:
            assert SECRET not in str(request.headers) + str(request.path) + request.body.decode()

    run(work)
    assert SECRET not in caplog.text


def test_wrong_tokens_from_one_address_are_soon_told_to_wait():
    async def work():
        async with Team(limits=Limits()) as team:
            wrong = {"authorization": "Bearer wrong"}
            statuses = [(await team.ask("/v1/models", b"", **wrong)).status for _ in range(21)]
            assert statuses == [401] * 20 + [429]
            assert (await team.ask("/v1/models", b"")).status == 200
            team.now += 60
            assert (await team.ask("/v1/models", b"", **wrong)).status == 401

    run(work)


PAGE = "https://page.example"
WANTS = {"access_control_request_method": "POST", "access_control_request_headers": "x-api-key"}


def test_pages_may_call_if_they_are_configured_and_no_others():
    async def work():
        async with Team(limits=Limits(), origins=[PAGE]) as team:
            asked = await ask(team.app, "OPTIONS", "/v1/messages", origin=PAGE, **WANTS)
            assert asked.status == 204
            assert asked.headers["access-control-allow-origin"] == PAGE
            assert asked.headers["access-control-allow-headers"] == "x-api-key"
            answer = await team.ask("/v1/models", b"", origin=PAGE)
            assert answer.status == 200
            assert answer.headers["access-control-allow-origin"] == PAGE
            refused = await ask(team.app, "GET", "/v1/models", origin=PAGE)
            assert (refused.status, refused.headers["vary"]) == (401, "origin")
            for origin in ("https://evil.example", "null", "http://127.0.0.1:9"):
                for method, more in (("OPTIONS", WANTS), ("POST", {})):
                    evil = await ask(team.app, method, "/v1/messages", origin=origin, **more)
                    assert evil.status == 403
                    assert "access-control-allow-origin" not in evil.headers
            own = await team.ask("/v1/models", b"", origin="http://127.0.0.1:8484")
            assert own.status == 200
            plain = await team.ask("/v1/models", b"")
            assert "access-control-allow-origin" not in plain.headers

    run(work)


def test_a_served_gateway_has_all_of_it_in_its_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MULL_DATA_DIR", str(tmp_path))
    monkeypatch.setattr("mull.gateway.keyring._FRESH", 0.0)

    async def work():
        with StrictServer("kimi", SCRIPT * 2) as server:
            models = {"m": ServedModel(KIMI, base_url=server.url)}
            app = build_app(Engine(isolated=True), ServeConfig(models=models))
            ledger = SqliteLedger(tmp_path / STORE_FILE)
            path = "/v1/chat/completions"
            assert (await ask(app, "POST", path, QUESTION)).status == 200
            assert len((await ask(app, "GET", "/watch/requests")).json) == 1
            await ledger.put_token(ClientToken("ann", hashed(SECRET)), new=True)
            assert (await ask(app, "POST", path, QUESTION)).status == 401
            shown = {"authorization": f"Bearer {SECRET}"}
            assert (await ask(app, "POST", path, QUESTION, **shown)).status == 200
            assert (await ask(app, "GET", "/watch/requests", **shown)).json == []
            assert (
                b"mull_gateway_requests_total" in (await ask(app, "GET", "/metrics", **shown)).body
            )
            await app._gateway.close()
            rows = await ledger.usage("2000-01-01", "2100-01-01")
            await ledger.close()
        assert {row.client: row.tally.requests for row in rows} == {"": 1, "ann": 1}

    run(work)


def on_disk(url: str, **more: Any):
    """A gateway on the files of this test's home, as `mull serve` makes it."""
    models = {"m": ServedModel(KIMI, base_url=url)}
    return build_app(Engine(isolated=True), ServeConfig(models=models, watch=True, **more))


def command(line: str) -> str:
    """What `mull serve` prints for this line."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert main(["serve", *line.split()]) == 0
    return printed.getvalue().strip()


@pytest.fixture
def fresh(monkeypatch):
    """Tokens are read for each request."""
    monkeypatch.setattr("mull.gateway.keyring._FRESH", 0.0)


async def say(app, token: str, path: str, body: dict[str, Any] | None = None) -> Answer:
    sent = json.dumps(body).encode() if body else b""
    shown = {"authorization": f"Bearer {token}"}
    answer = await ask(app, "POST" if body else "GET", path, sent, **shown)
    assert answer is not None
    return answer


ASKED = {"model": "m", "input": "a secret of the first ann"}


async def left_by(app, token: str) -> dict[str, Any]:
    """What a client has stored: a response, and an envelope for its reasoning."""
    answer = await say(app, token, "/v1/responses", ASKED)
    assert answer.status == 200
    return answer.json


async def opened_to(app, token: str, left: dict[str, Any]) -> list[int]:
    """Whether a client can read a response, its input, continue it, refer to its items, and see its
    request on the page."""
    item = {"type": "item_reference", "id": left["output"][-1]["id"]}
    continued = {"model": "m", "input": "and?", "previous_response_id": left["id"]}
    return [
        (await say(app, token, f"/v1/responses/{left['id']}")).status,
        (await say(app, token, f"/v1/responses/{left['id']}/input_items")).status,
        (await say(app, token, "/v1/responses", continued)).status,
        (await say(app, token, "/v1/responses", {"model": "m", "input": [item]})).status,
        len((await say(app, token, "/watch/requests")).json),
        len((await say(app, token, "/watch/search?q=secret")).json),
    ]


def record_count() -> int:
    with closing(sqlite3.connect(data_dir() / STORE_FILE)) as db:
        (count,) = db.execute("SELECT count(*) FROM record").fetchone()
    return int(count)


def test_a_name_that_is_given_out_again_opens_nothing_of_its_former_holder(fresh):
    async def work():
        with StrictServer("kimi", SCRIPT * 20) as server:
            app = on_disk(server.url)
            first = await asyncio.to_thread(command, "token add ann")
            await asyncio.to_thread(command, "token add bob")
            left = await left_by(app, first)
            assert await opened_to(app, first, left) == [200, 200, 200, 200, 3, 1]
            turned = await asyncio.to_thread(command, "token rotate ann")
            assert (await opened_to(app, turned, left))[:4] == [200, 200, 200, 200]
            assert (await say(app, first, "/v1/models")).status == 401
            assert record_count() > 0
            await asyncio.to_thread(command, "token remove ann")
            assert record_count() == 0
            second = await asyncio.to_thread(command, "token add ann")
            assert (await say(app, turned, "/v1/models")).status == 401
            assert await opened_to(app, second, left) == [404, 404, 400, 404, 0, 0]
            used = (await left_by(app, second))["usage"]["total_tokens"]
            await app.close()
        return used

    used = run(work)
    usage = json.loads(command("usage --by token --json"))
    assert [(one["token"], one["requests"]) for one in usage] == [("ann", 6)]
    (second, _) = json.loads(command("token list --json"))
    assert (second["name"], second["today"]["tokens"]) == ("ann", used)


def test_a_new_client_of_a_removed_name_has_limits_of_its_own(fresh):
    async def work():
        with StrictServer("kimi", SCRIPT * 4) as server:
            app = on_disk(server.url)
            await asyncio.to_thread(command, "token add bob")
            for _ in range(2):
                ann = await asyncio.to_thread(command, "token add ann --rpm 1 --models m")
                statuses = [(await say(app, ann, "/v1/responses", ASKED)).status for _ in range(2)]
                assert statuses == [200, 429]
                assert (await say(app, ann, "/v1/models/other")).status == 404
                await asyncio.to_thread(command, "token remove ann")
            await app.close()

    run(work)


def test_a_client_of_an_earlier_version_keeps_its_records_until_it_is_removed(fresh):
    """It has no id: what it stored is under its name."""

    async def work():
        with StrictServer("kimi", SCRIPT * 20) as server:
            ledger = SqliteLedger(data_dir() / STORE_FILE)
            await ledger.put_token(ClientToken("ann", hashed(SECRET)), new=True)
            await ledger.close()
            app = on_disk(server.url)
            left = await left_by(app, SECRET)
            turned = await asyncio.to_thread(command, "token rotate ann")
            assert (await opened_to(app, turned, left))[:4] == [200] * 4
            await asyncio.to_thread(command, "token add bob")
            await asyncio.to_thread(command, "token remove ann")
            assert record_count() == 0
            second = await asyncio.to_thread(command, "token add ann")
            assert await opened_to(app, second, left) == [404, 404, 400, 404, 0, 0]
            await app.close()

    run(work)


def test_only_the_removed_clients_records_are_deleted(fresh):
    async def work():
        with StrictServer("kimi", SCRIPT * 20) as server:
            app = on_disk(server.url)
            ann = await asyncio.to_thread(command, "token add ann")
            bob = await asyncio.to_thread(command, "token add bob")
            await left_by(app, ann)
            left = await left_by(app, bob)
            await asyncio.to_thread(command, "token remove ann")
            assert (await opened_to(app, bob, left))[:4] == [200] * 4
            await app.close()

    run(work)


def test_an_envelope_is_opened_for_the_client_that_has_it_and_not_for_the_next_of_its_name(fresh):
    """It is what the client itself holds, so deleting records does not reach it."""
    script = [[Think("The first ann's thought."), Say("Milk.")], *SCRIPT * 3]
    asked = json.loads(MESSAGES) | {"thinking": {"type": "adaptive"}}

    async def work():
        with StrictServer("kimi", script) as server:
            app = on_disk(server.url)
            ann = await asyncio.to_thread(command, "token add ann")
            await asyncio.to_thread(command, "token add bob")
            content = (await say(app, ann, "/v1/messages", asked)).json["content"]
            content[0]["thinking"] = ""
            talk = [
                *asked["messages"],
                {"role": "assistant", "content": content},
                {"role": "user", "content": "and?"},
            ]
            with closing(sqlite3.connect(data_dir() / STORE_FILE)) as db, db:
                db.execute("DELETE FROM record")
            for has_it in (True, False):
                assert (
                    await say(app, ann, "/v1/messages", asked | {"messages": talk})
                ).status == 200
                assert (b"The first ann's thought." in server.requests[-1].body) == has_it
                await asyncio.to_thread(command, "token remove ann")
                ann = await asyncio.to_thread(command, "token add ann")
            await app.close()

    run(work)


@pytest.mark.parametrize(
    ("allowed", "answers"),
    [
        (("moonshotai/kimi-k2.5",), [503, None]),
        (("openai/*",), [200, "openai"]),
        (("spare",), [200, "openai"]),
        (("m",), [200, "openai"]),
        (("*",), [200, "openai"]),
        (("anthropic/*",), [403, None]),
    ],
)
def test_a_fallback_never_leaves_the_models_of_a_token(allowed, answers):
    """The first target of `m` is down; its fallback is another provider's model."""

    async def work():
        down = ScriptedServer([Reply.json({"error": {"message": "down"}}, 503)] * 9)
        with down, StrictServer("openai", SCRIPT) as spare:
            async with Team(limits=Limits(models=allowed)) as team:
                models = {
                    "m": ServedModel(KIMI, base_url=down.url, fallback=("spare",)),
                    "spare": ServedModel("openai/gpt-5", base_url=spare.url),
                }
                team.gateway.routes = Routes(team.gateway.engine, ServeConfig(models=models))
                answer = await team.ask("/v1/chat/completions", QUESTION)
                listed = (await team.ask("/v1/models", b"")).json["data"]
        status, by = answers
        assert answer.status == status
        assert bool(spare.requests) == (by == "openai")
        if allowed in (("spare",), ("openai/*",)):
            assert not down.requests
        assert bool(listed) == (status != 403)

    run(work)


def test_requests_shared_among_targets_go_only_to_those_of_the_token():
    async def work():
        with StrictServer("kimi", SCRIPT * 8) as own, StrictServer("openai", SCRIPT * 8) as other:
            async with Team(limits=Limits(models=("moonshotai/*",))) as team:
                both = (ServedTarget(KIMI, own.url), ServedTarget("openai/gpt-5", other.url))
                models = {"m": ServedModel(KIMI, targets=both)}
                team.gateway.routes = Routes(team.gateway.engine, ServeConfig(models=models))
                for number in range(8):
                    content = [{"role": "user", "content": f"question {number}"}]
                    body = json.dumps({"model": "m", "messages": content}).encode()
                    assert (await team.ask("/v1/chat/completions", body)).status == 200
        assert (len(own.requests), len(other.requests)) == (8, 0)

    run(work)


@pytest.mark.parametrize("tokens", [False, True])
def test_health_is_public_and_tells_strangers_one_word(tokens):
    async def work():
        limits = Limits() if tokens else None
        async with Team(limits=limits) as team:
            team.app.health_details = lambda: {"config": "rejected"}
            flaky = Flaky(InProcess())
            team.gateway.memory = Guarded(flaky)
            everything = {"status": "ok", "config": "rejected"}
            for _ in range(30):  # more than the attempts of an address
                stranger = await ask(team.app, "GET", "/health")
                assert stranger.status == 200
                assert stranger.json == ({"status": "ok"} if tokens else everything)
            assert (await team.ask("/health", b"")).json == everything
            balancer = {"host": "10.0.0.5:8484"}
            assert (await ask(team.app, "GET", "/v1/models", **balancer)).status == 403
            by_address = await ask(team.app, "GET", "/health", **balancer)
            assert (by_address.status, by_address.json) == (200, {"status": "ok"})
            if tokens:
                assert (await ask(team.app, "GET", "/v1/models")).status == 401  # not 429
            wrong = await team.ask("/health", b"", authorization="Bearer wrong")
            assert (wrong.status, wrong.json == everything) == (200, not tokens)
            flaky.broken = True
            # no request meets it: the gateway looks by itself
            while (await ask(team.app, "GET", "/health")).json["status"] == "ok":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            stranger = await ask(team.app, "GET", "/health")
            assert (stranger.status, stranger.json.keys() == {"status"}) == (200, tokens)
            assert "could not be read" in (await team.ask("/health", b"")).json["store"]
            flaky.broken = False
            while (await ask(team.app, "GET", "/health")).json["status"] != "ok":  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    run(work)


def test_tokens_are_known_from_the_start_on(monkeypatch):
    """The store goes away before the first request."""

    async def broken():
        raise OSError("gone")

    async def work():
        async with Team(limits=Limits()) as team:
            events: asyncio.Queue[dict[str, str]] = asyncio.Queue()
            told = asyncio.Queue[Any]()
            events.put_nowait({"type": "lifespan.startup"})
            living = asyncio.create_task(team.app({"type": "lifespan"}, events.get, told.put))
            assert (await told.get())["type"] == "lifespan.startup.complete"
            monkeypatch.setattr(team.ledger, "tokens", broken)
            team.monotonic += 1.1
            assert (await team.ask("/v1/models", b"")).status == 200
            assert (await team.ask("/v1/models", b"", authorization="Bearer x")).status == 401
            told_all = (await team.ask("/health", b"")).json
            assert told_all == {"status": "degraded", "tokens": "cannot be read; see the log"}
            living.cancel()

    run(work)


def test_a_gateway_that_never_read_its_tokens_says_so_to_a_proxy(monkeypatch):
    async def broken():
        raise OSError("gone")

    async def work():
        async with Team(limits=Limits()) as team:
            monkeypatch.setattr(team.ledger, "tokens", broken)
            health = await team.ask("/health", b"")
            assert (health.status, health.json) == (503, {"status": "degraded"})
            monkeypatch.undo()
            team.monotonic += 1.1
            while (await team.ask("/health", b"")).json != {"status": "ok"}:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    run(work)
