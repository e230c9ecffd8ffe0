"""`--schema`: the schema of an answer, from a file with a JSON schema or a type in a module."""

from __future__ import annotations

import re
import sys
from contextlib import redirect_stdout
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from mull.neutral.errors import ConfigError
from mull.settings.words import closest, quote

if TYPE_CHECKING:
    from mull.agent.structured import Shape

__all__ = ["load_shape"]

_TYPE = re.compile(r"(?P<module>[A-Za-z_][\w.]*|[^:]+\.py):(?P<name>[A-Za-z_][\w.]*)")
_LARGEST = 1 << 20


def load_shape(given: str) -> Shape:
    """The schema that `FILE`, `module:Name` or `file.py:Name` describes.

    Raises:
        ConfigError: there is no such file or type, or it describes no schema.
    """
    from mull.agent.structured import shape_of

    found = _TYPE.fullmatch(given)
    if found is not None and not Path(given).exists():
        return shape_of(_type(found["module"], found["name"]))
    return shape_of(_schema(Path(given)), _stem(given))


def _stem(given: str) -> str | None:
    name = Path(given).name.partition(".")[0]
    return name if re.fullmatch(r"[A-Za-z][\w-]*", name) else None


def _schema(path: Path) -> dict[str, Any]:
    from mull.agent.attachments import read_file

    data = read_file(path, str(path))
    if len(data) > _LARGEST:
        raise ConfigError(f"{quote(str(path))} is too large for a schema")
    try:
        schema = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{quote(str(path))} is not a JSON schema: {error}. Give a type as module:Name"
        ) from None
    if not isinstance(schema, dict) or not schema.keys() & _TELLING:
        raise ConfigError(
            f'{quote(str(path))} is JSON but not a JSON schema: it needs "type", "properties" or'
            " the like"
        )
    return schema


_TELLING = {"type", "properties", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"}


def _type(place: str, name: str) -> Any:
    """The type of this name in a module; a module that is not a file is imported relative to the
    working folder.
    """
    try:
        with redirect_stdout(sys.stderr):  # stdout is for the value
            found: Any = _from_file(Path(place)) if place.endswith(".py") else _named(place)
    except Exception as error:  # whatever the module raises on import
        raise ConfigError(f"cannot load {place} for --schema: {error!r}") from None
    for part in name.split("."):
        if not hasattr(found, part):
            near = closest(part, [one for one in dir(found) if not one.startswith("_")])
            hint = f": did you mean {near}?" if near else ""
            raise ConfigError(f"{place} has no {part}{hint}")
        found = getattr(found, part)
    return found


def _named(module: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    return import_module(module)


def _from_file(path: Path) -> ModuleType:
    """The module in this file, whatever else has its name."""
    sys.path.insert(0, str(path.parent.absolute()))
    name = f"schema_{path.stem}"
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)  # types look their names up there
    spec.loader.exec_module(module)
    return module
