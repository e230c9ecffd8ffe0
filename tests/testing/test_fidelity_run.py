"""The harness of the fidelity suite: adapters that fail, environments, gateways that offer less."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tools import fidelity as tool

from mull.testing.fidelity import (
    AdapterFailed,
    AdapterProcess,
    Judge,
    Outcome,
    load_cases,
    run_cases,
    runner,
)
from mull.testing.fidelity import peers as peers_module
from mull.testing.fidelity.peers import Peer, PeerUnavailable, find_peer
from mull.testing.server import Reply, ScriptedServer

CASES = load_cases()
HUNG = "the client hung after request 1 was answered"
FAITHFUL = Path(__file__).parents[2] / "fidelity" / "adapters" / "faithful_adapter.py"


def play(command, cases, *, environ=None, on_line=None):
    process = AdapterProcess(command, environ=environ, on_line=on_line)
    with Judge() as judge, process as adapter:
        return [outcome for _, outcome in run_cases(cases, judge, adapter)]


def script(tmp_path, code):
    file = tmp_path / "adapter.py"
    file.write_text(code)
    return [sys.executable, str(file)]


def test_an_adapter_gets_the_environment_without_proxies(tmp_path, monkeypatch):
    for name in ("HTTP_PROXY", "https_proxy", "All_Proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("FIDELITY_TEST", "still here")
    code = """
import json, os
input()
names = sorted(key for key in os.environ if "PROXY" in key.upper() or key == "FIDELITY_TEST")
print(json.dumps({"notClaimed": " ".join(names)}), flush=True)
"""
    (found,) = play(script(tmp_path, code), CASES[:1])
    assert found == Outcome("not claimed", "FIDELITY_TEST")


@pytest.mark.parametrize("line", ["{}", "[1]", '{"answer": []}'])
def test_another_json_value_than_a_report_ends_the_run_at_once(tmp_path, line):
    command = script(tmp_path, f"input(); print({line!r}, flush=True); input()")
    with pytest.raises(AdapterFailed, match="which is no report"):
        play(command, CASES[:2])


def test_lines_that_are_not_json_are_told_and_do_not_prolong_the_wait(tmp_path, monkeypatch):
    clock, heard = [0.0], []

    def hear(line):
        heard.append(line)
        clock[0] += 20

    monkeypatch.setattr(runner, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    command = script(tmp_path, "input()\nwhile True: print('still busy', flush=True)")
    with pytest.raises(AdapterFailed, match="gave no report for 60 s"):
        play(command, CASES[:1], on_line=hear)
    assert heard == 3 * ["still busy"]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"messages": [{"role": "user", "content": "?"}]}, Outcome("lost", HUNG)),
        (
            {"messages": [{"content": "?"}]},
            Outcome(
                "refused", "the request cannot be read: KeyError('role'); then the client hung"
            ),
        ),
    ],
)
def test_a_client_that_hangs_after_an_answer_has_a_verdict(tmp_path, monkeypatch, body, found):
    clock = [0.0]

    def hear(line):
        clock[0] += 20

    monkeypatch.setattr(runner, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    code = f"""
import json, urllib.error, urllib.request
case = json.loads(input())
body = {body!r} | {{"model": case["endpoints"]["a"]["model"], "tools": [{{"type": "function"}}]}}
try:
    data = json.dumps(body).encode()
    url = case["endpoints"]["a"]["url"] + "/v1/chat/completions"
    urllib.request.urlopen(urllib.request.Request(url, data)).read()
except urllib.error.HTTPError as error:
    error.read()
while True: print("waiting", flush=True)
"""
    case = next(case for case in CASES if case.id == "kimi/tool-round/blocking")
    monkeypatch.setattr(runner, "MOST_FAILURES", 1)
    first, second = play(script(tmp_path, code), [case] * 2, on_line=hear)
    assert first == found
    assert second == Outcome("not measured", "not tried after 1 failures in a row")


def test_an_adapter_that_cannot_start_or_ends_unread_is_named(tmp_path):
    with pytest.raises(AdapterFailed, match="cannot start /no/such: No such file"):
        play(["/no/such"], CASES[:1])
    ends = script(tmp_path, "import os, sys; os.write(2, b'bye'); os._exit(1)")
    for _ in range(5):
        with pytest.raises(AdapterFailed, match="the adapter ended: bye"):
            play(ends, CASES[:1])


def test_a_case_without_a_report_is_not_measured_and_the_next_is(tmp_path):
    code = """
import json, sys
for line in sys.stdin:
    if json.loads(line)["id"] in sys.argv[1:]:
        sys.exit("broken")
    print(json.dumps({"notClaimed": "x"}), flush=True)
