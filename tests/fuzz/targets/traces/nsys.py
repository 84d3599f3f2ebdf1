"""Exports of Nsight Systems: SQLite files with other cells, schemas and pages."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress

import numpy as np

from flame.core.analysis.utilization import utilizations
from flame.core.errors import InputError
from flame.core.gpu_metrics.averages import average_over
from flame.core.gpu_metrics.kernels import LaneRows, kernel_times
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from tests.fuzz.checks import FoundError, opens_or_refuses, write
from tests.fuzz.mutations import INTEGERS, LARGE, MORE, TEXTS
from tests.fuzz.target import Target
from tests.support.oracles.plain_sql import recorded_gpu_time
from tests.support.writers.nsysfile import HTOD, NsysFile

PAGE = 512
_ALL_RANGES = LoadOptions(nvtx_start_end=True, nvtx_names="raw")
_REFUSED = (sqlite3.Error, ValueError, OverflowError, IndexError)
"""What is raised of damaged files, of texts that are none, and where there is nothing to choose."""

_TYPES = ("INTEGER", "TEXT", "REAL", "BLOB", "INT NOT NULL DEFAULT 7", "INTEGER UNIQUE")


def check(data: bytes) -> None:
    path = write("trace.sqlite", data)
    profile = opens_or_refuses(path, _ALL_RANGES if len(data) // PAGE % 2 else None)
    if profile is None:
        return
    with suppress(InputError):
        _check_metrics(profile)
    with suppress(*_REFUSED):
        expected = recorded_gpu_time(path)
        if profile.gpu_time != expected:
            raise FoundError(f"GPU time {profile.gpu_time}, by SQLite {expected}")


def _check_metrics(profile: Profile) -> None:
    """GPU metrics stand for no more time than kernels took, and are shares where they say so."""
    times, size = kernel_times(profile), len(profile.activities)
    if times is None:
        return
    lane, rows = np.zeros(size, np.int64), np.arange(size)
    found = times.measure([LaneRows(0, 1, lane, rows)], 1)
    if not 0 <= found.exposure[0] <= found.ran[0]:
        raise FoundError(f"sampled {found.exposure[0]} ns of {found.ran[0]}")
    if any(not 0 <= mean[0] <= 105 for mean in found.means.values() if mean[0] == mean[0]):
        raise FoundError(f"no shares: {found.means}")
    for gpu in utilizations(profile):
        for one in average_over(profile, gpu.device, gpu.windows.low, gpu.windows.high):
            if one.exposure > gpu.length:
                raise FoundError(f"sampled {one.exposure} ns of {gpu.length}")


def _trace(schema: str, fill: Callable[[NsysFile], None]) -> bytes:
    file = NsysFile(":memory:", schema)
    file.db.execute(f"PRAGMA page_size = {PAGE}")
    fill(file)
    file.db.commit()
    file.db.execute("VACUUM")
    data = file.db.serialize()
    file.close()
    return data


def _launches(file: NsysFile) -> None:
    file.nvtx("step", 0, 500)
    file.nvtx("inner", 100, 400, registered=True)
    for number in (1, 2):
        file.api("cudaLaunchKernel_v7000", 120 * number, 120 * number + 9, corr=number, chain=1)
        file.kernel("gemm", 150 * number, 150 * number + 40, corr=number)
    file.chain(1, [("cuLaunchKernel", "libcuda.so", False), ("[Python] main", "a.py", False)])


def _copies(file: NsysFile) -> None:
    file.process(100, "python")
    file.gpu(0, "H100", pid=100)
    file.memcpy(HTOD, 5, 50, corr=None)
    file.memset(60, 70)
    file.node(1, 0, 3)
    file.kernel("node", 10, 20, corr=3, graph_node=1)


def _metrics(file: NsysFile) -> None:
    """A kernel, and metrics of two GPUs, the clock in Hz, with a gap and before time 0."""
    file.gpu(0, "H100", pid=100)
    file.kernel("gemm", 0, 250)
    for at in range(-20, 250, 10):
        file.metric("SMs Active [Throughput %]", at, 50, number=1)
        file.metric("GPC Clock Frequency [MHz]", at, 1_710_000_000, number=2)
        file.metric("DRAM Read Bandwidth [Throughput %]", 3 * at, 7, gpu=1, number=1)
    file.insert("DIAGNOSTIC_EVENT", text="ERR_NVGPUCTRPERM")


def seeds() -> list[bytes]:
    return [
        _trace("old", _launches),
        _trace("new", _launches),
        _trace("old", _copies),
        _trace("new", _copies),
        _trace("new", _metrics),
    ]


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Change cells, rows and the schema by SQL; bytes of pages where that cannot be done."""
    if draw.random() < 0.3:
        return _change_page(data, draw)
    with closing(sqlite3.connect(":memory:")) as database, suppress(*_REFUSED):
        database.deserialize(data)
        database.execute("PRAGMA trusted_schema = OFF")
        for _ in range(draw.choice((1, 1, 2, 5))):
            with suppress(*_REFUSED):
                _change_table(database, draw)
        database.commit()
        changed = database.serialize()
        return changed if len(changed) <= TARGET.longest else data
    return _change_page(data, draw)


