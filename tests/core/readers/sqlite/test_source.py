"""Table sources: rows as columns, whatever lies in the file, and nothing written beside it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.errors import InputError
from flame.core.readers.sqlite import allowance, pages
from flame.core.readers.sqlite.connection import connect
from flame.core.readers.sqlite.numbering import RowNumbers, TextNumbers
from flame.core.readers.sqlite.pages import PageSource
from flame.core.readers.sqlite.rows import SqliteSource
from flame.core.readers.sqlite.source import NULL, NUMBER, TEXT, TableKey, TableQuery
from tests.support.tiers import examples

INT64_MAX = (1 << 63) - 1


class File:
    """A file being written, and a source of one kind that reads it."""

    def __init__(self, path: Path, source: type[SqliteSource | PageSource]) -> None:
        self.path, self._source = path, source
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA synchronous = OFF")
        self.db.execute("PRAGMA page_size = 512")

    def close_with_one_row(self, mode: str = "delete") -> None:
        """Finish a table ``t`` with one row, a = 5."""
        self.write_one_row(mode)
        self.db.close()

    def write_one_row(self, mode: str = "delete") -> None:
        self.db.execute(f"PRAGMA journal_mode = {mode}")
        self.db.execute("CREATE TABLE t (a)")
        self.db.execute("INSERT INTO t VALUES (5)")

    def folder(self) -> dict[str, bytes]:
        """All files in the folder, and what they hold."""
        return {one.name: one.read_bytes() for one in self.path.parent.iterdir()}

    def open(self) -> SqliteSource | PageSource:
        return self._source(self.path)

    def ints(self, *names: str, table: str = "t") -> list[tuple[int, ...]]:
        """Rows of the integer columns."""
        with closing(self.open()) as source:
            chunks = list(source.chunks(TableQuery(table, names)))
        assert all(chunk[name].dtype == np.int64 for chunk in chunks for name in names)
        columns = [[chunk[name].tolist() for name in names] for chunk in chunks]
        return [row for chunk in columns for row in zip(*chunk, strict=True)]

    def texts(self, name: str, table: str = "t") -> list[tuple[int, bytes | None]]:
        """Rows of the integer column ``a`` and a text column."""
        key = TableKey([TEXT], RowNumbers(1), name, TextNumbers())
        with closing(self.open()) as source:
            chunks = list(source.chunks(TableQuery(table, ["a"], key)))
        assert key.texts is not None
        spelled = [*key.texts, None]
        texts = [spelled[number] for (number,) in key.rows.rows().tolist()]
        columns = [(chunk["a"].tolist(), chunk[NUMBER].tolist()) for chunk in chunks]
        return [(a, texts[row]) for chunk in columns for a, row in zip(*chunk, strict=True)]


@pytest.fixture(params=[SqliteSource, PageSource])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[File]:
    file = File(tmp_path / "trace.sqlite", request.param)
    yield file
    file.db.close()


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowance, "MOST_ROWS", 4)
    monkeypatch.setattr(pages, "_BATCH", 1)  # one page


# -- integers ---------------------------------------------------------------------------------


def test_integers_come_exactly(file: File) -> None:
    file.db.execute("CREATE TABLE t (a, b)")
    rows = [(0, -1), (INT64_MAX, -INT64_MAX), ((1 << 53) + 1, 7)]
    file.db.executemany("INSERT INTO t VALUES (?, ?)", rows)
    assert file.ints("a", "b") == rows


def test_columns_come_in_the_order_asked_for(file: File) -> None:
    file.db.execute("CREATE TABLE t (a, b)")
    file.db.execute("INSERT INTO t VALUES (1, 2)")
    assert file.ints("b", "a") == [(2, 1)]


def test_a_missing_value_is_null(file: File) -> None:
    file.db.execute("CREATE TABLE t (a, b)")
    file.db.executemany("INSERT INTO t VALUES (?, ?)", [(1, None), (None, None), (3, None)])
    assert file.ints("a", "b") == [(1, NULL), (NULL, NULL), (3, NULL)]


def test_a_missing_column_is_null_in_every_row(file: File) -> None:
    file.db.execute("CREATE TABLE t (a)")
    file.db.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
    assert file.ints("a", "absent") == [(1, NULL), (2, NULL)]
    assert file.ints("absent") == [(NULL,), (NULL,)]


@pytest.mark.parametrize(
    ("stored", "read"),
    [("12", 12), ("words", 0), (3.9, 3), (b"12", 12), ("", 0), (1e300, INT64_MAX)],
)
def test_what_is_no_integer_becomes_one(stored: object, read: int, file: File) -> None:
    file.db.execute("CREATE TABLE t (a BLOB)")
    file.db.executemany("INSERT INTO t VALUES (?)", [(7,), (stored,), (8,)])
    assert file.ints("a") == [(7,), (read,), (8,)]


def test_a_missing_table_has_no_rows_and_no_columns(file: File) -> None:
    file.db.execute("CREATE TABLE other (a)")
    assert file.ints("a") == []
    with closing(file.open()) as source:
        assert source.columns("t") == frozenset()
        assert source.size("t") == 0
        assert list(source.rows("t", ["a"])) == []


def test_an_empty_table_has_no_rows(file: File) -> None:
    file.db.execute("CREATE TABLE t (a, s)")
    assert file.ints("a") == []
    assert file.texts("s") == []


# -- texts ------------------------------------------------------------------------------------


def test_texts_come_as_stored_beside_their_integers(file: File) -> None:
    rows = [(1, b"step"), (2, None), (3, b""), (4, b"na\xefve"), (5, "für".encode()), (6, b"a\0b")]
    file.db.execute("CREATE TABLE t (a, s TEXT)")
    file.db.executemany("INSERT INTO t VALUES (?, CAST(? AS TEXT))", rows)
    assert file.texts("s") == rows


def test_a_missing_text_column_is_null(file: File) -> None:
    file.db.execute("CREATE TABLE t (a)")
    file.db.execute("INSERT INTO t VALUES (1)")
    assert file.texts("absent") == [(1, None)]


def test_what_is_no_text_becomes_one(file: File) -> None:
    file.db.execute("CREATE TABLE t (a, s BLOB)")
    file.db.executemany("INSERT INTO t VALUES (?, ?)", [(1, 12), (2, 1.5), (3, b"\xff\0")])
    assert file.texts("s") == [(1, b"12"), (2, b"1.5"), (3, b"\xff\0")]


def test_plain_rows_replace_what_is_not_utf8(file: File) -> None:
    file.db.execute("CREATE TABLE t (s TEXT, n, r)")
    file.db.execute("INSERT INTO t VALUES (CAST(x'6eef' AS TEXT), 5, 1.5)")
    with closing(file.open()) as source:
        assert list(source.rows("t", ["n", "s", "r", "absent"])) == [(5, "n\ufffd", 1.5, None)]
        assert list(source.rows("t", ["n"], "WHERE n > 5")) == []


# -- any table ---------------------------------------------------------------------------------

INT64 = st.integers(-INT64_MAX, INT64_MAX)
SHORT = st.integers(0, 200).map(lambda bits: (1 << bits % 63) - bits % 3)
SIZES = st.one_of(st.integers(0, 2_000), st.integers(460, 520))  # about a page
LONG = SIZES.map(lambda size: bytes([97 + size % 26]) * size)
TEXTS = st.one_of(st.none(), st.binary(max_size=40), LONG)
ROWS = st.lists(st.tuples(st.one_of(st.none(), SHORT, INT64), TEXTS), max_size=30)


@pytest.mark.usefixtures("small_chunks")
@examples(0.6, [HealthCheck.function_scoped_fixture])
@given(rows=ROWS, deleted=st.sets(st.integers(1, 30)))
def test_rows_come_as_they_were_written(
    rows: list[tuple[int | None, bytes | None]], deleted: set[int], file: File
) -> None:
    file.db.execute("DROP TABLE IF EXISTS t")
    file.db.execute("CREATE TABLE t (a INTEGER, s TEXT)")
    file.db.executemany("INSERT INTO t VALUES (?, CAST(? AS TEXT))", rows)
    file.db.executemany("DELETE FROM t WHERE rowid = ?", [(rowid,) for rowid in deleted])
    kept = [row for rowid, row in enumerate(rows, 1) if rowid not in deleted]
    assert file.texts("s") == [(NULL if number is None else number, text) for number, text in kept]


@pytest.mark.usefixtures("small_chunks")
def test_a_row_longer_than_a_page_comes_once_and_in_its_place(file: File) -> None:
    rows = [(number, b"x" * (2_000 if number == 100 else 5)) for number in range(200)]
    file.db.execute("CREATE TABLE t (a, s TEXT)")
    file.db.executemany("INSERT INTO t VALUES (?, CAST(? AS TEXT))", rows)
    assert file.texts("s") == rows


def test_columns_added_later_are_null_or_their_default_in_older_rows(file: File) -> None:
    file.db.execute("CREATE TABLE t (a)")
    file.db.execute("INSERT INTO t VALUES (1)")
    file.db.execute("ALTER TABLE t ADD COLUMN b")
    file.db.execute("ALTER TABLE t ADD COLUMN c DEFAULT 7")
    file.db.execute("INSERT INTO t VALUES (2, 3, 4)")
    assert file.ints("a", "b", "c") == [(1, NULL, 7), (2, 3, 4)]


def test_a_column_dropped_or_renamed_leaves_the_others_in_place(file: File) -> None:
    file.db.execute("CREATE TABLE t (a, b, c)")
    file.db.execute("INSERT INTO t VALUES (1, 2, 3)")
    file.db.execute("ALTER TABLE t DROP COLUMN a")
    file.db.execute("ALTER TABLE t RENAME COLUMN b TO z")
    assert file.ints("a", "c", "z") == [(NULL, 3, 2)]


def test_a_primary_key_is_a_column_like_any_other(file: File) -> None:
    file.db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, s TEXT)")
    file.db.executemany("INSERT INTO t VALUES (?, ?)", [(9, "nine"), (4, "four")])
    assert file.texts("s") == [(4, b"four"), (9, b"nine")]


def test_whole_numbers_in_a_real_column_are_whole(file: File) -> None:
    file.db.execute("CREATE TABLE t (a REAL)")
    file.db.executemany("INSERT INTO t VALUES (?)", [(5,), (-2.75,), (0,)])
    assert file.ints("a") == [(5,), (-2,), (0,)]


# -- chunks -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_chunks")
def test_rows_come_in_chunks_of_limited_size(file: File) -> None:
    file.db.execute("CREATE TABLE t (a)")
    file.db.executemany("INSERT INTO t VALUES (?)", [(number,) for number in range(200)])
    with closing(file.open()) as source:
        chunks = [chunk["a"].tolist() for chunk in source.chunks(TableQuery("t", ["a"]))]
    assert [number for chunk in chunks for number in chunk] == list(range(200))
    assert max(map(len, chunks)) <= 100


@pytest.mark.usefixtures("small_chunks")
def test_texts_stay_in_step_with_integers_over_many_chunks(file: File) -> None:
    rows = [(number, f"text {number}".encode() if number % 3 else None) for number in range(500)]
    file.db.execute("CREATE TABLE t (a, s TEXT)")
    file.db.executemany("INSERT INTO t VALUES (?, CAST(? AS TEXT))", rows)
    assert file.texts("s") == rows


@pytest.mark.usefixtures("small_chunks")
def test_gaps_between_rowids_are_jumped_over(file: File) -> None:
    keys = [-(1 << 62), -3, 0, 5, 6, 1 << 40, INT64_MAX - 1, INT64_MAX]
    file.db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
    file.db.executemany("INSERT INTO t VALUES (?, ?)", [(key, at) for at, key in enumerate(keys)])
    assert file.ints("id", "a") == [(key, at) for at, key in enumerate(keys)]


@pytest.mark.usefixtures("small_chunks")
def test_a_column_called_rowid_is_only_a_column(file: File) -> None:
    file.db.execute("CREATE TABLE t (RowId, a, s DEFAULT (hex(zeroblob(900))))")
    rows = [(None, 1), (90, 2), (2, 3), (2, 4)]
    file.db.executemany("INSERT INTO t (rowid, a) VALUES (?, ?)", rows)
    assert sorted(file.ints("a")) == [(1,), (2,), (3,), (4,)]


@pytest.mark.usefixtures("small_chunks")
def test_a_view_reads_like_a_table(file: File) -> None:
    file.db.execute("CREATE TABLE base (a, s TEXT)")
    file.db.executemany("INSERT INTO base VALUES (?, ?)", [(n, f"{n}") for n in range(10)])
    file.db.execute("CREATE VIEW t AS SELECT a, s FROM base WHERE a >= 3")
    assert file.texts("s") == [(n, b"%d" % n) for n in range(3, 10)]


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("view", [False, True], ids=["table", "view"])
def test_without_rowids_an_index_does_not_tear_rows_apart(view: bool, file: File) -> None:
    name = "base" if view else "t"
    file.db.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, a, s TEXT) WITHOUT ROWID")
    rows = [(number, f"{-number % 10}") for number in range(10)]
    cells = [(number, number, text) for number, text in rows]
    file.db.executemany(f"INSERT INTO {name} (a, id, s) VALUES (?, ?, ?)", cells)
    file.db.execute(f"CREATE INDEX by_text ON {name} (s)")
    if view:
        file.db.execute("CREATE VIEW t AS SELECT a, s FROM base")
    assert sorted(file.texts("s")) == [(number, text.encode()) for number, text in rows]


def test_the_size_of_a_table_is_about_its_rows(file: File) -> None:
    file.db.execute("CREATE TABLE t (a)")
    file.db.executemany("INSERT INTO t VALUES (?)", [(1,)] * 12)
    with closing(file.open()) as source:
        assert source.size("t") == 12


def test_names_are_quoted(file: File) -> None:
    file.db.execute('CREATE TABLE "a ""table""" ("select ""x""")')
    file.db.execute('INSERT INTO "a ""table""" VALUES (5)')
    assert file.ints('select "x"', table='a "table"') == [(5,)]


