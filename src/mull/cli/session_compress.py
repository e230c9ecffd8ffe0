"""`mull sessions compress` and `rename --auto`: requests to a model about a stored session.

A summary changes what is sent from then on, a title changes the session's name; the messages stay
unchanged. If the model gives neither, nothing changes and the reason is reported.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from typing import TYPE_CHECKING

from mull.cli import setup
from mull.cli.session_context import add_session_command, engine_for, stored_session
from mull.cli.setup import tell
from mull.neutral.errors import LocalError, SessionError
from mull.settings.registry import REGISTRY

if TYPE_CHECKING:
    from mull.agent.session import Session
    from mull.neutral.events import Compressed, Event
    from mull.policy.compress.plan import Strategy
    from mull.store.sessions.values import SessionInfo, SessionStore

__all__ = ["add_compress", "add_name_arguments", "name_for"]


def add_compress(actions: _SubParsersAction[ArgumentParser]) -> None:
    """Add the subcommand `compress`."""
    line = "replace earlier messages in requests with a summary; what is stored does not change"
    parser = add_session_command(actions, "compress", line)
    parser.add_argument(
        "-m",
        "--model",
        dest="sets",
        action="append",
        type="compression.model={}".format,
        metavar="MODEL",
        help="the model that summarises; same as --set compression.model=MODEL",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--strategy", choices=REGISTRY["compression.strategy"].choices, help="compression strategy"
    )
    how.add_argument("--undo", action="store_true", help="undo the last summary")
    parser.set_defaults(action=_compress)


def add_name_arguments(parser: ArgumentParser) -> None:
    """Add the name, or the option to let a model choose one."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="the new name")
    parser.add_argument(
        "--auto", action="store_true", help="let the session's model choose a title"
    )
    setup.add_arguments(parser)


def name_for(options: Namespace, store: SessionStore, info: SessionInfo) -> str:
    """The given name, or a title from the session's model.

    Raises:
        LocalError: there is neither.
    """
    name: str | None = options.name
    if options.auto == (name is not None):
        raise LocalError("give a name, or --auto to let the session's model choose a title")
    if name is not None:
        return name
    from mull.agent.side import Side, make_title
    from mull.cli import interrupt
    from mull.history.log import Log
    from mull.store.sessions.names import LONGEST_NAME

    engine = engine_for(options, info)
    side = Side.to(engine, info.model, info.base_url)
    log = Log(records=store.load(info.id)[1])

    async def ask() -> str | None:
        try:
            return await make_title(side, log)
        finally:
            await engine.close()

    title = interrupt.run(ask())
    if title is None:
        raise SessionError(
            f"{side.target.name} gave no title, and nothing was changed: give a name yourself"
        )
    return title if len(title) <= LONGEST_NAME else title[: LONGEST_NAME - 1] + "…"


def _compress(options: Namespace) -> int:
    from mull.agent.session import Session
    from mull.cli import interrupt
    from mull.store.sessions.writing import go_on_writing

    store, info = stored_session(options.session)
    with Session(
        go_on_writing(store, info.id), engine=engine_for(options, info), warn=tell
    ) as session:
        if options.undo:
            if not session.undo_compression():
                raise SessionError(f"session {info.id} has no summary to undo")
            print("Undid the last summary: the messages it replaced are sent again.")
        else:
            done = interrupt.run(_compressed(session, options.strategy))
            print(f"C{done.text[1:]}: {done.before:,} → {done.after:,} tokens.")
    return 0


async def _compressed(session: Session, strategy: Strategy | None) -> Compressed:
    """What was saved.

    Raises:
        SessionError: nothing was; says why.
    """
    from mull.neutral.events import Compressed, Progressed, Warned

    ends: list[Compressed] = []

    def say(event: Event) -> None:
        if isinstance(event, Compressed):
            ends.append(event)
        elif isinstance(event, Progressed | Warned):
            tell(event.text)

    try:
        await session.compress(say, strategy)
    finally:
        await session.aclose()
        await session.engine.close()
    if not ends[-1].ok:
        raise SessionError(ends[-1].text)
    return ends[-1]
