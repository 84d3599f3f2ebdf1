"""Files that flame must refuse, and odd ones that it must read: each maker writes one into a folder."""

from __future__ import annotations

import gzip
import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from tests.nsysfile import DTOH, HTOD, NsysFile, gtid

Maker = Callable[[Path], Path]
"""Writes into the folder it is given and returns the path to open."""

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
NVTX = "NVTX_EVENTS"
CHAINS = "CUDA_CALLCHAINS"
PAGE = 4096

INSERT_RANGE = (
    f"INSERT INTO {NVTX} (start, end, eventType, globalTid, text) VALUES (?, ?, 59, ?, ?)"
)


def write_trace(path: Path) -> Path:
    """A small trace with a bit of everything: 32 activities in 1,040 ns of GPU time."""
    with NsysFile(path) as file:
        file.process(100, "python")
        file.gpu(0, "NVIDIA H100", pid=100)
        file.domain(1, "layers")
        for step in range(30):
            at = 1_000 * step
            file.nvtx(f"step {step % 7}", at, at + 900)
            file.nvtx("inner", at + 100, at + 400, domain=1, registered=True)
            file.api(
                "cudaLaunchKernel_v7000", at + 150, at + 200, corr=step + 1, chain=step % 5 + 1
            )
            file.kernel(f"kernel_{step % 11}", at + 300, at + 330 + step % 7, corr=step + 1)
        for chain in range(1, 6):
            leaf = ("cuLaunchKernel", "/usr/lib/libcuda.so", False)
            file.chain(chain, [leaf, ("[Python] main", "/app/main.py", False)])
        file.memcpy(HTOD, 5, 50, corr=None)
        file.memcpy(DTOH, 60, 70, corr=None)
    return path


def plain(folder: Path) -> Path:
    """The small trace as it is."""
    return write_trace(folder / "trace.sqlite")


def content(data: bytes, name: str = "trace.sqlite") -> Maker:
    """A file that holds just ``data``."""

    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(data)
        return path

    return make


def altered(change: Callable[[bytes], bytes]) -> Maker:
    """The small trace with its bytes changed."""

    def make(folder: Path) -> Path:
        path = plain(folder)
        path.write_bytes(change(path.read_bytes()))
        return path

    return make


def patched(offset: int, data: bytes) -> Maker:
    """The small trace with ``data`` at ``offset``."""
    return altered(lambda whole: whole[:offset] + data + whole[offset + len(data) :])


def changed(*statements: str) -> Maker:
    """The small trace after some SQL."""

    def make(folder: Path) -> Path:
        path = plain(folder)
        with closing(sqlite3.connect(path)) as database:
            for statement in statements:
                database.execute(statement)
            database.commit()
        return path

    return make


def with_schema(sql: str, table: str = KERNEL) -> Maker:
    """The small trace with another definition of ``table`` in its schema."""
    return changed(
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_master SET sql = '{sql}' WHERE name = '{table}'",
    )


def remade(definition: str, table: str = KERNEL) -> Maker:
    """The small trace with ``table`` made anew by ``definition``, the old one kept as ``old``."""
    return changed(f"ALTER TABLE {table} RENAME TO old", definition)


def without_tables(keep: str) -> Maker:
    """The small trace with no other table than ``keep``."""

    def make(folder: Path) -> Path:
        path = plain(folder)
        with closing(sqlite3.connect(path)) as database:
            for name in _tables(database):
                if name != keep:
                    database.execute(f"DROP TABLE {name}")
            database.commit()
        return path

    return make


def _without_rows(folder: Path) -> Path:
    path = plain(folder)
    with closing(sqlite3.connect(path)) as database:
        for name in _tables(database):
            database.execute(f"DELETE FROM {name}")
        database.commit()
    return path


def _tables(database: sqlite3.Connection) -> list[str]:
    rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return [name for (name,) in rows.fetchall()]


def _directory(folder: Path) -> Path:
    path = folder / "trace.sqlite"
    path.mkdir()
    return path


def _link(target: str) -> Maker:
    def make(folder: Path) -> Path:
        path = folder / "trace.sqlite"
        path.symlink_to(target)
        return path

    return make


def _below_a_file(folder: Path) -> Path:
    return plain(folder) / "trace.sqlite"


