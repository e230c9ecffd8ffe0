"""Finding words in everything that was said, thought and done.

The texts of records are kept a second time, as plain text, in `texts`: what SQLite can search and
cut snippets from. SQLite's full-text index lies over them. Where the index cannot help, the texts
themselves are read through: a SQLite without fts5, parts of words, signs, and scripts that put no
spaces between words, which the index takes for one long word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mull.history.log import Entry, Record
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.messages import Message
from mull.neutral.patterns import pattern
from mull.store.sessions.values import SearchKind

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = [
    "INDEX_DAMAGED",
    "LIST_NOT_ASCII",
    "TEXTS",
    "Found",
    "Query",
    "add_texts",
    "forget_texts",
    "index_texts",
    "is_behind",
    "search",
]


class Query(Struct, frozen=True):
    """Words that must all be there, and where to look."""

    words: Sequence[str]
    kind: SearchKind | None
    folder: str | None
    limit: int

    @property
    def limits(self) -> tuple[object, ...]:
        """The values for `_LIMITS`."""
        return self.kind, self.kind, self.folder, self.folder


class Found(Struct, frozen=True):
    """A hit whose session is only an id."""

    session: str
    position: int
    turn: int
    kind: SearchKind
    parts: tuple[str, ...]


# `texts_indexed.last` is the last text that the index knows, or -1 if it must be built anew:
# programs with and without fts5 may take turns.
TEXTS = """
CREATE TABLE texts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    position INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX texts_sessions ON texts (session, position);
CREATE TABLE texts_indexed (last INTEGER NOT NULL);
INSERT INTO texts_indexed VALUES (-1);
"""
_INDEX = """
CREATE VIRTUAL TABLE IF NOT EXISTS texts_index USING fts5(
    text, content='texts', content_rowid='id', tokenize='unicode61 remove_diacritics 2'
)
"""
_REBUILD = "INSERT INTO texts_index (texts_index) VALUES ('rebuild')"
_ADD = """
INSERT INTO texts_index (rowid, text)
    SELECT id, text FROM texts WHERE id > (SELECT last FROM texts_indexed)
"""
_REMOVE = """
INSERT INTO texts_index (texts_index, rowid, text)
    SELECT 'delete', id, text FROM texts WHERE session = ?
"""
_MERGE = "INSERT INTO texts_index (texts_index) VALUES ('optimize')"  # else it spells what is gone
INDEX_DAMAGED = 267
"""SQLite's code for a broken index over texts that are whole."""

