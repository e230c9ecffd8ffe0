"""`/profile`: named sets of settings, saved from this session and applied to it immediately."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from mull.agent.setup import profiles
from mull.neutral.errors import LocalError, ProfileError
from mull.settings.addresses import hidden_key
from mull.settings.profile import Parameters, profile_of
from mull.settings.registry import format_value
from mull.settings.words import NO_PROFILE
from mull.tui.commands.change import telling_cost
from mull.tui.commands.host import Host, page
from mull.tui.commands.known import Known
from mull.tui.commands.model import show_model
from mull.tui.commands.words import choice, split_words
from mull.tui.screen.front import Item

__all__ = ["FORMS", "profile_offers", "use_profiles"]

FORMS = (
    ("/profile", "list the profiles; * marks the default"),
    ("/profile save NAME [--overwrite]", "save the current model and settings"),
    ("/profile load NAME", "apply a profile immediately"),
    ("/profile show NAME", "show what a profile contains"),
    ("/profile delete NAME", "delete a profile"),
    ("/profile set-default NAME|none", "start with this profile, or with none"),
)


async def use_profiles(host: Host, text: str) -> None:
    """Run the action of the first word.

    Raises:
        LocalError: the profile does not exist, or is damaged; nothing has changed.
    """
    words = split_words(text)
    if not words or words == ["list"]:
        return _list(host)
    action = choice(words[0], _ACTIONS, "action of /profile")
    overwrite = "--overwrite" in words[1:]
    names = [word for word in words[1:] if word != "--overwrite"]
    if len(names) != 1:
        raise LocalError(f"give the name of one profile: /profile {action} NAME")
    if overwrite and action == "save":
        return _save(host, names[0], overwrite=True)
    _ACTIONS[action](host, names[0])


def _list(host: Host) -> None:
    saved, shown = profiles(), page(host)
    default, rows = saved.default(), []
    for name in saved.list():
        try:
            model = saved.load(name).model_name or ""
        except ProfileError:
            model = "damaged; /profile show tells why"
        rows.append(("*" if name == default else " ", name, model))
    if not rows:
        shown.text("No profiles saved yet. /profile save NAME saves one.", shown.theme.note)
    shown.table(rows, (shown.theme.accent, shown.theme.text, shown.theme.note), indent=0)
    host.show(shown.lines)


def _save(host: Host, name: str, *, overwrite: bool = False) -> None:
    session, options = host.session, host.session.options
    parameters = Parameters(options.temperature, options.max_tokens)
    setup = session.engine.setup
    address = session.address or setup.redirected(session.target.provider)
    profile = profile_of(session.snapshot(), session.target, parameters, address)
    profiles().save(name, profile, overwrite=overwrite)
    host.tell(f"Saved profile {name}.")
    if told := hidden_key(profile.base_url):
        host.tell(told, warning=True)


def _load(host: Host, name: str) -> None:
    """A profile is a complete state, so settings of the session that would hide it are
    discarded.
    """
    session = host.session
    setup = session.engine.setup
    profile = setup.read_profile(name)
    with telling_cost(host, "model"):
        given_up = session.load_profile(profile)
    setup.use_profile(name)
    setup.settings.load_profile(profile.settings, profile.model_name)  # for future sessions
    host.tell(f"Loaded profile {name}.")
    if given_up:
        host.tell(f"Settings discarded from this session: {', '.join(given_up)}.")
    overruled = [
        f"{key} is overridden by the {layer}: {format_value(session.snapshot()[key])}"
        for key in profile.settings
        if (layer := session.snapshot().origin(key)) != "profile"
    ]
    for line in overruled:
        host.tell(line)
    show_model(host)


def _show(host: Host, name: str) -> None:
    profile, shown = profiles().load(name), page(host)
    shown.title(f"Profile {name}")
    shown.table(profile.rows or [("", "all defaults")], (shown.theme.text, shown.theme.accent))
    host.show(shown.lines)


def _delete(host: Host, name: str) -> None:
    was_default = profiles().delete(name)
    host.tell(
        f"Deleted profile {name}."
        + (" It was the default; there is no default profile now." if was_default else "")
    )


def _set_default(host: Host, name: str) -> None:
    none = name.lower() == NO_PROFILE
    profiles().set_default(None if none else name)
    host.tell("There is no default profile now." if none else f"The default profile is now {name}.")


_ACTIONS: Mapping[str, Callable[[Host, str], None]] = {
    "save": _save,
    "load": _load,
    "show": _show,
    "delete": _delete,
    "set-default": _set_default,
}


def profile_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """The actions, then the existing profiles."""
    if len(words) == 1:
        return [Item(action) for action in ("list", *_ACTIONS)]
    none = [Item(NO_PROFILE, "no profile")] if words[0] == "set-default" else []
    return [*known.profiles(), *none]
