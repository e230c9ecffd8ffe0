"""Searching thoughts, answers, questions and tools, with SQLite's index and without it."""

from __future__ import annotations

import sqlite3
import unicodedata
from itertools import count

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from effort import tried
from mull.history.log import Condensed, Entry, Summary
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.errors import SessionError
from mull.neutral.messages import Message, assistant, user
from mull.store.sessions import search as session_search
from session_samples import new_store, turn, write_version_1

_folders = count()


@pytest.fixture(params=["index", "no index"])
def store(request, monkeypatch, store):
    if request.param == "no index":
        monkeypatch.setattr(session_search, "has_index", lambda connection: False)
    return store


def fill(store, *records, folder="/"):
    made = store.create(folder=folder)
    store.append(made.id, 0, *records)
    return made.id


def places(hits):
    return [(hit.session.id, hit.position, hit.turn, hit.kind) for hit in hits]


def test_each_kind_of_text_is_found_where_it_stands(store):
    call = ToolCallBlock("c1", "read_file", {"path": "heron.py"})
    results = Message(role="tool", blocks=(ToolResultBlock("c1", "a heron stood there"),))
    made = fill(
        store,
        Entry(user("look at the heron")),
        Entry(assistant(ThinkingBlock("a heron is a bird"), TextBlock("I look."), call)),
        Entry(results),
        Entry(assistant(TextBlock("it is a Heron."))),
        *turn("and the crow?", "no heron", "a crow"),
    )
    assert places(store.search(["heron"])) == [
        (made, 5, 2, "thinking"),
        (made, 3, 1, "answer"),
        (made, 2, 1, "tool"),
        (made, 1, 1, "tool"),
        (made, 1, 1, "thinking"),
        (made, 0, 1, "question"),
    ]
    for kind, found in [("thinking", [5, 1]), ("answer", [3]), ("question", [0]), ("tool", [2, 1])]:
        assert [hit.position for hit in store.search(["heron"], kind=kind)] == found
    assert [hit.position for hit in store.search(["heron"], limit=2)] == [5, 3]
    assert places(store.search(["read_file"])) == [(made, 1, 1, "tool")]


def test_a_folder_has_its_own_sessions(store):
    here, there = (fill(store, *turn("q", "owl", "a"), folder=folder) for folder in ("/a", "/b"))
    assert [hit.session.id for hit in store.search(["owl"])] == [there, here]
    assert [hit.session.id for hit in store.search(["owl"], folder="/a")] == [here]
    assert store.search(["owl"], folder="/c") == []


def test_all_words_must_be_there_and_a_phrase_in_its_order(store):
    fill(store, *turn("q", "the file lock is held", "a"), *turn("q", "lock the file", "b"))
    assert [hit.position for hit in store.search(["lock", "file"])] == [3, 1]
    assert [hit.position for hit in store.search(["file lock"])] == [1]
    assert [hit.position for hit in store.search(["lock", "held"])] == [1]
    assert store.search(["lock", "heron"]) == []


def test_the_match_is_marked_and_what_is_around_it_is_shown(store):
    fill(store, *turn("q", "before " * 60 + "the Heron stands" + " after" * 60, "a"))
    (hit,) = store.search(["heron"])
    before, match, after = hit.parts
    assert match == "Heron"
    assert before.startswith("…")
    assert before.endswith("before the ")
    assert after.startswith(" stands after")
    assert after.endswith("…")
    assert len("".join(hit.parts)) < 250


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Größe und Café", ["GRÖSSE"]),
        ("Größe und Café", ["cafe"]),
        ("Größe und Café", ["groß*"]),
        ("the reasoning_content field", ["reasoning_content"]),
        ("the reasoning_content field", ["soning_con"]),
        ("if a -> b then", ["->"]),
        ("if a -> b then", ["->", "then"]),
        ('say "no" twice', ['"no"']),
        ("a AND b OR NOT c", ["OR", "NOT", "AND"]),
        ("日本語のテキスト", ["テキ"]),
        ("我们正在检查文件锁", ["文件"]),
        ("ไม่มีอะไร", ["อะไร"]),
        ("nul\x00 and\x02marks\x03", ["and marks"]),
        ("nul\x00 and \x02marks\x03", ["\x02marks"]),
        ("50% of x_y", ["50%"]),
        ("C++ and C#", ["c++"]),
    ],
)
def test_any_text_is_found(store, text, words):
    made = fill(store, *turn("q", text, "a"), *turn("nothing", "here", "too"))
    assert places(store.search(words)) == [(made, 1, 1, "thinking")]


