"""`mull strict`: a fake provider with the real one's rules on loopback, for clients in any
language.
"""

from __future__ import annotations

import asyncio
import os
import sys
from argparse import REMAINDER, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle, repeat
from pathlib import Path
from typing import TextIO

from mull.agent.tools.shown import plural
from mull.cli import interrupt
from mull.neutral.errors import ConfigError
from mull.testing.providers import PROVIDERS
from mull.testing.script import Act, Say, Think, read_script
from mull.testing.strict import Answered, Doubt, Noted, StrictServer
from mull.tui.text.safe import one_line

__all__ = ["arguments", "run"]

EXIT_REFUSED = 1
EXIT_INTERRUPTED = 130
EXIT_UNTESTED = 4
_LONGEST = 500
_TEXT = """\
Runs a fake provider on loopback that needs no key and is as strict as the real one: it
remembers every signature, encrypted thought and id that it sends, and rejects, with the
provider's own error message, a client that loses or changes them. Point your client at
the address; each request is judged as it arrives. Ctrl-C stops it and prints a summary.
With --run it starts a command with the address in its environment, and stops when the
command ends.

A script defines what the model does, with one list for each answer:

  [[{"think": "I have to look."}, {"call": "read", "input": {"path": "a.py"}}],
   [{"think": "Nothing in it.", "hidden": true}, {"say": "The file is empty."}]]

Without a script the model thinks and answers, and calls no tools. With a script, a request
that offers no tools gets a short answer that does not come from the script: agents ask for
titles and summaries in between.

exit status: 0 nothing was rejected, 1 something was rejected, 2 usage error, 4 no reasoning
was tested; with --run, that of the command if it failed.
"""
_EXAMPLES = """\
examples:
  mull strict kimi --script talk.json
  mull strict anthropic --port 8123
  mull strict openai --script talk.json --run npm test
"""


def arguments(parser: ArgumentParser) -> None:
    """Add the provider, the script, and the command to run."""
    parser.description, parser.epilog = _TEXT, _EXAMPLES
    parser.add_argument(
        "provider", metavar="PROVIDER", choices=[*PROVIDERS], help=", ".join(PROVIDERS)
    )
    parser.add_argument(
        "--script", metavar="FILE", help="what the model does; - reads standard input"
    )
    parser.add_argument("--repeat", action="store_true", help="start the script again when it ends")
    parser.add_argument(
        "--port",
        type=_port,
        default=0,
        metavar="N",
        help="listen on this port (default: any free port)",
    )
    parser.add_argument(
        "--run",
        dest="command",
        nargs=REMAINDER,
        metavar="COMMAND",
        help="a command to run; must come last",
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) >= 1 << 16:
        raise ArgumentTypeError(f"not a port: {text}")
    return int(text)


def run(options: Namespace) -> int:
    """Serve until interrupted, and report how the client did.

    Raises:
        ConfigError: the script cannot be read, the port is taken, or the command cannot be started.
    """
    log = _Log(sys.stderr if options.command else sys.stdout)
    server, status = _serve(options, log)
    for line in _summary(server):
        log.say(line)
    return _status(server, status)


class _Log:
    """The log while it runs, a line for each request."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def say(self, line: str) -> None:
        """One line; text from a client is neutralised."""
        print(one_line(line, _LONGEST), file=self._stream, flush=True)

    def note(self, noted: Noted) -> None:
        """A verdict, from the server's thread."""
        self.say(_line(noted))


def _line(noted: Noted) -> str:
    where = f"{noted.request.method} {noted.request.path.partition('?')[0]}"
    if isinstance(noted, Answered):
        brought = f", {plural(len(noted.returned), 'thought')} came back" if noted.returned else ""
        return f"✓ {where}: answered{brought}"
    if isinstance(noted, Doubt):
        return f"? {where}: {noted.reason}"
    unsure = "" if noted.certain else " (the provider itself may take this)"
    return f"✗ {where}: refused{unsure}: {noted.reason}"


def _serve(options: Namespace, log: _Log) -> tuple[StrictServer, int]:
    """Serve until interrupted, or until the command ends; returns its exit status."""
    aside = None if options.script is None else [Say("Done.")]
    server = StrictServer(
        options.provider, _script(options), port=options.port, aside=aside, told=log.note
    )
    try:
        server.start()
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise ConfigError(
            f"cannot use port {options.port} ({why}): choose another, or leave out --port"
        ) from None
    try:
        return server, interrupt.run(_work(server, options.command, log))
    except KeyboardInterrupt:
        return server, EXIT_INTERRUPTED if options.command else 0
    finally:
        server.stop()


async def _work(server: StrictServer, command: Sequence[str], log: _Log) -> int:
    log.say(f"{server.name} listens at {server.url}; press Ctrl-C to stop")
    for name, value in server.variables.items():
        log.say(f"  {name}={value}")
    if command:
        return await _run(command, server.variables)
    await asyncio.Event().wait()
    return 0


async def _run(command: Sequence[str], variables: Mapping[str, str]) -> int:
    try:
        process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **variables})
    except OSError as error:
        raise ConfigError(f"cannot start {command[0]}: {error.strerror}") from None
    try:
        return await process.wait()
    except asyncio.CancelledError:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        raise


def _status(server: StrictServer, status: int) -> int:
    if server.refusals:
        return EXIT_REFUSED
    return status or (EXIT_UNTESTED if server.untested or not server.issued else 0)


def _summary(server: StrictServer) -> Iterator[str]:
    """How the client did."""
    back = {carrier for returned in server.returned for carrier in returned}
    known = [carrier for carrier in server.issued if carrier in back]
    yield ""
    unsure = sum(not refused.certain for refused in server.refusals)
    refused = f"{len(server.refusals)} refused" + (f" ({unsure} of them unsure)" if unsure else "")
    yield f"{server.answered} answered, {refused}, {len(server.doubts)} doubts"
    yield f"{plural(len(server.issued), 'thought')} sent, {len(known)} of them came back"
    if server.untested:
        yield f"no reasoning was tested: {server.untested}"
    elif not server.issued:
        yield "no reasoning was tested: no thought was sent"
    elif not server.called:
        yield "no tool was called: the requirements of tool chains were not tested"


def _script(options: Namespace) -> Iterable[Sequence[Act]]:
    if options.script is None:
        return repeat([Think("I know this one."), Say("Yes.")])
    try:
        data = sys.stdin.buffer.read() if options.script == "-" else _file(options.script)
        answers = read_script(data)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the script {options.script}: {error}") from None
    return cycle(answers) if options.repeat else answers


def _file(name: str) -> bytes:
    return Path(name).read_bytes()
