"""Repairs of the rest of a request: parameters, fields of messages, streaming, the dialect.

Which part of mull's request sent a refused parameter is looked up in the request itself, so that
no list of parameters has to be kept here.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from mull.neutral.messages import Dialect
from mull.neutral.request import NamedTool
from mull.neutral.thinking import ThinkingPlan, write_thinking
from mull.policy.heal.case import Case, Change, keys_of, squashed
from mull.policy.heal.history import drop_last_answer
from mull.policy.heal.lessons import Lesson
from mull.policy.heal.plan import (
    drop_budget,
    drop_effort,
    drop_summary,
    no_thinking_parameter,
    stop_thinking,
)

__all__ = [
    "add_reasoning",
    "drop_parameter",
    "end_with_user",
    "free_tools",
    "keep_reasoning_home",
    "no_encrypted_reasoning",
    "rename_limit",
    "to_responses",
    "to_stream",
]

_FIELD = "reasoning_content"
_RESPONSES: Dialect = "openai-responses"
_TAKES_FILLERS: frozenset[Dialect] = frozenset({"openai-chat", "anthropic"})


def add_reasoning(case: Case, found: re.Match[str]) -> Change | None:
    """Reasoning is missed in earlier answers: send what is there, and a filler where none is."""
    compat = case.target.compat
    everywhere = found.groupdict().get("all") is not None or compat.requires_reasoning == "all"
    requires = "all" if everywhere else "tool_calls"
    is_off = case.plan.state == "off" and write_thinking(case.plan)
    if case.target.dialect not in _TAKES_FILLERS or is_off:
        return None
    if not _lacks_reasoning(case, everywhere):
        return None
    filler = " " if found.groupdict().get("blank") is not None else ""
    if compat.requires_reasoning == requires and compat.missing_reasoning is not None:
        filler = " "  # some count an empty string as missing: anomalyco/opencode#25758
    taught: dict[str, Any] = {"requiresReasoning": requires, "missingReasoning": filler}
    facts: dict[str, Any] = {}
    field = case.request.reasoning_field
    if case.target.dialect == "openai-chat":
        taught["reasoningOut"] = _FIELD
        facts["interleaved"] = {"field": _FIELD}
        field = None if field != _FIELD else field
    text = "reasoning sent with earlier answers, and a filler where there is none"
    change = case.asks(text, Lesson(compat=taught, facts=facts), reasoning_field=field)
    return msgspec.structs.replace(change, renew=True)


def _lacks_reasoning(case: Case, everywhere: bool) -> bool:
    """Whether an answer goes out without reasoning, or with it in another place."""
    answers = [m for m in case.request.messages if m.role == "assistant"]
    if any(not any(b.thought for b in m.thinking) for m in answers if everywhere or m.tool_calls):
        return True
    if case.target.dialect != "openai-chat" or case.target.compat.reasoning_out == _FIELD:
        return False
    return any(block.source_field != _FIELD for m in answers for block in m.thinking)


def keep_reasoning_home(case: Case, found: re.Match[str]) -> Change | None:
    """The field of earlier reasoning is refused: it is not sent back."""
    compat, request = case.target.compat, case.request
    if case.target.dialect != "openai-chat":
        return None
    if not any(message.thinking for message in request.messages) and not compat.missing_reasoning:
        return None
    taught = {"reasoningOut": "never", "requiresReasoning": "no", "missingReasoning": None}
    text = "earlier reasoning not sent back: the endpoint refuses its field"
    return case.asks(text, Lesson(compat=taught), reasoning_field=None)


def no_encrypted_reasoning(case: Case, found: re.Match[str]) -> Change | None:
    """The model does not reason: neither ask for reasoning nor for its encrypted form."""
    if case.target.dialect != _RESPONSES:
        return no_thinking_parameter(case, found)
    lesson = Lesson(compat={"thinkingWriter": "none"}, facts={"reasoning": False})
    text = "no reasoning asked for: the model has none to give"
    return case.plans(text, ThinkingPlan("absent", thinks=False), lesson)


def drop_parameter(case: Case, found: re.Match[str]) -> Change | None:
    """A parameter is refused by name: whatever put it into the request leaves it out."""
    named = [squashed(part) for part in found["name"].split(".")]
    compat, request = case.target.compat, case.request
    if "temperature" in named and request.temperature is not None:
        lasting = "thinking" not in case.said
        lesson = Lesson(facts={"temperature": False}) if lasting else Lesson()
        return case.asks("temperature not sent", lesson, temperature=None)
    if "toolchoice" in named and request.tool_choice is not None:
        return case.asks("tool choice not sent", tool_choice=None)
    if "streamoptions" in named and compat.stream_usage:
        return case.asks("usage in the stream not asked for", Lesson(compat={"streamUsage": False}))
    if squashed(compat.max_tokens_field) in named and compat.max_tokens_field != "max_tokens":
        lesson = Lesson(compat={"maxTokensField": "max_tokens"})
        return case.asks("the limit sent as max_tokens", lesson)
    if any(key in named for key in keys_of(write_thinking(case.plan))):
        return _drop_thinking(case, found, named[-1])
    if any(key in named for key in keys_of(compat.keep_thinking or {})):
        lesson = Lesson(compat={"keepThinking": None})
        return case.asks("not asked to keep earlier reasoning", lesson)
    kept = {name: value for name, value in compat.extra_body.items() if squashed(name) not in named}
    if kept != compat.extra_body:
        return case.asks(f"{found['name']} not sent", Lesson(compat={"extraBody": kept}))
    return keep_reasoning_home(case, found) if named[-1].startswith("reasoning") else None


def _drop_thinking(case: Case, found: re.Match[str], last: str) -> Change | None:
    if last in ("effort", "reasoningeffort"):
        return drop_effort(case, found)
    if last == "summary":
        return drop_summary(case, found)
    if last == squashed(case.plan.budget_field or "thinking_budget"):
        return drop_budget(case, found)
    return no_thinking_parameter(case, found)


def rename_limit(case: Case, found: re.Match[str]) -> Change | None:
    """The limit of the answer has another name here."""
    if case.request.max_tokens is None:
        return None
    lesson = Lesson(compat={"maxTokensField": found["name"]})
    return case.asks(f"the limit of the answer sent as {found['name']}", lesson)


def free_tools(case: Case, found: re.Match[str]) -> Change | None:
    """A forced tool and thinking exclude each other: no thinking, else no force."""
    choice = case.request.tool_choice
    if choice != "required" and not isinstance(choice, NamedTool):
        return None
    quiet = stop_thinking(case, found)
    if quiet is not None and write_thinking(quiet.request.thinking) != write_thinking(case.plan):
        return quiet
    return case.asks("the tool is left to the model: it cannot be forced here", tool_choice="auto")


def to_stream(case: Case, found: re.Match[str]) -> Change | None:
    """The endpoint thinks in streams only."""
    if case.request.stream:
        return None
    lesson = Lesson(compat={"thinkingNeedsStream": True})
    return case.asks("streamed: the endpoint thinks in streams only", lesson, stream=True)


def to_responses(case: Case, found: re.Match[str]) -> Change | None:
    """The model takes tools with reasoning on the Responses API only: ask there."""
    compat = case.target.compat
    if case.target.dialect != "openai-chat":
        return None
    taught: dict[str, Any] = {
        "thinkingWriter": "responses",
        "requiresReasoning": "tool_calls",
        "maxTokensField": "max_output_tokens",
        "systemRole": compat.system_role,
        "auth": compat.auth,
    }
    lesson = Lesson(compat=taught, dialect=_RESPONSES)
    text = "sent to the Responses API, which takes tools together with reasoning"
    return msgspec.structs.replace(case.asks(text, lesson), renew=True)


def end_with_user(case: Case, found: re.Match[str]) -> Change | None:
    """A request that ends with an answer: without it if it is empty, else without thinking."""
    shorter = drop_last_answer(case, found)
    if shorter is not None or "thinking" not in found[0]:
        return shorter
    return stop_thinking(case, found)
