"""`mull wire`: shows what the codecs do. Nothing is sent, and no key is needed.

`encode` shows the exact request for a conversation, `decode` what the raw bytes of a response
become. Both also work in the other direction, as a server: `encode --answer` writes a message as a
dialect's stream or document, `decode --request` reads what a client asks for.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import msgspec
from msgspec.structs import replace

from mull.agent.setup import Setup
from mull.auth.static import MASK, key_headers
from mull.cli import setup
from mull.client.access import shown_url
from mull.dialects.registry import decoder, encode_request
from mull.dialects.serving import answer_writer, decode_request, write_answer
from mull.dialects.writer import About
from mull.history.log import Log
from mull.neutral.assemble import Assembler, tell
from mull.neutral.blocks import Value
from mull.neutral.errors import ConfigError
from mull.neutral.events import Event, Failed
from mull.neutral.former import Reader
from mull.neutral.messages import Dialect, Message, whole_system
from mull.neutral.request import RequestOptions, Tool, ToolChoice
from mull.neutral.target import Target
from mull.policy.heal.lessons import apply_lessons
from mull.policy.prepare import prepare
from mull.store.lessons import load_lessons
from mull.store.paths import data_dir
from mull.tokenizers import counter_for

__all__ = ["arguments", "run"]

_Number = TypeVar("_Number", int, float)

_ENCODE = """\
Reads a conversation as JSON and prints the request that would be sent:
method, URL, headers (keys masked), body, notes and the effective token count.
With --answer it reads one message, as `mull wire decode` prints it, and prints
the dialect's stream, or its document with --no-stream.

  {"system": "...",
   "messages": [
     {"role": "user", "blocks": [{"type": "text", "text": "What is in a.py?"}]},
     {"role": "assistant", "blocks": [
       {"type": "thinking", "thought": "I should look.", "sourceField": "reasoning_content"},
       {"type": "tool_call", "id": "call_1", "name": "read", "input": {"path": "a.py"}}]},
     {"role": "tool", "blocks": [
       {"type": "tool_result", "callId": "call_1", "output": "print(1)"}]}],
   "tools": [{"name": "read", "description": "...", "parameters": {"type": "object"}}],
   "toolChoice": "auto", "temperature": 1}
"""
_ENCODE_EXAMPLES = """\
examples:
  mull wire encode -m kimi-k2-thinking talk.json
  mull wire encode -m anthropic/claude-sonnet-4-5/high --max-tokens 4000 talk.json
  mull wire encode -m openai-compatible/qwen3 --base-url http://127.0.0.1:8080/v1 \\
      --compat '{"thinkingWriter": "template-kwargs"}' talk.json
  mull wire encode --answer --dialect anthropic answer.json
"""
_DECODE = """\
Reads the raw body of a response (a stream of server-sent events or a JSON document,
detected automatically) and prints the message that mull decodes from it, with `warnings`
for oddities and `error` for failures. With --request it reads the body of a client's
request and prints what it asks for; `rest` contains, by path, everything mull has no
field for.
"""
_DECODE_EXAMPLES = """\
examples:
  curl -sN ... | mull wire decode -m deepseek/deepseek-v4-pro -
  mull wire decode -m anthropic/claude-sonnet-4-5 --chunk 1 answer.sse
  mull wire decode --request --dialect gemini \\
      --path /v1beta/models/gemini-3-pro:generateContent body.json
