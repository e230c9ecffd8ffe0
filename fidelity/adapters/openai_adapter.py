"""The OpenAI SDK: messages and items are given back as they came."""

import openai

from apis import STATELESS, outputs_for, read_chat, read_response
from line import NotClaimed, Talk, serve

# https://openrouter.ai/docs/use-cases/reasoning-tokens
BODIES = {"openrouter": {"reasoning": {"effort": "medium"}}}


class Client(Talk):
    def __init__(self, case):
        super().__init__(case)
        ends = case["endpoints"].values()
        if not {at["dialect"] for at in ends} <= {"openai-chat", "openai-responses"}:
            raise NotClaimed("speaks only the APIs of OpenAI")
        if len({at["dialect"] for at in ends}) > 1:
            raise NotClaimed("has no history that fits both of its APIs")
        if case["kind"] == "tags" or any(at["provider"] == "mistral" for at in ends):
            raise NotClaimed("returns the content as the server sent it: tags, lists")

    def ask(self, at, text):
        client = openai.OpenAI(base_url=at["url"] + "/v1", api_key="x", max_retries=0)
        self.history.append({"role": "user", "content": text})
        chats = at["dialect"] == "openai-chat"
        tool = {"function": self.tool} if chats else {"strict": False, **self.tool}
        options = {"model": at["model"], "tools": [{"type": "function", **tool}]}
        options |= {"stream": self.streams, "extra_body": BODIES.get(at["provider"])}
        while results := (yield from (self.chat if chats else self.respond)(client, options)):
            self.history += results

    def chat(self, client, options):
        if self.streams:
            options["stream_options"] = {"include_usage": True}
        # https://github.com/openai/openai-python#streaming-responses
        given = client.chat.completions.create(messages=self.history, **options)
        message, report = read_chat(given, self.streams)
        self.history.append(message)
        yield report
        result = {"role": "tool", "content": self.result}
        return [{**result, "tool_call_id": call["id"]} for call in message.get("tool_calls", ())]

    def respond(self, client, options):
        options |= STATELESS | {"reasoning": {"summary": "auto"}}
        response = client.responses.create(input=self.history, **options)
        items, report = read_response(response, self.streams)
        self.history += items
        yield report
        return outputs_for(items, self.result)


serve(Client)
