"""The JSON value of an answer that was asked for in the form of a schema."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from mull.neutral.messages import Message
from mull.neutral.patterns import pattern
from mull.neutral.request import AnswerFormat
from mull.policy.answer_format import tool_name
from mull.policy.partial_json import value_start

__all__ = ["answer_value"]

_JSON = json.JSONDecoder()
_FENCED = pattern(r"```[^\n]*\n(.*?)\n?```", re.DOTALL)


def answer_value(message: Message, wanted: AnswerFormat) -> Any:
    """The JSON value of an answer, from a call or from its text.

    Raises:
        ValueError: there is none; says why.
    """
    for call in message.tool_calls:
        if call.name == tool_name(wanted):
            return call.input
    text = message.text.strip()
    if not text:
        raise ValueError("the answer is empty")
    try:
        return _decode(text)
    except ValueError as error:
        for found in _embedded(text):
            return found
        raise ValueError(f"the answer is not JSON ({error})") from None


def _decode(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _embedded(text: str) -> list[Any]:
    """The only value within text: in a fence, from the first bracket to the last, or from the
    first on that begins one.
    """
    tries = [found[1] for found in _FENCED.finditer(text)][-1:]
    starts = [at for sign in "{[" if (at := text.find(sign)) >= 0]
    if starts:
        tries.append(text[min(starts) : max(text.rfind("}"), text.rfind("]")) + 1])
    for one in tries:
        try:
            return [_decode(one)]
        except ValueError:
            continue
    start = value_start(text)
    try:
        return [] if start is None else [_JSON.raw_decode(text, start)[0]]
    except (ValueError, RecursionError):
        return []
