"""Fixes of the rest of a request: parameters, message fields, streaming, the dialect.

Which part of mull's request contains a rejected parameter is looked up in the request itself, so no
list of parameters is needed here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mull.dialects.extras import extra_names
from mull.dialects.traits import TRAITS
from mull.neutral.parameters import SAMPLING, ParameterName, is_said
from mull.neutral.request import NamedTool
from mull.neutral.thinking import write_thinking
from mull.policy.heal.case import Case, Mend, Mends, keys_of, once, squashed
from mull.policy.heal.lessons import Lesson
from mull.policy.heal.plan import (
    drop_budget,
    drop_effort,
    drop_summary,
    stop_thinking,
    take_back,
)

__all__ = [
    "add_reasoning",
    "answer_results",
    "drop_betas",
    "drop_extras",
    "drop_parameter",
    "end_with_user",
    "format_in_words",
    "format_in_words_once",
    "free_tools",
    "keep_reasoning_home",
    "no_encrypted_reasoning",
    "one_sampling",
    "rename_limit",
    "system_first",
    "to_responses",
    "to_stream",
]

_FIELD = "reasoning_content"
_OF_FORMATS = frozenset(
    {"responseformat", "format", "textformat", "responsejsonschema", "responsemimetype"}
)
"""The fields of a format, normalised."""


def add_reasoning(case: Case, found: re.Match[str]) -> Mends:
    """Reasoning is missing in earlier answers: send what there is, and a placeholder where there is
    none.
    """
    compat, traits = case.target.compat, TRAITS[case.target.dialect]
    everywhere = found.groupdict().get("all") is not None or compat.requires_reasoning == "all"
    requires = "all" if everywhere else "tool_calls"
    if not traits.takes_fillers or not _lacks_reasoning(case, everywhere):
        return
    filler = " " if found.groupdict().get("blank") is not None else ""
    if compat.requires_reasoning == requires and compat.missing_reasoning is not None:
        filler = " "  # some count an empty string as missing: anomalyco/opencode#25758
    taught: dict[str, Any] = {"requiresReasoning": requires, "missingReasoning": filler}
    if case.plan.state == "off" or not case.plan.thinks:
        taught["ignoresOff"] = True  # otherwise there would be none to send back
    facts: dict[str, Any] = {}
    text = "reasoning sent with earlier answers, with a placeholder where there is none"
    if traits.takes != "fields":
        yield Mend(text, Lesson(compat=taught))
        return
    taught["reasoningOut"] = _FIELD
    facts["interleaved"] = {"field": _FIELD}
    lesson = Lesson(compat=taught, facts=facts)
    own_field = case.request.reasoning_field not in (None, _FIELD)
    yield once(text, "reasoning_field", lesson=lesson) if own_field else Mend(text, lesson)


def _has_fields(case: Case) -> bool:
    """Whether reasoning is in a message field, which can be named."""
    return TRAITS[case.target.dialect].takes == "fields"


def _lacks_reasoning(case: Case, everywhere: bool) -> bool:
    """Whether an answer is sent without reasoning, or with it in another place."""
    answers = [m for m in case.request.messages if m.role == "assistant"]
    if any(not any(b.thought for b in m.thinking) for m in answers if everywhere or m.tool_calls):
        return True
    if not _has_fields(case) or case.target.compat.reasoning_out == _FIELD:
        return False
    return any(block.source_field != _FIELD for m in answers for block in m.thinking)


def answer_results(case: Case, found: re.Match[str]) -> Mends:
    """No message may follow tool results but an answer: a short one is put between."""
    if _has_fields(case) and not case.target.compat.assistant_after_results:
        lesson = Lesson(compat={"assistantAfterResults": True})
        yield Mend("a short answer sent between tool results and the next message", lesson)


def keep_reasoning_home(case: Case, found: re.Match[str]) -> Mends:
    """The field of earlier reasoning is rejected: it is not sent back."""
    thoughts = any(message.thinking for message in case.request.messages)
    if not _has_fields(case):
        return
    if thoughts or case.target.compat.missing_reasoning:
        taught = {"reasoningOut": "never", "requiresReasoning": "no", "missingReasoning": None}
        text = "earlier reasoning not sent back: the endpoint rejects its field"
        yield once(text, "reasoning_field", lesson=Lesson(compat=taught))


def no_encrypted_reasoning(case: Case, found: re.Match[str]) -> Mends:
    """The model does not reason: request neither reasoning nor its encrypted form. An unknown model
    that was not asked to reason may do so without being asked."""
    if TRAITS[case.target.dialect].takes != "items":
        yield from take_back(case)
        return
    if not write_thinking(case.plan):
        yield _plain_reasoning(case)
    lesson = Lesson(compat={"thinkingWriter": "none"}, facts={"reasoning": False})
    yield Mend("no reasoning requested: the model has none", lesson)


def _plain_reasoning(case: Case) -> Mend:
    """The endpoint does not encrypt reasoning."""
    lesson = Lesson(compat={"encryptedReasoning": False})
    return Mend("encrypted reasoning not requested", lesson)


def drop_parameter(case: Case, found: re.Match[str]) -> Mends:
    """A parameter is rejected by name: whatever put it into the request leaves it out."""
    name = found["name"].strip(".")
    named = [squashed(part) for part in name.split(".")]
    compat, request = case.target.compat, case.request
    kept = {key: value for key, value in compat.extra_body.items() if squashed(key) not in named}
    if parameter := _parameter(case, named):
        yield _drop(case, parameter)
    elif "toolchoice" in named and request.tool_choice in ("auto", "none"):
        yield once("tool choice not sent", "tool_choice")
    elif case.request.format is not None and not _OF_FORMATS.isdisjoint(named):
        yield from format_in_words(case, found)
    elif extra := [one for one in _extra_names(case) if squashed(one) == named[-1]]:
        yield _without_extras(case, f"{name} not sent", extra)
    elif "streamoptions" in named and compat.stream_usage:
        yield Mend("usage not requested in the stream", Lesson(compat={"streamUsage": False}))
    elif squashed(compat.max_tokens_field) in named and compat.max_tokens_field != "max_tokens":
        yield Mend("the limit sent as max_tokens", Lesson(compat={"maxTokensField": "max_tokens"}))
    elif any(key in named for key in keys_of(write_thinking(case.plan))):
        yield from _drop_thinking(case, found, named[-1])
    elif any(key in named for key in keys_of(compat.keep_thinking or {})):
        lesson = Lesson(compat={"keepThinking": None})
        yield Mend("not asked to keep earlier reasoning", lesson)
    elif kept != compat.extra_body:
        yield Mend(f"{name} not sent", Lesson(compat={"extraBody": kept}))
    elif _is_strictness(case, named):
        lesson = Lesson(compat={"strictTools": False})
        yield Mend("tools offered without strict", lesson)
    elif named[0] == "include":
        yield _plain_reasoning(case)
    elif named[-1].startswith("reasoning"):
        yield from keep_reasoning_home(case, found)


def _extra_names(case: Case) -> list[str]:
    return list(extra_names(case.request, case.request.messages, case.target.dialect))


def _without_extras(case: Case, text: str, refused: Sequence[str]) -> Mend:
    """Nothing of what the client added for its provider is sent, this once, because a request is
    fixed only once; later only what was refused is not."""
    names = dict.fromkeys((*case.target.compat.refused_keys, *refused))
    lesson = Lesson(compat={"refusedKeys": list(names)}) if refused else Lesson()
    others = [one for one in _extra_names(case) if one not in refused]
    text += f", nor this once: {', '.join(others)}" if others else ""
    return once(text, "extras", lesson=lesson)


def drop_betas(case: Case, found: re.Match[str]) -> Mends:
    """A beta feature is unknown to the endpoint: those that it names, or all, are not requested."""
    asked = case.request.headers.get("anthropic-beta", "").split(",")
    betas = [beta.strip() for beta in asked if beta.strip()]
    if betas:
        named = [beta for beta in betas if beta.lower() in case.said.lower()] or betas
        yield _without_extras(case, f"not requested: {', '.join(named)}", named)


def drop_extras(case: Case) -> Mends:
    """An endpoint that is not the provider's own may not accept what a client adds for that
    one, whatever it says; what it is called is known only if the endpoint accepts the rest."""
    if not case.target.compat.hosted_tools and (names := _extra_names(case)):
        yield _without_extras(case, f"not sent: {', '.join(names)}", names)


def _is_strictness(case: Case, named: list[str]) -> bool:
    if not any(tool.strict for tool in case.request.tools):
        return False
    return "strict" in named or (named[0] == "tools" and "strict" in case.said)


def _parameter(case: Case, named: list[str]) -> ParameterName | None:
    """The parameter of the request that stands in a place of this name."""
    for name, (path, *_) in TRAITS[case.target.dialect].parameters.items():
        if is_said(getattr(case.request, name)) and squashed(path.rpartition(".")[2]) in named:
            return name
    return None


def _drop(case: Case, name: ParameterName) -> Mend:
    """The parameter is not sent; where it chooses tokens, its kind is not: who refuses one of them
    refuses the next."""
    if name not in SAMPLING:
        omits = (*case.target.compat.omits, name)
        return once(f"{name} not sent", name, lesson=Lesson(compat={"omits": list(omits)}))
    gone = [one for one in SAMPLING if is_said(getattr(case.request, one))]
    lesson = Lesson()
    if "thinking" not in case.said and name == "temperature":
        lesson = Lesson(facts={"temperature": False})
    elif "thinking" not in case.said:
        lesson = Lesson(compat={"omits": [*case.target.compat.omits, name]})
    return once(f"{', '.join(gone)} not sent", *gone, lesson=lesson)


def _drop_thinking(case: Case, found: re.Match[str], last: str) -> Mends:
    if last in ("effort", "reasoningeffort"):
        return drop_effort(case, found)
    if last == "summary":
        return drop_summary(case, found)
    if last == squashed(case.plan.budget_field or "thinking_budget"):
        return drop_budget(case, found)
    return take_back(case)


def format_in_words(case: Case, found: re.Match[str]) -> Mends:
    """The endpoint does not enforce schemas, whatever the catalog says."""
    if case.request.format is not None:
        lesson = Lesson(facts={"structured_output": False})
        yield Mend("the schema put into the instructions", lesson)


def format_in_words_once(case: Case, found: re.Match[str]) -> Mends:
    """The endpoint does not accept this schema, or none together with the rest of this request."""
    if case.request.format is not None:
        yield once("the schema put into the instructions", "native_format")


def one_sampling(case: Case, found: re.Match[str]) -> Mends:
    """The endpoint takes one of two parameters: the one that says more is kept."""
    if case.request.temperature is not None and case.request.top_p is not None:
        yield Mend("top_p not sent with a temperature", Lesson(compat={"eitherSampling": True}))


def system_first(case: Case, found: re.Match[str]) -> Mends:
    """System messages amid the conversation go in the user's name."""
    if case.target.compat.system_inside != "user":
        text = "system messages amid the conversation sent in the user's name"
        yield Mend(text, Lesson(compat={"systemInside": "user"}))


