"""What goes back of earlier thoughts, by command: the very bodies, and what is counted of them."""

import io
import json

import pytest

from mull.cli.main import main
from mull.testing import Reply, ScriptedServer

UNKNOWN = [
    "openai-compatible/m", "chutes/zai-org/GLM-4.6-TEE", "vllm/qwen3-thinking", "ollama/qwen3",
    "lmstudio/qwen3", "llama.cpp/any.gguf", "sglang/glm",
]  # fmt: skip
READ = {"name": "read", "arguments": '{"path": "a.txt"}'}
CALL = {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": READ}]}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def answer(*deltas, usage=None):
    """A streamed chat answer of these deltas."""
    finish = "tool_calls" if any("tool_calls" in delta for delta in deltas) else "stop"
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    return Reply.events(*chunks, end | ({"usage": usage} if usage else {}), "[DONE]")


def refused(text):
    return Reply.json({"error": {"message": text}}, 400)


@pytest.fixture
def play(capsys, monkeypatch, tmp_path):
    """Run commands against one scripted server; each request's body, and what each printed."""
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOONSHOT_API_KEY", "k")
    monkeypatch.setenv("CHUTES_API_KEY", "k")
    (tmp_path / "a.txt").write_text("hello\n")

    def play(model, replies, *commands):
        said = []
        with ScriptedServer(replies) as server:
            for verb, *words in commands:
                place = ["-m", model, "--base-url", server.url] if verb == "ask" else []
                begun = "--session" in words
                status = main([*verb.split(), *([] if begun else place), *words])
                out, err = capsys.readouterr()
                said.append((status, out, err))
        return [one.json for one in server.requests], said

    return play


def answers(body):
    return [message for message in body["messages"] if message["role"] == "assistant"]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text", "thinking"])
def test_req_think_004_3_each_field_goes_back_where_it_came_from(play, field):
    keep = ("--set", "reasoning.includeInContext=true")
    sent, _ = play(
        "openai-compatible/m",
        [answer({field: "A long thought."}, {"content": "A"}), answer({"content": "B"})],
        ("ask", "--name", "rt", *keep, "Q1"),
        ("ask", "--session", "rt", *keep, "Q2"),
    )
    assert answers(sent[1]) == [{"role": "assistant", "content": "A", field: "A long thought."}]


@pytest.mark.parametrize(
    ("compat", "told"), [("", True), ('reasoningOut = "never"', False)], ids=["back", "never"]
)
def test_br_004_what_is_not_sent_back_is_not_counted(play, tmp_path, compat, told):
    config = tmp_path / "c.toml"
    config.write_text(f"[[compat]]\nmatch = {{ model = '*' }}\nset = {{ {compat} }}\n")
    common = ("--config", str(config), "--set", "reasoning.includeInContext=true")
    thought = "A thought. " * 300
    sent, said = play(
        "openai-compatible/m",
        [answer({"reasoning_text": thought}, {"content": "A"}), answer({"content": "B"})],
        ("ask", "--name", "rt", *common, "Q1"),
        ("sessions context", "rt", *common, "--json"),
        ("ask", "--session", "rt", *common, "Q2"),
    )
    counted = json.loads(said[1][1])
    assert (counted["parts"]["thinking"] > 500) == told
    assert (thought in json.dumps(sent[1])) == told


@pytest.mark.parametrize("model", UNKNOWN)
def test_ec_006_a_chain_keeps_its_own_thoughts_at_any_server(play, model):
    sent, said = play(
        model,
        [answer({"reasoning_content": "look first"}, CALL), answer({"content": "done"})],
        ("ask", "--tools", "read", "--no-save", "What is in a.txt?"),
    )
    (called,) = answers(sent[1])
    assert "look first" in (called.get("reasoning_content"), called.get("reasoning"))
    assert said[0][:2] == (0, "done\n")


@pytest.mark.parametrize("model", UNKNOWN)
def test_br_001_across_turns_the_settings_decide(play, model):
    sent, _ = play(
        model,
        [
            answer({"reasoning_content": "look first"}, CALL),
            answer({"reasoning_content": "now I know"}, {"content": "done"}),
            answer({"content": "again"}),
        ],
        ("ask", "--tools", "read", "--name", "t", "What is in a.txt?"),
        ("ask", "--session", "t", "And now?"),
    )
    assert "look first" in json.dumps(sent[1])
    assert "look first" not in json.dumps(sent[2])
    assert "now I know" not in json.dumps(sent[2])


MISSING = "thinking is enabled but reasoning_content is missing in assistant tool call message"
PASSED = "The reasoning_content in the thinking mode must be passed back to the API."


@pytest.mark.parametrize("text", [f"{MISSING} at index 2", PASSED])
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_ec_006_a_healed_request_carries_the_stored_thought(play, text, field):
    sent, said = play(
        "openai-compatible/my-kimi",
        [
            answer({field: "I must look."}, CALL),
            answer({field: "Now I know."}, {"content": "hello"}),
            refused(text),
            answer({"content": "still hello"}),
            answer({"content": "yes"}),
        ],
        ("ask", "--tools", "read", "--name", "k", "What is in a.txt?"),
        ("ask", "--session", "k", "And now?"),
        ("ask", "--session", "k", "Sure?"),
    )
    assert not any("reasoning_content" in message for message in answers(sent[2]))
    for body in sent[3:]:
        stored = [message.get("reasoning_content") for message in answers(body)[:2]]
        assert stored == ["I must look.", "Now I know."]
    assert "reasoning sent with earlier answers" in said[1][2]
    assert said[2][:2] == (0, "yes\n")


@pytest.mark.parametrize("off", ["reasoning.enabled=false", "reasoning.effort=none"])
@pytest.mark.parametrize("model", ["moonshotai/kimi-k2.5", "openai-compatible/m"])
def test_br_006_off_sends_none_of_the_old_thoughts(play, model, off):
    sent, _ = play(
        model,
        [answer({"reasoning_content": "old thought"}, {"content": "A"}), answer({"content": "B"})],
        ("ask", "--name", "en", "--set", "reasoning.includeInContext=true", "Q1"),
        ("ask", "--session", "en", "--set", "reasoning.includeInContext=true", "--set", off, "Q2"),
    )
    assert "old thought" not in json.dumps(sent[1])


def test_the_providers_own_count_is_where_the_next_estimate_begins(play):
    usage = {"prompt_tokens": 9500, "completion_tokens": 5, "total_tokens": 9505}
    limit = ("--set", "context.limit=10000")
    _, said = play(
        "openai-compatible/m",
        [answer({"content": "A"}, usage=usage)],
        ("ask", "--name", "uc", *limit, "Q1"),
        ("sessions context", "uc", *limit),
    )
    count, _, window = said[1][1].split()[0].partition("/")
    assert 9500 <= int(count) <= 9520
    assert window == "10000"


def test_a_small_window_is_judged_by_the_tokenizer(play):
    text = "hello world " * 1100
    sent, said = play(
        "openai-compatible/m",
        [answer({"content": "A"})],
        ("ask", "--no-save", "--set", "context.limit=6000", text),
    )
    assert text.strip() in sent[0]["messages"][0]["content"]
    assert "of a window" not in said[0][2]


CLAUDES = [
    "openai-compatible/claude-opus-4-5",
    "openai-compatible/vertex_ai/claude-sonnet-5@20260801",
    "openai-compatible/bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0",
    "openai-compatible/team-claude",
]
SEALED = {"type": "redacted_thinking", "data": "c2VhbGVk"}


@pytest.mark.parametrize("model", CLAUDES)
def test_claude_behind_litellm_gets_all_its_signed_blocks_back(play, model):
    """The proxy streams the thought twice, as text and in pieces of blocks."""

    def thought(number):
        for piece in (f"I look {number}", ", then answer."):
            blocks = [{"type": "thinking", "thinking": piece, "signature": None}]
            yield {"reasoning_content": piece, "thinking_blocks": blocks}
        signed = [{"type": "thinking", "thinking": "", "signature": f"SIG{number}"}]
        yield {"reasoning_content": "", "thinking_blocks": signed}
        yield {"thinking_blocks": [SEALED]}

    sent, said = play(
        model,
        [
            answer(*thought(0), CALL),
            answer(*thought(1), {"content": "A"}),
            answer({"content": "B"}),
        ],
        ("ask", "--name", "lite", "--tools", "read", "--yes", "Q1"),
        ("ask", "--session", "lite", "--tools", "read", "--yes", "Q2"),
    )
    assert [status for status, _, _ in said] == [0, 0]
    for number, message in enumerate(answers(sent[-1])):
        text = f"I look {number}, then answer."
        block = {"type": "thinking", "thinking": text, "signature": f"SIG{number}"}
        assert message["thinking_blocks"] == [block, SEALED]
        assert message["reasoning_content"] == text
    assert sent[-1]["messages"][: len(sent[1]["messages"])] == sent[1]["messages"]


def test_blocks_without_a_signature_go_back_as_text_alone(play):
    """The same proxy in front of a model that does not sign."""
    blocks = [{"type": "thinking", "thinking": "Hm.", "signature": None}]
    sent, _ = play(
        "openai-compatible/m",
        [
            answer({"reasoning_content": "Hm.", "thinking_blocks": blocks}, CALL),
            answer({"content": "A"}),
        ],
        ("ask", "--no-save", "--tools", "read", "--yes", "Q"),
    )
    (message,) = answers(sent[1])
    assert message["reasoning_content"] == "Hm."
    assert "thinking_blocks" not in message
