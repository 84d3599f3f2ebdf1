"""A search finds in every view what plain loops find in the same trace."""

from __future__ import annotations

from collections import Counter

import numpy as np

from flame.core.analysis.chains import frames_word
from flame.core.timeline.highlight import highlight, matching_intervals, passing_intervals
from flame.core.timeline.lanes import Track
from flame.tui.session.carry import matching_frames
from flame.tui.session.query import Query
from flame.tui.session.tree_view import TreeView
from flame.tui.views.sandwich_halves import SandwichHalves
from flame.tui.views.top_table import TopTable
from flame.tui.widgets.header import search_status
from tests.support.oracles.facts import CAPTURED
from tests.support.oracles.naive_tree import Label
from tests.support.oracles.naive_views import Seen, matched
from tests.system.views.shown_cases import Looked, label_of, labels_of, looked, on_real, over_time
from tests.system.views.test_top import assert_percent, assert_says


def check_search(one: Looked, pattern: str) -> None:
    tree, view = one.tree, one.shown.view
    query = Query(pattern)
    hits = matched(one.plain, query.compile())
    value, whole = sum(hit.value for hit in hits), int(tree.total[0])
    view.search(query)
    assert view.matches.result is not None
    assert view.matches.result.matches.total == value
    view.zoom_to(
        view.viewport.zoom_of(int(np.argmin(tree.total)))
    )  # shares are of all nevertheless
    status = "".join(piece.text for piece in search_status(view, 200))
    view.reset()
    if hits:
        number, total, share = status.strip().split(" · ")[:3]
        fitting = names_of(one.plain, query)
        paths = {path for path, *_ in hits}
        nodes = {p[:n] for p in paths for n in range(1, len(p) + 1) if p[n - 1] in fitting}
        assert number == frames_word(len(nodes))
        assert_percent(share.removesuffix(" of all"), value, whole)
        if tree.metric.unit == "ns":
            assert_says(total, value)
    else:
        assert "no frame matches" in status
    check_search_in_views(one, query)
    view.search(None)


def names_of(activities: list[Seen], query: Query) -> set[Label]:
    """The names that match."""
    search, labels = query.compile().search, {label for path, *_ in activities for label in path}
    return {label for label in labels if search(label[1].removesuffix(CAPTURED))}


def check_search_in_views(one: Looked, query: Query) -> None:
    tree, view = one.tree, one.shown.view
    table = TopTable(tree)
    assert view.matches.result is not None
    rows = table.rows("own", False, None, matching_frames(tree, view.matches.result))
    found = {label_of(tree, int(table.totals.frame[row])) for row in rows}
    names = names_of(one.plain, query)
    assert found == names
    for label in sorted(names)[:2]:
        halves = SandwichHalves.of(TreeView(tree), labels_of(tree)[label])
        halves.mark(tree, view.matches.result)
        for half in halves:
            assert half.matches.result and view.matches.result
            assert half.matches.result.matches.total == view.matches.result.matches.total
            marked = {half.tree.name(node) for node in half.matches.result.order.tolist()}
            assert marked <= {text.removesuffix(CAPTURED) for _, text in names}
    if not one.case.shape.hide_frames:  # names that are hidden here are still seen over time
        lit = lit_activities(one)
        assert lit == Counter(
            (each.row.start, each.row.duration)
            for each in matched(one.plain, query.compile())
            if each.row.kind != "graph" or each.row.start or each.row.duration
        )


def lit_activities(one: Looked) -> Counter[tuple[int, int]]:
    """(start, duration) of the work that is bright over time."""
    shown, time, table = one.shown, over_time(one.shown.profile), one.shown.profile.activities
    found = shown.view.matches.result
    assert found is not None
    hits = matching_intervals(time, one.tree, found.matches.mask, found.query.compile())
    lit = highlight(
        time, passing_intervals(time, shown.profile, one.tree, shown.selection.where), hits
    )
    rows = time.source[lit.bright & (time.track == Track.WORK)]
    return Counter(zip(table.start[rows].tolist(), table.duration[rows].tolist(), strict=True))


@on_real
def test_search_finds_the_same_in_all_views_of_real_traces(trace: str) -> None:
    for one in looked(trace):
        for pattern in ("gemm|forward", "e", "memcpy|layer", "nothing like this"):
            check_search(one, pattern)
