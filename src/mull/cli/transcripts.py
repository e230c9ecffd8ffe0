"""`mull sessions export` and `import`: stored conversations as files, and files as sessions.

An export is written completely or not at all, and an existing file is overwritten only on request.
A failed import leaves no session behind.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter, _SubParsersAction
from pathlib import Path
from typing import TYPE_CHECKING

from mull.agent.exports import (
    FORMATS,
    ONLY_SHOWN,
    exported,
    format_of,
    pricing,
    transcript_of,
)
from mull.cli.session_context import stored_session
from mull.cli.setup import tell
from mull.neutral.errors import CatalogError, ConfigError

if TYPE_CHECKING:
    from mull.agent.setup import Setup
    from mull.neutral.target import Target
    from mull.store.sessions.values import SessionInfo, SessionStore
    from mull.transcripts.transcript import Transcript

__all__ = ["add_export", "add_import"]

_EXPORT = """\
Writes a session for people (md, html), or complete, for programs and for another
mull (json, jsonl). Without -o it prints to standard output.
"""
_EXPORT_EXAMPLES = """\
examples:
  mull sessions export -o talk.html
  mull sessions export 260731-k4x9q --format md --no-thinking > talk.md
  mull sessions export "fix the retry" -o talk.jsonl
"""
_IMPORT = """\
Creates a session from a file: an export of mull (json, jsonl), or the messages of
a request to OpenAI (Chat Completions, Responses), Anthropic or Gemini, with
their reasoning.
"""
_IMPORT_EXAMPLES = """\
examples:
  mull sessions import talk.jsonl
  mull sessions import messages.json --name "old talk" --from anthropic/claude-sonnet-4-5
"""


def add_export(actions: _SubParsersAction[ArgumentParser]) -> None:
    """Add the subcommand `export`."""
    line = "export a session as Markdown, HTML, JSON or JSONL"
    parser = _subcommand(actions, "export", line, _EXPORT, _EXPORT_EXAMPLES)
    parser.add_argument(
        "session",
        nargs="?",
        metavar="SESSION",
        help="id or name (default: this folder's last session)",
    )
    parser.add_argument(
        "--format", choices=FORMATS, help="output format (default: by file extension, or md)"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to this file")
    parser.add_argument("--no-thinking", action="store_true", help="leave out thinking (md, html)")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    parser.set_defaults(action=_export)


def add_import(actions: _SubParsersAction[ArgumentParser]) -> None:
    """Add the subcommand `import`."""
    line = "create a session from an export or a list of messages"
    parser = _subcommand(actions, "import", line, _IMPORT, _IMPORT_EXAMPLES)
    parser.add_argument("file", metavar="FILE", help="- reads standard input")
    parser.add_argument("--name", metavar="NAME", help="name of the session")
    parser.add_argument(
        "--from",
        dest="writer",
        metavar="MODEL",
        help="the model that wrote the answers; it gets signatures and the like back",
    )
    parser.set_defaults(action=_import)


def _subcommand(
    actions: _SubParsersAction[ArgumentParser], name: str, line: str, text: str, examples: str
) -> ArgumentParser:
    return actions.add_parser(
        name,
        help=line,
        description=text,
        epilog=examples,
        formatter_class=RawDescriptionHelpFormatter,
    )


def _export(options: Namespace) -> int:
    path: Path | None = options.output
    form = options.format or (format_of(path) if path else "md")
    if options.no_thinking and form not in ONLY_SHOWN:
        raise ConfigError(
            f"--no-thinking works only with {' and '.join(ONLY_SHOWN)}: {form} always "
            "holds the whole session"
        )
    if path is not None and path.exists() and not options.force:
        raise ConfigError(f"{path} already exists: choose another name, or add --force")
    transcript = _load(options.session)
    data = exported(transcript, form, thinking=not options.no_thinking)
    if path is None:
        if sys.stdout.isatty():  # neutralised on a terminal
            print(data.decode("utf-8", "replace"), end="")
        else:
            sys.stdout.buffer.write(data)
        return 0
    from mull.store.files import write_atomic

    write_atomic(path, data)
    print(f"Wrote {path} ({len(data) / 1000:,.0f} kB).")
    return 0


def _load(reference: str | None) -> Transcript:
    """The session with everything on disk, including an answer that is still arriving."""
    from mull.store.sessions.journal import fold

    store, found = stored_session(reference)
    info, records = store.load(found.id)
    news, journal = store.news(info.id, len(records))
    return transcript_of(info, [*records, *news, *fold(journal)], pricing(_setup()))


def _import(options: Namespace) -> int:
    from mull.transcripts.reading import read_transcript

    ready = _setup()
    writer = ready.resolve(options.writer) if options.writer else None
    try:
        transcript = read_transcript(_read(options.file), written_by=writer, tell=tell)
    except ConfigError as error:
        name = "standard input" if options.file == "-" else options.file
        raise ConfigError(f"cannot import {name}: {error}") from None
    info = _stored(_store(), transcript, ready, options.name)
    turns = f"{info.turns:,} turn{'' if info.turns == 1 else 's'}"
    print(f"Imported as session {info.id} ({turns}): {info.label}")
    return 0


def _stored(
    store: SessionStore, transcript: Transcript, ready: Setup, name: str | None
) -> SessionInfo:
    from mull.store.sessions.sqlite import this_folder

    model = transcript.model
    info, hold = store.draft(
        folder=this_folder(),
        name=name,
        model=model if model and _resolved(ready, model) else None,
        system=transcript.system,
    )
    with hold:
        return store.begin(info, *transcript.records)


def _resolved(ready: Setup, name: str) -> Target | None:
    try:
        return ready.resolve(name)
    except CatalogError:
        return None


def _setup() -> Setup:
    """Only catalog and config: an export must not fail because of a damaged profile."""
    from mull.agent.setup import load_setup
    from mull.settings.words import NO_PROFILE

    return load_setup(profile=NO_PROFILE, warn=tell)


def _store() -> SessionStore:
    from mull.store.sessions.sqlite import open_sessions

    return open_sessions(tell)


def _read(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(error.strerror or str(error)) from None
