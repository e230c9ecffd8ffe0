"""Servers that render a model's chat template: what each level, and none, becomes there."""

import pytest

from healing import body, prepared
from mull.catalog.load import load
from mull.catalog.resolve import resolve
from mull.neutral.blocks import ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.messages import Message, assistant, user
from mull.neutral.thinking import write_thinking
from mull.policy.thinking.plan import plan_thinking
from mull.settings.layers import Settings

CATALOG = load()
ON, OFF = ({"enable_thinking": on, "thinking": on} for on in (True, False))
SERVERS = ("llama.cpp", "vllm", "sglang", "lmstudio")
DIALECTS = ("openai-chat", "openai-responses", "anthropic")


def planned(name, dialect=None, **wishes):
    target = resolve(name, catalog=CATALOG, dialect=dialect)
    settings = Settings()
    for key, value in wishes.items():
        settings.set(f"reasoning.{key}", value)
    return plan_thinking(target, settings.snapshot())


def sent(*asked, **wishes):
    return write_thinking(planned(*asked, **wishes).plan)


def warned(plan):
    return [note.text for note in plan.notes if note.warning]


NAMES = ("nobody-knows", "qwen3-8b", "qwq-32b", "gemma-4-31b", "deepseek-v3.1", "granite-3.3")


@pytest.mark.sweep
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("name", NAMES)
def test_none_is_told_to_the_template_in_every_dialect(server, name, dialect):
    for wish in ({"effort": "none"}, {"enabled": False}):
        body = sent(f"{server}/{name}", dialect, **wish)
        assert body["chat_template_kwargs"] == OFF


@pytest.mark.parametrize("dialect", DIALECTS)
def test_llama_cpp_ends_thoughts_whatever_the_template_knows(dialect):
    for name in ("nobody-knows", "qwq-32b", "kimi-k2-thinking"):
        plan = planned(f"llama.cpp/{name}", dialect, effort="none")
        body = write_thinking(plan.plan)
        ended = {"reasoning_budget_tokens": 0}
        if dialect == "anthropic":
            ended = {"thinking": {"type": "enabled", "budget_tokens": 0}}
        assert body == {"chat_template_kwargs": OFF, **ended}
        assert (plan.summary, plan.thinks, warned(plan)) == ("off", False, [])


def test_a_model_that_is_known_to_think_always_may_go_on():
    plan = planned("vllm/qwq-32b", effort="none")
    assert plan.summary == "off (thinking may continue)"
    assert plan.thinks
    told = "qwq-32b is known to always think: it is told not to, and thinking may continue"
    assert warned(plan) == [told]
    plan = planned("llama.cpp/gpt-oss-20b", effort="none")
    assert write_thinking(plan.plan) == {
        "chat_template_kwargs": {**OFF, "reasoning_effort": "low"},
        "reasoning_budget_tokens": 0,
        "reasoning_effort": "low",
    }
    assert plan.thinks


@pytest.mark.parametrize(
    ("level", "budget", "words"),
    [
        ("minimal", 256, "minimal (256 tokens)"),
        ("low", 512, "low (512 tokens)"),
        ("medium", 2048, "medium (2,048 tokens)"),
        ("high", 8192, "high (8,192 tokens)"),
        ("max", None, "max (no token limit)"),
    ],
)
def test_a_level_is_a_budget_where_words_change_nothing(level, budget, words):
    counted = {} if budget is None else {"reasoning_budget_tokens": budget}
    plan = planned("llama.cpp/qwen3-8b", effort=level)
    assert write_thinking(plan.plan) == {"chat_template_kwargs": ON, **counted}
    assert (plan.summary, warned(plan)) == (words, [])
    thinking = {} if budget is None else {"thinking": {"type": "enabled", "budget_tokens": budget}}
    body = sent("llama.cpp/qwen3-8b", "anthropic", effort=level)
    assert body == {"chat_template_kwargs": ON, **thinking}


def test_a_model_that_nobody_knows_is_told_the_word_as_well():
    plan = planned("llama.cpp/nobody-knows", effort="low")
    assert write_thinking(plan.plan) == {
        "chat_template_kwargs": {**ON, "reasoning_effort": "low"},
        "reasoning_budget_tokens": 512,
        "reasoning_effort": "low",
    }
    assert plan.summary == "low (512 tokens)"
    assert warned(plan) == ["nobody-knows is not in the catalog: low is sent as asked"]


def test_words_go_to_the_template_where_the_model_has_them():
    assert sent("llama.cpp/gpt-oss-20b", effort="high") == {
        "chat_template_kwargs": {**ON, "reasoning_effort": "high"},
        "reasoning_effort": "high",
    }
    below = planned("llama.cpp/deepseek-v4", effort="low")  # its lowest word is high
    assert write_thinking(below.plan) == {
        "chat_template_kwargs": {**ON, "reasoning_effort": "high"},
        "reasoning_budget_tokens": 512,
        "reasoning_effort": "high",
    }
    assert (below.summary, warned(below)) == ("low (512 tokens)", [])


@pytest.mark.parametrize(
    ("name", "level", "words"),
    [
        ("hy3", "none", {**OFF, "reasoning_effort": "no_think"}),
        ("hy3", "low", {**ON, "reasoning_effort": "low"}),
        ("kimi-k3", "max", {**ON, "thinking_effort": "max"}),
        ("minimax-m3", "none", {**OFF, "thinking_mode": "disabled"}),
        ("minimax-m3", "high", {**ON, "thinking_mode": "enabled"}),
        ("seed-oss-36b", "none", {**OFF, "thinking_budget": 0}),
    ],
)
def test_families_whose_templates_have_other_keywords(name, level, words):
    assert sent(f"llama.cpp/{name}", effort=level)["chat_template_kwargs"] == words


def test_claude_behind_a_local_proxy_is_steered_as_claude():
    assert sent("llama.cpp/claude-sonnet-4-5", "anthropic", effort="none") == {
        "thinking": {"type": "disabled"}
    }


def test_a_small_limit_lowers_a_servers_budget_and_does_not_end_thinking():
    target = resolve("llama.cpp/qwen3-8b", catalog=CATALOG)
    settings = Settings()
    settings.set("reasoning.effort", "high")
    plan = plan_thinking(target, settings.snapshot(), max_tokens=1100)
    assert plan.plan.budget == 76
    assert any("budget 8,192 → 76" in text for text in warned(plan))


@pytest.mark.parametrize(
    ("came_in", "goes_back_in"),
    [
        (None, "reasoning"),  # what every version reads since it was renamed
        ("reasoning", "reasoning"),
        ("reasoning_content", "reasoning_content"),
    ],
)
def test_vllm_gets_a_thought_in_the_field_that_its_version_reads(came_in, goes_back_in):
    vllm = resolve("vllm/nobody-knows", catalog=CATALOG)
    thought, call = ThinkingBlock("a thought", came_in), ToolCallBlock("call_1", "look")
    step = assistant(thought, call, origin=vllm.origin, stop_reason="tool_calls")
    result = Message("tool", blocks=(ToolResultBlock("call_1", "a mill"),))
    (sent,) = (
        message
        for message in body(prepared(vllm, [user("Look."), step, result]))["messages"]
        if message["role"] == "assistant"
    )
    fields = {name: text for name, text in sent.items() if name.startswith("reasoning")}
    assert fields == {goes_back_in: "a thought"}
