"""The table of cases: each scene, on the endpoints where it has been seen to fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fidelity.endpoints import ENDPOINTS, Spec, returned
from fidelity.wire import Answer, Call, Json, Part, Say, Think, carrier, chat_stream, sse

__all__ = ["all_cases"]

CALLS = ("blocking", "streaming")
ASKED = "What is behind the door?"
AGAIN = "And behind the window?"
THOUGHT = "The door may hide\n\n  something — look first."
SECOND = "Nothing there, so it is “only” a door."
DONE = "It is a door."
CLEAR = "A garden."


def gh(*names: str) -> list[str]:
    """The addresses of reports: owner/name#number."""
    return [
        f"https://github.com/{name}/issues/{number}"
        for name, _, number in (one.partition("#") for one in names)
    ]


@dataclass
class Line:
    """The conversation with one endpoint, while it is being written."""

    spec: Spec
    number: int = 0
    replies: list[Json] = field(default_factory=list)
    turns: list[list[tuple[Sequence[Part], int]]] = field(default_factory=list)
    checks: list[list[Json]] = field(default_factory=list)

    def turn(self) -> None:
        """The user asks."""
        self.turns.append([])

    def answer(self, *parts: Part, checks: Sequence[Json] = (), **options: Any) -> None:
        """The endpoint answers a request that brought back what it must."""
        self.expect(checks)
        self.number += 1
        answer = self.spec.write(parts, self.number, **options)
        self.turns[-1].append((parts, self.number))
        self.replies.append(_reply(answer, parts, self.spec, options.get("tokens")))

    def expect(self, checks: Sequence[Json] = ()) -> None:
        """What the next request must bring back."""
        earlier = [reply for turn in self.turns[:-1] for reply in turn] if self.spec.keeps else []
        replies = [*earlier, *self.turns[-1]]
        self.checks.append([*returned(self.spec, replies), *checks] if replies else [*checks])

    def raw(self, reply: Json, *, checks: Sequence[Json] = ()) -> None:
        """A reply that was written by hand; nothing of it must come back."""
        self.expect(checks)
        self.number += 1
        self.replies.append(reply)


def _reply(answer: Answer, parts: Sequence[Part], spec: Spec, tokens: int | None) -> Json:
    shows: Json = {"text": "".join(part.text for part in parts if isinstance(part, Say))}
    shown = [part.text for part in parts if isinstance(part, Think) and not part.hidden]
    if any(shown) and spec.field != "extra-content":
        shows["thoughts"] = [text for text in shown if text]
    if tokens is not None:
        shows["reasoningTokens"] = tokens
    return {"shows": shows, "document": answer.document, **_stream(answer.stream)}


def _stream(data: bytes) -> Json:
    from base64 import b64encode

    try:
        return {"stream": data.decode()}
    except UnicodeDecodeError:
        return {"stream64": b64encode(data).decode()}


def think(name: str, text: str = THOUGHT, *, hidden: bool = False) -> Think:
    """A thought with its own carrier."""
    return Think(text, carrier(name), hidden)


def call(number: int, at: str = "door", *, signed: bool = True) -> Call:
    """A call; Gemini signs the first of a step."""
    return Call(f"call{number:05}", at, carrier(f"call {number}") if signed else "")


def case(  # noqa: PLR0913 - the columns of the table
    name: str,
    kind: str,
    title: str,
    sources: Sequence[str],
    way: str,
    lines: Mapping[str, Line],
    steps: Sequence[Json],
    *,
    captured: bool = False,
) -> Json:
    """One case as it is stored."""
    found: Json = {"id": name, "kind": kind, "title": title, "sources": [*sources]}
    found["call"] = way
    found["endpoints"] = {key: line.spec.data() for key, line in lines.items()}
    found["steps"] = [*steps]
    found["replies"] = {key: line.replies for key, line in lines.items()}
    found["requests"] = {key: line.checks for key, line in lines.items()}
    return {**found, **({"evidence": "captured"} if captured else {})}


def ask(text: str = ASKED, at: str = "a") -> Json:
    """A step: a question."""
    return {"ask": at, "text": text}


# What each endpoint must get back after a tool call

