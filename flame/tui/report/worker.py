"""Work out the sections of a report one after another, in a thread that comes second to keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from textual.message import Message

from flame.core.errors import FlameError
from flame.core.lazy_dataclass import dataclass
from flame.core.projection.selection import Selection
from flame.tui.report.source import OpenReport, ReportSource, SectionTitle, TraceReports
from flame.tui.toolkit.background import hand_in
from flame.tui.toolkit.latest import Post

if TYPE_CHECKING:
    from flame.tui.report.written import WrittenSection
    from flame.tui.session.session import Projection

FINDINGS, BUDGET, TAILS = "findings", "budget", "tails"
"""Sections of which the header and the details tell, too."""

_COSTLY = (
    *("idle", "tails", "launches", "experts", "ranges", "phases", "layers", "threads"),
    "iterations",
)
"""Sections that take longest, the longest last; others come before, as the report has them."""

_ALL = ""
"""Stands for all sections until it is known which there are."""

_OF_TRACES = TraceReports()

_KEPT = 4
"""Selections whose sections are kept, so that going back to them is immediate."""


class Worked(Message):
    """Say that another section is there; or the ``error``, which should not have happened."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Worked) and message.error is None


@dataclass(eq=False)
class ReportOfSelection:
    """Hold what is known of the report on a selection: sections by name, or why one is not there.

    ``wanted`` are those still to be worked out, ``first`` before others.
    """

    sections: dict[str, WrittenSection | str] = field(default_factory=dict)
    wanted: set[str] = field(default_factory=set)
    first: str = ""
    report: OpenReport | None = None


class ReportWorker:
    """Work out what is wanted of the ``source``'s report on one selection; ``post`` takes `Worked`.

    One thread works at a time; it ends with the section that it is at when nothing more of its
    selection is wanted.
    """

    def __init__(self, post: Post, source: ReportSource = _OF_TRACES) -> None:
        self.titles: tuple[SectionTitle, ...] = ()
        self._post = post
        self._source = source
        self._lock = Lock()
        self._known: dict[Selection, ReportOfSelection] = {}
        self._about = ReportOfSelection()
        self._stop = Event()
        self._thread: Thread | None = None
        self._running = False

    @property
    def busy(self) -> bool:
        """Whether anything that is wanted is still to come."""
        return bool(self._about.wanted)

    def known(self, selection: Selection) -> Mapping[str, WrittenSection | str]:
        """Return the sections that are known for ``selection``."""
        found = self._known.get(self._source.subject(selection))
        return found.sections if found else {}

    def ask(self, shown: Projection, names: Iterable[str] = (), first: str = "") -> None:
        """Have sections worked out, all where no ``names`` are given, ``first`` before others.

        What is wanted of another selection no longer is.
        """
        about = self._of(shown.selection)
        wanted = {*names} or {one.name for one in self.titles} or {_ALL}
        with self._lock:
            if about is not self._about:
                self._forget()
            self._about, about.first = about, first
            about.wanted |= wanted - about.sections.keys()
            if not about.wanted or self._running:
                return
            before, self._stop, self._running = self._thread, Event(), True
            work = (before, shown, about, self._stop)
            self._thread = Thread(target=self._run, args=work, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Want nothing any more; what is known stays."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        self._stop.set()
        self._running = False
        self._about.wanted.clear()
        self._about.report = None

    def _of(self, selection: Selection) -> ReportOfSelection:
        """What is known for ``selection``, which is the last to be dropped."""
        subject = self._source.subject(selection)
        about = self._known.pop(subject, None) or ReportOfSelection()
        self._known[subject] = about
        while len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]
        return about

    # In the thread, but for the lock the only one that changes sections

    def _run(
        self, before: Thread | None, shown: Projection, about: ReportOfSelection, stop: Event
    ) -> None:
        if before is not None:
            before.join()
        try:
            report = self._begin(shown, about)
            while name := self._next(about, stop):
                section = _worked_out(report, name)
                with self._lock:
                    about.sections[name] = section
                    about.wanted.discard(name)
                hand_in(Worked(), self._post)
        except Exception as error:
            hand_in(Worked(error), self._post)

    def _begin(self, shown: Projection, about: ReportOfSelection) -> OpenReport:
        """Open the report, which imports what it is made of, and list its sections."""
        with self._lock:
            report = about.report = about.report or self._source.open(shown)
            self.titles = report.titles
            if _ALL in about.wanted:
                about.wanted = {one.name for one in report.titles} - about.sections.keys()
            return report

    def _next(self, about: ReportOfSelection, stop: Event) -> str:
        """The section to be worked out next; empty where none is."""
        with self._lock:
            if stop.is_set():
                return ""
            order = [about.first, FINDINGS, *_cheapest_first(self.titles)]
            name = next((name for name in order if name in about.wanted), "")
            if not name:
                about.wanted.clear()
                self._running = False
            return name


def _cheapest_first(titles: Iterable[SectionTitle]) -> list[str]:
    names = [one.name for one in titles]
    rank = {name: place for place, name in enumerate(_COSTLY, 1)}
    return sorted(names, key=lambda name: rank.get(name, 0))


def _worked_out(report: OpenReport, name: str) -> WrittenSection | str:
    """A section, or why there is none."""
    from flame.tui.report.written import WrittenSection

    try:
        return WrittenSection.of(report.section(name))
    except FlameError as error:
        return str(error)