"""
    ids = [case.id for case in CASES[:9]]
    once = play([*script(tmp_path, code), ids[1]], CASES[:3])
    assert [one.mark for one in once] == ["not claimed", "not measured", "not claimed"]
    assert once[1].reason == "the adapter ended: broken"
    many = play([*script(tmp_path, code), *ids[1:]], CASES[:9])
    assert [one.mark for one in many] == ["not claimed"] + 8 * ["not measured"]
    assert many[5].reason == "the adapter ended: broken"
    assert {one.reason for one in many[6:]} == {"not tried after 5 failures in a row"}


def answered(status, cases):
    """What becomes of cases with a gateway that answers every request with this status."""
    reply = Reply.json({"error": {"message": "so it is"}}, status)
    with ScriptedServer(lambda _: reply) as gateway:
        environ = {"FIDELITY_GATEWAY": gateway.url, "FIDELITY_HEADERS": json.dumps({"x-a": "b"})}
        found = play([sys.executable, str(FAITHFUL)], cases, environ=environ)
        assert gateway.requests[0].headers["x-a"] == "b"
    return found


CHAT = [case for case in CASES if case.id == "kimi/tool-round/blocking"]


@pytest.mark.parametrize("status", [404, 405, 501])
def test_what_a_gateway_does_not_offer_is_not_claimed(status):
    (found,) = answered(status, CHAT)
    assert found.mark == "not claimed"
    assert found.reason.startswith(f"the gateway offers no openai-chat for kimi-k2.5: {status} ")


def test_another_error_of_a_gateway_is_a_loss_and_a_wrong_key_is_no_measurement():
    (found,) = answered(500, CHAT)
    assert found.mark == "lost"
    with pytest.raises(AdapterFailed, match="does not accept the key: 401"):
        answered(401, CHAT)


def test_a_gateway_that_cannot_be_reached_is_no_measurement():
    with ScriptedServer([]) as gone:
        environ = {"FIDELITY_GATEWAY": gone.url}
    with pytest.raises(AdapterFailed, match="cannot connect to"):
        play([sys.executable, str(FAITHFUL)], CHAT, environ=environ)


PEER = Peer(
    kind="library",
    adapter="openai_adapter.py",
    packages=("thing[a,b]", "other<2"),
    version="thing",
    settings="",
)


@pytest.fixture
def commands(monkeypatch):
    """The commands that would have installed something."""
    ran: list[list[str]] = []
    monkeypatch.setattr(peers_module, "_run", lambda command, folder: ran.append([*command]))
    return ran


def test_an_environment_is_made_once_and_renewed_when_asked(tmp_path, commands):
    assert PEER.age("thing", tmp_path) is None
    PEER.install("thing", tmp_path)
    made = len(commands)
    assert made
    assert (PEER.age("thing", tmp_path) or 0) < 3600
    PEER.install("thing", tmp_path)
    assert len(commands) == made
    PEER.install("thing", tmp_path, renew=True)
    assert len(commands) == 2 * made
    assert "--upgrade" in commands[-1]


def test_make_fidelity_renews_what_is_older_than_a_day(tmp_path, commands, monkeypatch, capsys):
    tool.installed("thing", PEER, tmp_path, fresh=False)
    made = len(commands)
    tool.installed("thing", PEER, tmp_path, fresh=False)
    assert len(commands) == made
    ready = tmp_path / "thing" / ".ready"
    os.utime(ready, (0, 0))
    tool.installed("thing", PEER, tmp_path, fresh=False)
    assert len(commands) == 2 * made
    tool.installed("thing", PEER, tmp_path, fresh=True)
    assert len(commands) == 3 * made

    def fails(command, folder):
        raise PeerUnavailable("no network")

    monkeypatch.setattr(peers_module, "_run", fails)
    assert tool.installed("thing", PEER, tmp_path, fresh=True)
    assert "not renewed, run as it is: no network" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("target", "package", "environment"),
    [
        ("litellm==1.106.2", "litellm==1.106.2", "litellm==1.106.2"),
        ("litellm-proxy-forgetful==1.2", "litellm[proxy]==1.2", "litellm-proxy==1.2"),
        ("pi-ai==0.9.0", "@earendil-works/pi-ai@0.9.0", "pi-ai==0.9.0"),
    ],
)
def test_a_version_that_is_asked_for_has_its_own_environment(target, package, environment):
    peer = find_peer(target)
    assert peer is not None
    assert peer.packages[0] == package
    assert peer.environment == environment


def test_what_has_no_other_version_is_said():
    assert find_peer("nobody==1") is None
    with pytest.raises(PeerUnavailable, match="comes with mull"):
        find_peer("mull==1.0")
    for bad in ("litellm==", "litellm==../x", "litellm==1 --index-url=x"):
        with pytest.raises(PeerUnavailable, match="is no version"):
            find_peer(bad)


def test_a_cache_that_cannot_be_used_is_named_with_the_way_out(tmp_path, commands):
    (tmp_path / "file").write_text("")
    cache = tmp_path / "file" / "mull-fidelity"
    with pytest.raises(PeerUnavailable) as caught:
        PEER.install("thing", cache)
    assert str(cache) in str(caught.value)
    assert "MULL_FIDELITY_CACHE" in str(caught.value)


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (
            "npm error code ECONNREFUSED\nnpm error syscall connect\n"
            "npm error FetchError: request to http://r/x failed, reason: connect ECONNREFUSED\n"
            "npm error If you are behind a proxy, see: 'npm help config'\n"
            "npm error A complete log of this run can be found in: /x.log\n",
            "npm error FetchError: request to http://r/x failed, reason: connect ECONNREFUSED",
        ),
        (
            "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by "
            "'NewConnectionError('<HTTPConnection object at 0x7f93a1>: Connection refused')'\n"
            "ERROR: Could not find a version that satisfies the requirement x\n"
            "ERROR: No matching distribution found for x\n",
            "connection broken by 'NewConnectionError('Connection refused')'; "
            "ERROR: No matching distribution found for x",
        ),
        ("something odd\n", "something odd"),
    ],
)
def test_a_failed_installation_says_why(tmp_path, output, told):
    (tmp_path / "said").write_text(output)
    with pytest.raises(PeerUnavailable) as caught:
        peers_module._run(["sh", "-c", "cat said >&2; exit 1"], tmp_path)
    assert str(caught.value).endswith(f"failed: {told}")


def test_the_suites_readme_says_how_long_an_adapter_may_be_silent():
    text = " ".join(FAITHFUL.parents[1].joinpath("README.md").read_text("utf-8").split())
    patience, start = f"{runner.PATIENCE:.0f}", f"{runner.SLOW_START:.0f}"
    assert f"no report for {patience} seconds ({start} for the first) has hung" in text