def _change_table(database: sqlite3.Connection, draw: random.Random) -> None:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    table = f'"{draw.choice(database.execute(query).fetchall())[0]}"'
    names = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    column = f'"{draw.choice(names)}"'
    how = draw.randrange(12)
    if how == 0:
        database.execute(f"DELETE FROM {table} WHERE random() % 2")
    elif how == 1:
        database.execute(f"INSERT INTO {table} SELECT * FROM {table} LIMIT 1")
    elif how == 2:
        database.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    elif how == 3:
        other = draw.choice((*names, "x"))
        database.execute(f'ALTER TABLE {table} RENAME COLUMN {column} TO "{other}"')
    elif how == 4:
        _remake(database, table, draw.choice(_TYPES), draw)
    else:
        place = "" if draw.random() < 0.3 else f" WHERE rowid = {draw.randrange(1, 4)}"
        database.execute(f"UPDATE {table} SET {column} = ?{place}", [_cell(draw)])


def _remake(database: sqlite3.Connection, table: str, declared: str, draw: random.Random) -> None:
    """The table anew with columns of another type, as another table, or as a view."""
    database.execute(f"ALTER TABLE {table} RENAME TO old_{draw.randrange(1000)}")
    (old,) = database.execute("SELECT max(name) FROM sqlite_master WHERE name LIKE 'old_%'")
    names = [row[1] for row in database.execute(f"PRAGMA table_info({old[0]})")]
    if draw.random() < 0.3:
        database.execute(f"CREATE VIEW {table} AS SELECT * FROM {old[0]}")
        return
    columns = ", ".join(f'"{name}" {declared}' for name in names)
    database.execute(f"CREATE TABLE {table} ({columns})")
    database.execute(f"INSERT INTO {table} SELECT * FROM {old[0]}")
    database.execute(f"DROP TABLE {old[0]}")


def _cell(draw: random.Random) -> object:
    kind = draw.randrange(7)
    if kind < 3:
        return draw.choice(INTEGERS) * draw.choice((1, 1, -1))
    if kind == 3:
        return draw.choice((*LARGE[:3], -(2**63)))
    if kind == 4:
        return draw.choice((None, 1.5, float("inf"), 1e300, b"\xff\0", b""))
    return draw.choice(TEXTS[:8] + MORE[:5]).encode("utf-8", "replace").decode()


def _change_page(data: bytes, draw: random.Random) -> bytes:
    """Bits, header bytes or page headers, or a page in the place of another."""
    changing, pages = bytearray(data), max(len(data) // PAGE, 1)
    if len(changing) < 2 * PAGE:
        return data
    how, here = draw.randrange(4), draw.randrange(pages) * PAGE
    if how == 0:
        for _ in range(draw.choice((1, 3, 30))):
            changing[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif how == 1:
        changing[draw.randrange(100)] = draw.randrange(256)
    elif how == 2:
        changing[here + draw.randrange(12)] = draw.randrange(256)
    else:
        there = draw.randrange(pages) * PAGE
        changing[here : here + PAGE] = data[there : there + PAGE]
    return bytes(changing)


TARGET = Target("nsys", seeds, check, mutate, 1 << 16)
