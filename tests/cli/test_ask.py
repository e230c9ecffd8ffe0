"""`mull ask`: what goes to standard output, what to standard error, and the exit status."""

import io
import json
import re
import sqlite3

import pytest

from mull.cli.main import main
from mull.store.sessions.sqlite import open_sessions
from mull.testing.server import Reply, ScriptedServer


def chunk(delta, finish=None):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


GOOD = Reply.events(
    chunk({"reasoning_content": "let me see"}),
    chunk({"content": "Hello"}),
    chunk({"content": " there"}),
    chunk({}, "stop"),
    "[DONE]",
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def ask(capsys, monkeypatch):
    def ask(replies, *words, stdin=None):
        monkeypatch.setattr("sys.stdin", Terminal() if stdin is None else io.StringIO(stdin))
        with ScriptedServer(replies) as server:
            place = ["-m", "openai-compatible/thinker", "--base-url", server.url]
            status = main(["ask", *place, *words])
        said = capsys.readouterr()
        return status, said.out, said.err, server.requests

    return ask


def test_the_answer_alone_goes_to_stdout_in_a_pipe(ask):
    status, out, err, _ = ask([GOOD], "hi", "you")
    assert (status, out, err) == (0, "Hello there\n", "")


def test_thoughts_go_to_stderr_when_asked(ask):
    for place, mark in (("stderr", ""), ("show", "---\n\n")):
        _, out, err, _ = ask([GOOD], "--thinking", place, "hi")
        assert (out, err) == ("Hello there\n", f"let me see\n\n{mark}")


def test_on_a_terminal_thoughts_are_shown_before_the_answer(ask, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("NO_COLOR", "1")
    ask([GOOD], "hi")
    shown = re.sub(r"[\d.]+ s", "a while", screen.getvalue())
    assert shown == "│ let me see\n│ Thought for a while\n\nHello there\n"


def test_hidden_by_setting_on_a_terminal(ask, monkeypatch):
    """REQ-THINK-007.4, as far as there is a terminal: BR-003 says display, not context."""
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    ask([GOOD], "--set", "reasoning.includeInResponse=false", "hi")
    assert screen.getvalue() == "Hello there\n"


def test_the_question_comes_from_words_file_and_pipe(ask, tmp_path):
    file = tmp_path / "more.txt"
    file.write_text("from a file\n")
    *_, requests = ask([GOOD], "-f", str(file), "review", "this", stdin="piped\n")
    held = f"{file}:\n```txt\nfrom a file\n```"
    assert requests[0].json["messages"][-1]["content"] == f"review this\n\n{held}\n\npiped"


def test_without_words_the_first_text_file_is_the_question(ask, tmp_path):
    (tmp_path / "ask.md").write_text("Review it.\n")
    *_, requests = ask([GOOD], "-f", str(tmp_path / "ask.md"), stdin="piped\n")
    assert requests[0].json["messages"][-1]["content"] == "Review it.\n\npiped"


def test_json_is_one_object(ask):
    status, out, _, _ = ask([GOOD], "--json", "hi")
    shown = json.loads(out)
    assert status == 0
    assert shown["error"] is None
    assert (shown["text"], shown["thinking"]) == ("Hello there", "let me see")


def test_stream_json_is_an_event_a_line_and_a_result(ask):
    _, out, _, _ = ask([GOOD], "--stream-json", "hi")
    lines = [json.loads(line) for line in out.splitlines()]
    kinds = [line["type"] for line in lines]
    assert kinds[-3:] == ["finished", "state", "result"]
    assert [line["text"] for line in lines if line["type"] == "thinking"] == ["let me see"]
    assert "".join(line["text"] for line in lines if line["type"] == "text") == "Hello there"


def test_an_answer_of_nothing_that_mull_knows_is_no_answer(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    content = {"role": "model", "parts": [{"hologram": {"a": 1}}]}
    reply = Reply.events({"candidates": [{"content": content, "finishReason": "STOP"}]})
    with ScriptedServer([reply]) as server:
        place = ["-m", "google/gemini-3-pro-preview", "--base-url", server.url]
        assert main(["ask", *place, "hi"]) == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "mull: the answer holds nothing that mull knows how to show\n"


@pytest.mark.parametrize(
    ("replies", "status", "said"),
    [
        ([Reply.json({"error": {"message": "bad key"}}, status=401)], 3, "bad key"),
        (
            [Reply.events(chunk({"reasoning_content": "x"}), chunk({}, "stop"), "[DONE]")],
            4,
            "the model gave no answer",
        ),
        (
            [Reply.events(chunk({"reasoning_content": "x"}), chunk({}, "length"), "[DONE]")],
            4,
            "the token limit was reached during thinking: there is no answer",
        ),
        ([Reply.events(chunk({"content": "par"}))], 5, ""),
        ([Reply.events(chunk({"content": "p"}), {"error": {"message": "broke"}})], 3, "broke"),
        (
            [Reply.events(chunk({"content": "cut"}), chunk({}, "length"), "[DONE]")],
            0,
            "the answer was cut off at its token limit",
        ),
    ],
)
def test_the_exit_status_says_how_it_went(ask, replies, status, said):
    got, _, err, _ = ask(replies, "hi")
    assert got == status
    assert said in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ask"], 'no question: use mull ask "your question"'),
        (["ask", "-f", "no-such-file", "x"], 'cannot read "no-such-file": no such file'),
        (["ask", "-m", "nope", "x"], "there is no model 'nope'"),
        (["ask", "-m", "claude-sonnet-4-5", "x"], "no API key for Anthropic"),
        (["ask", "--continue", "x"], "there is no session of this folder to continue"),
        (
            ["ask", "-m", "gpt-5", "--set", "reasoning.format=xml", "x"],
            "reasoning.format cannot be",
        ),
    ],
)
def test_bad_input_is_one_clear_line(words, said, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal())
    assert main(words) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"mull: {said}")
    assert "Traceback" not in err


