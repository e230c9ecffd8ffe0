"""Which value of a setting holds, and which layer it comes from.

Rule 1: later layers win, in the order of LAYERS. Rule 2: a change is checked whole before any of
it is made, so a refused one leaves everything as it was (ERR-001). Rule 3: nothing is remembered
between snapshots; one is taken for each request, so a change holds from the next (BR-008, EC-004).

A model's name is layered like a value. A level or budget at its end acts at that name's layer,
and only while that name is the one in effect.
"""

from __future__ import annotations

from collections.abc import ItemsView, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mull.settings.model import parse_model, split_model
from mull.settings.registry import REGISTRY, SettingValue, find, parse, parse_all

__all__ = ["LAYERS", "HeldLayer", "Layer", "Settings", "Snapshot"]

Layer: TypeAlias = Literal[
    "default", "preset", "config", "profile", "environment", "session", "request"
]
LAYERS: tuple[Layer, ...] = (
    "default",
    "preset",
    "config",
    "profile",
    "environment",
    "session",
    "request",
)
HeldLayer: TypeAlias = Literal["config", "profile", "environment", "session"]
_REQUEST: Layer = "request"
_HELD: tuple[HeldLayer, ...] = ("config", "profile", "environment", "session")


class _Held(Struct, frozen=True):
    """What one layer says. `suffix` is what the end of its model's name says, unless overruled."""

    values: Mapping[str, SettingValue] = MappingProxyType({})
    model: str | None = None
    suffix: Mapping[str, SettingValue] = MappingProxyType({})


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
        values = parse_all(own)
        return replace(
            self,
            values=MappingProxyType({**self.values, **values}),
            origins=MappingProxyType({**self.origins, **dict.fromkeys(values, _REQUEST)}),
        )

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

    def chosen_in_session(self) -> frozenset[str]:
        """The keys that the session's layer decides, also by a level in its model's name."""
        held = self._held("session")
        return frozenset((*held.values, *held.suffix))

    def set(self, key: str, value: object, layer: HeldLayer = "session") -> SettingValue:
        """Give the key a value in a layer and return it in canonical form.

        Raises:
            SettingError: the key or value is not allowed; nothing has changed.
        """
        parsed = parse(key, value)
        self._put(find(key).key, parsed, layer)
        return parsed

    def reset(self, key: str, layer: HeldLayer = "session") -> SettingValue:
        """Give the key its built-in default in a layer, whatever lower layers say."""
        setting = find(key)
        self._put(setting.key, setting.default, layer)
        return setting.default

    def unset(self, key: str, layer: HeldLayer = "session") -> None:
        """Take the key out of a layer, so that lower layers decide."""
        name, held = find(key).key, self._held(layer)
        self._layers[layer] = _Held(
            _without(held.values, name), held.model, _without(held.suffix, name)
        )

    def set_model(self, name: str | None, layer: HeldLayer = "session") -> None:
        """Name the model in a layer, or stop naming one; a level at its end overrules the layer.

        Raises:
            SettingError: the name or the budget at its end is not allowed; nothing has changed.
        """
        named = _held({}, name)
        self._layers[layer] = _Held(self._held(layer).values, named.model, named.suffix)

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
        session = self._held("session")
        kept = _NOTHING if model else _Held(model=session.model)
        self._layers["session"] = kept
        return tuple(key for key in REGISTRY if key in session.values or key in session.suffix)

    def snapshot(
        self,
        *,
        preset: Mapping[str, object] | None = None,
        request: Mapping[str, object] | None = None,
        model: str | None = None,
    ) -> Snapshot:
        """The values that hold now, for one request with its own arguments and model.

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
        return _merge(layers)

    def _put(self, key: str, value: SettingValue, layer: HeldLayer) -> None:
        held = self._held(layer)
        self._layers[layer] = _Held(
            {**held.values, key: value}, held.model, _without(held.suffix, key)
        )

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
    return _Held(values, *split_model(parse_model(model)))


def _without(values: Mapping[str, SettingValue], key: str) -> Mapping[str, SettingValue]:
    return {name: value for name, value in values.items() if name != key}


def _last(layers: Mapping[Layer, _Held], key: str) -> SettingValue:
    """The value of a key that no preset may decide."""
    value = REGISTRY[key].default
    for layer in LAYERS:
        if layer != "preset" and layer in layers:
            value = layers[layer].values.get(key, value)
    return value


def _merge(layers: Mapping[Layer, _Held]) -> Snapshot:
    values = {key: setting.default for key, setting in REGISTRY.items()}
    origins: dict[str, Layer] = dict.fromkeys(values, "default")
    named: Layer | None = next(
        (layer for layer in reversed(LAYERS) if layer in layers and layers[layer].model), None
    )
    for layer in LAYERS:
        held = layers.get(layer, _NOTHING)
        for key, value in held.values.items():
            values[key], origins[key] = value, layer
        for key, value in held.suffix.items() if layer == named else ():
            if value is not None or values[key] is not None:
                values[key], origins[key] = value, layer
    return Snapshot(
        values=MappingProxyType(values),
        origins=MappingProxyType(origins),
        model=layers[named].model if named else None,
        model_origin=named,
    )
