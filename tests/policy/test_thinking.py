"""From wishes to plans: what is sent, what is said, for every kind of steering."""

import msgspec
import pytest

from conversations import snapshot, target
from mull.neutral.errors import BudgetError
from mull.neutral.thinking import LADDER, write_thinking
from mull.policy.thinking.plan import feedback, level_table, plan_thinking

BUDGET = [{"type": "budget_tokens", "min": 1024, "max": 64_000}]
WORDS = [{"type": "effort", "values": ("low", "medium", "high")}]
TOGGLE = [{"type": "toggle"}]
ON, OFF = ({"enable_thinking": on, "thinking": on} for on in (True, False))


def claude(**more):
    facts = {"can_be_off": True, "thinks_by_default": False, **more}
    return target("anthropic-budget", dialect="anthropic", options=BUDGET, **facts)


def sent(where, **settings):
    return write_thinking(plan_thinking(where, snapshot(**settings)).plan)


def warnings(where, **settings):
    return [n.text for n in plan_thinking(where, snapshot(**settings)).notes if n.warning]


def enabled(budget):
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


TEN = "default (10,000 tokens)"


@pytest.mark.parametrize(
    ("level", "budget"),
    [("minimal", 1024), ("low", 22_016), ("medium", 43_008), ("high", 62_976), ("max", 62_976)],
)
def test_budget_models_get_thirds_of_their_range(level, budget):
    assert sent(claude(), effort=level) == enabled(budget)


def test_budget_models_think_by_default():
    planned = plan_thinking(claude(), snapshot())
    assert write_thinking(planned.plan) == enabled(10_000)
    assert planned.max_tokens == 64_000
    assert planned.summary == "default (10,000 tokens)"


@pytest.mark.parametrize(
    ("writer", "dialect", "options", "fragment", "words"),
    [
        (
            "responses",
            "openai-responses",
            [{"type": "effort", "values": ("none", "low", "medium", "high")}],
            {"reasoning": {"effort": "medium", "summary": "auto"}},
            "medium effort (~50% of output budget)",
        ),
        ("openai-effort", "openai-chat", WORDS, {"reasoning_effort": "medium"}, "medium effort"),
        (
            "openai-effort",
            "openai-chat",
            [{"type": "effort", "values": ("minimal", "high")}],
            {"reasoning_effort": "high"},
            "high effort",
        ),
        ("openai-effort", "openai-chat", TOGGLE, {"reasoning_effort": "medium"}, "medium effort"),
        ("openrouter", "openai-chat", BUDGET, {"reasoning": {"max_tokens": 10_000}}, TEN),
        ("openrouter", "openai-chat", TOGGLE + BUDGET, {"reasoning": {"enabled": True}}, "on"),
        ("thinking-type", "openai-chat", TOGGLE, {"thinking": {"type": "enabled"}}, "on"),
        (
            "gemini-budget",
            "gemini",
            [{**BUDGET[0], "min": 512, "max": 24_576}],
            {
                "generationConfig": {
                    "thinkingConfig": {"thinkingBudget": 10_000, "includeThoughts": True}
                }
            },
            TEN,
        ),
        ("anthropic-budget", "anthropic", TOGGLE, enabled(10_000), TEN),
    ],
)
def test_a_model_that_is_off_by_itself_thinks_by_default(writer, dialect, options, fragment, words):
    """Document 002: reasoning models think unless told otherwise."""
    quiet = target(writer, dialect=dialect, options=options, thinks_by_default=False)
    for settings in ({}, {"enabled": True}):
        planned = plan_thinking(quiet, snapshot(**settings))
        assert write_thinking(planned.plan) == fragment
        assert planned.summary == words
        assert not [note for note in planned.notes if note.warning]


def test_off_is_silent_where_silence_means_off_and_said_where_it_does_not():
    assert sent(claude(), effort="none") == {}
    assert sent(claude(thinks_by_default=True), effort="none") == {"thinking": {"type": "disabled"}}
    assert sent(claude(thinks_by_default=True), enabled=False) == {"thinking": {"type": "disabled"}}


