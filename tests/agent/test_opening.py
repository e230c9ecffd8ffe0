"""Sessions opened from Python: by name or id, the last one, or a new one."""

from __future__ import annotations

import pytest

from mull.agent.engine import Engine
from mull.agent.opening import Opening, of_another_folder, open_session
from mull.agent.setup import load_setup
from mull.history.log import Entry
from mull.neutral.errors import SessionError
from mull.neutral.messages import user
from mull.store.sessions.sqlite import SqliteSessions


@pytest.fixture
def store(tmp_path):
    return SqliteSessions(tmp_path / "sessions.db")


@pytest.fixture
def opened(store):
    """The id and the name of what is opened, after something was said in it."""

    def opened(*words, **more):
        more = {"model": "zai/glm-4.7", "folder": "/w", **more}
        session = open_session(*words, engine=Engine(load_setup()), store=store, key="k", **more)
        if not session.log:
            session._keep(Entry(user("hello")))
        session.release()
        return session.info.id, session.info.name

    return opened


def test_a_name_begins_a_session_and_finds_it_again(opened):
    made = opened("notes")
    assert made[1] == "notes"
    assert opened("Notes") == made
    assert opened(made[0]) == made


def test_a_name_is_not_taken_for_the_beginning_of_an_id(opened):
    (other, _) = opened()
    _, _, letters = other.partition("-")
    assert opened(letters[:2]) != (other, None)
    assert opened(letters[:2])[1] == letters[:2]


def test_the_last_one_of_the_folder(opened):
    made = opened()
    assert opened(last=True) == made
    with pytest.raises(SessionError, match="no session of this folder"):
        opened(last=True, folder="/elsewhere")


def test_a_session_of_another_folder_is_told_of(store):
    found = store.create(folder="/there")
    assert of_another_folder(found, Opening("/there")) is None
    assert of_another_folder(None, Opening("/here")) is None
    assert of_another_folder(found, Opening("/here")) == (
        f"session {found.id} was begun in /there: tools work in /here now"
    )
