"""`mull doctor`: what is set up, what is found, and the exit status."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mull.agent.engine import LOCAL_PROVIDERS
from mull.cli.main import main
from mull.testing.server import Reply, ScriptedServer


def chunk(finish=None, **delta):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def answer(recorded):
    """A model that thinks, calls no tool, and says the number it kept."""
    if recorded.method == "GET":
        return Reply.json({"data": [{"id": "one"}, {"id": "two"}]})
    again = len(recorded.json["messages"]) > 1
    thought = chunk(reasoning_content="1234 and 5678")
    text = chunk("stop", content="5678" if again else "1234")
    return Reply.events(thought, text, "[DONE]")


@pytest.fixture
def doctor(capsys):
    """Runs the command with all local providers at addresses of ours."""

    def run(script, *words, local=()):
        with ScriptedServer(script) as server:
            with ScriptedServer([]) as gone:
                nowhere = gone.url
            places = {name: server.url if name in local else nowhere for name in LOCAL_PROVIDERS}
            rows = (f'[providers."{name}"]\nbase_url = "{url}"\n' for name, url in places.items())
            config = Path(os.environ["MULL_CONFIG_DIR"]) / "config.toml"
            config.parent.mkdir(parents=True, exist_ok=True)
            config.write_text("".join(rows))
            status = main(["doctor", *(word.format(url=server.url) for word in words)])
        said = capsys.readouterr()
        return status, said.out, said.err, server.requests

    return run


HERE = ("openai-compatible/m", "--base-url", "{url}")


def rows(out):
    found = {}
    for line in out.split("\n\n", maxsplit=1)[0].splitlines():
        label, text = line.split(maxsplit=1)
        found[label] = text
    return found


def test_the_sandbox_is_told_with_what_it_lacks(doctor, monkeypatch):
    from mull.agent.sandbox import cage
    from mull.agent.sandbox.tiers import TIERS

    tier = TIERS["landlock"]
    monkeypatch.setattr(cage, "find_tier", lambda: cage.Verdict(tier, ("namespaces: no",)))
    _, out, _, _ = doctor([])
    assert "  sandbox      Landlock and seccomp (tools.sandbox is auto)\n" in out
    assert "               not namespaces: no\n" in out
    assert all(f"               but {gap}\n" in out for gap in tier.gaps)
    monkeypatch.setattr(cage, "find_tier", lambda: cage.Verdict(None, ("a: no", "b: no")))
    assert "  sandbox      none: a: no; b: no\n" in doctor([])[1]


def test_without_a_model_it_tells_what_is_set_up(doctor):
    status, out, err, _ = doctor(answer)
    assert (status, err) == (0, "")
    told = rows(out)
    first = ["mull", "config", "data", "profile", "keys", "local", "embedded", "extras"]
    others = ("missing", "sandbox", "not", "but")
    assert [label for label in told if label not in others] == first
    assert told["config"] == str(Path(os.environ["MULL_CONFIG_DIR"]) / "config.toml")
    assert told["data"] == os.environ["MULL_DATA_DIR"]
    assert told["profile"] == "none"
    assert told["keys"] == "none (`mull keys set PROVIDER`)"
    assert told["local"] == "no model server found on this machine"
    assert "No model is configured" in out


@pytest.mark.parametrize(
    ("there", "said"),
    [(True, "installed (local/smollm2)"), (False, "not installed (`mull local install`)")],
)
def test_the_small_model_is_mentioned(doctor, monkeypatch, there, said):
    monkeypatch.setattr("mull.cli.doctor.weights.is_installed", lambda: there)
    assert rows(doctor(answer)[1])["embedded"] == said


def test_extras_are_listed_with_what_installs_the_missing_ones(doctor, monkeypatch):
    monkeypatch.setattr("mull.cli.doctor.is_installed", lambda extra: extra in {"mcp", "tokens"})
    told = rows(doctor(answer)[1])
    assert told["extras"] == "tokens, mcp"
    assert told["missing"].startswith("terminal, serve, postgres, otel, vertex, highlight (`")
    assert told["missing"].endswith("'mull-reasoning[NAME]'`)")
    monkeypatch.setattr("mull.cli.doctor.is_installed", lambda extra: True)
    assert "missing" not in rows(doctor(answer)[1])


def test_keys_are_named_and_not_shown(doctor, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "plover-quill-key")
    _, out, _, _ = doctor(answer)
    assert rows(out)["keys"] == "anthropic"
    assert "plover" not in out


def test_local_servers_are_found(doctor):
    _, out, _, _ = doctor(answer, local=("ollama", "vllm"))
    assert rows(out)["local"] == "ollama (2), vllm (2)"


def test_a_model_is_looked_at_and_nothing_is_sent(doctor):
    status, out, _, requests = doctor(answer, *HERE)
    assert status == 0
    assert "\nopenai-compatible/m\n" in out
    assert "openai-chat, no key" in out
    assert out.endswith("Nothing was sent. --live tests the model with a few small requests.\n")
    assert requests == []


def test_a_found_key_is_told(doctor, monkeypatch):
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", "plover-quill-key")
    _, out, _, _ = doctor(answer, *HERE)
    assert "openai-chat, key found\n" in out
    assert "plover" not in out


def test_a_missing_key_is_told_and_fails(doctor):
    status, out, _, requests = doctor(answer, "claude-sonnet-4-5", "--live")
    assert status == 1
    assert "  ✗ no API key for Anthropic: set ANTHROPIC_API_KEY" in out
    assert requests == []


def test_an_unknown_model_is_a_mistake(doctor):
    status, _, err, _ = doctor(answer, "no-such-model-anywhere")
    assert status == 2
    assert err.startswith("mull: there is no model")


def test_the_model_of_the_settings_is_the_one_that_is_meant(doctor, monkeypatch):
    monkeypatch.setenv("MULL_MODEL", "openai-compatible/chosen")
    _, out, _, _ = doctor(answer, "--base-url", "{url}")
    assert "\nopenai-compatible/chosen\n" in out


def test_the_embedded_model_is_not_started_to_be_looked_at(doctor):
    status, out, _, _ = doctor(answer, "local/smollm2")
    assert status == 0
    assert "this model is very small" in out
    assert "starts on this machine on first use" in out
    assert not (Path(os.environ["MULL_DATA_DIR"]) / "local").exists()


def test_live_prints_each_check(doctor):
    status, out, _, requests = doctor(answer, *HERE, "--live")
    assert status == 0
    assert out.splitlines()[-3:] == [
        "  ✓ thinks: yes, in reasoning_content, readable",
        "  – accepts its thinking back after a tool call: unknown: the model called no tool",
        "  ✓ uses its earlier thinking: yes: 5678 is in its earlier thinking",
    ]
    assert len(requests) == 4


def test_a_failed_check_is_the_exit_status(doctor):
    plain = Reply.events(chunk("stop", content="9.9"), "[DONE]")
    status, out, _, _ = doctor(lambda _: plain, *HERE, "--live")
    assert status == 1
    assert "  ✗ thinks: no reasoning received" in out


def test_a_refusal_is_told_in_its_place(doctor):
    refused = Reply.json({"error": {"message": "who are you?"}}, 401)
    status, out, err, requests = doctor(lambda _: refused, *HERE, "--live")
    assert (status, err) == (1, "")
    assert out.count("who are you?") == 3
    assert len(requests) == 3


def test_what_fills_an_address_is_not_shown(doctor, monkeypatch):
    monkeypatch.setenv("MY_PLACE", "plover-quill")
    place = "https://h.example/{}/v1"
    for part in ("${{MY_PLACE}}", "k3y9f8a7b6c5d4e3f2a1b0"):
        _, out, _, _ = doctor([], "openai-compatible/x", "--base-url", place.format(part))
        assert "plover-quill" not in out
        assert "k3y9f8a7b6c5d4e3f2a1b0" not in out
        assert place.format("${MY_PLACE}") in out or place.format("${BASE_URL_KEY}") in out
