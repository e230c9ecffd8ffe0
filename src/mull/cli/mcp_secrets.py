"""Detects keys in the arguments of `mull mcp add`, so that none gets into config.toml, and suggests
a replacement.

The file contains the name of a variable instead of a key, as `${VAR}`. A rejected value is shown
neither in the message nor in the suggestion.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import unquote_plus

from mull.agent.mcp.settled import names_secret, refers, without_references
from mull.neutral.errors import ConfigError
from mull.settings.addresses import is_secret_part
from mull.settings.words import looks_secret

__all__ = ["refuse_secrets"]

_STAYS = "which would stay in the file"


def refuse_secrets(
    name: str,
    *,
    env: Iterable[str],
    headers: Iterable[str],
    command: Sequence[str],
    url: str | None,
) -> None:
    """Reject arguments that contain a key.

    Raises:
        ConfigError: one does; suggests what to write instead.
    """
    for option, texts in (("--env", env), ("--header", headers)):
        for text in texts:
            _check_pair(name, option, text)
    if any(_secret_words(command)):
        raise ConfigError(
            f"the command contains what looks like a key, {_STAYS}: pass it with --env "
            f"'NAME=${{VAR}}', in single quotes"
        )
    if url is not None:
        _check_url(name, url)


def _check_pair(server: str, option: str, text: str) -> None:
    name, _, value = text.partition("=")
    is_literal = looks_secret(without_references(value))
    if not is_literal and (not names_secret(name) or refers(value)):
        return
    is_bearer = name.lower() == "authorization"
    variable = _variable(server, "token" if is_bearer else name)
    offered = f"Bearer {variable}" if is_bearer else variable
    raise ConfigError(
        f"{option} {name} contains what looks like a key, {_STAYS}: put it into an "
        f"environment variable and write {option} '{name}={offered}', in single quotes"
    )


def _secret_words(command: Sequence[str]) -> Iterator[str]:
    """The words that look like keys, or follow an option that names one."""
    before = ""
    for word in command:
        option, equals, value = word.partition("=")
        if looks_secret(word) or (before and not word.startswith("-")):
            yield word
        if equals and value and option.startswith("-") and names_secret(option.lstrip("-")):
            yield word
        before = word if word.startswith("--") and not equals and names_secret(word[2:]) else ""


def _check_url(server: str, url: str) -> None:
    address, mark, query = url.partition("?")
    head, slashes, path = address.partition("://")
    host, *segments = path.split("/")
    fields = query.split("&")
    found = [
        *(("path", part) for part in segments if _is_random(part)),
        *(("query", field) for field in fields if mark and _is_key(field)),
    ]
    if not found and not looks_secret(without_references(url)):
        return
    shown = [_variable(server, "key") if _is_random(part) else part for part in segments]
    filled = [
        f"{field.partition('=')[0]}={_variable(server, field.partition('=')[0])}"
        if _is_key(field)
        else field
        for field in fields
    ]
    offered = f"{head}{slashes}{'/'.join([host, *shown])}{mark}{'&'.join(filled)}"
    if looks_secret(without_references(offered)):
        offered = f"https://HOST/{_variable(server, 'key')}"
    raise ConfigError(
        f"--url contains what looks like a key, {_STAYS}: put it into an environment "
        f"variable and write --url '{offered}', in single quotes"
    )


def _is_key(field: str) -> bool:
    name, _, value = field.partition("=")
    own = without_references(unquote_plus(value))
    return bool(own) and (names_secret(name) or looks_secret(own) or is_secret_part(own))


def _is_random(part: str) -> bool:
    return is_secret_part(without_references(part))


def _variable(server: str, name: str) -> str:
    """The suggested variable: `${TRACKER_API_KEY}`."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", f"{server}_{name}")
    return "${" + re.sub(r"\W+", "_", words, flags=re.ASCII).strip("_").upper() + "}"