def _compressed(folder: Path) -> Path:
    path = plain(folder)
    path.write_bytes(gzip.compress(path.read_bytes()))
    return path


def _other_database(folder: Path) -> Path:
    path = folder / "bookmarks.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE bookmarks (url TEXT)")
    return path


def _in_utf16(folder: Path) -> Path:
    path = folder / "trace.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA encoding = 'UTF-16'")
        database.execute("CREATE TABLE first (a)")
    return write_trace(path)


def wal_mode(folder: Path) -> Path:
    """A trace in WAL mode, everything checkpointed and the log gone: how some writers leave it."""
    return changed("PRAGMA journal_mode = WAL")(folder)


def with_unmerged_wal(folder: Path) -> Path:
    """A trace in WAL mode whose last changes are still in the log, as after a crash."""
    return _crashed(folder, "PRAGMA journal_mode = WAL")


def with_hot_journal(folder: Path) -> Path:
    """A trace whose last transaction was cut off by a crash: it would have to be rolled back."""
    return _crashed(folder, "PRAGMA cache_size = 1")


def _crashed(folder: Path, pragma: str) -> Path:
    """Copy a database and its journals in the middle of a transaction."""
    live = folder / "live"
    live.mkdir()
    path = plain(live)
    with closing(sqlite3.connect(path)) as database:
        database.execute(pragma)
        database.execute("CREATE TABLE more (a)")
        database.commit()
        # Too much for the cache: the database file itself is written before the commit.
        rows = [("x" * 2_000,) for _ in range(100)]
        database.executemany("INSERT INTO more VALUES (?)", rows)
        for file in (path, Path(f"{path}-wal"), Path(f"{path}-journal")):
            if file.exists():
                (folder / file.name).write_bytes(file.read_bytes())
        database.rollback()
    for left in live.iterdir():
        left.unlink()
    live.rmdir()
    return folder / path.name


def _linked_with_unmerged_wal(folder: Path) -> Path:
    target = folder / "target"
    target.mkdir()
    path = folder / "trace.sqlite"
    path.symlink_to(with_unmerged_wal(target))
    return path


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
            file.db.executemany(INSERT_RANGE, rows)
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


REFUSED: dict[str, tuple[Maker, str]] = {
    "missing": (lambda folder: folder / "trace.sqlite", "no such file"),
    "below a file": (_below_a_file, "cannot be read: Not a directory"),
    "directory": (_directory, "is a folder"),
    "dangling link": (_link("nowhere.sqlite"), "no such file"),
    "link to itself": (_link("trace.sqlite"), "symbolic links"),
    "device": (_link("/dev/null"), "not a regular file"),
    "endless device": (_link("/dev/zero"), "not a regular file"),
    "name with a NUL": (lambda folder: folder / "trace\0.sqlite", "null"),
    "name too long": (lambda folder: folder / ("x" * 300), "name too long"),
    "empty": (content(b""), "the file is empty"),
    "one byte": (content(b"S"), "not a trace"),
    "random bytes": (content(random.Random(1).randbytes(50_000)), "not a trace"),
    "zeros": (content(bytes(50_000)), "not a trace"),
    "text": (content(b"main;forward;gemm 12\n", "notes.txt"), "not a trace"),
    "picture": (content(b"\x89PNG\r\n\x1a\n" + bytes(500), "plot.png"), "not a trace"),
    "compressed trace": (_compressed, "not a trace"),
    "first bytes of a database": (content(b"SQLite format 3\0"), "cut off: 16 of"),
    "header of a database": (altered(lambda data: data[:100]), "cut off: 100 of"),
    "header, then nonsense": (altered(lambda data: data[:100] + b"\xaa" * len(data)), "damaged"),
    "another program's database": (_other_database, "not an Nsight Systems export"),
    "page size that is none": (patched(16, b"\x00\x07"), "damaged|cut off"),
    "page size too small": (patched(16, b"\x02\x00"), "damaged"),
    "page size too large": (patched(16, b"\x00\x01"), "damaged|cut off"),
    "format of the future": (patched(18, b"\x09\x09"), "damaged"),
    "reserved bytes": (patched(20, b"\xff"), "damaged"),
    "schema page overwritten": (patched(100, bytes(PAGE - 100)), "damaged"),
    "schema that does not parse": (with_schema("CREATE TABLE oops("), "damaged: malformed"),
    "schema that is no text": (with_schema("CREATE TABLE \n\x01("), "damaged: malformed"),
    "unknown table module": (with_schema("CREATE VIRTUAL TABLE t USING odd(a)"), "damaged"),
    "in UTF-16": (_in_utf16, "UTF-16"),
    "unmerged write-ahead log": (with_unmerged_wal, "last changes are in trace.sqlite-wal"),
    "unmerged log behind a link": (_linked_with_unmerged_wal, "in trace.sqlite-wal"),
    "hot journal": (with_hot_journal, "last changes are in trace.sqlite-journal"),
    "view of itself": (remade(f"CREATE VIEW {KERNEL} AS SELECT * FROM {KERNEL}"), "circular"),
    "view of a lost table": (remade(f"CREATE VIEW {KERNEL} AS SELECT * FROM gone"), "gone"),
    "endless view": (
        remade(
            f"CREATE VIEW {KERNEL} AS WITH RECURSIVE n(start) AS "
            "(SELECT 1 UNION ALL SELECT start + 1 FROM n) SELECT start, start + 1 AS end FROM n"
        ),
        "not authorized",
    ),
    "view that would load code": (
        remade(f"CREATE VIEW {KERNEL} AS SELECT load_extension('x') AS start"),
        "load_extension",
    ),
    "only tables that others have too": (without_tables("PROCESSES"), "not an Nsight Systems"),
    "centuries of kernels": (
        changed(f"UPDATE {KERNEL} SET start = 0, end = 2305843009213693951"),
        "more than a century",
    ),
    "centuries of calls": (
        changed(
            f"UPDATE {RUNTIME} SET start = -2305843009213693951, end = 2305843009213693951, "
            "globalTid = globalTid + rowid"
        ),
        "more than a century",
    ),
}
"""What must end in one clear line (the pattern is in it)."""

