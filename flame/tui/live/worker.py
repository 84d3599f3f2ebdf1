"""Follow a recording in a thread: read what is new, project it, and hand it to the app."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic, process_time, thread_time
from typing import NamedTuple

from textual.message import Message

from flame.core.errors import InputError
from flame.core.live.status import LiveStatus
from flame.core.live.window import ALL, WINDOWS, LiveWindow
from flame.core.loading.inputs import Inputs
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection
from flame.exporters.dumps import DumpSource
from flame.tui.live.feed import DumpFeed, LiveFeed, LiveSnapshot, NewDumps
from flame.tui.live.session import LiveSession, has_anything
from flame.tui.session.query import Query, SearchResult, find_in_time
from flame.tui.session.session import Projection, metrics_of
from flame.tui.toolkit.background import Pace, hand_in

STEP = 0.25
"""Seconds between two looks at what is new, and between two pictures, at least."""

_LOOK = 1.0
"""Seconds between two looks for new processes, and between two pictures where only time passes."""

_BUDGET = 0.15
"""Seconds that one look may read; where that is not all, the next one follows at once."""

_SHARE = 3
"""So many times as long as a picture takes to work out and to draw, no other one comes."""

_LONGEST = 3.0
"""Seconds between two pictures at most, however long they take."""

_TRIES = 10
"""How often a file that is no dump is looked at again before that is said."""


class LiveRequest(NamedTuple):
    """Ask for what the app wants to show, and to find in it."""

    selection: Selection
    query: Query | None = None


class Renewed(Message):
    """Bring a later state of the recording, or another window; the app has to call `taken`."""

    def __init__(
        self,
        session: LiveSession,
        latest: Projection,
        search: SearchResult | None,
        status: LiveStatus,
    ) -> None:
        super().__init__()
        self.session = session
        self.latest = latest
        self.found = search
        self.status = status


class StatusChanged(Message):
    """Say how the recording is doing, where there is nothing new to show.

    ``over``: there is none, nor will there be one.
    """

    def __init__(self, status: LiveStatus, over: bool = False) -> None:
        super().__init__()
        self.status = status
        self.over = over


class WorkerFailed(Message):
    """Bring an error that should not have happened."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class LiveWorker:
    """Follow ``feed``, and ``watch`` for more of it; ``post`` takes `Renewed` and `StatusChanged`.

    ``wish`` is asked in the thread. What the app calls returns at once and takes effect there.
    """

    def __init__(
        self,
        feed: LiveFeed,
        watch: NewDumps | None,
        name: str,
        options: LoadOptions,
        window: LiveWindow,
        wish: Callable[[], LiveRequest],
        post: Callable[[Message], object],
    ) -> None:
        self._feed = feed
        self._watch = watch
        self._name = name
        self._options = options
        self._window = window
        self._wish = wish
        self._post = post
        self._thread = Thread(target=self._run, daemon=True)
        self._lock = Lock()
        self._woken = Event()
        self._stopped = False
        self._paused = False
        self._marked = False
        self._stale = True
        self._waiting = False
        self._frozen: dict[str, LiveSnapshot] = {}
        self._unread: dict[Path, tuple[int | None, int]] = {}
        self._notes: tuple[str, ...] = ()
        self._paths: list[Path] = []
        self._usual = ""
        self._opened = self._bare = False
        self._changed = False
        self._reading = self._spent = 0.0
        self._pace = Pace(STEP, _SHARE, _LONGEST)
        self._looked = self._shown = self._told = float("-inf")

    # For the app

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self, patience: float = 1.0) -> None:
        """Stop following, and give the thread a moment for it."""
        self._stopped = True
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(patience)

    def turn(self, window: LiveWindow) -> None:
        """Show ``window``, from now on."""
        with self._lock:
            self._window, self._stale = window, True
        self._woken.set()

    def pause(self, paused: bool) -> None:
        """Hand nothing newer in, or all of it again; it is read in any case."""
        with self._lock:
            self._paused, self._stale = paused, not paused
        self._woken.set()

    def mark(self) -> None:
        """Begin the window "since the mark" now."""
        self._marked = True
        self._woken.set()

    @property
    def sources(self) -> Sequence[DumpSource]:
        """The dumps, to be saved."""
        return self._feed.sources if isinstance(self._feed, DumpFeed) else ()

    def taken(self, shown: bool) -> None:
        """Note that the app has dealt with the last `Renewed`; not ``shown``: it wanted another."""
        with self._lock:
            self._waiting = False
            self._stale = self._stale or not shown

    # The thread

    def _run(self) -> None:
        self._spent = process_time()
        try:
            while not self._stopped:
                self._follow()
        except Exception as error:
            hand_in(WorkerFailed(error), self._post)
        finally:
            self._feed.close()

    def _follow(self) -> None:
        """One look at what is new, a picture if one is due, and the time until the next look."""
        begin = monotonic()
        self._look(begin)
        if self._marked:
            self._marked = False
            self._feed.mark()
            self._stale = True
        self._freeze()
        self._read()
        status = self._status()
        self._show(status)
        self._rest(0.0 if status.behind else begin + STEP - monotonic())

    def _read(self) -> None:
        before = thread_time()
        self._changed |= self._feed.update(_BUDGET)
        self._reading += thread_time() - before

    def _rest(self, seconds: float) -> None:
        """Wait until the next look is due, or the app wants something."""
        if self._woken.wait(max(seconds, 0.0)):
            self._woken.clear()
            self._pace.hurry()

    def _delay_next(self) -> None:
        """Have the next picture wait as long as suits what the last one took, the app included.

        Reading does not count: it has to be done, and a picture that takes long delays none of it.
        """
        before, self._spent = self._spent, process_time() - self._reading
        self._pace.delay(self._spent - before, since=self._shown)

    # Finding dumps

    def _look(self, now: float) -> None:
        """Follow dumps that have appeared; what is no dump yet may become one."""
        if self._watch is None or now - self._looked < _LOOK:
            return
        self._looked = now
        for path, descriptor in self._watch.new():
            self._unread.setdefault(path, (descriptor, 0))
        for path, (descriptor, tries) in list(self._unread.items()):
            self._add(path, descriptor, tries + 1)

    def _add(self, path: Path, descriptor: int | None, tries: int) -> None:
        assert isinstance(self._feed, DumpFeed)
        try:
            self._feed.add(path, descriptor)
        except InputError as error:
            self._unread[path] = (descriptor, tries)
            if tries == _TRIES:
                self._notes = (*self._notes, str(error))
        else:
            del self._unread[path]
            self._paths.append(path)
            if descriptor is not None:
                os.close(descriptor)

    # Showing

    def _freeze(self) -> None:
        """While the picture stands still, keep what every window of it holds."""
        if not self._paused:
            self._frozen = {}
        elif not self._frozen:
            self._frozen = {window.key: self._feed.snapshot(window) for window in WINDOWS}

    def _show(self, status: LiveStatus) -> None:
        """Hand in what the app wants to show, if it may differ from what it shows."""
        now = monotonic()
        with self._lock:
            self._stale = self._stale or (self._changed and not self._paused)
            stale, moving = self._stale, not self._paused
            ready = not self._waiting and not self._pace.wait()
        passing = moving and status.running and now - self._shown >= _LOOK and self._moves()
        if ready and status.sources and (stale or passing):
            self._shown = self._told = now
            self._hand_in(status)
            self._delay_next()
        elif now - self._told >= _LOOK:
            self._told = now
            over = not status.sources and self._watch is not None and self._watch.over
            hand_in(StatusChanged(status, over), self._post)

    def _status(self) -> LiveStatus:
        status = self._feed.status()
        return replace(status, notes=(*status.notes, *self._notes)) if self._notes else status

    def _moves(self) -> bool:
        """Whether the picture changes by time alone: a window moves on, open ranges grow."""
        metric = self._wish().selection.metric or self._usual
        return (bool(self._window.length) and not self._bare) or metric == "host"

    def _hand_in(self, status: LiveStatus) -> None:
        with self._lock:
            window, self._stale, self._changed = self._window, False, False
            frozen = self._frozen if self._paused else {}
        snapshot = frozen.get(window.key) or self._feed.snapshot(window)
        session = self._session(_noted(snapshot.profile, status.notes), window)
        self._bare = session.bare
        if not self._begun(session):
            hand_in(StatusChanged(status), self._post)
            return
        request = self._wish()
        latest = session.latest(request.selection)
        result = find_in_time(latest.view.tree, request.query)
        with self._lock:
            self._waiting = True
        hand_in(Renewed(session, latest, result, status), self._post)

    def _session(self, profile: Profile, window: LiveWindow) -> LiveSession:
        if profile.default_metric != "host" or not self._usual:
            self._usual = profile.default_metric
        inputs, metrics = Inputs(tuple(self._paths), self._name), metrics_of(profile)
        return LiveSession(inputs, profile, metrics, self._options, {}, window, self._usual)

    def _begun(self, session: LiveSession) -> bool:
        """Whether anything has been recorded, in whatever window."""
        if not self._opened:
            self._opened = not self._bare or has_anything(self._feed.snapshot(ALL).profile)
        return self._opened


def _noted(profile: Profile, notes: tuple[str, ...]) -> Profile:
    """``profile`` with what is wrong with following the recording among its warnings."""
    return replace(profile, warnings=(*profile.warnings, *notes)) if notes else profile