def test_br_006_enabled_false_beats_level_and_budget():
    assert sent(claude(), enabled=False, effort="high", maxTokens=5000) == {}


def test_an_explicit_budget_wins_over_effort():
    assert sent(claude(), effort="high", maxTokens=5000) == enabled(5000)


def test_an_explicit_budget_outside_the_range_is_an_error():
    with pytest.raises(BudgetError, match="70,000 is above 64,000"):
        plan_thinking(claude(), snapshot(maxTokens=70_000))
    with pytest.raises(BudgetError, match="5,000 does not fit max_tokens 4,000"):
        plan_thinking(claude(), snapshot(maxTokens=5000), max_tokens=4000)


def test_a_small_answer_turns_derived_thinking_down_then_off():
    planned = plan_thinking(claude(), snapshot(effort="high"), max_tokens=9000)
    assert write_thinking(planned.plan) == enabled(9000 - 1024)
    assert planned.max_tokens == 9000
    planned = plan_thinking(claude(), snapshot(effort="high"), max_tokens=1000)
    assert write_thinking(planned.plan) == {}
    assert not planned.thinks
    assert planned.max_tokens == 1000
    assert [n.text for n in planned.notes if n.warning] == [
        "max_tokens 1,000 leave no room for the smallest budget of 1,024 tokens"
    ]


def test_a_model_that_cannot_stop_keeps_its_smallest_budget():
    pro = target("gemini-budget", dialect="gemini", options=[{**BUDGET[0], "min": 128}])
    assert sent(pro, effort="none") == {
        "generationConfig": {"thinkingConfig": {"thinkingBudget": 128, "includeThoughts": True}}
    }
    assert warnings(pro, effort="none") == ["This model does not support disabling thinking"]
    planned = plan_thinking(pro, snapshot(effort="high"), max_tokens=1000)
    assert planned.plan.budget == 128


def test_an_answer_longer_than_the_model_can_give_is_refused():
    with pytest.raises(BudgetError) as caught:
        plan_thinking(claude(), snapshot(), max_tokens=100_000)
    assert str(caught.value) == (
        "max_tokens 100,000 is above 64,000, the maximum answer of thinker"
    )


def test_a_name_that_asks_for_thinking_gets_it():
    quiet = target(
        "responses",
        dialect="openai-responses",
        options=[{"type": "effort", "values": ("none", "low", "medium")}],
        thinks_by_default=False,
    )
    asked = msgspec.structs.replace(quiet, wants_thinking=True)
    assert sent(asked) == {"reasoning": {"effort": "medium", "summary": "auto"}}
    assert sent(asked, enabled=False) == {"reasoning": {"effort": "none"}}
    assert sent(asked, effort="low") == {"reasoning": {"effort": "low", "summary": "auto"}}


def test_dynamic_budget_and_its_switch():
    long = {"used": 160_000}
    planned = plan_thinking(claude(), snapshot(effort="high"), **long)
    assert planned.plan.budget == 10_000
    assert planned.summary == "high (10,000 tokens)"
    planned = plan_thinking(claude(), snapshot(effort="high", dynamicBudget=False), **long)
    assert planned.plan.budget == 40_000 - 1024
    planned = plan_thinking(claude(), snapshot(maxTokens=30_000), **long)
    assert planned.plan.budget == 10_000
    assert planned.summary == "10,000 tokens"


def test_a_full_window_leaves_room_for_the_answer():
    planned = plan_thinking(claude(), snapshot(effort="low"), used=195_000)
    assert planned.max_tokens == 5000
    assert planned.plan.budget == 5000 - 1024


def test_the_users_context_limit_overrides_the_catalog():
    planned = plan_thinking(claude(), snapshot(context__limit=20_000, effort="high"), used=10_000)
    assert planned.max_tokens == 10_000


def test_words_go_out_as_they_are():
    o3 = target("responses", dialect="openai-responses", options=WORDS, thinks_by_default=True)
    assert sent(o3, effort="medium") == {"reasoning": {"effort": "medium", "summary": "auto"}}
    assert sent(o3) == {"reasoning": {"summary": "auto"}}
    assert sent(o3, summary="none") == {}
    assert sent(o3, summary="detailed") == {"reasoning": {"summary": "detailed"}}


