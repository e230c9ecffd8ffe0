"""`mull profile`: save, show and choose profiles.

A one-shot command has no session to change, so `load` checks a profile and shows its effect;
`--profile NAME` and `set-default` apply it.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction

from mull.agent.setup import profiles
from mull.cli.setup import add_arguments, add_model_argument, load, tell
from mull.neutral.errors import ProfileError
from mull.settings.addresses import hidden_key
from mull.settings.profile import Parameters, Profile, profile_of, profile_to_json
from mull.settings.registry import format_value
from mull.settings.words import NO_PROFILE

__all__ = ["arguments", "run"]


def arguments(parser: ArgumentParser) -> None:
    """Add the subcommands."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    _named(actions, "list", _list, "list the profiles; * marks the default", named=False)
    _named(actions, "show", _show, "print the contents of a profile").add_argument(
        "--json", action="store_true", help="print the profile's JSON"
    )
    save = _named(actions, "save", _save, "save the current settings, including --set and -m")
    add_model_argument(save)
    add_arguments(save)
    save.add_argument("--base-url", metavar="URL", help="base URL of the model's endpoint")
    save.add_argument("--temperature", type=float, metavar="N", help="sampling temperature")
    save.add_argument("--max-tokens", type=int, metavar="N", help="token limit of each answer")
    save.add_argument("--overwrite", action="store_true", help="replace an existing profile")
    _named(actions, "load", _load, "check a profile and show its effect")
    _named(actions, "delete", _delete, "delete a profile")
    _named(
        actions,
        "set-default",
        _set_default,
        f"use a profile when none is given; {NO_PROFILE} for no default",
    )


def run(options: Namespace) -> int:
    """Run the chosen subcommand."""
    status: int = options.action(options)
    return status


def _named(
    actions: _SubParsersAction[ArgumentParser],
    name: str,
    action: object,
    line: str,
    *,
    named: bool = True,
) -> ArgumentParser:
    parser = actions.add_parser(name, help=line, description=line)
    if named:
        parser.add_argument("name", metavar="NAME", help="the profile's name")
    parser.set_defaults(action=action)
    return parser


def _list(options: Namespace) -> int:
    saved = profiles()
    default = saved.default()
    names = saved.list()
    width = max(map(len, names), default=0)
    for name in names:
        try:
            model = saved.load(name).model_name or ""
        except ProfileError:
            model = f"damaged; `mull profile show {name}` tells why"
        print(f"{'*' if name == default else ' '} {name.ljust(width)}  {model}".rstrip())
    if not names:
        print("No profiles saved yet. `mull profile save NAME` saves one.")
    return 0


def _show(options: Namespace) -> int:
    profile = profiles().load(options.name)
    if options.json:
        print(profile_to_json(profile, options.name).decode(), end="")
    else:
        print("\n".join(_lines(profile)))
    return 0


def _save(options: Namespace) -> int:
    setup = load(options)
    parameters = setup.parameters
    if options.temperature is not None:
        parameters = Parameters(options.temperature, parameters.max_tokens)
    if options.max_tokens is not None:
        parameters = Parameters(parameters.temperature, options.max_tokens)
    snapshot = setup.settings.snapshot()
    target = address = None
    if snapshot.model:
        target = setup.resolve(snapshot.model, base_url=options.base_url)
        address = options.base_url or setup.redirected(target.provider)
    elif options.base_url:
        raise ProfileError("--base-url needs a model: name one with -m PROVIDER/MODEL")
    profile = profile_of(snapshot, target, parameters, address)
    profiles().save(options.name, profile, overwrite=options.overwrite)
    print(f"Saved profile {options.name}.")
    if told := hidden_key(profile.base_url):
        tell(told)
    return 0


def _load(options: Namespace) -> int:
    setup = load(Namespace(sets=[], profile=options.name, config=None))
    if setup.profile is None:
        print("No profile: only the config file and the environment would be in effect.")
        return 0
    print("\n".join(_lines(setup.profile)))
    snapshot = setup.settings.snapshot()
    for key in setup.profile.settings:
        if snapshot.origin(key) != "profile":
            value = format_value(snapshot[key])
            print(f"{key} is overridden by the {snapshot.origin(key)}: {value}")
    print(
        f"\nNothing was changed. To use it: --profile {options.name}, or always: `mull "
        f"profile set-default {options.name}`."
    )
    return 0


def _delete(options: Namespace) -> int:
    was_default = profiles().delete(options.name)
    rest = " It was the default; there is no default profile now." if was_default else ""
    print(f"Deleted profile {options.name}.{rest}")
    return 0


def _set_default(options: Namespace) -> int:
    if options.name.lower() == NO_PROFILE:
        profiles().set_default(None)
        print("There is no default profile now.")
    else:
        profiles().set_default(options.name)
        print(f"The default profile is now {options.name}.")
    return 0


def _lines(profile: Profile) -> list[str]:
    width = max((len(key) for key, _ in profile.rows), default=0)
    shown = [f"{key.ljust(width)}  {value}" for key, value in profile.rows]
    return shown or ["All defaults."]
