"""The user's keys: the table, overridden by `[keys]` in config.toml.

An action gets one key or several, in the usual notation: `view = "ctrl-t"`, `newline =
["alt-enter", "ctrl-j"]`, `edit = "ctrl-x ctrl-e"`; an empty list leaves it without one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from mull.neutral.errors import ConfigError
from mull.settings.words import closest, join_or, quote
from mull.tui.screen.keys import KEYS, LONE_ESC, Key

__all__ = ["keymap"]

_NAMED = (
    "enter", "tab", "backspace", "delete", "insert", "home", "end", "pageup", "pagedown", "up",
    "down", "left", "right", *(f"f{number}" for number in range(1, 13)),
)  # fmt: skip
_MOVES = ("left", "right", "up", "down", "home", "end", "delete", "pageup", "pagedown")
_SAME = {"c-m": "enter", "c-i": "tab", "c-h": "backspace", "c-[": LONE_ESC, "c-space": "c-@"}
"""Terminals send the same bytes for these."""
_NEEDED = ("enter", "interrupt")
_EXAMPLES = 'for example "ctrl-t", "alt-enter", "f2" or "ctrl-x ctrl-e"'


def keymap(own: Mapping[str, Sequence[str]], file: str = "config.toml") -> tuple[Key, ...]:
    """All keys, with the user's own in place of the built-in ones for the same action.

    Raises:
        ConfigError: an action or key is unknown, or two actions have the same key.
    """
    actions = tuple(dict.fromkeys(key.action for key in KEYS if key.action))
    for action, written in own.items():
        if action not in actions:
            near = closest(action, actions)
            hint = f"did you mean {near}?" if near else f"use {join_or(actions)}"
            hint += " (`mull keys set` stores a provider's API key)"
            raise ConfigError(f"{file}: keys.{action}: unknown action: {hint}")
        if not written and action in _NEEDED:
            raise ConfigError(f"{file}: keys.{action} needs a key: mull cannot be used without it")
    rows: list[Key] = []
    placed: set[str] = set()
    for key in KEYS:
        if key.action not in own or key.pressed[0].startswith("<"):
            rows.append(key)
        elif key.action not in placed:
            placed.add(key.action)
            rows += _own_rows(key, own[key.action], file)
    _check_apart(rows, file)
    return tuple(rows)


def _own_rows(key: Key, written: Iterable[str], file: str) -> Iterator[Key]:
    for number, text in enumerate(written):
        words = [
            (word,) if at and len(word) == 1 else _pressed(word)
            for at, word in enumerate(text.lower().split())
        ]
        pressed = tuple(one for word in words for one in word)
        if not all(words) or not pressed:
            raise ConfigError(
                f"{file}: keys.{key.action} cannot be {quote(text)}: give a key, {_EXAMPLES}"
            )
        line = key.line.partition(" (also ")[0] if number == 0 else f"the same as {key.action}"
        yield replace(key, pressed=pressed, shown=_shown(text), line=line)


def _pressed(word: str) -> tuple[str, ...]:
    """A key in prompt_toolkit's notation; empty if it is unknown or only types itself."""
    *held, name = word.split("-") if not word.endswith("-") else [*word[:-2].split("-"), "-"]
    held = [one for one in held if one]
    if name in ("esc", "escape"):
        return () if held else (LONE_ESC,)
    alt = ("escape",) if "alt" in held else ()
    others = [one for one in held if one != "alt"]
    if name == "enter" and (alt or others == ["shift"]):
        return ("escape", "enter")
    plain = _plain(name, others, with_alt=bool(alt))
    return (*alt, plain) if plain else ()


def _plain(name: str, held: list[str], *, with_alt: bool) -> str:
    if not held:
        is_letter = with_alt and len(name) == 1 and name.isprintable()
        return name if name in _NAMED or is_letter else ""
    if held == ["ctrl"]:
        control = f"c-{name}"
        is_one = (len(name) == 1 and (name in "@[\\]^_" or "a" <= name <= "z")) or name in _MOVES
        return _SAME.get(control, control if is_one or name == "space" else "")
    if held == ["shift"]:
        return "s-tab" if name == "tab" else f"s-{name}" if name in _MOVES else ""
    return ""


def _shown(text: str) -> str:
    """`ctrl-x ctrl-e` as shown in /help."""
    words = ["-".join(part.capitalize() for part in word.split("-")) for word in text.split()]
    return " ".join(words)


def _check_apart(rows: Sequence[Key], file: str) -> None:
    """Raises ConfigError if a key would have two meanings, or hide a longer sequence."""
    for at, one in enumerate(rows):
        for other in rows[at + 1 :]:
            short, long = sorted((one.pressed, other.pressed), key=len)
            if long[: len(short)] == short and one.action != other.action:
                shown = " ".join(filter(None, (one.shown or other.shown,)))
                raise ConfigError(
                    f"{file}: keys: {shown} is assigned to both "
                    f"{one.action or 'searching'} and {other.action or 'searching'}: "
                    "give one of them another key, or []"
                )
