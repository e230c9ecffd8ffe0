"""A conversation with everything that a document has to show, and strategies for any other."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from typing import Any

from hypothesis import strategies as st

from conversations import messages, origins, texts
from mull.history.log import Condensed, Entry, Record, Summary, Undone
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.messages import Message, Origin, assistant, user
from mull.neutral.usage import Usage
from mull.transcripts.transcript import Transcript, TurnRow, turn_rows

KIMI = Origin("moonshotai", "openai-chat", "kimi-k2-thinking", "https://api.moonshot.ai/v1")
CLAUDE = Origin("anthropic", "anthropic", "claude-sonnet-4-5", "https://api.anthropic.com/v1")
BEGAN = 1_794_730_000.0
PRICES = {KIMI.model: (0.6, 2.5), CLAUDE.model: (3.0, 15.0)}

LONG_THOUGHT = """\
The user wants to know why the retry loop never ends. Let me look at `client/retry.py` first.

```python
while attempt < limit:
    try:
        return send(request)
    except Transient:
        wait(delay(attempt))
```

`attempt` is never increased. That is the whole bug, but two more things are worth a look:

1. Does `delay` depend on `attempt`? Yes, so it always waits the first delay.
2. Does anybody else change `attempt`? It is a local, so no.

There is also the question of whether `send` may raise something that is not `Transient`. It may:
`ssl.SSLError` is an `OSError`, and only `ConnectionError` is wrapped. That is a second, smaller
bug. I should mention it, but not mix it with the first.

**Conclusion**: increment `attempt` in the except branch; mention the SSL case."""

ANSWER = """\
The counter never moves. `attempt` starts at 0 and **nothing increases it**, so the loop runs as
long as `send` raises `Transient`:

```python
        except Transient:
            wait(delay(attempt))
            attempt += 1          # this line is missing
```

Two consequences worth knowing:

- the wait is always the *first* delay, because `delay(0)` is asked for every time;
- `raise Exhausted` is never reached.

| Error | Caught today | Should be |
|---|:-:|--:|
| `ConnectionError` | yes | yes |
| `ssl.SSLError` | no | yes |

