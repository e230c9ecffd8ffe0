"""The table of settings: every key, what it may be, what it is by default, and its line of help.

Whatever speaks of settings (layers, environment, profiles, config file, commands, completion,
the reference page) reads REGISTRY; there is no other list. A value is refused here or nowhere,
and a refusal says what is allowed (ERR-001). Where a value comes from is no concern of this file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from msgspec import Struct

from mull.neutral.errors import SettingError
from mull.neutral.patterns import pattern
from mull.neutral.thinking import LADDER, LEVEL_ALIASES
from mull.settings.words import closest, join_or, quote, quote_value

__all__ = [
    "CLEARING_WORDS",
    "REGISTRY",
    "Kind",
    "Setting",
    "SettingValue",
    "find",
    "format_value",
    "parse",
    "parse_all",
]

SettingValue: TypeAlias = bool | int | float | str | None
Kind: TypeAlias = Literal["boolean", "choice", "count", "seconds", "share", "field", "model"]

CLEARING_WORDS = ("unset", "default")
"""Words that never are a value: callers read them as "take the value away"."""

_MOST = 1_000_000_000
_BOOLEANS = {
    **dict.fromkeys(("true", "on", "yes", "1"), True),
    **dict.fromkeys(("false", "off", "no", "0"), False),
}
_WHOLE = pattern(r"\+?(?:\d+(?:_\d+)*|\d{1,3}(?:,\d{3})+)(?:\.0+)?", re.ASCII)
_DECIMAL = pattern(r"\+?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_FIELD = pattern(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}", re.ASCII)
_TAKEN = ("content", "name", "refusal", "role", "tool_call_id", "tool_calls")
"""Fields of a message that mean something else: reasoning there would be taken for it."""
_MODEL = pattern(r"[^\s/](?:\S{0,298}[^\s/])?")


class Setting(Struct, frozen=True):
    """One row of the table. A `default` of None means unset."""

    key: str
    kind: Kind
    default: SettingValue
    help: str
    choices: tuple[str, ...] = ()
    aliases: Mapping[str, str] = MappingProxyType({})

    @property
    def namespace(self) -> str:
        """The part of the key before the dot."""
        return self.key.partition(".")[0]

    @property
    def allowed(self) -> str:
        """What the value may be, as a phrase that follows "use"."""
        return join_or(self.choices) if self.choices else _ALLOWED[self.kind]


_ALLOWED: Mapping[Kind, str] = {
    "boolean": "true or false",
    "count": "a whole number from 1 to 1,000,000,000, such as 50000",
    "seconds": "a number of seconds above 0, such as 90",
    "share": "a number from 0 to 1, such as 0.85",
    "field": "the name of a field for reasoning, such as reasoning_content",
    "model": "a model's name, such as provider/model",
}


def _table(*rows: Setting) -> Mapping[str, Setting]:
    return MappingProxyType({row.key: row for row in rows})


REGISTRY: Mapping[str, Setting] = _table(
    Setting("reasoning.enabled", "boolean", True, "ask models to think"),
    Setting("reasoning.includeInContext", "boolean", False, "send earlier thinking back"),
    Setting("reasoning.includeInResponse", "boolean", True, "show thinking to the reader"),
    Setting(
        "reasoning.effort",
        "choice",
        None,
        "how hard to think (med is medium, off is none)",
        choices=LADDER,
        aliases=LEVEL_ALIASES,
    ),
    Setting(
        "reasoning.maxTokens",
        "count",
        None,
        "thinking budget in tokens; overrides the effort where the model accepts one",
    ),
    Setting(
        "reasoning.format",
        "choice",
        "field",
        "how thinking is sent back; native behaves as field",
        choices=("field", "native"),
    ),
    Setting(
        "reasoning.stripFromContext",
        "choice",
        "none",
        "which earlier thinking to leave out of requests",
        choices=("all", "allButLast", "none"),
    ),
    Setting(
        "reasoning.maxSeconds",
        "seconds",
        None,
        "stop the thinking after this many seconds, once per turn",
    ),
    Setting(
        "reasoning.fieldName",
        "field",
        None,
        "read thinking from this field only, and send it back there",
    ),
    Setting(
        "reasoning.summary",
        "choice",
        "auto",
        "which summary of the thinking to request from the Responses API",
        choices=("auto", "concise", "detailed", "none"),
    ),
    Setting(
        "reasoning.handoff",
        "choice",
        "drop",
        "whether a model gets another model's thinking as text",
        choices=("drop", "text"),
    ),
    Setting("reasoning.dynamicBudget", "boolean", True, "lower the budget in a long context"),
    Setting(
        "reasoning.dynamicBudgetOver",
        "count",
        150_000,
        "number of tokens above which a context is long",
    ),
    Setting("reasoning.dynamicBudgetCap", "count", 10_000, "highest budget in a long context"),
    Setting(
        "reasoning.condenseOver",
        "count",
        None,
        "summarise unsigned thinking longer than this many tokens",
    ),
    Setting("context.limit", "count", None, "context window in tokens; overrides the catalog"),
    Setting(
        "compression.threshold",
        "share",
        0.85,
        "how full the usable window may get before mull compresses",
    ),
    Setting(
        "compression.strategy",
        "choice",
        "middle-out",
        "summarise the middle, drop the oldest turns, or summarise everything",
        choices=("middle-out", "truncate", "one-shot"),
    ),
    Setting(
        "compression.model",
        "model",
        None,
        "model that writes summaries; unset means the current one",
    ),
    Setting(
        "tools.mode",
        "choice",
        None,
        "what tools do without asking; unset means auto where that is safe, else ask",
        choices=("auto", "ask", "accept-edits", "read-only"),
    ),
    Setting(
        "tools.sandbox",
        "choice",
        "auto",
        "confine commands that nobody approved, or all (on), or none (off)",
        choices=("auto", "on", "off"),
    ),
    Setting(
        "tools.onDemandOver",
        "count",
        40,
        "most MCP tools in a request; beyond that the model searches for them",
    ),
    Setting(
        "tools.onDemandTokens",
        "count",
        12_000,
        "most tokens of MCP tool definitions; beyond that the model searches",
    ),
    Setting(
        "terminal.notify",
        "choice",
        "bell",
        "how you are told that a long turn is over or a question waits",
        choices=("bell", "notification", "none"),
    ),
    Setting("terminal.notifyAfter", "seconds", 20.0, "a turn is long from this many seconds on"),
    Setting("terminal.title", "boolean", True, "say in the window's title what goes on"),
    Setting(
        "model.presets",
        "boolean",
        True,
        "apply the settings that the catalog recommends for a model",
    ),
)

_BY_LOWER = {key.lower(): setting for key, setting in REGISTRY.items()}


def find(key: str) -> Setting:
    """The setting of this key, whatever its case.

    Raises:
        SettingError: there is none; names the closest key and how to list them.
    """
    setting = _BY_LOWER.get(key.strip().lower())
    if setting is None:
        near = closest(key, REGISTRY)
        hint = f"did you mean {near}? " if near else ""
        raise SettingError(f"there is no setting {quote(key)}: {hint}`mull settings` lists all")
    return setting


def parse(key: str, raw: object) -> SettingValue:
    """The value in its canonical form, from text or from a value that has a type already.

    Raises:
        SettingError: the key or the value is not allowed; says what is.
    """
    setting = find(key)
    value = _read(setting, raw.strip() if isinstance(raw, str) else raw)
    if value is None:
        raise SettingError(f"{setting.key} cannot be {quote_value(raw)}: use {setting.allowed}")
    return value


def parse_all(values: Mapping[str, object], *, unset: bool = False) -> dict[str, SettingValue]:
    """Every value under its canonical key; None is no value and is left out.

    With `unset`, None stays where a setting can be unset: then that is what was chosen.

    Raises:
        SettingError: one of them is not allowed, or a key is there twice in different case.
    """
    parsed: dict[str, SettingValue] = {}
    for key, raw in values.items():
        name = find(key).key
        if name in parsed:
            raise SettingError(f"{name} is given twice: keep one")
        if raw is not None:
            parsed[name] = parse(name, raw)
        elif unset and REGISTRY[name].default is None:
            parsed[name] = None
    return parsed


def format_value(value: SettingValue) -> str:
    """The text that `parse` reads as this value; "unset" for none."""
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _read(setting: Setting, raw: object) -> SettingValue:
    match setting.kind:
        case "boolean":
            return _boolean(raw)
        case "choice":
            return _choice(setting, raw)
        case "count":
            return _count(raw)
        case "seconds":
            number = _decimal(raw)
            return number if number is not None and 0 < number <= _MOST else None
        case "share":
            number = _decimal(raw)
            return number if number is not None and 0 <= number <= 1 else None
        case "field":
            return None if raw in _TAKEN else _name(_FIELD, raw)
        case "model":
            return _name(_MODEL, raw)


def _boolean(raw: object) -> bool | None:
    if isinstance(raw, str):
        return _BOOLEANS.get(raw.lower())
    return bool(raw) if isinstance(raw, int) and raw in (0, 1) else None


def _choice(setting: Setting, raw: object) -> str | None:
    if not isinstance(raw, str):
        return None
    word = setting.aliases.get(raw.lower(), raw).lower()
    return next((choice for choice in setting.choices if choice.lower() == word), None)


def _count(raw: object) -> int | None:
    if isinstance(raw, str):
        digits = raw.partition(".")[0].replace("_", "").replace(",", "").lstrip("+0")
        number = int(digits or "0") if _WHOLE.fullmatch(raw) and len(digits) <= 10 else 0
    elif isinstance(raw, float):
        number = int(raw) if raw.is_integer() else 0
    elif isinstance(raw, int) and not isinstance(raw, bool):
        number = int(raw)
    else:
        return None
    return number if 1 <= number <= _MOST else None


def _decimal(raw: object) -> float | None:
    if isinstance(raw, str):
        whole = _WHOLE.fullmatch(raw)
        plain = raw.replace("_", "").replace(",", "") if whole else raw
        return float(plain) if whole or _DECIMAL.fullmatch(raw) else None
    if isinstance(raw, bool) or not isinstance(raw, int | float) or abs(raw) > _MOST:
        return None
    return float(raw)  # a NaN passes here and fails every comparison


def _name(pattern: re.Pattern[str], raw: object) -> str | None:
    if not isinstance(raw, str) or raw.lower() in CLEARING_WORDS:
        return None
    return str(raw) if pattern.fullmatch(raw) and raw.isprintable() else None
