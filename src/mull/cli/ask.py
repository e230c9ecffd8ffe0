"""`mull ask`: one question, one answer, made for terminals and pipes alike.

Standard output holds the answer and nothing else unless it is a terminal; thoughts and notes go
to standard error. The exit status says how it went.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mull.agent.engine import EMBEDDED, Engine
from mull.agent.opening import open_kept
from mull.cli import interrupt, opening, setup
from mull.cli.draw import Kept, Plain, Show
from mull.cli.draw_json import JsonLines, JsonObject
from mull.neutral.errors import (
    ConfigError,
    LocalError,
    MullError,
    NetworkError,
    NoModelError,
    RefusedError,
)
from mull.neutral.messages import Status
from mull.settings.layers import Snapshot
from mull.store.paths import data_dir
from mull.store.sessions.sqlite import this_folder

if TYPE_CHECKING:
    from mull.agent.results import Result
    from mull.agent.session import Session
    from mull.agent.streams import AsyncStream
    from mull.agent.toolbox import Toolbox
    from mull.agent.tools.approve import Approver
    from mull.neutral.target import Target
    from mull.store.sessions.values import SessionStore

__all__ = ["EXIT", "arguments", "exit_status", "run"]

EXIT = {
    "answer": 0,
    "refused": RefusedError.exit_status,
    "no answer": 4,
    "network": NetworkError.exit_status,
    "interrupted": 130,
}
"""How an answer went, as exit statuses; errors have their own."""
_NO_TEXT = "\ufffd"

_TEXT = """\
Asks a model and prints its answer. The question is taken from the arguments, a
file (-f) and standard input if that is piped, in this order.

exit status: 0 answer, 2 usage, 3 refused by the provider, 4 no answer,
5 network, 130 interrupted
"""
_EXAMPLES = """\
examples:
  mull ask -m claude-sonnet-4-5/high "Why is the sky blue?"
  git diff | mull ask -m kimi-k2-thinking --thinking stderr "Review this" > review.md
  mull ask -m local/smollm2 --json "Say hello" | jq .thinking
  mull ask --continue "And at night?"
  mull ask -m kimi-k2-thinking --tools all --yes "Why does make test fail? Mend it."