ROUND = {
    "anthropic": ("signature", gh("anomalyco/opencode#3077", "run-llama/llama_index#18834")),
    "openai": ("encrypted", gh("alibaba/open-code-review#812", "zendev-sh/goai#134")),
    "gemini": ("signature", gh("thClaws/thClaws#65", "nanbingxyz/5ire#405")),
    "bedrock": ("signature", gh("spring-projects/spring-ai#6413", "RooCodeInc/Roo-Code#11238")),
    "openrouter": ("signature", gh("agno-agi/agno#8794", "earendil-works/pi#8605")),
    "kimi": ("text", gh("MoonshotAI/kimi-agent-sdk#169", "agentscope-ai/QwenPaw#433")),
    "deepseek": ("text", gh("anomalyco/opencode#24135", "danny-avila/LibreChat#12836")),
    "zai": ("text", gh("duolahypercho/codex-router#315", "No-Compromise-AI/glm-mcp#60")),
    "vllm": ("text", gh("vllm-project/vllm#38488", "vllm-project/vllm#27755")),
    "llama.cpp": ("text", gh("pydantic/pydantic-ai#3867", "earendil-works/pi#3479")),
    "mistral": ("text", gh("simonw/llm-mistral#38", "BerriAI/litellm#16272")),
    "compatible": ("text", gh("nbonamy/multi-llm-ts#25", "langgenius/dify-official-plugins#2740")),
}
RESUMED = {
    "gemini": gh("agentscope-ai/agentscope-java#2910", "rekursiv-ai/sagent#211"),
    "openai": gh("agentscope-ai/agentscope#2420", "xorbitsai/xagent#1805"),
}
STORED = gh("NousResearch/hermes-agent#18414", "ThinkInAIXYZ/deepchat#1543")
PARALLEL = {
    "gemini": gh("googleapis/js-genai#1275", "pipecat-ai/pipecat#3290", "google/adk-go#764"),
    "openai": gh("openai/openai-agents-js#326", "vercel/ai#8379"),
}
MERGED = gh("apache/maka#1976", "huggingface/smolagents#1569")
CHAINED = gh("BerriAI/litellm#23047", "NousResearch/hermes-agent#35975")


def tool_round(name: str, way: str) -> Json:
    kind, sources = ROUND[name]
    line = Line(ENDPOINTS[name])
    line.turn()
    line.answer(think("one"), call(1))
    line.answer(think("two", SECOND), Say(DONE))
    line.turn()
    line.answer(Say(CLEAR))
    title = "A thought goes back with its tool call, and in the next turn where that is asked for"
    steps = [ask(), ask(AGAIN)]
    return case(f"{name}/tool-round/{way}", kind, title, sources, way, {"a": line}, steps)


def two_rounds(name: str, way: str) -> Json:
    line = Line(ENDPOINTS[name])
    line.turn()
    line.answer(think("one"), call(1))
    line.answer(think("two", SECOND), call(2, "wall"))
    line.answer(think("three", "Enough."), Say(DONE))
    title = "Each round of a tool chain keeps its own thought"
    sources = CHAINED if ENDPOINTS[name].api in ("messages", "converse") else ROUND[name][1]
    return case(f"{name}/two-rounds/{way}", "order", title, sources, way, {"a": line}, [ask()])


def parallel(name: str, way: str) -> Json:
    line = Line(ENDPOINTS[name])
    line.turn()
    line.answer(think("one"), call(1), call(2, "wall", signed=False))
    line.answer(think("two", SECOND), Say(DONE))
    line.turn()
    line.answer(Say(CLEAR))
    title = "Two calls after one thought stay one answer"
    steps = [ask(), ask(AGAIN)]
    sources = PARALLEL.get(name, MERGED)
    return case(f"{name}/parallel/{way}", "parallel", title, sources, way, {"a": line}, steps)


def resumed(name: str, way: str) -> Json:
    line = Line(ENDPOINTS[name])
    line.turn()
    line.answer(think("one"), call(1))
    line.answer(think("two", SECOND), Say(DONE))
    line.turn()
    line.answer(think("three", "The window now."), call(2, "window"))
    line.answer(Say(CLEAR))
    title = "A conversation that was stored and loaded sends what it would have sent"
    steps = [ask(), {"resume": True}, ask(AGAIN)]
    sources = RESUMED.get(name, STORED)
    return case(f"{name}/resume/{way}", "resume", title, sources, way, {"a": line}, steps)


def compacted(name: str, way: str) -> Json:
    line = Line(replace(ENDPOINTS[name], keeps=False))
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
    sources = gh("mensfeld/pocketrb#5", "shareAI-lab/learn-claude-code#324")
    return case(f"{name}/compaction/{way}", "compaction", title, sources, way, {"a": line}, steps)


# Redacted, empty, interleaved

REDACTED = gh("zendev-sh/goai#93", "maximhq/bifrost#5093", "BerriAI/litellm#9058")
EMPTY = {
    "anthropic": gh("caozhiyuan/copilot-api#350", "BerriAI/litellm#41362"),
    "openai": gh("newo-ether/Agora#141", "microsoft/agent-framework-go#784"),
    "gemini": gh("MayDay-wpf/snow-cli#104", "Wei-Shaw/claude-relay-service#967"),
}
INTERLEAVED = {
    "anthropic": gh("BerriAI/litellm#23047", "anthropics/claude-code#20705"),
    "bedrock": gh("NousResearch/hermes-agent#36260"),
    "openai": gh("vercel/ai#7099", "openai/openai-agents-js#326"),
    "gemini": gh("anomalyco/opencode#43984", "aaif-goose/goose#6708"),
}


def redacted(name: str, way: str) -> Json:
    line = Line(ENDPOINTS[name])
    line.turn()
    line.answer(think("one", "", hidden=True), call(1))
    line.answer(think("two", SECOND), Say(DONE))
    line.turn()
    line.answer(Say(CLEAR))
    title = "A thought without text goes back before its tool call"
    steps = [ask(), ask(AGAIN)]
    return case(f"{name}/redacted/{way}", "redacted", title, REDACTED, way, {"a": line}, steps)


