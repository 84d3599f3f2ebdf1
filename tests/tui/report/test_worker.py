"""The sections come one after another, what is looked at first, and none that nobody wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from threading import Event
from types import SimpleNamespace

import pytest
from textual.message import Message

from flame.core.errors import InputError
from flame.core.loading.many import load
from flame.core.model.tree import TreeLayout
from flame.core.projection.filters import Kernel
from flame.core.projection.selection import Selection
from flame.core.report.report import SECTIONS, Report
from flame.tui.report import worker as worker_module
from flame.tui.report.source import OpenReport, TraceReports
from flame.tui.report.worker import FINDINGS, ReportWorker, Worked
from tests.support.waiting import PATIENCE

Work = Callable[[str], object]


class Stage:
    """Works out sections when it is told to, one by one."""

    def __init__(self) -> None:
        self.begun: Queue[str] = Queue()
        self.go_on: Queue[object] = Queue()
        self.told: Queue[Message] = Queue()
        self.ended = Event()
        self.worker = ReportWorker(self.told.put)

    def work(self, report: Report, name: str) -> object:
        self.begun.put(name)
        outcome = self.go_on.get(timeout=PATIENCE)
        if isinstance(outcome, InputError):
            return str(outcome)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def ask(self, selection: Selection, *names: str, first: str = "") -> None:
        shown = SimpleNamespace(profile=None, selection=selection)
        self.worker.ask(shown, names, first)  # type: ignore[arg-type]

    def step(self, outcome: object = "done") -> str:
        """Have the section that is worked on done, and return its name."""
        name = self.begun.get(timeout=PATIENCE)
        self.go_on.put(outcome)
        self.told.get(timeout=PATIENCE)
        return name


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage()
    monkeypatch.setattr(worker_module, "_worked_out", made.work)
    yield made
    made.worker.stop()
    made.go_on.put("over")


ALL, OTHER = Selection(), Selection(where=(Kernel("norm"),))


def test_all_come_the_findings_first_and_the_costly_last(stage: Stage) -> None:
    stage.ask(ALL)
    names = [stage.step() for _ in SECTIONS]
    assert sorted(names) == sorted(SECTIONS)
    assert names[0] == FINDINGS and names[-1] == "iterations"
    assert names.index("summary") < names.index("ranges")
    assert not stage.worker.busy
    assert [one.name for one in stage.worker.titles] == list(SECTIONS)


def test_what_is_looked_at_comes_next(stage: Stage) -> None:
    stage.ask(ALL)
    assert stage.begun.get(timeout=PATIENCE) == FINDINGS
    stage.ask(ALL, first="ranges")
    stage.go_on.put("done")
    stage.told.get(timeout=PATIENCE)
    assert stage.step() == "ranges"


def test_another_selection_takes_the_place_of_what_is_worked_on(stage: Stage) -> None:
    stage.ask(ALL)
    assert stage.begun.get(timeout=PATIENCE) == FINDINGS
    stage.ask(OTHER, FINDINGS)
    stage.go_on.put("of all")
    stage.told.get(timeout=PATIENCE)
    assert stage.step("of the other") == FINDINGS
    assert stage.worker.known(OTHER) == {FINDINGS: "of the other"}
    assert stage.worker.known(ALL) == {FINDINGS: "of all"}
    assert not stage.worker.busy and stage.begun.empty()


def test_what_is_known_is_not_worked_out_again_and_stopping_keeps_it(stage: Stage) -> None:
    stage.ask(ALL, FINDINGS, "budget")
    assert stage.step() == FINDINGS
    assert stage.begun.get(timeout=PATIENCE) == "budget"
    stage.worker.stop()
    assert not stage.worker.busy
    stage.ask(ALL, FINDINGS, "kernels")
    stage.go_on.put("late")
    stage.told.get(timeout=PATIENCE)
    assert stage.step() == "kernels"
    assert stage.worker.known(ALL).keys() == {FINDINGS, "budget", "kernels"}


def test_a_section_that_cannot_be_read_says_why_and_others_go_on(stage: Stage) -> None:
    stage.ask(ALL, FINDINGS, "budget")
    stage.step(InputError("the trace has changed"))
    stage.step()
    assert stage.worker.known(ALL)[FINDINGS] == "the trace has changed"


def test_what_should_not_happen_is_told(stage: Stage) -> None:
    stage.ask(ALL, FINDINGS)
    stage.begun.get(timeout=PATIENCE)
    stage.go_on.put(ValueError("odd"))
    message = stage.told.get(timeout=PATIENCE)
    assert isinstance(message, Worked)
    assert isinstance(message.error, ValueError)


def test_a_section_is_worked_out_though_its_selection_is_left_as_it_begins(
    monkeypatch: pytest.MonkeyPatch, decode: Path
) -> None:
    told: Queue[Message] = Queue()
    worker, work_out = ReportWorker(told.put), worker_module._worked_out

    def leave_and_work_out(report: OpenReport, name: str) -> object:
        worker.stop()
        return work_out(report, name)

    monkeypatch.setattr(worker_module, "_worked_out", leave_and_work_out)
    shown = SimpleNamespace(profile=load(decode), selection=ALL)
    worker.ask(shown, (FINDINGS,))  # type: ignore[arg-type]
    message = told.get(timeout=PATIENCE)
    assert isinstance(message, Worked) and message.error is None
    assert worker.known(ALL).keys() == {FINDINGS}


def test_metric_colours_and_order_make_no_other_report() -> None:
    other = Selection(metric="count", colours="category", layout=TreeLayout(inverted=True))
    assert TraceReports().subject(other) == TraceReports().subject(Selection())
    assert TraceReports().subject(OTHER) != TraceReports().subject(Selection())
