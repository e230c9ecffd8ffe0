"""Scenes of what a thought can be: redacted, empty, interleaved, in this field or that."""

from __future__ import annotations

from dataclasses import replace
from json import loads

from fidelity.endpoints import ENDPOINTS
from fidelity.scene import AGAIN, CLEAR, DONE, SECOND, THOUGHT, Line, ask, call, case, gh, think
from fidelity.wire import Json, Say, Think, sse

__all__ = [
    "FIELDS",
    "INTERLEAVED",
    "blank_thought",
    "empty_field",
    "interleaved",
    "mirrored",
    "mirrored_details",
    "observed_field",
    "raw_reasoning",
    "redacted",
    "redacted_between",
    "signed_calls",
    "signed_text",
    "signed_without_text",
    "summaries",
]

REDACTED = gh("zendev-sh/goai#93", "maximhq/bifrost#5093", "BerriAI/litellm#9058")

EMPTY = {
    "anthropic": gh("caozhiyuan/copilot-api#350", "BerriAI/litellm#41361"),
    "openai": gh("newo-ether/Agora#141", "microsoft/agent-framework-go#784"),
    "gemini": gh("MayDay-wpf/snow-cli#104", "Wei-Shaw/claude-relay-service#967"),
}

INTERLEAVED = {
    "anthropic": gh("BerriAI/litellm#23047", "enricoros/big-AGI#966"),
    "bedrock": gh("NousResearch/hermes-agent#36260"),
    "openai": gh("vercel/ai#7099", "openai/openai-agents-js#326"),
    "gemini": gh("anomalyco/opencode#43984", "aaif-goose/goose#6708"),
}


def redacted(name: str, way: str) -> Json:
    which = f"{name}/redacted/{way}"
    line = Line(ENDPOINTS[name], which)
    line.turn()
    line.answer(think("one", "", hidden=True), call(1))
    line.answer(think("two", SECOND), Say(DONE))
    line.turn()
    line.answer(Say(CLEAR))
    title = "A thought without text goes back before its tool call"
    steps = [ask(), ask(AGAIN)]
    return case(which, "redacted", title, REDACTED, way, {"a": line}, steps)


def redacted_between(name: str, way: str) -> Json:
    which = f"{name}/redacted-between/{way}"
    line = Line(ENDPOINTS[name], which)
    line.turn()
    line.answer(think("one"), think("two", "", hidden=True), think("three", SECOND), call(1))
    line.answer(Say(DONE))
    title = "A redacted thought stays between the two that are shown"
    sources = gh("anomalyco/opencode#38614", "pacifio/cersei#36")
    steps = [ask()]
    return case(which, "redacted", title, sources, way, {"a": line}, steps)


def signed_without_text(name: str, way: str) -> Json:
    which = f"{name}/no-text/{way}"
    line = Line(ENDPOINTS[name], which)
    line.turn()
    parts = [] if name == "gemini" else [think("one", "")]
    line.answer(*parts, call(1))
    line.answer(Say(DONE))
    title = "A carrier without readable text is a whole thought"
    return case(which, "empty", title, EMPTY[name], way, {"a": line}, [ask()])


def empty_field(name: str, way: str) -> Json:
    which = f"{name}/empty-field/{way}"
    line = Line(ENDPOINTS[name], which)
    line.turn()
    line.answer(Think(""), call(1))
    line.answer(Think("Now I know."), Say(DONE))
    title = "An empty reasoning field goes back as a field, not as a missing one"
    sources = gh(
        "MoonshotAI/kimi-cli#2446", "Oaklight/llm-rosetta#356", "MoonshotAI/kimi-code#1676"
    )
    path = "messages[role=assistant].reasoning_content"
    line.checks[1].append({"anyOf": [{"path": path, "has": text} for text in ("", " ")]})
    return case(which, "empty", title, sources, way, {"a": line}, [ask()], captured=True)


def blank_thought(name: str, way: str) -> Json:
    which = f"{name}/blank/{way}"
    line = Line(ENDPOINTS[name], which)
    line.turn()
    line.answer(think("one", "\n\n"), call(1))
    line.answer(Say(DONE))
    line.replies[0]["shows"].pop("thoughts")
    title = "A thought of white space is kept to the byte"
    sources = gh("diegosouzapw/OmniRoute#9170", "smg-project/smg#1658")
    return case(which, "empty", title, sources, way, {"a": line}, [ask()])


def interleaved(name: str, way: str) -> Json:
    which = f"{name}/interleaved/{way}"
    line = Line(ENDPOINTS[name], which)
    line.turn()
    line.answer(
        think("one"),
        Say("Let me see."),
        think("two", SECOND),
        call(1),
        call(2, "wall", signed=False),
    )
    line.answer(think("three", "Enough."), Say(DONE))
    if name == "openai":
        kinds = ["reasoning", "assistant", "reasoning", "function_call", "function_call"]
        line.checks[1].append({"path": "input[*].(type|role)", "order": kinds})
    line.turn()
    line.answer(Say(CLEAR))
    title = "Thought, text, thought, calls: everything stays in its place"
    steps = [ask(), ask(AGAIN)]
    return case(which, "interleaved", title, INTERLEAVED[name], way, {"a": line}, steps)


