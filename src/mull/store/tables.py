"""How the tables of a TOML file are read and checked, and how a mistake in one is spoken of.

A misspelt key would do nothing in silence, so every key is checked; an error names the file, the
table and what may stand there. Which keys there are is for those to say who read a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from mull.neutral.errors import ConfigError, SettingError
from mull.neutral.patterns import pattern
from mull.settings.registry import REGISTRY
from mull.settings.words import closest, join_or, quote, quote_value

__all__ = [
    "VARIABLE",
    "Problems",
    "check_keys",
    "decode_toml",
    "is_address",
    "read_headers",
    "refused",
    "table_of",
]

_T = TypeVar("_T")

VARIABLE = pattern(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
"""The name of an environment variable."""
_HEADER = pattern(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_LONG_KEY = pattern(
    r"""(?:^|[\[{,])[ \t]*+(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){100}""",
    re.MULTILINE,
)
"""A dotted key that is no setting: tomllib takes memory by the square of its parts."""
_URL = pattern(r"https?://[^\s/?#]+\S*", re.IGNORECASE)


def decode_toml(data: bytes, file: str) -> dict[str, Any]:
    """The tables of a file.

    Raises:
        ConfigError: it is not TOML; says where.
    """
    import tomllib  # many have no such file

    try:
        text = data.decode("utf-8-sig")
        if _LONG_KEY.search(text):
            raise RecursionError
        return tomllib.loads(text)
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not UTF-8 text: save it as UTF-8") from None
    except RecursionError:
        raise ConfigError(f"{file} is nested too deeply to be read") from None
    except tomllib.TOMLDecodeError as error:
        text, _, place = str(error).removesuffix(")").rpartition(" (at ")
        where = ", at its end" if place == "end of document" else f", {place}"
        # tomllib quotes the character it stumbled over with repr, so this stays one line
        raise ConfigError(f"{file}{where}: {text[:1].lower()}{text[1:]}") from None
    except ValueError as error:  # a number with more digits than Python converts
        raise ConfigError(f"{file}: {error}") from None


def check_keys(table: Mapping[str, Any], known: Collection[str], where: str) -> None:
    """Refuse a table that holds what is unknown.

    Raises:
        ConfigError: it does; names what was meant, or all there is.
    """
    for key in table:
        if key in known:
            continue
        if any(setting.namespace == key for setting in REGISTRY.values()):
            raise ConfigError(
                f"{where}: {key} is at the top level: settings belong under [settings]"
            )
        near = closest(key, known)
        hint = f"did you mean {near}?" if near else f"use {join_or(known)}"
        raise ConfigError(f"{where}: {quote(key)} is unknown: {hint}")


def table_of(tables: Mapping[str, Any], key: str, file: str) -> dict[str, Any]:
    """The table under a key; a missing one is empty.

    Raises:
        ConfigError: something else stands there.
    """
    table = tables.get(key, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: {key} cannot be {quote_value(table)}: use a table, [{key}]")
    return table


def is_address(value: object) -> bool:
    """Whether this is an http or https address."""
    return isinstance(value, str) and _URL.fullmatch(value) is not None


def read_headers(value: object, where: str) -> dict[str, str]:
    """Headers of HTTP requests by their names.

    Raises:
        ConfigError: it is not a table, or a name or value would not be one header.
    """
    if not isinstance(value, dict):
        raise refused(where, "headers", value, 'a table such as { "X-Title" = "mull" }')
    for name, text in value.items():
        # a line break in a header would let a value write headers of its own
        if not (_HEADER.fullmatch(name) and isinstance(text, str) and text.isprintable()):
            raise ConfigError(
                f"{where}: headers.{quote(name)} cannot be that: use one line of text"
            )
    return value


def refused(where: str, key: str, value: object, allowed: str) -> ConfigError:
    """The error for a value that a key cannot have."""
    return ConfigError(f"{where}: {key} cannot be {quote_value(value)}: use {allowed}")


class Problems:
    """All that is wrong with a table, to be told at once."""

    def __init__(self) -> None:
        self._found: list[str] = []

    def add(self, text: str) -> None:
        """This is wrong, too."""
        self._found.append(text)

    def read(self, reading: Callable[[], _T], otherwise: _T, where: str = "") -> _T:
        """What is read; where that fails, the reason is kept, and something else stands in.
        `where` goes before the reasons of settings, which do not know where they stand."""
        try:
            return reading()
        except SettingError as error:
            self.add(f"{where}: {error}")
        except ConfigError as error:
            self.add(str(error))
        return otherwise

    def check_keys(self, table: Mapping[str, Any], known: Collection[str], where: str) -> None:
        """Every key that is unknown is wrong."""
        for key in table:
            self.read(lambda: check_keys({key: None}, known, where), None)  # noqa: B023

    def end(self) -> None:
        """Go on if nothing was wrong.

        Raises:
            ConfigError: something was; a line for each.
        """
        if self._found:
            raise ConfigError("\n".join(self._found))
