"""What environment variables say of the settings.

`MULL_<KEY>` exists for every setting and is ours, so a mistake in one is an error that names it.
The short names (THINKING, REASONING_EFFORT, CLEAR_THINKING, DEBUG) belong to other programs too:
a value there that means nothing to mull is a warning. The mapping is passed in; nothing is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from mull.neutral.errors import SettingError
from mull.settings.layers import check_agreement, said_words
from mull.settings.model import parse_model, split_model
from mull.settings.registry import (
    CLEARING_WORDS,
    REGISTRY,
    SettingValue,
    find,
    format_value,
    parse,
)
from mull.settings.words import closest, quote

__all__ = ["SHORT_NAMES", "Environment", "env_name", "read_environment"]

_PREFIX = "MULL_"
_MODEL = "MULL_MODEL"

SHORT_NAMES: Mapping[str, str] = {
    "THINKING": "on or off: reasoning.enabled",
    "REASONING_EFFORT": "a level: reasoning.effort",
    "CLEAR_THINKING": "true: reasoning.stripFromContext=all; "
    "false: reasoning.stripFromContext=none and reasoning.includeInContext=true",
    "DEBUG": "1: log how thinking was found, and show the traceback of an error",
}


class Environment(Struct, frozen=True):
    """The environment layer, whether to debug, and what was not understood."""

    values: Mapping[str, SettingValue]
    model: str | None = None
    debug: bool = False
    warnings: tuple[str, ...] = ()


def env_name(key: str) -> str:
    """The variable of a setting as the documentation writes it."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", find(key).key)
    return _PREFIX + words.replace(".", "_").upper()


def read_environment(environ: Mapping[str, str]) -> Environment:
    """The environment layer; empty variables count as absent.

    Raises:
        SettingError: a MULL_ variable has a bad value or is none; names the variable.
    """
    short, warnings = _read_short(environ)
    own: dict[str, SettingValue] = {}
    set_by: dict[str, str] = {}
    for name, raw in sorted(environ.items()):
        key = _key_of(name) if raw.strip() else None
        if key is None or raw.strip().lower() in CLEARING_WORDS:
            continue
        value = _own_value(name, key, raw)
        if key in own and own[key] != value:
            raise SettingError(f"{set_by[key]} and {name} disagree about {key}: keep one of them")
        own[key], set_by[key] = value, name
    model, values = _model(environ), {**short, **own}
    by_name = split_model(model)[1] if model else {}
    beside = {key: value for key, value in values.items() if key not in by_name}
    try:
        check_agreement(said_words(values), said_words(values))
        check_agreement(said_words(beside), said_words(by_name, model))
    except SettingError as error:
        warnings = (*warnings, f"in the environment {error}")
    for key, value in by_name.items():
        if values.get(key, value) != value:
            told = f"{_MODEL} is {quote(model or '')}: {key}={format_value(values[key])} in the"
            warnings = (*warnings, f"{told} environment holds for other models only")
    return Environment(values, model, environ.get("DEBUG") == "1", warnings)


def _squash(name: str) -> str:
    return name.replace(".", "").replace("_", "").lower()


_BY_SQUASHED = {_squash(key): key for key in REGISTRY}
_NAMESPACES = sorted({setting.namespace.upper() for setting in REGISTRY.values()})


def _key_of(name: str) -> str | None:
    """The setting a variable is for; None if it is not for a setting at all."""
    upper = name.upper()
    if not upper.startswith(_PREFIX) or upper == _MODEL:
        return None
    rest = upper.removeprefix(_PREFIX)
    key = _BY_SQUASHED.get(_squash(rest))
    if key is None and _claims_setting(rest):
        near = closest(upper, map(env_name, REGISTRY))
        hint = f"did you mean {near}? " if near else ""
        raise SettingError(f"{quote(name)} matches no setting: {hint}`mull settings` lists all")
    return key


def _claims_setting(rest: str) -> bool:
    # MULL_MODELS… and the like may one day be paths, so after MODEL the underscore must follow
    return any(rest.startswith("MODEL_" if ns == "MODEL" else ns) for ns in _NAMESPACES)


def _own_value(name: str, key: str, raw: str) -> SettingValue:
    try:
        return parse(key, raw)
    except SettingError as error:
        raise SettingError(f"{name}: {error}") from None


def _model(environ: Mapping[str, str]) -> str | None:
    raw = environ.get(_MODEL, "")
    if not raw.strip():
        return None
    try:
        return parse_model(raw)
    except SettingError as error:
        raise SettingError(f"{_MODEL}: {error}") from None


def _read_short(environ: Mapping[str, str]) -> tuple[dict[str, SettingValue], tuple[str, ...]]:
    values: dict[str, SettingValue] = {}
    warnings: list[str] = []
    for name, key in (("THINKING", "reasoning.enabled"), ("REASONING_EFFORT", "reasoning.effort")):
        if raw := environ.get(name, "").strip():
            try:
                values[key] = parse(key, raw)
            except SettingError:
                allowed = "on or off" if name == "THINKING" else REGISTRY[key].allowed
                warnings.append(_ignored(name, raw, allowed))
    if raw := environ.get("CLEAR_THINKING", "").strip():
        try:
            clear = parse("reasoning.enabled", raw)  # any boolean's words
        except SettingError:
            warnings.append(_ignored("CLEAR_THINKING", raw, "true or false"))
        else:
            values |= _clear_thinking(clear is True)
    return values, tuple(warnings)


def _clear_thinking(clear: bool) -> dict[str, SettingValue]:
    if clear:
        return {"reasoning.stripFromContext": "all"}
    return {"reasoning.includeInContext": True, "reasoning.stripFromContext": "none"}


def _ignored(name: str, raw: str, allowed: str) -> str:
    return f"{name} is ignored: {quote(raw)} is not a valid value, use {allowed}"