def signed_text(way: str) -> Json:
    which = f"gemini/signed-text/{way}"
    line = Line(ENDPOINTS["gemini"], which)
    line.turn()
    line.answer(think("one"), Say(DONE, "text"))
    line.turn()
    line.answer(Say(CLEAR))
    title = "A signature on a text part goes back on that part"
    sources = gh("anomalyco/opencode#43984", "google-gemini/gemini-cli#25808")
    path = "contents[*].parts[*].thoughtSignature"
    line.checks[1] = [{"path": path, "order": [line.carrier("text")]}]
    return case(which, "signature", title, sources, way, {"a": line}, [ask(), ask(AGAIN)])


FIELDS = {
    "reasoning_content": gh("pydantic/pydantic-ai#4009", "posit-dev/chatlas#295"),
    "reasoning": gh("vllm-project/vllm#27755", "BerriAI/litellm#26501"),
    "reasoning_text": gh("router-for-me/CLIProxyAPI#383", "ericc-ch/copilot-api#167"),
    "details": gh("lobehub/lobehub#10986", "open-webui/open-webui#26404"),
}


def observed_field(name: str, way: str) -> Json:
    which = f"compatible/field-{name}/{way}"
    spec = replace(ENDPOINTS["compatible"], field=name)
    line = Line(spec, which)
    line.turn()
    line.answer(think("one"), call(1))
    line.answer(think("two", SECOND), Say(DONE))
    shown = name.replace("details", "reasoning_details")
    title = f"An unknown server that sends {shown} gets {shown} back"
    return case(which, "field", title, FIELDS[name], way, {"a": line}, [ask()])


def signed_calls(way: str) -> Json:
    which = f"compatible/signed-calls/{way}"
    line = Line(
        replace(ENDPOINTS["compatible"], field="extra-content", model="acme-gemini-3"), which
    )
    line.turn()
    line.answer(call(1), call(2, "wall", signed=False))
    line.answer(Say(DONE))
    title = "A signature inside a Chat Completions tool call goes back inside it"
    sources = gh("earendil-works/pi#3234", "crmne/ruby_llm#588", "noho/dayu-agent#45")
    return case(which, "field", title, sources, way, {"a": line}, [ask()], captured=True)


def mirrored(way: str) -> Json:
    """One text in two fields of the same delta."""
    which = f"compatible/mirrored/{way}"
    line = Line(ENDPOINTS["compatible"], which)
    line.turn()
    line.answer(think("one"), call(1))
    _mirror(line.replies[0])
    line.answer(Say(DONE))
    path = "messages[role=assistant].(reasoning_content|reasoning)"
    twice = [{"path": path, "has": THOUGHT}, {"path": path, "lacks": THOUGHT + THOUGHT}]
    line.checks[1] = twice
    title = "A thought in two fields at once is one thought"
    sources = gh("MoonshotAI/kimi-code#3928", "Effect-TS/effect#6059")
    return case(which, "mirrored", title, sources, way, {"a": line}, [ask()], captured=True)


def _mirror(reply: Json) -> None:
    message = reply["document"]["choices"][0]["message"]
    message["reasoning"] = message["reasoning_content"]
    events = []
    for event in reply["stream"].split("\n\n"):
        data = event.removeprefix("data: ")
        if "reasoning_content" in data:
            chunk = loads(data)
            delta = chunk["choices"][0]["delta"]
            delta["reasoning"] = delta["reasoning_content"]
            events.append(chunk)
        elif data:
            events.append(data)
    reply["stream"] = sse(events).decode()


def mirrored_details(name: str, way: str) -> Json:
    which = f"{name}/mirrored/{way}"
    line = Line(ENDPOINTS[name], which)
    line.turn()
    line.answer(think("one"), think("two", SECOND), Say(DONE))
    title = "reasoning and reasoning_details carry one thought, not two"
    sources = gh("vercel/ai#7644", "OpenRouterTeam/ai-sdk-provider#122")
    return case(which, "mirrored", title, sources, way, {"a": line}, [ask()], captured=True)


def summaries(way: str) -> Json:
    which = f"openai/summaries/{way}"
    line = Line(ENDPOINTS["openai"], which)
    line.turn()
    line.answer(think("one", "**Planning**\n\n**Verifying**"), call(1), summaries=2)
    line.replies[0]["shows"]["thoughts"] = ["**Planning**", "**Verifying**"]
    line.answer(Say(DONE))
    title = "Two parts of a summary stay two"
    sources = gh("zendev-sh/goai#125", "vercel/ai#6742", "diegosouzapw/OmniRoute#9500")
    path = "input[type=reasoning].summary[*].text"
    stored = {"path": "input[type=reasoning].id", "has": f"rs_{line.number - 1}0"}
    kept = {"path": path, "order": ["**Planning**", "**Verifying**"]}
    line.checks[1].append({"anyOf": [kept, stored]})
    return case(which, "text", title, sources, way, {"a": line}, [ask()])


def raw_reasoning(way: str) -> Json:
    """A compatible server of the Responses API that shows its reasoning."""
    which = f"openai/raw/{way}"
    spec = replace(ENDPOINTS["openai"], model="gpt-oss-120b")
    line = Line(spec, which)
    line.turn()
    line.answer(think("one"), Say(DONE), raw=True)
    title = "Raw reasoning of the Responses API is read"
    sources = gh(
        "openai/openai-python#3397", "openai/openai-dotnet#1329", "openai/openai-dotnet#748"
    )
    return case(which, "text", title, sources, way, {"a": line}, [ask()])
