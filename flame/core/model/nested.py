"""Add the stacks of Python frames and ranges as they were nested in time to a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from flame.core.columns import I4, I8, Column
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import Activities
from flame.core.model.pc_samples import Sampling
from flame.core.model.stack_joins import join_stacks
from flame.core.model.stacks import StackBuilder, StackTable

UNKNOWN = -1
"""No stack: the ranges stand below the Python frames."""


@dataclass(frozen=True, eq=False)
class NestedStacks:
    """Hold nested stacks of launches, i4[n] each, rows of ``stacks``; or `UNKNOWN`.

    ``linked`` have backward passes below their forward operators, ``own`` have not.
    """

    stacks: StackTable
    own: I4
    linked: I4


def find_and_add_nested(
    table: Activities, sampling: Sampling | None, finder: Callable[[I4, I8], NestedStacks]
) -> tuple[Activities, Sampling | None]:
    """Add the nested stacks that ``finder`` finds to ``table``; ``sampling`` is of its groups."""
    rows = np.flatnonzero(table.launched & (table.thread >= 0))
    before = table.groups.of_row
    found = finder(table.thread[rows], table.launch_start[rows])
    table = add_nested(table, found, rows)
    if sampling is not None:
        of_group = np.zeros(len(table.groups), np.int32)
        of_group[table.groups.of_row] = sampling.of_group[before]
        sampling = replace(sampling, of_group=of_group)
    return table, sampling


def add_nested(table: Activities, nested_stacks: NestedStacks, rows: Column) -> Activities:
    """Return ``table`` with the columns of nested stacks: ``nested_stacks`` for its ``rows``.

    The others, and those of which nothing was found, have their ranges below their Python frames.
    """
    stacks = StackBuilder.from_table(table.stacks)
    ids = stacks.absorb(
        nested_stacks.stacks, np.arange(int(nested_stacks.stacks.frame.max()) + 1, dtype=np.int32)
    )
    nested = _filled(join_stacks(stacks, table.python, table.nvtx), ids, nested_stacks.linked, rows)
    own_nested = None
    if table.own_python is not None and table.own_nvtx is not None:
        own = join_stacks(stacks, table.own_python, table.own_nvtx)
        own_nested = _filled(own, ids, nested_stacks.own, rows)
    return table.with_columns(nested=nested, own_nested=own_nested, stacks=stacks.build())


def _filled(stack: I4, ids: I4, found: I4, rows: Column) -> I4:
    stack[rows] = np.where(found == UNKNOWN, stack[rows], ids[found])
    return stack
