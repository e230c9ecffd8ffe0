"""The models of the gateway in config.toml: what may stand in `[serve.models.NAME]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mull.neutral.errors import ConfigError
from mull.neutral.patterns import pattern
from mull.settings.model import parse_model
from mull.settings.registry import SettingValue, parse_all
from mull.settings.words import join_or, quote
from mull.store.tables import VARIABLE, Problems, is_address, refused, table_of

__all__ = ["ServedModel", "ServedTarget", "read_models"]

_NAME = pattern(r"[^\s:?#\x00-\x1f]{1,200}")
_HEAVIEST = 1_000_000


class ServedTarget(Struct, frozen=True):
    """One model at one endpoint with one key. Of several, each gets requests by its `weight`."""

    model: str
    base_url: str | None = None
    key_env: str | None = None
    weight: float = 1


class ServedModel(Struct, frozen=True):
    """What stands behind one name: one target, or several."""

    model: str = ""
    """The model of the only target; empty if there are `targets`."""
    base_url: str | None = None
    """The address to use instead of that of its provider."""
    key_env: str | None = None
    """The environment variable with the key for it; None finds a key as elsewhere."""
    settings: Mapping[str, SettingValue] = {}
    """Settings that apply where the client says nothing else."""
    targets: tuple[ServedTarget, ...] = ()
    """The targets among which requests are divided, by weight; empty if there is only one."""
    fallback: tuple[str, ...] = ()
    """What answers when none of the targets can: names of served models, or models."""
    aliases: tuple[str, ...] = ()
    """Further names; like the name itself, they may contain `*`."""
    system: str = ""
    """A text that goes before the client's own system prompt."""
    max_tokens: int | None = None
    """The `max_tokens` of requests that have none; None adds none."""
    show_thinking: str = "asked"
    """Whether thinking is sent to clients that want it (`asked`), or to all (`always`)."""

    @property
    def upstreams(self) -> tuple[ServedTarget, ...]:
        """All targets, however many there are."""
        return self.targets or (ServedTarget(self.model, self.base_url, self.key_env),)


_TARGET = ServedTarget.__struct_fields__
_ALONE = frozenset({"model", "base_url", "key_env"})


def read_models(table: Mapping[str, Any], where: str) -> dict[str, ServedModel]:
    """The models by their names.

    Raises:
        ConfigError: something is unknown or cannot be; a line for each.
    """
    problems, models = Problems(), {}
    for name in table:
        place = f"{where}.models.{name}"
        found = problems.read(lambda: _model(table_of(table, name, place), name, place), None)  # noqa: B023
        if found is not None:
            models[name] = found
    for name, served in models.items():
        for other in served.fallback:
            if other not in models and "/" not in other:
                problems.add(
                    f"{where}.models.{name}: fallback {quote(other)} is no model served here: use"
                    f" {join_or(table)}, or provider/model"
                )
    problems.end()
    return models


def _model(table: Mapping[str, Any], name: str, place: str) -> ServedModel:
    problems = Problems()
    read = problems.read
    problems.check_keys(table, ServedModel.__struct_fields__, place)
    if not _NAME.fullmatch(name):
        problems.add(f"{place}: a name has no blanks and none of ':', '?' and '#'")
    none: tuple[ServedTarget, ...] = ()
    targets = read(lambda: _targets(table, place), none)
    alone = ServedTarget("")
    if "targets" not in table:
        alone = read(lambda: _target(table, place), alone)
    elif said := _ALONE & set(table):
        problems.add(f"{place}: {join_or(sorted(said))} belongs into the rows of targets")
    settings = table_of(table, "settings", place)
    model = ServedModel(
        model=alone.model,
        base_url=alone.base_url,
        key_env=alone.key_env,
        settings=read(lambda: parse_all(settings), {}, place),
        targets=targets,
        fallback=read(lambda: tuple(map(parse_model, _texts(table, "fallback", place))), (), place),
        aliases=read(lambda: _aliases(table, place), ()),
        system=read(lambda: _system(table, place), ""),
        max_tokens=read(lambda: _max_tokens(table, place), None),
        show_thinking=read(lambda: _show_thinking(table, place), "asked"),
    )
    problems.end()
    return model


def _targets(table: Mapping[str, Any], place: str) -> tuple[ServedTarget, ...]:
    if "targets" not in table:
        return ()
    rows = table["targets"]
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise refused(place, "targets", rows, 'a list such as [{ model = "provider/model" }]')
    problems, found = Problems(), []
    for number, row in enumerate(rows, 1):
        where = f"{place}.targets row {number}"
        problems.check_keys(row, _TARGET, where)
        found.append(problems.read(lambda: _target(row, where), ServedTarget("")))  # noqa: B023
    problems.end()
    return tuple(found)


def _target(table: Mapping[str, Any], place: str) -> ServedTarget:
    problems = Problems()
    if "model" not in table:
        problems.add(f'{place}: model is missing: say model = "provider/model"')
    base_url, key_env, weight = table.get("base_url"), table.get("key_env"), table.get("weight", 1)
    if base_url is not None and not is_address(base_url):
        problems.add(
            str(refused(place, "base_url", base_url, "an address such as https://host/v1"))
        )
    if key_env is not None and not (isinstance(key_env, str) and VARIABLE.fullmatch(key_env)):
        problems.add(str(refused(place, "key_env", key_env, "the name of a variable")))
    if not _is_number(weight) or not 0 < weight <= _HEAVIEST:
        problems.add(str(refused(place, "weight", weight, "a number above 0")))
    model = (
        problems.read(lambda: parse_model(table["model"]), "", place) if "model" in table else ""
    )
    problems.end()
    return ServedTarget(model, base_url, key_env, float(weight))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _texts(table: Mapping[str, Any], key: str, place: str) -> list[str]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise refused(place, key, value, "a list of names")
    return value


def _aliases(table: Mapping[str, Any], place: str) -> tuple[str, ...]:
    names = _texts(table, "aliases", place)
    for name in names:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{place}: a name has no blanks and none of ':', '?' and '#'")
    return tuple(names)


def _system(table: Mapping[str, Any], place: str) -> str:
    value = table.get("system", "")
    if not isinstance(value, str):
        raise refused(place, "system", value, "a text")
    return value


def _max_tokens(table: Mapping[str, Any], place: str) -> int | None:
    value = table.get("max_tokens")
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise refused(place, "max_tokens", value, "a whole number above 0")


def _show_thinking(table: Mapping[str, Any], place: str) -> str:
    value = table.get("show_thinking", "asked")
    if value not in ("asked", "always"):
        raise refused(place, "show_thinking", value, join_or(("asked", "always")))
    return str(value)
