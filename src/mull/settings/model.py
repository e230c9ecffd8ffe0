"""How a model is written in the settings: a name, and perhaps a level or a budget at its end.

Whether such a model exists is for the catalog to say.
"""

from __future__ import annotations

from mull.neutral.errors import SettingError
from mull.neutral.target import split_level
from mull.settings.registry import SettingValue, parse
from mull.settings.words import quote, quote_value

__all__ = ["is_same_model", "parse_model", "split_model"]


def parse_model(raw: object) -> str:
    """The name as it stands, known to be well formed up to its end.

    Raises:
        SettingError: it cannot be a model's name, or the budget at its end cannot be one.
    """
    name = raw.strip() if isinstance(raw, str) else raw
    try:
        parse("compression.model", name)
    except SettingError:
        raise SettingError(
            f"the model cannot be {quote_value(raw)}: use a name such as provider/model"
        ) from None
    text = str(name)
    split_model(text)
    return text


def split_model(name: str) -> tuple[str, dict[str, SettingValue]]:
    """A model's name without its level or budget, and what that says of the settings.

    Raises:
        SettingError: the number at its end cannot be a budget.
    """
    model, level = split_level(name)
    if level is None:
        return model, {}
    if level == 0:
        raise SettingError(
            f"{quote(name)} asks for a budget of 0: for no thinking use {model}/none"
        )
    if isinstance(level, int):
        return model, {"reasoning.maxTokens": parse("reasoning.maxTokens", level)}
    return model, {"reasoning.effort": level}


def is_same_model(name: str | None, other: str | None) -> bool:
    """Whether two names without levels mean the same model: one may leave the provider out."""
    if name is None or other is None:
        return False
    short, long = sorted((f"/{name}", f"/{other}"), key=len)
    return long.endswith(short)
