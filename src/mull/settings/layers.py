"""Which value of a setting holds, and which layer it comes from.

Rule 1: later layers win, in the order of LAYERS. Rule 2: a change is checked whole before any of
it is made, so a refused one leaves everything as it was (ERR-001). Rule 3: nothing is remembered
between snapshots; one is taken for each request, so a change holds from the next (BR-008, EC-004).

Rule 4: of words that contradict each other on thinking (a level, a budget, off, on) the later one
wins, be it of a stronger layer or said later in the same one. Words that were said together stand
side by side: an effort and a budget are two wishes.

A model's name is layered like a value, except that a session goes on with its own before that of
the environment. A level or budget at its end acts at that name's layer, as if the setting had been
said there, and only while that name is the one in effect.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Mapping
from itertools import product
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mull.neutral.errors import SettingError
from mull.settings.model import is_same_model, parse_model, split_model
from mull.settings.registry import REGISTRY, SettingValue, find, format_value, parse, parse_all
from mull.settings.words import quote

__all__ = [
    "LAYERS",
    "HeldLayer",
    "Layer",
    "Settings",
    "Snapshot",
    "agreeing",
    "check_agreement",
    "said_by_name",
    "said_words",
    "standing",
    "told",
    "with_own",
]

Layer: TypeAlias = Literal[
    "default", "preset", "config", "profile", "stored", "environment", "session", "request"
]
LAYERS: tuple[Layer, ...] = (
    "default",
    "preset",
    "config",
    "profile",
    "stored",
    "environment",
    "session",
    "request",
)
"""`stored` is what a session was stored with, `session` what is said of it now: options of the
command, `/set`, arguments of a conversation."""
HeldLayer: TypeAlias = Literal["config", "profile", "stored", "environment", "session"]
_REQUEST: Layer = "request"
_HELD: tuple[HeldLayer, ...] = ("config", "profile", "stored", "environment", "session")
_NAMING: tuple[Layer, ...] = (
    "request",
    "session",
    "stored",
    "environment",
    "profile",
    "config",
)
"""Whose model is used, the strongest first."""
_ENABLED, _EFFORT, _BUDGET = "reasoning.enabled", "reasoning.effort", "reasoning.maxTokens"


class _Held(Struct, frozen=True):
    """What one layer says. `suffix` is what the end of its model's name says, unless overruled;
    `name` is the name with its end.
    """

    values: Mapping[str, SettingValue] = MappingProxyType({})
    model: str | None = None
    suffix: Mapping[str, SettingValue] = MappingProxyType({})
    name: str | None = None


_NOTHING = _Held()


class Snapshot(Struct, frozen=True):
    """All values at one moment, with their layers. Made by `Settings.snapshot`."""

    values: Mapping[str, SettingValue]
    origins: Mapping[str, Layer]
    model: str | None = None
    model_origin: Layer | None = None

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def having(self, own: Mapping[str, object]) -> Snapshot:
        """The same settings with a request's own on top.

        Raises:
            SettingError: one of them is not allowed.
        """
        if not own:
            return self
        values, origins = dict(self.values), dict(self.origins)
        _say(values, origins, parse_all(own), _REQUEST)
        return replace(self, values=MappingProxyType(values), origins=MappingProxyType(origins))

    def with_preset(self, preset: Mapping[str, object]) -> Snapshot:
        """The same choices over another preset: that of a model of which more is known now.

        Raises:
            SettingError: the preset is not allowed.
        """
        parsed = parse_all(preset) if self["model.presets"] else {}
        values, origins = dict(self.values), dict(self.origins)
        for key in REGISTRY:
            if not self.explicit(key):
                values[key] = parsed.get(key, REGISTRY[key].default)
                origins[key] = "preset" if key in parsed else "default"
        return replace(self, values=MappingProxyType(values), origins=MappingProxyType(origins))

    def items(self) -> ItemsView[str, SettingValue]:
        """Keys and values in the registry's order."""
        return self.values.items()

    def origin(self, key: str) -> Layer:
        """The layer that the value comes from."""
        return self.origins[key]

    def explicit(self, key: str) -> bool:
        """Whether the user chose the value, rather than mull or the catalog."""
        return self.origins[key] not in ("default", "preset")

    @property
    def fingerprint(self) -> tuple[SettingValue, ...]:
        """All values, hashable: equal if and only if the settings are."""
        return tuple(self.values.values())

    def differing(self) -> dict[str, SettingValue]:
        """The values that are not the built-in default."""
        return {k: v for k, v in self.values.items() if v != REGISTRY[k].default}

    def chosen(self) -> dict[str, SettingValue]:
        """What a profile has to hold to bring these settings back (REQ-THINK-006.6).

        Every choice, also of the default or of no value, which a layer below may not share.
        Presets come back with the model.
        """
        return {key: value for key, value in self.values.items() if self.explicit(key)}


