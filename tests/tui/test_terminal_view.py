"""Whether thoughts are shown is a setting: the screen follows it, however it comes to change.

The status line, `/thinking` and `/set` say what is seen, whoever has decided it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mull.agent.setup import profiles
from mull.settings.profile import Profile
from mull.testing.script import Say, Think
from mull.testing.server import Gate, ScriptedServer
from mull.testing.strict import StrictServer
from tui.scripts import answer, say, think
from tui.test_plain import piped

pytestmark = pytest.mark.slow

KEY = "reasoning.includeInResponse"
SHOW, HIDE, UNSET = f"/set {KEY} true", f"/set {KEY} false", f"/unset {KEY}"
AIR, SEA = "Air scatters.", "Salt dissolves."
REPLIES = (answer(think(AIR), say("Blue.")), answer(think(SEA), say("Green.")))


def configure(text):
    folder = Path(os.environ["MULL_CONFIG_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text)


def save_profiles():
    profiles().save("quiet", Profile(settings={KEY: False}))
    profiles().save("loud", Profile(settings={KEY: True}))


def give(terminal, command):
    """Give a command and wait until it is in the conversation."""
    given = terminal.everything.count(f"❯ {command}")
    terminal.type(command)
    terminal.wait_for(lambda t: any(row == f"❯ {command}" for row in t.screen))
    terminal.press("enter")
    terminal.wait_for(lambda t: "❯" in t.screen and t.everything.count(f"❯ {command}") > given)


def ask(terminal, text, reply):
    terminal.say(text)
    terminal.wait_for(reply)
    terminal.wait_idle()


def status(terminal):
    return next((row for row in reversed(terminal.screen) if row), "")


def wait_seen(terminal, view, *thoughts):
    """Wait until the thoughts are on the screen, or none of them, and the status line says so."""
    said = "" if view == "full" else f"thoughts: {view}"

    def holds(t):
        same = said in status(t) if said else "thoughts:" not in status(t)
        return same and all((words in t.text) == (view != "hidden") for words in thoughts)

    terminal.wait_for(holds)


def shown_by(terminal, command, row):
    """What a command says in the row of this name."""

    def rows():
        return [line.split(maxsplit=1)[1] for line in terminal.screen if line.startswith(row)]

    before = len(rows())
    give(terminal, command)
    terminal.wait_for(lambda _: len(rows()) > before)
    return rows()[-1]


def check_told(terminal, view, layer):
    """`/thinking` and `/set` say what is seen, and which layer says so."""
    word, value = ("no", "false") if view == "hidden" else ("yes", "true")
    by = "" if layer == "default" else f" ({KEY}, {layer})"
    assert shown_by(terminal, "/thinking", "  shown") == word + by
    assert shown_by(terminal, f"/set {KEY}", "  value") == f"{value} ({layer})"


@pytest.mark.timeout(120)
def test_req_think_007_4_the_screen_follows_every_way_to_change_the_setting(converse):
    save_profiles()
    with ScriptedServer([*REPLIES, *REPLIES]) as server:
        terminal = converse(server, "--tools", "none", rows=250)
        ask(terminal, "Why is the sky blue?", "Blue.")
        wait_seen(terminal, "preview", AIR)
        for command, view, layer in (
            (HIDE, "hidden", "session"),
            (UNSET, "preview", "default"),
            ("/profile load quiet", "hidden", "profile"),
            (SHOW, "preview", "session"),
            (UNSET, "hidden", "profile"),
            ("/view full", "full", "session"),
            ("/profile load quiet", "hidden", "profile"),
            ("/profile load loud", "full", "profile"),
            ("/view preview", "preview", "profile"),
        ):
            give(terminal, command)
            wait_seen(terminal, view, AIR)
            check_told(terminal, view, layer)
        give(terminal, HIDE)
        ask(terminal, "And the sea?", "Green.")
        wait_seen(terminal, "hidden", AIR, SEA)
        assert SEA not in terminal.everything
        give(terminal, SHOW)
        wait_seen(terminal, "preview", AIR, SEA)


def test_a_models_preset_hides_and_shows_with_the_model(converse):
    with ScriptedServer(REPLIES) as server:
        configure(
            f'[providers.acme]\nbase_url = "{server.url}"\n[models."acme/open"]\n'
            f'[models."acme/shy"]\npresets = {{ "{KEY}" = false }}\n'
        )
        terminal = converse(server, model="acme/open", rows=60)
        ask(terminal, "Why?", "Blue.")
        wait_seen(terminal, "preview", AIR)
        give(terminal, "/model acme/shy")
        wait_seen(terminal, "hidden", AIR)
        check_told(terminal, "hidden", "preset")
        give(terminal, "/set model acme/open")
        wait_seen(terminal, "preview", AIR)


def test_the_view_and_the_setting_are_one_thing(converse):
    save_profiles()
    with ScriptedServer(REPLIES) as server:
        terminal = converse(server, rows=100)
        ask(terminal, "Why?", "Blue.")
        give(terminal, "/view")
        wait_seen(terminal, "hidden", AIR)
        check_told(terminal, "hidden", "session")
        give(terminal, SHOW)
        wait_seen(terminal, "preview", AIR)
        give(terminal, "/view full")
        wait_seen(terminal, "full", AIR)
        check_told(terminal, "full", "session")
        give(terminal, HIDE)
        wait_seen(terminal, "hidden", AIR)
        give(terminal, UNSET)  # shown again as it was shown before
        wait_seen(terminal, "full", AIR)
        give(terminal, "/profile load quiet")
        wait_seen(terminal, "hidden", AIR)
        give(terminal, "/view")
        wait_seen(terminal, "full", AIR)
        check_told(terminal, "full", "session")
        assert "· quiet" in status(terminal)
        give(terminal, "/profile load loud")  # nothing of the screen changes, but its name does
        terminal.wait_for(lambda t: "· loud" in status(t))


def test_a_setting_changed_in_the_middle_of_a_thought_takes_effect_in_it(converse):
    first, second, third = Gate(), Gate(), Gate()
    reply = answer(
        think("The early part, "), first, think("the late part."), second, say("Done."), third
    )
    with ScriptedServer([*REPLIES[:1], reply]) as server:
        terminal = converse(server, "--view", "full", rows=60)
        ask(terminal, "Why?", "Blue.")
        terminal.say("q")
        terminal.wait_for("The early part,")
        give(terminal, HIDE)
        wait_seen(terminal, "hidden", AIR, "The early part,")
        terminal.wait_for("· Esc interrupts")
        first.open()
        give(terminal, SHOW)
        wait_seen(terminal, "full", AIR, "The early part, the late part.")
        give(terminal, HIDE)
        wait_seen(terminal, "hidden", AIR, "the late part.")
        second.open()
        terminal.wait_for("Done.")
        give(terminal, UNSET)
        wait_seen(terminal, "full", AIR, "The early part, the late part.")
        third.open()
        terminal.wait_idle()
        wait_seen(terminal, "full", AIR, "The early part, the late part.")


def test_a_session_comes_back_as_it_was_seen_and_the_command_line_goes_before(converse, start):
    with ScriptedServer(REPLIES) as server:
        terminal = converse(server, "--name", "shy", rows=60)
        ask(terminal, "Why?", "Blue.")
        give(terminal, "/view hidden")
        wait_seen(terminal, "hidden", AIR)
        terminal.say("/new")
        terminal.wait_for("New session with")
        give(terminal, SHOW)
        give(terminal, "/rename open")
        ask(terminal, "And the sea?", "Green.")
        wait_seen(terminal, "preview", SEA)
        terminal.say("/resume shy")
        terminal.wait_for("Resumed session shy")
        wait_seen(terminal, "hidden", AIR)
        check_told(terminal, "hidden", "stored")
        terminal.say("/resume open")
        terminal.wait_for("Resumed session open")
        wait_seen(terminal, "preview", SEA)
        terminal.say("/quit")
        assert terminal.end() == 0
    again = start("--session", "shy", rows=60)
    again.wait_for("Resumed session shy")
    wait_seen(again, "hidden", AIR)
    again.say("/quit")
    assert again.end() == 0
    given = start("--session", "shy", "--view", "full", rows=60)
    given.wait_for("Resumed session shy")
    wait_seen(given, "full", AIR)
    check_told(given, "full", "session")


@pytest.mark.parametrize(
    ("words", "view", "layer"),
    [
        ((), "hidden", "config"),
        (("--view", "preview"), "preview", "session"),
        (("--set", f"{KEY}=true"), "preview", "session"),
        (("--profile", "loud"), "preview", "profile"),
        (("--profile", "loud", "--view", "hidden"), "hidden", "session"),
    ],
)
def test_what_the_start_says_is_what_every_view_says(converse, words, view, layer):
    save_profiles()
    with ScriptedServer(REPLIES) as server:
        configure(f"[settings]\n{KEY} = false\n")
        terminal = converse(server, *words, rows=60)
        ask(terminal, "Why?", "Blue.")
        wait_seen(terminal, view, AIR)
        check_told(terminal, view, layer)
        give(terminal, "/view")
        wait_seen(terminal, "full" if view == "hidden" else "hidden", AIR)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("anthropic", "anthropic/claude-sonnet-4-5"),
        ("openai", "openai/gpt-5"),
        ("gemini", "google/gemini-2.5-pro"),
        ("deepseek", "deepseek/deepseek-reasoner"),
    ],
)
def test_thoughts_of_every_dialect_follow_and_the_request_stays(converse, provider, model):
    script = [[Think(AIR), Say("Blue.")], [Think(SEA), Say("Green.")]]
    names = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "DEEPSEEK_API_KEY")
    with StrictServer(provider, script) as server:
        terminal = converse(
            server, "--tools", "none", model=model, rows=60, env=dict.fromkeys(names, "not-real")
        )
        ask(terminal, "Why?", "Blue.")
        wait_seen(terminal, "preview", AIR)
        give(terminal, HIDE)
        wait_seen(terminal, "hidden", AIR)
        ask(terminal, "And the sea?", "Green.")
        assert SEA not in terminal.everything
        give(terminal, SHOW)
        wait_seen(terminal, "preview", AIR, SEA)
        assert server.refusals == []
        first, second = (request.json for request in server.requests)
        asked = "thinking", "reasoning", "generationConfig", "include"
        assert [first.get(key) for key in asked] == [second.get(key) for key in asked]


def test_plain_lines_follow_from_the_next_thought_on_and_are_written_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_profiles()
    replies = [answer(think(f"Thought {n}."), say(f"Answer {n}.")) for n in range(1, 6)]
    typed = f"a\n{HIDE}\nb\n{SHOW}\nc\n/profile load quiet\nd\n/view full\n/thinking\ne\n"
    with ScriptedServer(replies) as server:
        done = piped(server, typed)
    assert done.stderr == ""
    thoughts = [n for n in range(1, 6) if f"Thought {n}." in done.stdout]
    assert thoughts == [1, 3, 5]
    for n in range(1, 6):
        assert done.stdout.count(f"Answer {n}.") == 1
    assert f"shown      yes ({KEY}, session)" in done.stdout
