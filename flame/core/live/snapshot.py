"""Take snapshots of a live recording: profiles that nothing changes any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from flame.core.attribution.gaps import describe_gaps
from flame.core.lazy_dataclass import dataclass
from flame.core.live.event_tables import EventTables
from flame.core.live.lazy_rows import SegmentRows
from flame.core.live.source import LiveSource
from flame.core.live.sums.samples import LiveSamples
from flame.core.live.sums.segment import WindowExtent
from flame.core.live.sums.window_sums import WindowTotals
from flame.core.live.vocabulary import LiveVocabulary, SnapshotVocabulary
from flame.core.live.window import LiveWindow
from flame.core.loading.merge.profiles import merge_metas, merge_warnings
from flame.core.loading.source_labels import label_sources, order_sources
from flame.core.model.launches import LaunchConfig
from flame.core.model.meta import Meta, Source
from flame.core.model.profile import Profile


@dataclass(frozen=True)
class RecordingSnapshot:
    """One window of a recording. ``begin`` and ``end``: of the window, ns as in ``profile``.

    Snapshots of a window with equal ``version`` differ in nothing but time.
    """

    profile: Profile
    window: LiveWindow
    version: int
    begin: int
    end: int


class SnapshotBuilder:
    """Builds profiles of windows; what has not changed is the same object in all of them."""

    def __init__(
        self,
        vocabulary: LiveVocabulary,
        tables: EventTables,
        samples: LiveSamples,
        configs: Sequence[LaunchConfig],
    ) -> None:
        self._vocabulary = vocabulary
        self._tables = tables
        self._samples = samples
        self._configs = configs
        self._configs_then: tuple[LaunchConfig, ...] = ()

    def build(
        self,
        dumps: Sequence[LiveSource],
        totals: WindowTotals,
        totals_of_all: WindowTotals,
        extent: WindowExtent,
    ) -> Profile:
        """Build the profile of a window from its ``totals``.

        ``totals_of_all`` are those of all there was: warnings of gaps are on these.
        """
        tables = self._tables
        metas = [source.growing.meta() for source in dumps]
        labels = label_sources(metas) if len(dumps) > 1 else ("",) * len(dumps)
        sampling = self._samples.take([source.growing for source in dumps])
        vocabulary = self._snapshot_vocabulary(dumps, metas, labels)
        kept = [segment for source in dumps for segment in source.store.segments]
        rows = SegmentRows(kept, extent.begin, extent.zero)
        since = max((source.store.floor - extent.zero for source in dumps), default=0)
        host = tables.host_table(vocabulary)
        spans = [part for source in dumps for part in source.spans_in(extent)]
        profile = Profile(
            frames=vocabulary.frames,
            activities=tables.activity_table(rows, vocabulary),
            processes=vocabulary.processes,
            threads=vocabulary.threads,
            devices=vocabulary.devices,
            grouping=vocabulary.grouping,
            meta=_merge_metas(dumps, metas, extent.zero),
            begin=max(extent.begin - extent.zero, 0),
            end=extent.end - extent.zero,
            graph_nodes=tables.graph_nodes(totals),
            warnings=(),
            host_builder=lambda: host,
            launches_builder=partial(rows.launches, self._all_configs()),
            ranges_builder=partial(tables.range_pieces, spans, vocabulary.stacks, extent),
            calls_builder=partial(tables.call_pieces, spans, extent),
            sources=vocabulary.sources,
            totals=tables.totals(totals, since),
            sampling=sampling,
        )
        gaps = describe_gaps(replace(profile, totals=tables.totals(totals_of_all, since)))
        notes = merge_warnings([source.warnings() for source in dumps], labels)
        return replace(profile, warnings=(*notes, *gaps))

    def _snapshot_vocabulary(
        self, dumps: Sequence[LiveSource], metas: Sequence[Meta], labels: Sequence[str]
    ) -> SnapshotVocabulary:
        order = order_sources(metas)
        sources = [Source(labels[at], metas[at]) for at in order]
        numbers = [dumps[at].growing.source for at in order]
        return self._vocabulary.snapshot(numbers, sources, self._tables.streams)

    def _all_configs(self) -> tuple[LaunchConfig, ...]:
        if len(self._configs_then) < len(self._configs):
            self._configs_then = tuple(self._configs)
        return self._configs_then


def _merge_metas(dumps: Sequence[LiveSource], metas: Sequence[Meta], zero: int) -> Meta:
    """Merge the metadata of all dumps; the origin is the time of day at ``zero``."""
    if not dumps:
        return Meta(format="fdump")
    header = dumps[0].growing.header
    origin = header.start_unix + zero - header.start_monotonic
    return replace(metas[0], origin=origin) if len(metas) == 1 else merge_metas(metas, origin)
