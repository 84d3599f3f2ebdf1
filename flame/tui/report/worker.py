"""Work out the sections of a report one after another, in a thread that comes second to keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, NamedTuple

from textual.message import Message

from flame.core.errors import FlameError
from flame.core.lazy_dataclass import dataclass
from flame.core.model.tree import TreeLayout
from flame.core.projection.selection import Selection
from flame.tui.toolkit.background import hand_in
from flame.tui.toolkit.latest import Post

if TYPE_CHECKING:
    from flame.core.model.profile import Profile
    from flame.core.report.report import Report
    from flame.tui.report.written import WrittenSection
    from flame.tui.session.session import Projection

FINDINGS = "findings"

_COSTLY = (
    *("idle", "tails", "launches", "experts", "ranges", "phases", "layers", "threads"),
    "iterations",
)
"""Sections that take longest, the longest last; others come before, as the report has them."""

_ALL = ""
"""Stands for all sections until it is known which there are."""

_KEPT = 4
"""Selections whose sections are kept, so that going back to them is immediate."""


class SectionTitle(NamedTuple):
    """Name a section as options do, and as people do."""

    name: str
    title: str


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
    report: Report | None = None


def subject_of(selection: Selection) -> Selection:
    """Return what of ``selection`` makes a difference to a report."""
    return replace(selection, metric=None, colours="level", layout=TreeLayout())


class ReportWorker:
    """Work out what is wanted of the report on one selection; ``post`` takes `Worked`.

    One thread works at a time; it ends with the section that it is at when nothing more of its
    selection is wanted.
    """

    def __init__(self, post: Post) -> None:
        self.titles: tuple[SectionTitle, ...] = ()
        self._post = post
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
        found = self._known.get(subject_of(selection))
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
            work = (before, shown.profile, shown.selection, about, self._stop)
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
        subject = subject_of(selection)
        about = self._known.pop(subject, None) or ReportOfSelection()
        self._known[subject] = about
        while len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]
        return about

    # In the thread, but for the lock the only one that changes sections

    def _run(
        self,
        before: Thread | None,
        profile: Profile,
        selection: Selection,
        about: ReportOfSelection,
        stop: Event,
    ) -> None:
        if before is not None:
            before.join()
        try:
            report = self._begin(profile, selection, about)
            while name := self._next(about, stop):
                section = _worked_out(report, name)
                with self._lock:
                    about.sections[name] = section
                    about.wanted.discard(name)
                hand_in(Worked(), self._post)
        except Exception as error:
            hand_in(Worked(error), self._post)

    def _begin(self, profile: Profile, selection: Selection, about: ReportOfSelection) -> Report:
        """Import what a report is made of, and list its sections; the report itself."""
        from flame.core.report.report import SECTIONS, Report
        from flame.core.report.scope import Scope

        with self._lock:
            self.titles = tuple(SectionTitle(kind.name, kind.title) for kind in SECTIONS.values())
            about.report = about.report or Report(Scope(profile, subject_of(selection)))
            if _ALL in about.wanted:
                about.wanted = SECTIONS.keys() - about.sections.keys()
            return about.report

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


def _worked_out(report: Report, name: str) -> WrittenSection | str:
    """A section, or why there is none."""
    from flame.tui.report.written import WrittenSection

    try:
        return WrittenSection.of(report.section(name))
    except FlameError as error:
        return str(error)
