"""From one tree of a profile to another: the same frames stay selected and zoomed."""

from __future__ import annotations

import numpy as np

from flame.tui.view import View, Zoom


def carry(shown: View, view: View, zoom: bool = True) -> None:
    """Have ``view`` show, as far as its tree has them, the same frames by path as ``shown``.

    A selected frame whose path is gone is found again by name, at its widest place. Without
    ``zoom`` the other keeps its own, with its past.
    """
    view.width = shown.width
    view.cursor = _same_frame(shown, view)
    if zoom:
        view.begin_at(_same_zoom(shown, view))
    else:
        view.keep_cursor()


def _same_zoom(shown: View, view: View) -> Zoom:
    names = shown.tree.names(shown.zoom.node)
    return view.zoom_of(view.tree.find(names))


def _same_frame(shown: View, view: View) -> int:
    names = shown.tree.names(shown.cursor)
    node = view.tree.find(names)
    if view.tree.depth[node] < len(names):
        places = view.places(int(shown.tree.frame[shown.cursor]))
        if len(places):
            node = int(places[int(np.argmax(view.tree.total[places]))])
    return view.with_width(node)
