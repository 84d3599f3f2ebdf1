"""Files that flame must refuse; each maker writes one into a folder."""

from __future__ import annotations

import gzip
import lzma
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.writers.nsysfile import DTOH, HTOD, NsysFile

Maker = Callable[[Path], Path]
"""Writes into the folder it is given and returns the path to open."""

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
NVTX = "NVTX_EVENTS"
CHAINS = "CUDA_CALLCHAINS"
PAGE = 4096


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


@cache
def whole_trace() -> bytes:
    """The small trace, written once."""
    with TemporaryDirectory() as folder:
        return write_trace(Path(folder) / "trace.sqlite").read_bytes()


def plain(folder: Path) -> Path:
    """The small trace as it is."""
    path = folder / "trace.sqlite"
    path.write_bytes(whole_trace())
    return path


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
            for name in tables(database):
                if name != keep:
                    database.execute(f"DROP TABLE {name}")
            database.commit()
        return path

    return make


def tables(database: sqlite3.Connection) -> list[str]:
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


def _cut_in_packed(folder: Path) -> Path:
    path = plain(folder)
    packed = gzip.compress(path.read_bytes())
    path.write_bytes(packed[: len(packed) // 2])
    return path


def _packed_half(folder: Path) -> Path:
    path = plain(folder)
    whole = path.read_bytes()
    path.write_bytes(lzma.compress(whole[: len(whole) // 2]))
    return path


def _packed_other(folder: Path) -> Path:
    path = _other_database(folder)
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
    "packed nothing": (content(gzip.compress(b"")), "what is packed in it is empty"),
    "one byte": (content(b"S"), "not a trace"),
    "random bytes": (content(random.Random(1).randbytes(50_000)), "not a trace"),
    "zeros": (content(bytes(50_000)), "not a trace"),
    "text": (content(b"The kernels are slow.\nWhy?\n", "notes.txt"), "not a trace"),
    "picture": (content(b"\x89PNG\r\n\x1a\n" + bytes(500), "plot.png"), "not a trace"),
    "half of a packed trace": (_cut_in_packed, "damaged: not a whole gzip file"),
    "half a packed trace": (_packed_half, "cut off|damaged"),
    "packed database": (_packed_other, "not an Nsight Systems export"),
    "first bytes of a database": (content(b"SQLite format 3\0"), "cut off: 16 of"),
    "header of a database": (altered(lambda data: data[:100]), "cut off: 100 of"),
    "header, then nonsense": (altered(lambda data: data[:100] + b"\xaa" * len(data)), "damaged"),
    "another program's database": (_other_database, "not an Nsight Systems export"),
    "page size that is none": (patched(16, b"\x00\x07"), "damaged|cut off"),
    "page size too small": (patched(16, b"\x02\x00"), "damaged"),
    "page size too large": (patched(16, b"\x00\x01"), "damaged|cut off"),
    "format of the future": (patched(18, b"\x09\x09"), "damaged"),
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
