"""AGENTS.md and the prompt of a session."""

import os
from datetime import date

import pytest

from mull.agent import instructions
from mull.agent.instructions import BASE, LARGEST, Instruction, load_instructions, system_prompt
from mull.agent.tools.workspace import Workspace
from mull.neutral.request import Tool
from mull.store.paths import config_dir

DAY = date(2026, 3, 1)


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "repo/sub/deep"
    folder.mkdir(parents=True)
    (tmp_path / "repo/.git").mkdir()
    return folder


def test_files_are_read_from_the_user_down_to_the_folder(project, tmp_path):
    places = [config_dir(), tmp_path, tmp_path / "repo", project]
    config_dir().mkdir(parents=True)
    for place in places:
        (place / "AGENTS.md").write_text(f"of {place.name}\n")
    assert load_instructions(project) == (
        Instruction(str(config_dir() / "AGENTS.md"), "of config\n", is_own=True),
        Instruction(str(tmp_path / "repo/AGENTS.md"), "of repo\n"),
        Instruction(str(project / "AGENTS.md"), "of deep\n"),
    )


def test_outside_a_repository_only_the_folder_itself_counts(tmp_path):
    (tmp_path / "AGENTS.md").write_text("above")
    (tmp_path / "here").mkdir()
    assert load_instructions(tmp_path / "here") == ()
    (tmp_path / "here/AGENTS.md").write_text("here")
    assert [one.text for one in load_instructions(tmp_path / "here")] == ["here"]


def test_a_worktree_has_its_top_where_its_git_file_is(project, tmp_path):
    (tmp_path / "repo/AGENTS.md").write_text("above")
    (tmp_path / "repo/sub/.git").write_text("gitdir: elsewhere\n")
    (tmp_path / "repo/sub/AGENTS.md").write_text("sub")
    assert [one.text for one in load_instructions(project)] == ["sub"]


def test_what_is_no_text_is_not_read(project):
    (project / "AGENTS.md").write_bytes(b"\x7fELF\x02\x01\x00" + bytes(range(256)))
    (one,) = load_instructions(project)
    assert one == Instruction(str(project / "AGENTS.md"), note="not read: it is not text")
    assert "AGENTS" not in system_prompt(BASE, [one], [], None, DAY)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_encodings_of_editors_are_understood(project, encoding):
    (project / "AGENTS.md").write_bytes("Grüße\n".encode(encoding))
    assert load_instructions(project)[0].text == "Grüße\n"


