"""Asks whether a known weakness is in what mull installs: `python -m tools.audit`.

pip-audit asks the advisory service of PyPI about every installed distribution. Without the service
nothing can be said, and that is said; it is the only reason to pass without an answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["main", "verdict"]

_UNREACHABLE = ("Failed to connect", "ConnectionError", "Max retries exceeded", "timed out")
_OURS = "mull-reasoning"


def _ask() -> tuple[int, str, str]:
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def verdict(status: int, out: str, err: str) -> tuple[int, str]:
    """What pip-audit's answer comes to: an exit status and a text."""
    try:
        told: list[dict[str, Any]] = json.loads(out)["dependencies"]
    except (ValueError, KeyError, TypeError):
        if any(sign in err for sign in _UNREACHABLE):
            return 0, "not audited: the advisory service cannot be reached"
        return 1, f"pip-audit failed with status {status}:\n{err[-2000:]}"
    others = [one for one in told if one["name"] != _OURS]
    unknown = [one["name"] for one in others if "skip_reason" in one]
    weak = [one for one in others if one.get("vulns")]
    if weak:
        lines = [
            f"{one['name']} {one['version']}: {flaw['id']}"
            f" (mended in {', '.join(flaw['fix_versions']) or 'no version yet'})"
            for one in weak
            for flaw in one["vulns"]
        ]
        return 1, "\n".join(lines)
    if unknown and len(unknown) == len(others):  # a mirror without advisories knows none of them
        return 0, "not audited: the advisory service cannot be reached"
    if unknown:
        return 1, f"the advisory service does not know {', '.join(unknown)}"
    return 0, f"no known weakness in {len(others)} distributions"


def main(argv: Sequence[str] | None = None, ask: Callable[[], tuple[int, str, str]] = _ask) -> int:
    """Audit what is installed; 1 if a weakness is known, or if the audit itself failed."""
    status, text = verdict(*ask())
    print(text, file=sys.stderr if status else sys.stdout)
    return status


if __name__ == "__main__":
    sys.exit(main())
