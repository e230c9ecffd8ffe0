"""Answers in every dialect: 60 % reasoning, 35 % text, 5 % tool arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from mull.dialects.registry import DIALECTS
from mull.dialects.serving import answer_writer
from mull.neutral.events import (
    BlockEnded,
    Event,
    Finished,
    Started,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
)
from mull.neutral.messages import Dialect

CHUNKS = 20_000
_WORDS = ("so ", "the ", "answer ", "would ", "then ", "follow ", "from ", "this.\n")


def pieces(chunks: int = CHUNKS) -> tuple[list[str], list[str], list[str]]:
    """The pieces of reasoning, text and tool arguments."""
    words = [_WORDS[n % len(_WORDS)] for n in range(chunks)]
    reasoning, text = int(chunks * 0.6), int(chunks * 0.35)
    values = [f'"{n}",' for n in range(chunks - reasoning - text - 2)]
    return words[:reasoning], words[: int(text)], ['{"items":[', *values, '"end"]}']


def events(dialect: Dialect, chunks: int = CHUNKS) -> Iterator[Event]:
    """The answer as events. Gemini sends calls whole, so that there each piece is a call."""
    thoughts, texts, arguments = pieces(chunks)
    yield Started("r1", "m")
    yield from (ThinkingDelta(text, "rs_1") for text in thoughts)
    if dialect in ("anthropic", "bedrock-converse"):
        yield ThinkingCarrier("rs_1", signature="EqQB")
    if dialect == "openai-responses":
        yield ThinkingCarrier("rs_1", encrypted="gAAAA")
    yield BlockEnded("rs_1")
    yield from (TextDelta(text, "msg_1") for text in texts)
    if dialect == "gemini":
        for n in range(len(arguments)):
            yield ToolCallDelta(f"fc_{n}", f"call_{n}", f"f{n}", f'{{"n":{n}}}')
            yield BlockEnded(f"fc_{n}")
    else:
        yield ToolCallDelta("fc_1", "call_1", "f")
        yield from (ToolCallDelta("fc_1", arguments=text) for text in arguments)
    yield Finished("tool_calls")


def stream(dialect: Dialect, chunks: int = CHUNKS) -> bytes:
    """The answer as it goes over the wire."""
    writer = answer_writer(dialect)
    return b"".join([writer.feed(event) for event in events(dialect, chunks)])


STREAMS: dict[Dialect, Callable[[], bytes]] = {
    dialect: partial(stream, dialect) for dialect in DIALECTS
}
