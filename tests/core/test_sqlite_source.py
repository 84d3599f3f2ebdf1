"""The table source: rows as columns, whatever lies in the file, and nothing written beside it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from flame.core.errors import InputError
from flame.core.readers import sqlite
from flame.core.readers.sqlite import SqliteSource
from flame.core.readers.tables import NULL

INT64_MAX = (1 << 63) - 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.sqlite"


@pytest.fixture
def db(path: Path) -> Iterator[sqlite3.Connection]:
    """The file being written; changes count once they are committed."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        yield connection


class Interner(dict[bytes | None, int]):
    """Codes in order of appearance."""

    def __missing__(self, text: bytes | None) -> int:
        self[text] = len(self)
        return self[text]

    def texts(self, codes: np.ndarray) -> list[bytes | None]:
        spelled = list(self)
        return [spelled[code] for code in codes.tolist()]


def ints(path: Path, *names: str, table: str = "t") -> list[tuple[int, ...]]:
    """Rows of the integer columns."""
    with closing(SqliteSource(path)) as source:
        chunks = list(source.chunks(table, names))
    assert all(chunk[name].dtype == np.int64 for chunk in chunks for name in names)
    return [
        row for chunk in chunks for row in zip(*(chunk[n].tolist() for n in names), strict=True)
    ]


def texts(path: Path, name: str, table: str = "t") -> list[tuple[int, bytes | None]]:
    """Rows of the integer column ``a`` and a text column."""
    intern = Interner()
    with closing(SqliteSource(path)) as source:
        chunks = list(source.chunks(table, ["a"], {name: intern.__getitem__}))
    return [
        row
        for chunk in chunks
        for row in zip(chunk["a"].tolist(), intern.texts(chunk[name]), strict=True)
    ]


# -- integers ---------------------------------------------------------------------------------


