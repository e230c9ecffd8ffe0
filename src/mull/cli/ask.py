"""`mull ask`: one question, one answer, made for terminals and pipes alike.

Standard output holds the answer and nothing else unless it is a terminal; thoughts and notes go
to standard error. The exit status says how it went.
"""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from mull.agent.engine import Engine
from mull.agent.library import AsyncStream, Conversation
from mull.cli import setup
from mull.cli.draw import JsonLines, JsonObject, Plain, Show
from mull.neutral.errors import ConfigError, NetworkError, RefusedError, RemoteError
from mull.neutral.messages import Status
from mull.settings.layers import Snapshot
from mull.store.last import Last, load_last, save_last

__all__ = ["EXIT", "arguments", "exit_status", "run"]

EXIT = {
    "answer": 0,
    "refused": RefusedError.exit_status,
    "no answer": 4,
    "network": NetworkError.exit_status,
    "interrupted": 130,
}
"""How an answer went, as exit statuses; errors have their own."""

_TEXT = """\
Asks a model and prints its answer. The question is taken from the arguments, a
file (-f) and standard input if that is piped, in this order.

exit status: 0 answer, 2 usage, 3 refused by the provider, 4 no answer,
5 network, 130 interrupted
"""
_EXAMPLES = """\
examples:
  mull ask -m claude-sonnet-4-5/high "Why is the sky blue?"
  git diff | mull ask -m kimi-k2-thinking --thinking stderr "Review this" > review.md
  mull ask -m local/smollm2 --json "Say hello" | jq .thinking
  mull ask --continue "And at night?"
"""


def arguments(parser: ArgumentParser) -> None:
    """Add the question and everything that shapes the answer."""
    parser.description, parser.epilog = _TEXT, _EXAMPLES
    parser.add_argument("prompt", nargs="*", help="the question")
    parser.add_argument("-f", "--file", type=Path, metavar="FILE", help="read it from a file")
    setup.add_model_argument(parser)
    setup.add_arguments(parser)
    parser.add_argument("--system", default="", metavar="TEXT", help="instructions for the model")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="limit of the answer")
    parser.add_argument("--temperature", type=float, metavar="T", help="how freely it answers")
    parser.add_argument("--base-url", metavar="URL", help="the endpoint's address")
    parser.add_argument(
        "--thinking",
        choices=("show", "hide", "stderr"),
        help="where thoughts go; shown on a terminal, hidden in a pipe",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object at the end")
    form.add_argument("--stream-json", action="store_true", help="print each event as a JSON line")
    parser.add_argument(
        "--continue", dest="go_on", action="store_true", help="go on with the last conversation"
    )


def run(options: Namespace) -> int:
    """Ask, show the answer as it comes, and say how it went.

    Raises:
        LocalError: the question, the model or an option is not as it should be.
    """
    prompt = _prompt(options)
    ready = setup.load(options)
    before = load_last() if options.go_on else None
    if options.go_on and before is None:
        raise ConfigError("there is no conversation to go on with")
    model, base_url = options.model, options.base_url
    if before is not None and model is None:
        model, base_url = before.model, base_url or before.base_url
    if model is None and ready.settings.snapshot().model is None:
        raise ConfigError(_no_model(ready))
    system = options.system or (before.system if before else "")
    conversation = Conversation(
        model,
        engine=Engine(ready),
        system=system,
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        base_url=base_url,
        messages=before.messages if before else (),
    )
    show = _show(options, shown=ready.snapshot_for(conversation.target))
    try:
        status = asyncio.run(_converse(conversation, prompt, show))
    except RemoteError as error:
        show.failed(error)
        return error.exit_status
    except KeyboardInterrupt:
        show.interrupted()
        return EXIT["interrupted"]
    finally:
        if conversation.messages:  # none: it was never asked, and the one before is still the last
            name = model or conversation.target.name
            save_last(Last(1, name, system, conversation.messages, base_url))
    return exit_status(status)


async def _converse(conversation: Conversation, prompt: str, show: Show) -> Status:
    stream: AsyncStream = conversation.stream_async(prompt)
    show.begin(conversation.target)
    try:
        async for event in stream:
            show.event(event)
    finally:
        await stream.aclose()
        await conversation.aclose()
    show.end(stream.result)
    return stream.result.status


def _no_model(ready: setup.Setup) -> str:
    """What to tell someone who named no model: what could be asked here and now."""
    from mull.agent.discover import discover_now

    found = [name for server in discover_now(Engine(ready)) for name in server.names]
    offers = [*found[:5], "local/smollm2 (very small, needs no key: `mull local install`)"]
    return "no model is named: give one with -m. Here and now there is:\n  " + "\n  ".join(offers)


def exit_status(status: Status) -> int:
    """The exit status for the way an answer ended."""
    if status in ("complete", "truncated"):
        return EXIT["answer"]
    if status in ("no_answer", "truncated_in_reasoning"):
        return EXIT["no answer"]
    return EXIT["network"] if status == "interrupted" else EXIT["refused"]


def _show(options: Namespace, shown: Snapshot) -> Show:
    if options.json:
        return JsonObject(sys.stdout)
    if options.stream_json:
        return JsonLines(sys.stdout)
    place = options.thinking
    if place is None:
        visible = sys.stdout.isatty() and shown["reasoning.includeInResponse"]
        place = "show" if visible else "hide"
    return Plain(sys.stdout, sys.stderr, thinking=place)


def _prompt(options: Namespace) -> str:
    parts = [" ".join(options.prompt)]
    if options.file is not None:
        try:
            parts.append(options.file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read {options.file}: {error}") from None
    if not sys.stdin.isatty():
        parts.append(sys.stdin.read())
    text = "\n\n".join(part.strip("\n") for part in parts if part.strip())
    if not text:
        raise ConfigError('nothing was asked: write mull ask "your question"')
    return text
