"""One server's configuration with its variables expanded, and which of its values are secrets.

`$VAR` and `${VAR}` stand for environment variables, `$$` for a dollar sign. A server gets those of
our variables that every program needs and those in its table, nothing else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from mull.neutral.errors import ConfigError
from mull.neutral.patterns import pattern
from mull.settings.words import looks_secret
from mull.store.mcp import McpConfig

__all__ = ["Settled", "filled", "names_secret", "refers", "settle", "without_references"]

_REFERENCE = pattern(r"\$(?:(\$)|\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
_SECRET_NAME = pattern(
    r"(?:^|[_-])(?:key|apikey|token|pat|secret|password|passwd|passphrase|pwd|auth|authorization"
    r"|bearer|credentials?|cookie|jwt|sig|signature)(?:$|[_-])",
    re.IGNORECASE,
)
_SHORTEST_SECRET = 8  # a shorter word occurs in too many texts to be masked

_PASSED_ON = frozenset(
    "HOME LOGNAME PATH SHELL TERM USER LANG TMPDIR TZ "
    "APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATHEXT PROCESSOR_ARCHITECTURE SYSTEMDRIVE "
    "SYSTEMROOT TEMP USERNAME USERPROFILE".split()
)


class Settled(Struct, frozen=True):
    """How a server is reached."""

    name: str
    """The name of the server in the configuration."""
    command: str | None
    """The program that is the server; None if it has a `url`."""
    args: tuple[str, ...]
    """The arguments of that program."""
    env: Mapping[str, str]
    """All environment variables that the program gets."""
    cwd: Path | None
    """The folder that it runs in; None is mull's own working folder."""
    url: str | None
    """The address of a server that runs elsewhere; None if it has a `command`."""
    headers: Mapping[str, str]
    """The headers of every request to that address."""
    secrets: tuple[str, ...]
    """Texts that must not be shown, longest first."""
    sandbox: bool = False
    """Whether the program is confined as the commands of a model are."""

    def __repr__(self) -> str:
        return f"Settled({self.command or self.shown_url})"

    @property
    def has_key(self) -> bool:
        """Whether the configuration itself contains credentials."""
        return any(name.lower() == "authorization" for name in self.headers)

    @property
    def shown_url(self) -> str:
        """The URL without parts that may contain a key."""
        return re.split(r"[?#]", self.url or "")[0]


def settle(name: str, config: McpConfig, environ: Mapping[str, str]) -> Settled:
    """Expand the variables.

    Raises:
        ConfigError: one is missing, or a header cannot be sent; says which.
    """
    env = {k: filled(v, environ, f"mcp.{name}: env.{k}") for k, v in config.env.items()}
    headers = {
        k: _header(filled(v, environ, f"mcp.{name}: headers.{k}"), f"mcp.{name}: headers.{k}")
        for k, v in config.headers.items()
    }
    given = {k: v for k, v in environ.items() if k in _PASSED_ON or k.startswith("LC_")}
    return Settled(
        name=name,
        command=os.path.expanduser(config.command) if config.command else None,
        args=config.args,
        env={**given, **env},
        cwd=Path(config.cwd).expanduser() if config.cwd else None,
        url=filled(config.url, environ, f"mcp.{name}: url") if config.url else None,
        headers=headers,
        secrets=_longest_first(_secrets(config, env, headers, environ)),
        sandbox=config.sandbox,
    )


def names_secret(name: str) -> bool:
    """Whether values of this name usually are secrets: API_TOKEN, Authorization, apiKey."""
    return _SECRET_NAME.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)) is not None


def refers(text: str) -> bool:
    """Whether the text refers to the environment."""
    return bool(referred(text))


def without_references(text: str) -> str:
    """The text without its references."""
    return _REFERENCE.sub("", text)


def referred(text: str) -> list[str]:
    """The variables that the text refers to, each once."""
    names = (found[2] or found[3] for found in _REFERENCE.finditer(text) if not found[1])
    return list(dict.fromkeys(names))


def filled(text: str, environ: Mapping[str, str], where: str) -> str:
    """The text with the values of the variables that it names.

    Raises:
        ConfigError: one is not set; says which.
    """
    missing = [name for name in referred(text) if not environ.get(name)]
    if missing:
        raise ConfigError(f"{where} needs {' and '.join(missing)} in the environment: set it")
    return _REFERENCE.sub(lambda found: found[1] or environ[found[2] or found[3]], text)


def _header(text: str, where: str) -> str:
    text = text.strip()
    if text.isascii() and text.isprintable():
        return text
    raise ConfigError(
        f"{where} contains a line break or a non-ASCII character: use one line of ASCII text"
    )


def _longest_first(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(words), key=lambda word: (-len(word), word)))


def _secrets(
    config: McpConfig,
    env: Mapping[str, str],
    headers: Mapping[str, str],
    environ: Mapping[str, str],
) -> Iterator[str]:
    """What must not be shown: by its name or its look, or because it came from a reference."""
    values: list[str] = []
    for name, text in env.items():
        names = [name, *referred(config.env[name])]
        if any(map(names_secret, names)) or looks_secret(text):
            values.append(text)
    for name, text in headers.items():
        if names_secret(name) or looks_secret(text) or refers(config.headers[name]):
            values.append(text)
    values += [environ[name] for name in referred(config.url or "")]
    words = (word for value in values for word in value.split())
    return (word for word in words if len(word) >= _SHORTEST_SECRET)
