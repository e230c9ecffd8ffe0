"""Answers of all dialects: fixtures, generated ones, and how they are written and read."""

from __future__ import annotations

from base64 import b64decode, b64encode
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from conversations import names, target, wired
from mull.dialects.registry import decoder
from mull.dialects.serving import answer_writer
from mull.dialects.writer import About
from mull.neutral.assemble import assemble
from mull.neutral.blocks import Block, TextBlock, ThinkingBlock, ToolCallBlock
from mull.neutral.events import Event
from mull.neutral.messages import Message, assistant
from mull.neutral.target import Target
from mull.neutral.usage import Usage

DIALECTS = ("anthropic", "bedrock-converse", "gemini", "openai-chat", "openai-responses")
PAIRS = [(one, other) for one in DIALECTS for other in DIALECTS]
_WRITERS = {"anthropic": "anthropic-budget", "gemini": "gemini-level"}
TARGETS = {
    "google-signatures": target(compat={"tags": (("<thought>", "</thought>"),)}),
}
"""Fixtures of endpoints that differ from the default."""


def target_of(dialect: str, name: str = "") -> Target:
    return TARGETS.get(name) or target(_WRITERS.get(dialect, "none"), dialect=dialect)


def fixtures() -> dict[tuple[str, str], bytes]:
    """Every answer in the folder of fixtures, by dialect and file."""
    folder = Path(__file__).parent / "fixtures"
    return {
        (dialect, file.name): file.read_bytes()
        for dialect in DIALECTS
        for file in sorted((folder / dialect.replace("-", "_")).iterdir())
    }


FIXTURES = fixtures()


def read(body: bytes, to: Target, cuts: list[int] | None = None) -> list[Event]:
    one = decoder(to)
    edges = [0, *sorted(cut % (len(body) + 1) for cut in cuts or []), len(body)]
    found = [event for a, b in pairwise(edges) for event in one.feed(body[a:b])]
    return found + one.close()


def written(dialect: str, events: list[Event], **about: Any) -> bytes:
    writer = answer_writer(dialect, About(**about))
    return b"".join([*map(writer.feed, events), writer.close()])


def feedings(body: bytes) -> list[list[int] | None]:
    """Whole, byte by byte, and cut anywhere."""
    return [None, [*range(1, len(body))], [n * n * 7 for n in range(1, 40)]]


def assembled(body: bytes, to: Target, cuts: list[int] | None = None) -> Message:
    return assemble(read(body, to, cuts))


# What an answer says in any dialect.

THOUGHT_SIGNED = ("anthropic", "bedrock-converse", "gemini", "openai-chat")
"""Dialects with a place for the signature of a thought."""
SEALED = ("openai-responses", "openai-chat")
"""Dialects with a place for a sealed thought."""
REDACTED = ("anthropic", "bedrock-converse", "openai-chat")
CALL_SIGNED = ("gemini", "openai-chat")
_CUT = {"refusal": "content_filter", None: "stop"}


def essence(message: Message, *dialects: str) -> list[Any]:
    """Thoughts, text and calls in their order; what follows its own kind is one with it.

    Arguments that are no object have no place in Gemini's calls.
    """
    runs = []
    for kind, run in groupby(filter(_says, message.blocks), type):
        blocks = list(run)
        if kind is ToolCallBlock:
            odd = "gemini" not in dialects
            runs += [
                (b.name, b.input, b.arguments if odd and not b.input else None) for b in blocks
            ]
        elif kind is TextBlock:
            runs.append((kind, "".join(b.text for b in blocks)))
        else:  # between two thoughts that become one a blank line is put
            runs.append((kind, "".join(b.thought for b in blocks).replace("\n\n", "")))
    return runs


def _says(block: Block) -> bool:
    match block:
        case TextBlock():
            return bool(block.text)
        case ThinkingBlock():
            return bool(block.thought.strip())
    return isinstance(block, ToolCallBlock)


def ids(message: Message) -> list[str]:
    return [call.id for call in message.tool_calls]


