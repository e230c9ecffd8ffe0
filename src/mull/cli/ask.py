"""`mull ask`: one question, one answer, for terminals and pipes alike.

Standard output contains only the answer unless it is a terminal; thinking and notes go to standard
error. The exit status says how it went.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mull.agent.engine import EMBEDDED, Engine
from mull.agent.opening import open_kept
from mull.cli import interrupt, opening, setup
from mull.cli.asking import Asking
from mull.cli.draw import Plain, has_only_unknown
from mull.cli.question import Question, read_question
from mull.neutral.errors import (
    ConfigError,
    MisfitError,
    MullError,
    NetworkError,
    NoModelError,
    RefusedError,
)
from mull.neutral.messages import Status
from mull.settings.layers import Snapshot
from mull.store.paths import data_dir

if TYPE_CHECKING:
    from mull.agent.results import Result
    from mull.agent.session import Session
    from mull.agent.structured import Shape
    from mull.agent.toolbox import Toolbox
    from mull.agent.tools.approve import Approver
    from mull.cli.draw import Show
    from mull.neutral.target import Target
    from mull.store.sessions.values import SessionStore

__all__ = ["EXIT", "arguments", "exit_status", "run"]

EXIT = {
    "answer": 0,
    "refused": RefusedError.exit_status,
    "no answer": 4,
    "network": NetworkError.exit_status,
    "misfit": MisfitError.exit_status,
    "interrupted": 130,
}
"""Exit statuses for the ways an answer can end; errors have their own."""

_TEXT = """\
Asks a model and prints its answer. The question comes from the arguments and, if standard
input is piped, from there. Attach files with -f or with @FILE in the question: text,
pictures, PDFs and audio are sent in their own formats. Without a question, the first text
file is the question.

exit status: 0 answer, 2 usage error, 3 rejected by the provider, 4 no answer,
5 network error, 6 the answer does not match the schema, 130 interrupted
"""
_EXAMPLES = """\
examples:
  mull ask -m claude-sonnet-4-5/high "Why is the sky blue?"
  mull ask "What does @src/main.py do, and why does it draw this?" -f screen.png
  git diff | mull ask -m kimi-k2-thinking --thinking stderr "Review this" > review.md
  mull ask --schema shop.py:Invoice -f invoice.pdf "Read this invoice" | jq .total
  mull ask -m local/smollm2 --json "Say hello" | jq .thinking
  mull ask --continue "And at night?"
  mull ask -m kimi-k2-thinking --tools all --yes "Why does make test fail? Mend it."
