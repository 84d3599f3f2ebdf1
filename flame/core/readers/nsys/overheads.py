"""Read when the profiler held the program up: its own overhead, and that of CUPTI."""

from __future__ import annotations

import numpy as np

from flame.core.columns import distinct
from flame.core.model.meta import Overheads
from flame.core.readers.nsys.context import TIME_LIMIT, NsysContext, process_keys
from flame.core.readers.sqlite.source import TableQuery

TABLES = ("PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD")
_COLUMNS = ("start", "end", "globalTid", "nameId")


def read_overheads(context: NsysContext) -> Overheads | None:
    """Read all overhead of threads and processes that other tables know; None without a table.

    After these, for it makes none known; and no range is open longer because of it.
    """
    if not any(context.source.columns(table) for table in TABLES):
        return None
    none = np.zeros(0, np.int64)
    parts = {name: [none] for name in _COLUMNS}
    for table in TABLES:
        for chunk in context.source.chunks(TableQuery(table, list(_COLUMNS))):
            for name, found in parts.items():
                found.append(chunk[name])
    start, end, owner, named = (np.concatenate(parts[column]) for column in _COLUMNS)
    sane = (start > -TIME_LIMIT) & (start < end) & (end < TIME_LIMIT)
    start, end, owner, named = start[sane], end[sane], owner[sane], named[sane]
    texts, place = distinct(named)
    return Overheads(
        tuple(map(context.text_of, texts.tolist())),
        place.astype(np.int32),
        context.processes.known(process_keys(owner)),
        context.threads.known(owner),
        start,
        end,
    )
