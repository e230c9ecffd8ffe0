"""One scripted provider for several terminal assistants: `python -m tools.played [PORT]`.

It speaks Chat Completions, Messages and Responses, so that assistants of different makers can be
used side by side on the same answers. A question that holds `play:NAME` is answered with that
scene; every other question gets a short answer that quotes it. The body of each request is written
to the file in PLAYED_LOG, one line each. docs/terminal-comparison.md was made with it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from mull.dialects.serving import answer_writer, decode_request, write_answer
from mull.dialects.writer import About
from mull.neutral.asked import Asked
from mull.neutral.blocks import TextBlock, ThinkingKind, ToolResultBlock
from mull.neutral.events import (
    BlockEnded,
    Event,
    Finished,
    Started,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from mull.neutral.messages import Dialect, assistant
from mull.neutral.usage import Usage
from mull.testing import CUT, STALL, Pause, Recorded, Reply, ScriptedServer
from mull.testing.server import Step

__all__ = ["SCENES", "reply"]

_PATHS: Mapping[str, Dialect] = {
    "/chat/completions": "openai-chat",
    "/messages": "anthropic",
    "/responses": "openai-responses",
}
_FOLDER = re.compile(r"(?i)(?:working directory|cwd)\W[^/]{0,20}(/[\w./-]+)")
_SCENE = re.compile(r"play:(\w+)")
_TOOLS = {
    "run": ("Bash", "bash", "exec_command", "shell", "Shell", "run"),
    "edit": ("Edit", "edit", "StrReplaceFile"),
    "write": ("Write", "write", "WriteFile"),
    "read": ("Read", "read", "ReadFile"),
}
"""What the assistants call their tools."""
_ARGUMENTS = {
    "path": ("file_path", "filePath", "path"),
    "old": ("old_string", "oldString", "old", "old_text"),
    "new": ("new_string", "newString", "new", "new_text"),
    "text": ("content", "text"),
    "command": ("command", "cmd"),
    "description": ("description",),
}
_THOUGHT = """**Finding the second lock.** The handler takes `lock` before it calls `flush`, and
`flush` takes it once more.

```python
def flush(self):
    with self.lock:  # the same lock
        self.queue.clear()
```

So it waits for itself: a `Lock` cannot be taken twice by one thread. An `RLock` would do, but then
the queue may be cleared while it is read. Better to take it once, outside.
"""
_ANSWER = """## What happens

The lock is taken **twice** by one thread, see `queue.py`:

| where | takes | 幅 |
|---|---|---|
| `handle` | once | 一 |
| `flush` | again | 二 🔒 |

```python
def handle(self, item):
    with self.lock:
        self.queue.append(item)
    self.flush()
```