"""


def arguments(parser: ArgumentParser) -> None:
    """Add the question and everything that shapes the answer."""
    parser.description, parser.epilog = _TEXT, _EXAMPLES
    parser.add_argument("prompt", nargs="*", help="the question; @FILE in it attaches a file")
    parser.add_argument(
        "-f",
        "--file",
        action="append",
        default=[],
        metavar="FILE",
        help="attach a file: text, picture, PDF or audio; may be repeated",
    )
    setup.add_model_argument(parser)
    setup.add_arguments(parser, keeps=True)
    parser.add_argument("--system", metavar="TEXT", help="system prompt")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="token limit of the answer")
    parser.add_argument("--temperature", type=float, metavar="T", help="sampling temperature")
    parser.add_argument("--base-url", metavar="URL", help="base URL of the endpoint")
    parser.add_argument(
        "--thinking",
        choices=("show", "hide", "stderr"),
        help="where thinking is printed; by default shown on a terminal, hidden in a pipe",
    )
    parser.add_argument(
        "--schema",
        metavar="SCHEMA",
        help="print a JSON value that matches this schema: a file with a JSON schema, or "
        "module:Name of a pydantic model, msgspec Struct, dataclass or TypedDict",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object at the end")
    form.add_argument("--stream-json", action="store_true", help="print each event as a JSON line")
    opening.add_session_arguments(parser, "question of `mull ask`")
    parser.add_argument("--no-save", action="store_true", help="do not store this session")
    opening.add_tool_arguments(parser)


def run(options: Namespace) -> int:
    """Ask, show the answer as it arrives, and return the exit status.

    Raises:
        LocalError: the question, the model or an option is invalid.
    """
    show = _machine(options)
    asking = Asking(is_saved=not options.no_save, show=show)
    try:
        return exit_status(_answered(options, asking))
    except MullError as error:
        if asking.show is None:
            raise
        asking.show.failed(error, asking.kept)
        if asking.is_untold:
            raise  # usage errors are reported to people too
        return error.exit_status
    except KeyboardInterrupt:
        if asking.show is not None:
            asking.show.interrupted(asking.left(), asking.kept)
        return EXIT["interrupted"]


def _machine(options: Namespace) -> Show | None:
    """The JSON output, if it was requested."""
    if not options.json and not options.stream_json:
        return None
    from mull.cli.draw_json import JsonLines, JsonObject

    if options.json:
        return JsonObject(sys.stdout, sys.stderr)
    return JsonLines(sys.stdout, sys.stderr)


def _answered(options: Namespace, asking: Asking) -> Status:
    question = read_question(options)
    if options.schema is not None:
        from mull.cli.schema import load_shape

        asking.shape = load_shape(options.schema)
    engine = Engine(setup.load(options))
    toolbox = opening.pack_tools(options, engine, _approver(options), warn=setup.tell)
    asking.store = _store(options)
    return interrupt.run(_ask(options, question, engine, asking, toolbox))


async def _ask(
    options: Namespace,
    question: Question,
    engine: Engine,
    asking: Asking,
    toolbox: Toolbox | None,
) -> Status:
    """One turn of a session, shown as it arrives; a second one if the answer does not match the
    schema.
    """
    assert asking.store is not None
    async with engine:
        session = asking.session = await _opened(options, engine, asking.store, toolbox)
        async with session:
            if session.was_cut_off:
                cut = "ended in the middle of an answer, and what had arrived is kept"
                setup.tell(f"session {session.info.id} {cut}")
            said = question.message(session.target)
            _announce(session.target)
            show = asking.show or _plain(options, session.snapshot(), asking.shape, toolbox)
            asking.begin(session, said)
            asking.show = show
            show.begin(session.target)
            await asking.listen()
            asking.show = None
            show.end(asking.kept)
            return _status(asking.kept.result, asking.shape)


def _announce(target: Target) -> None:
    """Tell a watching user what takes time: the embedded model has to be started first."""
    if target.provider != EMBEDDED or not sys.stderr.isatty():
        return
    from mull.local.manage import embedded

    if embedded(data_dir() / EMBEDDED).status() is None:
        setup.tell("starting the embedded model …")


def _status(result: Result | None, shape: Shape | None) -> Status:
    """How it ended; nothing but calls of tools that are not offered, or blocks that mull does not
    know, is no answer.
    """
    assert result is not None
    is_empty = shape is None and (result.message.tool_calls or has_only_unknown(result.message))
    is_empty = is_empty and not result.text and result.status == "complete"
    return "no_answer" if is_empty else result.status


def _store(options: Namespace) -> SessionStore:
    """The store of the session; in memory for a session that is not stored."""
    if not options.no_save:
        from mull.store.sessions.sqlite import open_sessions

        return open_sessions(setup.tell)
    if options.go_on or options.session:
        raise ConfigError("a continued session is always stored: leave out --no-save")
    from mull.store.sessions.memory import MemorySessions

    return MemorySessions()


def _past(options: Namespace, store: SessionStore) -> SessionStore:
    """The store of earlier sessions; there are some for one that is not stored, too."""
    from mull.store.sessions.sqlite import open_sessions, sessions_path

    if options.no_save and sessions_path().exists():
        return open_sessions(setup.tell)
    return store


def _approver(options: Namespace) -> Approver | None:
    """An approver, if a user is present and nothing else writes to the screen."""
    machine = options.json or options.stream_json
    if options.tools in (None, "none") or machine or not sys.stderr.isatty():
        return None
    from mull.cli.approve import LineApprover, find_terminal

    terminal = find_terminal()
    return LineApprover(*terminal) if terminal else None


async def _opened(
    options: Namespace, engine: Engine, store: SessionStore, toolbox: Toolbox | None
) -> Session:
    """The session that the options describe, with a usable model if they give none."""
    wanted = opening.wanted(options, "ask")
    begin = partial(
        open_kept,
        store,
        engine,
        toolbox=toolbox,
        warn=setup.tell,
        max_tokens=options.max_tokens,
        temperature=options.temperature,
    )
    try:
        return await begin(opening=wanted)
    except NoModelError:
        if options.base_url is not None:
            raise
    from mull.tui.first import NO_MODEL, best_offer

    past = _past(options, store)
    found, address = await best_offer(engine, past)
    if past is not store:
        past.close()
    if found is None:
        raise NoModelError(NO_MODEL)
    where = f" at {address}" if address else ""
    setup.tell(f"no model given: using {found.name}{where} ({found.about}); choose another with -m")
    engine.setup.settings.set_model(found.name, "stored")  # anything said now goes before its level
    return await begin(opening=replace(wanted, base_url=address))


def exit_status(status: Status) -> int:
    """The exit status for the way an answer ended."""
    if status in ("complete", "truncated"):
        return EXIT["answer"]
    if status in ("no_answer", "truncated_in_reasoning"):
        return EXIT["no answer"]
    return EXIT["network"] if status == "interrupted" else EXIT["refused"]


def _plain(
    options: Namespace, shown: Snapshot, shape: Shape | None, toolbox: Toolbox | None
) -> Show:
    place = options.thinking
    if place is None:
        visible = sys.stdout.isatty() and shown["reasoning.includeInResponse"]
        place = "show" if visible else "hide"
    is_value = shape is not None
    if sys.stdout.isatty() and _can_draw():
        from mull.cli.draw_terminal import OnTerminal

        return OnTerminal(sys.stdout, sys.stderr, thinking=place, is_value=is_value)
    has_tools = toolbox is not None
    return Plain(sys.stdout, sys.stderr, thinking=place, has_tools=has_tools, is_value=is_value)


def _can_draw() -> bool:
    """Whether escape sequences may be written to the terminal."""
    from mull.tui.screen.depth import colour_depth

    return colour_depth(os.environ, is_terminal=True) != "none"