_BROKEN = (1, INDEX_DAMAGED)  # 1: so broken that it cannot even be opened
_OPEN, _CLOSE = "\x02", "\x03"
_MARKS = pattern(f"[{_OPEN}{_CLOSE}]")
_UNMARKED = {0: " ", ord(_OPEN): " ", ord(_CLOSE): " "}
_LIMITS = "(? IS NULL OR texts.kind = ?) AND (? IS NULL OR sessions.folder = ?)"
# What Python has to fold and compare: SQLite is many times as fast, but folds only ASCII. The index
# lists the texts that are not ASCII: to find out takes longer than to search them.
_NOT_ASCII = "length(text) <> length(CAST(text AS BLOB))"
LIST_NOT_ASCII = f"CREATE INDEX texts_not_ascii ON texts (id) WHERE {_NOT_ASCII}"
_LIKELY = f"(texts.text LIKE ? OR texts.id IN (SELECT id FROM texts WHERE {_NOT_ASCII}))"
_COMPARED = 32
"""Characters of a word that SQLite compares: `LIKE` starts over at every letter of a text."""
_WORDS_AROUND = 24
_LONG = 100_000
"""Characters from which SQLite's own snippets take too long: minutes for a thought of 50 MB."""
_LETTERS_AROUND = 70
# Thai and Lao, Burmese, Khmer, kana, Han
_UNSPACED = pattern(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
_SAID: Mapping[str, SearchKind] = {"user": "question", "assistant": "answer"}
_encode = msgspec.json.Encoder().encode


def add_texts(
    connection: Connection, session: str, position: int, turn: int, record: Record
) -> None:
    """Make a record's texts searchable; the index is told by `index_texts`."""
    if isinstance(record, Entry):
        connection.executemany(
            "INSERT INTO texts (session, position, turn, kind, text) VALUES (?, ?, ?, ?, ?)",
            [(session, position, turn, kind, text) for kind, text in _texts(record.message)],
        )


def _texts(message: Message) -> Iterator[tuple[SearchKind, str]]:
    said = _SAID.get(message.role)
    by_kind: dict[SearchKind, list[str]] = {}
    for block in message.blocks:
        if isinstance(block, TextBlock) and said is not None:
            by_kind.setdefault(said, []).append(block.text)
        elif isinstance(block, ThinkingBlock):
            by_kind.setdefault("thinking", []).append(block.thought)
        elif isinstance(block, ToolCallBlock):
            words = block.arguments or _encode(block.input).decode()
            by_kind.setdefault("tool", []).append(f"{block.name} {words}")
        elif isinstance(block, ToolResultBlock):
            by_kind.setdefault("tool", []).append(block.output)
    for kind, texts in by_kind.items():
        if text := "\n\n".join(filter(str.strip, texts)).translate(_UNMARKED):
            yield kind, text


def has_index(connection: Connection) -> bool:
    """Whether this SQLite has full-text search."""
    query = "SELECT 1 FROM pragma_module_list WHERE name = 'fts5'"
    return connection.execute(query).fetchone() is not None


def is_behind(connection: Connection) -> bool:
    """Whether there are texts that the index does not know yet."""
    query = "SELECT last < (SELECT coalesce(max(id), 0) FROM texts) FROM texts_indexed"
    return has_index(connection) and bool(connection.execute(query).fetchone()[0])


def index_texts(connection: Connection) -> None:
    """Tell the index of every text that it does not know yet; build it anew where it is broken."""
    if not has_index(connection):
        return
    (last,) = connection.execute("SELECT last FROM texts_indexed").fetchone()
    if last < 0:
        done = _take(connection, _INDEX) and _take(connection, _REBUILD)
    else:
        done = _take(connection, _ADD) or _take(connection, _REBUILD)
    if done:
        connection.execute(
            "UPDATE texts_indexed SET last = (SELECT coalesce(max(id), 0) FROM texts)"
        )


def forget_texts(connection: Connection, session: str, *, thriftily: bool = False) -> None:
    """Remove a session's texts so that no file holds them any longer.

    Thriftily, hardly anything is written: the index is thrown away and built anew another time.
    """
    if not connection.execute("SELECT 1 FROM texts WHERE session = ?", (session,)).fetchone():
        return  # merging takes a second where the index is large
    done = False
    if thriftily:
        connection.execute("DROP TABLE IF EXISTS texts_index")
    elif has_index(connection):
        index_texts(connection)
        done = _take(connection, _REMOVE, (session,)) and _take(connection, _MERGE)
    if not done:
        connection.execute("UPDATE texts_indexed SET last = -1")
    connection.execute("DELETE FROM texts WHERE session = ?", (session,))


def _take(connection: Connection, statement: str, values: Sequence[object] = ()) -> bool:
    """Whether the index took this. A broken one must not keep records from being stored."""
    from sqlite3 import DatabaseError

    try:
        connection.execute(statement, values)
    except DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) not in _BROKEN:
            raise
        return False
    return True


def search(connection: Connection, query: Query) -> list[Found]:
    """Where all of these words stand in one text, the newest first.

    A `*` at the end of a word stands for any ending. Where nothing has the words as they are,
    parts of words count.
    """
    from sqlite3 import DatabaseError

    query = replace(query, words=[word.translate(_UNMARKED) for word in query.words])
    found: list[Found] = []
    if has_index(connection) and not any(map(_UNSPACED.search, query.words)):
        try:
            found = _search_index(connection, query)
        except DatabaseError as error:  # the texts are there all the same
            if getattr(error, "sqlite_errorcode", 0) not in _BROKEN:
                raise
    return found or _search_texts(connection, query)


