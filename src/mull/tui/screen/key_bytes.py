"""Decodes keys from terminal input, in the traditional encoding and in two newer ones.

A lone ESC byte is the key Esc; ESC followed by more in one read is Alt with that key, or the start
of a sequence. So Esc never waits for the next key. Terminals with the kitty keyboard protocol (`CSI
27 u`) or xterm's modifyOtherKeys (`CSI 27 ; 2 ; 13 ~`) report more: Shift-Enter is distinct from
Enter. Anything that is not a key is dropped rather than typed: late replies of the terminal, and
unknown sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from mull.neutral.patterns import pattern
from mull.tui.screen.keys import LONE_ESC

__all__ = ["ESC", "KeyDecoder"]

ESC = Keys(LONE_ESC)

_Key: TypeAlias = Keys | str
_PASTE, _PASTE_END = "\x1b[200~", "\x1b[201~"
_CSI = pattern(r"\x1b\[[0-?]*[ -/]*[@-~]")
_OPEN_CSI_HERE = pattern(r"\x1b\[[0-?]*[ -/]*")
_OPEN_CSI = pattern(r"\x1b\[[0-?]*[ -/]*\Z")
_STRING = pattern(r"\x1b[]P_^][^\x00-\x06\x08-\x1b]*(\x07|\x1b\\)")
_OPEN_STRING = pattern(r"\x1b[]P_^][^\x00-\x06\x08-\x1b]*\x1b?\Z")
_LONGEST = 256
"""Maximum characters of an incomplete sequence; replies of a terminal are shorter."""
_NUMBERED = pattern(r"\x1b\[(\d+)((?::\d*)*)(?:;(\d*)(?::(\d*))?)?(?:;[\d:]*)?u")
"""A cursor position report, unless it is F3 with a modifier."""
_OTHER = pattern(r"\x1b\[27;(\d+);(\d+)~")
_MODIFIED = pattern(r"\x1b\[(\d+);(\d+)(?::\d+)?([A-Z~])")
_CURSOR = pattern(r"\x1b\[\d+;\d+R")
_PROTOCOL = pattern(r"\x1b\[\?\d+u")
_SHIFT, _ALT, _CTRL, _SUPER, _HYPER, _META = 1, 2, 4, 8, 16, 32
_LOCKS = 64 | 128
_RELEASED = "3"
_KEYPAD = dict(enumerate("0123456789./*-+", 57399)) | {57414: "\r", 57415: "=", 57416: ","}
_KEYPAD_MOVES = {
    57417: Keys.Left, 57418: Keys.Right, 57419: Keys.Up, 57420: Keys.Down, 57421: Keys.PageUp,
    57422: Keys.PageDown, 57423: Keys.Home, 57424: Keys.End, 57425: Keys.Insert,
    57426: Keys.Delete,
}  # fmt: skip
_PRIVATE = range(57344, 63744)
"""Where the protocol has keys that are not characters."""
_CONTROLS = {**{c: chr(ord(c) & 0x1F) for c in "@\\]^_"}, "/": "\x1f", "?": "\x7f", " ": "\0"}


class KeyDecoder:
    """Takes input chunk by chunk, and passes keys to `give`.

    `speaks` is called when the terminal reports that it supports the kitty protocol.
    """

    def __init__(
        self, give: Callable[[KeyPress], None], speaks: Callable[[], None] = lambda: None
    ) -> None:
        self._give = give
        self._speaks = speaks
        self._held = ""
        self._pasted: list[str] | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether something is held that may be the beginning of a sequence."""
        return bool(self._held)

    def feed(self, data: str) -> None:
        """Process the bytes of one read."""
        known = len(self._held)  # an ESC before this point was read by itself
        text, self._held = self._held + data, ""
        at = 0
        while at < len(text):
            if self._pasted is not None:
                at = self._paste(text, at)
            elif text[at] != "\x1b":
                self._press(_plain(text[at]), text[at])
                at += 1
            else:
                taken = self._escaped(text, at, alone=at < known)
                if taken is None:
                    self._held = text[at:]
                    return
                at += taken

    def flush(self) -> None:
        """Nothing followed for a while: take pending input for what it looks like."""
        if self._pasted is not None:
            return
        if self._held == "\x1b":
            self._held = ""
            self._press(ESC)
        elif len(self._held) == 2:
            # Anything longer is a sequence on a slow connection, and is awaited.
            letter, self._held = self._held[1], ""
            self._press(Keys.Escape)
            self._press(_plain(letter), letter)

    def _press(self, key: _Key, data: str = "") -> None:
        self._give(KeyPress(key, data))

    def _paste(self, text: str, at: int) -> int:
        """Read pasted text up to its end mark; an incomplete mark is held back."""
        assert self._pasted is not None
        end = text.find(_PASTE_END, at)
        if end >= 0:
            self._pasted.append(text[at:end])
            whole, self._pasted = "".join(self._pasted), None
            self._press(Keys.BracketedPaste, whole)
            return end + len(_PASTE_END)
        cut = text.rfind("\x1b", max(at, len(text) - len(_PASTE_END) + 1))
        if cut >= 0 and _PASTE_END.startswith(text[cut:]):
            self._pasted.append(text[at:cut])
            self._held = text[cut:]
        else:
            self._pasted.append(text[at:])
        return len(text)

    def _escaped(self, text: str, at: int, *, alone: bool) -> int | None:
        """The length of what starts with an ESC, None if more must arrive.

        If it is `alone`, it was read before what follows it.
        """
        if at + 1 == len(text):
            return None
        second = text[at + 1]
        if second == "[":
            return self._csi(text, at)
        if second == "O":
            return self._function_key(text, at)
        if second in "]P_^" and (taken := self._string(text, at)) != 0:
            return taken
        told = _CURSOR.match(text, at + 1)  # Esc was pressed just before the terminal replied
        if second == "\x1b" and text[at + 2 : at + 3] in ("[", "O") and not told:
            # Alt, as rxvt encodes it
            self._press(Keys.Escape)
            return 1
        if alone or second == "\x1b":
            self._press(ESC)
            return 1
        self._press(Keys.Escape)
        self._press(_plain(second), second)
        return 2

    def _function_key(self, text: str, at: int) -> int | None:
        whole = text[at : at + 3]
        if len(whole) < 3:
            return None
        if whole not in ANSI_SEQUENCES:  # Alt-O, followed by something else
            self._press(Keys.Escape)
            self._press("O", "O")
            return 2
        self._known(whole)
        return 3

    def _string(self, text: str, at: int) -> int | None:
        """Drop a reply of the terminal; 0 if it is not one."""
        if found := _STRING.match(text, at):
            return found.end() - at
        if _OPEN_STRING.match(text, at) and len(text) - at < _LONGEST:
            return None
        return 0

    def _csi(self, text: str, at: int) -> int | None:
        found = _CSI.match(text, at)
        if found is None:
            if _OPEN_CSI.match(text, at) and len(text) - at < _LONGEST:
                return None
            broken = _broken(text, at)
            if broken == 2:  # Alt-[, followed by something else
                self._press(Keys.Escape)
                self._press("[", "[")
            return broken
        sequence = found[0]
        if sequence == _PASTE:
            self._pasted = []
        elif _PROTOCOL.fullmatch(sequence):
            self._speaks()
        elif _CURSOR.fullmatch(sequence):
            self._press(Keys.CPRResponse, sequence)
        elif (keys := _decoded(sequence)) is not None:
            for key in keys:
                self._press(key, key if len(key) == 1 and not isinstance(key, Keys) else "")
        else:
            self._known(_without_locks(sequence))
        return len(sequence)

    def _known(self, sequence: str) -> None:
        """A key that prompt_toolkit knows; anything else is not a key."""
        found = ANSI_SEQUENCES.get(sequence, ())
        for key in (found,) if isinstance(found, Keys) else found:
            if key is not Keys.Ignore:
                self._press(key)


