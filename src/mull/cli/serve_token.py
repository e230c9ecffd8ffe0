"""`mull serve token`: manages client tokens and their limits."""

from __future__ import annotations

import re
import sys
import time
from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mull.cli.columns import in_columns
from mull.cli.serve_setup import on_ledger, on_memory
from mull.gateway.tokens import (
    Budget,
    ClientToken,
    Limits,
    check_name,
    hashed,
    make_scope,
    make_token,
    parse_budget,
)
from mull.neutral.errors import ConfigError
from mull.policy.cost import format_cost
from mull.settings.words import closest, quote

if TYPE_CHECKING:
    from mull.gateway.ledger import Ledger, Spent

__all__ = ["arguments", "run"]

_NONE = "none"
_TEXT = """\
Adds, lists, changes and revokes the tokens with which clients authenticate. Once
there is a token, every request needs one. A running gateway notices changes. A token
is printed only once, because mull stores only its hash.
"""
_EXAMPLES = """\
examples:
  mull serve token add ann
  mull serve token add ci --models kimi 'anthropic/*' --rpm 60 --expires 90d
  mull serve token set ann --budget 5/day --budget 50/month --budget-tokens 2m/day
  mull serve token revoke ann
"""
_SPAN = re.compile(r"(\d{1,5})([dh])", re.ASCII)


def arguments(parser: ArgumentParser) -> None:
    """Add the subcommands and their options."""
    parser.description, parser.epilog = _TEXT, _EXAMPLES
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    add = _action(actions, "add", _add, "create a token for a client and print it")
    _add_limits(add)
    change = _action(
        actions, "set", _set, "change the given limits of a client; none removes a limit"
    )
    _add_limits(change)
    _action(actions, "rotate", _rotate, "replace a client's token with a new one")
    _action(actions, "revoke", _revoke, "refuse requests with a client's token from now on")
    _action(
        actions,
        "remove",
        _remove,
        "delete a client and its records; if none is left, no token is needed",
    )
    listing = actions.add_parser("list", help="list clients, their limits and their usage today")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(token_action=_list)


def _action(
    actions: _SubParsersAction[ArgumentParser], name: str, action: object, line: str
) -> ArgumentParser:
    parser = actions.add_parser(name, help=line, description=line)
    parser.add_argument("name", metavar="NAME", help="the client's name")
    parser.set_defaults(token_action=action)
    return parser


def _add_limits(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--models",
        nargs="+",
        metavar="PATTERN",
        help="models that the client may use, such as kimi or 'anthropic/*'",
    )
    parser.add_argument("--rpm", metavar="N", help="requests per minute")
    parser.add_argument("--tpm", metavar="N", help="tokens per minute, input and output")
    parser.add_argument(
        "--budget-tokens",
        action="append",
        metavar="N/day",
        help="tokens per day or month in UTC; give it twice for both",
    )
    parser.add_argument(
        "--budget",
        action="append",
        metavar="N/month",
        help="dollars per day or month, by the catalog's prices",
    )
    parser.add_argument(
        "--expires",
        metavar="DATE",
        help="the last valid day, or a duration: 90d, 12h",
    )


def run(options: Namespace) -> int:
    """Run the chosen action.

    Raises:
        ConfigError: an argument is invalid, or the store cannot be used.
    """
    status: int = options.token_action(options)
    return status


def _add(options: Namespace) -> int:
    name, secret, now = check_name(options.name), make_token(), time.time()
    made = ClientToken(name, hashed(secret), created=now, id=make_scope(name))
    token = _changed(made, options, now)

    async def add(ledger: Ledger) -> None:
        if not await ledger.put_token(token, new=True):
            raise ConfigError(
                f"the client {quote(name)} already exists: change its limits with `mull serve token"
                " set`, or replace its token with `mull serve token rotate`"
            )

    on_ledger(options, add)
    _show_once(secret)
    return 0


def _show_once(secret: str) -> None:
    print("This is the only time the token is shown:", file=sys.stderr, flush=True)
    print(secret)


def _set(options: Namespace) -> int:
    now = time.time()
    given = (options.models, options.rpm, options.tpm, options.budget, options.budget_tokens)
    if (*given, options.expires) == (None,) * 6:
        raise ConfigError("no limit is given: see `mull serve token set --help`")
    _change(options, lambda token: _changed(token, options, now))
    return 0


def _rotate(options: Namespace) -> int:
    secret = make_token()
    _change(options, lambda token: replace(token, hash=hashed(secret), revoked=None))
    _show_once(secret)
    return 0


def _revoke(options: Namespace) -> int:
    now = time.time()
    _change(options, lambda token: replace(token, revoked=token.revoked or now))
    return 0


def _change(options: Namespace, change: Callable[[ClientToken], ClientToken]) -> ClientToken:
    async def work(ledger: Ledger) -> ClientToken:
        token = change(_find(options.name, await ledger.tokens()))
        if not await ledger.put_token(token, new=False):
            raise _unknown(options.name, ())
        return token

    return on_ledger(options, work)