See [the Python documentation](https://docs.python.org/3/library/ssl.html#exceptions)."""

FILE = "\n".join(f"{n:3}  line of the file" for n in range(1, 31))


def picture() -> str:
    """A small PNG, in base64."""
    rows = b"".join(
        b"\0" + bytes(v for x in range(48) for v in (x * 5, y * 5, 180)) for y in range(48)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 48, 48, 8, 2, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b64encode(b"\x89PNG\r\n\x1a\n" + head + body).decode()


def price(message: Message) -> float | None:
    """Dollars for an answer of the sample; output once, reasoning included."""
    if message.usage is None or message.origin is None:
        return None
    read, written = PRICES[message.origin.model]
    assert message.usage.input is not None
    assert message.usage.output is not None
    return (message.usage.input * read + message.usage.output * written) / 1e6


def _entry(after: float, message: Message, *seconds: float) -> Entry:
    return Entry(message, BEGAN + after, *seconds)


def _results(*blocks: ToolResultBlock) -> Message:
    return Message(role="tool", blocks=blocks)


RECORDS: tuple[Record, ...] = (
    _entry(0, user("Our client retries for ever when the server is down.\nCan you find out why?")),
    _entry(
        1,
        assistant(
            ThinkingBlock("I should look at the file first.", source_field="reasoning_content"),
            TextBlock("I will read the file first."),
            ToolCallBlock("c1", "read_file", {"path": "src/client/retry.py"}),
            ToolCallBlock("c2", "search", {"pattern": "attempt\\b", "glob": "src/**/*.py"}),
            origin=KIMI,
            stop_reason="tool_calls",
            usage=Usage(1820, 96, 61, 1916, 0),
        ),
        2.4,
        1.1,
    ),
    _entry(4, _results(ToolResultBlock("c1", FILE), ToolResultBlock("c2", "retry.py:6: attempt"))),
    _entry(
        6,
        assistant(
            ThinkingBlock(LONG_THOUGHT, source_field="reasoning_content"),
            TextBlock(ANSWER),
            origin=KIMI,
            stop_reason="stop",
            usage=Usage(2410, 702, 448, 3112, 1792),
        ),
        14.2,
        11.8,
    ),
    _entry(60, user("Fix it, please, and run the tests.")),
    _entry(
        61,
        assistant(
            ThinkingBlock("", source_field="thinking", signature="EqQBCkYIBxgCKkA"),
            ToolCallBlock("t1", "edit", {"path": "retry.py", "new": "a\n" * 3, "times": 1}),
            origin=CLAUDE,
            stop_reason="tool_calls",
            usage=Usage(3290, 210, 120, 3500, 2400),
        ),
        3.3,
    ),
    _entry(64, _results(ToolResultBlock("t1", "edited retry.py (+1 −0)"))),
    _entry(
        66,
        assistant(
            ThinkingBlock("", source_field="redacted_thinking", redacted="EmwKAhgB"),
            ThinkingBlock("   ", source_field="thinking"),
            ToolCallBlock("t2", "run", {"command": "pytest -q tests/client"}),
            OpaqueBlock({"type": "server_tool_use", "id": "srv_1"}),
            origin=CLAUDE,
            stop_reason="tool_calls",
            usage=Usage(3610, 90, 32, 3700, 3290),
        ),
        2.0,
    ),
    _entry(70, _results(ToolResultBlock("t2", "1 failed, 41 passed", is_error=True))),
    _entry(
        72,
        assistant(
            ThinkingBlock("One test expects **four** attempts.", "thinking", signature="EqQB"),
            TextBlock("One test still fails, and it is right to: "),
            origin=CLAUDE,
            status="interrupted",
        ),
        4.0,
        3.0,
    ),
    _entry(
        140,
        Message(
            role="user",
            blocks=(TextBlock("Go on."), MediaBlock("image/png", picture(), name="retries.png")),
        ),
    ),
    _entry(
        142,
        assistant(
            ThinkingBlock("**Reading the graph**\n\nIt climbs.", kind="summary", encrypted="gAAAA"),
            TextBlock(
                "1. Before the fix\n   - no end\n2. After it: **four** attempts\n\n> A limit."
            ),
            origin=CLAUDE,
            stop_reason="stop",
            usage=Usage(4800, 530, 300, 5330, 3610),
        ),
        9.1,
        6.0,
    ),
    _entry(200, user("Forget the last question.")),
    Undone(12, 13, BEGAN + 201),
    Summary(
        0,
        4,
        "The retry loop never increased `attempt`.",
        by=CLAUDE,
        usage=Usage(3000, 140, 0, 3140, 0),
        at=BEGAN + 202,
    ),
    Condensed(3, 0, "The loop never increases `attempt`.", at=BEGAN + 203),
    _entry(210, user("מה עם `timeout`? <script>alert('x')</script> & so on")),
    _entry(
        211,
        assistant(
            TextBlock("It is `30` seconds and <b>not</b> part of this."),
            origin=CLAUDE,
            stop_reason="stop",
            usage=Usage(2100, 60, 0, 2160, 1800),
        ),
        1.2,
    ),
)
SAMPLE = Transcript(
    title="Our client retries for ever when the server is down.",
    id="k3v9x2m4q7aa",
    folder="/home/ada/client",
    created=BEGAN,
    model="anthropic/claude-sonnet-4-5",
    system="You are a careful engineer.\nAnswer briefly.",
    records=RECORDS,
    rows=turn_rows(RECORDS, price),
)


@st.composite
def record_lists(draw: Any) -> tuple[Record, ...]:
    """Any log: every record speaks only of records before it."""
    records: list[Record] = []
    for message in draw(st.lists(messages, max_size=3)):
        records.append(draw(st.builds(Entry, st.just(message), _times, _times, _times)))
        start = draw(st.integers(0, len(records)))
        end = draw(st.integers(start, len(records)))
        thoughts = [
            (at, index)
            for at, record in enumerate(records)
            if isinstance(record, Entry)
            for index, block in enumerate(record.message.blocks)
            if isinstance(block, ThinkingBlock)
        ]
        records += draw(
            st.lists(
                st.one_of(
                    st.builds(Undone, st.just(start), st.just(end), _times),
                    st.builds(
                        Summary,
                        st.just(start),
                        st.just(end),
                        texts,
                        st.sampled_from(["user", "assistant"]),
                        texts,
                        st.none() | origins,
                    ),
                    *(
                        [
                            st.sampled_from(thoughts).flatmap(
                                lambda place: st.builds(Condensed, *map(st.just, place), texts)
                            )
                        ]
                        if thoughts
                        else []
                    ),
                ),
                max_size=1,
            )
        )
    return tuple(records)


_times = st.none() | st.floats(0, 1e10)
_counts = st.none() | st.integers(0, 2**40)
rows = st.builds(
    TurnRow,
    st.integers(1, 999),
    _times,
    st.none() | texts,
    _counts,
    _counts,
    _counts,
    _counts,
    _times,
    _times,
    st.none() | st.floats(0, 1e4),
    _counts,
)
transcripts = st.builds(
    Transcript,
    texts,
    st.none() | texts,
    st.none() | texts,
    st.none() | texts,
    _times,
    st.none() | texts,
    texts,
    record_lists(),
    st.lists(rows, max_size=3).map(tuple),
)
