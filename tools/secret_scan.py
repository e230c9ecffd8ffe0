"""Looks for keys in what git tracks: `python -m tools.secret_scan [FILE …]`.

A key is found by the form that its issuer gives it, or by standing beside a name such as `api_key`
as a random-looking word. What tests make up says so in itself (`made-up`, `canary`, `example`, …)
or has no randomness to speak of. The scan prints where, never what.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from math import log2
from pathlib import Path

__all__ = ["findings", "main"]

ROOT = Path(__file__).resolve().parent.parent
_FORMS = {
    begin: re.compile(rf"{edge}{begin}{rest}")
    for edge, begin, rest in (
        (r"\b", "sk-", r"(?:ant-|proj-|or-v1-|svcacct-)?[A-Za-z0-9_-]{20,}"),  # OpenAI and its like
        (r"\b", "AIza", r"[A-Za-z0-9_-]{35}\b"),  # Google
        *((r"\b", begin, r"[A-Z0-9]{16}\b") for begin in ("AKIA", "ASIA")),  # AWS
        *((r"\b", f"gh{kind}_", r"[A-Za-z0-9]{36,}\b") for kind in "pousr"),  # GitHub
        (r"\b", "github_pat_", r"\w{50,}"),
        *(
            (r"\b", begin, r"[-_][A-Za-z0-9_-]{30,}")
            for begin in ("gsk", "xai", "hf", "pplx", "r8", "nvapi", "fw", "tgp_v1")
        ),
        *((r"\b", f"xox{kind}-", r"[A-Za-z0-9-]{20,}") for kind in "abprs"),  # Slack
        *((r"\b", f"{kind}_live_", r"[A-Za-z0-9]{20,}") for kind in ("sk", "rk")),  # Stripe
        (r"\b", "pypi-AgE", r"[A-Za-z0-9_-]{50,}"),
        (r"\b", "npm_", r"[A-Za-z0-9]{36}\b"),
        (r"\b", "eyJ", r"[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{20,}"),
        ("", "-----BEGIN ", r"(?:[A-Z]+ )?PRIVATE KEY-----[ \r\n\\n]+[A-Za-z0-9+/]{30,}"),
    )
}
"""By what a key begins with: only a file that has it somewhere is searched for the whole."""
_NAMED = re.compile(
    r"""(?xi) (?:api[_-]?key|secret|token|password|authorization|bearer) ["']? \s* [:=]? \s*
        ["']? ([A-Za-z0-9_+/=-]{32,}) """
)
_MADE_UP = re.compile(
    r"(?i)made[-_]?up|canary|example|fake|dummy|test|hunter2|AAAAbbbb|secret|xxxx|0123456789|1234567|abcdef|"
    r"your[-_]|placeholder|do[-_]not|not[-_]a[-_]"
)
_LEAST_BITS, _LEAST_BITS_OF_A_FORM = 3.6, 3.4
"""Bits of a letter: words and runs have less, keys have four and more, short ones fewer."""
_LARGEST = 2_000_000


def findings(path: Path) -> Iterator[str]:
    """Places in a file that look like a key, as `line N: kind`."""
    if not path.is_file() or path.stat().st_size > _LARGEST:
        return
    text = path.read_bytes().decode("utf-8", "replace")
    forms = [form for begin, form in _FORMS.items() if begin in text]
    for found in (found for form in forms for found in form.finditer(text)):
        if _is_random(found[0], _LEAST_BITS_OF_A_FORM):
            yield f"line {_line(text, found.start())}: a key of a known form"
    for found in _NAMED.finditer(text):
        if any(form.search(found[0]) for form in forms):
            continue
        if _is_random(found[1]) and _is_mixed(found[1]):
            yield f"line {_line(text, found.start())}: a random word beside a name for keys"


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _is_random(word: str, least: float = _LEAST_BITS) -> bool:
    if _MADE_UP.search(word):
        return False
    counts = Counter(word)
    return -sum(n / len(word) * log2(n / len(word)) for n in counts.values()) >= least


def _is_mixed(word: str) -> bool:
    """Letters of both cases and digits: a name in code has at most two of them."""
    return all(re.search(kind, word) for kind in ("[a-z]", "[A-Z]", "[0-9]"))


def main(argv: Sequence[str] | None = None) -> int:
    """Scan the files given, or everything that git tracks; 1 if something looks like a key."""
    given = sys.argv[1:] if argv is None else list(argv)
    if not given:
        told = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
        )
        given = [str(ROOT / name) for name in told.stdout.split("\0") if name]
    found = [f"{name}: {place}" for name in given for place in findings(Path(name))]
    for line in found:
        print(line, file=sys.stderr)
    print(f"{len(given):,} files, {len(found)} that look like keys")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
