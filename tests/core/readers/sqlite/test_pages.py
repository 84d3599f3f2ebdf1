"""The page reader says exactly what SQLite says, for any table and any page size."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.compiled.library import compiled
from flame.core.readers.sqlite import pages
from flame.core.readers.sqlite.btree import LEAF, PageFile, UnsupportedError
from flame.core.readers.sqlite.cells import count_rows
from flame.core.readers.sqlite.numbering import RowNumbers, Stripping, TextNumbers
from flame.core.readers.sqlite.pages import PageSource
from flame.core.readers.sqlite.rows import SqliteSource
from flame.core.readers.sqlite.source import (
    FILLED,
    NULL,
    NUMBER,
    ROWID,
    TEXT,
    TableKey,
    TableQuery,
    TableSource,
)
from tests.conftest import EVERY_NSYS_TRACE, needs_traces
from tests.support.compiled import only_numpy
from tests.support.tiers import examples

TABLES = {
    "CUPTI_ACTIVITY_KIND_KERNEL": ["start", "end", "globalPid", "graphNodeId", "mangledName"],
    "CUPTI_ACTIVITY_KIND_MEMCPY": ["start", "bytes", "copyKind", "missing"],
    "CUPTI_ACTIVITY_KIND_MEMSET": ["start", "end", "value"],
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": ["start", "end", "graphId"],
    "CUPTI_ACTIVITY_KIND_RUNTIME": ["start", "end", "eventClass", "nameId", "callchainId"],
    "CUDA_CALLCHAINS": ["id", "symbol", "module", "stackDepth"],
    "NVTX_EVENTS": ["start", "end", "eventType", "globalTid", "textId", "domainId"],
    "StringIds": ["id"],
}
NOTHING = np.zeros(0, np.int64)
SMALL = st.integers(-130, 130)
ANY = st.one_of(SMALL, st.integers(-(1 << 63), (1 << 63) - 1), st.none())
WORDS = st.one_of(st.none(), st.text(max_size=8), st.integers(50, 62).map("x".__mul__))
ODD = st.one_of(st.floats(allow_nan=False), st.text(max_size=3), st.binary(max_size=3), ANY)


def read(source: TableSource, table: str, ints: list[str], text: str = "text") -> list[list[int]]:
    """All rows as lists; texts as the numbers in which they first came, -1 for none."""
    key = TableKey([TEXT, *ints[:1]], RowNumbers(2), text, TextNumbers())
    chunks = list(source.chunks(TableQuery(table, ints, key)))
    columns = [np.concatenate([chunk[name] for chunk in chunks] or [NOTHING]) for name in ints]
    numbers = np.concatenate([chunk[NUMBER] for chunk in chunks] or [np.zeros(0, np.int32)])
    texts, again = key.rows.rows()[numbers].T
    assert again.tolist() == columns[0].tolist()
    return [list(row) for row in zip(*(one.tolist() for one in (*columns, texts)), strict=True)]


def both(path: Path, table: str, ints: list[str]) -> list[list[int]]:
    """The rows, after checking that both sources give the same."""
    with closing(PageSource(path)) as fast, closing(SqliteSource(path)) as plain:
        rows = read(fast, table, ints)
        assert rows == read(plain, table, ints)
    return rows


@pytest.fixture(params=["compiled", "numpy"], autouse=True)
def decoder(request: pytest.FixtureRequest) -> Iterator[None]:
    """What decodes pages: every test is for both."""
    if request.param == "compiled" and compiled() is None:
        pytest.skip("the compiled library was not built")
    with only_numpy() if request.param == "numpy" else nullcontext():
        yield


@needs_traces
@pytest.mark.parametrize("name", EVERY_NSYS_TRACE)
def test_real_traces_read_the_same(name: str, nsys_trace: Callable[[str], Path]) -> None:
    for table, ints in TABLES.items():
        both(nsys_trace(name), table, ints)


@pytest.fixture
def only_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving a chunk or a table to SQLite is an error."""

    def refuse(*args: object) -> None:
        raise AssertionError("left to SQLite")

    monkeypatch.setattr(SqliteSource, "chunks_between", refuse)
    monkeypatch.setattr(SqliteSource, "chunks", refuse)


