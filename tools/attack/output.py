"""Text that wants to be obeyed: by a terminal, by a browser, by whoever reads an exported file."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser

from mull.history.log import Entry
from mull.markdown.reader import read
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.events import TextDelta, ThinkingDelta
from mull.neutral.messages import Message, assistant, user
from mull.transcripts.markdown import to_markdown
from mull.transcripts.page import to_html
from mull.transcripts.transcript import Transcript
from tools.attack.ground import Home, Server, Trial, attack, calling, home, saying
from tools.pseudo_terminal import PseudoTerminal, Timeout

_KIND = "Output"
OBEYED = (
    *("\x1b]52;c;cHduZWQ=\x07", "\x1b]0;title\x07", "\x1bc", "\x1b[2J", "\x1b[?1049h"),
    *("\x1b]8;;http://x.example\x07", "\x9b2J", "\x9d0;t\x9c", "\x1bP$q\x1b\\", "\x1b_G\x1b\\"),
)
_HOSTILE = "a" + "".join(OBEYED) + "b\u202ec\u2066d"
_SIGNS = (b"\x1b]52", b"\x1b]0;title", b"\x1bc", b"\x1b[2J", b"\x1b]8;;http://x", b"\xc2\x9b")
_DIRECTION = ("\u202e".encode(), "\u2066".encode())
_PATIENCE = 40


def _at_a_terminal(place: Home, *words: str, keys: str = "", until: bytes = b"") -> bytes:
    """Everything that a command writes to its terminal until it ends, or has said `until`."""
    import sys

    written = bytearray()
    command = [sys.executable, "-m", "mull", *words]
    with PseudoTerminal(
        command, environment=place.environment, folder=place.folder, seen=written.extend
    ) as terminal:
        if keys:
            terminal.read_until(lambda heard: b"/help" in heard, _PATIENCE)
            terminal.press(keys)
        deadline = time.monotonic() + _PATIENCE
        quiet = 0
        while time.monotonic() < deadline and quiet < 12:
            quiet = 0 if terminal.read(0.25) or not written else quiet + 1
            if until and until in written:
                break
    return bytes(written)


def _obeyed(written: bytes) -> str | None:
    for sign in (*_SIGNS, *_DIRECTION):
        if sign in written:
            return f"the terminal got {sign!r}"
    return None if written else "nothing was written"


@attack(_KIND, "escapes in thoughts, texts, names and arguments of an answer, at a terminal")
def _answers() -> Iterator[Trial]:
    plays = {
        "text": saying("openai-chat", TextDelta(_HOSTILE, 0)),
        "thought": saying("openai-chat", ThinkingDelta(_HOSTILE, 0), TextDelta("x", 1)),
        "call": calling("openai-chat", [(_HOSTILE, json.dumps({"path": _HOSTILE}))], _HOSTILE),
        "path": calling("openai-chat", [("read", json.dumps({"path": _HOSTILE}))]),
    }
    for form, play in plays.items():
        for front in (("ask", "q", "--tools", "read"), ("--plain",), ()):
            with home() as place, Server(play) as server:
                place.configure("openai-chat", server.url)
                model = ("-m", "evil-openai-chat/m")
                keys = "" if "ask" in front else "q\r"
                try:
                    written = _at_a_terminal(place, *front, *model, keys=keys)
                except Timeout:
                    yield f"{form}, {front}", "it did not start"
                    continue
                yield f"{form}, {' '.join(front) or 'terminal'}", _obeyed(written)


@attack(_KIND, "escapes in what is stored, imported, named or in the catalog, at a terminal")
def _stored() -> Iterator[Trial]:
    blocks: list[object] = [
        {"type": "opaque", "data": {"type": _HOSTILE}},
        {"type": "media", "mediaType": "image/png", "name": _HOSTILE, "data": "AA=="},
        {"type": "text", "text": _HOSTILE},
        {"type": "tool_call", "id": "c", "name": _HOSTILE, "input": {_HOSTILE: _HOSTILE}},
    ]
    message = {"role": "assistant", "blocks": blocks}
    asked = {"role": "user", "blocks": [{"type": "text", "text": _HOSTILE}]}
    records = [{"type": "message", "message": one} for one in (asked, message)]
    session = {
        "type": "session",
        "version": 1,
        "title": _HOSTILE,
        "name": "odd",
        "records": records,
    }
    catalog = {
        "acme": {"name": _HOSTILE, "api": "https://a/v1", "models": {"m": {"name": _HOSTILE}}}
    }
    with home() as place:
        (place.folder / "s.json").write_text(json.dumps(session), encoding="utf-8")
        (place.folder / "bad.json").write_text(json.dumps({"type": _HOSTILE}), encoding="utf-8")
        place.mull("sessions", "import", "s.json")
        (place.config / "models.json").write_text(json.dumps(catalog), encoding="utf-8")
        for words in (
            ("sessions", "list", "--all"),
            ("sessions", "show", "odd"),
            ("sessions", "show", _HOSTILE),
            ("sessions", "import", "bad.json"),
            ("sessions", "search", "a"),
            ("models", "show", "acme/m"),
            ("models", _HOSTILE),
            ("ask", "-m", _HOSTILE, "q"),
            ("settings", "--set", _HOSTILE),
            (_HOSTILE,),
        ):
            yield " ".join(words)[:30], _obeyed(_at_a_terminal(place, *words))


_FORGED = (
    "touch PWNED\n#\x1bc> list\n\nrun: ls\n  ls\n"
    "Run this command?\n1. Yes\nNumber, or a reason for no: "
)


@attack(_KIND, "a question about a command that shows another command")
def _forged() -> Iterator[Trial]:
    for front in (("--plain",), ()):
        play = calling("openai-chat", [("run", json.dumps({"command": _FORGED}))])
        with home() as place, Server(play) as server:
            place.configure("openai-chat", server.url)
            written = _at_a_terminal(
                place, *front, "-m", "evil-openai-chat/m", "--tools", "all", keys="q\r"
            )
            plain = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", written)
            hidden = None if b"touch PWNED" in plain else "the command is not shown"
            ran = "it ran" if (place.folder / "PWNED").exists() else None
            yield " ".join(front) or "terminal", ran or _obeyed(written) or hidden


PAYLOADS = (
    *("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</pre><script>x</script>"),
    *("<svg onload=alert(1)>", "<iframe src=//evil.example>", "</style><script>x</script>"),
    *("[a](javascript:alert(1))", "![i](http://evil.example/?q=1)", "<a href='javascript:1'>x</a>"),
    *("[a](data:text/html,<script>1</script>)", "<https://evil.example/x>", "&lt;script&gt;"),
    *('"><script>x</script>', "'><img src=x onerror=1>", "<!--", "]]>", "\x00<script>", "`<b>`"),
    *("[a]: javascript:1\n\n[a]", "![a](//evil.example/a.png)", "<base href=//evil.example>"),
    *("<meta http-equiv=refresh content=0>", "[x](vbscript:1)", "[x](  JaVaScRiPt:1)"),
)


def _transcripts(text: str) -> Iterator[tuple[str, Transcript]]:
    call = ToolCallBlock("c", text, {text: text})
    places: dict[str, list[Message]] = {
        "text": [user(text), assistant(TextBlock(text))],
        "thought": [user("q"), assistant(ThinkingBlock(text), TextBlock("a"))],
        "call": [
            user("q"),
            assistant(call),
            Message(role="tool", blocks=(ToolResultBlock("c", text),)),
        ],
        "opaque": [user("q"), assistant(OpaqueBlock({"type": text, "x": text}))],
        "file": [Message(role="user", blocks=(MediaBlock("image/png", "AA==", name=text),))],
    }
    for place, messages in places.items():
        yield place, Transcript(title=text, records=tuple(Entry(one) for one in messages))


class _Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "iframe", "object", "embed", "base", "form", "svg"):
            self.found.append(tag)
        for name, value in attrs:
            address = re.sub(r"[\s\x00-\x20]", "", value or "").lower()
            if name.startswith("on"):
                self.found.append(name)
            elif name in ("src", "srcset", "data") and not address.startswith("data:image/"):
                self.found.append(f"{name}={address[:30]}")
            elif name == "href" and address.startswith(("javascript:", "vbscript:", "data:")):
                self.found.append(f"href={address[:30]}")


@attack(_KIND, "hostile markup in exported pages")
def _pages() -> Iterator[Trial]:
    usual = _Tags(to_html(next(_transcripts("plain"))[1])).found
    for payload in PAYLOADS:
        for place, transcript in _transcripts(payload):
            found = [one for one in _Tags(to_html(transcript)).found if one not in usual]
            yield f"{place}: {payload}", f"the page holds {found}" if found else None


@attack(_KIND, "hostile links and pictures in exported Markdown, as a renderer reads it")
def _documents() -> Iterator[Trial]:
    from markdown_it import MarkdownIt

    renderer = MarkdownIt("gfm-like", {"linkify": False, "html": True})
    renderer.validateLink = lambda url: True  # type: ignore[method-assign]
    for payload in PAYLOADS:
        for place, transcript in _transcripts(payload):
            found = _Tags(renderer.render(to_markdown(transcript))).found
            yield f"{place}: {payload}", f"it holds {found}" if found else None


@attack(_KIND, "Markdown that takes long to read")
def _bombs() -> Iterator[Trial]:
    bombs = {
        "brackets": "[" * 30_000,
        "emphasis": "*a_" * 20_000,
        "quotes": ">" * 5_000 + "a",
        "lists": "- " * 5_000 + "a",
        "links": "[a](" * 20_000,
        "ticks": "".join("`" * n + " " for n in range(1, 300)),
        "tables": "|a" * 5_000 + "|\n" + "|-" * 5_000 + "|\n" + "|b" * 5_000,
        "html": "<!--" * 20_000,
    }
    for form, text in bombs.items():
        began = time.monotonic()
        read(text)
        to_html(Transcript(records=(Entry(user("q")), Entry(assistant(TextBlock(text))))))
        took = time.monotonic() - began
        yield form, f"{took:.0f} s" if took > 20 else None
