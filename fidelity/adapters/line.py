"""The lines between the runner and an adapter written in Python. It needs no package.

    class Client:  # `Talk` has all but `ask`
        def __init__(self, case): ...  # case["endpoints"], case["call"], case["tool"]
        def ask(self, at, text): ...  # yield a report for each answer of the model
        def resume(self): ...  # store the conversation, forget it, load it
        def keep(self, turns): ...  # drop all but the last turns

    serve(Client)

Raise `NotClaimed` for what the library does not offer, `NotMeasured` if the run itself failed.
"""

import gc
import json
import os
import sys


class NotClaimed(Exception):
    """The library makes no claim about this; says what it does not offer."""


class NotMeasured(Exception):
    """The run itself failed, through no fault of the library; says how."""


def answer(text, thinking=None, *, reasoning_tokens=None, incomplete=False):
    """The report of one answer of the model."""
    report = {"text": text, "thinking": thinking}
    return report | {"reasoningTokens": reasoning_tokens, "incomplete": incomplete}


def reasoning_field(case):
    """The field in which the server sends its thoughts, for a client that has to be told: whoever
    uses a server with a name of its own knows it.
    """
    _, found, name = case["id"].split("/")[1].rpartition("field-reasoning")
    return f"reasoning{name}" if found else "reasoning_content"


class Talk:
    """What most clients share: a case whose history is a list. It is stored as JSON, and a turn
    begins with what a user says in words.
    """

    def __init__(self, case):
        self.tool = {key: case["tool"][key] for key in ("name", "description", "parameters")}
        self.result, self.streams = case["tool"]["result"], case["call"] == "streaming"
        self.history = []

    def is_question(self, one):
        if isinstance(one, dict):
            return one.get("role") == "user" and isinstance(one["content"], str)
        return one.role == "user"

    def resume(self):
        self.history = json.loads(json.dumps(self.history))

    def keep(self, turns):
        self.history = last_turns(self.history, self.is_question, turns)


def last_turns(history, is_question, turns):
    """The end of a history that the caller keeps, from the question of that turn on."""
    asked = [at for at, one in enumerate(history) if is_question(one)]
    return history[asked[-turns] :]


def join(deltas):
    """Deltas of a stream as one value: texts are appended, lists joined by index. An id, a name or
    a type is never appended, and an empty one does not replace it.
    """
    found = {}
    for delta in deltas:
        for key, value in delta.items():
            old = found.get(key)
            if value is None or (key in _ONCE and old and not value):
                continue
            if isinstance(value, str) and isinstance(old, str) and key not in _ONCE:
                found[key] = old + value
            elif isinstance(value, dict) and isinstance(old, dict):
                found[key] = join([old, value])
            elif isinstance(value, list):
                found[key] = _join_lists(old or [], value)
            else:
                found[key] = value
    return found


_ONCE = ("id", "type", "name", "role", "format")


def _join_lists(old, new):
    places = {one.get("index", at): one for at, one in enumerate(old)}
    for one in new:
        at = one.get("index", len(places))
        places[at] = join([places[at], one]) if at in places else one
    return list(places.values())


def play(case, client_type):
    answers = []
    try:
        client = client_type(case)
        for step in case["steps"]:
            if step.get("resume"):
                client.resume()
            elif "keep" in step:
                client.keep(step["keep"])
            else:
                try:
                    for one in client.ask(case["endpoints"][step["ask"]], step["text"]):
                        answers.append(one)
                        gc.collect()  # httpcore hangs if a stream is collected during a request
                except (NotClaimed, NotMeasured):
                    raise
                except Exception as error:
                    words = str(error).partition("\n")[0][:200]
                    answers.append({"error": f"{type(error).__name__}: {words}"})
    except NotClaimed as error:
        return {"notClaimed": str(error)}
    except NotMeasured as error:
        return {"notMeasured": str(error)}
    except Exception as error:
        answers.append({"error": f"{type(error).__name__}: {str(error)[:200]}"})
    return {"answers": answers}


_AWS = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "x")
_AWS |= dict.fromkeys(("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_REGION_NAME"), "us-east-1")
"""Libraries sign requests to Bedrock with what they find here; no endpoint checks it."""


def serve(client_type):
    """Play a case per line of standard input. What libraries print goes to standard error."""
    os.environ |= _AWS
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    gc.freeze()
    for line in sys.stdin:
        out.write(json.dumps(play(json.loads(line), client_type)) + "\n")
        out.flush()
