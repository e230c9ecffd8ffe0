"""The Copilot login step by step: every answer GitHub gives, scripted, with made-up times."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull._version import __version__
from mull.auth.copilot import log_in, request_headers, session
from mull.auth.flow import HttpReply, HttpRequest, LoggedIn, Session, Show, Wait
from mull.auth.logins import LOGINS
from mull.auth.secret import Secret
from mull.neutral.blocks import MediaBlock, TextBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.errors import NetworkError, RefusedError, RemoteError
from mull.neutral.messages import Message, assistant, user

DEVICE_URL = "https://github.com/login/device/code"
TOKEN_URL = "https://github.com/login/oauth/access_token"
SESSION_URL = "https://api.github.com/copilot_internal/v2/token"
DEVICE = {
    "device_code": "dev-1",
    "user_code": "ABCD-1234",
    "verification_uri": "https://github.com/login/device",
    "expires_in": 900,
    "interval": 5,
}
PENDING = {"error": "authorization_pending"}
TOKEN = {"access_token": "gho_canary", "token_type": "bearer", "scope": "read:user"}
SESSION = {
    "token": "tid=1;exp=2:sig",
    "expires_at": 3_000,
    "refresh_in": 1_500,
    "endpoints": {"api": "https://api.individual.githubcopilot.com/"},
}


class Play:
    """Drives a flow with scripted replies; waiting moves its clock."""

    def __init__(self, flow, *script, clock=1_000.0, rest=None):
        self.flow, self.script, self.clock, self.rest = flow, list(script), clock, rest
        self.steps = []
        self.outcome = None

    def run(self):
        try:
            step = next(self.flow)
            while True:
                self.steps.append(step)
                step = self._answer(step)
        except StopIteration as end:
            self.outcome = end.value
        assert self.rest or not self.script, "the flow ended before the script did"
        return self

    def _answer(self, step):
        if isinstance(step, Wait):
            self.clock += step.seconds
        if not isinstance(step, HttpRequest):
            return self.flow.send(None)
        reply = self.script.pop(0) if self.script else self.rest
        if isinstance(reply, Exception):
            return self.flow.throw(reply)
        status, body = reply if isinstance(reply, tuple) else (200, reply)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.flow.send(HttpReply(status, data, self.clock))

    @property
    def requests(self):
        return [step for step in self.steps if isinstance(step, HttpRequest)]

    @property
    def waits(self):
        return [step.seconds for step in self.steps if isinstance(step, Wait)]


def test_a_login_from_code_to_session():
    play = Play(log_in(), DEVICE, PENDING, PENDING, TOKEN, SESSION).run()
    assert play.outcome.key == Secret("gho_canary")
    assert play.outcome.session == Session(
        Secret("tid=1;exp=2:sig"), 1_015 + 1_500, "https://api.individual.githubcopilot.com"
    )
    assert [type(step) for step in play.steps] == [
        HttpRequest, Show, Wait, HttpRequest, Wait, HttpRequest, Wait, HttpRequest, HttpRequest,
    ]  # fmt: skip
    assert play.steps[1] == Show("ABCD-1234", "https://github.com/login/device", 900)
    assert play.waits == [5, 5, 5]


def test_the_bytes_that_go_out():
    first, poll, exchange = Play(log_in(), DEVICE, TOKEN, SESSION).run().requests
    agent = f"mull/{__version__}"
    posted = {
        "accept": "application/json",
        "user-agent": agent,
        "editor-version": agent,
        "content-type": "application/json",
    }
    assert (first.method, first.url, first.headers) == ("POST", DEVICE_URL, posted)
    assert first.body == b'{"client_id":"Iv1.b507a08c87ecfe98","scope":"read:user"}'
    assert (poll.method, poll.url, poll.headers) == ("POST", TOKEN_URL, posted)
    assert json.loads(poll.body) == {
        "client_id": "Iv1.b507a08c87ecfe98",
        "device_code": "dev-1",
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
    }
    assert (exchange.method, exchange.url, exchange.body) == ("GET", SESSION_URL, None)
    assert exchange.headers == {
        "accept": "application/json",
        "user-agent": agent,
        "editor-version": agent,
        "authorization": "token gho_canary",
    }


@pytest.mark.parametrize(
    ("said", "waits"),
    [
        ({}, [5, 10, 10]),  # RFC 8628: five seconds more, for this and all that follow
        ({"interval": 12}, [5, 12, 12]),
        ({"interval": 6}, [5, 10, 10]),
        ({"interval": "x"}, [5, 10, 10]),
    ],
)
def test_slow_down_lengthens_the_interval_for_good(said, waits):
    slow = {"error": "slow_down", **said}
    assert Play(log_in(), DEVICE, slow, PENDING, TOKEN, SESSION).run().waits == waits


def test_an_interval_that_is_not_given_is_five_seconds():
    device = {name: DEVICE[name] for name in DEVICE if name not in ("interval", "expires_in")}
    play = Play(log_in(), device, TOKEN, SESSION).run()
    assert play.waits == [5]
    assert play.steps[1].seconds == 900


@pytest.mark.parametrize("trouble", [NetworkError("gone"), (502, b"<html>"), (429, b"")])
def test_trouble_while_polling_backs_off_and_goes_on(trouble):
    play = Play(log_in(), DEVICE, trouble, trouble, TOKEN, SESSION).run()
    assert play.waits == [5, 10, 20]
    assert play.outcome.key == Secret("gho_canary")


def test_backing_off_ends_at_a_minute():
    gone = [NetworkError("gone")] * 6
    assert Play(log_in(), DEVICE, *gone, TOKEN, SESSION).run().waits == [5, 10, 20, 40, 60, 60, 60]


def test_a_network_that_stays_away_ends_when_the_code_does():
    play = Play(log_in(), {**DEVICE, "expires_in": 100}, *[NetworkError("gone")] * 4)
    with pytest.raises(RefusedError, match="not entered in time"):
        play.run()
    assert play.waits == [5, 10, 20, 40]


def test_a_network_that_is_not_there_at_the_start_is_the_error_itself():
    with pytest.raises(NetworkError, match="gone"):
        Play(log_in(), NetworkError("gone")).run()


def refusal(*script):
    with pytest.raises(RefusedError) as caught:
        Play(log_in(), *script).run()
    return caught.value


def test_a_declined_login():
    error = refusal(DEVICE, PENDING, {"error": "access_denied"})
    assert str(error) == "the login was declined on GitHub; nothing is stored"
    assert error.code == "access_denied"


@pytest.mark.parametrize(
    "script", [({"error": "expired_token"},), (PENDING, PENDING, PENDING)], ids=["told", "by time"]
)
def test_a_code_that_was_not_entered_in_time(script):
    error = refusal({**DEVICE, "expires_in": 18}, *script)
    assert str(error) == (
        "the code was not entered in time; run `mull keys login github-copilot` for a new one"
    )
    assert error.code == "expired_token"


def test_any_other_error_is_told_in_githubs_words():
    error = refusal(DEVICE, {"error": "device_flow_disabled", "error_description": "Not on."})
    assert str(error) == 'GitHub refused the login: "Not on."'
    assert error.code == "device_flow_disabled"
    assert str(refusal(DEVICE, {})) == "GitHub refused the login: it answered 200"


@pytest.mark.parametrize(
    "change",
    [
        {"device_code": None},
        {"user_code": None},
        {"user_code": "AB\x1b[2J"},
        {"verification_uri": "http://github.com/login/device"},
        {"verification_uri": "https://evil.example/ run this"},
    ],
)
def test_a_code_or_address_that_should_not_be_put_before_a_person(change):
    error = refusal({**DEVICE, **change})
    assert str(error) == "GitHub did not start a login: it answered 200"


def test_a_login_that_does_not_begin():
    error = refusal((404, {"message": "Not Found"}))
    assert str(error) == 'GitHub did not start a login: "Not Found"'
    assert error.status == 404


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"\xff", b"[" * 100_000])
def test_an_answer_that_is_not_json(body):
    with pytest.raises(RemoteError, match="GitHub answered 200 with something other than JSON"):
        Play(log_in(), body).run()


def test_a_token_that_could_write_headers_is_not_taken():
    with pytest.raises(RemoteError) as caught:
        Play(log_in(), DEVICE, {"access_token": "gho_canary\r\nx: y"}).run()
    assert "canary" not in str(caught.value)


# sessions


def test_a_held_session_is_used_until_it_is_to_be_refreshed():
    held = Session(Secret("t"), 2_000.0)
    assert Play(session(Secret("k"), held, 1_999.0)).run().outcome is held
    play = Play(session(Secret("k"), held, 2_000.0), SESSION, clock=2_000.0).run()
    assert play.outcome.refresh_at == 3_500
    assert len(play.requests) == 1


@pytest.mark.parametrize(
    ("times", "refresh_at"),
    [
        ({"refresh_in": 1_500, "expires_at": 99}, 2_500),  # a clock that is wrong does no harm
        ({"expires_at": 3_000}, 2_700),
        ({"refresh_in": True, "expires_at": "soon"}, 2_500),
        ({"refresh_in": -1, "expires_at": 10**400}, 2_500),
    ],
)
def test_when_a_session_is_to_be_refreshed(times, refresh_at):
    answer = {"token": "t", **times}
    assert Play(session(Secret("k"), None, 0), answer).run().outcome.refresh_at == refresh_at


@pytest.mark.parametrize(
    "endpoints", [None, [], {"api": 1}, {"api": "http://x"}, {"api": "https://x y"}, {}]
)
def test_a_session_without_an_address_of_its_own(endpoints):
    answer = {**SESSION, "endpoints": endpoints}
    assert Play(session(Secret("k"), None, 0), answer).run().outcome.api is None


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (401, {"message": "Bad credentials"}, '"Bad credentials"'),
        (403, {"error_details": {"message": "No access to Copilot."}}, '"No access to Copilot."'),
        (404, {}, "it answered 404"),
        (200, {"token": None}, "it answered 200"),
    ],
)
def test_a_key_that_gives_no_session(status, body, reason):
    with pytest.raises(RefusedError) as caught:
        Play(session(Secret("gho_canary"), None, 0), (status, body)).run()
    assert str(caught.value) == (
        f"GitHub did not grant a Copilot session: {reason}; run"
        " `mull keys login github-copilot` to log in again"
    )
    assert caught.value.status == status


def test_githubs_words_do_not_carry_a_token():
    said = {"message": "token gho_0123456789abcdef0123 is bad"}
    with pytest.raises(RefusedError) as caught:
        Play(session(Secret("k"), None, 0), (401, said)).run()
    assert "0123456789" not in str(caught.value)


def test_steps_show_no_secret_in_their_repr():
    play = Play(log_in(), DEVICE, TOKEN, SESSION).run()
    shown = repr((play.steps, play.outcome, HttpReply(200, b"gho_canary", 1.0)))
    assert "gho_canary" not in shown
    assert "tid=1" not in shown
    assert "HttpRequest(GET https://api.github.com/copilot_internal/v2/token)" in shown


def test_a_driver_that_forgets_the_reply_is_told():
    flow = log_in()
    next(flow)
    with pytest.raises(TypeError, match="was not sent the reply"):
        flow.send(None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
KEYS = st.sampled_from([*DEVICE, *TOKEN, *SESSION, "error", "error_description", "error_details"])


@given(st.lists(st.tuples(st.integers(200, 599), st.dictionaries(KEYS, JSON)), max_size=4))
def test_whatever_github_answers_the_flow_ends_in_an_outcome_or_a_remote_error(script):
    opening = [(200, {**DEVICE, **change}) for _, change in script[:1]]
    play = Play(log_in(), *opening, *script[1:], rest=NetworkError("gone"))
    try:
        outcome = play.run().outcome
    except RemoteError:
        return
    assert isinstance(outcome, LoggedIn)


# headers


def test_the_headers_of_a_request():
    agent = f"mull/{__version__}"
    assert request_headers([user("hi")]) == {
        "user-agent": agent,
        "editor-version": agent,
        "copilot-integration-id": "vscode-chat",
        "x-initiator": "user",
    }
    assert LOGINS["github-copilot"]().request_headers is request_headers


def test_what_follows_a_tool_call_is_the_programs():
    call = assistant(ToolCallBlock("1", "f"))
    result = Message("tool", blocks=(ToolResultBlock("1", "ok"),))
    assert request_headers([user("hi"), call, result])["x-initiator"] == "agent"
    assert request_headers([user("hi"), call, result, user("go")])["x-initiator"] == "user"
    assert request_headers([])["x-initiator"] == "user"


def test_images_are_announced_wherever_they_are():
    image, sound = MediaBlock("image/png", data="AA=="), MediaBlock("audio/wav", data="AA==")
    told = "copilot-vision-request"
    assert request_headers([Message("user", blocks=(TextBlock("a"), image))])[told] == "true"
    in_tool = Message("tool", blocks=(ToolResultBlock("1", media=(image,)),))
    assert request_headers([in_tool])[told] == "true"
    assert told not in request_headers([Message("user", blocks=(sound,))])