def redacted_between(name: str, way: str) -> Json:
    line = Line(ENDPOINTS[name])
    line.turn()
    line.answer(think("one"), think("two", "", hidden=True), think("three", SECOND), call(1))
    line.answer(Say(DONE))
    title = "A redacted thought stays between the two that are shown"
    sources = gh("anomalyco/opencode#38614", "pacifio/cersei#36")
    steps = [ask()]
    which = f"{name}/redacted-between/{way}"
    return case(which, "redacted", title, sources, way, {"a": line}, steps)


def signed_without_text(name: str, way: str) -> Json:
    line = Line(ENDPOINTS[name])
    line.turn()
    parts = [] if name == "gemini" else [think("one", "")]
    line.answer(*parts, call(1))
    line.answer(Say(DONE))
    title = "A carrier without readable text is a whole thought"
    which = f"{name}/no-text/{way}"
    return case(which, "empty", title, EMPTY[name], way, {"a": line}, [ask()])


def empty_field(name: str, way: str) -> Json:
    line = Line(ENDPOINTS[name])
    line.turn()
    line.answer(Think(""), call(1))
    line.answer(Think("Now I know."), Say(DONE))
    title = "An empty reasoning field goes back as a field, not as a missing one"
    sources = gh("MoonshotAI/kimi-cli#2446", "BerriAI/litellm#37270", "HKUDS/nanobot#4227")
    path = "messages[role=assistant].reasoning_content"
    line.checks[1].append({"anyOf": [{"path": path, "has": text} for text in ("", " ")]})
    which = f"{name}/empty-field/{way}"
    return case(which, "empty", title, sources, way, {"a": line}, [ask()], captured=True)


def blank_thought(name: str, way: str) -> Json:
    line = Line(ENDPOINTS[name])
    line.turn()
    line.answer(think("one", "\n\n"), call(1))
    line.answer(Say(DONE))
    line.replies[0]["shows"].pop("thoughts")
    title = "A thought of white space is kept to the byte"
    sources = gh("diegosouzapw/OmniRoute#9170", "vybestack/llxprt-code#2555")
    return case(f"{name}/blank/{way}", "empty", title, sources, way, {"a": line}, [ask()])


def interleaved(name: str, way: str) -> Json:
    line = Line(ENDPOINTS[name])
    line.turn()
    line.answer(
        think("one"),
        Say("Let me see."),
        think("two", SECOND),
        call(1),
        call(2, "wall", signed=False),
    )
    line.answer(think("three", "Enough."), Say(DONE))
    line.turn()
    line.answer(Say(CLEAR))
    title = "Thought, text, thought, calls: everything stays in its place"
    steps = [ask(), ask(AGAIN)]
    which = f"{name}/interleaved/{way}"
    return case(which, "interleaved", title, INTERLEAVED[name], way, {"a": line}, steps)


def signed_text(way: str) -> Json:
    line = Line(ENDPOINTS["gemini"])
    line.turn()
    line.answer(think("one"), Say(DONE, carrier("text")))
    line.turn()
    line.answer(Say(CLEAR))
    title = "A signature on a text part goes back on that part"
    sources = gh("anomalyco/opencode#43984", "theopenco/llmgateway#3945")
    path = "contents[*].parts[*].thoughtSignature"
    line.checks[1] = [{"path": path, "order": [carrier("text")]}]
    which = f"gemini/signed-text/{way}"
    return case(which, "signature", title, sources, way, {"a": line}, [ask(), ask(AGAIN)])


# The field of unknown servers

FIELDS = {
    "reasoning_content": gh("langgenius/dify-official-plugins#2740", "BerriAI/litellm#26501"),
    "reasoning": gh("vllm-project/vllm#27755", "pydantic/pydantic-ai#4009"),
    "reasoning_text": gh("anomalyco/opencode#4468", "router-for-me/CLIProxyAPI#3587"),
    "details": gh("lobehub/lobehub#10255", "open-webui/open-webui#26404"),
}


def observed_field(name: str, way: str) -> Json:
    spec = replace(ENDPOINTS["compatible"], field=name)
    line = Line(spec)
    line.turn()
    line.answer(think("one"), call(1))
    line.answer(think("two", SECOND), Say(DONE))
    shown = name.replace("details", "reasoning_details")
    title = f"An unknown server that sends {shown} gets {shown} back"
    which = f"compatible/field-{name}/{way}"
    return case(which, "field", title, FIELDS[name], way, {"a": line}, [ask()])


def signed_calls(way: str) -> Json:
    line = Line(
        replace(ENDPOINTS["compatible"], field="extra-content", model="gemini-3-pro-preview")
    )
    line.turn()
    line.answer(call(1), call(2, "wall", signed=False))
    line.answer(Say(DONE))
    title = "A signature inside a Chat Completions tool call goes back inside it"
    sources = gh("earendil-works/pi#3234", "crmne/ruby_llm#588", "noho/dayu-agent#45")
    which = f"compatible/signed-calls/{way}"
    return case(which, "field", title, sources, way, {"a": line}, [ask()], captured=True)