class Settings:
    """The layers that last longer than one request."""

    def __init__(self) -> None:
        self._layers: dict[Layer, _Held] = {}

    def fork(self) -> Settings:
        """The same layers; what is set in either from now on does not reach the other."""
        made = Settings()
        made._layers = dict(self._layers)
        return made

    def said(self, layer: HeldLayer = "session") -> dict[str, SettingValue]:
        """What a layer says, also by a level in its model's name."""
        held = self._held(layer)
        return {**held.values, **held.suffix}

    @property
    def model_name(self) -> str | None:
        """The model in effect as it was named, with the level or budget at its end."""
        named = _named(self._layers)
        return self._layers[named].name if named else None

    def say(
        self,
        values: Mapping[str, object],
        model: str | None = None,
        layer: HeldLayer = "session",
        *,
        thinks: bool = False,
    ) -> None:
        """Add to a layer what is said together, over what it has said before. With `thinks` the
        model's name itself asks for thinking.

        Raises:
            SettingError: one of them is not allowed, or two of them contradict each other; nothing
                has changed.
        """
        held, parsed, named = self._held(layer), parse_all(values, unset=True), _held({}, model)
        by_name = said_by_name(model, thinks=thinks)
        words = said_words(parsed)
        amounts = [word for word in words if word[1] != _ENABLED]  # off goes before them (BR-006)
        check_agreement(amounts, amounts)
        check_agreement(words, said_words(by_name, model))
        said = {**parsed, **by_name}
        if model is None:
            named = replace(held, suffix=standing(held.suffix, said))
        self._layers[layer] = replace(named, values={**standing(held.values, said), **parsed})

    def set(self, key: str, value: object, layer: HeldLayer = "session") -> SettingValue:
        """Give the key a value in a layer and return it in canonical form.

        Raises:
            SettingError: the key or value is not allowed; nothing has changed.
        """
        parsed = parse(key, value)
        self.say({find(key).key: parsed}, layer=layer)
        return parsed

    def reset(self, key: str, layer: HeldLayer = "session") -> SettingValue:
        """Give the key its built-in default in a layer, whatever lower layers say."""
        setting = find(key)
        self.say({setting.key: setting.default}, layer=layer)
        return setting.default

    def unset(self, key: str, layer: HeldLayer = "session") -> None:
        """Take the key out of a layer, so that lower layers decide."""
        name, held = find(key).key, self._held(layer)
        self._layers[layer] = replace(
            held, values=_without(held.values, name), suffix=_without(held.suffix, name)
        )

    def set_model(
        self, name: str | None, layer: HeldLayer = "session", *, thinks: bool = False
    ) -> None:
        """Name the model in a layer, or stop naming one; a level at its end overrules the layer,
        and a name that asks for thinking overrules off.

        Raises:
            SettingError: the name or the budget at its end is not allowed; nothing has changed.
        """
        if name is not None:
            self.say({}, name, layer, thinks=thinks)
        else:
            self._layers[layer] = _Held(self._held(layer).values)

    def replace(
        self, layer: HeldLayer, values: Mapping[str, object], model: str | None = None
    ) -> None:
        """Make these all that a layer says; None unsets a setting whatever lower layers say.

        Raises:
            SettingError: one of them is not allowed; nothing has changed.
        """
        self._layers[self._known(layer)] = _held(parse_all(values, unset=True), model)

    def load_profile(
        self, values: Mapping[str, object], model: str | None = None
    ) -> tuple[str, ...]:
        """Put a profile into effect at once (EC-005) and return the keys the session gave up.

        A profile is a whole state: what was set in the session before it was loaded would hide
        it, so the session's values go, and its model too where the profile names one.

        Raises:
            SettingError: a value is not allowed; nothing has changed.
        """
        self.replace("profile", values, model)
        gone: set[str] = set()
        for layer in ("stored", "session"):
            held = self._held(layer)
            gone |= self.said(layer).keys()
            self._layers[layer] = _NOTHING if model else _Held(model=held.model, name=held.model)
        return tuple(key for key in REGISTRY if key in gone)

    def snapshot(
        self,
        *,
        preset: Mapping[str, object] | None = None,
        request: Mapping[str, object] | None = None,
        model: str | None = None,
        thinks: bool = False,
    ) -> Snapshot:
        """The values that hold now, for one request with its own arguments and model. With `thinks`
        the model's name itself asks for thinking: off of a weaker layer does not hold.

        Raises:
            SettingError: a preset or an argument is not allowed.
        """
        layers: dict[Layer, _Held] = {
            "preset": _held(parse_all(preset or {}), None),
            **self._layers,
            "request": _held(parse_all(request or {}), model),
        }
        if not _last(layers, "model.presets"):
            del layers["preset"]
        return _merge(layers, thinks=thinks)

    def _held(self, layer: HeldLayer) -> _Held:
        return self._layers.get(self._known(layer), _NOTHING)

    @staticmethod
    def _known(layer: HeldLayer) -> HeldLayer:
        if layer not in _HELD:
            raise ValueError(f"no values are held for the layer {layer!r}, only for {_HELD}")
        return layer


