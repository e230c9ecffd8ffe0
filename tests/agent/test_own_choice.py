"""What one conversation chooses is nobody else's: settings, model, address and key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mull
from mull.agent.engine import Engine
from mull.agent.library import Conversation
from mull.agent.setup import load_setup
from mull.neutral.errors import ConfigError
from mull.settings.registry import REGISTRY
from mull.store.sessions.memory import MemorySessions
from mull.testing.server import Reply, ScriptedServer

MODELS = (
    "moonshotai/kimi-k2.5",
    "zai/glm-4.7/high",
    "anthropic/claude-sonnet-4-5/none",
    "openai/o3",
)
VALUES = {
    "reasoning.effort": ("low", "high", "none"),
    "reasoning.handoff": ("text", "drop"),
    "reasoning.includeInContext": (True, False),
    "context.limit": (1000, 20_000),
}
STEPS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.one_of(
            st.tuples(st.just("switch"), st.sampled_from(MODELS), st.none()),
            st.sampled_from(sorted(VALUES)).flatmap(
                lambda key: st.tuples(st.just("set"), st.just(key), st.sampled_from(VALUES[key]))
            ),
            st.tuples(st.just("unset"), st.sampled_from(sorted(VALUES)), st.none()),
        ),
    ),
    max_size=12,
)
ENGINE = Engine(load_setup())


def apply(talk, step):
    verb, what, value = step
    if verb == "set":
        talk.set(what, value)
    else:
        getattr(talk, verb)(what)


def four():
    """Two sessions and two plain conversations of one process."""
    store = MemorySessions()
    common = {"model": MODELS[0], "engine": ENGINE}
    sessions = [mull.open_session(name, store=store, folder="/w", **common) for name in "ab"]
    return [*sessions, Conversation(**common), Conversation(**common)]


def state(talk):
    return talk.target.name, talk.snapshot().model, dict(talk.snapshot().values)


@given(STEPS)
def test_no_interleaving_lets_one_conversation_see_anothers_choice(steps):
    together = four()
    for which, step in steps:
        apply(together[which], step)
    for which, talk in enumerate(together):
        alone = Conversation(MODELS[0], engine=ENGINE)
        for other, step in steps:
            if other == which:
                apply(alone, step)
        assert state(talk) == state(alone)
    fresh = Conversation(MODELS[0], engine=ENGINE).snapshot()
    assert {key: fresh[key] for key in VALUES} == {
        key: preset_or_default(fresh, key) for key in VALUES
    }


def preset_or_default(snapshot, key):
    return snapshot[key] if snapshot.origin(key) == "preset" else REGISTRY[key].default


def test_a_setting_after_the_models_level_holds_also_when_the_session_is_opened_again():
    store = MemorySessions()
    where = {"store": store, "folder": "/w", "engine": ENGINE}
    first = mull.open_session("a", model="zai/glm-4.7/high", **where)
    first.set("reasoning.effort", "low")
    first._keep(mull.history.log.Entry(mull.user("q")))
    first.close()
    assert mull.open_session("a", **where).snapshot()["reasoning.effort"] == "low"


ANSWER = Reply.events(
    {"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]}, "[DONE]"
)


def test_a_switch_takes_a_key_and_an_address_along_and_remembers_them():
    with ScriptedServer([ANSWER] * 2) as kimi, ScriptedServer([ANSWER]) as glm:
        talk = Conversation("moonshotai/kimi-k2.5", key="k1", base_url=kimi.url, engine=ENGINE)
        talk.ask("one")
        talk.switch("zai/glm-4.7", key="k2", base_url=glm.url)
        talk.ask("two")
        talk.switch("moonshotai/kimi-k2.5")
        talk.ask("three")
    keys = [r.headers["authorization"] for r in (*kimi.requests, *glm.requests)]
    assert keys == ["Bearer k1", "Bearer k1", "Bearer k2"]


@pytest.mark.parametrize("form", ["plain", "sync", "async"])
def test_a_key_may_be_given_by_provider_and_anew_for_each_request(form):
    tokens = iter(["t1", "t2"])

    async def later():
        return next(tokens)

    key = {"plain": "t1", "sync": lambda: next(tokens), "async": later}[form]
    with ScriptedServer([ANSWER] * 2) as server:
        talk = Conversation("zai/glm-4.7", keys={"zai": key}, base_url=server.url, engine=ENGINE)
        talk.ask("one")
        talk.ask("two")
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer t1", "Bearer t1" if form == "plain" else "Bearer t2"]


async def nothing():
    return None


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (lambda: "", "is empty"),
        (lambda: "a\nb", "contains a blank, a line break"),
        (lambda: None, "did not return text: NoneType"),
        (lambda: b"k", "did not return text: bytes"),
        (nothing, "did not return text: NoneType"),
        (5, "a key must be text or a function, not int"),
    ],
)
def test_what_is_no_key_is_told_and_nothing_is_sent(key, said):
    with ScriptedServer([ANSWER]) as server:
        talk = Conversation("zai/glm-4.7", key=key, base_url=server.url, engine=ENGINE)
        with pytest.raises(ConfigError, match=said):
            talk.ask("one")
        assert (talk.messages, server.requests) == ((), [])