def unlisted(name: str, model: str, way: str) -> Json:
    line = Line(replace(ENDPOINTS[name], model=model))
    line.turn()
    line.answer(think("one"), call(1))
    line.answer(think("two", SECOND), Say(DONE))
    title = "A model that no catalog lists keeps its reasoning in a tool chain"
    sources = gh("anomalyco/opencode#22863", "badlogic/pi-mono#8590")
    return case(f"{name}/unlisted/{way}", "unlisted", title, sources, way, {"a": line}, [ask()])


def mirrored(way: str) -> Json:
    """One text in two fields of the same delta."""
    line = Line(ENDPOINTS["compatible"])
    line.turn()
    line.answer(think("one"), call(1))
    _mirror(line.replies[0])
    line.answer(Say(DONE))
    path = "messages[role=assistant].(reasoning_content|reasoning)"
    twice = [{"path": path, "has": THOUGHT}, {"path": path, "lacks": THOUGHT + THOUGHT}]
    line.checks[1] = twice
    title = "A thought in two fields at once is one thought"
    sources = gh("MoonshotAI/kimi-code#3928", "Effect-TS/effect#6059")
    which = f"compatible/mirrored/{way}"
    return case(which, "mirrored", title, sources, way, {"a": line}, [ask()], captured=True)


def _mirror(reply: Json) -> None:
    from json import loads

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
    line = Line(ENDPOINTS[name])
    line.turn()
    line.answer(think("one"), think("two", SECOND), Say(DONE))
    title = "reasoning and reasoning_details carry one thought, not two"
    sources = gh("Effect-TS/effect#6060", "jeremychone/rust-genai#298")
    which = f"{name}/mirrored/{way}"
    return case(which, "mirrored", title, sources, way, {"a": line}, [ask()], captured=True)


# Tags

TAGGED = gh("diegosouzapw/OmniRoute#10441", "MihaiBuilds/memory-vault#152")
TAGS: dict[str, tuple[str, Sequence[str], list[str], str]] = {
    # name: deltas of content, sources, thoughts, answer
    "whole": ("<think>|secret thought|</think>|ANSWER", TAGGED, ["secret thought"], "ANSWER"),
    "close-split": (
        "<think>secret thought</thi|nk>ANSWER",
        gh("diegosouzapw/OmniRoute#10441", "LibreChat-AI/agents#40"),
        ["secret thought"],
        "ANSWER",
    ),
    "open-split": (
        "<|think>secret thought</think>ANSWER",
        gh("MihaiBuilds/memory-vault#152", "linshenkx/prompt-optimizer#348"),
        ["secret thought"],
        "ANSWER",
    ),
    "characters": (
        "|".join("<think>secret thought</think>ANSWER"),
        TAGGED,
        ["secret thought"],
        "ANSWER",
    ),
    "newline-before": (
        "\n|<think>secret thought</think>ANSWER",
        gh("nesquena/hermes-webui#327"),
        ["secret thought"],
        "ANSWER",
    ),
    "not-a-tag": (
        "if a < b use <thead> and <think-tank> |<thi",
        gh("MihaiBuilds/memory-vault#152", "QwenLM/qwen-code#6777"),
        [],
        "if a < b use <thead> and <think-tank> <thi",
    ),
    "quoted": (
        "Use `<think>` to start| and `</think>` to end it.",
        gh("nesquena/hermes-webui#2152", "HKUDS/nanobot#2623", "lobehub/lobehub#12479"),
        [],
        "Use `<think>` to start and `</think>` to end it.",
    ),
    "quoted-after": (
        "<think>short plan</think>|Write <think> and </think> around it.",
        gh("QuantumNous/new-api#802", "larksuite/openclaw-lark#488"),
        ["short plan"],
        "Write <think> and </think> around it.",
    ),
    "call-drafted": (
        '<think>maybe <tool_call>{"name":"rm"}</tool_call> no</think>|ANSWER',
        gh("lmstudio-ai/lmstudio-bug-tracker#1592", "PrimeIntellect-ai/renderers#78"),
        ['maybe <tool_call>{"name":"rm"}</tool_call> no'],
        "ANSWER",
    ),
    "leading-newlines": (
        "<think>plan it</think>|\n\n```py\nx\n```",
        gh("duolahypercho/codex-router#729"),
        ["plan it"],
        "```py\nx\n```",
    ),
}


def tagged(name: str, way: str) -> Json:
    told, sources, thoughts, text = TAGS[name]
    pieces = told.split("|")
    line = Line(replace(ENDPOINTS["compatible"], field="tags"))
    line.turn()
    line.raw(_chat_reply([{"content": piece} for piece in pieces], text, thoughts))
    title = "Thoughts in <think> tags, and answers that only look like it"
    which = f"compatible/tags-{name}/{way}"
    return case(which, "tags", title, sources, way, {"a": line}, [ask()])


