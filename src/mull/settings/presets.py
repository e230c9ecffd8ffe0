"""What a model's facts ask of the settings: the layer just above the defaults.

The default of `reasoning.includeInContext` stays false (BR-001). A model that the catalog marks
as needing its reasoning back gets it by preset, where the user sees it and can override it.
The field it comes back in is the endpoint's affair (compat), not a setting: `reasoning.fieldName`
would also narrow what is read.
"""

from __future__ import annotations

from mull.neutral.target import ModelFacts
from mull.settings.registry import SettingValue, parse_all

__all__ = ["preset_values"]


def preset_values(facts: ModelFacts) -> dict[str, SettingValue]:
    """The preset layer for a model; what its facts say outright goes before what follows from them.

    Raises:
        SettingError: the facts hold a preset that is not a setting.
    """
    derived: dict[str, SettingValue] = {}
    if facts.interleaved:
        derived["reasoning.includeInContext"] = True
    return {**derived, **parse_all(facts.presets)}
