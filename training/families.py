"""All families of tasks, how often each is practised, and conversations made of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from random import Random
from typing import Any, NamedTuple

from mull.agent.instructions import BASE, WITH_TOOLS
from mull.agent.tools.list import List
from mull.agent.tools.read import Read
from training import numbers, talk, toolwork, words
from training.problem import Problem
from training.toolwork import FUNCTIONS, OWN, Errand

__all__ = [
    "ERRANDS",
    "PROBLEMS",
    "Conversation",
    "conversations",
    "definitions",
    "session_prompt",
]

PROBLEMS: Mapping[str, tuple[Callable[[Random], Problem], int]] = {
    "addition": (numbers.add, 9),
    "subtraction": (numbers.subtract, 12),
    "multiplication": (numbers.multiply, 12),
    "primes": (numbers.is_prime, 6),
    "decimals compared": (numbers.compare_decimals, 5),
    "dates compared": (numbers.compare_dates, 4),
    "letters counted": (numbers.count_letters, 11),
    "items counted": (numbers.count_items, 3),
    "numbers sorted": (numbers.sort_numbers, 8),
    "units converted": (numbers.convert_units, 5),
    "word problems": (words.solve_story, 8),
    "logic": (words.reason, 4),
    "tables read": (words.read_table, 3),
    "texts read": (words.read_text, 4),
    "formats followed": (words.follow_format, 4),
    "not known": (talk.admit, 4),
    "out of reach": (talk.decline, 5),
    "openings": (talk.talk, 12),
}
"""Families without tools: the task, and its weight."""

ERRANDS: Mapping[str, tuple[Callable[[Random], Errand], int]] = {
    "file read": (toolwork.read_file, 8),
    "folder listed": (toolwork.list_folder, 5),
    "file found, then read": (toolwork.search, 4),
    "function called": (toolwork.call_function, 7),
}
"""Families with tools: the task, and its weight."""

_SHORT = ("You are a helpful assistant.", "Be brief.", "Answer in one sentence.", "Be friendly.")
_HURRY = 32
"""The budget at which the model is told to be brief."""


class Conversation(NamedTuple):
    """Messages as the server gets them; those of the assistant with a `learn` are practised."""

    family: str
    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    settings: Mapping[str, Any] = {}


def definitions(names: tuple[str, ...]) -> tuple[Mapping[str, Any], ...]:
    """Tools as a request has them."""
    own = {
        tool.name: {
            "name": tool.name,
            "description": tool.description,
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
            },
        }
        for tool in (Read, List)
    }
    known = {**own, **FUNCTIONS}
    return tuple({"type": "function", "function": known[name]} for name in names)


def conversations(seed: str) -> Iterator[Conversation]:
    """Conversations without end; the same for the same seed."""
    rng = Random(seed)
    families = [*PROBLEMS, *ERRANDS]
    weights = [weight for _, weight in (*PROBLEMS.values(), *ERRANDS.values())]
    while True:
        (family,) = rng.choices(families, weights)
        yield _errand(rng, family) if family in ERRANDS else _problem(rng, family)


def _problem(rng: Random, family: str) -> Conversation:
    problem = PROBLEMS[family][0](rng)
    mode = rng.choices(("think", "hurry", "off"), (90, 6, 4))[0]
    messages: list[Mapping[str, Any]] = []
    tools: tuple[Mapping[str, Any], ...] = ()
    dice = rng.random()
    if dice < 0.10:
        messages.append({"role": "system", "content": rng.choice(_SHORT)})
    elif dice < 0.16:
        messages.append({"role": "system", "content": session_prompt(rng, with_tools=False)})
    elif dice < 0.24:
        messages.append({"role": "system", "content": session_prompt(rng, with_tools=True)})
        tools = definitions(OWN)
    elif dice < 0.28:
        tools = definitions(OWN)
    if rng.random() < 0.10:
        messages += _earlier(rng, with_tools=bool(tools) and rng.random() < 0.3)
    messages.append({"role": "user", "content": problem.question})
    answer: dict[str, Any] = {"role": "assistant", "content": problem.answer, "learn": True}
    if mode == "hurry":
        answer["reasoning_content"] = problem.hint
        return Conversation(family, (*messages, answer), tools, {"thinking_budget": _HURRY})
    if mode == "off":
        return Conversation(family, (*messages, answer), tools, {"enable_thinking": False})
    answer["reasoning_content"] = problem.thought
    return Conversation(family, (*messages, answer), tools)


def _errand(rng: Random, family: str) -> Conversation:
    errand = ERRANDS[family][0](rng)
    messages: list[Mapping[str, Any]] = []
    if rng.random() < 0.30:
        messages.append({"role": "system", "content": session_prompt(rng, with_tools=True)})
    if rng.random() < 0.10:
        messages += _earlier(rng, with_tools=errand.tools == OWN and rng.random() < 0.6)
    messages += _calls(errand, learn=True)
    messages.append(
        {
            "role": "assistant",
            "reasoning_content": errand.thought,
            "content": errand.answer,
            "learn": True,
        }
    )
    return Conversation(family, tuple(messages), definitions(errand.tools))


def _calls(errand: Errand, *, learn: bool) -> Iterator[Mapping[str, Any]]:
    """The question, and each call with its result."""
    yield {"role": "user", "content": errand.question}
    for step in errand.steps:
        call = {"name": step.name, "arguments": json.dumps(step.arguments, ensure_ascii=False)}
        yield {
            "role": "assistant",
            "reasoning_content": step.thought,
            "tool_calls": [{"type": "function", "function": call}],
            "learn": learn,
        }
        yield {"role": "tool", "content": step.result}


def _earlier(rng: Random, *, with_tools: bool) -> list[Mapping[str, Any]]:
    """A question that was answered before: the thoughts of calls are sent back, others are not."""
    if with_tools:
        family = rng.choice(("file read", "folder listed", "file found, then read"))
        errand = ERRANDS[family][0](rng)
        return [*_calls(errand, learn=False), {"role": "assistant", "content": errand.answer}]
    problem = PROBLEMS[rng.choice(list(PROBLEMS))][0](rng)
    return [
        {"role": "user", "content": problem.question},
        {"role": "assistant", "content": problem.answer},
    ]


def session_prompt(rng: Random, *, with_tools: bool) -> str:
    """What mull itself tells a model at the start of a session."""
    year, month, day = rng.randint(2025, 2030), rng.randint(1, 12), rng.randint(1, 28)
    facts = f"Today is {year}-{month:02}-{day:02}."
    if not with_tools:
        return f"{BASE}\n\n{facts}"
    folder = PurePosixPath("/home", rng.choice(("anna", "ben", "me", "user")))
    place = folder / rng.choice(("work", "project", "demo", "code", "notes"))
    facts = f"{facts} The working folder is {place}."
    if rng.random() < 0.4:
        facts += f" It is a git repository, on the branch {rng.choice(('main', 'master', 'dev'))}."
    if rng.random() < 0.7:
        facts += (
            f" The system is {rng.choice(('Linux (x86_64)', 'macOS (arm64)', 'Linux (aarch64)'))}."
        )
    return f"{BASE}\n\n{WITH_TOOLS}\n\n{facts}"
