"""What filters keep and what they leave out add up to the whole."""

from __future__ import annotations

from typing import Any

from flame.core.errors import NoMatchError
from flame.core.model.profile import Profile
from flame.core.model.tree import TreeLayout
from flame.core.projection.filter_options import where
from flame.core.projection.filters import MinShare
from flame.core.projection.labels import Naming
from flame.core.projection.project import project as project_selection
from flame.core.projection.selection import Selection
from flame.tui.session.query import Query
from flame.tui.session.session import project
from flame.tui.views.top_table import TopTable
from tests.support.profiles.project_tree import project_tree
from tests.system.views.shown_cases import LEVELS, loaded, on_real


def weight(profile: Profile, metric: str, *filters: Any, **arranged: Any) -> int:
    selection = Selection(LEVELS, filters, metric, layout=TreeLayout(**arranged))
    try:
        return int(project_selection(profile, selection).total[0])
    except NoMatchError:
        return 0


def check_algebra(profile: Profile, pattern: str, metric: str) -> None:
    whole = project_tree(profile, LEVELS, metric=metric)
    total = int(whole.total[0])
    view = project(profile, Selection(LEVELS, (), metric)).view
    view.search(Query(f"(?-i:{pattern})"))
    assert view.matches.result
    show, hide, below, less = (
        where(**{kind: pattern})  # type: ignore[arg-type]
        for kind in ("show_stacks", "hide_stacks", "show_from", "hide_frames")
    )
    assert weight(profile, metric, *show) == view.matches.result.matches.total
    assert weight(profile, metric, *show) + weight(profile, metric, *hide) == total
    assert weight(profile, metric, *below) == weight(profile, metric, *show)
    for same in (less, (MinShare(3.0),), (*less, MinShare(50.0))):
        assert weight(profile, metric, *same) == total
    assert weight(profile, metric, collapsed=True) == total
    folded = project_selection(profile, Selection(LEVELS, (), metric, Naming(fold=True)))
    assert int(folded.total[0]) == total
    inverted = project_tree(profile, LEVELS, metric=metric, layout=TreeLayout(inverted=True))
    first = {inverted.name(n): int(inverted.total[n]) for n in inverted.children(0)}
    sums = TopTable(whole).totals
    own = zip(sums.frame.tolist(), sums.own.tolist(), sums.count.tolist(), strict=True)
    assert {n: v for n, v in first.items() if v} == {whole.text[f]: v for f, v, _ in own if v}


@on_real
def test_filters_add_up_on_real_traces(trace: str) -> None:
    profile, _ = loaded(trace)
    for metric in ("gpu", "count", "idle"):
        for pattern in ("gemm", "e|memcpy"):
            check_algebra(profile, pattern, metric)
