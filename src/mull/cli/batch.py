"""`mull batch`: questions from a file of JSON lines, answers into another."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import msgspec

from mull.agent.batch.file import outcome_json
from mull.agent.batch.front import CONCURRENCY, AsyncBatch, batch_async
from mull.agent.batch.values import BatchResult
from mull.agent.engine import Engine
from mull.cli import interrupt, setup
from mull.cli.ask import EXIT
from mull.neutral.errors import ConfigError, MullError
from mull.settings.words import quote

__all__ = ["arguments", "run"]

_TEXT = """\
Asks every question in a file of JSON lines. A line is a text, or an object with prompt or
messages, and optionally id, model, system, tools, schema, settings and parameters such as
max_tokens. Answers go to standard output as they come, or to the file of -o. If that file is
there already, only questions without an answer are asked.

exit status: 0 all answered, 2 usage error, 3 some have no answer, 5 network error,
130 interrupted
"""
_EXAMPLES = """\
examples:
  mull batch questions.jsonl -m claude-sonnet-4-5 -o answers.jsonl
  jq -c .title books.json | mull batch - --system "Which genre?" --max-tokens 50 | jq .result.text
  mull batch questions.jsonl -m gpt-5 -o answers.jsonl --provider-batch --no-wait
"""
_SHOWN = 3


def arguments(parser: ArgumentParser) -> None:
    """Add the files, and everything that shapes the answers."""
    parser.description, parser.epilog = _TEXT, _EXAMPLES
    parser.add_argument("file", metavar="FILE", help="the questions; - for standard input")
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="store the answers in this file"
    )
    setup.add_model_argument(parser)
    setup.add_arguments(parser)
    parser.add_argument("--system", metavar="TEXT", help="system prompt")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="token limit of each answer")
    parser.add_argument("--temperature", type=float, metavar="T", help="sampling temperature")
    parser.add_argument("--base-url", metavar="URL", help="base URL of the endpoint")
    parser.add_argument(
        "--schema",
        metavar="SCHEMA",
        help="answers are JSON values that match this schema: a file with a JSON schema, or "
        "module:Name of a type",
    )
    parser.add_argument(
        "--concurrency",
        type=int,
        default=CONCURRENCY,
        metavar="N",
        help=f"how many requests run at once (default {CONCURRENCY})",
    )
    parser.add_argument(
        "--provider-batch",
        action="store_true",
        help="use the provider's batch API: cheaper, and may take a day",
    )
    later = parser.add_mutually_exclusive_group()
    later.add_argument(
        "--no-wait",
        action="store_true",
        help="with --provider-batch: submit, collect what is there, and end",
    )
    later.add_argument(
        "--cancel", action="store_true", help="with --provider-batch: cancel what was submitted"
    )


def run(options: Namespace) -> int:
    """Ask everything and return the exit status.

    Raises:
        LocalError: the file, the model or an option is invalid.
    """
    if (options.no_wait or options.cancel) and not options.provider_batch:
        name = "--no-wait" if options.no_wait else "--cancel"
        raise ConfigError(f"{name} needs --provider-batch: only a provider's batch runs on its own")
    if options.no_wait and options.output is None:
        raise ConfigError("--no-wait needs -o: that file says what was submitted, and to where")
    items = _read(options.file)
    given: dict[str, Any] = {
        "system": options.system,
        "max_tokens": options.max_tokens,
        "temperature": options.temperature,
        "base_url": options.base_url,
    }
    if options.schema is not None:
        from mull.cli.schema import load_shape

        given["schema"] = load_shape(options.schema)
    try:
        return interrupt.run(_asked(options, items, given))
    except KeyboardInterrupt:
        if options.output is not None:
            setup.tell("stopped: run the same command again to go on")
        return EXIT["interrupted"]


def _read(name: str) -> list[Any]:
    """The items in a file of JSON lines.

    Raises:
        ConfigError: it cannot be read, or a line is not JSON; says which.
    """
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {quote(name)}: {error.strerror}") from error
    items = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            items.append(msgspec.json.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ConfigError(
                f"line {number} of {quote(name)} is not JSON ({error}): each line is a JSON text,"
                ' or an object such as {"prompt": "…"}'
            ) from None
    return items


async def _asked(options: Namespace, items: list[Any], given: dict[str, Any]) -> int:
    async with Engine(setup.load(options)) as engine:
        batch = batch_async(
            items,
            options.model,
            concurrency=options.concurrency,
            file=options.output,
            provider_batch=options.provider_batch,
            wait=not options.no_wait,
            progress=not (options.output is None and sys.stdout.isatty())
            and setup.progress_stream(),
            engine=engine,
            **given,
        )
        if options.cancel:
            await batch.cancel()
            setup.tell("cancelled: run the command without --cancel to collect what is there")
            return EXIT["answer"]
        if options.provider_batch and options.output is None:
            setup.tell("without -o, a batch at the provider is lost if this command is stopped")
        return await _collected(batch, options, given.get("schema"))


async def _collected(batch: AsyncBatch, options: Namespace, shape: Any) -> int:
    failed: list[BatchResult] = []
    async with batch:
        async for one in batch:
            if one.error is not None:
                failed.append(one)
            if options.output is None:
                _print(one, shape)
    _summarize(batch, failed, options, is_waited=not options.no_wait)
    return EXIT["refused"] if failed else EXIT["answer"]


def _print(one: BatchResult, shape: Any) -> None:
    result = one.result
    value = result.value if result is not None else None
    if shape is not None and value is not None:
        value = shape.plain(value)
    line = {"id": one.id, "index": one.index, **outcome_json(result, one.error, value)}
    sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
    sys.stdout.buffer.flush()


def _summarize(
    batch: AsyncBatch, failed: list[BatchResult], options: Namespace, *, is_waited: bool
) -> None:
    for note in batch.notes:
        setup.tell(note)
    for one in failed[:_SHOWN]:
        setup.tell(f"no answer to item {one.index}: {_first_line(one.error)}")
    if len(failed) > _SHOWN:
        setup.tell(f"… and {len(failed) - _SHOWN} more without an answer")
    progress = batch.progress
    progress.waiting = ""
    if not is_waited and progress.total is not None and progress.done < progress.total:
        left = progress.total - progress.done
        setup.tell(f"{left} at the provider: run the same command again to collect them")
    if options.output is not None and not sys.stderr.isatty():  # a terminal has seen it
        setup.tell(str(progress))


def _first_line(error: MullError | None) -> str:
    return str(error).partition("\n")[0]
