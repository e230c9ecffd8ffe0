"""What other packages add: tools, stores and transports, found by their entry points.

A package names what it adds in its metadata, in one of the groups below. Nothing of it is imported
before it is used. One that cannot be loaded is an error that names it and its package.

    [project.entry-points."mull.transports"]
    corp = "corp_mull:make_transport"
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from mull.neutral.errors import ConfigError, MullError

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.metadata import EntryPoint

__all__ = ["Group", "Plugin", "create", "load_plugin", "load_plugins", "plugin_names"]

Group: TypeAlias = Literal["mull.tools", "mull.stores", "mull.transports"]
"""The kinds of plugins. A tool is anything that `tools=` takes; a store or a transport is a
function without arguments that returns one."""


class Plugin(Struct, frozen=True):
    """What a package has added under a name."""

    group: Group
    name: str
    package: str
    value: object = None

    def __str__(self) -> str:
        return f"the plugin {self.name!r} ({self.group}) of the package {self.package}"


def plugin_names(group: Group) -> tuple[str, ...]:
    """The names in a group, in order."""
    return tuple(sorted({point.name for point in _points(group)}))


def load_plugin(group: Group, name: str) -> Plugin:
    """What is installed under a name.

    Raises:
        ConfigError: nothing is, several packages use the name, or it cannot be loaded.
    """
    found = [point for point in _points(group) if point.name == name]
    if not found:
        names = ", ".join(plugin_names(group))
        known = f"; installed: {names}" if names else ""
        raise ConfigError(f"no package has installed {name!r} in {group}{known}")
    packages = sorted({_package(point) for point in found})
    if len(packages) > 1:
        raise ConfigError(
            f"the packages {' and '.join(packages)} both have {name!r} in {group}: uninstall one"
        )
    return _loaded(group, found[0])


def create(group: Group, name: str) -> object:
    """What the function returns that is installed under a name.

    Raises:
        ConfigError: there is none, or it fails.
    """
    plugin = load_plugin(group, name)
    try:
        return cast("Callable[[], object]", plugin.value)()
    except MullError:
        raise
    except Exception as error:
        raise ConfigError(f"{plugin} cannot be created: {type(error).__name__}: {error}") from error


def load_plugins(group: Group) -> tuple[list[Plugin], list[str]]:
    """All of a group, and what is wrong with those that cannot be loaded."""
    loaded: list[Plugin] = []
    problems: list[str] = []
    for name in plugin_names(group):
        try:
            loaded.append(load_plugin(group, name))
        except ConfigError as error:
            problems.append(str(error))
    return loaded, problems


def _points(group: Group) -> list[EntryPoint]:
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    return list(entry_points(group=group))


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "unknown"


def _loaded(group: Group, point: EntryPoint) -> Plugin:
    plugin = Plugin(group, point.name, _package(point))
    try:
        return replace(plugin, value=point.load())
    except Exception as error:  # whatever its package does while it is imported
        said = " ".join(str(error).split())
        raise ConfigError(f"{plugin} cannot be loaded: {type(error).__name__}: {said}") from error