def _held(values: Mapping[str, SettingValue], model: str | None) -> _Held:
    if model is None:
        return _Held(values)
    name = parse_model(model)
    return _Held(values, *split_model(name), name)


def said_by_name(model: str | None, *, thinks: bool = False) -> dict[str, SettingValue]:
    """What the end of a model's name says of the settings: a level or budget, or, with `thinks`,
    only that the model is to think.

    Raises:
        SettingError: it cannot be a name.
    """
    said = {} if model is None else split_model(parse_model(model))[1]
    return said or ({_ENABLED: True} if thinks else {})


def with_own(
    model: str | None, settings: Mapping[str, object], own: Mapping[str, object]
) -> tuple[str | None, dict[str, SettingValue]]:
    """A model and settings that hold for several requests, with one request's own over them.

    Raises:
        SettingError: one of them is not allowed.
    """
    given, said = _held(parse_all(settings), model), parse_all(own)
    return given.model, {**agreeing({**given.values, **given.suffix}, said), **said}


def told(
    model: str | None, settings: Mapping[str, SettingValue], said: Mapping[str, SettingValue]
) -> tuple[str | None, dict[str, SettingValue]]:
    """What is stored of a session once it was told something more: its model's name, without a
    level that no longer stands, and its settings.
    """
    left: Mapping[str, SettingValue] = {}
    if model is not None:
        bare, suffix = split_model(model)
        left = standing(suffix, said)
        model, left = (model, {}) if left == suffix else (bare, left)
    return model, {**left, **standing(settings, said), **said}


def standing(
    held: Mapping[str, SettingValue], said: Mapping[str, SettingValue]
) -> dict[str, SettingValue]:
    """The older of these words that the newer ones neither repeat nor contradict.

    An effort of `none` that is taken back leaves no effort: it had ended what was said before.
    """
    kept = {key: value for key, value in held.items() if _stands(key, value, said)}
    was_none = held.get(_EFFORT) == "none" and _EFFORT not in kept and _EFFORT not in said
    return {**kept, _EFFORT: None} if was_none else kept


