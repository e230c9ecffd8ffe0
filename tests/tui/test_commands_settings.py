"""/set, /unset and /profile: every value with its layer, and nothing half done."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

import pytest

from mull.agent.engine import Engine
from mull.agent.opening import Opening
from mull.agent.setup import load_setup, profiles
from mull.neutral.errors import (
    LocalError,
    ProfileError,
    RefusedError,
    SettingError,
    UnknownModel,
)
from mull.settings.profile import Parameters, Profile
from mull.settings.registry import REGISTRY, format_value
from mull.store.sessions.sqlite import SqliteSessions
from mull.testing.server import Reply
from mull.tui.desk import SessionDesk
from tui.fronts import FakeFront, answer, at_terminal, drive, sessions_of


def test_set_alone_shows_every_value_with_its_layer(tmp_path, monkeypatch):
    monkeypatch.setenv("MULL_REASONING_EFFORT", "low")
    with at_terminal(tmp_path) as talk:
        text = drive(talk, "/set context.limit 1000", "/set")
    rows = {line.split()[0]: line.split()[1:] for line in text.split("\n") if line.strip()}
    assert rows["model"] == ["zai/glm-4.7", "(stored)"]
    assert rows["reasoning.effort"] == ["low", "environment"]
    assert rows["context.limit"] == ["1000", "session"]
    assert rows["reasoning.includeInContext"] == ["true", "preset"]
    assert rows["compression.threshold"] == ["0.85", "default"]
    for key in REGISTRY:
        assert key in rows


def test_a_wide_terminal_has_room_for_the_help(tmp_path):
    with at_terminal(tmp_path, front=FakeFront(140)) as talk:
        text = drive(talk, "/set")
    assert all(setting.help in text for setting in REGISTRY.values())


@pytest.mark.parametrize(
    "typed",
    ["/set reasoning.effort HIGH", "/set REASONING.EFFORT=high", "/set reasoning.effort = high"],
)
def test_a_value_is_set_in_any_spelling(talk, typed):
    assert drive(talk, typed) == "reasoning.effort = high (session)"
    assert talk.session.info.settings == {"reasoning.effort": "high"}


def test_set_with_a_key_says_all_of_it(talk):
    assert (
        drive(talk, "/set compression.strategy")
        == """\
