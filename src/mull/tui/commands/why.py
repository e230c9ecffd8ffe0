"""`/why`: what was asked for, what was sent, what was changed in between, and why.

`/why body` shows the request body. It never contains a key: keys are added when a request is sent,
and are masked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from mull.auth.static import MASK, key_headers
from mull.client.access import shown_url
from mull.neutral.errors import LocalError
from mull.neutral.request import Note, WireRequest
from mull.policy.prepare import Prepared
from mull.store.files import write_atomic
from mull.tui.commands.host import Host, page, path_of, path_words
from mull.tui.commands.known import Known
from mull.tui.commands.page import Page
from mull.tui.commands.words import spaced, split_words
from mull.tui.screen.front import Item

if TYPE_CHECKING:
    from mull.store.config import Config

__all__ = ["FORMS", "explain_request", "why_offers"]

_LONGEST = 400
"""Maximum characters shown of one text; a file gets all of them."""
FORMS = (
    ("/why", "what was asked for, sent and changed"),
    ("/why body", "the request body, with long texts shortened"),
    ("/why body FILE", "write the whole body to a file"),
)


async def explain_request(host: Host, text: str) -> None:
    """Explain the last request, or the next one if nothing was sent yet.

    Raises:
        LocalError: the request cannot be made, or the file already exists.
    """
    words = split_words(text)
    if words and (words[0] != "body" or len(words) > 2):
        raise LocalError("/why explains the last request, /why body [FILE] shows it")
    prepared = _sent(host) or host.session.prepared()
    if not words:
        return _explain(host, prepared)
    if len(words) == 2:
        return _write_body(host, prepared, words[1])
    _show_body(host, prepared)


def _sent(host: Host) -> Prepared | None:
    return host.sent if host.last else None


def _explain(host: Host, prepared: Prepared) -> None:
    shown, target = page(host), prepared.target
    last = host.last if prepared is host.sent else None
    shown.title("The last request" if last else "Nothing sent yet; the next request")
    rows = [
        ("to", f"{target.name} ({target.dialect})"),
        ("at", target.endpoint or "an address that is resolved when it runs"),
        ("counted", f"{prepared.tokens:,} tokens ({prepared.counter})"),
    ]
    usage = last.message.usage if last else None
    if usage is not None and usage.input is not None:
        rows.append(("reported", f"{usage.input:,} tokens read, {usage.output or 0:,} written"))
    shown.table(rows, (shown.theme.note, shown.theme.text))
    said = last.notes if last else ()
    notes = _merged((*said, *prepared.notes, *_encoded(prepared).notes))
    _show_outcomes(shown, [note for note in notes if note.requested is not None])
    changes = [note for note in notes if note.requested is None]
    shown.title("Changed" if changes else "Nothing was changed")
    for note in sorted(changes, key=lambda note: not note.warning):
        shown.note(f"{note.text} ({note.about})", warning=note.warning)
    shown.text("/why body shows the request body.", shown.theme.note)
    host.show(shown.lines)


def _merged(notes: Iterable[Note]) -> list[Note]:
    """Each note once: those about the whole turn come before those about one request."""
    kept: list[Note] = []
    for note in notes:
        if not any(earlier.replaces(note) for earlier in kept):
            kept.append(note)
    return kept


def _show_outcomes(shown: Page, notes: Sequence[Note]) -> None:
    theme = shown.theme
    for note in notes:
        shown.title(note.about)
        rows = [
            ("asked for", note.requested or "nothing"),
            ("became", note.effective or note.text),
            ("sent as", spaced(note.sent_as)),
        ]
        shown.table(rows, (theme.note, theme.text))


def _encoded(prepared: Prepared) -> WireRequest:
    from mull.dialects.registry import encode_request

    return encode_request(prepared.request, prepared.target)


def _show_body(host: Host, prepared: Prepared) -> None:
    shown, target, wire = page(host), prepared.target, _encoded(prepared)
    config = host.session.engine.setup.config
    shown.text(f"{wire.method} {shown_url(config, target, wire.path)}", shown.theme.accent)
    headers = {**wire.headers, **key_headers(target, MASK), **_own_headers(config, prepared)}
    for name, value in headers.items():
        shown.text(f"{name}: {value}", shown.theme.note)
    shown.blank()
    body = msgspec.json.encode(_shortened(msgspec.json.decode(wire.body)))
    shown.text(msgspec.json.format(body, indent=2).decode(), shown.theme.text)
    host.show(shown.lines)


def _own_headers(config: Config, prepared: Prepared) -> dict[str, str]:
    """The names of the headers from config.toml; any of them may contain a secret."""
    own = config.providers.get(prepared.target.provider.lower())
    return {name.lower(): MASK for name in own.headers} if own else {}


def _write_body(host: Host, prepared: Prepared, name: str) -> None:
    path = path_of(host, name)
    if path.exists():
        raise LocalError(f"{path_words(host, path)} already exists: choose another name")
    write_atomic(path, msgspec.json.format(_encoded(prepared).body, indent=2) + b"\n")
    host.tell(f"Wrote the body to {path_words(host, path)}.")


def _shortened(value: Any) -> Any:
    """The value with its long texts cut; each says how much is missing."""
    if isinstance(value, str):
        more = len(value) - _LONGEST
        return value if more <= 0 else f"{value[:_LONGEST]}… ({more:,} more characters)"
    if isinstance(value, list):
        return [_shortened(one) for one in value]
    if isinstance(value, Mapping):
        return {key: _shortened(one) for key, one in value.items()}
    return value


def why_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """`body`, then a file."""
    return [Item("body", "the request body")] if len(words) == 1 else known.files(words[-1])