@pytest.mark.parametrize(
    ("have", "asked", "got"),
    [
        (("low", "high"), "medium", "high"),
        (("low", "high"), "minimal", "low"),
        (("low", "medium"), "max", "medium"),
        (("none", "high"), "low", "high"),
        (("high", "low"), "low", "low"),
        (("default", "null", "low"), "low", "low"),
    ],
)
def test_a_missing_level_becomes_the_nearest_upward_first_and_is_told(have, asked, got):
    where = target("openai-effort", options=[{"type": "effort", "values": have}])
    assert sent(where, effort=asked) == {"reasoning_effort": got}
    told = [] if asked == got else [f"This model has no {asked} level: using {got}"]
    assert warnings(where, effort=asked) == told


def test_words_for_off_alone_make_a_switch():
    """Some endpoints list only `none` and a word of their own for on."""
    where = target("openai-effort", options=[{"type": "effort", "values": ("none", "default")}])
    assert sent(where, effort="high") == {}
    assert warnings(where, effort="high") == ["This model's thinking is on or off: high means on"]
    assert sent(where, effort="none") == {"reasoning_effort": "none"}


def test_off_in_words():
    switch = target("openai-effort", options=TOGGLE)
    assert sent(switch, effort="none") == {"reasoning_effort": "none"}
    can = target("openai-effort", options=[{"type": "effort", "values": ("none", "low")}])
    assert sent(can, effort="none") == {"reasoning_effort": "none"}
    cannot = target("openai-effort", options=WORDS)
    assert sent(cannot, effort="none") == {"reasoning_effort": "low"}
    assert warnings(cannot, effort="none") == ["This model does not support disabling thinking"]


def test_gemini_takes_a_level_or_a_budget_never_both():
    three = target("gemini-level", dialect="gemini", options=WORDS, thinks_by_default=True)
    assert sent(three, effort="low") == {
        "generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": True}}
    }
    assert sent(three) == {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}
    flash = target(
        "gemini-budget", dialect="gemini", options=[*TOGGLE, {**BUDGET[0], "min": 0, "max": 24_576}]
    )
    assert sent(flash, effort="none") == {
        "generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}
    }
    assert sent(flash, effort="minimal") == sent(flash, effort="none")
    assert warnings(flash, effort="minimal") == ["minimal turns thinking off on this model"]
    assert sent(flash, effort="low") == {
        "generationConfig": {"thinkingConfig": {"thinkingBudget": 8192, "includeThoughts": True}}
    }


def test_adaptive_models_take_effort_and_show_their_thoughts():
    opus = target("anthropic-adaptive", dialect="anthropic", options=WORDS, can_be_off=True)
    assert sent(opus) == {"thinking": {"type": "adaptive", "display": "summarized"}}
    assert sent(opus, effort="high") == {
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "high"},
    }
    assert sent(opus, effort="none") == {"thinking": {"type": "disabled"}}
    between = target(
        "anthropic-adaptive",
        dialect="anthropic",
        options=WORDS,
        can_be_off=True,
        off_type="between_tools",
    )
    assert sent(between, effort="none") == {"thinking": {"type": "between_tools"}}
    assert plan_thinking(between, snapshot(effort="none")).thinks
    assert plan_thinking(between, snapshot(effort="none")).summary == "off (between_tools)"


def test_a_budget_for_an_adaptive_model_that_still_takes_one():
    both = target("anthropic-adaptive", dialect="anthropic", options=WORDS + BUDGET)
    assert sent(both, maxTokens=5000) == enabled(5000)


