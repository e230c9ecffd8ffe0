"""`/set` and `/unset`: every value with the layer it comes from, and changes for this session.

An invalid key or value is rejected with the allowed ones, and the old value stays (ERR-001).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mull.neutral.errors import LocalError
from mull.settings.registry import CLEARING_WORDS, REGISTRY, Setting, find, format_value
from mull.tui.commands.change import change_setting, unset_setting
from mull.tui.commands.host import Host, page
from mull.tui.commands.known import Known
from mull.tui.commands.model import choose_model, model_offers
from mull.tui.commands.words import split_words
from mull.tui.screen.front import Item

__all__ = ["set_offers", "set_value", "unset_offers", "unset_value"]

_WIDE = 100
"""Minimum width for a line of help beside each value."""
_MODEL = "model"


async def set_value(host: Host, text: str) -> None:
    """Show all settings or one, or change one.

    Raises:
        LocalError: the key or value is not allowed; nothing has changed.
    """
    key, value = _key_and_value(text)
    if key is None:
        return _show_all(host)
    if key.lower() == _MODEL:
        return await choose_model(host, value or "")
    setting = find(key)
    if value is None:
        return _show_one(host, setting)
    if value.lower() in CLEARING_WORDS:
        return await unset_value(host, setting.key)
    change_setting(host, setting.key, value)
    _tell_value(host, setting.key)


async def unset_value(host: Host, text: str) -> None:
    """Remove a setting from the session, so that the layers below decide.

    Raises:
        LocalError: there is no such setting.
    """
    words = split_words(text)
    if len(words) != 1:
        raise LocalError("give one setting: /unset KEY")
    unset_setting(host, words[0])
    _tell_value(host, find(words[0]).key)


def _key_and_value(text: str) -> tuple[str | None, str | None]:
    """`KEY VALUE`, `KEY=VALUE`, `KEY` or nothing."""
    words = split_words(text)
    if not words:
        return None, None
    key, equals, value = words[0].partition("=")
    rest = [value, *words[1:]] if equals else words[1:]
    joined = " ".join(rest).removeprefix("= ").strip()
    return key, joined if equals or rest else None


def _tell_value(host: Host, key: str) -> None:
    snapshot = host.session.snapshot()
    shown = page(host)
    shown.text(f"{key} = {format_value(snapshot[key])} ({snapshot.origin(key)})")
    host.show(shown.lines)


def _show_all(host: Host) -> None:
    snapshot, shown = host.session.snapshot(), page(host)
    theme = shown.theme
    model = host.session.target.name
    shown.text(f"{_MODEL} {model} ({snapshot.model_origin or 'session'})")
    shown.blank()
    wide = shown.width >= _WIDE
    rows = [
        (key, format_value(value), snapshot.origin(key), *([REGISTRY[key].help] if wide else []))
        for key, value in snapshot.items()
    ]
    heads = ("setting", "value", "from", *([""] if wide else []))
    styles = (theme.text, theme.accent, theme.note, theme.note)
    shown.table(rows, styles, heads=heads, indent=0, give=1)
    shown.blank()
    shown.text(
        "/set KEY describes a setting, /set KEY VALUE changes it for this session.", theme.note
    )
    host.show(shown.lines)


def _show_one(host: Host, setting: Setting) -> None:
    snapshot, shown = host.session.snapshot(), page(host)
    theme = shown.theme
    shown.title(setting.key)
    rows = [
        ("value", f"{format_value(snapshot[setting.key])} ({snapshot.origin(setting.key)})"),
        ("default", format_value(setting.default)),
        ("allowed", setting.allowed),
        ("meaning", setting.help),
    ]
    shown.table(rows, (theme.note, theme.text))
    host.show(shown.lines)


def set_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """Keys, then the values of the key; models for a key whose value is a model."""
    if len(words) == 1 and "=" not in words[0]:
        return [*_keys(known), Item(_MODEL, known.session.target.name)]
    key, equals, _ = words[0].partition("=")
    before = f"{key}=" if equals and len(words) == 1 else ""
    if key.lower() == _MODEL:
        return () if before else model_offers(known, words[1:])
    setting = REGISTRY.get(key)
    if setting is None:
        return ()
    typed = words[-1].removeprefix(before)
    return [Item(before + item.name, item.about) for item in _values(known, setting, typed)]


def unset_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """The keys that the session sets."""
    snapshot = known.snapshot
    return [item for item in _keys(known) if snapshot.origin(item.name) in ("session", "stored")]


def _keys(known: Known) -> list[Item]:
    snapshot = known.snapshot
    return [
        Item(key, f"{format_value(snapshot[key])} ({snapshot.origin(key)})") for key in REGISTRY
    ]


def _values(known: Known, setting: Setting, typed: str) -> list[Item]:
    clearing = Item(CLEARING_WORDS[0], "use the value of the other layers")
    if setting.kind == "boolean":
        return [Item("true"), Item("false"), clearing]
    if setting.kind == "model":
        return [*(Item(name) for name in known.models.find(typed)), clearing]
    return [*(Item(word) for word in setting.choices), clearing]