def test_columns_are_those_of_the_table_generated_ones_too(file: File) -> None:
    file.db.execute("CREATE TABLE t (a, twice AS (a * 2))")
    file.db.execute("INSERT INTO t VALUES (4)")
    with closing(file.open()) as source:
        assert source.columns("t") == {"a", "twice"}
    assert file.ints("twice") == [(8,)]


# -- the user's file --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_reading_leaves_the_file_and_its_folder_as_they_are(mode: str, file: File) -> None:
    file.close_with_one_row(mode)
    before = file.folder()
    with closing(file.open()) as source:
        assert [chunk["a"].tolist() for chunk in source.chunks(TableQuery("t", ["a"]))] == [[5]]
        assert file.folder() == before
    assert file.folder() == before
    assert list(before) == [file.path.name]


def test_changes_that_wait_in_a_write_ahead_log_are_refused(file: File) -> None:
    file.write_one_row("wal")
    with pytest.raises(InputError, match=r"its last changes are in trace\.sqlite-wal"):
        file.open()


def test_an_empty_write_ahead_log_holds_nothing_back(file: File) -> None:
    file.close_with_one_row("wal")
    file.path.with_name("trace.sqlite-wal").touch()
    assert file.ints("a") == [(5,)]


def test_a_stray_log_beside_a_file_that_has_none_is_ignored(file: File) -> None:
    file.close_with_one_row()
    file.path.with_name("trace.sqlite-wal").write_bytes(b"left over")
    file.path.with_name("trace.sqlite-journal").write_bytes(b"left over")
    before = file.folder()
    assert file.ints("a") == [(5,)]
    assert file.folder() == before


