"""`/view` and `/theme`: how things are drawn. They do not affect what is stored or sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from mull.neutral.errors import LocalError
from mull.tui.commands.host import Host
from mull.tui.commands.known import Known
from mull.tui.commands.words import choice, single, split_words
from mull.tui.conversation.thought import MODES, Mode
from mull.tui.screen.front import Item
from mull.tui.screen.theme import THEMES

if TYPE_CHECKING:
    from mull.agent.session import Session

__all__ = ["choose_theme", "choose_view", "theme_offers", "view_offers"]

_SHOWN: dict[Mode, str] = {
    "full": "shown in full",
    "preview": "shown as a preview",
    "hidden": "hidden, but stored and sent as before",
}


async def choose_view(host: Host, text: str) -> None:
    """Show thinking in the given way, or in the next one."""
    word = single(split_words(text), f"/view [{'|'.join(MODES)}]")
    if word is None:
        view = host.cycle_view()
    else:
        view = cast(Mode, choice(word, MODES, "view"))
        host.show_thoughts(view)
    host.tell(f"Thinking is {_SHOWN[view]}.")


async def choose_theme(host: Host, text: str) -> None:
    """Use another theme, chosen from a list if none is given.

    Raises:
        LocalError: there is no theme of this name.
    """
    name = single(split_words(text), "/theme [NAME]") or await _picked_theme(host)
    if name is not None:
        host.set_theme(name)
        host.tell(f"Theme: {name}.")


async def _picked_theme(host: Host) -> str | None:
    """The theme that was picked; while the choice is on one, everything is drawn in it."""

    def preview(name: str) -> None:
        with suppress(LocalError):  # one with a mistake is told when it is chosen
            host.set_theme(name)

    before, picked = host.front.theme.name, None
    items = [replace(one, current=one.name == before) for one in _themes(host.session)]
    try:
        picked = await host.front.pick("Which theme?", items, preview=preview)
    finally:
        if picked is None and host.front.theme.name != before:
            host.set_theme(before)
    return picked


def view_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """The ways to show thinking."""
    return [Item(view, _SHOWN[view]) for view in MODES] if len(words) == 1 else ()


def theme_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """The themes."""
    return _themes(known.session) if len(words) == 1 else ()


def _themes(session: Session) -> list[Item]:
    own = session.engine.setup.config.themes
    built_in = [Item(theme) for theme in THEMES if theme not in own]
    return [*(Item(theme, "your own") for theme in own), *built_in]