def test_a_key_that_was_not_sent_was_not_refused(ask, monkeypatch):
    wanted = [Reply.json({"error": {"message": "Invalid API Key"}}, status=401)]
    assert (
        "No API key was sent; store one with `mull keys set openai-compatible`."
        in ask(wanted, "hi")[2]
    )
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", "plover-quill")
    err = ask(wanted, "hi")[2]
    assert "The key was not accepted; store another with `mull keys set openai-compatible`" in err


def test_blank_lines_before_an_answer_are_not_shown_and_are_kept(ask):
    pieces = [chunk({"content": piece}) for piece in ("\n", "\r\n\n", "  Hi", "\n\nyou\n")]
    _, out, _, _ = ask([Reply.events(*pieces, chunk({}, "stop"), "[DONE]")], "hi")
    assert out == "  Hi\n\nyou\n"
    (stored,) = open_sessions().load(open_sessions().list()[0].id)[1][1:]
    assert stored.message.text == "\n\r\n\n  Hi\n\nyou\n"


@pytest.fixture
def found(monkeypatch, tmp_path):
    """A machine on which a model server runs; ask with its config file."""

    def reply(recorded):
        is_list = recorded.path.endswith("/models")
        return Reply.json({"data": [{"id": "qwen3"}]}) if is_list else GOOD

    monkeypatch.setattr("sys.stdin", Terminal())
    with ScriptedServer(reply) as server:
        config = tmp_path / "config.toml"
        config.write_text(f'[providers.ollama]\nbase_url = "{server.url}"\n')
        yield server, ["ask", "--config", str(config)]


def test_who_names_no_model_gets_what_runs_here(found, capsys, monkeypatch):
    monkeypatch.setattr("mull.local.weights.is_installed", lambda: True)
    server, ask = found
    assert main([*ask, "hi"]) == 0
    said = capsys.readouterr()
    assert said.out == "Hello there\n"
    place = f"on this machine, {server.url}"
    told = f"mull: no model given: using ollama/qwen3 ({place}); choose another with -m\n"
    assert said.err.startswith(told)
    assert server.requests[-1].json["model"] == "qwen3"


def test_who_names_no_model_gets_the_last_one_but_not_for_the_small_ones_sake(found, capsys):
    store, (_, ask) = open_sessions(), found
    for last, used in (("local/smollm2", "ollama/qwen3"), ("ollama/qwen3-4b", "ollama/qwen3-4b")):
        store.create(folder="/elsewhere", model=last)
        assert main([*ask, "hi"]) == 0
        assert f"using {used} (" in capsys.readouterr().err