def _chat_reply(
    deltas: Sequence[Json],
    text: str | None,
    thoughts: Sequence[str] = (),
    *,
    finish: str | None = "stop",
    complete: bool = True,
    message: Json | None = None,
) -> Json:
    """A Chat Completions answer from its deltas."""
    spec = ENDPOINTS["compatible"]
    whole: Json = {"role": "assistant", "content": ""}
    for delta in deltas:
        for key, value in delta.items():
            whole[key] = whole.get(key, "") + (value or "")
    usage = {"prompt_tokens": 40, "completion_tokens": 60, "total_tokens": 100}
    about = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1760000000}
    choice = {"index": 0, "message": message or whole, "finish_reason": finish}
    document = {**about, "model": spec.model, "choices": [choice], "usage": usage}
    shows: Json = {"text": text, "thoughts": [*thoughts]}
    if not complete:
        shows["complete"] = False
    stream = chat_stream(spec.model, deltas, finish).decode()
    return {"shows": shows, "document": document, "stream": stream}


# Framing

FRAMES: dict[str, tuple[str, list[str]]] = {
    "utf8-cut": (
        "Characters that are split across packets arrive whole",
        gh("musistudio/claude-code-router#1672", "librefang/librefang#3448"),
    ),
    "byte-by-byte": (
        "A stream that arrives byte by byte reads the same",
        gh("danielmiessler/Fabric#2203", "mrpulor-gh/nuphus#41"),
    ),
    "crlf": (
        "Lines may end in CR LF",
        gh("griffinwork40/agent-afk#810", "niclas-lindgren/pi-next#64"),
    ),
    "comments": (
        "Comments between events are no data",
        gh("brainlid/langchain#259", "deepnoodle-ai/dive#206", "tmc/langchaingo#942"),
    ),
    "no-space": (
        "The space after the colon is optional",
        gh("mnfst/llm-gateway#2053", "brainlid/langchain#569"),
    ),
}
UNICODE = "那个门 🌍 — é: naïve?"


def framed(name: str, frame: str) -> Json:
    line = Line(ENDPOINTS[name])
    line.turn()
    line.answer(think("one", UNICODE), call(1))
    line.answer(think("two", SECOND), Say("那是一扇门。🌍"))
    for reply in line.replies:
        _reframe(reply, frame)
    title, sources = FRAMES[frame]
    which = f"{name}/{frame}/streaming"
    return case(which, "framing", title, sources, "streaming", {"a": line}, [ask()])


def _reframe(reply: Json, frame: str) -> None:
    stream: str = reply["stream"]
    if frame == "crlf":
        stream = stream.replace("\n", "\r\n")
    elif frame == "comments":
        stream = ": PROCESSING\n\n" + stream.replace("\n\n", "\n\n: x-latency=337\n\n")
    elif frame == "no-space":
        stream = stream.replace("data: ", "data:").replace("event: ", "event:")
    reply["stream"] = stream
    data = stream.encode()
    if frame == "byte-by-byte":
        reply["every"] = 1
    elif frame == "utf8-cut":
        reply["cuts"] = [at for at in range(1, len(data)) if data[at] & 0xC0 == 0x80]


DELTAS: dict[str, tuple[str, list[str], list[Json], list[str], str]] = {
    "end-and-start": (
        "The end of a thought and the start of the answer share a delta",
        gh("BerriAI/litellm#27492", "vllm-project/vllm#42691"),
        [{"reasoning": "So it is"}, {"reasoning": " 4", "content": "The"}, {"content": " answer"}],
        ["So it is 4"],
        "The answer",
    ),
    "white-space": (
        "Deltas of white space are part of the thought",
        gh("diegosouzapw/OmniRoute#9170", "griffinwork40/agent-afk#810"),
        [
            {"reasoning_content": piece}
            for piece in ("Hi", " ", "\n\n", "again", "\r", "\n", "and more")
        ]
        + [{"content": "Done"}],
        ["Hi \n\nagain\r\nand more"],
        "Done",
    ),
    "late-thought": (
        "A thought that comes after text is still a thought",
        gh("bytedance/deer-flow#4576", "twentyhq/twenty#22386"),
        [{"content": "First. "}, {"reasoning_content": "wait, check"}, {"content": "Second."}],
        ["wait, check"],
        "First. Second.",
    ),
    "nulls": (
        "Fields that are null in every delta are no text",
        gh("vllm-project/vllm#33402", "Datus-ai/Datus-agent#570"),
        [
            {"reasoning_content": "thought", "content": None},
            {"reasoning_content": None, "content": "Text"},
        ],
        ["thought"],
        "Text",
    ),
}


def delta_case(name: str) -> Json:
    title, sources, deltas, thoughts, text = DELTAS[name]
    line = Line(ENDPOINTS["compatible"])
    line.turn()
    line.raw(_chat_reply(deltas, text, thoughts))
    which = f"compatible/{name}/streaming"
    steps = [ask()]
    return case(which, "framing", title, sources, "streaming", {"a": line}, steps, captured=True)


# Broken answers

BROKEN = gh("ENTERPILOT/GoModel#1017", "can1357/oh-my-pi#9433", "openclaw/openclaw#84430")