@pytest.mark.parametrize(
    "where",
    [
        target("openai-effort", options=WORDS),
        target("usual", options=None, known=False),
        target("responses", dialect="openai-responses", options=WORDS),
        target("anthropic-adaptive", dialect="anthropic", options=WORDS),
        target("gemini-level", dialect="gemini", options=WORDS),
    ],
)
def test_a_budget_that_cannot_be_sent_leaves_the_effort_and_without_one_is_a_level(where):
    for level in ("low", "high"):
        assert sent(where, effort=level, maxTokens=50_000) == sent(where, effort=level)
        planned = plan_thinking(where, snapshot(effort=level, maxTokens=50_000))
        assert planned.notes[-1].requested == f"50,000 tokens, else {level}"
        told = f"thinker accepts no token budget: 50,000 tokens not sent, {level} effort is"
        assert told in warnings(where, effort=level, maxTokens=50_000)
    for budget, level in ((5_000, "low"), (15_000, "medium"), (50_000, "high")):
        assert sent(where, maxTokens=budget) == sent(where, effort=level)
        told = f"thinker accepts no token budget: {budget:,} tokens sent as {level}"
        assert told in warnings(where, maxTokens=budget)


def test_a_level_beside_a_budget_gives_way_where_the_budget_can_be_sent():
    for where in (claude(), target("anthropic-adaptive", dialect="anthropic", options=BUDGET)):
        assert sent(where, effort="low", maxTokens=5000) == enabled(5000)
    assert warnings(claude(), effort="low", maxTokens=5000) == []


def test_a_budget_for_a_switch_means_on():
    switch = target("thinking-type", options=TOGGLE)
    assert sent(switch, maxTokens=5000) == {"thinking": {"type": "enabled"}}
    assert warnings(switch, maxTokens=5000) == [
        "thinker accepts no token budget: 5,000 tokens not sent"
    ]


def test_a_switch_knows_on_and_off():
    switch = target("thinking-type", options=TOGGLE, thinks_by_default=True)
    assert sent(switch) == {}
    assert sent(switch, effort="none") == {"thinking": {"type": "disabled"}}
    assert sent(switch, effort="high") == {"thinking": {"type": "enabled"}}
    assert warnings(switch, effort="high") == ["This model's thinking is on or off: high means on"]
    quiet = target("enable-thinking", options=TOGGLE, thinks_by_default=False)
    assert sent(quiet) == {"enable_thinking": True}


@pytest.mark.parametrize("writer", ["thinking-type", "none", "usual"])
def test_a_model_that_always_thinks_says_so(writer):
    always = target(writer, options=[], can_be_off=False)
    assert sent(always, effort="high") == {}
    assert warnings(always, effort="high") == ["This model's thinking cannot be controlled"]
    assert plan_thinking(always, snapshot()).summary == "always on"
    assert sent(always, effort="none") == {}
    assert warnings(always, effort="none") == ["This model does not support disabling thinking"]
    assert warnings(always, enabled=True) == []


def test_nothing_is_claimed_of_a_model_whose_options_nobody_knows():
    """An empty list in the catalog, or no entry at all, is not a model that always thinks."""
    for known in (True, False):
        who = (
            "the catalog does not list the levels of thinker"
            if known
            else "thinker is not in the catalog"
        )
        nobody = target("thinking-type", options=[], known=known)
        assert plan_thinking(nobody, snapshot()).summary == "left to the endpoint"
        assert sent(nobody, effort="none") == {"thinking": {"type": "disabled"}}
        assert warnings(nobody, effort="none") == []
        assert sent(nobody, effort="high") == {
            "thinking": {"type": "enabled"},
            "reasoning_effort": "high",
        }
        assert warnings(nobody, effort="high") == [f"{who}: high is sent as asked"]


def test_models_that_do_not_reason_get_no_parameter():
    plain = target("openai-effort", reasoning=False)
    for settings in ({}, {"effort": "high"}, {"effort": "none"}, {"enabled": False}):
        assert sent(plain, **settings) == {}
        assert not plan_thinking(plain, snapshot(**settings)).thinks
    assert warnings(plain, effort="high") == ["thinker does not reason"]
    assert warnings(plain) == []


def test_unknown_models_get_nothing_invented_but_what_the_user_asked():
    unknown = target("openai-effort", reasoning=False, known=False)
    assert sent(unknown) == {}
    assert plan_thinking(unknown, snapshot()).thinks
    assert plan_thinking(unknown, snapshot()).summary == "left to the endpoint"
    assert sent(unknown, effort="high") == {"reasoning_effort": "high"}
    assert warnings(unknown, effort="high") == [
        "thinker is not in the catalog: high is sent as asked"
    ]
    routed = target("openrouter", reasoning=False, known=False)
    assert sent(routed, maxTokens=4000) == {"reasoning": {"max_tokens": 4000}}


