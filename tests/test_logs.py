"""What the library has to tell goes to the logger `mull`, and nowhere else."""

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import mull
from mull.agent.setup import load_setup
from mull.logs import log_warning
from mull.store.catalog import UPDATE_FILE
from mull.store.lessons import LESSONS_FILE, load_lessons, save_lessons

SOURCE = Path(mull.__file__).parent
KEY = "sk-very-secret"


def logged(caplog):
    return [(one.name, one.levelname, one.getMessage()) for one in caplog.records]


def test_a_warning_is_a_record_of_the_logger_mull(caplog):
    log_warning("100% odd: %s")
    assert logged(caplog) == [("mull", "WARNING", "100% odd: %s")]


def test_a_variable_that_cannot_be_read_is_logged_and_not_printed(caplog, capsys, monkeypatch):
    monkeypatch.setenv("THINKING", "perhaps")
    load_setup()
    ((name, level, text),) = logged(caplog)
    assert (name, level) == ("mull", "WARNING")
    assert "THINKING" in text
    assert capsys.readouterr().err == ""


def test_a_damaged_catalog_update_is_logged(caplog):
    stored = Path(os.environ["MULL_DATA_DIR"]) / UPDATE_FILE
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_bytes(b"{")
    load_setup().catalog()
    assert [text.partition(" is not used")[0] for *_, text in logged(caplog)] == [str(stored)]


def test_lessons_that_cannot_be_read_or_kept_are_logged(caplog, tmp_path):
    (tmp_path / LESSONS_FILE).mkdir()
    lessons = load_lessons(tmp_path)
    save_lessons(tmp_path, lessons)
    texts = [text for *_, text in logged(caplog)]
    assert [text.partition(":")[0] for text in texts] == [
        "lessons from earlier rejections are not used",
        "a lesson from a rejection was not stored",
    ]


def test_no_key_is_logged(caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MOONSHOT_API_KEY", KEY)
    monkeypatch.setenv("THINKING", "perhaps")
    engine = mull.Engine()
    talk = mull.Conversation("moonshotai/kimi-k2-thinking", key=KEY, engine=engine)
    assert KEY not in caplog.text + repr(talk.way())
    assert caplog.records


def run(code):
    told = {**os.environ, "THINKING": "perhaps"}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=told, capture_output=True, text=True, check=True)


def test_nothing_is_printed_where_logging_is_not_set_up():
    assert run("import mull; mull.Engine()").stderr == ""


def test_a_program_that_logs_gets_it():
    told = run("import logging, mull; logging.basicConfig(); mull.Engine()").stderr
    assert told.startswith("WARNING:mull:")


def test_the_command_prints_it():
    told = run("from mull.cli.main import main; main(['settings'])").stderr
    assert told.startswith("mull: ")
    assert "THINKING" in told


def test_no_other_way_leads_to_the_caller():
    other = re.compile(r"warnings\.warn\b|getLogger\(\"mull")
    for path in SOURCE.rglob("*.py"):
        if path not in (SOURCE / "logs.py", SOURCE / "testing" / "strict.py"):  # pytest shows those
            assert not other.search(path.read_text()), path