def _search_index(connection: Connection, query: Query) -> list[Found]:
    short = f"snippet(texts_index, 0, ?, ?, '…', {_WORDS_AROUND})"
    rows = connection.execute(
        f"SELECT texts.session, texts.position, texts.turn, texts.kind,"
        f" CASE WHEN length(texts.text) <= {_LONG} THEN {short} ELSE texts.text END"
        f" FROM texts_index JOIN texts ON texts.id = texts_index.rowid"
        f" JOIN sessions ON sessions.id = texts.session"
        f" WHERE texts_index MATCH ? AND {_LIMITS} ORDER BY texts_index.rowid DESC LIMIT ?",
        (_OPEN, _CLOSE, " ".join(map(_phrase, query.words)), *query.limits, query.limit),
    )
    return [Found(*where, _marked(text, query.words)) for where, text in _pairs(rows)]


def _marked(text: str, words: Sequence[str]) -> tuple[str, ...]:
    """The parts of a snippet, or of a text that is too long for SQLite to make one."""
    return _snippet(text, _folded(words)) if len(text) > _LONG else tuple(_MARKS.split(text))


def _phrase(word: str) -> str:
    ending = "*" if word.endswith("*") else ""
    text = word.removesuffix("*").replace('"', '""')
    return f'"{text}"{ending}'


def _search_texts(connection: Connection, query: Query) -> list[Found]:
    """Read all texts through, without regard to case and accents."""
    wanted = _folded(query.words)
    if not wanted:
        return []
    rows = connection.execute(
        "SELECT texts.session, texts.position, texts.turn, texts.kind, texts.text"
        " FROM texts JOIN sessions ON sessions.id = texts.session"
        f" WHERE {_LIMITS} AND {_LIKELY} ORDER BY texts.id DESC",
        (*query.limits, _pattern(wanted)),
    )
    found: list[Found] = []
    for where, text in _pairs(rows):
        folded = _fold(text)
        if all(word in folded for word in wanted):
            found.append(Found(*where, _snippet(text, wanted)))
            if len(found) == query.limit:
                break
    return found


def _pattern(wanted: Sequence[str]) -> str | None:
    """The pattern for `_LIKELY`: the longest word, its signs that `LIKE` takes for wildcards each
    as any character. None if a word can only be in texts that are not ASCII."""
    if not all(map(str.isascii, wanted)):
        return None
    return f"%{max(wanted, key=len)[:_COMPARED].replace('%', '_')}%"


def _pairs(rows: Iterable[Any]) -> Iterator[tuple[tuple[str, int, int, SearchKind], str]]:
    """Where a text is, and the text."""
    return (((session, at, turn, kind), text) for session, at, turn, kind, text in rows)


def _folded(words: Sequence[str]) -> list[str]:
    folded = (_fold(word.removesuffix("*") or word) for word in words)
    return [word for word in folded if word]


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    parted = unicodedata.normalize("NFKD", text.casefold())
    for mark in filter(unicodedata.combining, set(parted)):  # few kinds, in very many characters
        parted = parted.replace(mark, "")
    return parted


def _snippet(text: str, wanted: Sequence[str]) -> tuple[str, ...]:
    """The first place of the first word, with what is around it; the beginning, if the index
    found what is not there letter by letter."""
    first = _fold(text).find(wanted[0])
    if first < 0:
        return (text[: 2 * _LETTERS_AROUND] + "…",)
    start, end = _origin(text, first), _origin(text, first + len(wanted[0]) - 1) + 1
    before, after = text[max(0, start - _LETTERS_AROUND) : start], text[end:][:_LETTERS_AROUND]
    head = "…" if start > _LETTERS_AROUND else ""
    tail = "…" if end + _LETTERS_AROUND < len(text) else ""
    return head + before, text[start:end], after + tail


def _origin(text: str, place: int) -> int:
    """The character of a text that the one at this place of the folded text comes from."""
    if text.isascii():
        return place
    length = 0
    for at, char in enumerate(text):
        length += len(_fold(char))
        if length > place:
            return at
    return len(text) - 1