def broken(name: str, where: str) -> Json:
    """The connection breaks inside a thought, inside a call, or an error comes inside a stream."""
    spec = ENDPOINTS[name]
    line = Line(spec)
    line.turn()
    told = spec.write([think("one"), call(1)], 1)
    line.number = 1
    stream = _broken_stream(told.stream.decode(), where, spec)
    shows = {"text": "", "complete": False, "thoughts": [THOUGHT]}
    reply: Json = {"shows": shows, "stream": stream, "broken": where != "error"}
    if where == "call":
        reply["delivered"] = spec.write([think("one")], 1).document
    line.expect()
    line.replies.append(reply)
    line.turn()
    line.turns[-2] = []
    line.answer(think("two", SECOND), Say(DONE), checks=[{"lacks": carrier("never")}])
    line.checks[1] = unseen(spec, THOUGHT[:18])
    title = {
        "thought": "A connection that breaks inside a thought is reported, and the next turn works",
        "call": "A connection that breaks inside a tool call is reported, and the next turn works",
        "error": "An error inside a stream is reported, and the next turn works",
    }[where]
    which = f"{name}/broken-{where}/streaming"
    steps = [ask(), ask(AGAIN)]
    return case(which, "cut", title, BROKEN, "streaming", {"a": line}, steps)


def visible(spec: Spec) -> Sequence[str]:
    """Where answers are in a request: as a text, or as the texts of a list."""
    if spec.api == "gemini":
        return ("contents[role=model].parts[thought!=True].text",)
    said = "input[role=assistant]" if spec.api == "responses" else "messages[role=assistant]"
    return (f"{said}.content", f"{said}.content[type!=thinking].text")


def unseen(spec: Spec, text: str) -> list[Json]:
    """No answer in a request contains this."""
    return [{"path": path, "lacks": text} for path in visible(spec)]


def _broken_stream(stream: str, where: str, spec: Spec) -> str:
    events = stream.split("\n\n")
    if where == "call":
        marks = {"chat": '"arguments":', "messages": "partial_json", "gemini": "functionCall"}
        mark = marks.get(spec.api, "arguments.delta")
        at = next(i for i, event in enumerate(events) if mark in event) + (spec.api != "gemini")
        return "\n\n".join(events[:at]) + "\n\n"
    at = {"gemini": 2, "responses": 5}.get(spec.api, 3)
    start = "\n\n".join(events[:at]) + "\n\n"
    return start if where == "thought" else start + _error_event(spec)


def _error_event(spec: Spec) -> str:
    error = {"type": "overloaded_error", "message": "Overloaded"}
    match spec.api:
        case "messages":
            return sse([{"type": "error", "error": error}], named=True).decode()
        case "responses":
            value = {"type": "error", "code": "server_error", "message": "Overloaded"}
            return sse([{**value, "param": None, "sequence_number": 9}], named=True).decode()
        case "gemini":
            status = {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}
            return sse([{"error": status}]).decode()
    return sse([{"error": {"message": "Overloaded", "code": 503}}, "[DONE]"]).decode()


def cut_off(name: str, way: str) -> Json:
    """The limit is reached inside the thought."""
    spec = ENDPOINTS[name]
    limit = {"chat": "length", "messages": "max_tokens", "gemini": "MAX_TOKENS"}[spec.api]
    line = Line(spec)
    line.turn()
    line.answer(think("one"), finish=limit)
    line.replies[0]["shows"]["complete"] = False
    line.turn()
    line.turns[0] = []
    line.answer(Say(DONE))
    line.checks[1] = unseen(spec, THOUGHT)
    title = "An answer that ends inside its thought is reported as cut, and the next turn works"
    sources = gh("jundot/omlx#2457", "antirez/ds4#509", "raullenchai/Rapid-MLX#825")
    which = f"{name}/limit/{way}"
    return case(which, "cut", title, sources, way, {"a": line}, [ask(), ask(AGAIN)])


# Switching models

SWITCHED = gh("openclaw/openclaw#107221", "ding113/claude-code-hub#518", "bigduu/Bamboo-agent#520")


def switched(first: str, other: str, way: str) -> Json:
    """A tool chain at the first, a turn at the other, and back."""
    a, b = Line(ENDPOINTS[first]), Line(ENDPOINTS[other])
    a.turn()
    a.answer(think("one"), call(1))
    a.answer(think("two", SECOND), Say(DONE))
    b.turn()
    foreign = [*unseen(b.spec, THOUGHT), *unseen(b.spec, SECOND), {"lacks": carrier("one")}]
    b.answer(think("three", "Another mind."), Say(CLEAR), checks=foreign)
    a.turn()
    a.answer(Say("Yes."), checks=[*unseen(a.spec, "Another mind."), {"lacks": carrier("three")}])
    title = "No model reads another's thoughts as answers, and the first gets its own back"
    which = f"{first}/switch-{other}/{way}"
    steps = [ask(), ask(AGAIN, "b"), ask("Is that all?", "a")]
    return case(which, "switch", title, SWITCHED, way, {"a": a, "b": b}, steps)


# Leaks and rules


