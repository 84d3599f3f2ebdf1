"""Build Python stacks and paths of NVTX ranges from the trie of nodes in a dump."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, run_starts, unique, unique_rows
from flame.core.model.frames import Frame, Kind
from flame.core.model.stacks import EMPTY, StackBuilder
from flame.core.readers.fdump.ids import ABSENT, LOST, IdTable
from flame.core.readers.fdump.records import Records
from flame.core.readers.fdump.vocabulary import DumpVocabulary

CUT_NAME = "[outermost frames not recorded]"
NODES = "node"
_FIELDS = ("id", "parent", "item", "kind", "flags")
_KINDS = (Kind.PYTHON, Kind.NVTX)  # by NodeKind in dump.h
_CUT_ABOVE = 1
_DEEPEST = 400  # the library itself goes no deeper than 250
_MOST_WAITING = 1 << 20
_DEPTHS = 512  # numbers of a stack and of how many nodes are above are kept as one

_Table = dict[str, I8]


class NodeStacks:
    """The stack in ``builder`` that every node stands for, as far as nodes have been learnt.

    ``lost`` counts nodes that lead nowhere.
    """

    def __init__(self, vocabulary: DumpVocabulary, builder: StackBuilder) -> None:
        self.builder = builder
        self.lost = 0
        self._vocabulary = vocabulary
        self._known = IdTable()
        self._waiting: _Table = {name: np.zeros(0, np.int64) for name in _FIELDS}
        self._waited: Bool = np.zeros(0, bool)

    def learn(self, records: Records, last: bool = True, more: bool = False) -> None:
        """Add the nodes among ``records``; the vocabulary knows the frames that they refer to.

        Not the ``last``: where two threads write, a node may be seen before its parent is. Then it
        waits until all is learnt that is there now, of which ``more`` comes, and that there is at
        the next look.
        """
        node = records.table(NODES, _FIELDS)
        new = np.zeros(len(node["id"]), bool)
        if not len(new) + len(self._waited):
            return
        node = {name: np.append(self._waiting[name], node[name]) for name in _FIELDS}
        batch = self._batch(node, np.append(self._waited, new))
        top = batch.top
        late = ~batch.whole[top] & (~batch.waited[top] | more) & (not last)
        if late.sum() > _MOST_WAITING:
            late[:] = False
        self._waiting = {name: column[late] for name, column in batch.node.items()}
        self._waited = batch.waited[late] | (not more)
        self._add(batch, ~late)

    def _batch(self, node: _Table, waited: Bool) -> _NodeBatch:
        """Select the nodes that do not contradict one another."""
        first, kind = unique_rows([node[name] for name in _FIELDS])
        table = IdTable()
        table.learn(node["id"], kind)
        wrong = table.ids[table.values == ABSENT]
        self._known.learn(wrong, np.full(len(wrong), ABSENT))
        rows = first[table.values[table.values != ABSENT]]
        node = {name: column[rows] for name, column in node.items()}
        return _NodeBatch(node, waited[rows], self._known.look_up(node["parent"]))

    def stacks_of(self, nodes: Column, kind: Kind) -> I4:
        """Return the stacks of ``nodes``: empty for 0, a `LOST` frame for unknown nodes."""
        value = self._known.look_up(nodes)
        stacks = np.where(value == ABSENT, EMPTY, value // _DEPTHS)
        lost = np.flatnonzero((value == ABSENT) & (nodes != 0))
        if len(lost):
            self.lost += len(unique(nodes[lost]))
            stacks[lost] = self._single_frame_stack(LOST, kind)
        return stacks.astype(np.int32)

    def depths_of(self, nodes: Column) -> I8:
        """Return how many nodes lead to each of ``nodes``, itself included; 0 for unknown ones."""
        value = self._known.look_up(nodes)
        return np.where(value == ABSENT, 0, value % _DEPTHS + 1)

    def _single_frame_stack(self, name: str, kind: Kind) -> int:
        """Return the stack of one frame that is no recorded one."""
        return self.builder.add_path([self._vocabulary.frames.add(Frame(kind, name))])

    def _add(self, batch: _NodeBatch, chosen: Bool) -> None:
        """Build the stacks of the ``chosen`` nodes, from the roots up."""
        node, too_deep = batch.node, batch.depth > _DEEPEST
        frame = self._vocabulary.node_frames(node["kind"], node["item"])
        lost = chosen & (~batch.whole | too_deep)
        self.lost += int(lost.sum())
        known = (batch.below != ABSENT) & ~lost
        stack = np.where(known, batch.below // _DEPTHS, self._outer_stacks(node, lost))
        for rows in _levels(batch.depth, chosen & ~too_deep):
            inner = rows[batch.above[rows] != ABSENT]
            stack[inner] = stack[batch.above[inner]]
            stack[rows] = self.builder.extend(stack[rows], frame[rows])
        value = stack * _DEPTHS + np.minimum(batch.depth, _DEEPEST + 1)
        self._known.learn(node["id"][chosen], value[chosen])

    def _outer_stacks(self, node: _Table, lost: Bool) -> I8:
        """Return what nodes without a parent stand on; for lost nodes the whole stack."""
        stack = np.full(len(lost), EMPTY, np.int64)
        cut = (node["flags"] & _CUT_ABOVE) > 0
        for number, kind in enumerate(_KINDS):
            for name, those in ((CUT_NAME, cut), (LOST, lost)):
                rows = np.flatnonzero(those & (node["kind"] == number))
                if len(rows):
                    stack[rows] = self._single_frame_stack(name, kind)
        return stack


class _NodeBatch:
    """Nodes with different ids, sorted; some have ``waited`` for their parents since a former look.

    ``below`` is what is known of their parents, ``above`` the rows of those that are among them,
    ``top`` the row that each row's uppermost one is in, ``whole`` those whose parent is here or
    known, ``depth`` how many nodes are above.
    """

    def __init__(self, node: _Table, waited: Bool, parents: I8) -> None:
        self.node = node
        self.waited = waited
        ids, parent = node["id"], node["parent"]
        # A node is written after its parent: else it is not this one's.
        earlier = parent < ids
        self.below = np.where(earlier, parents, ABSENT)
        place = np.searchsorted(ids, parent)
        here = earlier & (self.below == ABSENT) & (np.append(ids, 0)[place] == parent)
        self.above = np.where(here & (parent > 0), place, ABSENT)
        self.whole = (parent == 0) | (self.below != ABSENT) | (self.above != ABSENT)
        self.top, depth = _tops(self.above)
        below = self.below[self.top]
        self.depth = depth + np.where(below == ABSENT, 0, below % _DEPTHS + 1)


def _tops(above: I8) -> tuple[I8, I8]:
    """Return the uppermost row above each row (itself without any), and how many are above it.

    By pointer doubling: every row comes after the one above it.
    """
    rows = np.arange(len(above))
    jump = np.where(above == ABSENT, rows, above)
    depth = (above != ABSENT).astype(np.int64)
    while depth[jump].any():
        depth, jump = depth + depth[jump], jump[jump]
    return jump, depth


def _levels(depth: I8, chosen: Bool) -> Iterator[I8]:
    """Yield the ``chosen`` rows by depth, the least first."""
    rows = np.flatnonzero(chosen)
    rows = rows[np.argsort(depth[rows], kind="stable")]
    for low, high in itertools.pairwise([*run_starts(depth[rows]).tolist(), len(rows)]):
        yield rows[low:high]
