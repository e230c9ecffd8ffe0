"""Scenes of tool chains: rounds, parallel calls, storing, dropping turns, switching models."""

from __future__ import annotations

from dataclasses import replace

from fidelity.endpoints import ENDPOINTS, returned
from fidelity.scene import (
    AGAIN,
    ASKED,
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
from fidelity.wire import Json, Say

__all__ = ["compacted", "parallel", "resumed", "switched", "tool_round", "two_rounds", "unlisted"]

ROUND = {
    "anthropic": ("signature", gh("anomalyco/opencode#3077", "run-llama/llama_index#18834")),
    "openai": ("encrypted", gh("alibaba/open-code-review#812", "zendev-sh/goai#134")),
    "gemini": ("signature", gh("thClaws/thClaws#65", "nanbingxyz/5ire#405")),
    "bedrock": ("signature", gh("spring-projects/spring-ai#6413", "RooCodeInc/Roo-Code#11238")),
    "openrouter": ("signature", gh("agno-agi/agno#8861", "earendil-works/pi#9534")),
    "kimi": ("text", gh("mastra-ai/mastra#12592", "agentscope-ai/QwenPaw#433")),
    "deepseek": ("text", gh("anomalyco/opencode#28945", "danny-avila/LibreChat#12836")),
    "zai": ("text", gh("duolahypercho/codex-router#315", "can1357/oh-my-pi#517")),
    "vllm": ("text", gh("vllm-project/vllm#38488", "vllm-project/vllm#27755")),
    "llama.cpp": ("text", gh("pydantic/pydantic-ai#3867", "NousResearch/hermes-agent#76018")),
    "mistral": ("text", gh("simonw/llm-mistral#38", "mozilla-ai/any-llm#1241")),
    "compatible": ("text", gh("the-open-agent/openagent#2207", "pydantic/pydantic-ai#2701")),
}

RESUMED = {
    "gemini": gh("agentscope-ai/agentscope-java#2910", "rekursiv-ai/sagent#211"),
    "openai": gh("openclaw/openclaw#90093", "openai/openai-agents-python#3352"),
    "deepseek": gh("xorbitsai/xagent#1805"),
}

STORED = gh("NousResearch/hermes-agent#17825", "deep-copilot/DeepCopilot#159")

PARALLEL = {
    "gemini": gh("googleapis/js-genai#1275", "pipecat-ai/pipecat#3290", "google/adk-go#764"),
    "openai": gh("openai/openai-agents-js#326", "vercel/ai#8379"),
}

MERGED = gh("aaif-goose/goose#7921", "openai/openai-agents-js#1285")

CHAINED = gh("BerriAI/litellm#23047", "NousResearch/hermes-agent#35975")


def tool_round(name: str, way: str) -> Json:
    which = f"{name}/tool-round/{way}"
    kind, sources = ROUND[name]
    line = Line(ENDPOINTS[name], which)
    line.turn()
    line.answer(think("one"), call(1))
    line.answer(think("two", SECOND), Say(DONE))
    line.turn()
    line.answer(Say(CLEAR))
    title = "A thought goes back with its tool call, and in the next turn where that is asked for"
    steps = [ask(), ask(AGAIN)]
    return case(which, kind, title, sources, way, {"a": line}, steps)


def two_rounds(name: str, way: str) -> Json:
    which = f"{name}/two-rounds/{way}"
    line = Line(ENDPOINTS[name], which)
    line.turn()
    line.answer(think("one"), call(1))
    line.answer(think("two", SECOND), call(2, "wall"))
    line.answer(think("three", "Enough."), Say(DONE))
    title = "Each round of a tool chain keeps its own thought"
    sources = CHAINED if ENDPOINTS[name].api in ("messages", "converse") else ROUND[name][1]
    return case(which, "order", title, sources, way, {"a": line}, [ask()])


def parallel(name: str, way: str) -> Json:
    which = f"{name}/parallel/{way}"
    line = Line(ENDPOINTS[name], which)
    line.turn()
    line.answer(think("one"), call(1), call(2, "wall", signed=False))
    line.answer(think("two", SECOND), Say(DONE))
    line.turn()
    line.answer(Say(CLEAR))
    title = "Two calls after one thought stay one answer"
    steps = [ask(), ask(AGAIN)]
    sources = PARALLEL.get(name, MERGED)
    return case(which, "parallel", title, sources, way, {"a": line}, steps)


def resumed(name: str, way: str) -> Json:
    which = f"{name}/resume/{way}"
    line = Line(ENDPOINTS[name], which)
    line.turn()
    line.answer(think("one"), call(1))
    line.answer(think("two", SECOND), Say(DONE))
    line.turn()
    line.answer(think("three", "The window now."), call(2, "window"))
    line.answer(Say(CLEAR))
    title = "A conversation that was stored and loaded sends what it would have sent"
    steps = [ask(), {"resume": True}, ask(AGAIN)]
    sources = RESUMED.get(name, STORED)
    return case(which, "resume", title, sources, way, {"a": line}, steps)


def compacted(name: str, way: str) -> Json:
    which = f"{name}/compaction/{way}"
    line = Line(replace(ENDPOINTS[name], keeps=False), which)
    line.turn()
    line.answer(think("one"), call(1))
    line.answer(think("two", SECOND), Say(DONE))
    line.turn()
    line.answer(think("three", "The window now."), call(2, "window"))
    line.answer(think("four", "A garden is there."), Say(CLEAR))
    line.turn()
    kept = [] if name in ("openai", "vllm") else returned(line.spec, line.turns[1])
    line.answer(Say("Yes."), checks=[*kept, {"lacks": ASKED}])
    title = "The last turn keeps its reasoning after the ones before it were dropped"
    steps = [ask(), ask(AGAIN), {"keep": 1}, ask("Is that all?")]
    sources = gh("griffinmartin/opencode-claude-auth#263", "mensfeld/pocketrb#5")
    return case(which, "compaction", title, sources, way, {"a": line}, steps)


def unlisted(name: str, model: str, way: str) -> Json:
    which = f"{name}/unlisted/{way}"
    line = Line(replace(ENDPOINTS[name], model=model), which)
    line.turn()
    line.answer(think("one"), call(1))
    line.answer(think("two", SECOND), Say(DONE))
    title = "A model that no catalog lists keeps its reasoning in a tool chain"
    sources = gh("BerriAI/litellm#26156", "smallmain/vscode-unify-chat-provider#306")
    return case(which, "unlisted", title, sources, way, {"a": line}, [ask()])


SWITCHED = gh(
    "openclaw/openclaw#107221",
    "tailcallhq/forgecode#2646",
    "bigduu/Bamboo-agent#520",
    "pydantic/pydantic-ai#5869",
)


def switched(first: str, other: str, way: str) -> Json:
    """A tool chain at the first, a turn at the other, and back."""
    which = f"{first}/switch-{other}/{way}"
    a, b = Line(ENDPOINTS[first], which), Line(ENDPOINTS[other], which)
    a.turn()
    a.answer(think("one"), call(1))
    a.answer(think("two", SECOND), Say(DONE))
    b.turn()
    foreign = [*unseen(b.spec, THOUGHT), *unseen(b.spec, SECOND), {"lacks": a.carrier("one")}]
    b.answer(think("three", "Another mind."), Say(CLEAR), checks=foreign)
    a.turn()
    a.answer(Say("Yes."), checks=[*unseen(a.spec, "Another mind."), {"lacks": b.carrier("three")}])
    title = "No model reads another's thoughts as answers, and the first gets its own back"
    steps = [ask(), ask(AGAIN, "b"), ask("Is that all?", "a")]
    return case(which, "switch", title, SWITCHED, way, {"a": a, "b": b}, steps)
