"""Restore what is selected and zoomed in another tree, or in a later state of the same one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import Bool
from flame.core.model.tree import StackTree
from flame.core.projection.labels import common_key
from flame.tui.session.anchors import Anchor, OpenPaths
from flame.tui.session.joined_rows import ALL_CLOSED
from flame.tui.session.query import SearchResult
from flame.tui.session.tree_view import TreeView
from flame.tui.session.viewport import ViewState, Zoom
from flame.tui.toolkit.back_stack import BackStack


class Bookmark(NamedTuple):
    """What a tree shows, by path: ``zoomed``, ``selected``, ``opened``, and what can be undone."""

    zoomed: Anchor
    selected: tuple[str, ...]
    opened: OpenPaths
    trail: BackStack[ViewState]


def bookmark_of(view: TreeView) -> Bookmark:
    """Bookmark what is shown in ``view``."""
    viewport = view.viewport
    return Bookmark(
        viewport.anchor(viewport.zoom),
        view.tree.names(view.cursor.node),
        viewport.open_paths,
        viewport.trail.changed(viewport.anchored),
    )


def restore(view: TreeView, bookmark: Bookmark) -> None:
    """Zoom, open and select in ``view`` as ``bookmark`` says, as far as its tree has the frames."""
    view.viewport.lay_out(bookmark.opened)
    view.cursor.select(view.viewport.with_width(view.tree.find(bookmark.selected)))
    view.begin_at(view.viewport.zoom_at(bookmark.zoomed), bookmark.trail.changed(lambda one: one))


def carry(shown: TreeView, view: TreeView, zoom: bool = True) -> None:
    """Have ``view`` show, as far as its tree has them, the same frames by path as ``shown``.

    A selected frame whose path is gone is found again by name, at its widest place. Without
    ``zoom`` the other keeps its own, with its open chains and its past.
    """
    view.viewport.width = shown.viewport.width
    view.cursor.node = _same_frame(shown, view)
    if zoom:
        view.viewport.lay_out(shown.viewport.open_paths)
        view.begin_at(_same_zoom(shown, view))
    else:
        view.cursor.keep_in_sight()


def _same_zoom(shown: TreeView, view: TreeView) -> Zoom:
    names = shown.tree.names(shown.viewport.zoom.node)
    return view.viewport.zoom_of(view.tree.find(names))


def _same_frame(shown: TreeView, view: TreeView) -> int:
    names = shown.tree.names(shown.cursor.node)
    node = view.tree.find(names)
    if view.tree.depth[node] < len(names):
        places = view.places(
            same_frame(shown.tree, int(shown.tree.frame[shown.cursor.node]), view.tree)
        )
        if len(places):
            node = int(places[int(np.argmax(view.tree.total[places]))])
    return view.viewport.with_width(node)


def same_frame(before: StackTree, frame: int, tree: StackTree) -> int:
    """Find ``frame`` of the tree ``before`` in ``tree``; -1 where that has no such frame.

    Trees of one trace have their frames in common, those of comparisons do not.
    """
    if before.frames is tree.frames:
        return frame
    wanted = before.frames[frame]
    if frame < len(tree.frames) and tree.frames[frame] == wanted:
        return frame
    key = common_key(wanted, before.text[frame])
    ids = range(len(tree.frames))
    same = (one for one in ids if common_key(tree.frames[one], tree.text[one]) == key)
    return next(same, -1)


class LiveBookmark:
    """Carry what is selected, zoomed and open from one state of a growing tree to the next.

    Frames that a tree does not have are not forgotten: as long as the user goes nowhere else, they
    are selected, zoomed and open again when they come back.
    """

    def __init__(self) -> None:
        self._bookmark: Bookmark | None = None
        self._zoomed = self._selected = (-1, -1)
        self._opened = (-1, ALL_CLOSED)

    def carry(self, shown: TreeView, view: TreeView) -> None:
        """Have ``view``, of a later tree, show what ``shown`` does."""
        bookmark = bookmark_of(shown)
        if self._bookmark and self._zoomed == (shown.number, shown.viewport.zooms):
            bookmark = bookmark._replace(zoomed=self._bookmark.zoomed)
        if self._bookmark and self._selected == (shown.number, shown.cursor.node):
            bookmark = bookmark._replace(selected=self._bookmark.selected)
        if self._bookmark and self._opened == (shown.number, shown.viewport.opened):
            bookmark = bookmark._replace(opened=self._bookmark.opened)
        view.viewport.width = shown.viewport.width
        restore(view, bookmark)
        view.origin, view.viewport.zooms = shown.origin, shown.viewport.zooms
        self._bookmark = bookmark
        self._zoomed = (view.number, view.viewport.zooms)
        self._selected = (view.number, view.cursor.node)
        self._opened = (view.number, view.viewport.opened)


def select_frame(view: TreeView, frame: int) -> None:
    """Select ``frame`` where it is widest: in the zoomed part, or else in the whole tree.

    Does nothing where the tree has no such frame.
    """
    places = view.places(frame)
    zoomed = view.viewport.held(places)
    if not len(zoomed):
        if not len(places):
            return
        view.reset()
        zoomed = places
    view.cursor.select(int(zoomed[int(np.argmax(view.tree.total[zoomed]))]))


def matching_frames(tree: StackTree, result: SearchResult) -> Bool:
    """Return which frames ``result``, a search of ``tree``, matches; bool[frames]."""
    fits = np.zeros(len(tree.text), bool)
    fits[tree.frame[result.matches.mask]] = True
    return fits
