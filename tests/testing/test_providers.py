"""The answers of the played providers: both forms say the same, and only what was asked for."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import target
from mull.dialects.registry import decoder
from mull.neutral.assemble import assemble
from mull.testing import Call, Say, Think
from mull.testing.ledger import Ledger
from mull.testing.providers import PROVIDERS
from mull.testing.providers.provider import cut
from mull.testing.server import Reply

ASK = [{"role": "user", "content": "q"}]
CONTENTS = [{"role": "user", "parts": [{"text": "q"}]}]
DIALECTS = {
    "anthropic": "anthropic",
    "anthropic-bound": "anthropic",
    "gemini": "gemini",
    "openai": "openai-responses",
}
PATHS = {
    "anthropic": "/v1/messages",
    "anthropic-bound": "/v1/messages",
    "gemini": "/v1beta/models/m:streamGenerateContent",
    "openai": "/v1/responses",
}
ON = {
    "anthropic-bound": {"messages": ASK, "thinking": {"type": "adaptive"}},
    "anthropic": {"messages": ASK, "thinking": {"type": "adaptive"}},
    "gemini": {"contents": CONTENTS}
    | {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}},
    "openai": {"input": ASK, "reasoning": {"summary": "auto"}}
    | {"include": ["reasoning.encrypted_content"]},
    "openrouter": {"messages": ASK, "reasoning": {"enabled": True}},
    "kimi": {"messages": ASK},
    "deepseek": {"messages": ASK},
}
OFF = {
    "anthropic": {"messages": ASK},
    "openai": {"input": ASK, "reasoning": {"effort": "none"}},
    "openrouter": {"messages": ASK, "reasoning": {"effort": "none"}},
    "kimi": {"messages": ASK, "thinking": {"type": "disabled"}},
    "deepseek": {"messages": ASK, "thinking": {"type": "disabled"}},
}


def written(provider, acts, body):
    played = PROVIDERS[provider]()
    asked = played.read(PATHS.get(provider, "/chat/completions"), {"model": "m", **body})
    return played.write(played.allowed(acts, asked), asked, Ledger(b"k"))


def read(provider, data):
    where = target(dialect=DIALECTS.get(provider, "openai-chat"))
    one = decoder(where)
    return assemble([*one.feed(data), *one.close()], where.origin)


def both(provider, acts, body):
    """The answer as it is read from its stream and from one document."""
    answer = written(provider, acts, body)
    stream = b"".join(Reply.events(*answer.events).steps)
    return read(provider, stream), read(provider, json.dumps(answer.whole).encode())


# No `<`: Hypothesis also tries texts of the source, and an answer that is a thinking tag is none.
plain = st.characters(exclude_categories=["Cs"], exclude_characters="<")
texts = st.text(plain, min_size=1, max_size=20)
answers = st.lists(
    st.builds(Think, texts, st.booleans())
    | st.builds(Say, texts)
    | st.builds(Call, st.sampled_from("ab"), st.dictionaries(texts, texts, max_size=2)),
    min_size=1,
    max_size=5,
)


@pytest.mark.parametrize("provider", sorted(PROVIDERS))
@given(acts=answers)
def test_the_stream_says_what_the_whole_says(provider, acts):
    streamed, whole = both(provider, acts, ON[provider])
    assert streamed.status == whole.status
    assert streamed.stop_reason == whole.stop_reason
    assert streamed.usage == whole.usage
    assert streamed.text == whole.text == "".join(a.text for a in acts if isinstance(a, Say))
    assert streamed.tool_calls == whole.tool_calls
    assert [(call.name, call.input) for call in whole.tool_calls] == [
        (act.name, act.input) for act in acts if isinstance(act, Call)
    ]
    assert "".join(block.thought for block in streamed.thinking) == "".join(
        block.thought for block in whole.thinking
    )


@pytest.mark.parametrize("provider", sorted(PROVIDERS))
def test_thoughts_are_whole_and_in_order(provider):
    acts = [Think("one\n"), Say("x"), Think(" two"), Call("f")]
    for message in both(provider, acts, ON[provider]):
        assert "".join(block.thought for block in message.thinking) == "one\n two"


@pytest.mark.parametrize("provider", OFF)
def test_a_model_that_is_not_to_think_does_not(provider):
    for message in both(provider, [Think("hm"), Say("yes")], OFF[provider]):
        assert (message.thinking, message.text) == ((), "yes")
    assert written(provider, [Think("hm"), Say("yes")], OFF[provider]).issued.carriers == []


def test_gemini_signs_also_where_it_does_not_tell_its_thoughts():
    answer = written("gemini", [Think("hm"), Call("f"), Call("g")], {"contents": CONTENTS})
    parts = answer.whole["candidates"][0]["content"]["parts"]
    assert [sorted(part) for part in parts] == [
        ["functionCall", "thoughtSignature"],
        ["functionCall"],
    ]


def test_gemini_signs_words_where_there_is_no_call():
    answer = written("gemini", [Think("hm"), Say("a"), Say("b")], {"contents": CONTENTS})
    parts = answer.whole["candidates"][0]["content"]["parts"]
    assert [(part["text"], "thoughtSignature" in part) for part in parts] == [
        ("a", False),
        ("b", True),
    ]
    (last,) = json.loads(answer.events[-2][6:])["candidates"][0]["content"]["parts"]
    assert (last["text"], last["thoughtSignature"]) == ("", parts[1]["thoughtSignature"])


def test_claude_hides_what_it_is_told_to_omit_and_signs_it_all_the_same():
    body = {"messages": ASK, "thinking": {"type": "adaptive", "display": "omitted"}}
    answer = written("anthropic", [Think("hm"), Think("secret", hidden=True), Say("a")], body)
    first, second, _ = answer.whole["content"]
    assert (first["thinking"], first["signature"]) == ("", answer.issued.carriers[0])
    assert second == {"type": "redacted_thinking", "data": answer.issued.carriers[1]}
    assert "secret" not in json.dumps(answer.whole)


def test_a_system_message_among_claudes_messages_is_no_turn():
    effort = {"role": "system", "content": [], "output_config": {"effort": "low"}}
    one, two = ({"role": "user", "content": text} for text in ("one", "two"))
    claude = PROVIDERS["anthropic"]()
    asked = claude.read("/v1/messages", {"model": "m", "messages": [one, effort, two, effort]})
    assert asked is not None
    texts = [{"type": "text", "text": text} for text in ("one", "two")]
    assert asked.body["messages"] == [{"role": "user", "content": texts}]
    assert list(claude.verdicts(asked, Ledger(b""))) == []


def test_the_responses_api_gives_only_what_is_included():
    plain = {"input": "q", "store": False}
    answer = written("openai", [Think("hm"), Say("a")], plain)
    (reasoning, _) = answer.whole["output"]
    assert sorted(reasoning) == ["id", "summary", "type"]
    assert reasoning["summary"] == []
    assert answer.issued.carriers == []


@given(st.text())
def test_a_cut_text_is_the_text(text):
    pieces = cut(text)
    assert "".join(pieces) == text
    assert len(pieces) <= 3
    assert all(pieces)


def test_carriers_and_ids_are_new_each_time_and_nobody_elses():
    ledger, other = Ledger(b"one"), Ledger(b"two")
    made = [ledger.seal("m", "t"), ledger.seal("m", "t"), other.seal("m", "t")]
    made += [ledger.name("x_"), ledger.name("x_"), other.name("x_")]
    assert len(set(made)) == 6
    assert ledger.find(made[0]) is None  # nothing is issued until it is recorded
