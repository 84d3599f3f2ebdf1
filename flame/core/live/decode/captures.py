"""Find the code that captured CUDA graph nodes, while a dump grows."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I4, I8, Column, distinct, unique_rows
from flame.core.model.activities import NONE
from flame.core.model.stack_joins import CAPTURED, StackJoiner
from flame.core.model.stacks import EMPTY
from flame.core.readers.fdump.context import SharedTables
from flame.core.readers.fdump.gpu import ExecGraphs
from flame.core.readers.fdump.ids import ABSENT, IdTable

# A graph is cloned for a few reasons, one after the other.
_MOST_CLONES = 1_000


class GraphCaptures:
    """Follows graph nodes to the node made by stream capture, as `graph_capture` does."""

    def __init__(self, shared: SharedTables) -> None:
        self._joiner = StackJoiner(shared.frames, shared.stacks)
        self._marked = {EMPTY: EMPTY}
        self._made, self._copied = IdTable(), IdTable()
        self._execs = ExecGraphs()
        self._original: I8 = np.zeros(0, np.int64)
        self._python: I4 = np.zeros(0, np.int32)
        self._nvtx: I4 = np.zeros(0, np.int32)

    def learn_execs(self, records: dict[str, I8]) -> None:
        """Add records of executable graphs."""
        if len(records["exec"]):
            self._execs.learn_execs(records)

    def learn(self, rows: dict[str, Column]) -> None:
        """Add creations of nodes, as `build_node_rows` of the dump reader gives them."""
        self._execs.learn_nodes(rows)
        known = [rows[name] for name in ("node", "original", "start", "thread")]
        first, _ = unique_rows(known)
        node, original = (column[first] for column in known[:2])
        number = np.arange(len(self._original), len(self._original) + len(first))
        copied = original != NONE
        self._copied.learn(node[copied], number[copied])
        self._made.learn(node[~copied], number[~copied])
        self._original = np.append(self._original, original)
        self._python = np.append(self._python, rows["python"][first])
        self._nvtx = np.append(self._nvtx, rows["nvtx"][first])

    def stacks_of(self, nodes: Column) -> tuple[I4, I4]:
        """Return Python and range stacks of the capture of ``nodes``, marked; empty if unknown."""
        wanted, place = distinct(nodes.astype(np.int64))
        row = self._captured_rows(wanted)
        python, nvtx = (
            np.append(column, np.int32(EMPTY))[row] for column in (self._python, self._nvtx)
        )
        return self._mark_stacks(python)[place], self._mark_stacks(nvtx)[place]

    def _captured_rows(self, nodes: I8) -> I8:
        """Return the row of the captured node that each node descends from, else `ABSENT`.

        The rows above one may be learnt after it.
        """
        source = self._execs.sources_of(nodes)
        row = self._rows(np.where(source == NONE, nodes, source))
        original = np.append(self._original, NONE)
        for _ in range(_MOST_CLONES):
            cloned = np.flatnonzero(original[row] != NONE)
            if not len(cloned):
                return row
            row[cloned] = self._rows(original[row[cloned]])
        row[original[row] != NONE] = ABSENT
        return row

    def _rows(self, nodes: I8) -> I8:
        # A copy is made first, and then said to be one: it was born where its original was.
        copied = self._copied.contains(nodes)
        return np.where(copied, self._copied.look_up(nodes), self._made.look_up(nodes))

    def _mark_stacks(self, stacks: I4) -> I4:
        known, place = distinct(stacks.astype(np.int64))
        new = [stack for stack in known.tolist() if stack not in self._marked]
        if new:
            marked = self._joiner.mark(np.array(new), CAPTURED).tolist()
            self._marked.update(zip(new, marked, strict=True))
        marked_stacks = [self._marked[stack] for stack in known.tolist()]
        return np.array(marked_stacks, np.int32)[place]