def test_an_address_without_a_model_is_not_guessed_at(found, capsys):
    server, ask = found
    assert main([*ask, "--base-url", server.url, "hi"]) == 2
    assert capsys.readouterr().err.startswith("mull: no model given")


def test_where_there_is_nothing_to_ask_it_is_told_what_to_do(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("mull.local.weights.is_installed", lambda: False)
    assert main(["ask", "hi"]) == 2
    assert capsys.readouterr().err.startswith("mull: There is no model to talk to yet.")


def test_continue_goes_on_with_the_last_conversation(ask):
    ask([GOOD], "--system", "be kind", "first")
    *_, requests = ask([GOOD], "--continue", "second")
    assert [m["content"] for m in requests[0].json["messages"]] == [
        "be kind",
        "first",
        "Hello there",
        "second",
    ]


def test_continue_goes_on_where_it_was_with_the_level_it_had(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setenv("MULL_MODEL", "claude-sonnet-4-5")
    with ScriptedServer([GOOD, GOOD]) as server:
        place = ["--base-url", server.url]
        main(["ask", "-m", "deepseek/deepseek-v4-pro/none", *place, "first"])
        assert main(["ask", "--continue", "second"]) == 0
    assert server.requests[1].json["thinking"] == {"type": "disabled"}
    assert server.requests[1].json["model"] == "deepseek-v4-pro"


def test_a_level_behind_the_model_reaches_the_request(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal())
    with ScriptedServer([GOOD]) as server:
        main(["ask", "-m", "deepseek/deepseek-v4-pro/none", "--base-url", server.url, "hi"])
    assert server.requests[0].json["thinking"] == {"type": "disabled"}
    assert capsys.readouterr().out == "Hello there\n"


def test_bytes_that_are_no_text_are_sent_as_a_sign_and_told(ask, monkeypatch, tmp_path):
    file = tmp_path / "latin.txt"
    file.write_bytes("grün".encode("latin-1"))
    *_, err, requests = ask([GOOD], "-f", str(file), "a\udcffb")
    content = requests[0].json["messages"][-1]["content"]
    assert content.startswith("a\ufffdb\n\n")
    assert "\ngrün\n" in content
    assert err == "mull: some input is not valid text: each such place is sent as \ufffd\n"


@pytest.mark.parametrize("codec", ["utf-8", "latin-1", "cp1252", "utf-16"])
@pytest.mark.parametrize("text", ["Größe", "créée", "äöüÄÖÜß", "¡¿Qué?!"])
def test_text_in_older_encodings_is_sent_as_what_it_says(ask, monkeypatch, tmp_path, codec, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.txt").write_bytes(text.encode(codec))
    for words in (["-f", "old.txt", "read"], ["read @old.txt"]):
        *_, err, requests = ask([GOOD], *words)
        assert f"\n{text}\n" in requests[0].json["messages"][-1]["content"]
        assert err == ""


def test_a_pipe_that_is_no_text_is_read_all_the_same(ask, monkeypatch):
    pipe = io.TextIOWrapper(io.BytesIO(b"diff \xff\xfe here"), encoding="utf-8")
    monkeypatch.setattr("io.StringIO", lambda text: pipe)
    *_, requests = ask([GOOD], "review", stdin="")
    assert requests[0].json["messages"][-1]["content"] == "review\n\ndiff \ufffd\ufffd here"


def test_what_is_not_to_be_saved_is_never_in_a_file(ask, monkeypatch, tmp_path):
    """Not even for a moment: a process that is killed cleans nothing up."""
    monkeypatch.setenv("MULL_DATA_DIR", str(tmp_path / "data"))
    opened = []
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda at, **k: opened.append(str(at)) or connect(at, **k)
    )
    monkeypatch.setattr("tempfile.mkdtemp", lambda *words, **more: pytest.fail("a directory"))
    status, out, err, _ = ask([GOOD], "--no-save", "a secret")
    assert (status, out, err) == (0, "Hello there\n", "")
    assert opened == [":memory:"]
    assert not (tmp_path / "data").exists()
