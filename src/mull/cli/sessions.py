"""`mull sessions`: list, search, show, follow, rename, copy and delete stored sessions.

Alone it lists conversations; questions of `mull ask` are listed separately, with `--asks`. Only
`rename`, `fork`, `compress`, `delete` and `repair` change anything, and only the last three require
the session to be idle. Commands apply to the sessions of this folder unless `--all` is given; an id
or a name is found anywhere.
"""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace, _SubParsersAction
from typing import TYPE_CHECKING, Any, get_args

from mull.cli.session_compress import add_compress, add_name_arguments, name_for
from mull.cli.session_context import add_context
from mull.cli.setup import tell
from mull.cli.transcripts import add_export, add_import
from mull.neutral.errors import LocalError, SessionError
from mull.store.sessions.values import SearchKind

if TYPE_CHECKING:
    from mull.store.sessions.values import Hit, SessionInfo, SessionStore
    from mull.tui.screen.depth import Depth

__all__ = ["arguments", "run"]

_NOTHING_FOUND = 1


def arguments(parser: ArgumentParser) -> None:
    """Add the subcommands."""
    parser.set_defaults(action=_list, asks=False, all=False, json=False)
    _add_listing(parser)
    actions = parser.add_subparsers(metavar="ACTION")
    _add_listing(
        _action(
            actions, "list", _list, "list the conversations of this folder; * marks running ones"
        )
    )
    show = _action(actions, "show", _show, "print a session")
    _add_session(show)
    show.add_argument("--thinking", action="store_true", help="also print thinking")
    _add_json(show)
    rename = _action(actions, "rename", _rename, "name a session")
    _add_session(rename)
    add_name_arguments(rename)
    fork = _action(actions, "fork", _fork, "copy a session, to continue it in another direction")
    _add_session(fork)
    fork.add_argument("--at", type=int, metavar="TURN", help="copy up to the end of this turn")
    fork.add_argument("--name", metavar="NAME", help="a name for the copy")
    delete = _action(actions, "delete", _delete, "delete sessions permanently")
    _add_session(delete, nargs="+")
    delete.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    search = _action(actions, "search", _search, "search messages, thinking and tool calls")
    search.add_argument(
        "words",
        nargs="+",
        metavar="WORD",
        help="all of them must occur; quote a phrase; a trailing * matches any ending",
    )
    search.add_argument(
        "--in", dest="kind", choices=get_args(SearchKind), help="search only these texts"
    )
    search.add_argument(
        "--limit", type=int, default=50, metavar="N", help="maximum number of results (50)"
    )
    _add_all(search, "search the sessions of all folders")
    _add_json(search)
    tail = _action(actions, "tail", _tail, "follow the thinking of a running session")
    _add_session(tail, nargs="?")
    tail.add_argument("--all-text", action="store_true", help="also follow the answers")
    add_context(actions)
    add_compress(actions)
    add_export(actions)
    add_import(actions)
    _action(actions, "repair", _repair, "repair a damaged store as far as it can be read")
    _action(actions, "path", _path, "print the path of the session store")


def run(options: Namespace) -> int:
    """Run the chosen subcommand.

    Raises:
        LocalError: the session does not exist, or the store cannot be read or written.
    """
    status: int = options.action(options)
    return status


def _action(
    actions: _SubParsersAction[ArgumentParser], name: str, action: object, line: str
) -> ArgumentParser:
    parser = actions.add_parser(name, help=line, description=line)
    parser.set_defaults(action=action)
    return parser


def _add_session(parser: ArgumentParser, **more: Any) -> None:
    line = "id, start of the id, or name"
    default = (
        " (default: the session running in this folder, or its last)"
        if more.get("nargs") == "?"
        else ""
    )
    parser.add_argument("session", metavar="SESSION", help=line + default, **more)


def _add_all(parser: ArgumentParser, line: str) -> None:
    parser.add_argument("--all", action="store_true", help=line)


def _add_listing(parser: ArgumentParser) -> None:
    """Add the options of a listing; they may also precede `list`."""
    for option, line in (
        ("--asks", "list the questions of `mull ask` instead"),
        ("--all", "list the sessions of all folders"),
        ("--json", "print JSON"),
    ):
        parser.add_argument(option, action="store_true", default=SUPPRESS, help=line)


def _add_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _store() -> SessionStore:
    from mull.store.sessions.sqlite import open_sessions

    return open_sessions(tell)


def _here() -> str:
    from mull.store.sessions.sqlite import this_folder

    return this_folder()


