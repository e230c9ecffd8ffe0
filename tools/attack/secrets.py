"""Keys that must not be seen: in what is said, in what is kept, by whom it does not concern."""

from __future__ import annotations

import json
from collections.abc import Iterator

from mull.neutral.events import TextDelta
from tools.attack.ground import KEY, Home, Server, Trial, attack, crash_of, home, saying

_KIND = "Secrets"


def _found(place: Home, *but: str) -> str | None:
    """A file that holds the key, other than those that may."""
    for path in place.top.rglob("*"):
        if path.is_file() and path.name not in but and KEY.encode() in path.read_bytes():
            return f"{path.relative_to(place.top)} holds the key"
    return None


@attack(_KIND, "a planted key in all that commands say and keep")
def _canary() -> Iterator[Trial]:
    with home() as place, Server(saying("openai-chat", TextDelta("fine"))) as server:
        place.configure("openai-chat", server.url)
        place.mull("keys", "set", "openai", stdin=KEY.encode())
        model = ("-m", "evil-openai-chat/m")
        (place.folder / "talk.json").write_text('[{"role":"user","content":"q"}]', encoding="utf-8")
        shown = ("sessions", "export", "kept", "--format")
        for words in (
            ("ask", *model, "--name", "kept", "q"), ("ask", *model, "--json", "q"),
            ("ask", *model, "--stream-json", "q"), ("sessions", "show", "kept"),
            ("ask", *model, "--base-url", "http://127.0.0.1:1/v1", "q"), (*shown, "json"),
            (*shown, "html"), ("settings",), ("doctor",), ("doctor", "evil-openai-chat/m"),
            ("keys", "list"), ("models", "show", "evil-openai-chat/m"), ("profile", "save", "p"),
            ("wire", "encode", *model, "talk.json"), ("mcp", "list"),
        ):  # fmt: skip
            for debug in ("0", "1"):
                ran = place.mull(*words, more={"DEBUG": debug, "OPENAI_API_KEY": KEY})
                told = "the key is told" if KEY in ran.said else None
                crash = crash_of(ran) if debug == "0" else None  # with it, tracebacks are asked for
                yield f"{' '.join(words[:2])}, DEBUG={debug}", told or crash
        yield "files", _found(place, "keys.json")


@attack(_KIND, "files and folders where the umask hides nothing")
def _modes() -> Iterator[Trial]:
    with home() as place, Server(saying("openai-chat", TextDelta("fine"))) as server:
        place.configure("openai-chat", server.url)
        place.mull("keys", "set", "openai", "--file", stdin=KEY.encode(), umask=0)
        place.mull("ask", "-m", "evil-openai-chat/m", "q", umask=0)
        place.mull("profile", "save", "p", umask=0)
        for path in (place.data, *sorted(place.data.rglob("*"))):
            mode = path.stat().st_mode & 0o077
            yield path.name, f"others may {mode:03o}" if mode else None


@attack(_KIND, "a keys file that others can read")
def _readable() -> Iterator[Trial]:
    for mode in (0o644, 0o640, 0o604, 0o622):
        with home() as place, Server(saying("openai-chat", TextDelta("fine"))) as server:
            place.data.mkdir(mode=0o700)
            path = place.data / "keys.json"
            path.write_text(json.dumps({"version": 1, "keys": {"evil-openai-chat": KEY}}))
            path.chmod(mode)
            ran = place.ask("openai-chat", server.url, EVIL_API_KEY="")
            used = any(KEY.encode() in request for request in server.requests)
            told = "the key is told" if KEY in ran.said else None
            yield f"{mode:o}", told or ("the key was used" if used else crash_of(ran))


@attack(_KIND, "keys with line breaks and characters that no header can hold")
def _odd_keys() -> Iterator[Trial]:
    for form in ("\n", "\r\nX-Evil: 1", "\x01", "ü", " inner blank ", "\u2028"):
        with home() as place, Server(saying("openai-chat", TextDelta("fine"))) as server:
            ran = place.ask("openai-chat", server.url, EVIL_API_KEY=f"{KEY}{form}{KEY}")
            smuggled = any(b"X-Evil" in request for request in server.requests)
            told = "the key is told" if KEY in ran.said else None
            yield repr(form), told or ("a header came through" if smuggled else crash_of(ran))


@attack(_KIND, "secrets in addresses")
def _addresses() -> Iterator[Trial]:
    for url in (f"https://h.example/mcp?token={KEY}", f"https://user:{KEY}@h.example/mcp"):
        with home() as place:
            ran = place.mull("mcp", "add", "z", "--url", url)
            told = "it is told" if KEY in ran.said else None
            yield url[:24], told or crash_of(ran, 0, 2) or _found(place, "keys.json")
    with home() as place, Server(saying("openai-chat", TextDelta("fine"))) as server:
        url = server.url.replace("http://", f"http://user:{KEY}@")
        ran = place.mull("ask", "-m", "openai-compatible/m", "--base-url", url, "q")
        told = "it is told" if KEY in ran.said else None
        yield "--base-url", told or crash_of(ran) or _found(place)
