"""The conversation of the pictures: what is asked, and what the model thinks, does and says.

The model is played by a scripted server: it has these words, in this order, at about the pace of a
real one. Everything else is real: the program, its tools, the file that is edited.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

from mull.testing.server import Gate, Recorded, Reply

__all__ = ["ANSWER", "FILE", "MODEL", "NEW", "OLD", "QUESTION", "SOURCE", "model"]

MODEL = "deepseek/deepseek-v4-pro/high"
QUESTION = "some invoices are a cent off. find out why and mend it"
FILE = "invoice.py"
SOURCE = """\
from decimal import ROUND_HALF_UP, Decimal

VAT, CENT = Decimal("0.19"), Decimal("0.01")


def total(prices):
    net = sum(float(price) for price in prices)
    return round(net * 1.19, 2)
"""
OLD = """\
    net = sum(float(price) for price in prices)
    return round(net * 1.19, 2)
"""
NEW = """\
    net = sum(Decimal(price) for price in prices)
    return (net * (1 + VAT)).quantize(CENT, ROUND_HALF_UP)
"""
_FIRST = """\
A cent off on some invoices only: that smells of binary floats. A tie such as 12.495 has no exact \
float, so rounding may go the wrong way. But look first, then guess."""
_SECOND = """\
As I thought. The prices are turned into floats and the tax is 1.19, while VAT and CENT stand \
there as Decimals, unused. Smallest honest change: count in Decimal, round half up at the end. \
Callers pass text, so the signature can stay."""
ANSWER = """\
`total()` counted in **binary floats**: 10.50 × 1.19 is exactly 12.495, but as a float it is \
12.49499…, and `round()` drops the cent. It now counts in `Decimal` and rounds half up:

```python
>>> total(["9.99", "0.51"])  # was 12.49
Decimal('12.50')
```

Callers need no change: prices still come as text.
"""
_PIECE = 4
"""Characters in a piece of the stream: about a token."""
_PAUSE = 0.04
"""Seconds between two pieces."""


def model(recorded: Recorded) -> Reply:
    """What is said next, after so many results of tools."""
    said = recorded.json["messages"]
    results = sum(1 for message in said if message["role"] == "tool")
    edit = {"path": FILE, "old": OLD, "new": NEW}
    steps = (
        [*_pieces("reasoning_content", _FIRST), _call("read", {"path": FILE})],
        [*_pieces("reasoning_content", _SECOND), _call("edit", edit)],
        [*_pieces("content", ANSWER), _chunk({}, "stop")],
    )
    return _paced(steps[results], results)


def _paced(deltas: list[dict[str, Any]], results: int) -> Reply:
    gates = [Gate() for _ in deltas]
    threading.Thread(target=_open, args=(gates,), daemon=True).start()
    steps = [step for pair in zip(gates, deltas, strict=True) for step in pair]
    thought = sum("reasoning_content" in delta["choices"][0]["delta"] for delta in deltas)
    usage = {
        "prompt_tokens": 2600 + 300 * results,
        "completion_tokens": len(deltas),
        "completion_tokens_details": {"reasoning_tokens": thought},
    }
    return Reply.events(*steps, {"choices": [], "usage": usage}, "[DONE]")


def _open(gates: list[Gate]) -> None:
    for gate in gates:
        time.sleep(_PAUSE)
        gate.open()


def _pieces(field: str, text: str) -> Iterator[dict[str, Any]]:
    for at in range(0, len(text), _PIECE):
        yield _chunk({field: text[at : at + _PIECE]})


def _call(name: str, arguments: dict[str, str]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": f"call_{name}", "type": "function", "function": function}
    return _chunk({"tool_calls": [call]}, "tool_calls")


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
