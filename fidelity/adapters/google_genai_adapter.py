"""The Google GenAI SDK: contents are given back as they came, as its chats do."""

import json

from google import genai
from google.genai import types

from line import NotClaimed, answer, last_turns, serve


class Client:
    def __init__(self, case):
        if any(at["dialect"] != "gemini" for at in case["endpoints"].values()):
            raise NotClaimed("speaks only generateContent")
        self.tool, self.streams, self.history = case["tool"], case["call"] == "streaming", []

    def ask(self, at, text):
        reach = types.HttpOptions(base_url=at["url"], retry_options={"attempts": 1})
        client = genai.Client(api_key="x", http_options=reach)
        declared = types.FunctionDeclaration(
            name=self.tool["name"],
            description=self.tool["description"],
            parameters_json_schema=self.tool["parameters"],
        )
        # https://ai.google.dev/gemini-api/docs/thinking#summaries
        config = types.GenerateContentConfig(
            tools=[types.Tool(function_declarations=[declared])],
            thinking_config=types.ThinkingConfig(include_thoughts=True),
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        self.history.append(types.UserContent(text))
        while True:
            options = {"model": at["model"], "contents": self.history, "config": config}
            if self.streams:
                chunks = list(client.models.generate_content_stream(**options))
            else:
                chunks = [client.models.generate_content(**options)]
            contents = [chunk.candidates[0].content for chunk in chunks if chunk.candidates]
            parts = [part for content in contents for part in content.parts or ()]
            self.history.append(types.ModelContent(parts))
            yield self.told(chunks[-1], parts)
            calls = [part.function_call for part in parts if part.function_call]
            if not calls:
                return
            results = [
                types.Part(
                    function_response=types.FunctionResponse(
                        id=call.id, name=call.name, response={"result": self.tool["result"]}
                    )
                )
                for call in calls
            ]
            self.history.append(types.UserContent(results))

    def told(self, last, parts):
        text = "".join(part.text for part in parts if part.text and not part.thought)
        thought = "".join(part.text for part in parts if part.text and part.thought)
        counted = last.usage_metadata and last.usage_metadata.thoughts_token_count
        cut = last.candidates[0].finish_reason in (None, types.FinishReason.MAX_TOKENS)
        return answer(text, thought, reasoning_tokens=counted, incomplete=cut)

    def resume(self):
        stored = json.dumps(
            [one.model_dump(mode="json", exclude_none=True) for one in self.history]
        )
        self.history = [types.Content.model_validate(one) for one in json.loads(stored)]

    def keep(self, turns):
        def is_question(one):
            return one.role == "user" and bool(one.parts[0].text)

        self.history = last_turns(self.history, is_question, turns)


serve(Client)
