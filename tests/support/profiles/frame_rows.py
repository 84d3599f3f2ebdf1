"""List the totals of the frames of a tree as rows, for tests that look at them by name."""

from __future__ import annotations

from dataclasses import dataclass

from flame.core.analysis.frame_totals import frame_totals
from flame.core.model.frames import Kind
from flame.core.model.tree import StackTree


@dataclass(frozen=True)
class FrameRow:
    """A frame's name and kind, inclusive total, own value (metric units), and activities."""

    name: str
    kind: Kind
    total: int
    own: int
    count: int


def frame_rows(tree: StackTree) -> list[FrameRow]:
    """List the totals of every frame of ``tree`` but the root's, by frame id."""
    totals = frame_totals(tree)
    columns = (totals.frame, totals.total, totals.own, totals.count)
    return [
        FrameRow(tree.text[frame], tree.frames[frame].kind, *values)
        for frame, *values in zip(*(column.tolist() for column in columns), strict=True)
    ]