"""


_EMPTY: dict[str, Any] = {
    "role": "assistant",
    "status": None,
    "stopReason": None,
    "origin": None,
    "blocks": [],
    "usage": None,
}
_NEVER_LEFT_OUT: dict[str, dict[str, Any]] = {"tool_call": {"input": {}}}


class _Said(Message, frozen=True):
    """A message, also in the form that `mull wire decode` prints."""

    warnings: list[Any] = []
    error: Any = None

    def plain(self) -> Message:
        """The message alone."""
        return Message(**{name: getattr(self, name) for name in Message.__struct_fields__})


class _Talk(Value, frozen=True):
    """The conversation file."""

    messages: tuple[_Said, ...]
    system: str = ""
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    temperature: float | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None


def arguments(parser: ArgumentParser) -> None:
    """Add the two directions and their options."""
    directions = parser.add_subparsers(metavar="DIRECTION", required=True, dest="direction")
    for name, line, text, examples in (
        (
            "encode",
            "convert a conversation to the request that would be sent",
            _ENCODE,
            _ENCODE_EXAMPLES,
        ),
        ("decode", "convert a response to a message", _DECODE, _DECODE_EXAMPLES),
    ):
        command = directions.add_parser(
            name,
            help=line,
            description=text,
            epilog=examples,
            formatter_class=RawDescriptionHelpFormatter,
        )
        _add_options(command, name)


def _add_options(command: ArgumentParser, direction: str) -> None:
    setup.add_model_argument(command)
    command.add_argument("--dialect", metavar="D", help="use this dialect")
    command.add_argument("--base-url", metavar="URL", help="base URL of the endpoint")
    command.add_argument("--compat", metavar="JSON", help="compat keys of the endpoint")
    setup.add_arguments(command)
    if direction == "encode":
        command.add_argument(
            "--max-tokens", type=int, metavar="N", help="token limit of the answer"
        )
        command.add_argument("--no-stream", action="store_true", help="request a single document")
        command.add_argument("--answer", action="store_true", help="encode an answer, as a server")
    else:
        command.add_argument("--request", action="store_true", help="decode a request, as a server")
        command.add_argument("--path", default="", metavar="PATH", help="the path of the request")
        command.add_argument("--chunk", type=int, metavar="N", help="feed N bytes at a time")
    command.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="- reads standard input"
    )


def run(options: Namespace) -> int:
    """Print one JSON object; with `--answer`, the bytes of the response.

    Raises:
        LocalError: the model, an option or the input is invalid.
    """
    ready = setup.load(options)
    if options.direction == "encode" and options.answer:
        return _write_answer(options, _dialect(options, ready))
    if options.direction == "decode" and options.request:
        asked = decode_request(_dialect(options, ready), _read(options.file), options.path)
        system, messages = whole_system(asked.system, asked.messages)
        _print(msgspec.to_builtins(replace(asked, system=system, messages=messages)))
        return 0
    name = options.model or ready.settings.snapshot().model
    if name is None:
        raise ConfigError("no model given: use -m PROVIDER/MODEL")
    target = ready.resolve(
        name,
        base_url=options.base_url,
        dialect=options.dialect,
        compat=_read_compat(options.compat),
    )
    target = apply_lessons(target, load_lessons(data_dir()))
    act = _encode if options.direction == "encode" else _decode
    _print(act(options, ready, target))
    return 0


def _print(shown: Any) -> None:
    print(msgspec.json.format(msgspec.json.encode(shown), indent=2).decode())


def _dialect(options: Namespace, ready: Setup) -> Dialect:
    """The given dialect, or that of the model's endpoint."""
    known_ones: tuple[str, ...] = get_args(Dialect)
    if options.dialect in known_ones:
        known: Dialect = options.dialect
        return known
    if options.dialect is not None:
        names = ", ".join(known_ones)
        raise ConfigError(f"unknown dialect {options.dialect!r}: use one of {names}")
    if options.model is None:
        raise ConfigError("no dialect given: use --dialect, or a model with -m")
    return ready.resolve(options.model).dialect