def _broken(text: str, at: int) -> int:
    """The length of a sequence that is interrupted by something else."""
    found = _OPEN_CSI_HERE.match(text, at)
    assert found is not None
    return found.end() - at


def _plain(letter: str) -> _Key:
    found = ANSI_SEQUENCES.get(letter)
    return found if isinstance(found, Keys) else letter


def _without_locks(sequence: str) -> str:
    """`CSI 1;129 A` is an arrow while Num Lock is on; `CSI 1;1 A` is one without modifiers."""
    found = _MODIFIED.fullmatch(sequence)
    if found is None:
        return sequence
    number, held, end = found[1], _held_with(found[2]), found[3]
    if held:
        return f"\x1b[{number};{held + 1}{end}"
    return f"\x1b[{number}~" if end == "~" else f"\x1b[{end}"


def _held_with(number: str | None) -> int:
    """The modifiers as bits, without locks."""
    bits = max(0, int((number or "1")[:6]) - 1) & ~_LOCKS
    return (bits & ~_META) | _ALT if bits & _META else bits


def _decoded(sequence: str) -> Sequence[_Key] | None:
    """The keys of a sequence that encodes them as numbers; None if it does not."""
    if found := _NUMBERED.fullmatch(sequence):
        if found[4] == _RELEASED:
            return ()
        code, *others = [int(n[:7]) if n else 0 for n in (found[1] + found[2]).split(":")]
        shifted, base = (*others, 0, 0)[:2]
        return tuple(_keys(code, _held_with(found[3]), shifted, base))
    if found := _OTHER.fullmatch(sequence):
        return tuple(_keys(int(found[2][:7]), _held_with(found[1])))
    return None


def _keys(code: int, held: int, shifted: int = 0, base: int = 0) -> Iterator[_Key]:
    """prompt_toolkit's name for a key of this number with modifiers."""
    if held & (_SUPER | _HYPER):
        return
    if code == 27 or (code == ord("[") and held & _CTRL):
        yield ESC
        return
    if code in _KEYPAD_MOVES:
        yield _KEYPAD_MOVES[code]
        return
    letter = _KEYPAD.get(code) or ("" if code in _PRIVATE else _character(code))
    if letter == "\r":
        yield from (Keys.Escape, Keys.ControlM) if held else (Keys.ControlM,)
    elif letter == "\t":
        yield Keys.BackTab if held & _SHIFT else Keys.Tab
    elif letter in ("\x7f", "\b"):
        yield from (Keys.Escape, Keys.ControlH) if held & ~_SHIFT else (Keys.ControlH,)
    elif letter:
        yield from _character_keys(letter, held, _character(shifted), _character(base))


def _character(code: int) -> str:
    return chr(code) if 0 < code < 0xD800 or 0xE000 <= code < 0x110000 else ""


def _character_keys(letter: str, held: int, shifted: str, base: str) -> Iterator[_Key]:
    if held & (_CTRL | _ALT) and base.isascii():
        letter = base or letter  # Ctrl-C is Ctrl-C in any script
    if held & _CTRL:
        low = letter.lower()
        control = chr(ord(low) & 0x1F) if "a" <= low <= "z" else _CONTROLS.get(letter, "")
        if control:
            yield from (Keys.Escape,) if held & _ALT else ()
            yield _plain(control)
        return
    if held & _SHIFT:
        letter = shifted or letter.upper()[:1]
    yield from (Keys.Escape,) if held & _ALT else ()
    yield _plain(letter)