@pytest.mark.parametrize(
    ("writer", "dialect", "asked", "sent_as"),
    [
        ("gemini-budget", "gemini", "max", "HIGH"),
        ("gemini-level", "gemini", "minimal", "MINIMAL"),
        ("anthropic-adaptive", "anthropic", "minimal", "low"),
        ("anthropic-adaptive", "anthropic", "max", "max"),
        ("ollama-think", "openai-chat", "xhigh", "max"),
        ("openai-effort", "openai-chat", "xhigh", "xhigh"),
    ],
)
def test_a_word_that_the_api_does_not_have_becomes_the_nearest(writer, dialect, asked, sent_as):
    unlisted = target(writer, dialect=dialect, reasoning=False, known=False)
    assert f'"{sent_as}"' in plan_thinking(unlisted, snapshot(effort=asked)).sent_as
    (told,) = warnings(unlisted, effort=asked)
    words = "asked" if sent_as.lower() == asked else sent_as.lower()
    assert told == f"thinker is not in the catalog: {asked} is sent as {words}"


def test_an_endpoint_that_takes_no_parameter_gets_none_and_the_user_is_told():
    deaf = target("none", options=WORDS + TOGGLE)
    for wish, words in (
        ({"effort": "high"}, "high"),
        ({"maxTokens": 5000}, "5,000 tokens"),
        ({"enabled": True}, "on"),
    ):
        assert sent(deaf, **wish) == {}
        told = f"thinker accepts no thinking parameter here: {words} not sent"
        assert warnings(deaf, **wish) == [told]
    assert warnings(deaf) == []
    thinks = target("none", options=WORDS, thinks_by_default=True)
    assert warnings(thinks, enabled=True) == []
    off = plan_thinking(deaf, snapshot(enabled=False))
    assert write_thinking(off.plan) == {}
    assert off.summary == "left to the endpoint: thinking may continue"
    assert off.thinks
    assert warnings(deaf, enabled=False) == [
        "it is not known how to turn thinking off for thinker here: thinking may continue"
    ]


def test_max_tokens_is_there_for_dialects_that_need_it():
    assert plan_thinking(claude(), snapshot(effort="none")).max_tokens == 64_000
    assert plan_thinking(claude(), snapshot(effort="none"), max_tokens=5).max_tokens == 5
    chat = target("openai-effort", options=WORDS)
    assert plan_thinking(chat, snapshot(effort="low")).max_tokens is None
    nobody = target("none", dialect="anthropic", reasoning=False, output=None, context=None)
    assert plan_thinking(nobody, snapshot()).max_tokens == 8192


@pytest.mark.parametrize(
    "settings", [{}, {"effort": "low"}, {"maxTokens": 5000}, {"effort": "none"}]
)
def test_an_answer_may_be_as_long_as_the_model_can_write(settings):
    planned = plan_thinking(claude(), snapshot(**settings))
    assert planned.max_tokens == 64_000
    assert (planned.plan.budget or 0) < planned.max_tokens
    long = plan_thinking(claude(), snapshot(**settings), used=170_000)
    assert long.max_tokens == 30_000
    assert (long.plan.budget or 0) < long.max_tokens


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("budget", [None, 1024, 50_000])
def test_where_nobody_knows_how_long_an_answer_can_be_it_has_room_beside_the_budget(known, budget):
    unknown = target(
        "anthropic-budget",
        dialect="anthropic",
        options=BUDGET if known else [],
        output=None,
        context=None,
        known=known,
        can_be_off=True,
        thinks_by_default=False,
    )
    wish = {"maxTokens": budget} if budget else {"effort": "none"}
    assert plan_thinking(unknown, snapshot(**wish)).max_tokens == 8192 + (budget or 0)
    if budget == 50_000:
        with pytest.raises(BudgetError, match="50,000 does not fit the 20,000 tokens"):
            plan_thinking(unknown, snapshot(context__limit=20_000, **wish))


