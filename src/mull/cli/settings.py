"""`mull settings`: every setting, its value, the layer it comes from and its line of help."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from mull.agent.setup import Setup
from mull.cli.setup import add_arguments, add_model_argument, load
from mull.settings.environment import env_name
from mull.settings.layers import Snapshot
from mull.settings.presets import preset_told
from mull.settings.registry import REGISTRY, format_value

__all__ = ["arguments", "rows", "run"]


def arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    add_model_argument(parser)
    add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Namespace) -> int:
    """Print the current settings."""
    setup = load(options)
    snapshot, note = _snapshot(setup)
    if options.json:
        print(_json(snapshot))
        return 0
    print("\n".join(rows(snapshot)))
    if note:
        print(f"\n{note}")
    return 0


def rows(snapshot: Snapshot) -> list[str]:
    """An aligned line for the model and for each setting."""
    cells = [
        ("model", snapshot.model or "unset", snapshot.model_origin or "default", "model in use"),
        *(
            (key, format_value(value), snapshot.origin(key), REGISTRY[key].help)
            for key, value in snapshot.items()
        ),
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(3)]
    return [
        "  ".join([*(row[i].ljust(widths[i]) for i in range(3)), row[3]]).rstrip() for row in cells
    ]


def _snapshot(setup: Setup) -> tuple[Snapshot, str | None]:
    """The snapshot with the presets of the current model, and a remark about the model."""
    plain = setup.settings.snapshot()
    if plain.model is None:
        return plain, None
    target = setup.resolve(plain.model)
    snapshot = setup.snapshot_for(target)
    told = preset_told(target.name, target.facts, snapshot)
    return snapshot, f"{told}." if told else None


def _json(snapshot: Snapshot) -> str:
    import json

    settings = {
        key: {
            "value": value,
            "layer": snapshot.origin(key),
            "default": REGISTRY[key].default,
            "allowed": REGISTRY[key].allowed,
            "environment": env_name(key),
            "help": REGISTRY[key].help,
        }
        for key, value in snapshot.items()
    }
    model = {"value": snapshot.model, "layer": snapshot.model_origin}
    return json.dumps({"model": model, "settings": settings}, indent=2, ensure_ascii=False)
