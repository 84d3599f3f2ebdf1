"""Divide the GPU time among phases: those that a user names, else what names tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Bool, distinct, sum_by
from flame.core.model.activities import ThreadPieces
from flame.core.names.kernel_category import RULES
from flame.core.names.phases import TOLD_BY_RANGES
from flame.core.names.phases import UNMAPPED as UNMAPPED
from flame.core.projection.phases import phase_marks, phase_of_groups, tell_phases
from flame.core.report.host.host_time import HostTime
from flame.core.report.program.iteration_measures import iteration_work
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, Value, share

NAME, TITLE = "phases", "How the GPU time divides among phases"

_COLUMNS = (
    TableColumn("phase", "phase"),
    TableColumn("gpu_time_ns", "GPU time", "ns"),
    TableColumn("percent", "of GPU time", "percent"),
    TableColumn("activities", "activities", "count"),
    TableColumn("host_ns", "host", "ns"),
    TableColumn("iteration_ns", "per iteration", "ns"),
)
_FAMILIES = (TableColumn("family", "kernels"), *_COLUMNS[1:4], _COLUMNS[5])


class PhaseColumns(NamedTuple):
    """Hold phases, each activity in one of them: they add up to the GPU time of the selection.

    ``gpu_time`` and ``activities`` are i8[n], ``iteration_ns`` the mean of an iteration, ``host``
    how long threads were in ranges and functions of the phase; None where there are none.
    """

    names: tuple[str, ...]
    gpu_time: I8
    activities: I8
    host: I8 | None
    iteration_ns: I8 | None


def user_phases(scope: Scope) -> PhaseColumns:
    """Divide what passes among the phases of ``scope``, the first that fits; the rest is last."""
    profile = scope.profile
    of_group = phase_of_groups(profile, profile.activities)
    host = np.array([_host_time(scope, one) for one in phase_marks(profile)] + [0], np.int64)
    names = (*(phase.name for phase in scope.phases), UNMAPPED)
    return _columns(scope, names, of_group, host if host.any() else None)


def named_phases(scope: Scope) -> PhaseColumns | None:
    """Divide what passes by the innermost range that tells its phase; None where none does.

    Serving engines tell it: ``execute_context_1(512)_generation_8(8)``.
    """
    profile = tell_phases(scope.profile)
    phases = profile.phases
    if phases is None or phases.told is None:
        return None
    told, names = phases.told, [profile.frames[frame].name for frame in phases.frames.tolist()]
    host = [_host_time(scope, told == at) for at in range(len(names) - 1)]
    of_group = phase_of_groups(profile, profile.activities)
    return _columns(scope, tuple(names), of_group, np.array([*host, 0], np.int64))


def kernel_families(scope: Scope) -> PhaseColumns:
    """Divide what passes by what it computes, after the names of kernels."""
    profile = scope.profile
    category = profile.grouping.category[profile.activities.groups.frame]
    frames, of_group = distinct(category.astype(np.int64))
    names = tuple(profile.frames[frame].name for frame in frames.tolist())
    return _columns(scope, names, of_group, None)


def _columns(scope: Scope, names: tuple[str, ...], of_group: I8, host: I8 | None) -> PhaseColumns:
    size, weights, work = len(names), scope.own_weights, iteration_work(scope)
    return PhaseColumns(
        names,
        sum_by(of_group, weights.value, size),
        sum_by(of_group, weights.activities, size),
        host,
        work and sum_by(of_group, work.weights.value, size) // work.iterations,
    )


# What belongs to a phase


def _host_time(scope: Scope, marks: Bool) -> int:
    """How long threads were in marked ranges and functions, ns."""
    found = [_of_frames(one, marks) for one in (scope.profile.ranges, scope.profile.functions)]
    thread, start, end = (np.concatenate(columns) for columns in zip(*found, strict=True))
    return HostTime(scope).union(thread, start, end)


def _of_frames(pieces: ThreadPieces | None, marks: Bool) -> tuple[I8, I8, I8]:
    if pieces is None:
        return (np.zeros(0, np.int64),) * 3
    rows = np.flatnonzero(marks[pieces.frame])
    return pieces.thread[rows].astype(np.int64), pieces.start[rows], pieces.end[rows]


# Tables


def phases_section(scope: Scope) -> Section:
    """Tell how the GPU time divides among phases, and among kinds of kernels."""
    if scope.profile.resolved or not len(scope.profile.activities):
        return Section(NAME, TITLE, why="no GPU activity was recorded")
    found = user_phases(scope) if scope.phases else named_phases(scope)
    by = "file" if scope.phases else "ranges" if found else "kernels"
    tables = [] if found is None else [_phase_table(scope, found)]
    notes = []
    if not scope.phases:
        tables.append(_family_table(kernel_families(scope)))
    if found is None:
        notes.append("no range tells its phase: name phases by --phases FILE")
    return Section(NAME, TITLE, {"by": by}, tuple(tables), tuple(notes))


def _phase_table(scope: Scope, found: PhaseColumns) -> Table:
    """The phases, which are frames of the level ``phase``."""
    places = [
        Place(("phase", "kernel"), (name,)) if ns else None
        for name, ns in zip(found.names, found.gpu_time.tolist(), strict=True)
    ]
    return Table.of("rows", "", _COLUMNS, _rows(found), places if scope.profile.phases else ())


def _family_table(found: PhaseColumns) -> Table:
    rows = sorted(_rows(found), key=_by_time)
    places = [Place(("category", "kernel"), (str(row[0]),)) for row in rows]
    title = "by names of kernels; the table of patterns: --phases show"
    cells = ((*row[:4], row[5]) for row in rows)
    return Table.of("families", title, _FAMILIES, cells, places)


def _by_time(row: Sequence[Value]) -> int:
    return -int(row[1] or 0)


def _rows(found: PhaseColumns) -> Iterator[tuple[Value, ...]]:
    whole, size = int(found.gpu_time.sum()), len(found.names)
    host, each = (
        [None] * size if one is None else one.tolist() for one in (found.host, found.iteration_ns)
    )
    if host[-1] == 0:
        host[-1] = None
    cells = zip(found.gpu_time.tolist(), found.activities.tolist(), host, each, strict=True)
    for name, (ns, number, host_ns, iteration_ns) in zip(found.names, cells, strict=True):
        yield name, ns, share(ns, whole), number, host_ns, iteration_ns


def built_in_patterns() -> str:
    """Write the patterns of ranges, then of kernels, each in their order: ``--phases show``."""
    ranges = ((phase, one) for phase, patterns in TOLD_BY_RANGES.items() for one in patterns)
    return "".join(f"{name}\n    {pattern}\n" for name, pattern in (*ranges, *RULES))
