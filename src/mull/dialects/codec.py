"""What a dialect consists of: the parts of its package, and what each must have.

Every package builds one `Codec` of its parts where only the type checker looks, so that a part that
is missing, or of another shape, does not pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mull.dialects.decoder import FrameReader, Interpreter
    from mull.dialects.foreign import Conversation
    from mull.dialects.replay import Replay
    from mull.dialects.surface import Surface
    from mull.dialects.tables import Statuses
    from mull.dialects.writer import About, AnswerWriter
    from mull.neutral.asked import Asked
    from mull.neutral.events import Failed
    from mull.neutral.messages import Message
    from mull.neutral.request import Request, WireRequest
    from mull.neutral.target import Target

__all__ = ["Codec"]


class EncodePart(Protocol):
    """Writes requests."""

    def encode_request(self, request: Request, target: Target, /) -> WireRequest: ...


class DecodePart(Protocol):
    """Reads answers."""

    @property
    def FRAMING(self) -> Callable[[], FrameReader]:
        """Splits a stream into frames."""

    @property
    def ChunkInterpreter(self) -> Callable[[Target, str | None], Interpreter]:
        """Reads the chunks of one answer; the second argument is the only reasoning field."""


class ReplayPart(Protocol):
    """Says which parts of an answer go back."""

    @property
    def REPLAY(self) -> Replay: ...


class AnswerPart(Protocol):
    """Writes answers, as a server."""

    @property
    def STATUSES(self) -> Statuses:
        """The words for failures, and their HTTP status."""

    @property
    def Writer(self) -> Callable[[About, Statuses], AnswerWriter]:
        """Writes a stream."""

    def write_document(self, message: Message, about: About, /) -> bytes: ...
    def write_error(self, failed: Failed, status: int, /) -> bytes: ...


class AskedPart(Protocol):
    """Reads requests, as a server."""

    def decode_request(self, body: bytes, path: str, headers: Mapping[str, str], /) -> Asked: ...


class HistoryPart(Protocol):
    """Reads the messages of a conversation in this dialect."""

    @property
    def BODY(self) -> tuple[str, str | None]:
        """The field with the messages, and that with the system prompt if it is another."""

    def is_own(self, message: Mapping[str, Any], /) -> bool: ...
    def read_history(
        self, messages: Sequence[Any], system: Any, written_by: Target | None, /
    ) -> Conversation: ...


class SurfacePart(Protocol):
    """What a server offers besides answers."""

    @property
    def SURFACE(self) -> Surface: ...


class Codec(NamedTuple):
    """One dialect, both ways."""

    encode: EncodePart
    decode: DecodePart
    replay: ReplayPart
    answer: AnswerPart
    asked: AskedPart
    history: HistoryPart
    surface: SurfacePart | None
    """None if no client uses the dialect with a server of ours."""