_HOSTILE_TEXTS = {
    "NUL in names": "'a' || char(0) || 'b'",
    "names not in UTF-8": "CAST(x'ff41fe' AS TEXT)",
    "surrogates in names": "CAST(x'eda080' AS TEXT)",
    "escape sequences in names": "char(27) || '[31m' || char(10) || char(8238)",
    "names of a million characters": "replace(hex(zeroblob(500000)), '00', 'a<')",
    "names of open brackets": "replace(hex(zeroblob(20000)), '00', '_Z<(')",
    "blobs as names": "x'00ff00'",
    "numbers as names": "5",
    "no names": "NULL",
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

_COLUMNS = "start end deviceId streamId correlationId globalPid shortName graphNodeId".split()


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
    "no suffix": content(b"", "unused"),
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
        "CREATE INDEX by_time ON old (start, end, eventType, globalTid, textId, domainId, category)",
    ),
    "index on texts": changed(f"CREATE INDEX by_text ON {NVTX} (text)"),
    "trigger": changed(
        f"CREATE TRIGGER cleared AFTER INSERT ON {KERNEL} BEGIN DELETE FROM {NVTX}; END"
    ),
    "generated column": changed(
        f"ALTER TABLE {KERNEL} RENAME TO old",
        f"CREATE TABLE {KERNEL} (start, took, shortName, end AS (start + took) VIRTUAL)",
        f"INSERT INTO {KERNEL} (start, took, shortName) SELECT start, end - start, shortName FROM old",
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
        for title, text in _HOSTILE_TEXTS.items()
    },
}
"""What must open: odd, but every sum can be told."""


def mutated(data: bytes, seed: int) -> bytes:
    """``data`` with a few bits, header bytes or page headers changed, or with pages exchanged."""
    draw, changing = random.Random(seed), bytearray(data)
    pages = len(data) // PAGE
    if seed % 4 == 0:
        for _ in range(draw.choice([1, 3, 30])):
            changing[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif seed % 4 == 1:
        changing[draw.randrange(100)] = draw.randrange(256)
    elif seed % 4 == 2:
        changing[draw.randrange(1, pages) * PAGE + draw.randrange(12)] = draw.randrange(256)
    else:
        here, there = draw.randrange(pages) * PAGE, draw.randrange(pages) * PAGE
        changing[here : here + PAGE] = data[there : there + PAGE]
    return bytes(changing)


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
