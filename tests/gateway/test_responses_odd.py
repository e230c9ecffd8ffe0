"""Requests to the Responses API that nobody should send: answered or refused, never a fault."""

from __future__ import annotations

import asyncio
import json

from hypothesis import given
from hypothesis import strategies as st

from effort import tried
from gateway.test_app import app_for, ask
from gateway.test_responses_replay import Upstream, words

odd = st.none() | st.booleans() | st.integers(-1, 5) | words | st.lists(words, max_size=1)
parts = st.fixed_dictionaries(
    {"type": st.sampled_from(["input_text", "output_text", "other"]), "text": odd}
)
odd_items = st.one_of(
    odd,
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "developer", "other"])},
        optional={"content": odd | st.lists(parts, max_size=2), "type": odd, "id": odd},
    ),
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(
                [
                    "compaction",
                    "compaction_trigger",
                    "item_reference",
                    "function_call",
                    "function_call_output",
                    "reasoning",
                    "unheard_of",
                ]
            )
        },
        optional=dict.fromkeys(
            ("id", "call_id", "name", "arguments", "output", "encrypted_content"), odd
        ),
    ),
)
odd_bodies = st.fixed_dictionaries(
    {"input": odd | st.lists(odd_items, max_size=3)},
    optional=dict.fromkeys(
        (
            "previous_response_id",
            "store",
            "stream",
            "generate",
            "background",
            "conversation",
            "context_management",
            "include",
            "tools",
            "text",
            "reasoning",
            "metadata",
        ),
        odd,
    ),
)


@tried(0.5)
@given(bodies=st.lists(odd_bodies, min_size=1, max_size=3))
def test_whatever_is_sent_is_answered_or_refused(bodies):
    async def run():
        app = app_for("http://127.0.0.1:9")
        played = Upstream(app._gateway, "kimi")
        played.answer = {"thought": "Hm.", "text": "Done.", "calls": [], "ids": ""}
        for body in bodies:
            data = json.dumps({"model": "m", **body}).encode()
            for path in ("", "/compact", "/input_tokens"):
                answer = await ask(app, "POST", f"/v1/responses{path}", data)
                assert answer.status in (200, 400, 404), answer.body
                if path or answer.status != 200 or body.get("stream") is True:
                    continue
                kept = body.get("store") is not False
                for more in ("", "/input_items"):
                    found = await ask(app, "GET", f"/v1/responses/{answer.json['id']}{more}")
                    assert found.status == (200 if kept else 404), found.body
        await app._gateway.close()

    asyncio.run(run())
