"""Parses the arguments of a command, and formats JSON so that lines can wrap."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence

import msgspec

from mull.neutral.errors import LocalError
from mull.settings.words import closest, join_or, quote

__all__ = ["choice", "single", "spaced", "split_words", "take_option"]


def split_words(text: str) -> list[str]:
    """The words, split as by a shell: quotation marks group them.

    Raises:
        LocalError: a closing quotation mark is missing.
    """
    try:
        return shlex.split(text)
    except ValueError:
        raise LocalError(f"missing closing quotation mark in {quote(text)}") from None


def take_option(words: list[str], name: str) -> str | None:
    """Take `--name=VALUE` or `--name VALUE` out of the words; None if it is absent.

    Raises:
        LocalError: its value is missing.
    """
    for at, word in enumerate(words):
        if word.startswith(f"--{name}="):
            return words.pop(at).partition("=")[2]
        if word == f"--{name}":
            if at + 1 == len(words):
                raise LocalError(f"--{name} needs a value: --{name}=VALUE")
            words.pop(at)
            return words.pop(at)
    return None


def single(words: Sequence[str], usage: str) -> str | None:
    """The only argument; None if there is none.

    Raises:
        LocalError: there are more; shows the usage.
    """
    if len(words) > 1:
        raise LocalError(f"too many arguments: {usage}")
    return words[0] if words else None


def choice(word: str, known: Collection[str], what: str) -> str:
    """The known word that is meant, in any case.

    Raises:
        LocalError: it is unknown; names the closest or all.
    """
    for name in known:
        if name.lower() == word.lower():
            return name
    near = closest(word, known)
    hint = f"did you mean {near}?" if near else f"use {join_or(known)}"
    raise LocalError(f"unknown {what} {quote(word)}: {hint}")


def spaced(json: str | None) -> str:
    """JSON with a space after each comma and colon; empty for None."""
    return "nothing" if json is None else msgspec.json.format(json, indent=0)
