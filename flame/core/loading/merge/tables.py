"""Merge tables of activities: in new numbers, one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flame.core.columns import I4, Column
from flame.core.loading.merge.details import ProfilePart
from flame.core.loading.merge.metrics import merge_measures
from flame.core.model.activities import Activities, has_times
from flame.core.model.stack_joins import join_stacks
from flame.core.model.stacks import StackBuilder

_STACKS = ("python", "native", "nvtx", "stack")
_FALLBACK = {"own_python": ("python",), "own_nvtx": ("nvtx",), "nested": ("python", "nvtx")}
"""Columns that a table may lack, and what they would be then: these below each other."""
_AS_RECORDED = ("kind", "duration", "stream", "launch_share", "idle", "launched")


def merge_tables(
    parts: Sequence[ProfilePart], tables: Sequence[Activities]
) -> tuple[Activities, list[I4]]:
    """Concatenate ``tables``, in the numbers of the parts that they are of.

    Returns also the new ids of the stacks of each.
    """
    stacks = StackBuilder()
    found = [
        name for name in _FALLBACK if any(getattr(table, name) is not None for table in tables)
    ]
    columns, ids = [], []
    for part, table in zip(parts, tables, strict=True):
        own = stacks.absorb(table.stacks, part.frames)
        ids.append(own)
        columns.append(renumber_columns(part, table, own) | _found(table, own, stacks, found))
    joined = join_columns(columns)
    measures = merge_measures(tables, [part.scales for part in parts])
    is_cut = all(table.is_cut for table in tables)
    return Activities(**joined, stacks=stacks.build(), measures=measures, is_cut=is_cut), ids


def join_columns(columns: Sequence[dict[str, Column]]) -> dict[str, Any]:
    """Concatenate the ``columns`` of several tables, each by its name."""
    return {name: np.concatenate([table[name] for table in columns]) for name in columns[0]}


def renumber_columns(part: ProfilePart, table: Activities, ids: I4) -> dict[str, Column]:
    """Return the columns of ``table`` in new numbers; ``ids`` are those of its stacks."""
    columns = {name: getattr(table, name) for name in _AS_RECORDED}
    columns |= {name: ids[getattr(table, name)] for name in _STACKS}
    # Graphs whose times were not collected are known by their zeros.
    columns["start"] = np.where(has_times(table), table.start + part.shift, table.start)
    for name in ("launch_start", "launch_end"):
        time = getattr(table, name)
        columns[name] = np.where(table.launched, time + part.shift, time)
    for name in ("process", "thread", "device"):
        columns[name] = getattr(part, name)[getattr(table, name)]
    for name in ("launch", "frame"):
        columns[name] = part.frames[getattr(table, name)]
    if table.pool is not None:
        columns["pool"] = part.frames[table.pool]
    return columns


def _found(
    table: Activities, ids: I4, stacks: StackBuilder, found: Sequence[str]
) -> dict[str, Column]:
    """The columns ``found`` in any table, of which this may lack some; its stacks have ``ids``."""
    columns = {}
    for name in found:
        own, fallback = getattr(table, name), [ids[getattr(table, at)] for at in _FALLBACK[name]]
        columns[name] = ids[own] if own is not None else _join_all(stacks, fallback)
    return columns


def _join_all(stacks: StackBuilder, columns: Sequence[I4]) -> I4:
    outer, *inner = columns
    return join_stacks(stacks, outer, *inner) if inner else outer
