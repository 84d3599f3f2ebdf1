"""Tell what entering the selected interval filters by: its step, or its moment of memory."""

from __future__ import annotations

from collections.abc import Iterator

from flame.core.projection.filters import At, Devices, Filter, Steps
from flame.core.projection.project import shown_moments
from flame.core.timeline.lanes import Track
from flame.tui.session.session import Projection
from flame.tui.session.steps import step_of_range
from flame.tui.timeline.time_view import TimeView


def entered(shown: Projection, time: TimeView | None) -> tuple[Filter, ...]:
    """List the filters that choose what is selected, without those that are there already."""
    if time is None or time.cursor.item < 0:
        return ()
    is_memory = time.timeline.track[time.cursor.item] == Track.MEMORY
    found = _moment(shown, time) if is_memory else _step(shown, time)
    return tuple(one for one in found if one not in shown.selection.where)


def _step(shown: Projection, time: TimeView) -> Iterator[Filter]:
    """The selected range as a filter, where it is a step."""
    timeline, item = time.timeline, time.cursor.item
    thread = timeline.lanes[time.lanes.lane].owner
    if timeline.track[item] != Track.RANGES or thread < 0:
        return
    begin = timeline.origin + timeline.window(item).low
    number = step_of_range(shown.profile, int(timeline.frame[item]), thread, begin)
    if number is not None:
        yield Steps.of([number])


def _moment(shown: Projection, time: TimeView) -> Iterator[Filter]:
    """The selected moment, and its GPU where that of another one is shown."""
    timeline, item = time.timeline, time.cursor.item
    device = timeline.lanes[time.lanes.lane].owner
    moments = shown_moments(shown.profile, shown.selection)
    if len(timeline.memory) > 1 and [one.device for one in moments] != [device]:
        yield Devices((shown.profile.devices[device].id,))
    yield At(timeline.origin + int(timeline.low[item]))
