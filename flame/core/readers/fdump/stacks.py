"""Python stacks and paths of NVTX ranges from the trie of nodes in a dump."""

from __future__ import annotations

import itertools

import numpy as np

from flame.core.columns import I4, I8, Bool, Column
from flame.core.frames import Frame, Kind
from flame.core.readers.fdump.chunks import Records
from flame.core.readers.fdump.ids import ABSENT, Ids
from flame.core.readers.fdump.names import Vocabulary
from flame.core.readers.fdump.texts import LOST
from flame.core.stacks import EMPTY, StackBuilder

CUT = "[outermost frames not recorded]"
_FIELDS = ("id", "parent", "item", "kind", "flags")
_KINDS = (Kind.PYTHON, Kind.NVTX)  # by NodeKind in dump.h
_CUT_ABOVE = 1
_DEEPEST = 400  # the library itself goes no deeper than 250


class Stacks:
    """The stack in ``builder`` that every node stands for.

    ``lost`` counts nodes that lead nowhere.
    """

    def __init__(self, records: Records, vocabulary: Vocabulary) -> None:
        node = records.table("node", _FIELDS)
        self._ids = Ids(node["id"], [node[name] for name in _FIELDS[1:]])
        self._node = {name: column[self._ids.rows] for name, column in node.items()}
        self.builder = StackBuilder()
        self._frames = vocabulary.frames
        self.lost = 0
        self._stack = self._built(vocabulary.frames_of(self._node["kind"], self._node["item"]))

    def of(self, nodes: Column, kind: Kind) -> I4:
        """The stacks of ``nodes``: the empty one for 0, a frame that says so for unknown ones."""
        place = self._ids.places(nodes)
        found = np.append(self._stack, EMPTY)[place]
        lost = np.flatnonzero((place == ABSENT) & (nodes != 0))
        if len(lost):
            self.lost += len(np.unique(nodes[lost]))
            found[lost] = self._alone(LOST, kind)
        return found.astype(np.int32)

    def _alone(self, name: str, kind: Kind) -> int:
        """The stack of one frame that is no recorded one."""
        return self.builder.path([self._frames.add(Frame(kind, name))])

    def _built(self, frame: I4) -> I4:
        """The stack of each node, from the roots up."""
        parent, size = self._node["parent"], len(self._ids)
        above = self._ids.places(parent)
        # A node is written after its parent: else it is not this one's.
        whole = (parent == 0) | ((above != ABSENT) & (above < np.arange(size)))
        above = np.where(whole, above, ABSENT)
        depth = _depths(above)
        lost = ~whole | (depth > _DEEPEST)
        self.lost += int(lost.sum())
        stack = self._outer(lost)
        order = np.argsort(np.minimum(depth, _DEEPEST + 1), kind="stable")
        deepest = min(int(depth.max(initial=-1)), _DEEPEST)
        bounds = np.searchsorted(depth[order], np.arange(deepest + 2))
        for low, high in itertools.pairwise(bounds):
            rows = order[low:high]
            below = np.flatnonzero(above[rows] != ABSENT)
            stack[rows[below]] = stack[above[rows[below]]]
            stack[rows] = self.builder.extend(stack[rows], frame[rows])
        return stack

    def _outer(self, lost: Bool) -> I4:
        """What each node stands on if it has no parent; the whole stack of those too deep."""
        stack = np.full(len(lost), EMPTY, np.int32)
        cut = (self._node["flags"] & _CUT_ABOVE) > 0
        for number, kind in enumerate(_KINDS):
            for name, chosen in ((CUT, cut), (LOST, lost)):
                rows = np.flatnonzero(chosen & (self._node["kind"] == number))
                if len(rows):
                    stack[rows] = self._alone(name, kind)
        return stack


def _depths(above: I8) -> I8:
    """How many nodes each one has above it, by pointer doubling."""
    jump = np.append(above, ABSENT)
    depth = (jump != ABSENT).astype(np.int64)
    while (jump != ABSENT).any():
        depth, jump = depth + depth[jump], jump[jump]
    found: I8 = depth[:-1]
    return found