def _write_answer(options: Namespace, dialect: Dialect) -> int:
    """Write one message in the dialect, and report on standard error what it has no field for."""
    try:
        said = Reader[_Said](_Said)(_read(options.file))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"not a message: {str(error)[:1].lower()}{str(error)[1:]}") from None
    message = said.plain()
    source = message.origin.dialect if message.origin else None
    about = About(source=source, model=message.origin.model if message.origin else None)
    if options.no_stream:
        body, notes = write_answer(message, dialect, about)
    else:
        writer = answer_writer(dialect, about)
        body = b"".join([writer.feed(_with_error(event, said.error)) for event in tell(message)])
        notes = writer.notes
    sys.stdout.flush()
    sys.stdout.buffer.write(body)  # not every stream is text
    sys.stdout.buffer.flush()
    for note in notes:
        print(f"mull: left out: {note.text}", file=sys.stderr)
    return 0


def _with_error(event: Event, error: Any) -> Event:
    """The failure as it was reported."""
    if not isinstance(event, Failed) or not isinstance(error, dict):
        return event
    return Failed(str(error.get("text")), error.get("code"), event.status)


def _encode(options: Namespace, ready: Setup, target: Target) -> dict[str, Any]:
    _check_count("--max-tokens", options.max_tokens)
    talk = _read_talk(_read(options.file))
    conversation = RequestOptions(
        system=talk.system,
        tools=talk.tools,
        tool_choice=talk.tool_choice,
        temperature=_first(talk.temperature, ready.parameters.temperature),
        max_tokens=_first(options.max_tokens, talk.max_tokens, ready.parameters.max_tokens),
        stream=not options.no_stream,
    )
    snapshot = ready.snapshot_for(target)
    counter = counter_for(target)
    log = Log(said.plain() for said in talk.messages)
    prepared = prepare(log, snapshot, target, conversation, counter=counter)
    wire = encode_request(prepared.request, target)
    return {
        "method": wire.method,
        "url": shown_url(ready.config, target, wire.path),
        "headers": {**wire.headers, **key_headers(target, MASK), **_own_headers(ready, target)},
        "body": msgspec.Raw(wire.body),
        "notes": [*prepared.notes, *wire.notes],
        "tokens": prepared.tokens,
    }


def _decode(options: Namespace, ready: Setup, target: Target) -> dict[str, Any]:
    _check_count("--chunk", options.chunk)
    body = _read(options.file)
    size = options.chunk or len(body) or 1
    reading = decoder(target, ready.snapshot_for(target)["reasoning.fieldName"])
    assembler, error = Assembler(target.origin), None
    events = [e for at in range(0, len(body), size) for e in reading.feed(body[at : at + size])]
    for event in [*events, *reading.close()]:
        assembler.add(event)
        if isinstance(event, Failed):
            error = {"code": event.code, "text": event.text}
    warnings = [{"code": w.code, "text": w.text} for w in assembler.warnings]
    return {**_shown(assembler.message()), "warnings": warnings, "error": error}


def _shown(message: Message) -> dict[str, Any]:
    """The message with everything spelled out that its JSON may leave out."""
    told: dict[str, Any] = msgspec.to_builtins(message)
    for block in told.get("blocks", ()):
        for key, value in _NEVER_LEFT_OUT.get(block["type"], {}).items():
            block.setdefault(key, value)
    return {**_EMPTY, **told}


def _first(*given: _Number | None) -> _Number | None:
    return next((value for value in given if value is not None), None)


def _own_headers(ready: Setup, target: Target) -> dict[str, str]:
    """The names of the headers from config.toml, as sent; any of them may contain a secret."""
    own = ready.config.providers.get(target.provider.lower())
    return {name.lower(): MASK for name in own.headers} if own else {}


def _check_count(option: str, given: int | None) -> None:
    if given is not None and given < 1:
        raise ConfigError(f"{option} cannot be {given}: use a whole number of at least 1")


def _read(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {name}: {error.strerror}") from None


def _read_talk(data: bytes) -> _Talk:
    try:
        return Reader[_Talk](_Talk)(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = str(error)
        if "`$.toolChoice" in text:
            text = 'toolChoice must be "auto", "none", "required" or {"name": TOOL}'
        raise ConfigError(f"not a conversation: {text[:1].lower()}{text[1:]}") from None


def _read_compat(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"--compat is not a JSON object: {error}") from None
