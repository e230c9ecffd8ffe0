"""What refusals taught, kept between runs: `lessons.json` in the data directory."""

from __future__ import annotations

from pathlib import Path

from mull.logs import log_warning
from mull.neutral.errors import ConfigError
from mull.policy.heal.lessons import Lessons, lessons_from_json, lessons_to_json
from mull.store.files import read_bytes, write_atomic

__all__ = ["LESSONS_FILE", "load_lessons", "save_lessons"]

LESSONS_FILE = "lessons.json"


def load_lessons(data_dir: Path) -> Lessons:
    """The lessons so far. They can be learnt again, so a damaged file counts as none."""
    try:
        data = read_bytes(data_dir / LESSONS_FILE)
        return Lessons() if data is None else lessons_from_json(data)
    except ConfigError as error:
        log_warning(f"lessons from earlier rejections are not used: {error}")
        return Lessons()


def save_lessons(data_dir: Path, lessons: Lessons) -> None:
    """Keep the lessons; a full or read-only disk only means that they are learnt again."""
    try:
        write_atomic(data_dir / LESSONS_FILE, lessons_to_json(lessons))
    except ConfigError as error:
        log_warning(f"a lesson from a rejection was not stored: {error}")
