"""The strict servers seen by clients that are not mull's: what they refuse."""

from __future__ import annotations

import copy
import json

import pytest

from mull.testing import Call, Say, StrictServer, Think
from naive_clients import CHAIN, CLIENTS, TWO_TURNS, Refusal, but, less, post, with_fillers, without

EVERY = sorted(CLIENTS)


def reversed_thoughts(blocks):
    """The thoughts of an answer change places."""
    at = [i for i, block in enumerate(blocks) if block["type"] == "thinking"]
    moved = list(blocks)
    for here, there in zip(at, reversed(at), strict=True):
        moved[here] = blocks[there]
    return moved


def thoughts_first(blocks):
    return sorted(blocks, key=lambda block: block["type"] != "thinking")


def unsigned(parts):
    return [{k: v for k, v in part.items() if k != "thoughtSignature"} for part in parts]


def signature_moved(parts):
    """The signature goes from the first call to the last."""
    calls = [part for part in parts if "functionCall" in part]
    if len(calls) < 2:
        return parts
    signature = calls[0].pop("thoughtSignature")
    calls[-1]["thoughtSignature"] = signature
    return parts


def signature_inside(parts):
    for part in parts:
        if "functionCall" in part and "thoughtSignature" in part:
            part["functionCall"]["thoughtSignature"] = part.pop("thoughtSignature")
    return parts


def forged_signature(parts):
    return [{**p, "thoughtSignature": "Zm9v"} if "functionCall" in p else p for p in parts]


def twice(items):
    return [*items, items[0]]


def reasoning_last(items):
    return sorted(items, key=lambda item: item["type"] == "reasoning")


def details(change):
    def keep(message):
        changed = copy.deepcopy(message)
        for entry in changed.get("reasoning_details") or []:
            entry.update(change)
        return changed

    return keep


MISSING = "thinking is enabled but reasoning_content is missing in assistant tool call message at"
PASSED_BACK = "The `reasoning_content` in the thinking mode must be passed back to the API."
EXPECTED = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found"
MODIFIED = "blocks in the latest assistant message cannot be modified. These blocks must remain"
BAD_SIGNATURE = "Invalid `signature` in `thinking` block"
UNSIGNED = "Function call is missing a thought_signature in functionCall parts. This is required"
UNVERIFIED = "could not be verified."
LOSSES = [
    ("kimi", less("reasoning_content"), f"{MISSING} index 1"),
    ("kimi", lambda m: {**m, "reasoning_content": ""}, f"{MISSING} index 1"),
    ("kimi", lambda m: {**m, "reasoning_content": "other"}, "(strict) reasoning_content of the"),
    ("kimi", lambda m: {**m, "reasoning_content": " "}, "(strict) reasoning_content of the"),
    ("deepseek", less("reasoning_content"), PASSED_BACK),
    ("deepseek", lambda m: {**m, "reasoning_content": "first"}, "(strict) reasoning_content of"),
    ("anthropic", without("thinking"), EXPECTED + " `tool_use`"),
    ("anthropic", but("thinking", signature=None), "signature: Field required"),
    ("anthropic", but("thinking", signature="Zm9v"), f"messages.1.content.0: {BAD_SIGNATURE}"),
    ("anthropic", but("thinking", thinking="first"), f"messages.1.content.0: {BAD_SIGNATURE}"),
    ("anthropic", reversed_thoughts, MODIFIED),
    ("anthropic", thoughts_first, MODIFIED),
    ("anthropic", without("redacted_thinking"), "messages.5.content.0.type: Expected `thinking`"),
    ("anthropic", but("redacted_thinking", data="x"), "Invalid `data` in `redacted_thinking`"),
    ("anthropic", without("tool_use"), "The final block in an assistant message cannot be"),
    ("anthropic-bound", without("thinking"), EXPECTED + " `tool_use`"),
    ("gemini", unsigned, UNSIGNED),
    ("gemini", signature_inside, UNSIGNED),
    ("gemini", signature_moved, UNSIGNED),
    ("gemini", forged_signature, "Corrupted thought signature."),
    ("openai", without("reasoning"), "was provided without its required 'reasoning' item: 'rs_"),
    ("openai", but("reasoning", encrypted_content="gAAA"), UNVERIFIED),
    ("openai", but("reasoning", summary=[{"type": "summary_text", "text": "Else."}]), UNVERIFIED),
    ("openai", but("reasoning", encrypted_content=None), "Items are not persisted when `store`"),
    ("openai", but("reasoning", status="completed"), "Unknown parameter: 'input[1].status'."),
    ("openai", without("function_call"), "was provided without its required following item."),
    ("openai", without("message"), "was provided without its required following item."),
    ("openai", reasoning_last, "was provided without its required following item."),
    ("openai", twice, "Duplicate item found with id rs_"),
    ("openai", but("function_call", id="call_1"), "Expected an ID that begins with 'fc'."),
    ("openrouter", less("reasoning_details"), EXPECTED + " `tool_use`"),
    ("openrouter", details({"signature": "x"}), f"messages.1.content.0: {BAD_SIGNATURE}"),
    ("openrouter", details({"text": "x"}), f"messages.1.content.0: {BAD_SIGNATURE}"),
    ("openrouter", details({"index": 7}), "index 1 were modified: index"),
    ("openrouter", details({"format": "aa"}), "index 1 were modified: format"),
]