1. Take the lock in `handle` only.
2. Call `flush` after it is released.
"""
_LONG_FILE = "".join(f"row_{number} = {number}\n" for number in range(320))


Scene: TypeAlias = Callable[["Script", int], None]
"""Plays one answer of a scene, of which so many tools have run."""


class Script:
    """The steps of one answer, in one dialect."""

    def __init__(self, asked: Asked, dialect: Dialect) -> None:
        self._asked, self._dialect = asked, dialect
        self._writer = answer_writer(dialect, About(model=asked.model, usage=True))
        self._said = self._calls = 0
        self.steps: list[Step] = []
        self._feed(Started(f"played-{os.urandom(6).hex()}", asked.model))

    def think(self, text: str, rate: float = 15) -> None:
        """Think in words, so many of them a second."""
        kind: ThinkingKind = "summary" if self._dialect == "openai-responses" else "raw"
        self._paced(rate, [ThinkingDelta(word, "thought", kind=kind) for word in _words(text)])
        if self._dialect == "anthropic":
            self._feed(ThinkingCarrier("thought", signature="c2lnbmVk"))
        self._feed(BlockEnded("thought"))

    def say(self, text: str, rate: float = 40) -> None:
        """Answer in words, so many of them a second."""
        self._paced(rate, [TextDelta(word, "answer") for word in _words(text)])

    def call(self, kind: str, **wanted: str) -> None:
        """Call the tool of this kind that the assistant offers, with the names that it knows."""
        tool = next((one for one in self._asked.tools if one.name in _TOOLS[kind]), None)
        if tool is None:
            self.say(f"You offer no tool to {kind}.")
            return
        known = tool.parameters.get("properties", {})
        wanted = {"description": "Play a part", **wanted}
        names = {role: next((n for n in _ARGUMENTS[role] if n in known), None) for role in wanted}
        arguments = {name: wanted[role] for role, name in names.items() if name}
        self._calls += 1
        key = f"call-{self._calls}"
        self._feed(ToolCallDelta(key, f"call_{os.urandom(6).hex()}", tool.name))
        self._feed(ToolCallDelta(key, arguments=json.dumps(arguments)), BlockEnded(key))

    def offers(self, kind: str) -> bool:
        """Whether the assistant has a tool of this kind."""
        return any(one.name in _TOOLS[kind] for one in self._asked.tools)

    def patch(self, act: str, name: str, change: str) -> None:
        """Change a file as the assistants do that have a command for it and no tool."""
        patch = f"*** Begin Patch\n*** {act} File: {name}\n{change}*** End Patch\n"
        self.call("run", command=f"apply_patch <<'EOF'\n{patch}EOF")

    def path(self, name: str) -> str:
        """Where a file of the project is: some assistants take only whole paths."""
        told = "\n".join([self._asked.system, *map(str, self._asked.messages)])
        found = _FOLDER.findall(told)
        return f"{found[-1].rstrip('.')}/{name}" if found else name

    def end(self) -> None:
        """Finish the answer."""
        self._feed(UsageReported(Usage(input=2_000 + self._said, output=self._said)))
        self._feed(Finished("tool_calls" if self._calls else "stop"))
        self.steps.append(self._writer.close())

    def _paced(self, rate: float, events: Sequence[Event]) -> None:
        for event in events:
            self._said += 1
            self._feed(event)
            self.steps.append(Pause(1 / rate))

    def _feed(self, *events: Event) -> None:
        self.steps.append(b"".join(map(self._writer.feed, events)))


def _words(text: str) -> Iterator[str]:
    return (found.group() for found in re.finditer(r"\S+\s*|\s+", text))


def _thinking(script: Script, _: int) -> None:
    script.think(_THOUGHT)
    script.say(_ANSWER)


def _slowly(script: Script, _: int) -> None:
    script.think("It is a long list. I begin at one.", 8)
    script.say("\n".join(f"{number}. point number {number}" for number in range(1, 200)), 12)


def _edit(script: Script, done: int) -> None:
    reads = script.offers("read")
    if done > reads:
        script.say("Changed: the limit is 5 now.")
        return
    script.think("The limit is too low.")
    if reads and not done:
        script.call("read", path=script.path("retry.py"))
    elif script.offers("edit"):
        script.call("edit", path=script.path("retry.py"), old="LIMIT = 3", new="LIMIT = 5")
    else:
        script.patch("Update", "retry.py", "@@\n-LIMIT = 3\n+LIMIT = 5\n")


def _write(script: Script, done: int) -> None:
    if done:
        script.say("Written.")
    elif script.offers("write"):
        script.call("write", path=script.path("rows.py"), text=_LONG_FILE)
    else:
        script.patch("Add", "rows.py", re.sub("^", "+", _LONG_FILE[:-1], flags=re.M) + "\n")


def _command(*commands: str, last: str = "That is what it says.") -> Scene:
    def play(script: Script, done: int) -> None:
        if done >= len(commands):
            script.say(last)
            return
        script.think(f"Step {done + 1}.")
        script.call("run", command=commands[done])

    return play


def _stall(script: Script, _: int) -> None:
    script.think("I begin, and then nothing comes.")
    script.say("The first half of the answer, and ")
    script.steps.append(STALL)


def _cut(script: Script, _: int) -> None:
    script.think("I begin, and the line is cut.")
    script.say("The first half of the answer, and ")
    script.steps.append(CUT)


_SEQUENCE = "for n in 1 2 3 4 5 6 7 8 9 10; do echo line $n; sleep 2; done"
SCENES: Mapping[str, Scene] = {
    "think": _thinking,
    "slow": _slowly,
    "edit": _edit,
    "write": _write,
    "run": _command("seq 1 5000"),
    "fail": _command("echo to stdout; echo to stderr >&2; exit 3"),
    "work": _command(_SEQUENCE),
    "rounds": _command(*(f"sleep 2; echo round {number}" for number in range(1, 7))),
    "stall": _stall,
    "cut": _cut,
}
"""What `play:NAME` plays; `500`, `429` and the like are refusals."""


def reply(recorded: Recorded) -> Reply:
    """The answer to one request."""
    dialect = next(
        (d for end, d in _PATHS.items() if recorded.path.split("?")[0].endswith(end)), None
    )
    if recorded.method != "POST" or dialect is None:
        known = {"id": "played", "object": "model", "display_name": "Played", "type": "model"}
        return Reply.json({"object": "list", "data": [known], "has_more": False})
    _note(recorded)
    asked = decode_request(dialect, recorded.body, recorded.path, recorded.headers)
    name, done, question = _scene(asked)
    if name.isdigit():
        return Reply.json({"error": {"type": "error", "message": "played"}}, int(name))
    if not asked.stream:
        title = write_answer(assistant(TextBlock("Locks")), dialect, About(model=asked.model))
        return Reply(200, {"content-type": "application/json"}, (title.body,))
    script = Script(asked, dialect)
    if not asked.tools:
        script.say("Locks")
    elif name in SCENES:
        SCENES[name](script, done)
    else:
        script.think("That is short.")
        script.say(f"You said: {question[-60:]}")
    if not script.steps or script.steps[-1] not in (CUT, STALL):
        script.end()
    return Reply(200, {"content-type": "text/event-stream"}, tuple(script.steps))


def _scene(asked: Asked) -> tuple[str, int, str]:
    """The scene that is wanted, how many of its tools have run, and the question."""
    name, done, question = "", 0, ""
    for message in asked.messages:
        texts = [block.text for block in message.blocks if isinstance(block, TextBlock)]
        texts = [text for text in texts if not text.lstrip().startswith("<")]  # the assistant's own
        if message.role == "user" and texts:
            question = texts[-1].strip()
            found = _SCENE.findall("\n".join(texts))
            name, done = (found[-1], 0) if found else ("", done)
        done += sum(isinstance(block, ToolResultBlock) for block in message.blocks)
    return name, done, question


def _note(recorded: Recorded) -> None:
    place = os.environ.get("PLAYED_LOG")
    if place:
        with Path(place).open("ab") as file:
            file.write(recorded.body.replace(b"\n", b" ") + b"\n")


def main(port: int) -> None:
    """Listen until interrupted."""
    with ScriptedServer(reply, port=port) as server:
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
