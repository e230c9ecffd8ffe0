"""The OpenAI SDK: messages and items are given back as they came."""

import json

import openai

from line import NotClaimed, answer, last_turns, serve

THOUGHTS = ("reasoning_content", "reasoning", "reasoning_text")
RESPONSES = {"store": False, "include": ["reasoning.encrypted_content"]}
RESPONSES |= {"reasoning": {"summary": "auto"}}


class Client:
    def __init__(self, case):
        apis = {at["dialect"] for at in case["endpoints"].values()}
        if not apis <= {"openai-chat", "openai-responses"}:
            raise NotClaimed("speaks only the APIs of OpenAI")
        if len(case["endpoints"]) > 1:
            raise NotClaimed("has no conversations that change their model")
        if case["kind"] == "tags":
            raise NotClaimed("returns the content as the server sent it")
        self.tool, self.streams, self.history = case["tool"], case["call"] == "streaming", []

    def ask(self, at, text):
        client = openai.OpenAI(base_url=at["url"] + "/v1", api_key="x", max_retries=0)
        self.history.append({"role": "user", "content": text})
        if at["dialect"] == "openai-chat":
            yield from self.chat(client, at)
        else:
            yield from self.responses(client, at)

    def chat(self, client, at):
        function = {key: self.tool[key] for key in ("name", "description", "parameters")}
        options = {"model": at["model"], "tools": [{"type": "function", "function": function}]}
        if at["provider"] == "openrouter":
            options["extra_body"] = {"reasoning": {"effort": "medium"}}
        while True:
            options["messages"] = self.history
            if self.streams:
                options["stream_options"] = {"include_usage": True}
                with client.chat.completions.stream(**options) as stream:
                    stream.until_done()
                    completion = stream.get_final_completion()
            else:
                completion = client.chat.completions.create(**options)
            choice, usage = completion.choices[0], completion.usage
            message = choice.message
            self.history.append(message.model_dump(exclude_none=True))
            thinking = next((t for name in THOUGHTS if (t := getattr(message, name, None))), None)
            details = usage and usage.completion_tokens_details
            counted = details.reasoning_tokens if details else None
            cut = choice.finish_reason == "length"
            yield answer(message.content, thinking, reasoning_tokens=counted, incomplete=cut)
            if not message.tool_calls:
                return
            for call in message.tool_calls:
                result = {"role": "tool", "tool_call_id": call.id, "content": self.tool["result"]}
                self.history.append(result)

    def responses(self, client, at):
        function = {key: self.tool[key] for key in ("name", "description", "parameters")}
        tools = [{"type": "function", "strict": False, **function}]
        while True:
            options = {"model": at["model"], "input": self.history, "tools": tools, **RESPONSES}
            if self.streams:
                with client.responses.stream(**options) as stream:
                    stream.until_done()
                    response = stream.get_final_response()
            else:
                response = client.responses.create(**options)
            self.history += [item.model_dump(exclude_none=True) for item in response.output]
            items = [item for item in response.output if item.type == "reasoning"]
            texts = [part.text for item in items for part in (item.content or item.summary)]
            counted = response.usage.output_tokens_details.reasoning_tokens
            yield answer(response.output_text, "\n\n".join(texts), reasoning_tokens=counted)
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                return
            for call in calls:
                result = {"type": "function_call_output", "call_id": call.call_id}
                self.history.append({**result, "output": self.tool["result"]})

    def resume(self):
        self.history = json.loads(json.dumps(self.history))

    def keep(self, turns):
        self.history = last_turns(self.history, lambda one: one.get("role") == "user", turns)


serve(Client)
