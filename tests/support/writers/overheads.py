"""Write what a profiler tells of its overhead, and of loading, into an Nsight Systems export."""

from __future__ import annotations

from tests.support.writers.nsysfile import NsysFile, gtid
from tests.support.writers.nsystables import Text

_TABLE = 'CREATE TABLE IF NOT EXISTS PROFILER_OVERHEAD (start INTEGER, "end" INTEGER, '


def overhead(
    file: NsysFile, name: Text, start: int, end: int, pid: int = 100, tid: int = 100
) -> None:
    """Add overhead of a thread; it makes none known that is in no other table."""
    file.db.execute(f"{_TABLE}globalTid INTEGER, nameId INTEGER)")
    row = (start, end, gtid(pid, tid), file.string(name))
    file.db.execute("INSERT INTO PROFILER_OVERHEAD VALUES (?, ?, ?, ?)", row)
