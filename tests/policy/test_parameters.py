"""Parameters that thinking does not go with: changed with a note, never in silence."""

import pytest

from conversations import snapshot, target
from mull.history.log import Log
from mull.neutral.messages import user
from mull.neutral.request import NamedTool, RequestOptions, Tool
from mull.policy.prepare import prepare

BUDGET = [{"type": "budget_tokens", "min": 1024, "max": 64_000}]
WORDS = [{"type": "effort", "values": ("low", "high")}]
CLAUDE = target("anthropic-budget", dialect="anthropic", options=BUDGET, can_be_off=True)
ALWAYS = target("anthropic-adaptive", dialect="anthropic", options=WORDS, can_be_off=False)
CHAT = target("openai-effort", options=WORDS)


def ask(where, settings=None, **conversation):
    prepared = prepare(
        Log([user("q")]), snapshot(**(settings or {})), where, RequestOptions(**conversation)
    )
    return prepared.request, [note.text for note in prepared.notes if note.warning]


def test_e03_temperature_goes_when_the_model_thinks():
    request, said = ask(CLAUDE, temperature=0.2)
    assert request.temperature is None
    assert said == ["temperature 0.2 not sent: thinker thinks at temperature 1 only"]
    assert ask(CLAUDE, temperature=1.0)[0].temperature == 1
    assert ask(CLAUDE, {"enabled": False}, temperature=0.2)[0].temperature == 0.2
    assert ask(CHAT, temperature=0.2)[0].temperature == 0.2


def test_e03_models_that_take_no_temperature():
    request, said = ask(target("openai-effort", options=WORDS, temperature=False), temperature=1.0)
    assert request.temperature is None
    assert said == ["temperature 1 not sent: thinker takes no temperature"]


@pytest.mark.parametrize("choice", ["required", NamedTool("f")])
def test_e04_a_forced_tool_turns_thinking_off_where_it_can(choice):
    request, said = ask(CLAUDE, tool_choice=choice, tools=(Tool("f"),))
    assert request.tool_choice == choice
    assert request.thinking.state == "off"
    assert said == [
        "Thinking is off for this request: the endpoint accepts no forced tool while it thinks"
    ]


@pytest.mark.parametrize(("choice", "shown"), [("required", "required"), (NamedTool("f"), "f")])
def test_e04_or_is_not_forced_where_thinking_cannot_stop(choice, shown):
    request, said = ask(ALWAYS, tool_choice=choice, tools=(Tool("f"),))
    assert request.tool_choice == "auto"
    assert request.thinking.state == "default"
    assert said == [
        f"toolChoice {shown} → auto: thinker cannot stop thinking"
        " and accepts no forced tool while it thinks"
    ]


def test_e04_other_endpoints_take_both():
    request, said = ask(CHAT, tool_choice="required", tools=(Tool("f"),))
    assert (request.tool_choice, said) == ("required", [])


def test_e09_tools_that_need_the_responses_api_are_told():
    where = target("openai-effort", options=WORDS, compat={"tools_need_responses": True})
    assert ask(where, tools=(Tool("f"),))[1] == [
        "thinker takes tools on the Responses API only, unless thinking is off"
    ]
    assert ask(where)[1] == []


def test_a_strip_policy_that_costs_the_prompt_cache_says_so():
    settings = snapshot(includeInContext=True, stripFromContext="allButLast")
    notes = prepare(Log([user("q")]), settings, CHAT).notes
    assert notes[-1].text == (
        "every turn removes the thinking of the one before: prompt caches end there"
    )


def test_e04_models_that_never_take_a_forced_tool():
    where = target("thinking-type", options=[{"type": "toggle"}], forced_tools=False)
    request, said = ask(where, tool_choice="required", tools=(Tool("f"),))
    assert request.tool_choice == "auto"
    assert said == ["toolChoice required → auto: thinker takes no forced tool"]
    between = target(
        "anthropic-adaptive",
        dialect="anthropic",
        options=WORDS,
        can_be_off=True,
        off_type="between_tools",
    )
    assert ask(between, tool_choice="required", tools=(Tool("f"),))[0].tool_choice == "auto"
