"""Files that are odd but whole, which flame must open; each maker writes one into a folder."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tests.support.hostile.bad_files import (
    CHAINS,
    KERNEL,
    NVTX,
    RUNTIME,
    Maker,
    altered,
    changed,
    plain,
    remade,
    tables,
    without_tables,
)
from tests.support.writers.nsysfile import NsysFile, gtid

_ROW = "(start, end, eventType, globalTid, text) VALUES (?, ?, 59, ?, ?)"


def _without_rows(folder: Path) -> Path:
    path = plain(folder)
    with closing(sqlite3.connect(path)) as database:
        for name in tables(database):
            database.execute(f"DELETE FROM {name}")
        database.commit()
    return path


def wal_mode(folder: Path) -> Path:
    """A trace in WAL mode, everything checkpointed and the log gone: how some writers leave it."""
    return changed("PRAGMA journal_mode = WAL")(folder)


def with_beside(name: str, data: bytes) -> Maker:
    """The small trace with another file beside it."""

    def make(folder: Path) -> Path:
        path = plain(folder)
        (folder / name).write_bytes(data)
        return path

    return make


def nested(depth: int) -> Maker:
    """``depth`` ranges within each other on one thread, and one kernel launched inside them all."""

    def make(folder: Path) -> Path:
        path = folder / "trace.sqlite"
        with NsysFile(path) as file:
            file.create(NVTX)
            rows = ((i, 3 * depth - i, gtid(100, 100), f"level {i % 5}") for i in range(depth))
            file.db.executemany(f"INSERT INTO {NVTX} {_ROW}", rows)
            file.api("cudaLaunchKernel", depth + 5, depth + 6)
            file.kernel("gemm", depth + 10, depth + 20)
        return path

    return make


def _deep_chain(folder: Path) -> Path:
    path = plain(folder)
    with closing(sqlite3.connect(path)) as database:
        columns = "id, symbol, module, unresolved, stackDepth"
        rows = ((1, 1, 1, 0, depth) for depth in range(10, 20_000))
        database.executemany(f"INSERT INTO {CHAINS} ({columns}) VALUES (?, ?, ?, ?, ?)", rows)
        database.commit()
    return path


def _graph_cycles(folder: Path) -> Path:
    path = folder / "trace.sqlite"
    with NsysFile(path) as file:
        for node in range(1, 6):
            file.node(node, node % 5 + 1, start=5)
        file.node(7, 7, start=1)
        file.node(8, 9, start=1)
        for node in range(12):
            file.kernel("gemm", 10 * node, 10 * node + 4, graph_node=node)
    return path


HOSTILE_TEXTS = {
    "NUL in names": "'a' || char(0) || 'b'",
    "names not in UTF-8": "CAST(x'ff41fe' AS TEXT)",
    "surrogates in names": "CAST(x'eda080' AS TEXT)",
    "escape sequences in names": "char(27) || '[31m' || char(10) || char(8238)",
    "names of a million characters": "replace(hex(zeroblob(500000)), '00', 'a<')",
    "names of open brackets": "replace(hex(zeroblob(20000)), '00', '_Z<(')",
    "blobs as names": "x'00ff00'",
    "numbers as names": "5",
}

_ODD_NUMBERS = {
    "text": "'soon'",
    "blob": "x'ff00'",
    "float": "1.5e3",
    "huge float": "1e300",
    "infinity": "9e999",
    "largest": "9223372036854775807",
    "smallest": "-9223372036854775808",
    "negative": "-5",
    "null": "NULL",
}

_COLUMNS = (
    "start",
    "end",
    "deviceId",
    "streamId",
    "correlationId",
    "globalPid",
    "shortName",
    "graphNodeId",
)


def _odd_values() -> Iterator[tuple[str, Maker]]:
    """Every odd number in every column that matters of the kernels, 10 rows left as they are."""
    for title, value in _ODD_NUMBERS.items():
        for column in _COLUMNS:
            select = f"CREATE TABLE {KERNEL} AS SELECT * FROM old"
            update = f"UPDATE {KERNEL} SET {column} = {value} WHERE rowid > 10"
            rename = f"ALTER TABLE {KERNEL} RENAME TO old"  # a copy has no NOT NULL
            yield f"{title} in {column}", changed(rename, select, update)
    for column in _COLUMNS:
        drop = f"ALTER TABLE {KERNEL} DROP COLUMN {column}"
        yield f"no column {column}", changed(drop)


ACCEPTED: dict[str, Maker] = {
    "as it should be": plain,
    "in WAL mode, log gone": wal_mode,
    "log beside a database that has none": with_beside("trace.sqlite-wal", b"x" * 5_000),
    "no journal but its name": with_beside("trace.sqlite-journal", b"x" * 5_000),
    "finished journal": with_beside("trace.sqlite-journal", bytes(5_000)),
    "bytes after the end": altered(lambda data: data + bytes(5_000)),
    "deep ranges": nested(20_000),
    "deep call chain": _deep_chain,
    "cycles of graph nodes": _graph_cycles,
    "kernels before their launch": changed(
        f"UPDATE {KERNEL} SET start = start - 100000, end = end - 100000"
    ),
    "kernels that end before they start": changed(f"UPDATE {KERNEL} SET end = start - 7"),
    "absurd calls": changed(f"UPDATE {RUNTIME} SET start = -1 << 63, end = (1 << 62) * 1.9"),
    "calls without end": remade(
        f"CREATE TABLE {RUNTIME} AS SELECT start, NULL AS end, globalTid, nameId FROM old", RUNTIME
    ),
    "absurd ranges": changed(f"UPDATE {NVTX} SET start = -1 << 63, end = 1 << 62 WHERE rowid > 9"),
    "ranges of odd types": changed(
        f"UPDATE {NVTX} SET text = 1.5, textId = 2.5, domainId = 'x', category = x'00'"
    ),
    "odd payloads": changed(
        f"UPDATE {NVTX} SET uint64Value = 9e999, int64Value = 'x', "
        "jsonText = replace(hex(zeroblob(20000)), '00', '[')"
    ),
    "view as a table": remade(f"CREATE VIEW {KERNEL} AS SELECT * FROM old"),
    "view with indexes": changed(
        f"ALTER TABLE {NVTX} RENAME TO old",
        f"CREATE VIEW {NVTX} AS SELECT * FROM old",
        "CREATE INDEX by_text ON old (text)",
        "CREATE INDEX by_time ON old (start, end, eventType, globalTid, textId, domainId)",
    ),
    "index on texts": changed(f"CREATE INDEX by_text ON {NVTX} (text)"),
    "trigger": changed(
        f"CREATE TRIGGER cleared AFTER INSERT ON {KERNEL} BEGIN DELETE FROM {NVTX}; END"
    ),
    "generated column": changed(
        f"ALTER TABLE {KERNEL} RENAME TO old",
        f"CREATE TABLE {KERNEL} (start, took, shortName, end AS (start + took) VIRTUAL)",
        f"INSERT INTO {KERNEL} SELECT start, end - start, shortName FROM old",
    ),
    "table without rowid": changed(
        f"ALTER TABLE {KERNEL} RENAME TO old",
        f"CREATE TABLE {KERNEL} (shortName, start, end, PRIMARY KEY (start)) WITHOUT ROWID",
        f"INSERT INTO {KERNEL} SELECT shortName, start, end FROM old",
    ),
    "virtual table": changed(
        f"ALTER TABLE {KERNEL} RENAME TO old",
        f"CREATE VIRTUAL TABLE {KERNEL} USING rtree (id, start, end)",
        f"INSERT INTO {KERNEL} VALUES (1, 5, 9)",
    ),
    "column called rowid": changed(
        f"ALTER TABLE {KERNEL} ADD COLUMN ROWID",
        f"UPDATE {KERNEL} SET ROWID = 5 WHERE start < 9000",
    ),
    "rowids far apart": changed(
        f"UPDATE {KERNEL} SET rowid = 9223372036854775807 WHERE rowid = 3",
        f"UPDATE {KERNEL} SET rowid = -9223372036854775807 WHERE rowid = 2",
    ),
    "columns in other case": changed(
        f"ALTER TABLE {KERNEL} RENAME COLUMN start TO Start",
    ),
    "table in other case": changed(
        f"ALTER TABLE {KERNEL} RENAME TO old", f"ALTER TABLE old RENAME TO {KERNEL.lower()}"
    ),
    "no strings": changed("DROP TABLE StringIds"),
    "no names": changed(
        "ALTER TABLE StringIds RENAME TO old",
        "CREATE TABLE StringIds AS SELECT id, NULL AS value FROM old",
        f"UPDATE {NVTX} SET text = NULL, textId = NULL",
    ),
    "string ids as text": changed(
        "DROP TABLE StringIds",
        "CREATE TABLE StringIds (id TEXT, value TEXT)",
        "INSERT INTO StringIds VALUES ('1', 'gemm')",
    ),
    "string ids twice": changed(
        "ALTER TABLE StringIds RENAME TO old",
        "CREATE TABLE StringIds AS SELECT * FROM old UNION ALL SELECT id, 'again' FROM old",
    ),
    "no rows": _without_rows,
    "only ranges": without_tables(NVTX),
    "only calls": without_tables(RUNTIME),
    "only kernels": without_tables(KERNEL),
    "only strings": without_tables("StringIds"),
    **dict(_odd_values()),
    **{
        title: changed(f"UPDATE StringIds SET value = {text}", f"UPDATE {NVTX} SET text = {text}")
        for title, text in HOSTILE_TEXTS.items()
    },
}
"""What must open: odd, but every sum can be told."""

NAMES = (
    "with spaces.sqlite",
    "with\nnewline.sqlite",
    "quo'te\"s.sqlite",
    "100%?mode=rwc#&.sqlite",
    "%41%00.sqlite",
    "file:trace.sqlite?vfs=none",
    ":memory:",
    "-dash",
    "~",
    "tab\tand\x1b[31mcolour",
    "trace.nsys-rep",
    "notes.txt",
    "\u202eetirw.sqlite",
    "x" * 255,
    os.fsdecode(b"\xff\xfe.sqlite"),
)
"""File names under which a valid trace must open."""
