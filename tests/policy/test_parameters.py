"""Parameters that thinking does not go with: changed with a note, never in silence."""

import pytest

from conversations import snapshot, target
from mull.history.log import Log
from mull.neutral.blocks import Wire
from mull.neutral.errors import LocalError
from mull.neutral.messages import user
from mull.neutral.parameters import PARAMETERS, is_said
from mull.neutral.request import AnswerFormat, HostedTool, NamedTool, RequestOptions, Tool
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
    assert said == ["temperature 0.2 not sent: thinker thinks only with temperature 1"]
    assert ask(CLAUDE, temperature=1.0)[0].temperature == 1
    assert ask(CLAUDE, {"enabled": False}, temperature=0.2)[0].temperature == 0.2
    assert ask(CHAT, temperature=0.2)[0].temperature == 0.2


def test_e03_models_that_take_no_temperature():
    request, said = ask(target("openai-effort", options=WORDS, temperature=False), temperature=1.0)
    assert request.temperature is None
    assert said == ["temperature 1 not sent: thinker does not accept temperature"]


@pytest.mark.parametrize("choice", ["required", NamedTool("f")])
def test_e04_a_forced_tool_turns_thinking_off_where_it_can(choice):
    request, said = ask(CLAUDE, tool_choice=choice, tools=(Tool("f"),))
    assert request.tool_choice == choice
    assert request.thinking.state == "off"
    assert said == [
        "Thinking is off for this request: the endpoint accepts no forced tool while it thinks"
    ]


@pytest.mark.parametrize("choice", ["required", NamedTool("f")])
def test_e04_or_is_an_error_where_thinking_cannot_stop(choice):
    with pytest.raises(LocalError, match="while it thinks, and cannot stop thinking"):
        ask(ALWAYS, tool_choice=choice, tools=(Tool("f"),))


def test_e04_other_endpoints_take_both():
    request, said = ask(CHAT, tool_choice="required", tools=(Tool("f"),))
    assert (request.tool_choice, said) == ("required", [])


def test_e09_tools_that_need_the_responses_api_are_told():
    where = target("openai-effort", options=WORDS, compat={"tools_need_responses": True})
    assert ask(where, tools=(Tool("f"),))[1] == [
        "thinker accepts tools only on the Responses API, unless thinking is off"
    ]
    assert ask(where)[1] == []


def test_a_strip_policy_that_costs_the_prompt_cache_says_so():
    settings = snapshot(includeInContext=True, stripFromContext="allButLast")
    notes = prepare(Log([user("q")]), settings, CHAT).notes
    assert notes[-1].text == (
        "every turn removes the thinking of the previous turn, so prompt caches end there"
    )


def test_e04_models_that_never_take_a_forced_tool():
    where = target("thinking-type", options=[{"type": "toggle"}], forced_tools=False)
    with pytest.raises(LocalError, match="thinker accepts no forced tool"):
        ask(where, tool_choice="required", tools=(Tool("f"),))
    between = target(
        "anthropic-adaptive",
        dialect="anthropic",
        options=WORDS,
        can_be_off=True,
        off_type="between_tools",
    )
    with pytest.raises(LocalError, match="accepts no forced tool"):
        ask(between, tool_choice="required", tools=(Tool("f"),))


# What dialects, endpoints and models take of the rest.

CLAUDE_OFF = {"enabled": False}
GEMINI = target("gemini-level", dialect="gemini", options=WORDS, compat={"most_stops": 2})
ALL = {
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 20,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
    "seed": 7,
    "stop": ("END",),
}


def sent(request):
    return {name: value for name in PARAMETERS if is_said(value := getattr(request, name))}


@pytest.mark.parametrize(
    ("where", "settings", "kept"),
    [
        (CHAT, {}, ALL.keys()),
        (GEMINI, {}, ALL.keys()),
        (CLAUDE, {}, {"stop"}),
        (CLAUDE, CLAUDE_OFF, {"temperature", "top_p", "top_k", "stop"}),
        (target("responses", dialect="openai-responses"), {}, {"temperature", "top_p"}),
        (
            target("none", dialect="bedrock-converse", reasoning=False),
            {},
            {"temperature", "top_p", "top_k", "stop"},
        ),
        (target("openai-effort", options=WORDS, temperature=False), {}, {"seed", "stop"}),
        (target("none", compat={"omits": ("stop", "seed")}), {}, ALL.keys() - {"stop", "seed"}),
    ],
    ids=[
        "chat",
        "gemini",
        "thinking",
        "not thinking",
        "responses",
        "bedrock",
        "no sampling",
        "row",
    ],
)
def test_what_is_not_taken_is_left_out_and_told(where, settings, kept):
    request, said = ask(where, settings, **ALL)
    assert sent(request) == {name: ALL[name] for name in kept}
    assert sorted(text.partition(" ")[0] for text in said) == sorted(ALL.keys() - kept)
    assert all("not sent: " in text for text in said)


