"""Where mull's files lie: the user's own (config, profiles) and what mull keeps (data); and where
the programs are that mull itself runs.

MULL_CONFIG_DIR and MULL_DATA_DIR go before everything, then the XDG variables, then what the
operating system is used to. Nothing is created here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["config_dir", "data_dir", "find_program"]


def config_dir(environ: Mapping[str, str] | None = None, platform: str | None = None) -> Path:
    """The directory of config.toml, profiles and the user's additions to the catalog."""
    return _directory("MULL_CONFIG_DIR", "XDG_CONFIG_HOME", _CONFIG, environ, platform)


def data_dir(environ: Mapping[str, str] | None = None, platform: str | None = None) -> Path:
    """The directory of sessions and of whatever else mull writes for itself."""
    return _directory("MULL_DATA_DIR", "XDG_DATA_HOME", _DATA, environ, platform)


# by platform: the variable that names the parent, and the parent under the home directory
_CONFIG = {
    "darwin": ("", "Library/Application Support"),
    "win32": ("APPDATA", "AppData/Roaming"),
    "": ("", ".config"),
}
_DATA = {
    "darwin": ("", "Library/Application Support"),
    "win32": ("LOCALAPPDATA", "AppData/Local"),
    "": ("", ".local/share"),
}


def _directory(
    own: str,
    xdg: str,
    usual: Mapping[str, tuple[str, str]],
    environ: Mapping[str, str] | None,
    platform: str | None,
) -> Path:
    env = os.environ if environ is None else environ
    if env.get(own):
        return Path(env[own]).expanduser()
    variable, under_home = usual.get(platform or sys.platform, usual[""])
    for name in (xdg, variable):
        # the XDG specification: a relative path there is invalid and is to be ignored
        if name and os.path.isabs(env.get(name, "")):
            return Path(env[name]) / "mull"
    return Path.home() / under_home / "mull"


def find_program(name: str, apart: Path | None = None) -> str | None:
    """A program that mull runs for itself, from the PATH without relative folders and those inside
    `apart`, the working folder: what is there may have been written by a model.
    """
    import shutil  # a start needs no program

    root = os.path.realpath(apart or os.getcwd())
    places = []
    for place in os.environ.get("PATH", os.defpath).split(os.pathsep):
        real = os.path.realpath(place)
        if os.path.isabs(place) and real != root and not real.startswith(root + os.sep):
            places.append(place)
    return shutil.which(name, path=os.pathsep.join(places)) if places else None