@settings(max_examples=60)
@given(st.text(min_size=1, max_size=60), st.data())
def test_any_piece_of_what_was_stored_is_found(store, text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    piece = text[start : data.draw(st.integers(start + 1, len(text)))].strip()
    assume(session_search._fold(piece.translate(session_search._UNMARKED)).strip())
    folder = f"/{next(_folders)}"
    made = fill(store, *turn("\U0001f986", text, "\U0001f986"), folder=folder)
    found = [hit for hit in store.search([piece], folder=folder) if hit.kind == "thinking"]
    assert places(found) == [(made, 1, 1, "thinking")]


@pytest.mark.parametrize("words", [[], [""], [" ", "\n"]])
def test_nothing_is_nothing_to_search_for(store, words):
    with pytest.raises(SessionError, match="nothing to search for"):
        store.search(words)


def test_signs_that_fold_to_nothing_find_nothing(store):
    fill(store, *turn("q", "a\u0301", "a"))
    assert store.search(["\u0301"]) == []


def test_texts_that_were_written_without_an_index_are_found_with_one(tmp_path, monkeypatch):
    store = new_store(tmp_path)
    first = fill(store, *turn("q", "heron one", "a"))
    with monkeypatch.context() as patch:
        patch.setattr(session_search, "has_index", lambda connection: False)
        second = fill(store, *turn("q", "heron two", "a"))
        store.delete(first)
    patch = pytest.MonkeyPatch()
    patch.setattr(
        session_search, "_search_texts", lambda *_: pytest.fail("the index was not asked")
    )
    try:
        assert places(store.search(["heron"])) == [(second, 1, 1, "thinking")]
    finally:
        patch.undo()
    store.close()


def test_a_store_of_version_1_can_be_searched_after_its_migration(tmp_path):
    records = [*turn("first", "heron", "a"), *turn("second", "crow", "heron")]
    write_version_1(tmp_path / "sessions.db", "old", records)
    store = new_store(tmp_path)
    assert places(store.search(["heron"])) == [("old", 3, 2, "answer"), ("old", 1, 1, "thinking")]
    info = store.info("old")
    assert (info.turns, info.title, info.records, info.updated) == (2, "first", 4, 2.0)
    store.close()


@pytest.mark.parametrize("damage", ["x'00ff00ff00ff00ff' WHERE id > 10", "NULL"])
def test_a_damaged_index_costs_nothing_but_time(tmp_path, damage):
    store = new_store(tmp_path)
    made = fill(store, *turn("q", "heron", "a"))
    other = fill(store, *turn("q", "owl", "a"))
    store.close()
    connection = sqlite3.connect(tmp_path / "sessions.db")
    connection.execute(f"UPDATE texts_index_data SET block = {damage}")
    connection.commit()
    connection.close()
    store = new_store(tmp_path)
    assert places(store.search(["heron"])) == [(made, 1, 1, "thinking")]
    store.append(made, 2, *turn("q", "another heron", "a"))
    assert [hit.position for hit in store.search(["heron"])] == [3, 1]
    store.delete(made)
    assert store.search(["heron"]) == []
    assert places(store.search(["owl"])) == [(other, 1, 1, "thinking")]
    store.close()
    assert [path.name for path in tmp_path.glob("*damaged*")] == []


def test_summaries_and_shorter_thoughts_are_not_found_beside_their_originals(store):
    made = fill(
        store, *turn("q", "a heron stood", "a"), Summary(0, 2, "heron"), Condensed(1, 0, "heron")
    )
    assert places(store.search(["heron"])) == [(made, 1, 1, "thinking")]


@pytest.mark.parametrize("sign", ["", "é"], ids=["ascii", "accents"])
def test_a_word_that_stands_a_thousand_times_in_a_huge_thought(store, sign):
    thought = f"{sign}start " + "thinking hard about it " * 6000
    fill(store, Entry(assistant(ThinkingBlock(thought), TextBlock("done"))))
    for word in ("Hard", "har*"):
        (hit,) = store.search([word])
        before, found, after = hit.parts
        assert before == f"{sign}start thinking "
        assert found == word.lower().removesuffix("*") == "hard"[: len(found)]
        assert len(after) == session_search._LETTERS_AROUND + 1
        assert after.startswith(" about it" if word == "Hard" else "d about it")


def test_the_beginning_of_a_huge_text_stands_for_words_that_only_the_index_joins(tmp_path):
    store = new_store(tmp_path)
    fill(store, Entry(user("file, lock " * 12_000)))
    (hit,) = store.search(["file lock"])
    assert hit.parts == (("file, lock " * 13)[:140] + "…",)
    store.close()


@pytest.mark.parametrize("word", ["\ud800", "a\udcffb"])
def test_half_a_character_cannot_be_searched_for(tmp_path, word):
    store = new_store(tmp_path)
    fill(store, *turn("q", "t", "a"))
    with pytest.raises(SessionError, match="half a character"):
        store.search([word])
    store.close()


_LETTERS = st.text("aAbB%_\\*éÉ\u0301ſK™— ", max_size=12)


@tried(1)
@given(texts=st.lists(_LETTERS, max_size=6), words=st.lists(_LETTERS, min_size=1, max_size=3))
def test_reading_texts_through_finds_every_text_that_folds_to_the_words(texts, words):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE sessions (id TEXT, folder TEXT)")
    connection.execute("INSERT INTO sessions VALUES ('s', '/')")
    for statement in session_search.TEXTS.split(";"):
        connection.execute(statement)
    rows = [("s", at, 1, "answer", text) for at, text in enumerate(texts)]
    columns = "session, position, turn, kind, text"
    connection.executemany(f"INSERT INTO texts ({columns}) VALUES (?, ?, ?, ?, ?)", rows)
    query = session_search.Query(words, None, None, 50)
    found = session_search._search_texts(connection, query)
    connection.close()
    wanted = session_search._folded(words)
    expected = [
        at
        for at, text in enumerate(texts)
        if wanted and all(word in plainly_folded(text) for word in wanted)
    ]
    assert sorted(hit.position for hit in found) == expected


def plainly_folded(text):
    parted = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in parted if not unicodedata.combining(char))


def test_a_thousand_words_and_a_very_long_one_can_be_searched_for(store):
    long = "heron%" * 20_000
    made = fill(store, Entry(user(f"the {long}, by letters")))
    many = ["etter"] * 2_000
    assert places(store.search([*many, long[1:-1]])) == [(made, 0, 1, "question")]
    assert store.search([*many, long[1:-1] + "x"]) == []


def test_which_texts_are_not_ascii_is_read_from_a_list(store, tmp_path):
    """To count the characters of every text takes longer than to search them all."""
    plain, accented = (fill(store, *turn(f"{word} now", "hm", "yes")) for word in ("cafe", "café"))
    (path,) = tmp_path.rglob("sessions.db")
    connection = sqlite3.connect(path)
    query = f"SELECT id FROM texts WHERE {session_search._LIKELY}"
    plan = connection.execute(f"EXPLAIN QUERY PLAN {query}", ("%x%",)).fetchall()
    listed = connection.execute(f"SELECT session FROM texts WHERE {session_search._NOT_ASCII}")
    assert "texts_not_ascii" in str(plan)
    assert listed.fetchall() == [(accented,)]
    connection.close()
    assert [hit.session.id for hit in store.search(["caf", "no"])] == [accented, plain]
