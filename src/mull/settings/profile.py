"""What a profile is and what its JSON looks like.

A profile holds provider, model, the address where they were reached if it is not the provider's
own, parameters and every setting that was chosen (REQ-THINK-006.6), also where the choice is the
default, and never a secret. null means that a setting was chosen to be
unset. Reading checks everything before it returns anything, so a damaged profile, or one from a
newer mull, changes nothing. Where the file lies is the store's affair.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from mull.neutral.errors import ProfileError, SettingError
from mull.neutral.patterns import pattern
from mull.neutral.target import Target
from mull.settings.addresses import without_secrets
from mull.settings.layers import Snapshot
from mull.settings.model import parse_model
from mull.settings.registry import REGISTRY, SettingValue, format_value, parse_all
from mull.settings.words import closest, join_or, looks_secret, quote, quote_value

__all__ = [
    "VERSION",
    "Parameters",
    "Profile",
    "check_provider",
    "profile_from_json",
    "profile_of",
    "profile_to_json",
]

VERSION = 1

_SECRET_KEY = pattern(
    r"api.?key|access.?key|private.?key|^key$|token$|secret|passw|authorization|bearer|credential"
    r"|cookie",
    re.IGNORECASE,
)
_PROVIDER = pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_ADDRESS = pattern(r"https?://[^\s/?#@]+(?:/[^\s?#@]*)?", re.IGNORECASE)
_NO_SECRETS = "profiles do not hold secrets: put API keys into environment variables"


class Parameters(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a request says besides its settings; None leaves it to the provider."""

    temperature: float | None = None
    max_tokens: int | None = None