compression.strategy
  value    middle-out (default)
  default  middle-out
  allowed  middle-out, truncate or one-shot
  meaning  summarise the middle, drop the oldest turns, or
           summarise everything"""
    )


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("/set reasoning.stripFromContext some", "use all, allButLast or none"),
        ("/set reasoning.effrt high", "did you mean reasoning.effort?"),
        ("/set context.limit -1", "a whole number from 1"),
        ("/unset nothing.here", "there is no setting"),
    ],
)
def test_err_001_a_bad_value_is_refused_and_the_old_one_stays(talk, typed, words):
    drive(talk, "/set reasoning.stripFromContext all", "/set context.limit 5000")
    with pytest.raises(SettingError, match=words):
        drive(talk, typed)
    snapshot = talk.session.snapshot()
    assert snapshot["reasoning.stripFromContext"] == "all"
    assert snapshot["context.limit"] == 5000


def test_unset_lets_the_layer_below_decide(tmp_path, monkeypatch):
    monkeypatch.setenv("MULL_REASONING_EFFORT", "low")
    with at_terminal(tmp_path) as talk:
        drive(talk, "/set reasoning.effort high")
        assert drive(talk, "/unset reasoning.effort") == "reasoning.effort = low (environment)"
        drive(talk, "/set reasoning.effort high")
        text = drive(talk, "/set reasoning.effort default")
        assert text == "reasoning.effort = low (environment)"
        assert talk.session.info.settings == {}
        with pytest.raises(LocalError, match="give one setting"):
            drive(talk, "/unset")


def test_the_model_is_set_as_the_model_is(talk):
    assert drive(talk, "/set model zai/glm-4.5").startswith("✓ Switched to Z.AI glm-4.5")


# /profile


def test_a_profile_saved_here_brings_model_and_settings_back_at_once(talk):
    drive(
        talk, "/model zai/glm-4.5", "/set reasoning.stripFromContext all", "/profile save careful"
    )
    profile = profiles().load("careful")
    assert profile.model_name == "zai/glm-4.5"
    assert profile.settings == {"reasoning.stripFromContext": "all"}
    changed = "/set reasoning.stripFromContext none", "/set context.limit 9"
    drive(talk, "/model zai/glm-4.7/none", *changed)
    text = drive(talk, "/profile load careful")
    assert text.startswith("Loaded profile careful.\nSettings discarded from this session:")
    assert "✓ Switched to Z.AI glm-4.5" in text
    snapshot = talk.session.snapshot()
    assert talk.session.target.name == "zai/glm-4.5"
    assert snapshot["reasoning.stripFromContext"] == "all"
    assert snapshot.origin("reasoning.stripFromContext") == "profile"
    assert snapshot["context.limit"] is None
    assert snapshot["reasoning.effort"] is None
    assert talk.session.info.settings == profile.settings  # what a resumed session goes on with
    assert talk.session.engine.setup.profile_name == "careful"


def test_req_think_006_6_a_default_chosen_here_comes_back_over_the_config_file(tmp_path):
    config = Path(os.environ["MULL_CONFIG_DIR"]) / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(
        '[settings]\nreasoning.stripFromContext = "all"\nreasoning.maxTokens = 4000\n'
    )
    with at_terminal(tmp_path) as talk:
        drive(talk, "/set reasoning.stripFromContext none", "/model zai/glm-4.7/high")
        chosen = talk.session.snapshot()
        drive(talk, "/profile save kept", "/unset reasoning.stripFromContext", "/model zai/glm-4.5")
        assert talk.session.snapshot()["reasoning.stripFromContext"] == "all"
        drive(talk, "/profile load kept")
        assert dict(talk.session.snapshot().items()) == dict(chosen.items())
        assert talk.session.target.name == "zai/glm-4.7"
        assert "reasoning.maxTokens         unset" in drive(talk, "/profile show kept")


def test_parameters_of_the_session_are_saved_and_hold_from_the_next_request(tmp_path):
    replies = [answer("One."), answer("Two.")]
    with at_terminal(tmp_path, *replies, max_tokens=700, temperature=0.5) as talk:
        drive(talk, "/profile save short")
        assert profiles().load("short").parameters == Parameters(0.5, 700)
        profiles().save("free", Profile())
        drive(talk, "/profile load free", "hello", "/profile load short", "hello again")
        bodies = [request.json for request in talk.server.requests]
    assert "temperature" not in bodies[0]
    assert (bodies[1]["max_tokens"], bodies[1]["temperature"]) == (700, 0.5)


def test_what_the_environment_overrules_is_told(tmp_path, monkeypatch):
    with at_terminal(tmp_path) as talk:
        drive(talk, "/set reasoning.effort high", "/profile save hard")
    monkeypatch.setenv("MULL_REASONING_EFFORT", "low")
    sessions_of(tmp_path).unlink()
    with at_terminal(tmp_path) as talk:
        text = drive(talk, "/profile load hard")
    assert "reasoning.effort is overridden by the environment: low" in " ".join(text.split())


def test_ec_005_a_profile_that_cannot_be_loaded_changes_nothing(talk):
    profiles().save("ok", profiles_sample())
    path = profiles().save("broken", profiles_sample())
    path.write_text('{"version": 1, "settings": {"reasoning.effort": "extreme"}}')
    profiles().save("elsewhere", Profile(provider="nowhere", model="m"))
    profiles().save("unknown", Profile(model="no-such-model", settings={"context.limit": 5}))
    drive(talk, "/set context.limit 77")
    for name in ("broken", "missing", "elsewhere"):
        with pytest.raises(ProfileError, match=name):
            drive(talk, f"/profile load {name}")
    with pytest.raises(UnknownModel, match="no-such-model"):
        drive(talk, "/profile load unknown")
    assert talk.session.engine.setup.profile_name is None
    assert talk.session.snapshot()["context.limit"] == 77
    assert talk.session.target.name == "zai/glm-4.7"


def profiles_sample():
    return Profile(settings={"reasoning.effort": "low"})


def test_profiles_are_listed_shown_chosen_and_deleted(talk):
    assert "No profiles saved yet" in drive(talk, "/profile")
    drive(talk, "/set reasoning.effort high", "/profile save one", "/profile save two")
    assert drive(talk, "/profile set-default two") == "The default profile is now two."
    assert drive(talk, "/profile list") == "   one  zai/glm-4.7\n*  two  zai/glm-4.7"
    shown = drive(talk, "/profile show one")
    assert shown == (
        "Profile one\n  model             zai/glm-4.7\n"
        f"  baseUrl           {talk.server.url}\n  reasoning.effort  high"
    )
    assert " ".join(drive(talk, "/profile delete two").split()) == (
        "Deleted profile two. It was the default; there is no default profile now."
    )
    assert drive(talk, "/profile set-default none") == "There is no default profile now."
    with pytest.raises(ProfileError, match="--overwrite replaces it"):
        drive(talk, "/profile save one")
    assert "Saved profile one." in drive(talk, "/profile save one --overwrite")


def test_a_wrong_action_or_no_name_is_told(talk):
    with pytest.raises(LocalError, match="did you mean delete"):
        drive(talk, "/profile delte x")
    with pytest.raises(LocalError, match="give the name of one profile: /profile load NAME"):
        drive(talk, "/profile load")


def test_what_is_shown_can_be_set_again(talk):
    for key, setting in REGISTRY.items():
        if setting.default is not None:
            drive(talk, f"/set {key} {format_value(setting.default)}")
            assert talk.session.snapshot()[key] == setting.default


@pytest.mark.parametrize(
    "model", ["openai-compatible/zed", "anthropic/claude-sonnet-4-5", "someone/their-model"]
)
def test_a_profile_saved_here_comes_back_with_its_address(tmp_path, model):
    refused = Reply.json({"error": {"message": "no"}}, 403)
    with at_terminal(tmp_path, refused, model=model) as talk:
        drive(talk, "/thinking effort high", "/profile save own")
        assert profiles().load("own").base_url == talk.server.url
        drive(talk, "/model zai/glm-4.7/low")
        assert talk.session.address is None
        drive(talk, "/profile load own")
        assert talk.session.address == talk.session.info.base_url == talk.server.url
        assert talk.session.snapshot()["reasoning.effort"] == "high"
        assert talk.session.snapshot().origin("reasoning.effort") == "profile"
        drive(talk, "/model zai/glm-4.7")
        assert talk.session.address is None  # it is the address of the profile's provider only
        assert talk.session.target.endpoint != talk.server.url
        drive(talk, f"/model {model}")
        with contextlib.suppress(RefusedError):
            drive(talk, "hi")
        assert len(talk.server.requests) == 1


def test_a_level_said_after_a_budget_or_off_holds(tmp_path):
    with at_terminal(tmp_path, model="anthropic/claude-sonnet-4-5") as talk:
        for before in ("/thinking budget 5000", "/thinking off", "/set reasoning.maxTokens 5000"):
            drive(talk, before)
            assert drive(talk, "/thinking effort low").endswith("Thinking: low (22,016 tokens)")
            assert talk.session.info.settings == {"reasoning.effort": "low"}
        text = drive(talk, "/thinking budget 5000")
        assert "Thinking: 5,000 tokens" in text
        assert "The budget overrides the effort" in text


def test_a_new_session_is_like_the_last_one_and_no_stronger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = SqliteSessions(tmp_path / "sessions.db")
    begin = Opening(str(tmp_path), model="openai-compatible/m/low", base_url="http://127.0.0.1:9")
    engine = Engine(load_setup())

    async def play():
        desk = SessionDesk(engine, store, begin, lambda: None, print)
        first = await desk.open()
        first.set("reasoning.maxSeconds", 3)
        again = await desk.open(new=True)
        said = again.snapshot()
        await engine.close()
        return said, again.info

    said, info = asyncio.run(play())
    assert (said["reasoning.effort"], said["reasoning.maxSeconds"]) == ("low", 3)
    assert (info.model, info.base_url) == ("openai-compatible/m/low", "http://127.0.0.1:9")
    store.close()