def rename_limit(case: Case, found: re.Match[str]) -> Mends:
    """The answer limit has another name here."""
    if case.request.max_tokens is not None:
        lesson = Lesson(compat={"maxTokensField": found["name"]})
        yield Mend(f"the answer limit sent as {found['name']}", lesson)


def free_tools(case: Case, found: re.Match[str]) -> Mends:
    """A forced tool and thinking exclude each other: no thinking. What is forced stays forced."""
    if _is_forced(case):
        yield from stop_thinking(case, found)


def _is_forced(case: Case) -> bool:
    choice = case.request.tool_choice
    return choice == "required" or isinstance(choice, NamedTool)


def to_stream(case: Case, found: re.Match[str]) -> Mends:
    """The endpoint supports thinking only in streams."""
    if not case.request.stream:
        lesson = Lesson(compat={"thinkingNeedsStream": True})
        text = "streamed: the endpoint supports thinking only in streams"
        yield once(text, "whole_answer", lesson=lesson)


def to_responses(case: Case, found: re.Match[str]) -> Mends:
    """The model accepts tools with reasoning only on the Responses API: use that."""
    compat, there = case.target.compat, TRAITS[case.target.dialect].tools_api
    if there is None:
        return
    taught: dict[str, Any] = {
        "thinkingWriter": TRAITS[there].usual_writer,
        "requiresReasoning": "tool_calls",
        "maxTokensField": "max_output_tokens",
        "systemRole": compat.system_role,
        "auth": compat.auth,
    }
    text = f"sent to the {TRAITS[there].api}, which accepts tools together with reasoning"
    yield Mend(text, Lesson(compat=taught, dialect=there))


def end_with_user(case: Case, found: re.Match[str]) -> Mends:
    """A request that ends with an answer: without it if it is empty, otherwise without thinking."""
    yield once("an empty answer at the end left out", "empty_end")
    if "thinking" in found[0]:
        yield from stop_thinking(case, found)
