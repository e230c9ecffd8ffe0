"""What a model's facts ask of the settings: the layer just above the defaults.

The default of `reasoning.includeInContext` stays false (BR-001). A model that the catalog marks
as needing its reasoning back, or whose provider advises sending it, gets it by preset, where the
user sees it and can override it.
The field it comes back in is the endpoint's affair (compat), not a setting: `reasoning.fieldName`
would also narrow what is read.
"""

from __future__ import annotations

from mull.neutral.target import ModelFacts
from mull.settings.layers import Snapshot
from mull.settings.registry import SettingValue, parse_all

__all__ = ["includes_sealed", "preset_told", "preset_values"]

_INCLUDE = "reasoning.includeInContext"


def preset_values(facts: ModelFacts) -> dict[str, SettingValue]:
    """The preset layer for a model; what its facts say outright goes before what follows from them.

    Raises:
        SettingError: the facts hold a preset that is not a setting.
    """
    derived: dict[str, SettingValue] = {}
    if facts.interleaved:
        derived[_INCLUDE] = True
    return {**derived, **parse_all(facts.presets)}


def includes_sealed(snapshot: Snapshot) -> bool:
    """Whether earlier thinking that is signed or encrypted is sent: nothing else is said, and
    whoever signs or encrypts thinking advises sending it back.
    """
    return bool(snapshot["model.presets"]) and snapshot.origin(_INCLUDE) == "default"


def preset_told(name: str, facts: ModelFacts, snapshot: Snapshot) -> str | None:
    """What the preset in effect does for a model of this name, and why; None without one."""
    if snapshot.origin(_INCLUDE) != "preset":
        return None
    if not snapshot[_INCLUDE]:
        return f"{name} does without its earlier thinking; a preset leaves it out"
    if facts.interleaved:
        field = f", in {facts.returns_in}" if facts.returns_in else ""
        return f"{name} requires its thinking back{field}; a preset sends it"
    return f"{name} makes use of its earlier thinking; a preset sends it"