"""


def arguments(parser: ArgumentParser) -> None:
    """Add the question and everything that shapes the answer."""
    parser.description, parser.epilog = _TEXT, _EXAMPLES
    parser.add_argument("prompt", nargs="*", help="the question")
    parser.add_argument("-f", "--file", type=Path, metavar="FILE", help="read it from a file")
    setup.add_model_argument(parser)
    setup.add_arguments(parser)
    parser.add_argument("--system", metavar="TEXT", help="instructions for the model")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="limit of the answer")
    parser.add_argument("--temperature", type=float, metavar="T", help="how freely it answers")
    parser.add_argument("--base-url", metavar="URL", help="the endpoint's address")
    parser.add_argument(
        "--thinking",
        choices=("show", "hide", "stderr"),
        help="where thoughts go; shown on a terminal, hidden in a pipe",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object at the end")
    form.add_argument("--stream-json", action="store_true", help="print each event as a JSON line")
    opening.add_session_arguments(parser)
    parser.add_argument("--no-save", action="store_true", help="do not keep this session")
    opening.add_tool_arguments(parser)


def run(options: Namespace) -> int:
    """Ask, show the answer as it comes, and say how it went.

    Raises:
        LocalError: the question, the model or an option is not as it should be.
    """
    asking = _Asking(options)
    try:
        return exit_status(_answered(options, asking))
    except MullError as error:
        if asking.show is None:
            raise
        asking.show.failed(error, asking.kept)
        if asking.stream is None:
            raise  # what is wrong with the command is told to people too
        return error.exit_status
    except KeyboardInterrupt:
        if asking.show is not None:
            asking.show.interrupted(asking.left(options), asking.kept)
        return EXIT["interrupted"]


def _answered(options: Namespace, asking: _Asking) -> Status:
    prompt = _prompt(options)
    engine = Engine(setup.load(options))
    toolbox = opening.pack_tools(options, engine, _approver(options), warn=_say)
    asking.store = _store(options)
    return interrupt.run(_ask(options, prompt, engine, asking, toolbox))


class _Asking:
    """A question under way: where it is kept, and what shows its answer until all is said."""

    def __init__(self, options: Namespace) -> None:
        self.store: SessionStore | None = None
        self.session: Session | None = None
        self.stream: AsyncStream | None = None
        self.show: Show | None = None
        self._is_saved = not options.no_save
        if options.json:
            self.show = JsonObject(sys.stdout, sys.stderr)
        elif options.stream_json:
            self.show = JsonLines(sys.stdout, sys.stderr)

    @property
    def kept(self) -> Kept:
        """What there is of the answer."""
        is_kept = self._is_saved and self.session is not None
        return Kept(
            self.stream.result if self.stream else None,
            self.session.info.id if is_kept and self.session else None,
        )

    def left(self, options: Namespace) -> str:
        """What there is of an answer that was interrupted, and how to go on with it."""
        if options.no_save:
            return "nothing is kept (--no-save)"
        if self.session is None or self.store is None:
            return ""
        info = self.session.info
        try:
            _, records = self.store.load(info.id)
        except LocalError:
            return ""
        if len(records) < len(self.session.log):  # what could not be saved has been told
            return ""
        here = info.folder == this_folder()
        said = self.session.log.messages[-1:]
        kept = "the question" if said and said[0].is_spoken else "what came"
        return f"{kept} is kept (mull ask {'--continue' if here else f'--session {info.id}'})"


async def _ask(
    options: Namespace,
    prompt: str,
    engine: Engine,
    asking: _Asking,
    toolbox: Toolbox | None,
) -> Status:
    """One turn of a session, shown as it comes."""
    assert asking.store is not None
    async with engine:
        session = asking.session = await _opened(options, engine, asking.store, toolbox)
        _announce(session.target)
        async with session:
            show = asking.show or _plain(options, session.snapshot(), has_tools=toolbox is not None)
            stream = asking.stream = session.submit(prompt)
            asking.show = show
            show.begin(session.target)
            async with stream:
                async for event in stream:
                    show.event(event)
            kept, asking.show = asking.kept, None
            show.end(kept)
            return _status(stream.result)


def _announce(target: Target) -> None:
    """Who watches is told what there is to wait for: the small model has to be started first."""
    if target.provider != EMBEDDED or not sys.stderr.isatty():
        return
    from mull.local.manage import embedded

    if embedded(data_dir() / EMBEDDED).status() is None:
        _say("starting the small model on this machine …")


def _status(result: Result) -> Status:
    """How it ended; a call of a tool that is not offered, and not a word, is no answer."""
    is_empty = result.message.tool_calls and not result.text
    return "no_answer" if is_empty and result.status == "complete" else result.status


def _say(text: str) -> None:
    print(f"mull: {text}", file=sys.stderr)


def _store(options: Namespace) -> SessionStore:
    """Where the session is kept; for one that is not, the memory of this process."""
    if not options.no_save:
        from mull.store.sessions.sqlite import open_sessions

        return open_sessions(_say)
    if options.go_on or options.session:
        raise ConfigError("a session that is gone on with is kept: leave --no-save out")
    from mull.store.sessions.memory import MemorySessions

    return MemorySessions()


def _approver(options: Namespace) -> Approver | None:
    """Somebody to ask, if a person sits here and nothing else is written to the screen."""
    machine = options.json or options.stream_json
    if options.tools in (None, "none") or machine or not sys.stderr.isatty():
        return None
    from mull.cli.approve import LineApprover, find_terminal

    terminal = find_terminal()
    return LineApprover(*terminal) if terminal else None


async def _opened(
    options: Namespace, engine: Engine, store: SessionStore, toolbox: Toolbox | None
) -> Session:
    """The session that the options mean, with a model that can be used if they name none."""
    wanted = opening.wanted(options)
    begin = partial(
        open_kept,
        store,
        engine,
        toolbox=toolbox,
        warn=_say,
        max_tokens=options.max_tokens,
        temperature=options.temperature,
    )
    try:
        return await begin(opening=wanted)
    except NoModelError:
        if options.base_url is not None:
            raise
    from mull.tui.first import NO_MODEL, best_offer

    found = await best_offer(engine, store)
    if found is None:
        raise NoModelError(NO_MODEL)
    _say(f"no model is named: using {found.name} ({found.about}); -m names another")
    return await begin(opening=replace(wanted, model=found.name))


def exit_status(status: Status) -> int:
    """The exit status for the way an answer ended."""
    if status in ("complete", "truncated"):
        return EXIT["answer"]
    if status in ("no_answer", "truncated_in_reasoning"):
        return EXIT["no answer"]
    return EXIT["network"] if status == "interrupted" else EXIT["refused"]


def _plain(options: Namespace, shown: Snapshot, *, has_tools: bool) -> Show:
    place = options.thinking
    if place is None:
        visible = sys.stdout.isatty() and shown["reasoning.includeInResponse"]
        place = "show" if visible else "hide"
    return Plain(sys.stdout, sys.stderr, thinking=place, has_tools=has_tools)


def _prompt(options: Namespace) -> str:
    parts = [_readable(" ".join(options.prompt))]
    if options.file is not None:
        try:
            parts.append(options.file.read_text(encoding="utf-8", errors="replace"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot read {options.file}: {error}") from None
    if not sys.stdin.isatty():
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        parts.append(sys.stdin.read())
    text = "\n\n".join(part.strip("\n") for part in parts if part.strip())
    if not text:
        raise ConfigError('nothing was asked: write mull ask "your question"')
    if _NO_TEXT in text:
        _say(f"some of what was given is no text: each such place is sent as {_NO_TEXT}")
    return text


def _readable(argument: str) -> str:
    """An argument with a sign in the place of bytes that are no text."""
    return os.fsencode(argument).decode(errors="replace")
