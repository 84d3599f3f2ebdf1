"""Write what iterations a trace has: as facts for scripts, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from flame.core.analysis.iterations import IterationTable, iteration_name
from flame.core.analysis.words.iterations import count_words, length_words, outside_words
from flame.core.model.profile import Profile
from flame.core.shown_text import printable
from flame.core.units import format_count, format_ns, format_percent

_MOST_LISTED = 10


def iteration_facts(table: IterationTable) -> dict[str, object] | None:
    """Return what the iterations have in common, None where there are none; times in ns."""
    if not len(table):
        return None
    parts = zip(table.outside._fields, table.outside, strict=True)
    return {
        "source": table.iterations.source,
        "count": len(table),
        "median_ns": table.median,
        "slowest": int(table.number[table.slowest]),
        "slowest_ns": int(table.duration[table.slowest]),
        "outside": {
            name: {"gpu_time_ns": part.gpu_time, "activities": part.activities}
            for name, part in parts
        },
    }


def step_facts(profile: Profile, table: IterationTable) -> list[dict[str, object]]:
    """Return every iteration; times in ns."""
    columns = {
        "number": table.number,
        "begin_ns": table.start,
        "duration_ns": table.duration,
        "gpu_time_ns": table.gpu_time,
        "activities": table.activities,
        "window_ns": table.window,
        "busy_ns": table.busy,
    }
    names = [iteration_name(profile, row) for row in table.row.tolist()]
    rows = zip(names, *(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(("name", *columns), row, strict=True)) for row in rows]


def iteration_lines(profile: Profile, table: IterationTable) -> Iterator[str]:
    """Say how many steps there are, how long they took, and what was launched outside of them."""
    if not len(table):
        return
    some = bool(table.window.any())
    yield printable(f"steps: {count_words(profile, table)}")
    yield f"  {length_words(table)}"
    if outside := outside_words(table):
        yield f"  outside of them {outside}"
    on_gpu = f"{'GPU time':>12}{'busy':>9}" if some else ""
    yield f"  {'step':>8}{'duration':>13}{on_gpu}"
    for place in range(min(len(table), _MOST_LISTED)):
        yield _row(table, place, some)
    if len(table) > _MOST_LISTED:
        yield f"  and {format_count(len(table) - _MOST_LISTED)} more"


def _row(table: IterationTable, place: int, on_gpu: bool) -> str:
    line = f"  {table.number[place]:>8}{format_ns(int(table.duration[place])):>13}"
    if not on_gpu:
        return line
    window = int(table.window[place])
    busy = format_percent(int(table.busy[place]), window) if window else ""
    return f"{line}{format_ns(int(table.gpu_time[place])):>12}{busy:>9}".rstrip()
