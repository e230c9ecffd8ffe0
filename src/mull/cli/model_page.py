"""What `mull models show` prints about one model: the same facts for people and as JSON.

A missing fact is "unknown" here, never 0. Key variables are shown as set or not; their values are
not read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from mull.auth.clouds import CLOUDS
from mull.auth.variables import key_variables
from mull.dialects.traits import TRAITS
from mull.policy.thinking.plan import LevelRow, level_table
from mull.policy.thinking.wish import wish_of
from mull.settings.presets import includes_sealed

if TYPE_CHECKING:
    from mull.catalog.load import Header
    from mull.neutral.target import ModelFacts, Target
    from mull.settings.layers import Snapshot

__all__ = ["page", "page_json", "price", "sends_back", "steering"]

UNKNOWN = "unknown"
_CARRIERS = {
    "signed": "thinking blocks with their signatures, unchanged",
    "parts": "thoughts and thought signatures, on the parts they came with",
    "items": "reasoning items with encrypted content, before what they led to",
}


def page(
    target: Target,
    snapshot: Snapshot,
    header: Header,
    keys: Collection[str],
    reach: Sequence[tuple[str, str]] = (),
) -> list[str]:
    """The page, line by line; `reach` says how the model is reached from this machine, or what is
    missing.
    """
    facts = target.facts
    title = facts.name or target.model
    fields = (
        ("name", target.name),
        ("window", _tokens(facts.limit.context)),
        ("output", _tokens(facts.limit.output)),
        ("price", _prices(facts)),
        ("dialect", target.dialect),
        ("endpoint", target.endpoint or UNKNOWN),
        ("key", _keys(target, keys)),
        *reach,
        ("thinking", steering(facts, known=target.known)),
        ("sent back", sends_back(target, snapshot)),
        ("tokenizer", _tokenizer(facts)),
        ("source", _source(target, header)),
        *((("status", facts.status),) if facts.status else ()),
    )
    lines = [f"{title} ({target.provider_name})"]
    lines += [f"  {label:<10} {text}" for label, text in fields]
    lines += [f"  note       {note}" for note in target.notes]
    return [*lines, "", *_table(level_table(target, snapshot))]


def page_json(target: Target, snapshot: Snapshot, header: Header, keys: Collection[str]) -> str:
    """The page as one JSON object."""
    told: dict[str, Any] = {
        "provider": target.provider,
        "providerName": target.provider_name,
        "model": target.model,
        "known": target.known,
        "dialect": target.dialect,
        "endpoint": target.endpoint,
        "keys": [{"name": name, "set": name in keys} for name in target.key_env],
        "facts": msgspec.to_builtins(target.facts),
        "compat": msgspec.to_builtins(target.compat),
        "sentBack": sends_back(target, snapshot),
        "levels": msgspec.to_builtins(level_table(target, snapshot)),
        "source": _source(target, header),
        "notes": list(target.notes),
    }
    return msgspec.json.format(msgspec.json.encode(told), indent=2).decode()


def price(amount: float | None) -> str:
    """A price in dollars per million tokens, with as many digits as it needs."""
    if amount is None:
        return "?"
    text = f"{amount:.2f}"
    return text if float(text) == amount else f"{amount:g}"


def steering(facts: ModelFacts, *, known: bool = True) -> str:
    """How the model's thinking is controlled, in a few words."""
    if not facts.reasoning:
        return "none" if known else UNKNOWN
    ways = ["on/off"] if facts.has_toggle else []
    if facts.efforts:
        ways.append(" ".join(facts.efforts))
    if facts.budget is not None:
        low, high = facts.budget.min, facts.budget.max
        ways.append(f"budget {_number(low)}–{_number(high)}")
    return ", ".join(ways) or ("always on" if facts.always_thinks else "yes, no levels known")


