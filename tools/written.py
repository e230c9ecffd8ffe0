"""Writes a file of every kind that this version of mull keeps: `python -m tools.written`.

The files lie in `tests/fixtures/written/VERSION` and are never written anew: whoever has such a
file keeps it, and `tests/test_written.py` opens those of all versions with the code of today. Run
this before a release that changes a file's form. Keys and answers in them are made up.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from prompt_toolkit.history import FileHistory

from mull._version import __version__
from mull.agent.exports import FORMATS, exported, transcript_of
from mull.agent.mcp.memory import Listing, Memory
from mull.auth.secret import Secret
from mull.catalog.load import load
from mull.catalog.update import check_update
from mull.history.log import Condensed, Entry, Record, Summary, Undone
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.events import TextDelta, ThinkingDelta
from mull.neutral.messages import Message, Origin, assistant, user
from mull.neutral.target import Compat, ModelFacts, Target
from mull.neutral.usage import Usage
from mull.policy.heal.lessons import Lesson, Lessons
from mull.settings.profile import Parameters, Profile
from mull.settings.registry import SettingValue
from mull.store.approvals import RuleFile
from mull.store.catalog import MODELS_FILE, save_update
from mull.store.config import CONFIG_FILE, load_config
from mull.store.config_edit import add_table
from mull.store.keys import Keys
from mull.store.lessons import save_lessons
from mull.store.profiles import Profiles
from mull.store.sessions.sqlite import SqliteSessions

__all__ = ["main", "write"]

PLACE = Path(__file__).resolve().parent.parent / "tests/fixtures/written"
_ORIGIN = Origin("acme", "anthropic", "thinker", "https://acme.example/v1")
_TARGET = Target(
    provider="acme",
    provider_name="Acme",
    model="thinker",
    dialect="anthropic",
    endpoint="https://acme.example/v1",
    facts=ModelFacts(reasoning=True),
    compat=Compat(),
    known=True,
)
_CONFIG = """\
model = "acme/thinker"

[settings]
"reasoning.includeInContext" = true

[providers.acme]
base_url = "https://acme.example/v1"
key_env = "ACME_API_KEY"
dialect = "anthropic"

[models."acme/thinker"]
reasoning = true
limit = { context = 100000, output = 8000 }

[[compat]]
match = { provider = "acme" }
set = { thinkingWriter = "anthropic-budget" }