def thought_only(name: str, way: str) -> Json:
    """The model thinks and says nothing; the next turn must still be valid."""
    spec = ENDPOINTS[name]
    line = Line(spec)
    line.turn()
    line.answer(think("one"))
    line.turn()
    line.turns[0] = []
    line.answer(Say(DONE))
    line.checks[1] = unseen(spec, THOUGHT)
    line.replies[0]["shows"] |= {"text": "", "mayFail": True}
    title = "A thought without an answer is not shown as the answer, and the next turn is valid"
    sources = gh("tailcallhq/forgecode#2107", "earendil-works/pi#8115", "anomalyco/opencode#37735")
    which = f"{name}/thought-only/{way}"
    return case(which, "leak", title, sources, way, {"a": line}, [ask(), ask(AGAIN)])


def json_in_thought(way: str) -> Json:
    line = Line(ENDPOINTS["compatible"])
    line.turn()
    text = '{"joke":"no"}'
    line.raw(_chat_reply([{"reasoning_content": text}], "", [text]))
    line.replies[0]["shows"]["mayFail"] = True
    title = "JSON in the reasoning field is not promoted to the answer"
    sources = gh("lmstudio-ai/lmstudio-bug-tracker#1698", "vllm-project/vllm#48863")
    which = f"compatible/json-thought/{way}"
    return case(which, "leak", title, sources, way, {"a": line}, [ask()], captured=True)


def tag_in_thought(name: str, way: str) -> Json:
    line = Line(ENDPOINTS[name])
    line.turn()
    line.answer(think("one", "End it with </think> then <answer>."), call(1))
    line.answer(Say(DONE))
    title = "A thought that mentions tags stays a thought, to the byte"
    sources = gh("pydantic/pydantic-ai#5869", "lmstudio-ai/lmstudio-bug-tracker#1592")
    return case(f"{name}/tag-in-thought/{way}", "leak", title, sources, way, {"a": line}, [ask()])


def summaries(way: str) -> Json:
    line = Line(ENDPOINTS["openai"])
    line.turn()
    line.answer(think("one", "**Planning**\n\n**Verifying**"), call(1), summaries=2)
    line.replies[0]["shows"]["thoughts"] = ["**Planning**", "**Verifying**"]
    line.answer(Say(DONE))
    title = "Two parts of a summary stay two"
    sources = gh("zendev-sh/goai#125", "vercel/ai#6742", "diegosouzapw/OmniRoute#9500")
    path = "input[type=reasoning].summary[*].text"
    stored = {"path": "input[type=reasoning].id", "has": "rs_10"}
    kept = {"path": path, "order": ["**Planning**", "**Verifying**"]}
    line.checks[1].append({"anyOf": [kept, stored]})
    which = f"openai/summaries/{way}"
    return case(which, "text", title, sources, way, {"a": line}, [ask()])


def raw_reasoning(way: str) -> Json:
    """A compatible server of the Responses API that shows its reasoning."""
    spec = replace(ENDPOINTS["openai"], model="gpt-oss-120b")
    line = Line(spec)
    line.turn()
    line.answer(think("one"), Say(DONE), raw=True)
    title = "Raw reasoning of the Responses API is read"
    sources = gh("openai/openai-python#3397", "openai/codex#40553", "openai/openai-dotnet#748")
    return case(f"openai/raw/{way}", "text", title, sources, way, {"a": line}, [ask()])


def foreign_field(way: str) -> Json:
    """Mistral refuses a field that others require."""
    a, b = Line(ENDPOINTS["kimi"]), Line(ENDPOINTS["mistral"])
    a.turn()
    a.answer(think("one"), call(1))
    a.answer(Say(DONE))
    b.turn()
    b.answer(Say(CLEAR), checks=unseen(b.spec, THOUGHT))
    title = "A field that one endpoint requires is not sent to one that rejects it"
    sources = gh("BerriAI/litellm#30835", "OpenMinis/OpenMinis#87", "agentjido/req_llm#772")
    which = f"mistral/foreign-field/{way}"
    steps = [ask(), ask(AGAIN, "b")]
    return case(which, "rules", title, sources, way, {"a": a, "b": b}, steps)


def unthinking_turn(name: str, way: str) -> Json:
    """An answer without a thought in the middle of a chain."""
    line = Line(ENDPOINTS[name])
    line.turn()
    line.answer(think("one"), call(1))
    line.answer(*([Think("")] if name == "deepseek" else []), call(2, "wall"))
    line.answer(think("two", SECOND), Say(DONE))
    title = "A call without a thought in the chain does not break the request"
    sources = gh("pydantic/pydantic-ai#8525", "Gitlawb/openclaude#878")
    return case(f"{name}/unthinking/{way}", "rules", title, sources, way, {"a": line}, [ask()])


