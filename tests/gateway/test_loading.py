"""A running gateway has imported what requests need."""

import subprocess
import sys

SCRIPT = """
import asyncio, faulthandler, json, socket, sys

faulthandler.dump_traceback_later(55, exit=True)  # before the test's limit, which cannot say where
from mull.agent.engine import Engine
from mull.gateway.serve import build_app
from mull.store.serve import ServeConfig, ServedModel

PATHS = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "q"}]},
    "/v1/messages": {"messages": [{"role": "user", "content": "q"}], "max_tokens": 9},
    "/v1/responses": {"input": "q"},
    "/v1beta/models/{model}:generateContent": {"contents": [{"parts": [{"text": "q"}]}]},
}
MODELS = (
    "moonshotai/kimi-k2.5",
    "anthropic/claude-sonnet-4-5",
    "openai/gpt-5",
    "google/gemini-2.5-pro",
)


async def ask(app, path, body):
    sent = []

    async def receive():
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": path, "query_string": b""}
    await app({**scope, "headers": [(b"host", b"127.0.0.1")]}, receive, send)
    return sent[0]["status"]


async def main():
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))  # nobody listens, and nobody else can
    url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    named = {f"m{at}": ServedModel(model, base_url=url) for at, model in enumerate(MODELS)}
    app = build_app(Engine(isolated=True), ServeConfig(models=named, store="none"))
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    before, statuses = set(), set()

    async def receive():
        message = next(messages)
        if message["type"] == "lifespan.shutdown":
            before.update(sys.modules)
            for name in named:
                for path, body in PATHS.items():
                    statuses.add(await ask(app, path.format(model=name), {"model": name, **body}))
        return message

    async def send(message):
        pass

    await app({"type": "lifespan"}, receive, send)
    print(statuses, sorted(name for name in {*sys.modules} - before if name.startswith("mull")))


asyncio.run(main())
"""


def test_a_request_imports_nothing_of_mull():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("{502} []\n", "")