[themes.mine]
thinking = "italic"
"""
_MODELS = '{"acme": {"models": {"small": {"name": "Small", "limit": {"context": 1000}}}}}\n'
_CURRENT = (
    b'{"format":1,"sources":[{"name":"models.dev","date":null,"what":"x"}],"providers":1}\n'
    b'{"id":"acme","name":"Acme","env":["ACME_API_KEY"],"npm":"@ai-sdk/anthropic",'
    b'"api":"https://acme.example/v1","models":{"thinker":{"name":"Thinker"}}}\n'
)
_UPDATE = (
    b'{"acme":{"id":"acme","name":"Acme","models":{"thinker":{"id":"thinker","name":"Thinker",'
    b'"limit":{"context":123456,"output":4096},"reasoning":true}}}}'
)


def records() -> list[Record]:
    """One of each kind of record, with blocks of all kinds."""
    picture = MediaBlock("image/png", "iVBORw0K", name="a.png")
    return [
        Entry(Message(role="user", blocks=(TextBlock("What is in a.py?"), picture)), 1000.0),
        Entry(
            assistant(
                ThinkingBlock("The file is small.", "thinking", signature="SIGNED"),
                ThinkingBlock("", "redacted_thinking", redacted="SEALED"),
                OpaqueBlock({"type": "server_tool_use", "id": "s1"}),
                TextBlock("I look."),
                ToolCallBlock("call_1", "read", {"path": "a.py"}, '{ "path":"a.py" }'),
                origin=_ORIGIN,
                usage=Usage(input=120, output=80, reasoning=61, total=200),
            ),
            1001.0,
            seconds=2.5,
            thought_seconds=1.5,
        ),
        Entry(Message(role="tool", blocks=(ToolResultBlock("call_1", "print('hi')\n"),)), 1002.0),
        Entry(
            assistant(ThinkingBlock("Done."), TextBlock("It prints hi."), origin=_ORIGIN), 1003.0
        ),
        Entry(user("no, not that"), 1004.0),
        Undone(4, 5, 1005.0),
        Condensed(1, 0, "small file", by=_ORIGIN, at=1006.0),
        Summary(0, 3, "They looked at a.py.", by=_ORIGIN, usage=Usage(9, 9), at=1007.0),
    ]


def write(place: Path) -> None:
    """Write everything into a folder that is not there yet."""
    config, data = place / "config", place / "data"
    config.mkdir(parents=True)
    _write_config(config)
    _write_data(data)
    _write_sessions(data, place / "exports")
    shutil.rmtree(data / "session-locks", ignore_errors=True)
    for left in (*data.glob("*.reserve"), *data.glob("*.lock")):
        left.unlink()


def _write_config(config: Path) -> None:
    (config / CONFIG_FILE).write_text(_CONFIG, encoding="utf-8")
    add_table(config / CONFIG_FILE, ("mcp", "files"), {"command": "acme-files", "args": ["--ro"]})
    (config / MODELS_FILE).write_text(_MODELS, encoding="utf-8")
    RuleFile(config, Path("/project")).keep(["run(git status)"])
    profiles = Profiles(config / "profiles")
    parameters = Parameters(temperature=0.5, max_tokens=1000)
    told: dict[str, SettingValue] = {"reasoning.includeInContext": False}
    profiles.save("work", Profile(provider="acme", model="thinker", parameters=parameters,
                                  settings=told))  # fmt: skip
    profiles.set_default("work")
    server = load_config(config / CONFIG_FILE).mcp["files"]
    memory = Memory(config.parent / "data/mcp/files.json", server)
    memory.learn(Listing([{"name": "look", "description": "looks", "inputSchema": {}}]))


def _write_data(data: Path) -> None:
    Keys(data, {}).keep("acme", Secret("made-up-opens-nothing"), in_file=True)
    lesson = Lesson(compat={"reasoningOut": "never"}, refused=("00ff",))
    save_lessons(data, Lessons().learn(_TARGET, lesson))
    save_update(data, check_update(_UPDATE, load(base=_CURRENT), "2099-01-01").data)
    FileHistory(str(data / "typed")).store_string("What is in a.py?\nand b.py?")


def _write_sessions(data: Path, exports: Path) -> None:
    store = SqliteSessions(data / "sessions.db", clock=lambda: 1000.0)
    made = store.create(
        folder="/project",
        name="kept",
        model="acme/thinker",
        base_url="https://acme.example/v1",
        system="Be brief.",
        settings={"reasoning.includeInContext": True},
    )
    store.append(made.id, 0, *records())
    store.fork(made.id, 4, "fork")
    broken = store.create(folder="/project", name="broken off", model="acme/thinker")
    store.append(broken.id, 0, Entry(user("and b.py?"), 1010.0))
    store.journal(broken.id, [ThinkingDelta("It is", 0), TextDelta("b.py is", 1)], _ORIGIN)
    transcript = transcript_of(*store.load(made.id), lambda message: None)
    store.close()
    exports.mkdir()
    for form in FORMATS:
        (exports / f"session.{form}").write_bytes(exported(transcript, form))


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files of this version, once."""
    parser = argparse.ArgumentParser(prog="python -m tools.written", description=main.__doc__)
    parser.parse_args(argv)
    place = PLACE / __version__.rpartition(".")[0]
    if place.exists():
        print(f"{place} is there, and stays as it was written", file=sys.stderr)
        return 1
    write(place)
    print(f"wrote {place}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