@pytest.mark.parametrize(("provider", "keep", "words"), LOSSES)
def test_what_is_lost_or_changed_in_a_tool_chain_is_refused(provider, keep, words):
    with StrictServer(provider, CHAIN) as server:
        client = CLIENTS[provider](server.url, keep)
        with pytest.raises(Refusal) as caught:
            client.ask("go")
    (refused,) = server.refusals
    assert words in refused.reason
    assert refused.request is server.requests[-1]
    assert words in json.dumps(caught.value.body, ensure_ascii=False).replace('\\"', '"')
    assert server.answered == len(server.requests) - 1


UNCERTAIN = [
    ("kimi", lambda m: {**m, "reasoning_content": ""}),
    ("openai", but("reasoning", summary=[{"type": "summary_text", "text": "Else."}])),
    ("openai", but("reasoning", status="completed")),
    ("openrouter", details({"format": "aa"})),
]


@pytest.mark.parametrize(("provider", "keep"), UNCERTAIN)
def test_what_no_report_tells_of_is_refused_without_certainty(provider, keep):
    with StrictServer(provider, CHAIN) as server, pytest.raises(Refusal):
        CLIENTS[provider](server.url, keep).ask("go")
    assert not server.refusals[0].certain


def test_reasoning_away_from_its_follower_is_refused_without_certainty():
    def apart(items):
        at = next(i for i, item in enumerate(items) if item["type"] == "reasoning")
        return [*items[: at + 1], {"role": "assistant", "content": "Well."}, *items[at + 1 :]]

    with StrictServer("openai", CHAIN) as server, pytest.raises(Refusal):
        CLIENTS["openai"](server.url, apart).ask("go")
    assert "required following item" in server.refusals[0].reason
    assert not server.refusals[0].certain


FORGETFUL = {
    "deepseek": less("reasoning_content"),
    "anthropic": without("thinking", "redacted_thinking"),
    "gemini": unsigned,
    "openai": lambda items: [
        {k: v for k, v in item.items() if k != "id"} for item in without("reasoning")(items)
    ],
    "openrouter": less("reasoning_details"),
}


@pytest.mark.parametrize("provider", FORGETFUL)
def test_turns_that_are_over_may_lose_their_thoughts(provider):
    with StrictServer(provider, TWO_TURNS) as server:
        client = CLIENTS[provider](server.url)
        client.ask("one")
        client.edit(FORGETFUL[provider])
        client.ask("two")
    assert server.refusals == []


