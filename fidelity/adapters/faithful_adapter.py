"""A client that sends everything back as it came, without any library: the yardstick of the suite,
and the client in front of a gateway (FIDELITY_GATEWAY is its address, FIDELITY_KEY its key,
FIDELITY_HEADERS a JSON object of more headers). With FIDELITY_FORGETS it is what many clients are:
it sends back only what it displays, and the calls.
"""

import json
import os
import re
import urllib.error
import urllib.request

from apis import STATELESS, THOUGHTS
from line import NotClaimed, NotMeasured, answer, join, last_turns, serve

GATEWAY = os.environ.get("FIDELITY_GATEWAY")
KEY = os.environ.get("FIDELITY_KEY", "x")
HEADERS = json.loads(os.environ.get("FIDELITY_HEADERS", "{}"))
PATIENCE = 30
NOT_OFFERED, NOT_ALLOWED = (404, 405, 501), (401, 403)
FORGETS = bool(os.environ.get("FIDELITY_FORGETS"))
SECRETS = [one for one in (os.environ.get("FIDELITY_KEY", ""), *HEADERS.values()) if len(one) > 7]
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 8000}
RESPONDS = STATELESS | {"reasoning": {"summary": "auto"}}


class Stays(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: it would ask something else, and take the key there."""

    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), Stays)


class Client:
    is_answered = False
    """Whether anything ever was: a gateway that is silent from the start is none."""

    def __init__(self, case):
        apis = {at["dialect"] for at in case["endpoints"].values()}
        if "bedrock-converse" in apis:
            raise NotClaimed(
                "the client that asks here does not sign requests as Bedrock wants them"
            )
        if len(apis) > 1:
            raise NotClaimed("the client that asks here keeps to one API")
        if any(at["provider"] == "mistral" for at in case["endpoints"].values()):
            raise NotClaimed("the client that asks here does not join lists of content")
        if case["kind"] == "tags":
            raise NotClaimed("returns the content as the server sent it")
        if len(case["endpoints"]) > 1:  # a gateway has the judge as its only upstream
            raise NotClaimed("the client that asks here keeps to one endpoint")
        self.is_first = True
        self.tool, self.streams, self.history = case["tool"], case["call"] == "streaming", []
        client = case.get("client", {"forgets": FORGETS})
        self.dialect, self.forgets = client.get("dialect"), client.get("forgets", False)

    def ask(self, at, text):
        api = APIS[self.dialect or at["dialect"]](at, self.tool)
        self.history.append(api.question(text))
        while True:
            base = self.gateway(at) or at["url"]
            body = {**api.body(self.history), **(api.streaming if self.streams else {})}
            try:
                given = post(base + api.path(self.streams), body)
                Client.is_answered = True
            except Refused as error:
                Client.is_answered = True
                if self.gateway(at) and self.is_first:
                    self.excuse(at, error)
                raise
            except OSError as error:
                if Client.is_answered:
                    raise
                raise NotMeasured(
                    f"{base} accepts a request and does not answer: {error}"
                ) from None
            finally:
                self.is_first = False
            said, report = api.read(given)
            self.history += api.forget(said) if self.forgets else said
            yield report
            results = api.results(said)
            if not results:
                return
            self.history += results

    def excuse(self, at, error):
        """Tell a gateway that does not offer this, or does not take the key, from a loss."""
        words, api = " ".join(str(error).split())[:120], self.dialect or at["dialect"]
        if error.code in NOT_OFFERED:
            raise NotClaimed(f"the gateway offers no {api} for {at['model']}: {words}") from None
        if error.code in NOT_ALLOWED:
            raise NotMeasured(f"the gateway does not accept the key: {words}") from None

    def gateway(self, at):
        """The address of the gateway between, if there is one."""
        return GATEWAY

    def resume(self):
        self.history = json.loads(json.dumps(self.history))

    def keep(self, turns):
        self.history = last_turns(self.history, is_question, turns)


def is_question(one):
    content = one.get("content") or one.get("parts", [{}])[0].get("text")
    return one.get("role") == "user" and isinstance(content, str)


class Refused(RuntimeError):
    """An answer with an error status."""

    def __init__(self, code, text):
        super().__init__(f"{code} {text}")
        self.code = code


def post(url, body):
    """The events of a stream, or the document, as a list."""
    head = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    head |= {"x-api-key": KEY, "x-goog-api-key": KEY}
    request = urllib.request.Request(url, json.dumps(body).encode(), head | HEADERS)
    try:
        with OPENER.open(request, timeout=PATIENCE) as response:
            data = response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            text = error.read().decode(errors="replace")
        if 300 <= error.code < 400:
            text = f"a redirection to {error.headers['location']}"
        raise Refused(error.code, masked(text)) from None
    except urllib.error.URLError as error:
        raise NotMeasured(f"cannot connect to {url}: {error.reason}") from None
    if not (response.headers["content-type"] or "").startswith("text/event-stream"):
        return [document_in(data)]
    lines = [line[5:].strip() for line in re.split(r"\r?\n", data) if line.startswith("data:")]
    events = [json.loads(line) for line in lines if line not in ("", "[DONE]")]
    errors = [one["error"] for one in events if one.get("error")]
    errors += [one for one in events if one.get("type") == "error"]
    if errors:
        raise RuntimeError(masked(str(errors[0])))
    return events


def masked(text):
    """What a gateway says, without keys that it repeats."""
    for secret in SECRETS:
        text = text.replace(secret, "***")
    return text


def document_in(data):
    try:
        return json.loads(data)
    except ValueError:
        raise RuntimeError(f"the answer is no JSON: {masked(data)[:60]!r}") from None


def whole_blocks(pieces):
    """litellm's thinking blocks: their pieces have no index, and a signature ends a block."""
    blocks = []
    for piece in pieces:
        if blocks and not blocks[-1].get("signature") and piece["type"] == blocks[-1]["type"]:
            blocks[-1] = join([blocks[-1], piece])
        else:
            blocks.append(piece)
    return blocks


class Chat:
    streaming = {"stream": True, "stream_options": {"include_usage": True}}

    def __init__(self, at, tool):
        self.at, self.tool = at, tool
        self.function = {key: self.tool[key] for key in ("name", "description", "parameters")}

    def question(self, text):
        return {"role": "user", "content": text}

    def path(self, streams):
        return "/v1/chat/completions"

    def body(self, history):
        more = {"reasoning": {"effort": "medium"}} if self.at["provider"] == "openrouter" else {}
        if self.at["dialect"] != "openai-chat":
            more = {"reasoning_effort": "medium"}
        tools = [{"type": "function", "function": self.function}]
        return {"model": self.at["model"], "messages": history, "tools": tools, **more}

    def read(self, given):
        choices = [choice for one in given for choice in one.get("choices") or ()]
        message = join(choice.get("message") or choice.get("delta") or {} for choice in choices)
        if "thinking_blocks" in message:
            message["thinking_blocks"] = whole_blocks(message["thinking_blocks"])
        endings = [choice.get("finish_reason") for choice in choices]
        ending = next(filter(None, endings), None)
        usage = next((one["usage"] for one in reversed(given) if one.get("usage")), {})
        counted = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
        thinking = next((message[name] for name in THOUGHTS if message.get(name)), None)
        text, cut = message.get("content"), ending in (None, "length")
        return [message], answer(text, thinking, reasoning_tokens=counted, incomplete=cut)

    def forget(self, said):
        kept = {key: said[0].get(key) for key in ("role", "content")}
        calls = [self.plain(call) for call in said[0].get("tool_calls") or ()]
        return [kept | ({"tool_calls": calls} if calls else {})]

    def plain(self, call):
        function = {key: call["function"][key] for key in ("name", "arguments")}
        return {"id": call["id"], "type": "function", "function": function}

    def results(self, said):
        return [
            {"role": "tool", "tool_call_id": call["id"], "content": self.tool["result"]}
            for call in said[0].get("tool_calls") or ()
        ]


class Messages(Chat):
    streaming = {"stream": True}

    def path(self, streams):
        return "/v1/messages"

    def body(self, history):
        tool = {"name": self.tool["name"], "input_schema": self.tool["parameters"]}
        about = {"model": self.at["model"], "messages": history, "tools": [tool]}
        adaptive = {"thinking": {"type": "adaptive"}, "max_tokens": 8000}
        return {**about, **(adaptive if "-5-5" in self.at["model"] else BUDGET)}

    def read(self, given):
        if "content" in given[0]:
            blocks, last = given[0]["content"], given[0]
        else:
            blocks, last = self.joined(given)
        usage = last.get("usage") or {}
        counted = (usage.get("output_tokens_details") or {}).get("thinking_tokens")
        text = "".join(block.get("text", "") for block in blocks)
        thoughts = [block["thinking"] for block in blocks if "thinking" in block]
        cut = last.get("stop_reason") in (None, "max_tokens")
        report = answer(text, "\n\n".join(thoughts), reasoning_tokens=counted, incomplete=cut)
        return [{"role": "assistant", "content": blocks}], report

    def joined(self, events):
        blocks, last = {}, {}
        for event in events:
            if event["type"] == "content_block_start":
                blocks[event["index"]] = {**event["content_block"], "json": ""}
            elif event["type"] == "content_block_delta":
                delta = {key: value for key, value in event["delta"].items() if key != "type"}
                delta["json"] = delta.pop("partial_json", "")
                blocks[event["index"]] = join([blocks[event["index"]], delta])
            elif event["type"] == "message_delta":
                last = {**event["delta"], "usage": event["usage"]}
        for block in blocks.values():
            written = block.pop("json")
            if block["type"] == "tool_use":
                block["input"] = json.loads(written or "{}")
        return list(blocks.values()), last

    def forget(self, said):
        blocks = [one for one in said[0]["content"] if "thinking" not in one["type"]]
        return [{**said[0], "content": blocks or [{"type": "text", "text": "..."}]}]

    def results(self, said):
        calls = [block["id"] for block in said[0]["content"] if block["type"] == "tool_use"]
        found = {"type": "tool_result", "content": self.tool["result"]}
        return [{"role": "user", "content": [{**found, "tool_use_id": c} for c in calls]}] * bool(
            calls
        )


class Responses(Chat):
    streaming = {"stream": True}

    def path(self, streams):
        return "/v1/responses"

    def body(self, history):
        tools = [{"type": "function", "strict": False, **self.function}]
        about = {"model": self.at["model"], "input": history, "tools": tools, **RESPONDS}
        if self.at["dialect"] != "openai-responses":
            about["reasoning"] = {"effort": "medium", "summary": "auto"}
        return about

    def read(self, given):
        done = [one for one in given if "output" in one]
        done += [one["response"] for one in given if one.get("type") == "response.completed"]
        if not done:
            raise RuntimeError("the stream ended early")
        items, usage = done[0]["output"], done[0].get("usage") or {}
        parts = [
            (item["type"], part["text"])
            for item in items
            for part in [*(item.get("summary") or ()), *(item.get("content") or ())]
            if "text" in part
        ]
        text = "".join(said for kind, said in parts if kind == "message")
        thoughts = [said for kind, said in parts if kind == "reasoning"]
        counted = (usage.get("output_tokens_details") or {}).get("reasoning_tokens")
        return items, answer(text, "\n\n".join(thoughts), reasoning_tokens=counted)

    def forget(self, said):
        plain = [item for item in said if item["type"] != "reasoning"]
        return [{key: one[key] for key in one if key != "id"} for one in plain]

    def results(self, said):
        return [
            {
                "type": "function_call_output",
                "call_id": item["call_id"],
                "output": self.tool["result"],
            }
            for item in said
            if item["type"] == "function_call"
        ]


class Gemini(Chat):
    streaming = {}

    def question(self, text):
        return {"role": "user", "parts": [{"text": text}]}

    def path(self, streams):
        method = "streamGenerateContent?alt=sse" if streams else "generateContent"
        return f"/v1beta/models/{self.at['model']}:{method}"

    def body(self, history):
        config = {"thinkingConfig": {"includeThoughts": True}}
        tools = [{"functionDeclarations": [self.function]}]
        return {"contents": history, "tools": tools, "generationConfig": config}

    def read(self, given):
        found = [one["candidates"][0] for one in given if one.get("candidates")]
        parts = [part for one in found for part in one["content"].get("parts", ())]
        text = "".join(p["text"] for p in parts if "text" in p and not p.get("thought"))
        thought = "".join(part["text"] for part in parts if part.get("thought"))
        counted = given[-1].get("usageMetadata", {}).get("thoughtsTokenCount")
        cut = found[-1].get("finishReason") in (None, "MAX_TOKENS")
        report = answer(text, thought, reasoning_tokens=counted, incomplete=cut)
        return [{"role": "model", "parts": parts}], report

    def forget(self, said):
        plain = [one for one in said[0]["parts"] if not one.get("thought")]
        kept = [{key: one[key] for key in one if key != "thoughtSignature"} for one in plain]
        return [{**said[0], "parts": kept or [{"text": "..."}]}]

    def results(self, said):
        calls = [part["functionCall"] for part in said[0]["parts"] if "functionCall" in part]
        value = {"response": {"result": self.tool["result"]}}
        named = [{key: call[key] for key in ("id", "name") if key in call} for call in calls]
        parts = [{"functionResponse": {**name, **value}} for name in named]
        return [{"role": "user", "parts": parts}] if parts else []


APIS = {"openai-chat": Chat, "openai-responses": Responses}
APIS |= {"anthropic": Messages, "gemini": Gemini}

if __name__ == "__main__":
    serve(Client)
