"""`mull fidelity`: the target, the choice of cases, the report and the exit status."""

from __future__ import annotations

import json
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import pytest

from mull.cli.main import main
from mull.testing.server import Reply, ScriptedServer

FAITHFUL = Path(__file__).parents[2] / "fidelity" / "adapters" / "faithful_adapter.py"


def test_one_case_is_shown_with_its_requests(capsys):
    name = "kimi/tool-round/blocking"
    assert main(["fidelity", str(FAITHFUL), "--case", name]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0].startswith(f"{name}: ")
    assert "https://github.com/" in said
    assert said.count("→ a {") == said.count("← answered") == 3
    assert '← answered {"id":"chatcmpl-' in said
    assert '  the client reported {"answers":[{"text":""' in said
    assert said.splitlines()[-1] == "kept"


def test_what_is_not_kept_is_told_and_is_the_exit_status(capsys):
    assert main(["fidelity", str(FAITHFUL), "--kind", "leak"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("refused  anthropic/thought-only/streaming: messages.1: The final")
    assert lines[-1] == "9 kept, 1 refused"


def test_json_has_every_outcome(capsys):
    cases = ["--case", "gemini/parallel/streaming", "--case", "bedrock/resume/streaming"]
    assert main(["fidelity", str(FAITHFUL), "--json", *cases]) == 0
    outcomes = json.loads(capsys.readouterr().out)
    assert outcomes["gemini/parallel/streaming"]["mark"] == "kept"
    assert outcomes["bedrock/resume/streaming"]["mark"] == "not claimed"


def test_a_pair_is_played_by_an_adapter_that_is_asked_to(capsys):
    name = "messages-to-anthropic/faithful/streaming"
    assert main(["fidelity", str(FAITHFUL), "--json", "--case", name]) == 0
    assert json.loads(capsys.readouterr().out)[name]["mark"] == "kept"


def test_the_names_and_cases_are_listed(capsys):
    assert main(["fidelity", "--list"]) == 0
    said = capsys.readouterr().out
    assert "\nlitellm " in said
    assert "\nanthropic/interleaved/blocking " in said
    assert "\nchat-to-kimi/forgetful/streaming " in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "name a client"),
        (["nobody"], "nobody is neither a file nor a known name"),
        (["mull", "--case", "x/y"], "unknown case x/y"),
        (["mull", "--case", "chat-to-kimi/faithful/blocking"], "mull is no gateway"),
        (["litellm", "--kind", "crossing"], "litellm is no gateway"),
        (["litelm"], "did you mean litellm?"),
        (["mull==1.0"], "cannot install mull==1.0: mull comes with mull"),
        (["mull", "--case", "kimi/tool-round/blocking", "--kind", "leak"], "no case is left"),
        (["mull", "--header", "a: b"], "--header is for the URL of a gateway"),
        (["http://"], "http:// has no host"),
        (["http://user:key@localhost"], "--header adds keys"),
        (["http://localhost:99999"], "not the URL of a gateway"),
        (["http://x", "--header", "secret"], "a header is written NAME: VALUE"),
    ],
)
def test_what_is_unknown_is_said(words, told, capsys):
    with suppress(SystemExit):
        assert main(["fidelity", *words]) == 2
    said = capsys.readouterr()
    assert told in said.err
    assert said.out == ""


def test_a_gateway_that_refuses_connections_is_one_error(capsys):
    with ScriptedServer([]) as gone:
        url = gone.url
    assert main(["fidelity", url]) == 2
    assert "cannot connect to 127.0.0.1, port" in capsys.readouterr().err


PAGE = Reply(200, {"content-type": "text/html"}, (b"<!doctype html>",))