class Profile(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A named state to come back to. `settings` are canonical keys and values; `base_url` belongs
    to the provider.
    """

    version: int = VERSION
    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    parameters: Parameters = Parameters()
    settings: dict[str, SettingValue] = {}

    @property
    def model_name(self) -> str | None:
        """The model as a layer names it: `provider/model` where the provider is known."""
        return f"{self.provider}/{self.model}" if self.provider and self.model else self.model

    @property
    def rows(self) -> list[tuple[str, str]]:
        """All that it says, in words."""
        said = {
            "model": self.model_name,
            "baseUrl": self.base_url,
            "temperature": self.parameters.temperature,
            "maxTokens": self.parameters.max_tokens,
        }
        named = {key: value for key, value in said.items() if value is not None}
        return [(key, format_value(value)) for key, value in {**named, **self.settings}.items()]


def profile_of(
    snapshot: Snapshot,
    target: Target | None,
    parameters: Parameters,
    base_url: str | None = None,
) -> Profile:
    """The state that is in effect, as a profile; `target` is what the model's name means, and
    `base_url` the address it is reached at, if that is not the provider's own.
    """
    chosen = snapshot.chosen()
    if target is None:
        return Profile(parameters=parameters, settings=chosen)
    model = target.model
    if target.wants_thinking and snapshot.model:  # the name itself asks for it, the id does not
        first, _, rest = snapshot.model.partition("/")
        model = rest if first.lower() == target.provider else snapshot.model
    return Profile(
        provider=target.provider,
        model=model,
        base_url=without_secrets(base_url) if base_url else None,
        parameters=parameters,
        settings=chosen,
    )


def profile_to_json(profile: Profile, name: str) -> bytes:
    """The profile as text for its file.

    Raises:
        ProfileError: it holds something that looks like a secret, or that is not allowed.
    """
    said = msgspec.to_builtins(msgspec.structs.replace(profile, version=VERSION))
    data = {"version": VERSION, **{key: value for key, value in said.items() if value != {}}}
    _refuse_secrets(data, name)
    _read(data, name)
    return msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n"


def profile_from_json(data: bytes, name: str, providers: Collection[str] | None = None) -> Profile:
    """The profile that a file holds; with `providers`, its provider must be one of them.

    Raises:
        ProfileError: it is damaged, from a newer mull, or holds what is unknown; says which.
    """
    try:
        decoded = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error).removeprefix("JSON is malformed: ").lower()
        raise ProfileError(
            f"profile {quote(name)} is damaged ({reason}): fix its file or save it again"
        ) from None
    profile = _read(decoded, name)
    if providers is not None:
        check_provider(profile, name, providers)
    return profile


def check_provider(profile: Profile, name: str, providers: Collection[str]) -> None:
    """Refuse a profile whose provider is not known here, unless it has an address.

    Raises:
        ProfileError: it is not; names the closest one and the way to add it.
    """
    provider = profile.provider
    if provider is None or provider in providers or profile.base_url is not None:
        return
    near = closest(provider, providers)
    hint = f"did you mean {near}? " if near else ""
    raise ProfileError(
        f"profile {quote(name)} names an unknown provider, {quote(provider)}: "
        f"{hint}[providers.{provider}] in config.toml adds one"
    )


def _read(data: object, name: str) -> Profile:
    where = f"profile {quote(name)}"
    if not isinstance(data, dict):
        raise ProfileError(f"{where} is damaged: it holds {quote_value(data)}, not a profile")
    _check_version(data.get("version"), where)
    _check_keys(data, Profile.__struct_encode_fields__, where)
    settings = data.get("settings", {})
    if not isinstance(settings, dict):
        raise ProfileError(f"{where}: settings cannot be {quote_value(settings)}: use a table")
    provider = _provider(data.get("provider"), where)
    try:
        return Profile(
            provider=provider,
            model=None if data.get("model") is None else parse_model(data["model"]),
            base_url=_base_url(data.get("baseUrl"), provider, where),
            parameters=_parameters(data.get("parameters", {}), where),
            settings=parse_all(settings, unset=True),
        )
    except SettingError as error:
        raise ProfileError(f"{where}: {error}") from None


def _check_version(version: object, where: str) -> None:
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ProfileError(f"{where} is damaged: its version is {quote_value(version)}")
    if version > VERSION:
        raise ProfileError(
            f"{where} has version {quote_value(version)} and this mull reads up to {VERSION}: "
            "upgrade mull, or save the profile again"
        )


def _check_keys(data: Mapping[str, Any], known: Collection[str], where: str) -> None:
    for key in data:
        if key in known:
            continue
        if _SECRET_KEY.search(key):
            raise ProfileError(f"{where}: take {quote(key)} out, {_NO_SECRETS}")
        raise ProfileError(f"{where}: {quote(key)} is unknown, use {join_or(known)}")


def _provider(value: object, where: str) -> str | None:
    if value is None or (isinstance(value, str) and _PROVIDER.fullmatch(value)):
        return value
    raise ProfileError(
        f"{where}: provider cannot be {quote_value(value)}: use a name such as anthropic"
    )


def _base_url(value: object, provider: str | None, where: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
        raise ProfileError(
            f"{where}: baseUrl cannot be that: use an address such as https://host/v1, without "
            "user name, password or query"
        )
    if provider is None:
        raise ProfileError(f"{where}: baseUrl is the address of a provider: name the provider")
    return value


def _parameters(data: object, where: str) -> Parameters:
    if not isinstance(data, dict):
        raise ProfileError(f"{where}: parameters cannot be {quote_value(data)}: use a table")
    _check_keys(data, Parameters.__struct_encode_fields__, where)
    temperature, most = data.get("temperature"), data.get("maxTokens")
    if temperature is not None and not _is_number(temperature, 0, 2):
        raise ProfileError(
            f"{where}: temperature cannot be {quote_value(temperature)}: use a number from 0 to 2"
        )
    if most is not None and not (isinstance(most, int) and _is_number(most, 1, 10**9)):
        raise ProfileError(
            f"{where}: maxTokens cannot be {quote_value(most)}: use a whole number above 0"
        )
    return Parameters(None if temperature is None else float(temperature), most)


def _is_number(value: object, least: int, most: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _refuse_secrets(data: object, name: str) -> None:
    for key, value in _pairs(data):
        known = key in REGISTRY or key in Parameters.__struct_encode_fields__
        if not known and _SECRET_KEY.search(key):
            raise ProfileError(f"profile {quote(name)} was not saved: {quote(key)}; {_NO_SECRETS}")
        if isinstance(value, str) and looks_secret(value):
            raise ProfileError(
                f"profile {quote(name)} was not saved: {key} looks like a key; {_NO_SECRETS}"
            )


def _pairs(data: object) -> Iterator[tuple[str, object]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield key, value
            yield from _pairs(value)
