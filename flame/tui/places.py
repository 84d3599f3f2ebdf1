"""Frames by what they are, not by where: selected at their widest place, matched everywhere."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8, Bool
from flame.core.tree import StackTree
from flame.tui.query import Found
from flame.tui.view import View


def select_frame(view: View, frame: int) -> None:
    """Select ``frame`` where it is widest: in the zoomed part, or else in the whole tree.

    Does nothing where the tree has no such frame.
    """
    places = view.places(frame)
    zoomed = _inside(view, places)
    if not len(zoomed):
        if not len(places):
            return
        view.reset()
        zoomed = places
    view.select(int(zoomed[int(np.argmax(view.tree.total[zoomed]))]))


def _inside(view: View, places: I8) -> I8:
    """Those of ``places`` that lie in the zoomed part."""
    tree, (node, span) = view.tree, view.zoom
    low, high = tree.x[places], tree.x[places] + tree.total[places]
    below = (places >= node) & (places < tree.end[node])
    inside: I8 = places[below & (low < span.high) & (high > span.low)]
    return inside


def matching_frames(tree: StackTree, found: Found) -> Bool:
    """Whether each frame is one that ``found``, a search of ``tree``, matches; bool[frames]."""
    fits = np.zeros(len(tree.text), bool)
    fits[tree.frame[found.matches.mask]] = True
    return fits
