"""Which form a file of a conversation is in, and the transcript that it holds.

Known are our own formats, conversations as `mull wire` reads them, and the message lists of five
APIs, bare or in the body of a request, as one document or a message a line. A form is told by
what only it has. Nothing is taken from a file that is not whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from mull.dialects.extras import without_extras
from mull.dialects.foreign import Conversation, as_list, as_text, objects
from mull.dialects.serving import bodies, read_history, recognised
from mull.history.log import Entry, Record
from mull.neutral.blocks import OpaqueBlock
from mull.neutral.errors import ConfigError
from mull.neutral.former import renewed
from mull.neutral.messages import Message, whole_system
from mull.neutral.nesting import DEEPEST_STORED, shallow
from mull.neutral.target import Target
from mull.policy.reasoning import starts_turn
from mull.transcripts.formats import SESSION, from_json, from_jsonl
from mull.transcripts.transcript import Transcript

__all__ = ["read_transcript"]

_BOM = b"\xef\xbb\xbf"
_TITLE = 80
_NEITHER = (
    "not a conversation that mull knows: it reads its own exports and the message lists of"
    " OpenAI, Anthropic, Gemini and Bedrock"
)
_MESSAGES = "messages"
_OF_A_REPORT = ("warnings", "error")
"""What `mull wire decode` prints beside a message."""


def read_transcript(
    data: bytes,
    *,
    written_by: Target | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Transcript:
    """The conversation in a file; `written_by` is who wrote the answers that do not say so, and
    `tell` is told what has no place in a session.

    Raises:
        ConfigError: it is not a conversation, or is damaged; says where and why.
    """
    data = shallow(data.removeprefix(_BOM), DEEPEST_STORED)
    if not data.strip():
        raise ConfigError("the file is empty")
    if _holds_lines(data):
        return _read_lines(data.lstrip(), written_by, tell)
    document = _parse(data)
    if isinstance(document, dict) and document.get("type") == SESSION:
        return _stamped(from_json(data), written_by)
    return _transcript(document, written_by, tell)


def _holds_lines(data: bytes) -> bool:
    """Whether there are more lines after one that is an object by itself."""
    first, _, rest = data.lstrip().partition(b"\n")
    if not rest.strip():
        return False
    try:
        return isinstance(msgspec.json.decode(first), dict)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def _parse(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except UnicodeDecodeError as error:
        raise ConfigError(f"not text in UTF-8: {error.reason} at byte {error.start}") from None
    except msgspec.DecodeError as error:
        raise ConfigError(_located(str(error), data)) from None


def _located(text: str, data: bytes) -> str:
    found = re.search(r"\(byte (\d+)\)", text)
    line = data.count(b"\n", 0, int(found[1])) + 1 if found else data.count(b"\n") + 1
    said = text if text.startswith("JSON") else text[:1].lower() + text[1:]
    return f"line {line}: not JSON: {said}"


def _read_lines(data: bytes, written_by: Target | None, tell: Callable[[str], None]) -> Transcript:
    lines = data.split(b"\n")
    first = msgspec.json.decode(lines[0])
    if first.get("type") == SESSION:
        return _stamped(from_jsonl(data), written_by)
    if "role" not in first:
        raise ConfigError(
            "a file of lines must contain one session, or one message per line; import several"
            " conversations one by one"
        )
    messages: list[Any] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                messages.append(msgspec.json.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ConfigError(f"line {number}: not JSON: {error}") from None
    return _transcript(messages, written_by, tell)


def _transcript(
    document: Any, written_by: Target | None, tell: Callable[[str], None]
) -> Transcript:
    held = document if isinstance(document, dict) else {}
    conversation = _conversation(document, held, written_by)
    system, messages = whole_system(conversation.system, conversation.messages)
    if not messages:
        raise ConfigError("the conversation is empty")
    if conversation.rest:
        tell(f"not imported, because sessions cannot hold it: {', '.join(conversation.rest)}")
    leading = conversation.messages[: len(conversation.messages) - len(messages)]
    if pieces := sum(isinstance(one, OpaqueBlock) for each in leading for one in each.blocks):
        tell(
            f"not imported, because sessions cannot hold it: {pieces} of the system prompt's parts"
        )
    model = held.get("model")
    return Transcript(
        title=_title(messages),
        model=written_by.name if written_by else model if isinstance(model, str) else None,
        system=system,
        records=tuple(Entry(without_extras(message)) for message in messages),
    )


def _conversation(document: Any, held: dict[str, Any], written_by: Target | None) -> Conversation:
    for dialect, key, beside in bodies():
        if key in held and key != _MESSAGES:
            given = held[key]
            items = [{"role": "user", "content": given}] if isinstance(given, str) else given
            return read_history(dialect, as_list(items, key), held.get(beside or ""), written_by)
    messages = held.get(_MESSAGES) if held else document
    if not isinstance(messages, list):
        raise ConfigError(_NEITHER)
    system = held.get("system")
    known = [message for message in messages if isinstance(message, dict)]
    if any("blocks" in message for message in known):
        return _read_neutral(messages, system, written_by)
    dialect = recognised(known, has_system=system is not None)
    return read_history(dialect, messages, system, written_by)


def _read_neutral(messages: list[Any], system: Any, written_by: Target | None) -> Conversation:
    conversation = Conversation()
    conversation.add_system("" if system is None else as_text(system, "system"))
    for where, message in objects(messages, "messages"):
        plain = {name: value for name, value in message.items() if name not in _OF_A_REPORT}
        try:
            read = msgspec.convert(renewed(plain), Message)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{where} is not a message: {error}") from None
        conversation.messages.append(_signed(read, written_by))
    return conversation


def _signed(message: Message, written_by: Target | None) -> Message:
    if written_by is None or message.role != "assistant" or message.origin is not None:
        return message
    return msgspec.structs.replace(message, origin=written_by.origin)


def _stamped(transcript: Transcript, written_by: Target | None) -> Transcript:
    def stamp(record: Record) -> Record:
        if not isinstance(record, Entry):
            return record
        return msgspec.structs.replace(record, message=_signed(record.message, written_by))

    if written_by is None:
        return transcript
    return msgspec.structs.replace(transcript, records=tuple(map(stamp, transcript.records)))


def _title(messages: Sequence[Message]) -> str:
    """The first words of the first question."""
    first = next((message.text for message in messages if starts_turn(message)), "")
    words = " ".join(first.split())
    return words if len(words) <= _TITLE else words[: _TITLE - 1] + "…"
