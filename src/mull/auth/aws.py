"""Where AWS keys and a region are found: variables, and the files of the AWS command line.

The order is that of Amazon's own SDKs. Files are read by whoever calls; what they hold is told to
nobody, also not where they are damaged.
"""

from __future__ import annotations

import configparser
from collections.abc import Callable, Mapping
from typing import TypeAlias

from mull.auth.secret import parse_secret
from mull.auth.sigv4 import AwsKeys
from mull.neutral.errors import ConfigError

__all__ = ["ReadText", "find_keys", "find_region"]

ReadText: TypeAlias = Callable[[str], str | None]
"""Gives the text of a file; None where there is none."""

Sections: TypeAlias = list[tuple[str, Mapping[str, str]]]
_CREDENTIALS = ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")
_CONFIG = ("AWS_CONFIG_FILE", "~/.aws/config")
_BY_OTHER_WAYS = ("sso_session", "sso_start_url", "role_arn", "credential_process", "login_session")
"""Keys of a profile whose credentials another program has to fetch."""


def find_keys(environ: Mapping[str, str], read: ReadText) -> AwsKeys | None:
    """The keys to sign with, if there are any.

    Raises:
        ConfigError: a key is damaged, or the profile that was named cannot be used; says why.
    """
    if environ.get("AWS_ACCESS_KEY_ID"):
        secret = environ.get("AWS_SECRET_ACCESS_KEY")
        if not secret:
            raise ConfigError("AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not: set both")
        token = environ.get("AWS_SESSION_TOKEN")
        given = environ["AWS_ACCESS_KEY_ID"]
        return _keys(given, secret, token, "AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY_ID")
    name = _profile(environ)
    found = _sections(environ, read)
    for path, held in found:
        if "aws_access_key_id" in held and "aws_secret_access_key" in held:
            return _keys(
                held["aws_access_key_id"],
                held["aws_secret_access_key"],
                held.get("aws_session_token"),
                f"profile {name} in {path}",
                f"the key of profile {name} in {path}",
            )
    for path, held in found:
        if way := next((key for key in _BY_OTHER_WAYS if key in held), None):
            raise ConfigError(
                f"profile {name} in {path} gets its keys through {way}, which mull does not"
                " support: run"
                f' `eval "$(aws configure export-credentials --profile {name} --format env)"` first'
            )
    _check_profile(environ, found)
    return None


def find_region(environ: Mapping[str, str], read: ReadText) -> str | None:
    """The region to ask, if one is named.

    Raises:
        ConfigError: a file is damaged.
    """
    named = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    if named:
        return named.strip()
    found = _sections(environ, read)
    region = next((held["region"] for _, held in found if "region" in held), None)
    if region is None:
        _check_profile(environ, found)
    return region


def _check_profile(environ: Mapping[str, str], found: Sections) -> None:
    """Refuse a profile that was named and is in no file."""
    if environ.get("AWS_PROFILE") and not found:
        raise ConfigError(
            f"there is no profile {_profile(environ)} in {_path(environ, _CREDENTIALS)} or"
            f" {_path(environ, _CONFIG)}: set AWS_PROFILE to an existing one"
        )


def _keys(access: str, secret: str, token: str | None, place: str, what: str) -> AwsKeys:
    return AwsKeys(
        parse_secret(access, what),
        parse_secret(secret, f"the secret that belongs to {what}"),
        parse_secret(token, f"the session token that belongs to {what}") if token else None,
        place,
    )


def _profile(environ: Mapping[str, str]) -> str:
    return environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE") or "default"


def _path(environ: Mapping[str, str], place: tuple[str, str]) -> str:
    return environ.get(place[0]) or place[1]


def _sections(environ: Mapping[str, str], read: ReadText) -> Sections:
    """What the files say of the profile, each with its path; in one they are called by its name,
    in the other mostly `profile NAME`."""
    name = _profile(environ)
    found: Sections = []
    in_config = (f"profile {name}", f'profile "{name}"', name)
    for place, names in ((_CREDENTIALS, (name,)), (_CONFIG, in_config)):
        path = _path(environ, place)
        text = read(path)
        if text is None:
            continue
        parser = _parsed(text, path)
        found += [(path, parser[one]) for one in names if parser.has_section(one)][:1]
    return found


def _parsed(text: str, path: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(
        interpolation=None, strict=False, default_section="\n", allow_no_value=False
    )
    try:
        parser.read_string(text)
    except configparser.Error as error:
        line = getattr(error, "lineno", None)
        where = f", line {line}" if line else ""
        raise ConfigError(  # the error itself quotes the line, which may be a key
            f"{path}{where} cannot be read: it must have [profiles] with lines like region = …"
        ) from None
    return parser