def counts(message: Message, *dialects: str) -> dict[str, int | None]:
    """The counts that are known and have a place; Anthropic's total is the sum of the rest, and so
    is one that nobody said in a response."""
    told = msgspec.structs.asdict(message.usage or Usage())
    if "gemini" in dialects:
        told["cache_write"] = None
    if "anthropic" in dialects:
        told["total"] = None
    if told["total"] == (told["input"] or 0) + (told["output"] or 0):
        told["total"] = None
    if "bedrock-converse" in dialects:
        told["reasoning"] = None
    return {name: count or None for name, count in told.items()}


def ending(message: Message) -> str:
    reason = message.stop_reason
    return _CUT.get(reason, reason)


def carriers(message: Message) -> dict[str, list[str]]:
    """Signatures of thoughts, seals, redacted thoughts and signatures of calls, in order."""
    found: dict[str, list[str]] = {"signed": [], "sealed": [], "redacted": [], "called": []}
    for block in message.blocks:
        if isinstance(block, ThinkingBlock):
            found["signed"] += [block.signature] if is_base64(block.signature) else []
            sealed = [block.encrypted, block.redacted]
            entries = wired(block).get("reasoning_details", [])
            sealed += [one["data"] for one in entries if one.get("type") == "reasoning.encrypted"]
            found["sealed"] += [one for one in sealed if one]
        elif isinstance(block, ToolCallBlock):
            google = (wired(block).get("extra_content") or {}).get("google") or {}
            signature = block.signature or google.get("thought_signature")
            found["called"] += [signature] if signature else []
    return found


def is_base64(text: str | None) -> bool:
    """Whether every dialect with a place for a signature can hold this one."""
    try:
        return bool(text) and b64encode(b64decode(text or "", validate=True)).decode() == text
    except ValueError:
        return False


words = st.text(st.characters(exclude_characters="<\n", codec="utf-8"), max_size=20).map(
    lambda text: f"{text}w"
)
seals = st.binary(min_size=3, max_size=9).map(lambda raw: b64encode(raw).decode())
_thoughts = st.builds(
    ThinkingBlock,
    words,
    st.none(),
    signature=st.none() | seals,
    encrypted=st.none() | seals,
    kind=st.sampled_from(["raw", "summary"]),
)
_redacted = st.builds(ThinkingBlock, redacted=seals, source_field=st.just("redacted_thinking"))
_calls = st.builds(
    ToolCallBlock,
    st.just("?"),
    names,
    st.dictionaries(words, words | st.integers(-9, 9), max_size=2),
    signature=st.none() | seals,
)
_usages = st.none() | st.tuples(*[st.integers(1, 10**6)] * 4).map(
    lambda n: Usage(
        input=n[0] + n[1] + n[2],
        output=n[3] + 5,
        reasoning=5,
        total=n[0] + n[1] + n[2] + n[3] + 5,
        cache_read=n[1],
        cache_write=n[2],
    )
)


def _numbered(block: Block, number: int) -> Block:
    """No two carriers and no two ids are the same."""
    named = ("signature", "encrypted", "redacted")
    held = {name: getattr(block, name, None) for name in named}
    made = b64encode(b"%03d" % number).decode()
    held = {name: f"{made}{value}" for name, value in held.items() if value}
    if isinstance(block, ToolCallBlock):
        held["id"] = f"call_{number}"
    return msgspec.structs.replace(block, **held)


def _answer(blocks: list[Block], usage: Usage | None, reason: str) -> Message:
    numbered = tuple(_numbered(block, number) for number, block in enumerate(blocks))
    calls = any(isinstance(b, ToolCallBlock) for b in blocks)
    reason = "tool_calls" if calls and reason == "stop" else reason
    return assistant(*numbered, usage=usage, stop_reason=reason)


answers = st.builds(
    _answer,
    st.lists(st.one_of(_thoughts, _redacted, st.builds(TextBlock, words), _calls), max_size=7),
    _usages,
    st.sampled_from(["stop", "length", "content_filter", "refusal"]),
)
"""Answers that every dialect can say, up to what it has no place for."""
