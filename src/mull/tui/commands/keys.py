"""`/keys` and `/login`: give mull a key without leaving the conversation. Keys are never shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mull.agent.key_entry import delete_key, keep_key, key_rows, provider_named, stored_in
from mull.auth.logins import LOGINS
from mull.neutral.errors import ConfigError, LocalError
from mull.tui.commands.host import Host, page
from mull.tui.commands.known import Known
from mull.tui.commands.words import split_words
from mull.tui.screen.front import Item

if TYPE_CHECKING:
    from mull.auth.flow import Show

__all__ = ["FORMS", "enter_key", "key_offers", "log_in", "login_offers", "use_keys"]

FORMS = (
    ("/keys", "show where each key was found"),
    ("/keys set PROVIDER", "store a key; what you type is hidden"),
    ("/keys delete PROVIDER", "delete a stored key"),
)
_USAGE = "/keys lists keys, /keys set PROVIDER stores one, /keys delete PROVIDER deletes one"


async def use_keys(host: Host, text: str) -> None:
    """Show the keys, store one, or delete one.

    Raises:
        LocalError: the provider is unknown, or a key cannot be read or stored.
    """
    setup, keys, words = host.session.engine.setup, host.session.engine.keys, split_words(text)
    if not words:
        return _show(host)
    if len(words) != 2 or words[0] not in ("set", "delete"):
        if len(words) > 2 and words[0] == "set":
            raise LocalError(
                "a key typed here would be visible and stay in the history: /keys set "
                "PROVIDER asks for it"
            )
        raise LocalError(_USAGE)
    if words[0] == "delete":
        host.tell("\n".join(delete_key(setup, keys, words[1])))
    else:
        await enter_key(host, provider_named(setup, words[1]))


def _show(host: Host) -> None:
    shown, engine = page(host), host.session.engine
    rows = [
        (provider, place.kind, place.variable or place.login or "", "" if used else "(not used)")
        for provider, place, used in key_rows(engine.setup, engine.keys)
    ]
    theme = shown.theme
    if rows:
        shown.table(rows, (theme.accent, theme.text, theme.note, theme.note))
    else:
        shown.text("No key found.")
    shown.note("/keys set PROVIDER stores one.")
    host.show(shown.lines)


async def enter_key(host: Host, provider: str) -> bool:
    """Ask for a key and store it; False if none was entered.

    Raises:
        LocalError: the input is not a key, or it cannot be stored.
    """
    engine = host.session.engine
    text = await host.front.secret(f"Key for {provider} (hidden; press Enter to cancel)")
    if not text or not text.strip():
        host.tell("No key entered; nothing was stored.")
        return False
    host.tell("\n".join(keep_key(engine.setup, engine.keys, provider, text.strip())))
    return True


async def log_in(host: Host, text: str) -> None:
    """Log in to a provider; without a name, list the providers that support it.

    Raises:
        LocalError: the provider has no login.
        RemoteError: the login failed.
    """
    from mull.client.auth_drive import drive

    engine, words = host.session.engine, split_words(text)
    if not words:
        host.tell(
            f"/login PROVIDER logs in to a provider ({', '.join(LOGINS)}). /keys set "
            "PROVIDER stores a key."
        )
        return
    provider = provider_named(engine.setup, words[0])
    if provider not in LOGINS:
        raise ConfigError(
            f"{provider} has no login: store its key with /keys set {provider}; /login "
            f"works for {', '.join(LOGINS)}"
        )
    loop = asyncio.get_running_loop()

    def show(step: Show) -> None:
        minutes = max(1, round(step.seconds / 60))
        said = f"Open {step.url} and enter the code {step.code} within {minutes} minutes."
        loop.call_soon_threadsafe(host.tell, said)

    outcome = await asyncio.to_thread(drive, LOGINS[provider]().log_in(), show=show)
    where = engine.keys.keep(provider, outcome.key)
    host.tell(f"Logged in to {provider}; the login is stored in {stored_in(engine.keys, where)}.")


def key_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """The actions, then the providers."""
    if len(words) == 1:
        return [Item("set", "store a key"), Item("delete", "delete a stored key")]
    engine = known.session.engine
    if words[0] == "delete":
        return [Item(name) for name in engine.keys.stored()]
    return [Item(one.id, one.name) for one in engine.setup.catalog().providers.values()]


def login_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """The providers that have a login."""
    return [Item(name) for name in LOGINS] if len(words) == 1 else []