def test_integers_come_exactly(path: Path, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (a, b)")
    rows = [(0, -1), (INT64_MAX, -INT64_MAX), ((1 << 53) + 1, 7)]
    db.executemany("INSERT INTO t VALUES (?, ?)", rows)
    assert ints(path, "a", "b") == rows


def test_columns_come_in_the_order_asked_for(path: Path, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (a, b)")
    db.execute("INSERT INTO t VALUES (1, 2)")
    assert ints(path, "b", "a") == [(2, 1)]


def test_a_missing_value_is_null(path: Path, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (a, b)")
    db.executemany("INSERT INTO t VALUES (?, ?)", [(1, None), (None, None), (3, None)])
    assert ints(path, "a", "b") == [(1, NULL), (NULL, NULL), (3, NULL)]


def test_a_missing_column_is_null_in_every_row(path: Path, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (a)")
    db.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
    assert ints(path, "a", "absent") == [(1, NULL), (2, NULL)]
    assert ints(path, "absent") == [(NULL,), (NULL,)]


@pytest.mark.parametrize(
    ("stored", "read"),
    [("12", 12), ("words", 0), (3.9, 3), (b"12", 12), ("", 0), (1e300, INT64_MAX)],
)
def test_what_is_no_integer_becomes_one(
    stored: object, read: int, path: Path, db: sqlite3.Connection
) -> None:
    db.execute("CREATE TABLE t (a BLOB)")
    db.executemany("INSERT INTO t VALUES (?)", [(7,), (stored,), (8,)])
    assert ints(path, "a") == [(7,), (read,), (8,)]


def test_a_missing_table_has_no_rows_and_no_columns(path: Path, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE other (a)")
    assert ints(path, "a") == []
    with closing(SqliteSource(path)) as source:
        assert source.columns("t") == frozenset()
        assert source.size("t") == 0
        assert list(source.rows("t", ["a"])) == []


def test_an_empty_table_has_no_rows(path: Path, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (a, s)")
    assert ints(path, "a") == []
    assert texts(path, "s") == []


# -- texts ------------------------------------------------------------------------------------


def test_texts_come_as_stored_beside_their_integers(path: Path, db: sqlite3.Connection) -> None:
    rows = [(1, b"step"), (2, None), (3, b""), (4, b"na\xefve"), (5, "für".encode()), (6, b"a\0b")]
    db.execute("CREATE TABLE t (a, s TEXT)")
    db.executemany("INSERT INTO t VALUES (?, CAST(? AS TEXT))", rows)
    assert texts(path, "s") == rows


def test_a_missing_text_column_is_null(path: Path, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (a)")
    db.execute("INSERT INTO t VALUES (1)")
    assert texts(path, "absent") == [(1, None)]


def test_what_is_no_text_becomes_one(path: Path, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (a, s BLOB)")
    db.executemany("INSERT INTO t VALUES (?, ?)", [(1, 12), (2, 1.5), (3, b"\xff\0")])
    assert texts(path, "s") == [(1, b"12"), (2, b"1.5"), (3, b"\xff\0")]


def test_plain_rows_replace_what_is_not_utf8(path: Path, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (s TEXT, n, r)")
    db.execute("INSERT INTO t VALUES (CAST(x'6eef' AS TEXT), 5, 1.5)")
    with closing(SqliteSource(path)) as source:
        assert list(source.rows("t", ["n", "s", "r", "absent"])) == [(5, "n\ufffd", 1.5, None)]
        assert list(source.rows("t", ["n"], "WHERE n > 5")) == []


# -- chunks -----------------------------------------------------------------------------------


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_CHUNK", 4)


@pytest.mark.usefixtures("small_chunks")
def test_rows_come_in_chunks_of_limited_size(path: Path, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (a)")
    db.executemany("INSERT INTO t VALUES (?)", [(number,) for number in range(10)])
    with closing(SqliteSource(path)) as source:
        chunks = [chunk["a"].tolist() for chunk in source.chunks("t", ["a"])]
    assert chunks == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


@pytest.mark.usefixtures("small_chunks")
def test_texts_stay_in_step_with_integers_over_many_chunks(
    path: Path, db: sqlite3.Connection
) -> None:
    rows = [(number, f"text {number}".encode() if number % 3 else None) for number in range(50)]
    db.execute("CREATE TABLE t (a, s TEXT)")
    db.executemany("INSERT INTO t VALUES (?, CAST(? AS TEXT))", rows)
    assert texts(path, "s") == rows


@pytest.mark.usefixtures("small_chunks")
def test_gaps_between_rowids_are_jumped_over(path: Path, db: sqlite3.Connection) -> None:
    keys = [-(1 << 62), -3, 0, 5, 6, 1 << 40, INT64_MAX - 1, INT64_MAX]
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
    db.executemany("INSERT INTO t VALUES (?, ?)", [(key, at) for at, key in enumerate(keys)])
    assert ints(path, "id", "a") == [(key, at) for at, key in enumerate(keys)]


@pytest.mark.usefixtures("small_chunks")
def test_a_column_called_rowid_is_only_a_column(path: Path, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (RowId, a)")
    db.executemany("INSERT INTO t VALUES (?, ?)", [(None, 1), (9, 2), ("x", 3), (2, 4), (2, 5)])
    assert sorted(ints(path, "a")) == [(1,), (2,), (3,), (4,), (5,)]


@pytest.mark.usefixtures("small_chunks")
def test_a_view_reads_like_a_table(path: Path, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE base (a, s TEXT)")
    db.executemany("INSERT INTO base VALUES (?, ?)", [(n, f"{n}") for n in range(10)])
    db.execute("CREATE VIEW t AS SELECT a, s FROM base WHERE a >= 3")
    assert texts(path, "s") == [(n, b"%d" % n) for n in range(3, 10)]


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("view", [False, True], ids=["table", "view"])
def test_without_rowids_an_index_does_not_tear_rows_apart(
    view: bool, path: Path, db: sqlite3.Connection
) -> None:
    name = "base" if view else "t"
    db.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, a, s TEXT) WITHOUT ROWID")
    rows = [(number, f"{-number % 10}") for number in range(10)]
    db.executemany(f"INSERT INTO {name} (a, id, s) VALUES (?1, ?1, ?2)", rows)
    db.execute(f"CREATE INDEX by_text ON {name} (s)")
    if view:
        db.execute("CREATE VIEW t AS SELECT a, s FROM base")
    assert sorted(texts(path, "s")) == [(number, text.encode()) for number, text in rows]


def test_the_size_of_a_table_is_about_its_rows(path: Path, db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (a)")
    db.executemany("INSERT INTO t VALUES (?)", [(1,)] * 12)
    with closing(SqliteSource(path)) as source:
        assert source.size("t") == 12


def test_names_are_quoted(path: Path, db: sqlite3.Connection) -> None:
    db.execute('CREATE TABLE "a ""table""" ("select ""x""")')
    db.execute('INSERT INTO "a ""table""" VALUES (5)')
    assert ints(path, 'select "x"', table='a "table"') == [(5,)]


def test_columns_are_those_of_the_table_generated_ones_too(
    path: Path, db: sqlite3.Connection
) -> None:
    db.execute("CREATE TABLE t (a, twice AS (a * 2))")
    db.execute("INSERT INTO t VALUES (4)")
    with closing(SqliteSource(path)) as source:
        assert source.columns("t") == {"a", "twice"}
    assert ints(path, "twice") == [(8,)]


# -- the user's file --------------------------------------------------------------------------


def with_one_row(db: sqlite3.Connection, *pragmas: str) -> None:
    for pragma in pragmas:
        db.execute(f"PRAGMA {pragma}")
    db.execute("CREATE TABLE t (a)")
    db.execute("INSERT INTO t VALUES (5)")


def beside(path: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in path.parent.iterdir()}


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_reading_leaves_the_file_and_its_folder_as_they_are(mode: str, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        with_one_row(writer, f"journal_mode = {mode}")
    before = beside(path)
    with closing(SqliteSource(path)) as source:
        assert [chunk["a"].tolist() for chunk in source.chunks("t", ["a"])] == [[5]]
        assert beside(path) == before
    assert beside(path) == before == {path.name: path.read_bytes()}


def test_changes_that_wait_in_a_write_ahead_log_are_refused(
    path: Path, db: sqlite3.Connection
) -> None:
    with_one_row(db, "journal_mode = wal")
    with pytest.raises(InputError, match=r"its last changes are in trace\.sqlite-wal"):
        SqliteSource(path)


def test_an_empty_write_ahead_log_holds_nothing_back(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        with_one_row(writer, "journal_mode = wal")
    path.with_name("trace.sqlite-wal").touch()
    assert ints(path, "a") == [(5,)]


def test_a_stray_log_beside_a_file_that_has_none_is_ignored(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        with_one_row(writer)
    path.with_name("trace.sqlite-wal").write_bytes(b"left over")
    path.with_name("trace.sqlite-journal").write_bytes(b"left over")
    before = beside(path)
    assert ints(path, "a") == [(5,)]
    assert beside(path) == before


def test_a_write_that_was_cut_short_is_refused(path: Path, db: sqlite3.Connection) -> None:
    with_one_row(db)
    db.execute("PRAGMA cache_size = 1")
    db.execute("BEGIN")
    db.executemany("INSERT INTO t VALUES (?)", [("x" * 5_000,)] * 20)
    copy = path.with_name("copy.sqlite")
    for suffix in ("", "-journal"):
        Path(f"{copy}{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    with pytest.raises(InputError, match=r"its last changes are in copy\.sqlite-journal"):
        SqliteSource(copy)


@pytest.mark.parametrize(
    "name", ["a b.sqlite", "50%.sqlite", "what?.sqlite", "#1.sqlite", "'q\".db"]
)
def test_any_name_of_a_file_will_do(name: str, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        with_one_row(writer)
    assert ints(path.rename(path.with_name(name)), "a") == [(5,)]
