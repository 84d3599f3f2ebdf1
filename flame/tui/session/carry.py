"""From one tree to another, or to a later one: the same frames stay selected and zoomed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.tui.session.anchors import Anchor
from flame.tui.session.tree_view import View, Zoom
from flame.tui.toolkit.back_stack import Trail


class Stand(NamedTuple):
    """Where one is in a tree, by path: ``zoomed``, ``selected``, and the zooms before and after."""

    zoomed: Anchor
    selected: tuple[str, ...]
    trail: Trail[Zoom | Anchor]


def stand_of(view: View) -> Stand:
    """Where one is in ``view``."""
    past = view.trail.changed(lambda one: view.anchor(one) if isinstance(one, Zoom) else one)
    return Stand(view.anchor(view.zoom), view.tree.names(view.cursor), past)


def take_stand(view: View, stand: Stand) -> None:
    """Zoom and select in ``view`` as ``stand`` says, as far as its tree has the frames."""
    view.select(view.with_width(view.tree.find(stand.selected)))
    view.begin_at(view.zoom_at(stand.zoomed), stand.trail.changed(lambda one: one))


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


class Keeper:
    """Carries what is selected and zoomed from one state of a growing tree to the next.

    Frames that a tree does not have are not forgotten: as long as the user goes nowhere else, they
    are selected and zoomed again when they come back.
    """

    def __init__(self) -> None:
        self._stand: Stand | None = None
        self._zoomed = self._selected = (-1, -1)

    def carry(self, shown: View, view: View) -> None:
        """Have ``view``, of a later tree, show what ``shown`` does."""
        stand = stand_of(shown)
        if self._stand and self._zoomed == (shown.number, shown.zooms):
            stand = stand._replace(zoomed=self._stand.zoomed)
        if self._stand and self._selected == (shown.number, shown.cursor):
            stand = stand._replace(selected=self._stand.selected)
        view.width = shown.width
        take_stand(view, stand)
        view.origin, view.zooms = shown.origin, shown.zooms
        self._stand = stand
        self._zoomed, self._selected = (view.number, view.zooms), (view.number, view.cursor)