def agreeing(
    held: Mapping[str, SettingValue], said: Mapping[str, SettingValue]
) -> dict[str, SettingValue]:
    """The older of these words that can be said together with the newer ones: off leaves no level
    to go back to, as it does in `standing`.
    """
    return {
        key: value
        for key, value in standing(held, said).items()
        if not any(_contradict(key, value, *word) for word in said.items())
    }


def _stands(key: str, value: SettingValue, said: Mapping[str, SettingValue]) -> bool:
    if key in said:
        return False
    effort, budget = said.get(_EFFORT), said.get(_BUDGET)
    match key:
        case "reasoning.maxTokens":
            return effort is None
        case "reasoning.effort":
            return value != "none" or not (budget is not None or said.get(_ENABLED) is True)
        case "reasoning.enabled":
            return value is True or (effort in (None, "none") and budget is None)
        case _:
            return True


_Word: TypeAlias = tuple[str, str, SettingValue]
"""A setting and its value, after how the user said it."""


def said_words(values: Mapping[str, SettingValue], model: str | None = None) -> list[_Word]:
    """These values as they were said: by themselves, or at the end of a model's name."""
    return [
        (f"{key}={format_value(value)}" if model is None else quote(model), key, value)
        for key, value in values.items()
    ]


def check_agreement(words: Iterable[_Word], others: Iterable[_Word]) -> None:
    """Refuse words that were said together and contradict each other.

    Raises:
        SettingError: names two of them.
    """
    for (one, key, value), (other, its_key, its_value) in product(words, others):
        if _contradict(key, value, its_key, its_value):
            raise SettingError(f"{one} and {other} contradict each other: keep one of them")


def _contradict(key: str, value: SettingValue, other: str, its: SettingValue) -> bool:
    if key == other:
        return value != its
    return {_thinks(key, value), _thinks(other, its)} == {True, False}


def _thinks(key: str, value: SettingValue) -> bool | None:
    """Whether a word wants thinking or none; None if it does not say."""
    if value is None or key not in (_ENABLED, _EFFORT, _BUDGET):
        return None
    return value not in (False, "none")


def _without(values: Mapping[str, SettingValue], key: str) -> Mapping[str, SettingValue]:
    return {name: value for name, value in values.items() if name != key}


def _last(layers: Mapping[Layer, _Held], key: str) -> SettingValue:
    """The value of a key that no preset may decide."""
    value = REGISTRY[key].default
    for layer in LAYERS:
        if layer != "preset" and layer in layers:
            value = layers[layer].values.get(key, value)
    return value


def _named(layers: Mapping[Layer, _Held]) -> Layer | None:
    """The layer whose model is used."""
    return next((layer for layer in _NAMING if layer in layers and layers[layer].model), None)


def _say(
    values: dict[str, SettingValue],
    origins: dict[str, Layer],
    said: Mapping[str, SettingValue],
    layer: Layer,
) -> None:
    """Let a layer speak over those below; what it contradicts of theirs goes."""
    for key in (_ENABLED, _EFFORT, _BUDGET):
        if not _stands(key, values[key], said) and values[key] != REGISTRY[key].default:
            values[key], origins[key] = REGISTRY[key].default, layer
    for key, value in said.items():
        values[key], origins[key] = value, layer


def _merge(layers: Mapping[Layer, _Held], *, thinks: bool) -> Snapshot:
    values = {key: setting.default for key, setting in REGISTRY.items()}
    origins: dict[str, Layer] = dict.fromkeys(values, "default")
    named = _named(layers)
    model = layers[named].model if named else None
    for layer in LAYERS:
        held = layers.get(layer, _NOTHING)
        # a session goes on with its own name, and what the environment says of that model counts
        counts = layer == named or (
            named == "stored" and layer == "environment" and is_same_model(held.model, model)
        )
        if thinks and layer == named and (not values[_ENABLED] or values[_EFFORT] == "none"):
            _say(values, origins, {_ENABLED: True}, layer)
        _say(values, origins, {**held.values, **held.suffix} if counts else held.values, layer)
    return Snapshot(
        values=MappingProxyType(values),
        origins=MappingProxyType(origins),
        model=model,
        model_origin=named,
    )