def bound(way: str) -> Json:
    """A newer Claude binds thoughts to what came before them."""
    spec = replace(ENDPOINTS["anthropic"], model="claude-opus-5-5", rules="anthropic-bound")
    line = Line(spec)
    line.turn()
    line.answer(think("one"), call(1))
    line.answer(think("two", SECOND), Say(DONE))
    line.turn()
    line.answer(think("three", "The window now."), call(2, "window"))
    line.answer(Say(CLEAR))
    title = "Thoughts that are bound to what came before them stay valid"
    sources = gh("openclaw/openclaw#96272", "anthropics/claude-code#63361")
    steps = [ask(), ask(AGAIN)]
    return case(f"anthropic/bound/{way}", "rules", title, sources, way, {"a": line}, steps)


# Counting

COUNTED = {
    "openai": gh("junhoyeo/tokscale#1142", "kyegomez/swarms#2190"),
    "anthropic": gh("anthropics/anthropic-sdk-python#1017", "microsoft/vscode#319185"),
    "gemini": gh("theopenco/llmgateway#3435", "latitude-dev/latitude-llm#4051"),
    "kimi": gh("vllm-project/vllm#14472", "sgl-project/sglang#15660"),
    "deepseek": gh("anomalyco/opencode#17566", "anomalyco/opencode#24268"),
    "openrouter": gh("hugalafutro/model-hotel#991", "getagentseal/codeburn#1079"),
}


def counted(name: str, way: str) -> Json:
    line = Line(ENDPOINTS[name])
    line.turn()
    line.answer(think("one"), Say(DONE), tokens=41)
    title = "Reasoning tokens are reported as counted by the endpoint"
    which = f"{name}/counted/{way}"
    return case(which, "counted", title, COUNTED[name], way, {"a": line}, [ask()])


def usage_shapes(shape: str) -> Json:
    """Where a stream tells its usage."""
    spec = ENDPOINTS["compatible"]
    line = Line(spec)
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
    sources = gh("router-for-me/CLIProxyAPI#3076", "ARahim3/mlx-dspark#37")
    which = f"compatible/usage-{shape}/streaming"
    steps = [ask()]
    return case(which, "counted", title, sources, "streaming", {"a": line}, steps, captured=True)


UNLISTED = {
    "anthropic": "claude-nova-9",
    "openai": "gpt-9-nova",
    "gemini": "gemini-9-pro",
    "kimi": "kimi-k9-preview",
    "deepseek": "deepseek-v9",
    "openrouter": "anthropic/claude-nova-9",
}
SWITCHES = (
    ("anthropic", "openai"),
    ("anthropic", "gemini"),
    ("anthropic", "kimi"),
    ("openai", "anthropic"),
    ("openai", "gemini"),
    ("gemini", "anthropic"),
    ("gemini", "deepseek"),
    ("kimi", "anthropic"),
    ("kimi", "openai"),
    ("deepseek", "gemini"),
    ("deepseek", "kimi"),
    ("openrouter", "openai"),
)
MAIN = ("anthropic", "openai", "gemini", "kimi", "deepseek", "openrouter")
_Scene = Callable[[str, str], Json]
BOTH: Mapping[_Scene, Sequence[str]] = {
    tool_round: tuple(ENDPOINTS),
    redacted: ("anthropic", "bedrock", "openrouter", "openai"),
    signed_without_text: ("anthropic", "openai", "gemini"),
    empty_field: ("kimi", "deepseek"),
    observed_field: tuple(FIELDS),
    interleaved: tuple(INTERLEAVED),
    counted: tuple(COUNTED),
}
"""Scenes that are played with a client's blocking and with its streaming call."""
STREAMED: Mapping[_Scene, Sequence[str]] = {
    two_rounds: tuple(ENDPOINTS),
    parallel: tuple(ENDPOINTS),
    resumed: tuple(ENDPOINTS),
    compacted: ("anthropic", "openai", "gemini", "kimi", "deepseek", "openrouter", "vllm"),
    redacted_between: ("anthropic", "openrouter"),
    blank_thought: ("anthropic", "kimi", "deepseek"),
    mirrored_details: ("openrouter",),
    tagged: tuple(TAGS),
    tag_in_thought: ("anthropic", "kimi", "openrouter", "vllm"),
    thought_only: ("anthropic", "kimi", "deepseek", "compatible"),
    unthinking_turn: ("deepseek", "gemini", "anthropic"),
    cut_off: ("anthropic", "gemini", "kimi", "compatible"),
}


def all_cases() -> Iterator[Json]:
    """Every case, in a fixed order."""
    for scene, names in BOTH.items():
        yield from (scene(name, way) for name in names for way in CALLS)
    for scene, names in STREAMED.items():
        yield from (scene(name, "streaming") for name in names)
    yield from (unlisted(name, model, "streaming") for name, model in UNLISTED.items())
    yield from (switched(first, other, "streaming") for first, other in SWITCHES)
    yield from (framed(name, frame) for name in MAIN[:4] for frame in FRAMES)
    yield from (delta_case(name) for name in DELTAS)
    yield from (broken(name, where) for name in MAIN[:4] for where in ("thought", "call", "error"))
    yield from (usage_shapes(shape) for shape in ("zeros-first", "with-finish"))
    single = (signed_text, signed_calls, mirrored, summaries, raw_reasoning, json_in_thought)
    yield from (scene(way) for scene in (*single, foreign_field, bound) for way in CALLS)