def test_every_plan_has_an_outcome_that_quotes_what_is_sent():
    for settings in ({}, {"effort": "low"}, {"maxTokens": 2000}, {"enabled": False}):
        planned = plan_thinking(claude(), snapshot(**settings))
        outcome = planned.notes[-1]
        fragment = write_thinking(planned.plan)
        assert (outcome.sent_as is None) == (not fragment)
        assert outcome.effective == planned.summary
    outcome = plan_thinking(claude(), snapshot(effort="med")).notes[-1]
    assert (outcome.about, outcome.requested) == ("reasoning.effort", "medium")
    assert outcome.effective == "medium (43,008 tokens)"
    assert outcome.sent_as == '{"thinking":{"type":"enabled","budget_tokens":43008}}'


def test_the_level_table_covers_the_ladder():
    rows = level_table(claude(), snapshot(effort="high"))
    assert [row.level for row in rows] == ["unset", *LADDER]
    assert rows[0].text == "default (10,000 tokens)"
    assert rows[1].sent_as == "nothing"


@pytest.mark.parametrize(
    ("writer", "options", "state", "expected"),
    [
        ("openrouter", TOGGLE, "high", {"reasoning": {"enabled": True}}),
        ("openrouter", TOGGLE, "none", {"reasoning": {"enabled": False}}),
        ("openrouter", WORDS, "high", {"reasoning": {"effort": "high"}}),
        ("openrouter", BUDGET, "low", {"reasoning": {"max_tokens": 22_016}}),
        ("openrouter", TOGGLE, None, {"reasoning": {"enabled": True}}),
        ("openrouter", [], None, {"reasoning": {"enabled": True}}),
        (
            "thinking-type",
            TOGGLE + WORDS,
            "high",
            {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
        ),
        (
            "enable-thinking",
            TOGGLE + BUDGET,
            "low",
            {"enable_thinking": True, "thinking_budget": 22_016},
        ),
        ("enable-thinking", TOGGLE + BUDGET, "none", {"enable_thinking": False}),
        (
            "enable-thinking",
            TOGGLE + WORDS,
            "low",
            {"enable_thinking": True, "reasoning_effort": "low"},
        ),
        ("template-kwargs", TOGGLE, "high", {"chat_template_kwargs": ON}),
        ("template-kwargs", TOGGLE, "none", {"chat_template_kwargs": OFF}),
        (
            "template-kwargs",
            TOGGLE + WORDS,
            "low",
            {
                "chat_template_kwargs": {**ON, "reasoning_effort": "low"},
                "reasoning_effort": "low",
            },
        ),
        ("template-kwargs", TOGGLE, None, {"chat_template_kwargs": ON}),
        ("ollama-think", TOGGLE, "high", {"think": True}),
        ("ollama-think", TOGGLE, "none", {"think": False}),
        ("ollama-think", WORDS, "high", {"think": "high"}),
        ("ollama-think", TOGGLE, None, {"think": True}),
    ],
)
def test_each_writer_has_its_shape(writer, options, state, expected):
    where = target(writer, options=options)
    assert sent(where, **({"effort": state} if state else {})) == expected


def test_a_budget_field_of_the_endpoints_own():
    where = target(
        "template-kwargs", options=TOGGLE + BUDGET, compat={"budget_field": "thinking_token_budget"}
    )
    assert sent(where, maxTokens=2000) == {
        "chat_template_kwargs": ON,
        "thinking_token_budget": 2000,
    }


def test_a_template_switch_of_another_name():
    where = target("template-kwargs", options=TOGGLE, compat={"template_key": "reason"})
    assert sent(where, effort="none") == {"chat_template_kwargs": {**OFF, "reason": False}}
    assert sent(where, enabled=True) == {"chat_template_kwargs": {**ON, "reason": True}}


def test_feedback_of_a_plain_switch():
    where = target("thinking-type", options=TOGGLE)
    assert feedback(where, plan_thinking(where, snapshot(effort="none"))) == (
        "✓ Switched to Acme thinker",
        "  Thinking: off",
    )
