"""`/export`: writes this session to a file, for people or for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from mull.agent.exports import FORMATS, ONLY_SHOWN, exported, format_of, pricing, transcript_of
from mull.neutral.errors import LocalError
from mull.settings.words import quote
from mull.store.files import write_atomic
from mull.tui.commands.host import Host, path_of, path_words
from mull.tui.commands.known import Known
from mull.tui.commands.words import single, split_words
from mull.tui.screen.front import Item

__all__ = ["FORMS", "export_offers", "export_session"]

_FORCE, _NO_THINKING = "--force", "--no-thinking"
_DEFAULT = "html"
FORMS = (
    ("/export", "an HTML page in the working folder"),
    ("/export FILE", f"format by file extension: {', '.join(FORMATS)}"),
    (f"/export FILE {_NO_THINKING}", f"without thinking ({', '.join(ONLY_SHOWN)})"),
    (f"/export FILE {_FORCE}", "overwrite an existing file"),
)


async def export_session(host: Host, text: str) -> None:
    """Write the session; an existing file is overwritten only on request.

    Raises:
        LocalError: the file extension is unknown, or the file already exists.
    """
    session, words = host.session, split_words(text)
    options = {word for word in words if word.startswith("--")}
    if unknown := options - {_FORCE, _NO_THINKING}:
        raise LocalError(
            f"unknown option {quote(min(unknown))} for /export: use {_FORCE} or {_NO_THINKING}"
        )
    name = single([word for word in words if word not in options], "/export [FILE]")
    path = path_of(host, name) if name else _free(path_of(host, "."), session.info.id)
    form = format_of(path)
    if _NO_THINKING in options and form not in ONLY_SHOWN:
        raise LocalError(
            f"{_NO_THINKING} works only with {' and '.join(ONLY_SHOWN)}: {form} always "
            "holds the whole session"
        )
    if path.exists() and _FORCE not in options:
        raise LocalError(
            f"{path_words(host, path)} already exists: choose another name, or add {_FORCE}"
        )
    price = pricing(session.engine.setup)
    transcript = transcript_of(session.info, tuple(session.log), price)
    data = exported(transcript, form, thinking=_NO_THINKING not in options)
    write_atomic(path, data)
    host.tell(f"Wrote {path_words(host, path)} ({len(data) / 1000:,.0f} kB).")


def _free(folder: Path, session: str) -> Path:
    """An unused name in the folder."""
    path, number = folder / f"mull-{session}.{_DEFAULT}", 1
    while path.exists():
        number += 1
        path = folder / f"mull-{session}-{number}.{_DEFAULT}"
    return path


def export_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """Files and folders, and the options."""
    if words[-1].startswith("--"):
        return [Item(_NO_THINKING, "leave out thinking"), Item(_FORCE, "overwrite")]
    return known.files(words[-1])
