"""mull's own library, as it comes."""

import mull
from line import answer, serve

PROVIDERS = {"gemini": "google", "kimi": "moonshotai", "compatible": "openai-compatible"}
PROVIDERS |= {"bedrock": "amazon-bedrock"}
SETUP = mull.Engine(isolated=True).setup
VERSIONS = {"openai-chat": "/v1", "openai-responses": "/v1", "gemini": "/v1beta"}


def look(at: str) -> str:
    """Look at something."""
    return "nothing there"


class Client:
    def __init__(self, case):
        self.streams = case["call"] == "streaming"
        self.engine = mull.Engine(SETUP)
        self.talk = None
        self.at = None

    def reach(self, at):
        name = f"{PROVIDERS.get(at['provider'], at['provider'])}/{at['model']}"
        options = {"base_url": at["url"] + VERSIONS.get(at["dialect"], ""), "key": "x"}
        if self.talk is None:
            self.start(name, options)
        elif at is not self.at:
            self.talk.switch(name, **options)
        self.at = at

    def start(self, name, options, messages=()):
        self.opened = name, options
        self.talk = mull.Conversation(
            name,
            **options,
            tools=[look],
            engine=self.engine,
            messages=messages,
        )

    def ask(self, at, text):
        self.reach(at)
        if self.streams:
            stream = self.talk.stream(text)
            for _ in stream:
                pass
            result = stream.result
        else:
            result = self.talk.ask(text)
        for message in result.messages:
            if message.role == "assistant":
                yield self.told(message)

    def told(self, message):
        thinking = "\n\n".join(block.thought for block in message.thinking)
        counted = message.usage.reasoning if message.usage else None
        broken = message.status in ("interrupted", "error", "truncated", "truncated_in_reasoning")
        return answer(message.text, thinking, reasoning_tokens=counted, incomplete=broken)

    def again(self, messages):
        lines = [mull.message_to_json(message) for message in messages]
        self.start(*self.opened, [mull.message_from_json(line) for line in lines])

    def resume(self):
        self.again(self.talk.messages)

    def keep(self, turns):
        asked = [i for i, one in enumerate(self.talk.messages) if one.role == "user"]
        self.again(self.talk.messages[asked[-turns] :])


serve(Client)