def test_a_number_is_brought_into_the_range_that_is_taken():
    request, said = ask(CLAUDE, CLAUDE_OFF, temperature=1.5)
    assert request.temperature == 1
    assert said == ["temperature 1.5 → 1: thinker accepts 0 to 1"]


def test_a_seed_is_as_large_as_it_may_be():
    assert ask(GEMINI, seed=2**40)[0].seed == 2**31 - 1
    assert ask(CHAT, seed=2**40)[0].seed == 2**40


@pytest.mark.parametrize(("top_p", "kept"), [(0.9, None), (0.97, 0.97)])
def test_claude_thinks_with_a_high_top_p_only(top_p, kept):
    assert ask(CLAUDE, top_p=top_p)[0].top_p == kept


def test_claude_takes_one_of_two():
    either = target("none", dialect="anthropic", reasoning=False, compat={"either_sampling": True})
    request, said = ask(either, CLAUDE_OFF, temperature=0.5, top_p=0.9)
    assert sent(request) == {"temperature": 0.5}
    assert said == ["top_p 0.9 not sent: thinker accepts temperature or top_p, not both"]
    request, said = ask(either, CLAUDE_OFF, temperature=1.0, top_p=0.9)
    assert sent(request) == {"top_p": 0.9}  # a temperature of 1 says nothing
    assert said == []


def test_texts_that_end_an_answer_are_as_many_and_as_long_as_they_may_be():
    request, said = ask(GEMINI, stop=("a", "", "a", "b", "c"))
    assert request.stop == ("a", "b")
    assert said == ["stop ('a', '', 'a', 'b', 'c') → ('a', 'b'): acme/thinker accepts at most 2"]
    request, said = ask(CLAUDE, stop=("\n\n", "END"))
    assert request.stop == ("END",)
    assert len(said) == 1
    assert ask(CHAT, stop=("\n\n",))[0].stop == ("\n\n",)


def test_hints_are_left_out_without_a_word():
    hints = {"user": "u", "cache_key": "k", "verbosity": "low", "metadata": {"a": "b"}}
    request, said = ask(CHAT, **hints)
    assert (sent(request), said) == ({}, [])
    knows = target("none", compat={"omits": ()})
    request, said = ask(knows, **{**hints, "user": "u" * 65})
    assert sent(request).keys() == hints.keys() - {"metadata"}
    assert len(request.user) == 64
    assert ask(knows, user="u" * 65)[0].user == request.user
    assert said == []


def test_calls_are_kept_apart_only_where_there_are_tools():
    assert ask(CHAT, parallel_calls=False)[0].parallel_calls is None
    tools = (Tool("f"),)
    assert ask(CHAT, parallel_calls=False, tools=tools)[0].parallel_calls is False
    assert ask(CHAT, parallel_calls=False, tools=tools, tool_choice="none")[1] == []
    _, said = ask(GEMINI, parallel_calls=False, tools=tools)
    assert said == ["parallel_calls False not sent: its API has no such parameter"]


def test_a_value_that_holds_anyway_is_no_news():
    kimi = target("none", temperature=False, compat={"holds": {"top_p": 0.95}})
    assert ask(kimi, top_p=0.95) == (ask(kimi)[0], [])
    assert ask(kimi, top_p=0.5)[1] == ["top_p 0.5 not sent: thinker does not accept top_p"]


SEARCH = HostedTool("anthropic", {"type": "web_search_20250305", "name": "web_search"})


def test_a_tool_of_another_provider_is_not_offered_and_not_forced():
    request, said = ask(CLAUDE, hosted_tools=(SEARCH,), tool_choice=NamedTool("web_search"))
    assert (request.hosted_tools, request.tool_choice) == ((), None)
    assert request.thinking.state == "on"
    assert said == ["not offered: web_search_20250305: acme/thinker has no such built-in tool"]
    here = target("anthropic-budget", dialect="anthropic", compat={"hosted_tools": True})
    request, said = ask(here, hosted_tools=(SEARCH,))
    assert (request.hosted_tools, said) == ((SEARCH,), [])
    there = target("responses", dialect="openai-responses", compat={"hosted_tools": True})
    assert ask(there, hosted_tools=(SEARCH,))[0].hosted_tools == ()


def test_fields_of_another_dialect_are_not_sent():
    request, said = ask(CLAUDE, wire=Wire("openai-chat", {"logit_bias": {}}))
    assert request.wire is None
    assert said == ["not sent: logit_bias: acme/thinker has no such parameter"]


def test_any_json_is_asked_for_in_words_where_only_a_schema_is_taken():
    holds = target("none", dialect="anthropic", structured_output=True)
    request, _ = ask(holds, format=AnswerFormat())
    assert request.format is None
    assert "JSON" in request.system
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    assert ask(holds, format=AnswerFormat(schema))[0].format == AnswerFormat(schema)


def test_a_format_is_no_call_for_whoever_reads_the_text():
    free = target("none", tool_call=True, reasoning=False)
    wanted = AnswerFormat({"type": "object"})
    assert ask(free, format=wanted)[0].tools
    assert not ask(free, format=wanted, text_format=True)[0].tools
