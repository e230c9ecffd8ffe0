"""The lines between the runner and an adapter written in Python. It needs no package.

    class Client:
        def __init__(self, case): ...  # case["endpoints"], case["call"], case["tool"]
        def ask(self, at, text): ...  # yield a report for each answer of the model
        def resume(self): ...  # store the conversation, forget it, load it
        def keep(self, turns): ...  # drop all but the last turns

    serve(Client)

Raise `NotClaimed` for what the library does not offer.
"""

import json
import os
import sys


class NotClaimed(Exception):
    """The library makes no claim about this; says what it does not offer."""


def answer(text, thinking=None, *, reasoning_tokens=None, incomplete=False):
    """The report of one answer of the model."""
    report = {"text": text, "thinking": thinking}
    return report | {"reasoningTokens": reasoning_tokens, "incomplete": incomplete}


def last_turns(history, is_question, turns):
    """The end of a history that the caller keeps, from the question of that turn on."""
    asked = [at for at, one in enumerate(history) if is_question(one)]
    return history[asked[-turns] :]


def join(deltas):
    """Deltas of a stream as one value: texts are appended, lists joined by index."""
    found = {}
    for delta in deltas:
        for key, value in delta.items():
            if value is None:
                continue
            old = found.get(key)
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
                except NotClaimed:
                    raise
                except Exception as error:
                    words = str(error).partition("\n")[0][:200]
                    answers.append({"error": f"{type(error).__name__}: {words}"})
    except NotClaimed as error:
        return {"notClaimed": str(error)}
    except Exception as error:
        answers.append({"error": f"{type(error).__name__}: {str(error)[:200]}"})
    return {"answers": answers}


def serve(client_type):
    """Play a case per line of standard input. What libraries print goes to standard error."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        out.write(json.dumps(play(json.loads(line), client_type)) + "\n")
        out.flush()