def test_kimi_wants_its_reasoning_in_every_turn():
    with StrictServer("kimi", TWO_TURNS) as server:
        client = CLIENTS["kimi"](server.url, with_fillers)
        client.ask("one")
        client.edit(less("reasoning_content"))
        with pytest.raises(Refusal):
            client.ask("two")
    assert server.refusals[0].reason.endswith("message at index 1")


@pytest.mark.parametrize("provider", sorted(set(EVERY) - {"kimi", "deepseek"}))
def test_carriers_of_another_server_are_refused(provider):
    """The other one has the same rules and the same model: only its key differs."""
    with StrictServer(provider, CHAIN) as other:
        elsewhere = CLIENTS[provider](other.url)
        elsewhere.ask("go")
    with StrictServer(provider, CHAIN) as server:
        client = CLIENTS[provider](server.url)
        client.history = elsewhere.history
        with pytest.raises(Refusal):
            client.ask("and?")
    words = {"gemini": "Corrupted thought signature.", "openai": UNVERIFIED}
    assert words.get(provider, BAD_SIGNATURE) in server.refusals[0].reason


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter"])
def test_carriers_are_for_the_model_they_were_issued_to(provider):
    with StrictServer(provider, CHAIN) as server:
        client = CLIENTS[provider](server.url)
        client.history.append(client.question("go"))
        answer = json.loads(post(server.url + client.path(), client.body()))
        client.answer_calls(client.take(answer))
        with pytest.raises(Refusal):
            post(server.url + client.path(), {**client.body(), "model": "another"})


def two_gemini_steps(server):
    """A client that has been through two steps, and their calls."""
    client = CLIENTS["gemini"](server.url)
    client.history.append(client.question("go"))
    for _ in range(2):
        client.answer_calls(
            client.take(json.loads(post(server.url + client.path(), client.body())))
        )
    _, first, _, second, _ = client.history
    return client, first["parts"][-1], second["parts"][-1]


STEPS = [[Think("a"), Call("look", {"at": "1"})], [Think("b"), Call("look", {"at": "2"})]]


def test_a_signature_is_good_on_its_own_call_only():
    with StrictServer("gemini", STEPS) as server:
        client, first, second = two_gemini_steps(server)
        signatures = first["thoughtSignature"], second["thoughtSignature"]
        second["thoughtSignature"], first["thoughtSignature"] = signatures
        with pytest.raises(Refusal, match="Invalid thought signature"):
            post(server.url + client.path(), client.body())


def test_steps_that_are_made_one_still_need_each_signature():
    with StrictServer("gemini", STEPS) as server:
        client, first, second = two_gemini_steps(server)
        question, _, one, _, other = client.history
        calls = {"role": "model", "parts": [first, less("thoughtSignature")(second)]}
        results = {"role": "user", "parts": one["parts"] + other["parts"]}
        client.history = [question, calls, results]
        with pytest.raises(Refusal, match="missing a thought_signature"):
            post(server.url + client.path(), client.body())


@pytest.mark.parametrize(
    "changed",
    [{"system": "be brief"}, {"tools": [{"name": "look"}]}, {"system": [{"text": "be brief"}]}],
)
def test_thoughts_may_be_bound_to_all_that_was_before_them(changed):
    with StrictServer("anthropic-bound", TWO_TURNS) as server:
        client = CLIENTS["anthropic-bound"](server.url)
        client.ask("one")
        client.more = changed
        with pytest.raises(Refusal, match="bound to a different conversation"):
            client.ask("two")
        binding = {"prefix_mismatch_behavior": "drop_block"}
        allowed = {"type": "enabled", "budget_tokens": 2000, "block_binding": binding}
        client.history.pop()
        client.more = {**changed, "thinking": allowed}
        client.ask("two")
    assert len(server.refusals) == 1


