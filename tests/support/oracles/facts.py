"""What flame and the naive computation each say of one activity, in one plain form to compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from tests.support.oracles.naive import Row, tid_of

CAPTURED = " [captured]"


class Fact(NamedTuple):
    """One activity; its thread and call are None without a recorded launch."""

    kind: str
    start: int
    duration: int
    pid: int | None
    tid: int | None
    gpu: int
    stream: int
    launch: str
    call: tuple[int, int] | None
    python: tuple[str, ...]
    native: tuple[str, ...]
    ranges: tuple[tuple[str, str], ...]
    name: str


def naive_facts(rows: Iterable[Row]) -> list[Fact]:
    """Ranges are (text, domain); those open at capture have a mark."""
    return [
        Fact(
            row.kind,
            row.start,
            row.duration,
            row.pid,
            tid_of(row.call.tid) if row.call else None,
            row.gpu,
            row.stream,
            row.launch,
            (row.call.start, row.call.end) if row.call else None,
            row.python,
            row.native,
            (
                *((one.text, one.domain) for one in row.nvtx),
                *((one.text + CAPTURED, one.domain) for one in row.captured),
            ),
            row.name,
        )
        for row in rows
    ]


def flame_facts(profile: Profile) -> list[Fact]:
    """The rows of the profile's event table."""
    table, frames = profile.activities, profile.frames

    @cache
    def names(stack: int) -> tuple[str, ...]:
        return tuple(frames[frame].name for frame in table.stacks.path(stack))

    @cache
    def ranges(stack: int) -> tuple[tuple[str, str], ...]:
        path = [frames[frame] for frame in table.stacks.path(stack)]
        return tuple(
            (one.name + (CAPTURED if one.get("captured") else ""), one.get("domain"))
            for one in path
        )

    def fact(row: int) -> Fact:
        process, thread = int(table.process[row]), int(table.thread[row])
        call = (int(table.launch_start[row]), int(table.launch_end[row]))
        return Fact(
            Kind(int(table.kind[row])).title,
            int(table.start[row]),
            int(table.duration[row]),
            profile.processes[process].pid if process >= 0 else None,
            profile.threads[thread].tid if thread >= 0 else None,
            profile.devices[int(table.device[row])].id,
            int(table.stream[row]),
            frames[int(table.launch[row])].name,
            call if table.launched[row] else None,
            names(int(table.python[row])),
            names(int(table.native[row])),
            ranges(int(table.nvtx[row])),
            frames[int(table.frame[row])].name,
        )

    return [fact(row) for row in range(len(table))]


def differences(mine: Iterable[object], theirs: Iterable[object]) -> list[object]:
    """Up to three of what only one side has, as many times as it has more of it."""
    left, right = Counter(mine), Counter(theirs)
    only = [("only flame", one) for one in (left - right)]
    return [*only[:3], *[("only naive", one) for one in (right - left)][:3]]