def _remove(options: Namespace) -> int:
    """Revoke the token, delete the client's records, then the client: after a failure in between
    nobody gets in, and the command can be repeated."""
    now = time.time()
    token = _change(options, lambda token: replace(token, revoked=token.revoked or now))
    try:
        gone = on_memory(options, lambda memory: memory.forget_all(token.scope))
    except ConfigError as error:
        raise ConfigError(
            f"{token.name} is revoked, but its records are not deleted: repeat this. {error}"
        ) from None
    on_ledger(options, lambda ledger: ledger.remove_token(options.name))
    print(f"removed {token.name}; stored records deleted: {len(gone):,}", file=sys.stderr)
    return 0


def _find(name: str, tokens: Sequence[ClientToken]) -> ClientToken:
    for token in tokens:
        if token.name == name:
            return token
    raise _unknown(name, [token.name for token in tokens])


def _unknown(name: str, names: Sequence[str]) -> ConfigError:
    near = closest(name, names)
    hint = f"did you mean {near}?" if near else "see `mull serve token list`"
    return ConfigError(f"there is no client {quote(name)}: {hint}")


def _changed(token: ClientToken, options: Namespace, now: float) -> ClientToken:
    """The token with the limits and expiry from the options."""
    limits = token.limits
    given: dict[str, object] = {}
    if options.models is not None:
        given["models"] = () if options.models == [_NONE] else tuple(options.models)
    for name, text in (
        ("requests_per_minute", options.rpm),
        ("tokens_per_minute", options.tpm),
    ):
        if text is not None:
            given[name] = _number(text)
    for name, texts in (("tokens", options.budget_tokens), ("dollars", options.budget)):
        if texts is not None:
            given[name] = _budgets(texts)
    limits = replace(limits, **given)
    if options.expires is None:
        return replace(token, limits=limits)
    return replace(token, limits=limits, expires=_expiry(options.expires, now))


def _number(text: str) -> int | None:
    if text == _NONE:
        return None
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 10**15):
        raise ConfigError(f"{quote(text)} is not a limit: use a whole number above 0, or none")
    return int(text)


def _budgets(texts: Sequence[str]) -> tuple[Budget, ...]:
    if list(texts) == [_NONE]:
        return ()
    budgets = {budget.period: budget for budget in map(parse_budget, texts)}
    if len(budgets) < len(texts):
        raise ConfigError(
            "two budgets have the same period: give at most one per day and one per month"
        )
    return tuple(budgets.values())


def _expiry(text: str, now: float) -> float | None:
    """When a token expires. A date means the end of that day in UTC."""
    if text == _NONE:
        return None
    if found := _SPAN.fullmatch(text):
        unit = "days" if found[2] == "d" else "hours"
        return now + timedelta(**{unit: int(found[1])}).total_seconds()
    try:
        when = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=1)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{quote(text)} is not a date: use the form 2027-01-31, a duration such as 90d, or none"
        ) from None
    if when.timestamp() <= now:
        raise ConfigError(f"{text} is in the past: use a later date, or `mull serve token revoke`")
    return when.timestamp()


def _list(options: Namespace) -> int:
    now = time.time()

    async def read(ledger: Ledger) -> list[tuple[ClientToken, Spent]]:
        return [(token, await ledger.spent(token.scope, now)) for token in await ledger.tokens()]

    found = on_ledger(options, read)
    if options.json:
        import msgspec

        shown = msgspec.json.encode([_as_json(token, spent, now) for token, spent in found])
        print(msgspec.json.format(shown).decode())
        return 0
    if not found:
        print("no tokens: every client that can reach the gateway may use it", file=sys.stderr)
        return 0
    head = ("CLIENT", "STATE", "MODELS", "LIMITS", "TOKENS TODAY", "COST TODAY")
    rows = [
        (
            token.name,
            _state(token, now),
            " ".join(token.limits.models) or "all",
            ", ".join(_limit_words(token.limits)) or "none",
            f"{spent.day.tokens:,}",
            format_cost(spent.day.dollars),
        )
        for token, spent in found
    ]
    print("\n".join(in_columns([head, *rows], right={4, 5})))
    return 0


def _state(token: ClientToken, now: float) -> str:
    if token.revoked is not None:
        return "revoked"
    if token.expires is None:
        return "valid"
    last = datetime.fromtimestamp(token.expires, UTC)
    return f"until {last:%Y-%m-%d %H:%M}" if token.is_valid(now) else "expired"


def _limit_words(limits: Limits) -> list[str]:
    words = []
    if limits.requests_per_minute is not None:
        words.append(f"{limits.requests_per_minute:,} requests/min")
    if limits.tokens_per_minute is not None:
        words.append(f"{limits.tokens_per_minute:,} tokens/min")
    words += [f"{budget.amount:,.0f} tokens/{budget.period}" for budget in limits.tokens]
    words += [f"{format_cost(budget.amount)}/{budget.period}" for budget in limits.dollars]
    return words


def _as_json(token: ClientToken, spent: Spent, now: float) -> dict[str, object]:
    """A client as JSON, without the hash of its token."""
    return {
        "name": token.name,
        "valid": token.is_valid(now),
        "created": token.created,
        "expires": token.expires,
        "revoked": token.revoked,
        "limits": token.limits,
        "today": {"tokens": spent.day.tokens, "cost": spent.day.dollars},
        "month": {"tokens": spent.month.tokens, "cost": spent.month.dollars},
    }