def test_bound_thoughts_do_not_mind_cache_marks_and_ways_of_writing():
    with StrictServer("anthropic-bound", TWO_TURNS) as server:
        client = CLIENTS["anthropic-bound"](server.url, system="be brief")
        client.ask("one")
        client.more = {"system": [{"type": "text", "text": "be brief"} | CACHED]}
        client.history[0]["content"] = [{"type": "text", "text": "one"} | CACHED]
        client.ask("two")
        client.edit(without("redacted_thinking"))
        client.history.append(client.question("three"))
        with pytest.raises(Refusal, match=r"messages\.9\.content\.0: Invalid `signature`"):
            post(server.url + client.path(), client.body())
    assert len(server.refusals) == 1


CACHED = {"cache_control": {"type": "ephemeral"}}


def test_gemini_takes_the_documented_placeholder_on_calls_that_it_never_made():
    call = {"functionCall": {"name": "look", "args": {}}}
    foreign = {**call, "thoughtSignature": "skip_thought_signature_validator"}
    with StrictServer("gemini", [[Say("ok")]]) as server:
        client = CLIENTS["gemini"](server.url)
        client.history = [client.question("go"), {"role": "model", "parts": [foreign]}]
        client.answer_calls([{"id": "1", "name": "look"}])
        assert json.loads(post(server.url + client.path(), client.body()))["candidates"]
    assert server.refusals == []


ERRORS = {
    "anthropic-bound": lambda b: b["error"]["type"] == "invalid_request_error",
    "anthropic": lambda b: (b["type"], b["error"]["type"]) == ("error", "invalid_request_error"),
    "deepseek": lambda b: b["error"]["code"] == "invalid_request_error",
    "gemini": lambda b: (b["error"]["code"], b["error"]["status"]) == (400, "INVALID_ARGUMENT"),
    "kimi": lambda b: b["error"]["type"] == "invalid_request_error",
    "openai": lambda b: b["error"]["param"] == "input",
    "openrouter": lambda b: b["error"]["metadata"]["provider_name"] == "Anthropic",
}


@pytest.mark.parametrize("provider", EVERY)
def test_a_refusal_has_the_providers_shape(provider):
    keep, words = next(loss[1:] for loss in LOSSES if loss[0] == provider)
    with StrictServer(provider, CHAIN) as server, pytest.raises(Refusal) as caught:
        CLIENTS[provider](server.url, keep).ask("go")
    assert caught.value.status == 400
    assert ERRORS[provider](caught.value.body)
    assert words in server.refusals[0].reason


def no_ids_of(*kinds):
    return lambda items: [less("id")(i) if i["type"] in kinds else i for i in items]


@pytest.mark.parametrize("kinds", [("message",), ("function_call",), ("reasoning",)])
def test_items_are_known_without_their_ids(kinds):
    with StrictServer("openai", CHAIN) as server:
        assert CLIENTS["openai"](server.url, no_ids_of(*kinds)).ask("go") == "Done."
    assert server.refusals == []


def test_words_without_an_id_are_known_by_their_text():
    def keep(items):
        said = [{"type": "output_text", "text": "Hm?"}]
        return but("message", content=said)(no_ids_of("message")(items))

    with StrictServer("openai", CHAIN) as server, pytest.raises(Refusal):
        CLIENTS["openai"](server.url, keep).ask("go")
    assert "without its required following item" in server.refusals[0].reason


def test_the_codes_of_the_responses_api():
    for change, status, code in (
        ({"encrypted_content": "gAAA"}, 400, "invalid_encrypted_content"),
        ({"encrypted_content": None}, 404, None),
    ):
        with StrictServer("openai", CHAIN) as server, pytest.raises(Refusal) as caught:
            CLIENTS["openai"](server.url, but("reasoning", **change)).ask("go")
        assert (caught.value.status, caught.value.body["error"]["code"]) == (status, code)
