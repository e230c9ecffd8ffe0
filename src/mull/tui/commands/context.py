"""`/context` and `/compress`: what fills the context window, what is not sent and why, and how to
make room.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from mull.neutral.errors import LocalError
from mull.neutral.events import Compressed, Event, Progressed, Warned
from mull.policy.meter import Meter, meter_of
from mull.settings.registry import REGISTRY, parse
from mull.transcripts.words import short_count
from mull.tui.commands.host import Host, page
from mull.tui.commands.known import Known
from mull.tui.commands.page import Page
from mull.tui.commands.words import single, split_words
from mull.tui.screen.front import Item
from mull.tui.text.charts import Part, parted
from mull.tui.text.lines import Span, Style
from mull.tui.text.width import fitted

if TYPE_CHECKING:
    from mull.policy.compress.plan import Strategy

__all__ = ["compress_now", "compress_offers", "show_context"]

STRATEGY, THRESHOLD = "compression.strategy", "compression.threshold"
_LETTERS = "abcdefghijk"
_AMOUNTS = 17
"""Columns of a count and its share."""
_FREE, _KEPT = "free", "kept for the answer"


async def show_context(host: Host, text: str) -> None:
    """Draw the parts of the next request and list what it leaves out.

    Raises:
        LocalError: the current settings do not allow a request.
    """
    if text.strip():
        raise LocalError("/context takes no arguments")
    session, shown = host.session, page(host)
    prepared = session.prepared()
    meter = meter_of(prepared)
    _draw_bar(shown, meter)
    _tell_count(shown, meter, session.snapshot()[THRESHOLD])
    _tell_left_out(shown, meter)
    for note in prepared.notes:
        if note.requested is None:
            shown.note(note.text, warning=note.warning)
    toolbox = session.toolbox
    if toolbox is not None and toolbox.instructions:
        shown.title("Instructions")
        for one in toolbox.instructions:
            size = f"{len(one.text):,} characters" if one.text else ""
            shown.note(", ".join(filter(None, (one.path, size, one.note))))
    host.show(shown.lines)


def _draw_bar(shown: Page, meter: Meter) -> None:
    """The bar of parts, with a legend below it."""
    theme = shown.theme
    share = "" if meter.share is None else f" ({meter.share:.1%} of the usable window)"
    shown.title(f"{meter}{share}")
    parts = [
        (name, Part(tokens, style, letter))
        for (name, tokens), style, letter in zip(meter.rows, _styles(shown), _LETTERS, strict=False)
    ]
    if meter.window is not None:
        kept = meter.window - (meter.usable or meter.window)
        free = max(meter.window - meter.effective - kept, 0)
        parts.append((_FREE, Part(free, theme.faint, "." if shown.plain else "░")))
        if kept:
            parts.append((_KEPT, Part(kept, theme.faint, " " if not shown.plain else "-")))
    shown.line(*parted([part for _, part in parts], shown.width - 1, plain=shown.plain))
    whole = meter.window or meter.effective or 1
    room = min(max(len(name) for name, _ in parts), shown.width - _AMOUNTS - 3)
    for name, part in parts:
        sign = part.letter if shown.plain or part.letter in " ░" else "█"
        amount = f"{part.amount:>11,.0f}  {part.amount / whole:>4.0%}"
        told = Span(fitted(name, room).ljust(room), theme.text)
        shown.line(Span(f" {sign} ", part.style), told, Span(amount, theme.note))


def _styles(shown: Page) -> Iterable[Style]:
    """A colour for each part; colours repeat when there are more parts than colours."""
    theme = shown.theme
    hues = (
        theme.heading, theme.tool, theme.string, theme.keyword, theme.number, theme.removed,
        theme.quote, theme.warning, theme.link, theme.text,
    )  # fmt: skip
    return [style._replace(bold=False, underline=False) for style in hues]


def _tell_count(shown: Page, meter: Meter, threshold: float) -> None:
    kind = "exact" if meter.exact else "an estimate"
    said = f"Counted by {meter.counter}, {kind}."
    if meter.reported is not None:
        said += f" The provider counted {meter.reported:,} tokens in the last request."
    shown.blank()
    shown.text(said, shown.theme.note)
    if meter.usable is not None:
        limit = short_count(round(meter.usable * threshold))
        shown.text(f"Compresses at {limit} ({THRESHOLD} {threshold:g}).", shown.theme.note)


def _tell_left_out(shown: Page, meter: Meter) -> None:
    left = [
        (meter.thinking_left_out, "stored thinking"),
        (meter.other_left_out, "other stored content"),
    ]
    told = [f"{tokens:,} tokens of {what}" for tokens, what in left if tokens]
    if told:
        shown.text(f"Not sent: {' and '.join(told)}.", shown.theme.note)


async def compress_now(host: Host, text: str) -> None:
    """Replace earlier messages with a summary, or undo the last one.

    Raises:
        LocalError: there is nothing to compress, or the strategy is unknown.
    """
    session = host.session
    word = single(split_words(text), "/compress [STRATEGY|undo]")
    if word == "undo":
        if not session.undo_compression():
            raise LocalError("nothing is compressed, so there is no summary to undo")
        host.tell("Undid the last summary: the messages it replaced are sent again.")
        return
    strategy = None if word is None else cast("Strategy", parse(STRATEGY, word))
    began = False

    def say(event: Event) -> None:
        nonlocal began
        if isinstance(event, Compressed):
            _tell_compressed(host, event)
        elif isinstance(event, Warned):
            host.tell(event.text, warning=True)
        elif isinstance(event, Progressed) and not began:
            began = True
            host.tell(f"{event.text} …")

    try:
        async with host.working("compressing"):
            await session.compress(say, strategy)
    except asyncio.CancelledError:
        host.tell("Interrupted: nothing was compressed.")
        raise


def _tell_compressed(host: Host, event: Compressed) -> None:
    sizes = ""
    if event.ok and event.before is not None and event.after is not None:
        sizes = f": {event.before:,} → {event.after:,} tokens. /compress undo reverts it"
    host.tell(f"{event.text[:1].upper()}{event.text[1:]}{sizes}", warning=not event.ok)


def compress_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """The strategies, and `undo`."""
    if len(words) > 1:
        return ()
    strategies = [Item(word, "a strategy") for word in REGISTRY[STRATEGY].choices]
    return [*strategies, Item("undo", "undo the last summary")]
