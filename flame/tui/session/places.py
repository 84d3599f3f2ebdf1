"""Frames by what they are, not by where: selected at their widest place, matched everywhere."""

from __future__ import annotations

import numpy as np

from flame.core.columns import Bool
from flame.core.model.tree import StackTree
from flame.tui.session.query import Found
from flame.tui.session.tree_view import View


def select_frame(view: View, frame: int) -> None:
    """Select ``frame`` where it is widest: in the zoomed part, or else in the whole tree.

    Does nothing where the tree has no such frame.
    """
    places = view.places(frame)
    zoomed = view.zoomed(places)
    if not len(zoomed):
        if not len(places):
            return
        view.reset()
        zoomed = places
    view.select(int(zoomed[int(np.argmax(view.tree.total[zoomed]))]))


def matching_frames(tree: StackTree, found: Found) -> Bool:
    """Whether each frame is one that ``found``, a search of ``tree``, matches; bool[frames]."""
    fits = np.zeros(len(tree.text), bool)
    fits[tree.frame[found.matches.mask]] = True
    return fits