def sends_back(target: Target, snapshot: Snapshot) -> str:
    """Which thinking is sent back to the endpoint, when, and in which field."""
    compat = target.compat
    included = snapshot["reasoning.includeInContext"]
    layer = snapshot.origin("reasoning.includeInContext")
    by = "" if layer == "default" else f" by {layer}"
    setting = f"reasoning.includeInContext is {str(included).lower()}{by}"
    carried = _CARRIERS.get(TRAITS[target.dialect].takes)
    if not target.facts.reasoning and target.known:
        return "nothing"
    if carried is None and compat.reasoning_out == "never":
        return "nothing: the endpoint rejects it"
    if carried is None:
        field = compat.reasoning_out
        where = "in the field it came in" if field == "same" else f"in {field}"
        carried = f"thinking, {where}"
    needed = {"all": "on every answer", "tool_calls": "while tools are called"}
    must = needed.get(compat.requires_reasoning)
    told = f"; required {must}" if must else ""
    strip = snapshot["reasoning.stripFromContext"]
    if wish_of(snapshot).is_off:
        included, setting = False, "thinking is off"
    elif included and strip != "none":
        setting = f"reasoning.stripFromContext is {strip}"
    turns = "of all turns" if strip == "none" else "of the last turn that has any"
    when = "only while a tool chain is open"
    if included and strip != "all":
        when = turns
    elif includes_sealed(snapshot) and strip != "all" and not wish_of(snapshot).is_off:
        when = f"what is signed {turns}, the rest {when}"
    return f"{carried}, {when} ({setting}){told}"


def _table(rows: tuple[LevelRow, ...]) -> list[str]:
    rows = _folded(rows)
    first = max(len(row.level) for row in rows)
    second = max(len(row.text) for row in rows)
    lines = [f"  {'level':<{first}}  {'thinking':<{second}}  sent"]
    for row in rows:
        lines.append(f"  {row.level:<{first}}  {row.text:<{second}}  {row.sent_as}")
        if row.warning:
            lines.append(f"  {'':<{first}}  ⚠ {row.warning}")
    return lines


def _folded(rows: tuple[LevelRow, ...]) -> tuple[LevelRow, ...]:
    """Levels with the same effect, in one row."""
    groups: list[list[LevelRow]] = []
    for row in rows:
        same = groups and msgspec.structs.replace(groups[-1][0], level=row.level) == row
        if same:
            groups[-1].append(row)
        else:
            groups.append([row])
    return tuple(
        msgspec.structs.replace(group[0], level=f"{group[0].level}–{group[-1].level}")
        if len(group) > 1
        else group[0]
        for group in groups
    )


def _tokens(count: int | None) -> str:
    return f"{count:,} tokens" if count else UNKNOWN


def _number(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


def _prices(facts: ModelFacts) -> str:
    cost = facts.cost or {}
    words = (
        ("input", "in"),
        ("output", "out"),
        ("reasoning", "thinking"),
        ("cache_read", "cache read"),
        ("cache_write", "cache write"),
    )
    told = [f"${price(cost[key])} {word}" for key, word in words if _is_amount(cost.get(key))]
    return f"{', '.join(told)} per million tokens" if told else UNKNOWN


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float)


def _keys(target: Target, keys: Collection[str]) -> str:
    if not target.key_env:
        return "none needed" if target.known else UNKNOWN
    in_cloud = target.compat.auth in CLOUDS
    names = key_variables(target.key_env) if in_cloud else target.key_env
    told = [f"{name} ({'set' if name in keys else 'not set'})" for name in names]
    return " or ".join([*told, *(["a login on this machine"] if in_cloud else [])])


def _tokenizer(facts: ModelFacts) -> str:
    from mull.tokenizers import DEFAULT_VOCABULARY

    vocabulary = facts.tokenizer or DEFAULT_VOCABULARY
    return f"{vocabulary} ({'exact' if facts.tokenizer_exact else 'an approximation'})"


def _source(target: Target, header: Header) -> str:
    if not target.known:
        return "not in the catalog"
    base = header.sources[0] if header.sources else None
    told = target.facts.source
    if base is None or (told is not None and told.startswith("your ")):
        return told or UNKNOWN
    dates = {source.name: source.date for source in header.sources}
    names = [base.name] if told is None else [told]
    return ", ".join(f"{n} ({dates[n]})" if dates.get(n) else n for n in names)
