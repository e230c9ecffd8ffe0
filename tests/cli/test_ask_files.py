"""Files that go with a question of `mull ask`: any number, as what they are, or not at all."""

from __future__ import annotations

import base64
import io
import os

import pytest

from mull.cli.main import main
from mull.policy.view.media import LARGEST
from mull.store.sessions.sqlite import open_sessions
from mull.testing.server import Reply, ScriptedServer

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
PDF = b"%PDF-1.7\n" + bytes(range(256))
WAV = b"RIFF\x24\0\0\0WAVEfmt " + bytes(32)
GOOD = Reply.events(
    {"choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}]}, "[DONE]"
)


class Pipe(io.TextIOWrapper):
    def __init__(self, data):
        super().__init__(io.BytesIO(data))


@pytest.fixture
def ask(capsys, monkeypatch, tmp_path):
    """Gives the exit status, the content that was sent (None for nothing) and standard error."""
    monkeypatch.chdir(tmp_path)

    def ask(*words, stdin=b"", model="openai-compatible/m"):
        monkeypatch.setattr("sys.stdin", Pipe(stdin))
        with ScriptedServer([GOOD]) as server:
            status = main(["ask", "-m", model, "--base-url", server.url, *words])
        sent = [request.json["messages"][-1]["content"] for request in server.requests]
        return status, sent[0] if sent else None, capsys.readouterr().err

    return ask


def picture(data=PNG, kind="image/png"):
    url = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def test_every_file_that_is_given_goes_in_order(ask, tmp_path):
    (tmp_path / "a.py").write_text("one\n")
    (tmp_path / "b.md").write_text("two\n")
    status, sent, err = ask("-f", "a.py", "--file", "b.md", "compare")
    assert (status, err) == (0, "")
    assert sent == "compare\n\na.py:\n```py\none\n```\n\nb.md:\n```md\ntwo\n```"


def test_a_mention_attaches_what_a_file_holds_whatever_its_name(ask, tmp_path):
    (tmp_path / "a.py").write_text("one\n")
    (tmp_path / "shot.txt").write_bytes(PNG)
    status, sent, err = ask("is @shot.txt", "made by @a.py?")
    assert (status, err) == (0, "")
    assert [part.get("text") for part in sent] == [
        "is @shot.txt made by @a.py?",
        None,
        "\n\na.py:\n```py\none\n```",
    ]
    assert sent[1] == picture()


@pytest.mark.parametrize("words", [["what is it"], []])
def test_a_picture_in_a_pipe_is_a_picture(ask, words):
    status, sent, err = ask(*words, stdin=PNG)
    assert (status, err) == (0, "")
    assert sent[-1] == picture()
    (info,) = open_sessions().list()
    assert info.title == "".join(words)


def test_pdfs_and_sounds_go_as_such(ask, tmp_path):
    (tmp_path / "a").write_bytes(PDF)
    (tmp_path / "b").write_bytes(WAV)
    _, sent, _ = ask("-f", "a", "-f", "b", "q")
    held = base64.b64encode(PDF).decode()
    file = {"filename": "a", "file_data": f"data:application/pdf;base64,{held}"}
    sound = {"data": base64.b64encode(WAV).decode(), "format": "wav"}
    assert sent[1:] == [
        {"type": "file", "file": file},
        {"type": "input_audio", "input_audio": sound},
    ]


def test_a_mention_is_looked_for_where_the_command_runs(ask, tmp_path, monkeypatch):
    ask("first")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.py").write_text("one\n")
    (info,) = open_sessions().list()
    monkeypatch.chdir(tmp_path / "sub")
    _, sent, _ = ask("--session", info.id, "what is @a.py")
    assert sent.endswith("a.py:\n```py\none\n```")


def test_a_pipe_that_is_given_as_a_file_is_read(ask):
    read, write = os.pipe()
    os.write(write, b"from a pipe\n")
    os.close(write)
    try:
        _, sent, _ = ask("-f", f"/dev/fd/{read}", "look")
    finally:
        os.close(read)
    assert "\nfrom a pipe\n" in sent


def test_what_is_piped_or_in_a_file_mentions_nothing(ask, tmp_path):
    (tmp_path / "secret").write_text("key")
    (tmp_path / "a.txt").write_text("see @secret")
    _, sent, _ = ask("-f", "a.txt", "q", stdin=b"and @secret")
    assert "key" not in sent


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["-f", "a.png", "q"],
            "a.png cannot be sent: according to the catalog moonshotai/kimi-k2-thinking does not",
        ),
        (
            ["@a.png"],
            "a.png cannot be sent: according to the catalog moonshotai/kimi-k2-thinking does not",
        ),
        (["-f", "a.zip", "q"], "a.zip cannot be sent: it is a ZIP archive, 4 bytes"),
        (["-f", "none", "q"], 'cannot read "none": no such file'),
        (["-f", "sub", "q"], 'cannot read "sub": it is a folder'),
        (["-f", "big", "q"], "big is larger than 20 MB"),
        (["look at @sub"], "@sub cannot be attached: it is a folder: name the files in it"),
        (["@../out.txt"], "@../out.txt cannot be attached: it is outside this folder"),
    ],
)
def test_what_cannot_be_sent_is_told_and_nothing_is_sent(ask, tmp_path, words, said):
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04")
    (tmp_path / "sub").mkdir()
    (tmp_path.parent / "out.txt").write_text("x")
    with (tmp_path / "big").open("wb") as file:
        file.truncate(LARGEST + 1)
    status, sent, err = ask(*words, model="moonshotai/kimi-k2-thinking")
    assert (status, sent) == (2, None)
    assert err.startswith(f"mull: {said}")
    assert err.count("\n") == 1
    assert open_sessions().list() == []


def test_a_pipe_that_holds_nothing_a_model_takes_is_refused(ask):
    status, sent, err = ask("q", stdin=b"\x7fELF" + bytes(20))
    assert (status, sent) == (2, None)
    assert "standard input cannot be sent: it is an ELF program" in err


def test_what_names_no_file_is_told_and_sent_as_it_stands(ask):
    status, sent, err = ask("mail @ada about @gone.py")
    assert (status, sent) == (0, "mail @ada about @gone.py")
    assert err == "mull: @gone.py is sent as text: no such file\n"


def test_a_file_that_rules_deny_to_read_is_not_sent(ask, tmp_path, monkeypatch):
    monkeypatch.setenv("MULL_CONFIG_DIR", str(tmp_path / "config"))
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "tools.toml").write_text('[tools]\ndeny = ["read(.env*)"]\n')
    (tmp_path / ".env").write_text("TOKEN=1")
    status, sent, err = ask("what is in @.env")
    assert (status, sent) == (2, None)
    assert "denies it" in err
