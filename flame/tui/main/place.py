"""Save where the main screen is in a trace, and come back there."""

from __future__ import annotations

from flame.options.state import AppState, ViewName
from flame.tui.session.anchors import OpenPaths, Stretch
from flame.tui.session.query import Query
from flame.tui.session.tree_view import TreeView


def state_of(
    name: ViewName, view: TreeView, query: Query | None, section: tuple[str, int] = ("", -1)
) -> AppState:
    """Return where the screen is in the view ``name``, as far as the selection does not say it.

    ``section`` is the one of a report that is chosen, and the row in it.
    """
    opened = view.viewport.open_paths
    return AppState(
        view=name,
        zoom=list(view.tree.names(view.viewport.zoom.node)),
        selected=list(view.tree.names(view.cursor.node)),
        search=query.text if query else "",
        exact=bool(query and query.exact),
        all_open=opened.everything,
        chains=[(stretch.first, list(stretch.names)) for stretch in opened.but],
        section=section[0],
        row=section[1],
    )


def go_to(view: TreeView, state: AppState) -> None:
    """Open, zoom and select in ``view`` as ``state`` says, as far as the frames are there."""
    tree = view.tree
    but = tuple(Stretch(first, tuple(names)) for first, names in state.chains)
    view.viewport.lay_out(OpenPaths(state.all_open, but))
    view.zoom_to(view.viewport.zoom_of(tree.find(tuple(state.zoom))))
    view.cursor.select(tree.find(tuple(state.selected or state.zoom)))
