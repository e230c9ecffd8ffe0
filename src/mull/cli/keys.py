"""`mull keys`: store keys, log in, and show where each key comes from. Keys are never shown.

A key is typed at a hidden prompt or piped in. On the command line it would stay in the shell
history and in the process list, so it is rejected there.
"""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace, _SubParsersAction

from mull.agent.key_entry import (
    KeyRow,
    delete_key,
    keep_key,
    key_rows,
    provider_named,
    stored_in,
)
from mull.agent.setup import Setup
from mull.auth.flow import Show
from mull.auth.logins import LOGINS
from mull.cli.setup import load
from mull.neutral.errors import ConfigError, NetworkError, RefusedError, RemoteError
from mull.settings.words import NO_PROFILE
from mull.store.keys import Keys
from mull.store.paths import data_dir

__all__ = ["arguments", "run"]

_EXIT_REFUSED = 3
_EXIT_NETWORK = 5


def arguments(parser: ArgumentParser) -> None:
    """Add the subcommands."""
    actions = parser.add_subparsers(metavar="ACTION")
    parser.set_defaults(action=_list, json=False)
    store = _named(actions, "set", _set, "store a key, typed at a hidden prompt or piped in")
    store.add_argument("key", nargs="*", help=SUPPRESS)  # to reject it without echoing it
    store.add_argument("--stdin", action="store_true", help="read the key from standard input")
    store.add_argument(
        "--file", action="store_true", help="store it in mull's own file even if there is a keyring"
    )
    listing = _named(actions, "list", _list, "show where each key was found", named=False)
    listing.add_argument("--json", action="store_true", help="print JSON")
    _named(actions, "delete", _delete, "delete a stored key")
    _named(actions, "login", _login, f"log in to a provider: {', '.join(LOGINS)}")
    _named(actions, "path", _path, "print the path of the file with stored keys", named=False)


def run(options: Namespace) -> int:
    """Run the chosen subcommand.

    Raises:
        LocalError: the provider is unknown, or a key cannot be read or stored.
    """
    try:
        status: int = options.action(options)
        return status
    except RemoteError as error:
        print(f"mull: {error}", file=sys.stderr)
        if isinstance(error, NetworkError):
            return _EXIT_NETWORK
        return _EXIT_REFUSED if isinstance(error, RefusedError) else 1


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
        parser.add_argument("provider", metavar="PROVIDER", help="the provider's id")
    parser.set_defaults(action=action)
    return parser


def _setup() -> tuple[Setup, Keys]:
    setup = load(Namespace(sets=[], profile=NO_PROFILE, config=None))
    return setup, Keys(data_dir(), os.environ)


def _set(options: Namespace) -> int:
    if options.key:
        raise ConfigError(
            "a key on the command line stays in the shell history: run `mull keys set "
            "PROVIDER` and type it, or pipe it in with --stdin"
        )
    setup, keys = _setup()
    provider = provider_named(setup, options.provider)
    text = _read_key(provider, piped=options.stdin or not sys.stdin.isatty())
    print("\n".join(keep_key(setup, keys, provider, text, in_file=options.file)))
    return 0


def _read_key(provider: str, *, piped: bool) -> str:
    return sys.stdin.read() if piped else _hidden(f"Key for {provider} (hidden): ")


def _hidden(prompt: str) -> str:
    import getpass
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error", getpass.GetPassWarning)  # it would continue, and echo
        try:
            return getpass.getpass(prompt)
        except getpass.GetPassWarning:
            raise ConfigError(
                "this terminal cannot hide what you type: pipe the key in with --stdin"
            ) from None
        except EOFError:
            raise ConfigError("no key entered; nothing was stored") from None


def _list(options: Namespace) -> int:
    setup, keys = _setup()
    rows = key_rows(setup, keys)
    if options.json:
        print(_json(rows))
        return 0
    if not rows:
        print("No key found. `mull keys set PROVIDER` stores one.")
    wide = max((len(provider) for provider, _, _ in rows), default=0)
    for provider, place, used in rows:
        note = "" if used else "(not used)"
        where = place.variable or place.login or ""
        words = [provider.ljust(wide), place.kind.ljust(11), where, note]
        print("  ".join(words[:2] + [word for word in words[2:] if word]).rstrip())
    return 0


def _json(rows: list[KeyRow]) -> str:
    import json

    shown = [
        {
            "provider": name,
            "found": place.kind,
            "variable": place.variable,
            "used": used,
            **({"login": place.login} if place.login else {}),
        }
        for name, place, used in rows
    ]
    return json.dumps(shown, indent=2)


def _delete(options: Namespace) -> int:
    setup, keys = _setup()
    print("\n".join(delete_key(setup, keys, options.provider)))
    return 0


def _login(options: Namespace) -> int:
    setup, keys = _setup()
    provider = provider_named(setup, options.provider)
    if provider not in LOGINS:
        raise ConfigError(
            f"{provider} has no login: store its key with `mull keys set {provider}`; "
            f"login works for {', '.join(LOGINS)}"
        )
    from mull.client.auth_drive import drive

    outcome = drive(LOGINS[provider]().log_in(), show=_show_code)
    where = keys.keep(provider, outcome.key)
    print(f"Logged in to {provider}; the login is stored in {stored_in(keys, where)}.")
    return 0


def _show_code(step: Show) -> None:
    minutes = max(1, round(step.seconds / 60))
    print(f"Open {step.url} and enter the code {step.code} within {minutes} minutes.", flush=True)


def _path(options: Namespace) -> int:
    print(Keys(data_dir(), os.environ).path)
    return 0
