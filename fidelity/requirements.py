"""Scenes of what endpoints reject and count, and of thoughts that must stay thoughts."""

from __future__ import annotations

from dataclasses import replace

from fidelity.endpoints import ENDPOINTS
from fidelity.scene import (
    AGAIN,
    CLEAR,
    DONE,
    SECOND,
    THOUGHT,
    Line,
    ask,
    call,
    case,
    gh,
    think,
    unseen,
)
from fidelity.wire import Json, Say, Think

__all__ = [
    "COUNTED",
    "bound",
    "counted",
    "foreign_field",
    "tag_in_thought",
    "thought_only",
    "unthinking_turn",
    "usage_shapes",
]


def thought_only(name: str, way: str) -> Json:
    """The model thinks and says nothing; the next turn must still be valid."""
    which = f"{name}/thought-only/{way}"
    spec = ENDPOINTS[name]
    line = Line(spec, which)
    line.turn()
    line.answer(think("one"))
    line.turn()
    line.turns[0] = []
    line.answer(Say(DONE))
    line.checks[1] = unseen(spec, THOUGHT)
    line.replies[0]["shows"] |= {"text": "", "mayFail": True}
    title = "A thought without an answer is not shown as the answer, and the next turn is valid"
    sources = gh("tailcallhq/forgecode#3071", "earendil-works/pi#8115", "QwenLM/qwen-code#3421")
    return case(which, "leak", title, sources, way, {"a": line}, [ask(), ask(AGAIN)])


def tag_in_thought(name: str, way: str) -> Json:
    which = f"{name}/tag-in-thought/{way}"
    line = Line(ENDPOINTS[name], which)
    line.turn()
    line.answer(think("one", "End it with </think> then <answer>."), call(1))
    line.answer(Say(DONE))
    title = "A thought that mentions tags stays a thought, to the byte"
    sources = gh("ggml-org/llama.cpp#27661", "lmstudio-ai/lmstudio-bug-tracker#1592")
    return case(which, "leak", title, sources, way, {"a": line}, [ask()])


def foreign_field(way: str) -> Json:
    """Mistral refuses a field that others require."""
    which = f"mistral/foreign-field/{way}"
    a, b = Line(ENDPOINTS["kimi"], which), Line(ENDPOINTS["mistral"], which)
    a.turn()
    a.answer(think("one"), call(1))
    a.answer(Say(DONE))
    b.turn()
    b.answer(Say(CLEAR), checks=unseen(b.spec, THOUGHT))
    title = "A field that one endpoint requires is not sent to one that rejects it"
    sources = gh("BerriAI/litellm#30835", "OpenMinis/OpenMinis#87", "charmbracelet/crush#1590")
    steps = [ask(), ask(AGAIN, "b")]
    return case(which, "rules", title, sources, way, {"a": a, "b": b}, steps)


def unthinking_turn(name: str, way: str) -> Json:
    """An answer without a thought in the middle of a chain."""
    which = f"{name}/unthinking/{way}"
    line = Line(ENDPOINTS[name], which)
    line.turn()
    line.answer(think("one"), call(1))
    line.answer(*([Think("")] if name == "deepseek" else []), call(2, "wall"))
    line.answer(think("two", SECOND), Say(DONE))
    title = "A call without a thought in the chain does not break the request"
    sources = gh("pydantic/pydantic-ai#8525", "Gitlawb/openclaude#895")
    return case(which, "rules", title, sources, way, {"a": line}, [ask()])


def bound(way: str) -> Json:
    """A newer Claude binds thoughts to what came before them."""
    which = f"anthropic/bound/{way}"
    spec = replace(ENDPOINTS["anthropic"], model="claude-opus-5-5", rules="anthropic-bound")
    line = Line(spec, which)
    line.turn()
    line.answer(think("one"), call(1))
    line.answer(think("two", SECOND), Say(DONE))
    line.turn()
    line.answer(think("three", "The window now."), call(2, "window"))
    line.answer(Say(CLEAR))
    title = "Thoughts that are bound to what came before them stay valid"
    sources = gh("pydantic/pydantic-ai#7984", "NousResearch/hermes-agent#106426")
    steps = [ask(), ask(AGAIN)]
    return case(which, "rules", title, sources, way, {"a": line}, steps)


COUNTED = {
    "openai": gh(
        "junhoyeo/tokscale#1142", "kyegomez/swarms#2190", "latitude-dev/latitude-llm#4051"
    ),
    "anthropic": gh("anthropics/anthropic-sdk-python#1017", "vercel/ai#17923"),
    "gemini": gh("PostHog/posthog#71065", "simonw/llm-gemini#75"),
    "kimi": gh("BerriAI/litellm#41849", "sgl-project/sglang#15660"),
    "deepseek": gh("anomalyco/opencode#17566", "anomalyco/opencode#24268"),
    "openrouter": gh("hugalafutro/model-hotel#991", "getagentseal/codeburn#1079"),
}


def counted(name: str, way: str) -> Json:
    which = f"{name}/counted/{way}"
    line = Line(ENDPOINTS[name], which)
    line.turn()
    line.answer(think("one"), Say(DONE), tokens=41)
    title = "Reasoning tokens are reported as counted by the endpoint"
    return case(which, "counted", title, COUNTED[name], way, {"a": line}, [ask()])


def usage_shapes(shape: str) -> Json:
    """Where a stream tells its usage."""
    which = f"compatible/usage-{shape}/streaming"
    spec = ENDPOINTS["compatible"]
    line = Line(spec, which)
    line.turn()
    line.answer(think("one"), Say(DONE), tokens=41)
    events = line.replies[0]["stream"].split("\n\n")
    zero = '"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0},"choices":[{'
    if shape == "zeros-first":
        events[1] = events[1].replace('"choices":[{', zero)
    else:
        last = events[-3]
        usage = last[last.index('"usage"') : -1]
        events[-4] = events[-4].replace('"choices":[{', usage + ',"choices":[{')
        del events[-3]
    line.replies[0]["stream"] = "\n\n".join(events)
    title = "Usage is read wherever the stream tells it"
    sources = gh("router-for-me/CLIProxyAPI#2708", "ARahim3/mlx-dspark#37")
    steps = [ask()]
    return case(which, "counted", title, sources, "streaming", {"a": line}, steps, captured=True)
