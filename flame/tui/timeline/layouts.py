"""Lay out what a timeline shows in threads: its rows first, then why nothing ran."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Thread
from time import monotonic

from textual.message import Message

from flame.core.model.profile import Profile
from flame.tui.session.session import Projection
from flame.tui.timeline.prepare import Reasons, TimelineWork, find_reasons
from flame.tui.toolkit.background import Done, hand_in, in_background

TIMEOUT = 0.03
"""Seconds that a key may wait for the rows; if they take longer, they come by message."""

DRAWN = 0.05
"""Seconds in which rows are on the screen: what takes the processor comes after that."""

PACE = 1.0
"""Seconds between two states of a trace that grows."""

_SHARE = 3
"""So many times as long as a state has taken to lay out, no later one is."""


class Ready(Message):
    """``work`` is done."""

    def __init__(self, work: TimelineWork) -> None:
        super().__init__()
        self.work = work


class Layouts:
    """Works out one state after the other: posts `Ready`, and `Done` with the reasons of a trace.

    ``taken`` is what is shown. Reasons are found once the rows are on the screen, and of a trace
    that grows with each later state.
    """

    def __init__(self, post: Callable[[Message], object]) -> None:
        self._post = post
        self._work: TimelineWork | None = None
        self.taken: TimelineWork | None = None
        self._reasons: Reasons | None = None
        self._explaining: Profile | None = None
        self._next = 0.0

    @property
    def laying(self) -> bool:
        """Whether rows are being worked out."""
        return self._work is not self.taken

    @property
    def busy(self) -> bool:
        """Whether anything is being worked out."""
        return self.laying or self._explaining is not None

    @property
    def wait(self) -> float:
        """Seconds until a later state of a trace that grows may be laid out; 0 if it may."""
        return max(self._next - monotonic(), 0.0)

    def precedes(self, shown: Projection) -> bool:
        """Tell whether ``shown`` is a later state of what was laid out last."""
        return self._work is not None and self._work.precedes(shown)

    def fits(self, shown: Projection) -> bool:
        """Tell whether ``shown`` is what was laid out last."""
        return self._work is not None and self._work.fits(shown)

    def begin(self, shown: Projection) -> bool:
        """Begin to lay out ``shown``; True if that is done already."""
        known = self._reasons
        reasons = known if known and known.profile is shown.profile else None
        explains = known is not None and self.precedes(shown)
        work = self._work = TimelineWork(shown, self._work, reasons, explains)

        def run() -> None:
            work.run()
            hand_in(Ready(work), self._post)

        thread = Thread(target=run, daemon=True)
        thread.start()
        thread.join(TIMEOUT)
        return not thread.is_alive()

    def awaits(self, work: TimelineWork) -> bool:
        """Tell whether ``work`` is what is being worked out."""
        return work is self._work and self.laying

    def take(self) -> TimelineWork:
        """Return what is worked out."""
        assert self._work is not None
        work = self.taken = self._work
        self._next = monotonic() + max(PACE, _SHARE * work.seconds)
        self._reasons = work.reasons or self._reasons
        return work

    # Why nothing ran

    def want_reasons(self) -> bool:
        """Tell whether those of what is shown are to be found: then `find_reasons` does it."""
        work = self.taken
        if self._explaining or work is None or work.unread or work.reasons is not None:
            return False
        self._explaining = work.profile
        return True

    def find_reasons(self) -> None:
        """Find them in a thread."""
        assert self._explaining is not None
        in_background(partial(find_reasons, self._explaining), 0, self._post)

    def take_reasons(self, done: Done) -> Reasons:
        """Return what has been found, if for another trace than this; raises what went wrong."""
        reasons = done.result()
        assert isinstance(reasons, Reasons)
        if reasons.profile is self._explaining:
            self._explaining, self._reasons = None, reasons
        return reasons
