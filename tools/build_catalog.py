"""Writes the catalog that mull ships: `python -m tools.build_catalog MODELS_DEV_DIR NEWER_JSON`.

MODELS_DEV_DIR holds one models.dev provider per file; NEWER_JSON holds later models under the
field names of litellm's price list. models.dev wins field by field: the newer file adds models
and the facts that models.dev leaves open. Only what a source says is written: a reasoning model
whose steering nobody told has no `reasoning_options`, one known to have none has `[]`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["build", "convert", "main", "merge"]

OUTPUT = Path(__file__).parents[1] / "src/mull/catalog/data/models.jsonl"
NEWER = "litellm 1.108.4"
SOURCES = [
    {
        "name": "models.dev",
        "date": "2026-07-02",
        "what": "every provider and model that names no other source",
    },
    {
        "name": NEWER,
        "date": None,
        "what": "model_prices_and_context_window.json: later models, and facts missing above",
    },
]
MODES = ("chat", "responses")
WORDS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
USUAL = ("low", "medium", "high")
HEAD = ("id", "name", "env", "npm", "api", "doc")


def main(arguments: Sequence[str]) -> int:
    """Build the catalog from the two paths and write it in its place."""
    if len(arguments) != 2:
        print("usage: python -m tools.build_catalog MODELS_DEV_DIR NEWER_JSON", file=sys.stderr)
        return 2
    folder, newer = map(Path, arguments)
    providers = {path.stem: _read(path) for path in sorted(folder.glob("*.json"))}
    data = build(providers, _read(newer))
    OUTPUT.write_bytes(data)
    print(f"{OUTPUT}: {len(data)} bytes, {len(providers)} providers", file=sys.stderr)
    return 0


def build(providers: Mapping[str, Any], newer: Mapping[str, Any]) -> bytes:
    """The whole file: a header, then one provider per line, everything in order of its id."""
    header = {"format": 1, "sources": SOURCES, "providers": len(providers)}
    lines = [header]
    unknown = newer.keys() - providers.keys()
    if unknown:
        raise SystemExit(f"the newer file has providers that models.dev lacks: {sorted(unknown)}")
    for name in sorted(providers):
        provider = {"id": name, **providers[name]}
        line = {key: provider[key] for key in HEAD if key in provider}
        models = _models(provider["models"], newer.get(name, {}))
        lines.append({**line, "models": dict(sorted(models.items()))})
    return b"".join(_compact(line) for line in lines)


def _models(known: Mapping[str, Any], newer: Mapping[str, Any]) -> dict[str, Any]:
    models = {name: {**entry, "name": entry["name"].strip()} for name, entry in known.items()}
    for name, entry in newer.items():
        if name in models:
            models[name] = merge(models[name], convert(entry))
        elif entry.get("mode") in MODES:
            models[name] = {**convert(entry), "source": NEWER}
    return models


def merge(known: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """A models.dev entry with the facts it lacks; `source` only if there were any."""
    filled = _fill(known, added)
    if not filled.get("reasoning"):  # how to steer thinking that models.dev says is not there
        filled = {k: v for k, v in filled.items() if k in known or k not in _THINKING}
    return dict(known) if filled == known else {**filled, "source": NEWER}


_THINKING = ("reasoning_options", "can_be_off", "default_effort")


def _fill(known: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    filled = dict(known)
    for key, value in added.items():
        if key not in filled:
            filled[key] = value
        elif key == "limit":  # models.dev writes 0 for an unknown limit
            told = {part: number for part, number in filled[key].items() if number}
            filled[key] = {**filled[key], **_fill(told, value)}
        elif key == "cost":
            filled[key] = _fill(filled[key], value)
    return filled


def convert(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A newer entry in models.dev's fields."""
    limit = {key: entry[key] for key in ("context", "output") if entry.get(key)}
    cost = dict(entry.get("cost") or {})
    if entry.get("output_cost_per_reasoning_token"):
        cost["reasoning"] = round(entry["output_cost_per_reasoning_token"] * 1e6, 6)
    converted: dict[str, Any] = {"limit": limit} if limit else {}
    if cost:
        converted["cost"] = cost
    if "supports_reasoning" in entry:
        converted["reasoning"] = bool(entry["supports_reasoning"])
    options = _steering(entry)
    if options is not None:
        converted["reasoning_options"] = options
    if entry.get("default_reasoning_effort"):
        converted["default_effort"] = entry["default_reasoning_effort"]
    if entry.get("thinking_always_on"):
        converted["can_be_off"] = False
    return converted


def _steering(entry: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """How thinking is steered, or None where the file does not tell."""
    words = entry.get("reasoning_effort_levels") or _words(entry)
    if words is None or not entry.get("supports_reasoning"):
        return None
    options: list[dict[str, Any]] = [{"type": "effort", "values": list(words)}]
    if entry.get("supports_adaptive_thinking") and entry.get("thinking_always_on") is False:
        options.insert(0, {"type": "toggle"})
    return options


def _words(entry: Mapping[str, Any]) -> list[str] | None:
    flags = {word: entry.get(f"supports_{word}_reasoning_effort") for word in WORDS}
    if not any(flags.values()) and not entry.get("supports_adaptive_thinking"):
        return None
    return [w for w in WORDS if flags[w] or (w in USUAL and flags[w] is not False)]


def _read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def _compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
