"""No file gives more rows and texts than it has room for, whichever reader reads it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from flame.core.compiled.library import compiled
from flame.core.errors import InputError
from flame.core.loading.many import load
from flame.core.readers.nsys.glance import glance
from flame.core.readers.sqlite.connection import connect
from flame.core.readers.sqlite.numbering import RowNumbers, TextNumbers
from flame.core.readers.sqlite.pages import PageSource
from flame.core.readers.sqlite.rows import SqliteSource
from flame.core.readers.sqlite.source import ROWID, TEXT, TableKey, TableQuery
from tests.fuzz.checks import run
from tests.fuzz.target import Target
from tests.support.compiled import only_numpy
from tests.support.hostile.overlapping import (
    COLUMNS,
    HOSTILE,
    SHARED_LEAVES,
    SMALL,
    TABLE,
    overlapping_rows,
    shared_overflow,
    shared_schema,
)

Source = type[PageSource] | type[SqliteSource]
SOURCES: dict[str, Source] = {
    "compiled": PageSource,
    "numpy": PageSource,
    "SQLite": SqliteSource,
}


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> Iterator[Source]:
    """Every kind of source, and what decodes for it."""
    if request.param == "compiled" and compiled() is None:
        pytest.skip("the compiled library was not built")
    with only_numpy() if request.param == "numpy" else nullcontext():
        yield SOURCES[request.param]


def bounded(path: Path, check: Callable[[bytes], None]) -> None:
    """Check that ``check`` of the file takes little memory: see `tests.fuzz.checks`."""
    run(Target("bounds", list, check), path.read_bytes())


def read_all(source: PageSource | SqliteSource) -> list[str]:
    """Read the table as columns and as rows; what it is refused with."""
    key = TableKey([TEXT], RowNumbers(1), "text", TextNumbers())
    refusals = []
    for read in (
        lambda: list(source.chunks(TableQuery(TABLE, ["start", "end", ROWID], key))),
        lambda: list(source.rows(TABLE, ["start", "text"])),
    ):
        try:
            read()
        except sqlite3.Error as error:
            refusals.append(str(error))
    return refusals


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_used_many_times_takes_no_memory(name: str, source: Source, tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    path.write_bytes(HOSTILE[name]())

    def check(_: bytes) -> None:
        with closing(source(path)) as opened:
            allowed = SMALL if isinstance(opened, SqliteSource) else [SHARED_LEAVES]
            assert read_all(opened) or name in allowed

    bounded(path, check)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_trace_of_which_parts_are_used_many_times_is_damaged(name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    path.write_bytes(HOSTILE[name]())

    def check(_: bytes) -> None:
        with pytest.raises(InputError, match=r"damaged: .*; export the report again"):
            load(path)

    bounded(path, check)


@pytest.mark.parametrize(("size", "leaves"), [(512, 9), (1024, 5), (4096, 2), (65536, 1)])
def test_rows_of_one_page_that_overlap_are_damage(size: int, leaves: int, tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    path.write_bytes(overlapping_rows(size, leaves))
    for left_out in (nullcontext(), only_numpy()):
        overlap = pytest.raises(sqlite3.DatabaseError, match="rows of a page overlap")
        with left_out, closing(PageSource(path)) as opened, overlap:
            list(opened.chunks(TableQuery(TABLE, ["start"])))


def test_overflow_pages_are_counted_whatever_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    path.write_bytes(shared_overflow(512, 6, 9))
    for left_out in (nullcontext(), only_numpy()):
        shared = pytest.raises(sqlite3.DatabaseError, match="rows share their pages")
        with left_out, closing(PageSource(path)) as opened, shared:
            list(opened.chunks(TableQuery(TABLE, ["start"])))


def test_a_schema_of_more_bytes_than_the_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    path.write_bytes(shared_schema())
    with pytest.raises(sqlite3.DatabaseError, match="rows share their pages"):
        connect(path)
    assert glance(path) == ()


@pytest.mark.parametrize(
    "definition",
    [
        pytest.param(
            f"CREATE VIEW {TABLE} AS SELECT a.start, a.text || b.start AS text FROM t AS a, t AS b",
            marks=pytest.mark.deep,
        ),
        f"CREATE VIEW {TABLE} AS SELECT start, hex(zeroblob(450000)) || start AS text FROM t",
        f"CREATE VIEW {TABLE} AS SELECT start, zeroblob(900000000) AS text FROM t",
        f"ALTER TABLE t RENAME TO {TABLE};"
        f"ALTER TABLE {TABLE} RENAME COLUMN text TO other;"
        f"ALTER TABLE {TABLE} ADD COLUMN text DEFAULT '{'x' * 900_000}'",
    ],
    ids=["pairs", "long texts", "longer texts than the file", "defaults"],
)
def test_what_is_computed_is_bounded(definition: str, source: Source, tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"CREATE TABLE t ({COLUMNS})")
        rows = ((number, number, 59, 7, "") for number in range(5000))
        database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
        database.executescript(definition)
        database.commit()

    def check(_: bytes) -> None:
        with closing(source(path)) as opened:
            assert len(read_all(opened)) == 2

    bounded(path, check)


@pytest.mark.parametrize("page_size", [512, 1024, 4096, 65536])
@pytest.mark.parametrize("vacuum", ["NONE", "FULL"])
@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_files_with_holes_are_whole(
    page_size: int, vacuum: str, journal: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA page_size = {page_size}")
        database.execute(f"PRAGMA auto_vacuum = {vacuum}")
        database.execute(f"PRAGMA journal_mode = {journal}")
        database.execute(f"CREATE TABLE {TABLE} ({COLUMNS})")
        rows = [(n, n, 59, 7, "x" * (n % 97 if n % 50 else 3000)) for n in range(2000)]
        database.executemany(f"INSERT INTO {TABLE} VALUES (?, ?, ?, ?, ?)", rows)
        database.execute(f"DELETE FROM {TABLE} WHERE start % 7 = 0")
        database.execute(f"UPDATE {TABLE} SET text = text || 'long' WHERE start % 3 = 0")
        database.execute(f"UPDATE {TABLE} SET text = substr(text, 9) WHERE start % 5 = 0")
        database.executemany(f"INSERT INTO {TABLE} VALUES (?, ?, ?, ?, ?)", rows[:300])
        database.commit()
        expected = database.execute(f"SELECT start, text FROM {TABLE}").fetchall()
    for left_out in (nullcontext(), only_numpy()):
        with left_out, closing(PageSource(path)) as opened:
            key = TableKey([TEXT], RowNumbers(1), "text", TextNumbers())
            query = TableQuery(TABLE, ["start"], key)
            found = [start for chunk in opened.chunks(query) for start in chunk["start"].tolist()]
            assert key.texts is not None
            assert {text.decode() for text in key.texts} == {text for _, text in expected}
        assert found == [start for start, _ in expected]