def test_a_long_file_is_cut_and_says_so(project):
    (project / "AGENTS.md").write_bytes("é".encode() * LARGEST)
    (one,) = load_instructions(project)
    assert one.text == "é" * (LARGEST // 2)
    assert one.note == "cut after 32,768 of 65,536 bytes"
    (project / "AGENTS.md").write_bytes(b"x" + "é".encode() * LARGEST)
    assert load_instructions(project)[0].text == "x" + "é" * (LARGEST // 2 - 1)


def test_bytes_that_are_no_utf8_and_a_mark_do_no_harm(project):
    (project / "AGENTS.md").write_bytes(b"\xef\xbb\xbfcaf\xe9")
    assert load_instructions(project)[0].text == "caf\ufffd"


def test_a_link_out_of_the_repository_is_not_followed(project, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (project / "AGENTS.md").symlink_to(tmp_path / "secret")
    (tmp_path / "repo/CLAUDE.md").write_text("inside")
    (tmp_path / "repo/AGENTS.md").symlink_to("CLAUDE.md")
    inside, outside = load_instructions(project)
    assert inside.text == "inside"
    assert outside.text == ""
    assert outside.note == "not read: it is a link that leads out of the repository"


def test_what_is_no_file_or_may_not_be_read_is_noted(project, monkeypatch):
    os.mkfifo(project / "AGENTS.md")
    assert load_instructions(project)[0].note == "not read: it is not a file"
    (project / "AGENTS.md").unlink()
    (project / "AGENTS.md").write_text("x")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(instructions, "open", refuse, raising=False)
    assert load_instructions(project)[0] == Instruction(
        str(project / "AGENTS.md"), "", "not read: Permission denied"
    )


def test_the_prompt_says_who_where_when_and_what_people_wrote(project):
    workspace = Workspace(project)
    told = (
        Instruction("/a/AGENTS.md", "\nUse tabs.\n"),
        Instruction("/b/AGENTS.md", "Be kind.", "cut after 1 of 2 bytes"),
        Instruction("/c/AGENTS.md", "", "not read: it is not a file"),
    )
    prompt = system_prompt(BASE, told, [Tool("read")], workspace, DAY)
    assert prompt.startswith("You are mull")
    said = f"\n\nToday is 2026-03-01. The working folder is {project}. The system is "
    assert said in prompt
    assert prompt.endswith(
        "\n\nInstructions from /a/AGENTS.md:\n\nUse tabs."
        "\n\nInstructions from /b/AGENTS.md:\n\nBe kind.\n[cut after 1 of 2 bytes]"
    )
    assert "/c/AGENTS.md" not in prompt


def test_without_tools_nothing_is_said_of_tools_or_folders():
    assert system_prompt("Be brief.", (), (), None, DAY) == "Be brief.\n\nToday is 2026-03-01."
    assert system_prompt("", (), (), None, DAY) == "Today is 2026-03-01."


def test_the_prompt_of_a_day_is_the_same_bytes(project, tmp_path):
    workspace = Workspace(project, extra_roots=[tmp_path])
    (project / "AGENTS.md").write_text("x")
    made = {
        system_prompt(BASE, load_instructions(project), [Tool("read")], workspace, DAY)
        for _ in range(3)
    }
    assert len(made) == 1
    assert f"You can also use files in these folders: {tmp_path}." in made.pop()


def test_claude_md_is_read_where_agents_md_is_missing(project, tmp_path):
    (tmp_path / "repo/AGENTS.md").write_text("agents")
    (tmp_path / "repo/CLAUDE.md").write_text("not read")
    (project / "CLAUDE.md").write_text("claude")
    assert [one.text for one in load_instructions(project)] == ["agents", "claude"]
    assert load_instructions(project)[1].path == str(project / "CLAUDE.md")


def prompt_in(folder, *tools):
    return system_prompt("", (), [Tool(name) for name in tools], Workspace(folder), DAY)


def test_the_prompt_names_system_and_shell(tmp_path, monkeypatch):
    uname = os.uname_result(("Darwin", "host", "1", "v", "arm64"))
    monkeypatch.setattr(os, "uname", lambda: uname)
    assert prompt_in(tmp_path, "read").endswith(f"{tmp_path}. The system is macOS (arm64).")
    monkeypatch.setenv("PATH", "")
    assert prompt_in(tmp_path, "run").endswith("macOS (arm64). Commands run in sh.")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"HEAD": "ref: refs/heads/feature/x\n"}, ", on the branch feature/x."),
        ({"HEAD": f"{'0123456789' * 4}\n"}, ", at the commit 0123456789, on no branch."),
        (
            {"HEAD": "ref: refs/heads/main\n", "MERGE_HEAD": ""},
            ", on the branch main, in the middle of a merge.",
        ),
    ],
)
def test_the_prompt_tells_the_state_of_the_repository(project, tmp_path, files, said):
    top = tmp_path / "repo"
    for name, text in files.items():
        (top / ".git" / name).write_text(text)
    assert f"The working folder is {top}. It is a git repository{said} The" in prompt_in(
        top, "read"
    )
    assert f"It lies in {top}, which is a git repository{said}" in prompt_in(project, "read")


@pytest.mark.parametrize("head", ["ref: refs/heads/a b. Obey", "root:x:0:0", "", "ref: x" * 999])
def test_what_is_no_branch_is_not_repeated(tmp_path, head):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text(head)
    assert "git" not in prompt_in(tmp_path, "read").replace(str(tmp_path), "")


def test_a_worktree_is_looked_up_where_its_file_says(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/HEAD").write_text("ref: refs/heads/side\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/.git").write_text("gitdir: ../kept\n")
    assert "on the branch side" in prompt_in(tmp_path / "tree", "read")


def test_nothing_blocks_on_a_head_that_is_a_fifo(tmp_path):
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git/HEAD")
    assert "git" not in prompt_in(tmp_path, "read").replace(str(tmp_path), "")
