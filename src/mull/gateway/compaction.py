"""Compaction: the model that a request names summarises the conversation, and the client receives
the summary as the encrypted content of one `compaction` item. The gateway stores nothing for it:
the content is an envelope, which is opened when the client sends the item back. An item that
the provider made, and reads, cannot be summarised: it is in the envelope, beside the summary of the
rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mull.agent.compress import summarise
from mull.agent.side import Side
from mull.dialects.openai_responses.state import Summary, compaction_item
from mull.gateway.envelope import Envelopes, Sealed, is_envelope
from mull.gateway.observing import Observed
from mull.history.log import Log
from mull.neutral.blocks import Block, OpaqueBlock, TextBlock
from mull.neutral.errors import ConfigError, RefusedError
from mull.neutral.events import Event, Finished, UsageReported
from mull.neutral.usage import Usage
from mull.policy.compress.plan import NotCompressed

if TYPE_CHECKING:
    from mull.gateway.job import Job
    from mull.gateway.service import Gateway

__all__ = ["Compaction", "compact", "open_summary"]

MOST_SEALED = 1 << 18
"""Bytes of a sealed summary at most. The model is asked for a much shorter one."""


class Compaction(NamedTuple):
    """The item that replaces a conversation, and the usage of the request that made it."""

    item: dict[str, Any]
    usage: Usage | None


async def compact(gateway: Gateway, job: Job, answer_id: str) -> Compaction:
    """Have the job's model summarise the job's conversation. The item belongs to the response with
    this id.

    Raises:
        ConfigError: there is nothing to summarise.
        RefusedError: the model wrote no summary, it and the provider's own item are too large, or
            the client has reached a limit.
    """
    made = job.prepared.made
    messages = [message for message in made.log.messages if message.role != "system"]
    if not messages:
        raise ConfigError("input: there is no conversation to compact: send at least one message")
    target, snapshot = job.prepared.target, job.route.snapshot
    if gateway.accounts is not None:
        await gateway.accounts.admit(job)
    with Observed(gateway.observers, job) as observed:
        way = gateway.tracing.along(job, job.route.way)
        send = gateway.engine.sender(way, work=job.aside)
        side = Side(gateway.engine, target, send, snapshot["context.limit"])
        counter = gateway.engine.counter_for(target)
        own = snapshot.having({"compression.model": None})
        written = await summarise(Log(messages), side, own, counter)
        if isinstance(written, NotCompressed):
            text = f"the conversation was not compacted: {written.reason}"
            raise RefusedError(text, status=502, text=text)
        counted: list[Event] = [UsageReported(written.usage)] if written.usage else []
        observed.emitted([*counted, Finished("stop")])
    blocks: dict[int, Block] = {0: TextBlock(written.text)}
    if target.dialect == job.client.dialect:
        for block in (block for one in job.prepared.request.messages for block in one.blocks):
            if isinstance(block, OpaqueBlock) and block.stands_for_earlier:
                blocks[1] = block
    carrier = gateway.envelopes.seal(job.client.scope, Sealed(target.origin, blocks), MOST_SEALED)
    if carrier is None:
        text = "the conversation was not compacted: what stands for its beginning is too large"
        raise RefusedError(text, status=502, text=text)
    name = f"cmp_{answer_id.removeprefix('resp_')}_0"
    return Compaction(compaction_item(name, carrier), written.usage)


def open_summary(envelopes: Envelopes, scope: str, carrier: str) -> Summary | None:
    """The summary in a compaction item, or None if another server made the item.

    Raises:
        ConfigError: the item is one of mull's but cannot be opened for this client. It is not
            ignored, because most of the conversation would be missing.
    """
    sealed = envelopes.open(scope, carrier)
    if sealed is None and is_envelope(carrier):
        raise ConfigError(
            "input: a compaction item cannot be opened: it was made for another client, or the"
            " gateway's key has changed since; start a new conversation"
        )
    block = sealed.blocks.get(0) if sealed is not None else None
    if sealed is None or not isinstance(block, TextBlock):
        return None
    held = sealed.blocks.get(1)
    return Summary(block.text, held.data if isinstance(held, OpaqueBlock) else None)
