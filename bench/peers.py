"""The interpreters of the libraries that are measured beside mull: those of the fidelity suite.

`PEERS=litellm,openai` measures these alone. A quick run installs nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bench.report import QUICK
from mull.testing.fidelity.peers import PeerUnavailable, cache_folder, load_peers

ROOT = Path(__file__).parent.parent
LEFT_OUT: list[str] = []
"""The peers that are not among the figures, each with the reason."""
CHOSEN = frozenset(os.environ.get("PEERS", "").replace(",", " ").split())
"""The peers that were asked for; all, if none is named."""

QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONWARNINGS": "ignore"}
"""The environment of every section: a peer downloads nothing while it is measured."""


def say(text: str) -> None:
    """Tell the person who waits."""
    print(f"  {text}", file=sys.stderr, flush=True)


def leave_out(name: str, why: str) -> None:
    """Say that a peer is not measured, here and on the page."""
    told = f"{name} ({why})"
    LEFT_OUT.append(told)
    say(f"left out: {told}")


def is_chosen(name: str) -> bool:
    """Whether a peer is to be measured."""
    return not CHOSEN or name in CHOSEN


def peer_python(name: str) -> str | None:
    """The interpreter that has a peer, which is installed first; none if it is left out."""
    command = peer_command(name)
    return command[0] if command else None


def peer_home(name: str) -> Path:
    """The folder of a peer's environment."""
    return cache_folder() / (load_peers()[name].environment or name)


def peer_command(name: str) -> list[str] | None:
    """The interpreter and the script of a peer in the fidelity suite; none if it is left out."""
    if not is_chosen(name):
        return None
    known = load_peers()
    if name not in known:
        leave_out(name, "the fidelity suite does not have it")
        return None
    if known[name].packages and not (peer_home(name) / ".ready").exists():
        if QUICK:
            leave_out(name, "not installed, and a quick run installs nothing")
            return None
        say(f"installing {name} into {peer_home(name)}, once ...")
    try:
        return [*known[name].install(name, cache_folder())]
    except PeerUnavailable as error:
        leave_out(name, str(error))
        return None
