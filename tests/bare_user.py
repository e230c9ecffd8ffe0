"""A program of someone who installed mull and none of its extras. It prints what it found.

`test_bare.py` runs it where nothing but msgspec can be imported, `judges/test_wheel.py` where
nothing else is installed.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import mull
from mull.testing import Call, Say, StrictServer, Think

SCRIPT = [
    [Think("I have to look."), Call("weather", {"city": "Oslo"})],
    [Think("Four degrees."), Say("It is cold.")],
]


def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: 4 degrees"


def asked() -> mull.Result:
    with StrictServer("kimi", SCRIPT) as server:
        return mull.ask(
            "Is it cold?",
            "moonshotai/kimi-k2-thinking",
            tools=[weather],
            base_url=server.url,
            key="k",
        )


async def streamed() -> str:
    with StrictServer("anthropic", [[Think("Hm."), Say("Yes.")]]) as server:
        async with mull.stream_async(
            "Is 7 a prime?", "anthropic/claude-sonnet-4-5", base_url=server.url, key="k"
        ) as events:
            return "".join([one.text async for one in events if isinstance(one, mull.TextDelta)])


def completed() -> mull.Result:
    """A history of the caller's own, long enough to be counted."""
    talk = [mull.user("Is it cold? " * 20_000)]
    with StrictServer("kimi", SCRIPT) as server:
        return mull.complete(
            talk,
            "moonshotai/kimi-k2-thinking",
            tools=[weather],
            base_url=server.url,
            key="k",
        )


def stored() -> tuple[int, str]:
    """A session in a file, continued by another process's worth of objects."""
    with StrictServer("kimi", [[Think("One."), Say("1")], [Think("Two."), Say("2")]]) as server:
        for text in ("Count.", "Go on."):
            with mull.open_session(
                "numbers",
                model="moonshotai/kimi-k2-thinking",
                store=mull.SqliteSessions(Path("sessions.db")),
                base_url=server.url,
                key="k",
            ) as session:
                answer = session.ask(text)
    return len(session.log), answer.text


def main() -> None:
    first, counted = asked(), completed()
    length, last = stored()
    found = {
        "answer": first.text,
        "thinking": first.thinking,
        "called": [call.name for call in counted.tool_calls],
        "notes": [note.text for note in counted.notes if note.about == "tokens"],
        "streamed": asyncio.run(streamed()),
        "stored": [length, last],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
