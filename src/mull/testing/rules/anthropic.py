"""What the Messages API rejects: unsigned, altered, moved or missing thinking, broken pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Any

from mull.testing.ledger import Issued, Ledger

__all__ = [
    "check_anthropic",
    "check_anthropic_chain",
    "check_anthropic_replay",
    "check_anthropic_rest",
    "expected_thought",
]

Body = Mapping[str, Any]

LEAST_TOP_P = 0.95
_THOUGHTS = ("thinking", "redacted_thinking")
_MARKS = {"thinking": "signature", "redacted_thinking": "data", "tool_use": "id"}


def check_anthropic(body: Body, own: Container[str] = ()) -> str | None:
    """The Messages API: signed thinking in place, complete tool pairs, budgets below max_tokens.

    `own` are ids of calls that the endpoint made itself: it knows whether thinking came first.
    """
    messages: Sequence[Body] = body["messages"]
    if problem := _bad_roles(messages):
        return problem
    for index, message in enumerate(messages):
        before = messages[index - 1] if index else None
        after = messages[index + 1] if index + 1 < len(messages) else None
        problem = (
            _bad_blocks(index, message)
            or _bad_results(index, message, before)
            or _bad_calls(index, message, after)
        )
        if problem:
            return problem
    return _bad_parameters(body) or _bad_chain(body, own)


def _bad_roles(messages: Sequence[Body]) -> str | None:
    roles = [message["role"] for message in messages]
    if roles[:1] != ["user"]:
        return 'messages: first message must use the "user" role'
    for before, role in pairwise(roles):
        if role == before:
            return (
                'messages: roles must alternate between "user" and "assistant",'
                f' but found multiple "{role}" roles in a row'
            )
    return None


def _bad_blocks(index: int, message: Body) -> str | None:
    blocks = message["content"]
    if isinstance(blocks, str):
        return None if blocks else f"messages.{index}: content must be non-empty"
    if not blocks:
        return f"messages.{index}: content must be non-empty"
    for at, block in enumerate(blocks):
        place = f"messages.{index}.content.{at}"
        if block["type"] == "text" and not block["text"]:
            return f"{place}: text content blocks must be non-empty"
        if block["type"] == "thinking" and not isinstance(block.get("signature"), str):
            return f"{place}.thinking.signature: Field required"
    if message["role"] == "assistant" and blocks[-1]["type"] in _THOUGHTS:
        return f"messages.{index}: The final block in an assistant message cannot be `thinking`."
    return None


def _bad_results(index: int, message: Body, before: Body | None) -> str | None:
    called = set(_ids(before, "tool_use", "id")) if before else set()
    for call_id in _ids(message, "tool_result", "tool_use_id"):
        if call_id not in called:
            return (
                f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks:"
                f" {call_id}. Each `tool_result` block must have a corresponding `tool_use` block"
                " in the previous message."
            )
    return None


def _bad_calls(index: int, message: Body, after: Body | None) -> str | None:
    answered = set(_ids(after, "tool_result", "tool_use_id")) if after else set()
    for call_id in _ids(message, "tool_use", "id"):
        if call_id not in answered:
            return (
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks"
                f" immediately after: {call_id}."
            )
    return None


def _bad_parameters(body: Body) -> str | None:
    thinking = body.get("thinking") or {}
    enabled = thinking.get("type") == "enabled"
    if enabled and thinking["budget_tokens"] < 1024:
        return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    if enabled and thinking["budget_tokens"] >= body["max_tokens"]:
        return "`max_tokens` must be greater than `thinking.budget_tokens`."
    forced = (body.get("tool_choice") or {}).get("type") in ("any", "tool")
    if enabled and forced:
        return "Thinking may not be enabled when tool_choice forces tool use."
    if enabled and body.get("temperature", 1) != 1:
        return "`temperature` may only be set to 1 when thinking is enabled."
    return _bad_sampling(body, thinks=enabled)


def _bad_sampling(body: Body, *, thinks: bool) -> str | None:
    if thinks and "top_k" in body:
        return "`top_k` must be unset when thinking is enabled."
    if thinks and body.get("top_p", 1) < LEAST_TOP_P:
        return "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled."
    if "temperature" in body and "top_p" in body:
        return (
            "`temperature` and `top_p` cannot both be specified for this model."
            " Please use only one."
        )
    if not 0 <= body.get("temperature", 0) <= 1:
        return "temperature: range: 0..1"
    if any(not text.strip() for text in body.get("stop_sequences") or ()):
        return "stop_sequences: each stop sequence must contain non-whitespace"
    return None


def _bad_chain(body: Body, own: Container[str]) -> str | None:
    messages = body["messages"]
    chain = _open_chain(messages)
    if not chain or isinstance(messages[chain[-1]]["content"], str):
        return None
    kind = (body.get("thinking") or {}).get("type", "disabled")
    kinds = [block["type"] for block in messages[chain[-1]]["content"]]
    foreign = any(made not in own for made in _ids(messages[chain[-1]], "tool_use", "id"))
    if kind == "enabled" and kinds[0] not in _THOUGHTS and foreign:
        return expected_thought(chain[-1], kinds[0])
    if kind == "disabled" and set(kinds) & set(_THOUGHTS):
        return (
            "When thinking is disabled, an `assistant` message in the final position cannot"
            " contain `thinking`. To use thinking blocks, enable `thinking` in your request."
        )
    return None


def _open_chain(messages: Sequence[Body]) -> list[int]:
    """Where the assistant messages of an open tool chain are; none if the user wrote last.

    Anything but results in a user message starts a new turn.
    """
    chain: list[int] = []
    for index in range(len(messages) - 1, -1, -1):
        content = messages[index]["content"]
        if messages[index]["role"] == "assistant":
            chain.insert(0, index)
        elif isinstance(content, str) or any(block["type"] != "tool_result" for block in content):
            break
    return chain if messages and messages[-1]["role"] == "user" else []


def expected_thought(index: int, found: str) -> str:
    """The error for a tool chain whose thinking is missing."""
    return (
        f"messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found"
        f" `{found}`. When `thinking` is enabled, a final `assistant` message must start with a"
        " thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). To"
        " avoid this requirement, disable `thinking`."
    )


def _ids(message: Body, kind: str, key: str) -> list[str]:
    blocks = message["content"]
    if isinstance(blocks, str):
        return []
    return [block[key] for block in blocks if block["type"] == kind]


def check_anthropic_replay(body: Body, ledger: Ledger) -> str | None:
    """Whether the returned thinking is what was issued, in its place."""
    messages = body["messages"]
    answers = _answers(messages)
    for index in answers:
        if problem := _forged(index, messages[index], ledger):
            return problem
    chain = _open_chain(messages)
    for index in answers:
        if index in chain or index == answers[-1]:
            required = _is_enabled(body) and index in (chain[:1] + chain[-1:])
            if problem := _modified(index, messages[index], ledger, required=required):
                return problem
    return None


def check_anthropic_chain(body: Body, model: str, ledger: Ledger) -> str | None:
    """Whether all thinking of an open chain comes back, to the model it was issued to.

    The API is known to check only the first and the last thinking of a chain, and some Claude
    models read each other's signatures.
    """
    messages = body["messages"]
    for index in _answers(messages):
        for at, block in enumerate(_blocks(messages[index])):
            place = ledger.find(block.get(_MARKS.get(block["type"], "")))
            if block["type"] in _THOUGHTS and place and place.issued.model != model:
                return _invalid(index, at, block)
    for index in _open_chain(messages) if _is_enabled(body) else ():
        if problem := _modified(index, messages[index], ledger, required=True):
            return problem
    return None


def check_anthropic_rest(body: Body, ledger: Ledger) -> str | None:
    """Whether the latest answer's other blocks are where they were, between its thinking.

    A client that adds or drops text there leaves the thinking alone. Whether the API rejects that
    is unknown.
    """
    messages = body["messages"]
    for index in sorted({*_open_chain(messages), *_answers(messages)[-1:]}):
        blocks = _blocks(messages[index])
        issued = _issued_in(blocks, ledger)
        if _thoughts(issued) and _thoughts(blocks) and _shapes(blocks) != _shapes(issued):
            return (
                f"messages.{index}: the blocks beside `thinking` are not those of the "
                "original response; it is not known whether the API accepts this"
            )
    return None


def _is_enabled(body: Body) -> bool:
    return bool((body.get("thinking") or {}).get("type") == "enabled")


def _answers(messages: Sequence[Body]) -> list[int]:
    return [i for i, m in enumerate(messages) if m["role"] == "assistant" and _blocks(m)]


def _blocks(message: Body) -> Sequence[Body]:
    content = message["content"]
    return () if isinstance(content, str) else content


def _forged(index: int, message: Body, ledger: Ledger) -> str | None:
    for at, block in enumerate(_blocks(message)):
        if block["type"] not in _THOUGHTS:
            continue
        place = ledger.find(block[_MARKS[block["type"]]])
        if (
            place is None
            or place.piece["type"] != block["type"]
            or place.piece.get("thinking") != block.get("thinking")
        ):
            return _invalid(index, at, block)
    return None


def _invalid(index: int, at: int, block: Body) -> str:
    key = _MARKS[block["type"]]
    return f"messages.{index}.content.{at}: Invalid `{key}` in `{block['type']}` block"


def _modified(index: int, message: Body, ledger: Ledger, *, required: bool) -> str | None:
    """Whether thinking is missing, or its order among the calls has changed."""
    blocks = _blocks(message)
    issued = _issued_in(blocks, ledger)
    if not _thoughts(issued):
        return None
    if not _thoughts(blocks):
        return expected_thought(index, blocks[0]["type"]) if required else None
    sent = set(_ids(message, "tool_use", "id"))
    expected = [block for block in issued if block["type"] != "tool_use" or block["id"] in sent]
    known = {block["id"] for block in issued if block["type"] == "tool_use"}
    given = [block for block in blocks if block["type"] != "tool_use" or block["id"] in known]
    moved = _shapes(blocks) != _shapes(issued) and not _difference(blocks, issued)
    if _marked(given) == _marked(expected) and not moved:
        return None
    pairs = zip_longest(_shapes(blocks), _shapes(issued))
    at = next((at for at, (one, other) in enumerate(pairs) if one != other), 0)
    return (
        f"messages.{index}.content.{at}: `thinking` or `redacted_thinking` blocks in the latest"
        " assistant message cannot be modified. These blocks must remain as they were in the"
        " original response."
    )


def _issued_in(blocks: Sequence[Body], ledger: Ledger) -> list[Body]:
    """All blocks of the issued answers that a message consists of."""
    return [block for answer in _answers_in(blocks, ledger) for block in answer.pieces]


def _answers_in(blocks: Sequence[Body], ledger: Ledger) -> list[Issued]:
    """The issued answers that a message consists of, in order."""
    found: list[Issued] = []
    for block in blocks:
        place = ledger.find(block.get(_MARKS.get(block["type"], "")))
        if place is not None and place.issued not in found:
            found.append(place.issued)
    return found


def _thoughts(blocks: Sequence[Body]) -> list[Body]:
    return [block for block in blocks if block["type"] in _THOUGHTS]


def _difference(blocks: Sequence[Body], issued: Sequence[Body]) -> Counter[tuple[str, Any]]:
    """What was added or dropped, wherever it is."""
    given, before = Counter(_shapes(blocks)), Counter(_shapes(issued))
    return (given - before) + (before - given)


def _marked(blocks: Sequence[Body]) -> list[tuple[str, Any]]:
    return [shape for shape in _shapes(blocks) if shape[0] in _MARKS]


def _shapes(blocks: Sequence[Body]) -> list[tuple[str, Any]]:
    return [(block["type"], block.get(_MARKS.get(block["type"], ""))) for block in blocks]
