"""Merge tables of collectives: least, most and sums of the ranks, in any order the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flame.core.columns import I8, run_starts
from flame.core.rank_summary.collective_table import COLUMNS, CollectiveTable, no_collectives

_OF_LAST = ("shortest", "last", "last_own", "last_work")
_OF_FIRST = ("longest", "first")
_SUMS = ("ranks", "duration", "own", "work")
_MOST = ("kind_high", "latest_end", "source", "size")


def merge_collectives(tables: Sequence[CollectiveTable]) -> CollectiveTable:
    """Merge ``tables``; the lower rank counts where two have one duration."""
    tables = [table for table in tables if len(table.communicator)]
    if not tables:
        return no_collectives()
    of = {name: np.concatenate([getattr(table, name) for table in tables]) for name in COLUMNS}
    order = np.lexsort((of["last"], of["shortest"], of["ordinal"], of["communicator"]))
    other = np.lexsort((of["first"], -of["longest"], of["ordinal"], of["communicator"]))
    start = _starts(of["communicator"][order], of["ordinal"][order])
    merged = {name: of[name][order][start] for name in ("communicator", "ordinal", *_OF_LAST)}
    merged |= {name: of[name][other][start] for name in _OF_FIRST}
    merged |= {name: np.add.reduceat(of[name][order], start) for name in _SUMS}
    merged["kind_low"] = np.minimum.reduceat(of["kind_low"][order], start)
    merged |= {name: np.maximum.reduceat(of[name][order], start) for name in _MOST}
    return CollectiveTable(
        **merged,
        communicators=tuple(sorted({one for table in tables for one in table.communicators})),
        kinds=tuple(sorted({one for table in tables for one in table.kinds})),
    )


def _starts(communicator: I8, ordinal: I8) -> I8:
    """Where each collective begins among rows in order of communicator and ordinal."""
    begins = np.zeros(len(ordinal), bool)
    begins[run_starts(communicator)] = True
    begins[1:] |= ordinal[1:] != ordinal[:-1]
    return np.flatnonzero(begins)
