"""Keys in tracked files are found, and what tests make up is not."""

from __future__ import annotations

import hashlib
import json

import pytest
from tools import audit, secret_scan

# made here, so that no file holds one: letters of both cases and digits, as keys have them
RANDOM = "".join(
    chr(number % 26 + (65 if number % 2 else 97)) if number % 5 else str(number % 10)
    for number in hashlib.sha512(b"a key").digest()
)


@pytest.mark.parametrize(
    "text",
    [
        f"sk-ant-{RANDOM[:40]}",
        f"x = 'AIza{RANDOM[:35]}'",
        "AKIA" + "".join(sorted(set(RANDOM.upper()), reverse=True))[:16],
        f"ghp_{RANDOM[:36]}",
        f"api_key: {RANDOM[:40]}",
        f'"token" = "{RANDOM[:40]}"',
        f"-----BEGIN PRIVATE KEY-----\n{RANDOM[:60]}",
    ],
)
def test_a_key_is_found_and_not_told(tmp_path, text, capsys):
    path = tmp_path / "file"
    path.write_text(f"one\n{text}\n")
    assert secret_scan.main([str(path)]) == 1
    out, err = capsys.readouterr()
    assert "line 2: " in err
    assert RANDOM[:16] not in out + err


@pytest.mark.parametrize(
    "text",
    ["sk-test-0123456789abcdefghij", "sk-" + "x" * 40, "api_key = os.environ['OPENAI_API_KEY']"],
)
def test_what_is_made_up_is_not(tmp_path, text):
    path = tmp_path / "file"
    path.write_text(text)
    assert secret_scan.main([str(path)]) == 0


def test_nothing_that_git_tracks_holds_a_key(capsys):
    assert secret_scan.main([]) == 0, capsys.readouterr().err


def told(*dependencies):
    return json.dumps({"dependencies": list(dependencies)})


FINE = {"name": "a", "version": "1", "vulns": []}
WEAK = {"name": "b", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}
UNKNOWN = {"name": "c", "skip_reason": "not found"}
OURS = {"name": "mull-reasoning", "skip_reason": "editable"}


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        ((0, told(FINE, OURS), ""), 0, "no known weakness in 1"),
        ((1, told(FINE, WEAK), ""), 1, "b 1: PYSEC-1 (mended in 2)"),
        ((0, told(FINE, UNKNOWN), ""), 1, "does not know c"),
        ((0, told(UNKNOWN, OURS), ""), 0, "not audited"),
        ((1, "", "requests.exceptions.ConnectionError: x"), 0, "not audited"),
        ((1, "", "ImportError: no such module"), 1, "pip-audit failed with status 1"),
        ((0, "{}", ""), 1, "pip-audit failed"),
    ],
)
def test_only_a_service_that_cannot_be_reached_passes_without_an_answer(
    answer, status, said, capsys
):
    assert audit.main([], lambda: answer) == status
    assert said in "".join(capsys.readouterr())
