"""Write the command lines that lead from a row of a report into the picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

from flame.core.options import LoadOptions
from flame.core.projection.filter_options import format_window
from flame.core.projection.filters import Moment, Time
from flame.core.projection.selection import Selection, with_moment
from flame.core.report.table import Place
from flame.options.command_line import at_state, command_line
from flame.options.state import AppState

Link = Callable[[Place | None], str | None]

_TIMELINE = AppState(view="timeline")
_AROUND = 4
"""A window is shown with this part of its length on either side."""

_ANY = Time(123_456_789_123_456_789, 987_654_321_987_654_321)
"""A window whose text stands nowhere else, in whose place that of any other may be put."""


def links(paths: Iterable[str | Path], options: LoadOptions, selection: Selection) -> Link:
    """Make what writes the ``flame view`` that shows a place, under the report's own selection."""
    paths = tuple(paths)

    @cache
    def opening(
        file: str, levels: tuple[str, ...], metric: str, moment: Moment | int | None
    ) -> str:
        shown = None if metric == "gpu" else metric
        chosen = replace(selection, levels=levels or selection.levels, metric=shown)
        chosen = with_moment(chosen, moment)
        return command_line((file,) if file else paths, options, chosen, AppState())

    def around(file: str, window: Time) -> str:
        chosen = _at_window(selection, window)
        return command_line((file,) if file else paths, options, chosen, _TIMELINE)

    @cache
    def around_any(file: str) -> list[str]:
        return around(file, _ANY).split(format_window(_ANY))

    def link(place: Place | None) -> str | None:
        if place is None:
            return None
        if place.window is not None:
            window = _with_some_around(*place.window)
            parts = around_any(place.file)  # of thousands of windows nothing else differs
            if len(parts) == 2 and (window.begin or 0) >= 0:
                return format_window(window).join(parts)
            return around(place.file, window)
        line = opening(place.file, place.levels, place.metric, place.moment)
        return at_state(line, AppState(selected=list(place.frames)))

    return link


def _with_some_around(begin: int, end: int) -> Time:
    """A window, and some of what is around."""
    around = max((end - begin) // _AROUND, 1)
    return Time(begin - around, end + around)


def _at_window(selection: Selection, window: Time) -> Selection:
    """What begins in a window."""
    others = tuple(one for one in selection.where if not isinstance(one, Time))
    where = (*others, window)
    return _named_as_usual(replace(selection, where=where))


def _named_as_usual(selection: Selection) -> Selection:
    """Name frames as the app does, where the report does as exports do: nobody asked for that."""
    naming = selection.naming
    if (naming.kernel_names, naming.numbers, selection.forward) != ("base", False, False):
        return selection
    naming = replace(naming, kernel_names="short", numbers=True)
    return replace(selection, naming=naming, forward=True)