@pytest.mark.parametrize("form", [["--json"], []])
@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply.json({}, 404), "the gateway offers no openai-chat for kimi-k2.5: 404"),
        (Reply.json({"error": "oops"}, 500), 'Refused: 500 {"error":"oops"}'),
        (PAGE, "the answer is no JSON: '<!doctype html>'"),
        (Reply.json({"choices": [{"message": {"content": "Hello."}}]}), "it was not sent"),
        (Reply.hang_up(), "accepts a request and does not answer"),
    ],
)
def test_what_forwards_nothing_is_no_gateway_and_no_score(reply, told, form, capsys):
    with ScriptedServer(lambda _: reply) as gateway:
        words = [gateway.url, "--port", "0", "--case", "kimi/tool-round/blocking", *form]
        assert main(["fidelity", *words]) == 2
    said = capsys.readouterr()
    assert "nothing could be measured" in said.err
    assert told in said.err
    assert '"kept"' not in said.out


def test_an_adapter_elsewhere_can_import_the_protocol(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(
        "from line import NotClaimed, serve\n"
        "class Client:\n"
        "    def __init__(self, case): raise NotClaimed('nothing')\n"
        "print('starting', flush=True)\n"
        "serve(Client)\n"
    )
    assert main(["fidelity", str(file), "--kind", "leak"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[-1].endswith(" not claimed")
    assert "not claimed, 10 cases: nothing" in said.out
    assert "the adapter printed a line that is no report: starting" in said.err


def test_an_adapter_that_never_reports_is_one_error(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text("raise SystemExit('no such thing')\n")
    assert main(["fidelity", str(file)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "nothing could be measured: the adapter ended: no such thing" in said.err


def test_the_version_that_ran_is_said(capsys):
    assert main(["fidelity", "mull", "--case", "kimi/tool-round/blocking"]) == 0
    assert f"running mull {version('mull-reasoning')}" in capsys.readouterr().err


def test_a_key_that_a_gateway_repeats_is_not_shown(monkeypatch, capsys):
    monkeypatch.setenv("FIDELITY_KEY", "sk-not-for-anyone")
    reply = Reply.json({"error": f"{'-' * 80} no such key: sk-not-for-anyone, team-secret"}, 401)
    with ScriptedServer(lambda _: reply) as server:
        words = ["fidelity", server.url, "--port", "0", "--header", "x-team: team-secret"]
        assert main(words) == 2
    said = capsys.readouterr().err
    assert "does not accept the key: 401" in said
    assert "sk-not" not in said
    assert "team-sec" not in said


def test_a_redirection_is_not_followed(capsys):
    with (
        ScriptedServer(lambda _: Reply.json({})) as elsewhere,
        ScriptedServer(lambda _: Reply(302, {"location": f"{elsewhere.url}/login"}, [])) as server,
    ):
        assert main(["fidelity", server.url, "--port", "0", "--kind", "redacted"]) == 2
    assert f"302 a redirection to {elsewhere.url}/login" in capsys.readouterr().err
    assert elsewhere.requests == []


def test_a_line_that_nests_too_deeply_is_no_report(tmp_path, capsys):
    adapter = tmp_path / "adapter.py"
    adapter.write_text(
        "import sys\nfor _ in sys.stdin:\n    print('[' * 100_000)\n"
        '    print(\'{"notClaimed": "all"}\', flush=True)\n'
    )
    assert main(["fidelity", str(adapter), "--case", "kimi/tool-round/blocking"]) == 0
    assert "printed a line that is no report: [[[" in capsys.readouterr().err


def test_what_was_measured_before_an_interruption_is_reported(monkeypatch, capsys):
    from mull.cli import fidelity

    def stopped(cases, judge, adapter):
        yield next(all_of(cases, judge, adapter))
        raise KeyboardInterrupt

    all_of = fidelity.run_cases
    monkeypatch.setattr(fidelity, "run_cases", stopped)
    assert main(["fidelity", str(FAITHFUL), "--kind", "leak"]) == 130
    told = capsys.readouterr()
    assert "stopped after 1 of 10 cases" in told.err
    assert told.out.splitlines()[-1] in ("1 kept", "1 refused")
