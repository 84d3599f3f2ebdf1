"""The GPU time of an Nsight Systems export, by plain queries."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from tests.support.hostile.bad_files import KERNEL

TABLES = (KERNEL, *(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("MEMCPY", "MEMSET", "GRAPH_TRACE")))
TIME_LIMIT = 1 << 61


def recorded_gpu_time(path: Path) -> int:
    """The sum of all durations in the file, by a plain query; those without times are 0 ns."""
    with closing(sqlite3.connect(f"file:{quote(str(path))}?immutable=1", uri=True)) as database:
        return sum(_duration(row) for table in TABLES for row in _spans(database, table))


def _spans(database: sqlite3.Connection, table: str) -> list[tuple[int | None, int | None]]:
    have = {row[1] for row in database.execute(f"PRAGMA table_xinfo({table})")}
    if not {"start", "end"} <= have:
        return []
    query = f'SELECT CAST("start" AS INTEGER), CAST("end" AS INTEGER) FROM {table}'
    return database.execute(query).fetchall()


def _duration(span: tuple[int | None, int | None]) -> int:
    start, end = span
    if start is None or end is None or max(abs(start), abs(end)) > TIME_LIMIT:
        return 0
    return max(end - start, 0)
