"""Divide the time of each GPU into parts that add up to it."""

from __future__ import annotations

from typing import NamedTuple

from flame.core.analysis.utilization import Utilization
from flame.core.columns import I8
from flame.core.kept_results import kept
from flame.core.report.labels import PART_NAMES
from flame.core.report.scope import Scope
from flame.core.report.table import Section, Table, TableColumn, share
from flame.core.timeline.exposure import class_times
from flame.core.timeline.idle_parts import IdleCause, told_causes
from flame.core.timeline.thread_states.holdups import HOLDUPS

MIXED = "mixed"
"""The character of a window of which nothing is most."""

NAME, TITLE = "budget", "Where the time of each GPU went"


class Budget(NamedTuple):
    """Divide the ``window`` of a GPU: all parts in ns, ``idle`` i8[causes] by `IdleCause`."""

    gpu: Utilization
    compute: int
    exposed_communication: int
    copies_alone: int
    idle: I8

    @property
    def window(self) -> int:
        """All of the time that is looked at."""
        return self.gpu.length

    @property
    def check(self) -> int:
        """What the parts lack of the window: 0."""
        busy = self.compute + self.exposed_communication + self.copies_alone
        return self.window - busy - int(self.idle.sum())

    @property
    def parts(self) -> list[tuple[str, int]]:
        """The parts by name, idle ones with their cause; those that there are not left out."""
        busy = (self.compute, self.exposed_communication, self.copies_alone)
        times = (*busy, *(int(self.idle[each]) for each in IdleCause))
        return [(name, ns) for name, ns in zip(PART_NAMES, times, strict=True) if ns]

    @property
    def character(self) -> str:
        """What most of the window is: a kind of work, ``host``, ``waiting``, or else ``mixed``."""
        kinds = {
            "compute": self.compute,
            "communication": self.exposed_communication,
            "copies": self.copies_alone,
            "host": int(self.idle[list(_HOST)].sum()),
            "waiting": int(self.idle[list(_WAITING)].sum()),
        }
        most = max(kinds, key=kinds.__getitem__)
        return most if kinds[most] >= _CHARACTER * self.window and self.window else MIXED


def mostly(character: str) -> str:
    """Say what most of a window is."""
    return character if character == MIXED else f"mostly {character}"


@kept
def budgets(scope: Scope) -> tuple[Budget, ...]:
    """Divide the time of each GPU of ``scope``."""
    return tuple(_budget(scope, gpu) for gpu in scope.gpus)


def _budget(scope: Scope, gpu: Utilization) -> Budget:
    exposed = class_times(scope.profile, gpu.device).exposed(gpu.windows)
    return Budget(gpu, *exposed, scope.idle(gpu).sums(gpu.windows))


_CHARACTER = 0.4
"""From which part of the window on it is called after what most of it is."""

_HOST = (
    IdleCause.HOST_CODE,
    *HOLDUPS,
    IdleCause.IN_LAUNCH,
    IdleCause.LAUNCH_CALL,
    IdleCause.ALLOC,
    IdleCause.OTHER_CALL,
)
_WAITING = (IdleCause.SYNC, IdleCause.AFTER_LAUNCH)

_COLUMNS = (
    TableColumn("gpu", "GPU"),
    TableColumn("part", "part"),
    TableColumn("ns", "time", "ns"),
    TableColumn("percent", "of window", "percent"),
)


def budget_section(scope: Scope) -> Section:
    """Tell the budget of each GPU."""
    found = budgets(scope)
    if not found:
        return Section(NAME, TITLE, why="no GPU activity with times was recorded")
    rows = [
        (budget.gpu.label, part, ns, share(ns, budget.window))
        for budget in found
        for part, ns in budget.parts
    ]
    return Section(
        NAME,
        TITLE,
        facts={"devices": [_facts(scope, budget) for budget in found]},
        tables=(Table.of("parts", "", _COLUMNS, rows, whole=True),),
    )


def _facts(scope: Scope, budget: Budget) -> dict[str, object]:
    return {
        **scope.device(budget.gpu),
        "gpu": budget.gpu.label,
        "begin_ns": budget.gpu.window.low,
        "window_ns": budget.window,
        "compute_ns": budget.compute,
        "exposed_comm_ns": budget.exposed_communication,
        "copies_alone_ns": budget.copies_alone,
        "idle_ns": {each.title: int(budget.idle[each]) for each in told_causes(scope.profile)},
        "character": budget.character,
        "check": budget.check,
    }