def made(
    path: Path, rows: Sequence[tuple[object, ...]], page_size: int = 4096, more: str = ""
) -> Path:
    """A table ``t`` (a, b, text) with ``rows``, then whatever ``more`` does."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {page_size}")
        connection.execute("CREATE TABLE t (a INTEGER, b INTEGER, text TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.executescript(more)
        connection.commit()
    return path


@pytest.mark.usefixtures("only_pages")
@pytest.mark.parametrize("page_size", [512, 1024, 4096, 65536])
def test_ordinary_tables_are_read_from_their_pages(page_size: int, tmp_path: Path) -> None:
    widths = [0, 1, -1, 127, -128, 32767, 1 << 22, -(1 << 31), 1 << 46, -(1 << 63), (1 << 63) - 1]
    rows = [(a, None, f"range {a % 7}") for a in widths * 300]
    path = made(tmp_path / "t.sqlite", rows, page_size)
    with closing(PageSource(path)) as source:
        found = read(source, "t", ["a", "b", "missing"])
    assert [row[:3] for row in found] == [[a, NULL, NULL] for a in widths * 300]
    assert len({row[3] for row in found}) == len({a % 7 for a in widths})


@examples(0.6, [HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(ANY, ANY, WORDS), max_size=60),
    page_size=st.sampled_from([512, 4096, 65536]),
)
def test_random_tables_read_the_same(
    rows: list[tuple[object, ...]], page_size: int, tmp_path: Path
) -> None:
    found = both(made(tmp_path / "t.sqlite", rows * 7, page_size), "t", ["a", "b"])
    assert [row[0] for row in found] == [NULL if row[0] is None else row[0] for row in rows * 7]


@examples(0.6, [HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(ODD, ODD, ODD), max_size=40))
def test_odd_values_are_left_to_sqlite(rows: list[tuple[object, ...]], tmp_path: Path) -> None:
    assert len(both(made(tmp_path / "t.sqlite", rows), "t", ["a", "b"])) == len(rows)


@pytest.mark.parametrize(
    "more",
    [
        "ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 7; INSERT INTO t VALUES (1, 2, 'new', 3);",
        "DELETE FROM t WHERE a % 3 = 0;",
        "DELETE FROM t;",
        "INSERT INTO t VALUES (1, 2, printf('%.*c', 100000, 'x'));",
        "UPDATE t SET rowid = rowid * 1000000007;",
        "UPDATE t SET rowid = -rowid;",
        "ALTER TABLE t RENAME TO old; CREATE VIEW t AS SELECT b AS a, a AS b, text FROM old;",
        "ALTER TABLE t RENAME TO old; CREATE TABLE t (a INTEGER PRIMARY KEY, b INT, text TEXT);"
        "INSERT INTO t SELECT a, b, text FROM old;",
        "ALTER TABLE t RENAME TO old;"
        "CREATE TABLE t (a INT, b INT, text TEXT, PRIMARY KEY (a)) WITHOUT ROWID;"
        "INSERT INTO t SELECT a, b, text FROM old;",
        "ALTER TABLE t RENAME TO old; CREATE TABLE t (a INT, b INT AS (a * 2) STORED, text TEXT);"
        "INSERT INTO t (a, text) SELECT a, text FROM old;",
        "ALTER TABLE t RENAME TO old; CREATE TABLE t (a INT, b INT, text TEXT, rowid INT);"
        "INSERT INTO t SELECT a, b, text, -a FROM old;",
    ],
)
def test_unusual_tables_read_the_same(more: str, tmp_path: Path) -> None:
    rows = [(a, a * a, f"text {a}") for a in range(2000)]
    both(made(tmp_path / "t.sqlite", rows, 1024, more), "t", ["a", "b", "c"])


def test_a_chunk_that_is_left_to_sqlite_stands_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_BATCH", 4096)
    rows: list[tuple[object, ...]]
    rows = [(a, "7" if a == 900 else a, "x" * (a % 90)) for a in range(2000)]
    rows[1200] = (1200, 0.5, "real")
    found = both(made(tmp_path / "t.sqlite", rows, 512), "t", ["a", "b"])
    assert [row[0] for row in found] == list(range(2000))


def test_chunks_of_rowids_of_nine_bytes_stand_in_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_BATCH", 4096)
    rows = [(a, "7" if a % 300 == 0 else a, "x" * (a % 90)) for a in range(2000)]
    path = made(tmp_path / "t.sqlite", rows, 512, "UPDATE t SET rowid = rowid - 1000000;")
    assert [row[0] for row in both(path, "t", ["a", "b"])] == list(range(2000))


@examples(0.8, [HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_is_an_error_or_reads_on_but_never_anything_else(
    data: st.DataObject, tmp_path: Path
) -> None:
    path = made(tmp_path / "t.sqlite", [(a, a * a, f"text {a}") for a in range(400)], 1024)
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(1024, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw)
    try:
        with closing(PageSource(path)) as source:
            rows = read(source, "t", ["a", "b"])
    except sqlite3.Error:
        return
    assert len(rows) <= len(raw)


def asked(source: TableSource, query: TableQuery) -> dict[str, list[int]]:
    """All values of each column that ``query`` asks for."""
    chunks = list(source.chunks(query))
    return {name: [v for chunk in chunks for v in chunk[name].tolist()] for name in chunks[0]}


@pytest.mark.parametrize("more", ["", "UPDATE t SET b = 'seven' WHERE a = 700;"])
def test_rowids_and_what_is_filled(more: str, tmp_path: Path) -> None:
    rows = [(a, None if a % 3 else a, None if a % 5 else "text") for a in range(2000)]
    path = made(tmp_path / "t.sqlite", rows, 1024, f"DELETE FROM t WHERE a % 7 = 0; {more}")
    expected = [a for a in range(2000) if a % 7]
    filled = [int(not (a % 3 and a % 5) or bool(more and a == 700)) for a in expected]
    for kind in (PageSource, SqliteSource):
        key = TableKey([FILLED], RowNumbers(1), filled=["text", "b", "missing"])
        with closing(kind(path)) as source:
            found = asked(source, TableQuery("t", ["a", ROWID], key))
        assert found["a"] == expected
        assert found[ROWID] == [a + 1 for a in expected]
        assert key.rows.rows()[found[NUMBER], 0].tolist() == filled


def test_keys_of_pages_that_are_refused_are_forgotten(tmp_path: Path) -> None:
    rows: list[tuple[object, ...]] = [(a, a, "") for a in range(50)]
    path = made(tmp_path / "t.sqlite", [*rows, ("50", 50, "")], 65536)
    key = TableKey(["b", "missing"], RowNumbers(2))
    with closing(PageSource(path)) as source:
        found = asked(source, TableQuery("t", ["a"], key))
    assert found == {"a": list(range(51)), NUMBER: list(range(51))}
    assert key.rows.rows().tolist() == [[a, NULL] for a in range(51)]


@pytest.mark.parametrize(
    "kind", ["CREATE VIEW v AS SELECT * FROM t", "CREATE TABLE v (a PRIMARY KEY) WITHOUT ROWID"]
)
def test_what_has_no_rowids_says_so(kind: str, tmp_path: Path) -> None:
    path = made(tmp_path / "t.sqlite", [(1, 2, "x")], 1024, f"{kind};")
    with closing(sqlite3.connect(path)) as connection, connection:
        if "TABLE" in kind:
            connection.execute("INSERT INTO v VALUES (1)")
    with closing(PageSource(path)) as source:
        assert asked(source, TableQuery("v", ["a", ROWID])) == {"a": [1], ROWID: [NULL]}


def test_what_does_not_count_is_left_out_of_texts(tmp_path: Path) -> None:
    texts = [f"mul, op_id = {number}" for number in range(50)] + ["exec, op_id = 7", "mul", None]
    path = made(tmp_path / "t.sqlite", [(0, 0, text) for text in texts])
    stripping = Stripping(lambda text: text if text[:1] == b"e" else text[:3], [b"e"])
    for kind in (PageSource, SqliteSource):
        key = TableKey([TEXT], RowNumbers(1), "text", TextNumbers(stripping))
        with closing(kind(path)) as source:
            asked(source, TableQuery("t", ["a"], key))
        assert key.texts is not None
        assert list(key.texts) == [b"mul", b"exec, op_id = 7"]
        assert key.rows.rows().tolist() == [[0], [1], [-1]]


def test_a_page_with_more_rows_than_room_is_damaged(tmp_path: Path) -> None:
    path = made(tmp_path / "t.sqlite", [(a, a, "x" * 90) for a in range(40)], 512)
    raw = bytearray(path.read_bytes())
    leaf = next(at for at in range(1024, len(raw), 512) if raw[at] == LEAF)
    raw[leaf + 3 : leaf + 5] = b"\xff\xff"
    path.write_bytes(raw)
    with pytest.raises(UnsupportedError):
        count_rows(np.frombuffer(raw[leaf : leaf + 512], np.uint8), 1, 512)
    with pytest.raises(sqlite3.Error), closing(PageSource(path)) as source:
        read(source, "t", ["a"])


@pytest.mark.parametrize(
    "row",
    [b"\x01\x01\x01", b"\x19\x01\x04\x09\x01\x80", b"\x0c\x01\x0b\x09\x01" + b"\x80" * 8 + b"\x0d"],
    ids=["empty", "goes on", "goes on for long"],
)
def test_a_header_that_is_empty_or_goes_on_in_the_values_is_damaged(
    row: bytes, tmp_path: Path
) -> None:
    path = made(tmp_path / "t.sqlite", [(1, 13, "x" * 20)], 512)
    raw = path.read_bytes()
    at = raw.index(b"\x19\x01\x04\x09\x01\x35\x0dxxxx")
    path.write_bytes(raw[:at] + row + raw[at + len(row) :])
    for kind in (PageSource, SqliteSource):
        with closing(kind(path)) as source, pytest.raises(sqlite3.Error):
            read(source, "t", ["a", "b"])


LIMITS = [
    sign * (1 << bits) + more for bits in (31, 32, 63) for sign in (-1, 1) for more in (-1, 0, 1)
]
INT64 = [value for value in LIMITS if -(1 << 63) <= value < 1 << 63]


@pytest.mark.usefixtures("only_pages")
def test_columns_wanted_twice_and_limits_of_integers(tmp_path: Path) -> None:
    rows = [(value, -1 - value, f"text {value % 5}") for value in INT64 * 3]
    more = (
        "CREATE TABLE big (a, b, text); INSERT INTO big (rowid, a, b, text) SELECT a, b, a, text "
    )
    more += f"FROM t WHERE rowid <= {len(INT64)} ORDER BY a;"
    path = made(tmp_path / "t.sqlite", rows, 512, more)
    key = TableKey(["a", TEXT, "a", FILLED, "b"], RowNumbers(5), "text", TextNumbers(), ["a", "b"])
    with closing(PageSource(path)) as source:
        found = asked(source, TableQuery("t", ["a", "b", "a", ROWID], key))
        rowids = asked(source, TableQuery("big", [ROWID, "b"]))
    assert list(zip(found["a"], found["b"], strict=True)) == [row[:2] for row in rows]
    assert found[ROWID] == list(range(1, len(rows) + 1))
    assert key.texts is not None
    texts = list(key.texts)
    keys = [key.rows.rows()[number].tolist() for number in found[NUMBER]]
    assert [(a, texts[text].decode(), again, filled, b) for a, text, again, filled, b in keys] == [
        (a, text, a, 1, b) for a, b, text in rows
    ]
    assert len(key.rows) == len(INT64)
    assert rowids == {ROWID: sorted(INT64), "b": sorted(INT64)}


@pytest.mark.usefixtures("only_pages")
def test_keys_of_equal_bytes_are_told_apart_by_where_these_stand(tmp_path: Path) -> None:
    random = np.random.default_rng(11)
    numbers, words = (None, 0, 1, 5, 53, 300), (None, "", "5", "55", "x" * 60, "y" * 130)
    chosen = [
        (numbers[a], numbers[b], words[text]) for a, b, text in random.integers(0, 6, (6_000, 3))
    ]
    path = made(tmp_path / "t.sqlite", chosen)
    for names in (("a", "b", TEXT), ("a", TEXT), ("b", "a"), (TEXT, FILLED)):
        key = TableKey(names, RowNumbers(len(names)), "text", TextNumbers(), ["a"])
        with closing(PageSource(path)) as source:
            found = asked(source, TableQuery("t", ["b"], key))
        assert key.texts is not None
        texts, known = [*(text.decode() for text in key.texts), None], key.rows.rows().tolist()
        told = [
            [texts[one] if name == TEXT else one for name, one in zip(names, row, strict=True)]
            for row in known
        ]
        of_row = [
            {"a": _or_null(a), "b": _or_null(b), TEXT: text, FILLED: int(a is not None)}
            for a, b, text in chosen
        ]
        assert found["b"] == [row["b"] for row in of_row]
        assert [told[at] for at in found[NUMBER]] == [
            [row[name] for name in names] for row in of_row
        ]
        assert len({tuple(row) for row in known}) == len(known)


def _or_null(value: int | None) -> int:
    return NULL if value is None else value


@pytest.mark.parametrize("kind", [10, 11])
def test_types_that_mean_nothing_are_left_to_sqlite(kind: int, tmp_path: Path) -> None:
    path = made(tmp_path / "t.sqlite", [(1, 2, "x")], 512)
    raw = path.read_bytes()
    at = raw.index(b"\x06\x01\x04\x09\x01\x0f\x02x")
    path.write_bytes(raw[: at + 3] + bytes([kind]) + raw[at + 4 :])
    for source_kind in (PageSource, SqliteSource):
        key = TableKey([FILLED], RowNumbers(1), filled=["a"])
        with closing(source_kind(path)) as source:
            assert asked(source, TableQuery("t", ["b"], key)) == {"b": [2], NUMBER: [0]}
        assert key.rows.rows().tolist() == [[0]]


def test_rows_of_nulls_have_the_default_of_a_column_added_later(tmp_path: Path) -> None:
    more = "ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 7;"
    path = made(tmp_path / "t.sqlite", [(None, None, None)] * 3, 512, more)
    assert both(path, "t", ["a", "c"]) == [[NULL, 7, -1]] * 3


@pytest.mark.parametrize(("size", "told"), [(0, False), (10, False), (18, True), (60, True)])
def test_a_file_that_has_been_cut_has_no_pages(size: int, told: bool, tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (a)")
    path.write_bytes(path.read_bytes()[:size])
    with closing(PageFile(path)) as file:
        assert file.is_database == told
        with pytest.raises(UnsupportedError):
            file.read(np.array([1]))
