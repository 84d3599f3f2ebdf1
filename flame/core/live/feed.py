"""Follow live recordings: read dumps as they grow, add them up, and take snapshots."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from flame.core.live.decode.growing import GrowingDump
from flame.core.live.event_tables import EventTables
from flame.core.live.liveness import Liveness
from flame.core.live.snapshot import RecordingSnapshot, SnapshotBuilder
from flame.core.live.source import LiveSource
from flame.core.live.status import LiveStatus, Rates, SourceState, SourceStatus
from flame.core.live.sums.activity_store import ActivityStore
from flame.core.live.sums.groups import ActivityGroups, HostGroups
from flame.core.live.sums.host_spans import SpanStore
from flame.core.live.sums.rates import SETTLED, RecordingSpan, compute_rates
from flame.core.live.sums.samples import LiveSamples
from flame.core.live.sums.segment import KeptSegments, WindowExtent
from flame.core.live.sums.window_sums import WindowSums, WindowTotals
from flame.core.live.vocabulary import LiveVocabulary
from flame.core.live.window import ALL, LONGEST, SECOND, LiveWindow
from flame.core.loading.source_labels import label_sources
from flame.core.model.frames import NO_LAUNCH, Frame, Kind
from flame.core.model.stack_joins import StackJoiner
from flame.core.options import LoadOptions
from flame.core.readers.fdump.chunks import DumpBytes, prefix_errors
from flame.core.readers.fdump.context import SharedTables

MOST_ROWS = 4_000_000
"""Activities that are kept, and as many calls and ranges: with more, windows are shorter."""

_ALWAYS = -(1 << 62)
_HALTED = "process {}: stopped by a signal or a debugger, it records nothing until it goes on"


def monotonic() -> int:
    """Return the time of the clock that dumps keep, ns."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class RecordingFeed:
    """Follows the dumps that are added to it. Used by one thread; its snapshots by any.

    ``clock`` gives the time, ns of CLOCK_MONOTONIC.
    """

    def __init__(self, options: LoadOptions, clock: Callable[[], int] = monotonic) -> None:
        self._options = options
        self._clock = clock
        self._shared = SharedTables()
        self._vocabulary = LiveVocabulary(self._shared)
        self._work = ActivityGroups(StackJoiner(self._shared.frames, self._shared.stacks))
        self._host = HostGroups()
        self._no_launch = self._shared.frames.add(Frame(Kind.LAUNCH, NO_LAUNCH))
        self._tables = EventTables(self._work, self._host)
        self._samples = LiveSamples(self._shared.frames, self._work)
        self._snapshots = SnapshotBuilder(
            self._vocabulary, self._tables, self._samples, self._shared.configs
        )
        self._sums = WindowSums(clock())
        self._sources: list[LiveSource] = []
        self._files: set[tuple[int, int]] = set()
        self._turn = 0
        self._version = 0
        self._zero = 0
        self._since = _ALWAYS

    @property
    def sources(self) -> tuple[GrowingDump, ...]:
        """The dumps, in the order in which they were added."""
        return tuple(source.growing for source in self._sources)

    def add(self, path: Path, fd: int | None = None) -> None:
        """Follow the dump at ``path``, or open as ``fd``; a dump is followed only once.

        InputError where it is no dump (yet), packed, or a link.
        """
        with prefix_errors(path):
            data = DumpBytes(path, fd, foreign=True)
            if data.file in self._files:
                data.close()
                return
        growing = GrowingDump(data, str(path), len(self._sources), self._shared, self._options)
        store = ActivityStore(self._work, growing.process, self._no_launch)
        spans = SpanStore(self._host, growing.process, self._vocabulary.parents)
        self._files.add(data.file)
        self._sources.append(LiveSource(growing, store, spans, Liveness(data.mapped_file())))

    def close(self) -> None:
        """Close all files."""
        self._samples.close()
        for source in self._sources:
            source.growing.close()

    def mark(self) -> None:
        """Let the window "since the mark" begin now."""
        self._sums.set_mark(self._now())

    # Reading

    def update(self, budget: float = 0.15) -> bool:
        """Read new records for about ``budget`` seconds; return whether anything has changed."""
        due = time.monotonic() + budget
        changed = False
        for source in self._in_turn():
            read, late = source.read()
            self._sums.settle(KeptSegments(late, ()))
            changed |= read
            self._turn += 1
            if time.monotonic() >= due:
                break
        if self._sources and not self._version:
            self._zero = min(source.begin for source in self._sources)
        now = self._clock()
        for source in self._sources:
            changed |= source.update_state(now)
        changed |= self._samples.is_due([source.growing for source in self._shown_sources()])
        self._expire()
        self._version += changed
        return changed

    def _in_turn(self) -> Iterator[LiveSource]:
        """Yield all dumps, then those again that have more, beginning where the last call ended."""
        first = self._turn % max(len(self._sources), 1)
        dumps = (*self._sources[first:], *self._sources[:first])
        waiting = [source for source in dumps if not source.complete]
        while waiting:
            yield from waiting
            waiting = [source for source in waiting if source.rest]

    def _now(self) -> int:
        """Return the time while anything is recorded, then that when the last recording ended."""
        if not self._sources or any(
            source.state is SourceState.RUNNING for source in self._sources
        ):
            return self._clock()
        return max(source.last for source in self._sources)

    def _expire(self) -> None:
        """Drop rows that are in no window any more, and those that are too many."""
        now = self._now()
        for source in self._sources:
            self._sums.settle(source.expire(now - LONGEST))
        self._shorten([source.store for source in self._sources])
        self._shorten([source.spans for source in self._sources])

    def _shorten(self, stores: Sequence[ActivityStore] | Sequence[SpanStore]) -> None:
        rows = sum(map(len, stores))
        while rows > MOST_ROWS:
            oldest = min((store for store in stores if len(store)), key=lambda store: store.oldest)
            gone = oldest.drop_oldest()
            rows -= sum(len(segment) for part in gone for segment in part)
            self._since = max(self._since, *(segment.last + 1 for part in gone for segment in part))
            self._sums.settle(gone)

    # What there is

    def snapshot(self, window: LiveWindow) -> RecordingSnapshot:
        """Take a snapshot of ``window`` now."""
        now = self._now()
        begin = self._sums.begin(window, now)
        if begin is not None and not window.marked:
            begin = max(begin, self._since)
        shown = self._shown_sources()
        extent = WindowExtent(_ALWAYS if begin is None else begin, now, self._zero)
        totals, totals_of_all = (
            self._sum_window(*chosen, now) for chosen in ((window, begin), (ALL, None))
        )
        profile = self._snapshots.build(shown, totals, totals_of_all, extent)
        return RecordingSnapshot(profile, window, self._version, profile.begin, profile.end)

    def _shown_sources(self) -> list[LiveSource]:
        """Return the dumps that hold anything; the first if none does."""
        return [source for source in self._sources if source.filled] or self._sources[:1]

    def _sum_window(self, window: LiveWindow, begin: int | None, now: int) -> WindowTotals:
        """Sum up ``window``, including what is open at ``now``."""
        kept = KeptSegments(
            [segment for source in self._sources for segment in source.store.segments],
            [segment for source in self._sources for segment in source.spans.segments],
        )
        totals = self._sums.look(window, begin, kept, self._tables.sizes)
        for source in self._sources:
            group, values = source.spans.open_rows(source.end_of_open(now)).sums(
                _ALWAYS if begin is None else begin
            )
            totals.host[:, group] += values
        return totals

    def status(self) -> LiveStatus:
        """Return how the recording is doing."""
        now = self._now()
        late = [
            source
            for source in self._sources
            if source.growing.unread_bytes() and source.state is SourceState.RUNNING
        ]
        return LiveStatus(
            sources=tuple(self._source_statuses()),
            rates=self._rates(now),
            lag=max((now - source.newest for source in late), default=0),
            behind=sum(source.growing.unread_bytes() for source in self._sources if source.rest),
            elapsed=max(now - self._zero, 0) if self._version else 0,
            notes=tuple(self._notes(now)),
        )

    def _source_statuses(self) -> Iterator[SourceStatus]:
        metas = [source.growing.meta() for source in self._sources]
        for source, label in zip(self._sources, label_sources(metas) if metas else (), strict=True):
            header = source.growing.header
            yield SourceStatus(
                header.pid, label, source.state, header.dropped, header.tail, source.halted
            )

    def _rates(self, now: int) -> Rates:
        busy = [part.busy for source in self._sources for part in source.store.segments]
        launches = [source.spans.launches for source in self._sources]
        running = any(source.state is SourceState.RUNNING for source in self._sources)
        return compute_rates(busy, launches, self._recording_spans(now), now - SETTLED * running)

    def _recording_spans(self, now: int) -> Iterator[RecordingSpan]:
        gpus = Counter(device.source for device in self._shared.devices)
        for source in self._sources:
            yield RecordingSpan(source.begin, source.end_of_open(now), gpus[source.growing.source])

    def _notes(self, now: int) -> Iterator[str]:
        yield from (source.error for source in self._sources if source.error)
        halted = (source.growing.header.pid for source in self._sources if source.halted)
        yield from (_HALTED.format(pid) for pid in halted)
        if self._since > now - LONGEST:
            length = max(now - self._since, 0) / SECOND
            yield (
                f"more than {MOST_ROWS:,} activities a minute: "
                f"windows show the last {length:.0f} s at most"
            )