def _print_json(value: object) -> None:
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _list(options: Namespace) -> int:
    from mull.cli.session_page import session_lines

    store = _store()
    folder = None if options.all else _here()
    asks = store.list(folder, kind="ask")
    listed = asks if options.asks else store.list(folder, kind="conversation")
    found = [(info, store.holder(info.id)) for info in listed]
    if options.json:
        import msgspec

        _print_json([{**msgspec.to_builtins(info), "runningIn": pid} for info, pid in found])
        return 0
    if found:
        print("\n".join(session_lines(found, folders=options.all)))
    else:
        what = "question of `mull ask`" if options.asks else "conversation" if asks else "session"
        rest = (
            "" if options.all else " in this folder; `mull sessions list --all` shows all folders"
        )
        print(f"No {what} stored yet{rest}.")
    if asks and not options.asks:
        count = "1 single question" if len(asks) == 1 else f"{len(asks):,} single questions"
        print(f"{count} of `mull ask`: `mull sessions --asks` lists them.")
    return 0


def _show(options: Namespace) -> int:
    from mull.cli.session_page import page
    from mull.store.sessions.journal import fold

    store = _store()
    info, records = store.load(store.find(options.session, _here()).id)
    running = store.holder(info.id)
    news, batches = store.news(info.id, len(records))
    records += news
    coming = fold(batches)
    if options.json:
        _print_json({"session": info, "records": records, "coming": coming, "runningIn": running})
    else:
        for line in page(info, records, coming, running=running, thinking=options.thinking):
            print(line)
    return 0


def _rename(options: Namespace) -> int:
    store = _store()
    info = store.find(options.session, _here())
    info = store.update(info.id, name=name_for(options, store, info))
    print(f"Session {info.id} is now called {info.name}.")
    return 0


def _fork(options: Namespace) -> int:
    from mull.cli.session_page import end_of_turn, turns_of

    store = _store()
    info, records = store.load(store.find(options.session, _here()).id)
    end = None
    if options.at is not None:
        if not 1 <= options.at <= info.turns:
            raise SessionError(f"session {info.id} has {turns_of(info)} and no turn {options.at}")
        end = end_of_turn(records, options.at)
    copy = store.fork(info.id, at=end, name=options.name)
    print(f"Session {copy.id} is a copy of {info.id} with {turns_of(copy)}.")
    return 0


def _delete(options: Namespace) -> int:
    store = _store()
    wanted = {info.id: info for name in options.session for info in [store.find(name, _here())]}
    if not options.yes and not _agreed([*wanted.values()]):
        print("Nothing was deleted.")
        return 1
    for session in wanted:
        store.delete(session)
        print(f"Deleted session {session}.")
    return 0


def _agreed(sessions: list[SessionInfo]) -> bool:
    from mull.cli.session_page import session_lines

    if not sys.stdin.isatty():
        raise LocalError(
            "sessions are deleted permanently: add --yes when there is no terminal to ask at"
        )
    print("\n".join(session_lines([(info, None) for info in sessions], folders=True)))
    what = "this session" if len(sessions) == 1 else f"these {len(sessions)} sessions"
    try:
        answer = input(f"Delete {what} permanently? [y/N] ")
    except EOFError:
        return False
    return answer.strip().lower() in ("y", "yes")


def _search(options: Namespace) -> int:
    from mull.cli.session_page import hit_lines
    from mull.tui.text.safe import draw_on

    if options.limit < 1:
        raise LocalError("--limit must be at least 1")
    folder = None if options.all else _here()
    hits = _store().search(options.words, options.kind, folder, options.limit)
    if options.json:
        _print_json([_hit_json(hit) for hit in hits])
    else:
        bold = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        depth: Depth = "16" if bold else "none"
        for hit in hits:
            draw_on(sys.stdout, hit_lines(hit, depth))
        if not hits:
            where = "" if options.all else " in this folder; --all searches all folders"
            print(f"mull: no matches{where}", file=sys.stderr)
    return 0 if hits else _NOTHING_FOUND


def _hit_json(hit: Hit) -> dict[str, object]:
    info = hit.session
    return {
        "session": info.id,
        "name": info.name,
        "title": info.title,
        "folder": info.folder,
        "position": hit.position,
        "turn": hit.turn,
        "kind": hit.kind,
        "parts": hit.parts,
    }


def _tail(options: Namespace) -> int:
    from mull.cli.session_tail import follow

    store, folder = _store(), _here()
    if options.session is None:
        infos = store.list(folder)
        running = (info for info in infos if store.holder(info.id) is not None)
        info = next(running, None) or store.last(folder)
        if info is None:
            raise SessionError(
                "no session is stored for this folder: see `mull sessions list --all`"
            )
    else:
        info = store.find(options.session, folder)
    if not follow(store, info.id, sys.stdout, answers=options.all_text):
        sys.stdout.flush()
        print(f"mull: session {info.id} is not running", file=sys.stderr)
    return 0


def _repair(options: Namespace) -> int:
    from mull.store.sessions.sqlite import SqliteSessions, sessions_path

    print(SqliteSessions(sessions_path(), tell=tell).repair())
    return 0


def _path(options: Namespace) -> int:
    from mull.store.sessions.sqlite import sessions_path

    print(sessions_path())
    return 0