def test_a_write_that_was_cut_short_is_refused(file: File) -> None:
    file.write_one_row()
    file.db.execute("PRAGMA cache_size = 1")
    file.db.execute("BEGIN")
    file.db.executemany("INSERT INTO t VALUES (?)", [("x" * 5_000,)] * 20)
    whole = file.folder()
    file.path = file.path.parent / "copy.sqlite"  # nobody holds a lock on it
    for name, content in whole.items():
        (file.path.parent / name.replace("trace", "copy")).write_bytes(content)
    with pytest.raises(InputError, match=r"its last changes are in copy\.sqlite-journal"):
        file.open()


@pytest.mark.parametrize(
    "name", ["a b.sqlite", "50%.sqlite", "what?.sqlite", "#1.sqlite", "'q\".db"]
)
def test_any_name_of_a_file_will_do(name: str, file: File) -> None:
    file.close_with_one_row()
    file.path = file.path.rename(file.path.with_name(name))
    assert file.ints("a") == [(5,)]


def test_a_file_that_goes_away_while_it_is_opened_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace.sqlite"
    with closing(File(path, PageSource).db) as db:
        db.execute("CREATE TABLE t (a)")
    opened: list[sqlite3.Connection] = []

    def connect_and_remove(path: Path) -> sqlite3.Connection:
        opened.append(connect(path))
        path.unlink()
        return opened[0]

    monkeypatch.setattr("flame.core.readers.sqlite.rows.connect", connect_and_remove)
    with pytest.raises(FileNotFoundError):
        PageSource(path)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")
