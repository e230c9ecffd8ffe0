"""Scenes of streams: tags, framing, odd deltas, broken and truncated answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fidelity.endpoints import ENDPOINTS, Spec
from fidelity.scene import AGAIN, DONE, SECOND, THOUGHT, Line, ask, call, case, gh, think, unseen
from fidelity.wire import GOOGLE, Json, Say, chat_stream, sse

__all__ = [
    "DELTAS",
    "FRAMES",
    "TAGS",
    "broken",
    "cut_off",
    "delta_case",
    "framed",
    "json_in_thought",
    "tagged",
]

TAGGED = gh("diegosouzapw/OmniRoute#10441", "MihaiBuilds/memory-vault#152")

TAGS: dict[str, tuple[str, Sequence[str], list[str], str]] = {
    # name: deltas of content, sources, thoughts, answer
    "whole": ("<think>|secret thought|</think>|ANSWER", TAGGED, ["secret thought"], "ANSWER"),
    "close-split": (
        "<think>secret thought</thi|nk>ANSWER",
        gh("MihaiBuilds/memory-vault#98", "MihaiBuilds/memory-vault#152"),
        ["secret thought"],
        "ANSWER",
    ),
    "open-split": (
        "<|think>secret thought</think>ANSWER",
        gh("diegosouzapw/OmniRoute#10441", "linshenkx/prompt-optimizer#348"),
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
        gh("nesquena/hermes-webui#2152", "lobehub/lobehub#6068"),
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
        gh("vllm-project/vllm#51201"),
        ["plan it"],
        "```py\nx\n```",
    ),
}


def tagged(name: str, way: str) -> Json:
    which = f"compatible/tags-{name}/{way}"
    told, sources, thoughts, text = TAGS[name]
    pieces = told.split("|")
    line = Line(replace(ENDPOINTS["compatible"], field="tags"), which)
    line.turn()
    line.raw(_chat_reply([{"content": piece} for piece in pieces], text, thoughts))
    title = "Thoughts in <think> tags, and answers that only look like it"
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


FRAMES: dict[str, tuple[str, list[str]]] = {
    "utf8-cut": (
        "Characters that are split across packets arrive whole",
        gh(
            "musistudio/claude-code-router#1672", "librefang/librefang#3448", "mrpulor-gh/nuphus#41"
        ),
    ),
    "byte-by-byte": (
        "A stream that arrives byte by byte reads the same",
        gh("danielmiessler/Fabric#2203", "graniet/llm#90"),
    ),
    "crlf": (
        "Lines may end in CR LF",
        gh("farion1231/cc-switch#1870", "nyroway/nyro#265"),
    ),
    "comments": (
        "Comments between events are no data",
        gh("googleapis/go-genai#898", "continuedev/continue#13187", "tmc/langchaingo#942"),
    ),
    "no-space": (
        "The space after the colon is optional",
        gh("davidmigloz/langchain_dart#778", "SamSaffron/term-llm#487"),
    ),
}

UNICODE = "那个门 🌍 — é: naïve?"


def framed(name: str, frame: str) -> Json:
    which = f"{name}/{frame}/streaming"
    line = Line(ENDPOINTS[name], which)
    line.turn()
    line.answer(think("one", UNICODE), call(1))
    line.answer(think("two", SECOND), Say("那是一扇门。🌍"))
    for reply in line.replies:
        _reframe(reply, frame)
    title, sources = FRAMES[frame]
    return case(which, "framing", title, sources, "streaming", {"a": line}, [ask()])


def _reframe(reply: Json, frame: str) -> None:
    stream: str = reply["stream"]
    blank = _blank_line(stream)
    if frame == "crlf":
        stream = stream.replace("\r\n", "\n").replace("\n", "\r\n")
    elif frame == "comments":
        stream = f": PROCESSING{blank}" + stream.replace(blank, f"{blank}: x-latency=337{blank}")
    elif frame == "no-space":
        stream = stream.replace("data: ", "data:").replace("event: ", "event:")
    reply["stream"] = stream
    data = stream.encode()
    if frame == "byte-by-byte":
        reply["every"] = 1
    elif frame == "utf8-cut":
        reply["cuts"] = [at for at in range(1, len(data)) if data[at] & 0xC0 == 0x80]


def _blank_line(stream: str) -> str:
    """What ends an event."""
    return "\r\n\r\n" if "\r\n" in stream else "\n\n"


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
        gh("BerriAI/litellm#13834", "NousResearch/hermes-agent#40895"),
        [{"content": "First. "}, {"reasoning_content": "wait, check"}, {"content": "Second."}],
        ["wait, check"],
        "First. Second.",
    ),
    "nulls": (
        "Fields that are null in every delta are no text",
        gh("Oaklight/llm-rosetta#356", "agent0ai/agent-zero#887"),
        [
            {"reasoning_content": "thought", "content": None},
            {"reasoning_content": None, "content": "Text"},
        ],
        ["thought"],
        "Text",
    ),
}


def delta_case(name: str) -> Json:
    which = f"compatible/{name}/streaming"
    title, sources, deltas, thoughts, text = DELTAS[name]
    line = Line(ENDPOINTS["compatible"], which)
    line.turn()
    line.raw(_chat_reply(deltas, text, thoughts))
    steps = [ask()]
    return case(which, "framing", title, sources, "streaming", {"a": line}, steps, captured=True)


BROKEN = gh("openclaw/openclaw#108958", "openclaw/openclaw#149854", "zeroclaw-labs/zeroclaw#8663")


def broken(name: str, where: str) -> Json:
    """The connection breaks inside a thought, inside a call, or an error comes inside a stream."""
    which = f"{name}/broken-{where}/streaming"
    spec = ENDPOINTS[name]
    line = Line(spec, which)
    line.turn()
    line.number += 1
    thought, *called = line.own(think("one"), call(1))
    told = spec.write([thought, *called], line.number)
    stream = _broken_stream(told.stream.decode(), where, spec)
    shows = {"text": "", "complete": False, "thoughts": [THOUGHT]}
    reply: Json = {"shows": shows, "stream": stream, "broken": where != "error"}
    if where == "call":
        reply["delivered"] = spec.write([thought], line.number).document
    line.expect()
    line.replies.append(reply)
    line.turn()
    line.turns[-2] = []
    line.answer(think("two", SECOND), Say(DONE))
    line.checks[1] = unseen(spec, THOUGHT[:18])
    title = {
        "thought": "A connection that breaks inside a thought is reported, and the next turn works",
        "call": "A connection that breaks inside a tool call is reported, and the next turn works",
        "error": "An error inside a stream is reported, and the next turn works",
    }[where]
    steps = [ask(), ask(AGAIN)]
    return case(which, "cut", title, BROKEN, "streaming", {"a": line}, steps)


def _broken_stream(stream: str, where: str, spec: Spec) -> str:
    blank = _blank_line(stream)
    events = stream.split(blank)
    if where == "call":
        marks = {"chat": '"arguments":', "messages": "partial_json", "gemini": "functionCall"}
        mark = marks.get(spec.api, "arguments.delta")
        at = next(i for i, event in enumerate(events) if mark in event) + (spec.api != "gemini")
        return blank.join(events[:at]) + blank
    at = {"gemini": 2, "responses": 5}.get(spec.api, 3)
    start = blank.join(events[:at]) + blank
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
            return sse([{"error": status}], end=GOOGLE).decode()
    return sse([{"error": {"message": "Overloaded", "code": 503}}, "[DONE]"]).decode()


def cut_off(name: str, way: str) -> Json:
    """The limit is reached inside the thought."""
    which = f"{name}/limit/{way}"
    spec = ENDPOINTS[name]
    limit = {"chat": "length", "messages": "max_tokens", "gemini": "MAX_TOKENS"}[spec.api]
    line = Line(spec, which)
    line.turn()
    line.answer(think("one"), finish=limit)
    line.replies[0]["shows"]["complete"] = False
    line.turn()
    line.turns[0] = []
    line.answer(Say(DONE))
    line.checks[1] = unseen(spec, THOUGHT)
    title = "An answer that ends inside its thought is reported as cut, and the next turn works"
    sources = gh("jundot/omlx#2457", "PrimeIntellect-ai/renderers#138", "raullenchai/Rapid-MLX#858")
    return case(which, "cut", title, sources, way, {"a": line}, [ask(), ask(AGAIN)])


def json_in_thought(way: str) -> Json:
    which = f"compatible/json-thought/{way}"
    line = Line(ENDPOINTS["compatible"], which)
    line.turn()
    text = '{"joke":"no"}'
    line.raw(_chat_reply([{"reasoning_content": text}], "", [text]))
    line.replies[0]["shows"]["mayFail"] = True
    title = "JSON in the reasoning field is not promoted to the answer"
    sources = gh("lmstudio-ai/lmstudio-bug-tracker#1698", "vllm-project/vllm#19222")
    return case(which, "leak", title, sources, way, {"a": line}, [ask()], captured=True)
