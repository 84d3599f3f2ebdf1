"""What the app shows of a recording whose older activities are only in the sums."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.analysis.sandwich import callees_of
from flame.core.live.feed import RecordingFeed
from flame.core.live.sums import activity_store as store_module
from flame.core.live.window import ALL, LAST_10, SECOND
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.filters import Streams, Time
from flame.core.projection.selection import Selection
from flame.core.timeline.intervals import timeline
from flame.tui.details.facts import Facts, collect
from flame.tui.details.labels import Label
from flame.tui.details.pane import details
from flame.tui.session.session import project
from flame.tui.toolkit.lines import Line
from flame.tui.toolkit.palette import Palette
from flame.tui.widgets.chips import describe
from tests.support.writers.fdumpfile import START, DumpFile
from tests.tui.trees import node

LENGTH = 200
KEPT = 62  # so many activities have rows, at most


@pytest.fixture
def feed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordingFeed:
    """A kernel a second, 5 ns long, on two streams by turns; every third is another one."""
    monkeypatch.setattr(store_module, "_SEGMENT", 1)
    dump = DumpFile()
    for second in range(1, LENGTH + 1):
        name = "softmax" if second % 3 == 0 else "gemm"
        dump.kernel(name, second * SECOND, second * SECOND + 5, 0, stream=7 + second % 2)
    dump.end = LENGTH * SECOND + 5
    feed = RecordingFeed(LoadOptions(), lambda: START)
    feed.add(dump.write(tmp_path / "100-1.fdump"))
    while feed.update(60):
        pass
    return feed


def shown_of(feed: RecordingFeed, facts: Facts) -> list[Line]:
    """The details of the root."""
    view = project(feed.snapshot(ALL).profile, Selection()).view
    return details(view, Palette((18, 18, 18), (224, 224, 224)), 60, facts).lines


def facts_of(profile: Profile, *where: Time | Streams) -> Facts:
    """Those of the root."""
    shown = project(profile, Selection(where=where))
    return [*collect(shown, shown.view.tree, 0)][-1]


def test_percentiles_are_of_the_latest_and_say_so_and_all_else_is_of_all(
    feed: RecordingFeed,
) -> None:
    facts = facts_of(feed.snapshot(ALL).profile)
    assert facts.spread is not None and facts.spread.count == facts.latest < LENGTH
    streams = {part.name: part.value for part in facts.on[Label.STREAMS].heaviest}
    assert streams == {"7": 5 * LENGTH // 2, "8": 5 * LENGTH // 2}
    lines = ["".join(piece.text for piece in line) for line in shown_of(feed, facts)]
    assert f"GPU time, each of the latest {facts.latest}" in " ".join(lines)
    one_stream = facts_of(feed.snapshot(ALL).profile, Streams((7,)))
    assert 0 < one_stream.latest <= facts.latest // 2 + 1


def test_of_a_frame_only_what_is_below_it_counts(feed: RecordingFeed) -> None:
    shown = project(feed.snapshot(ALL).profile, Selection())
    tree = shown.view.tree
    leaf = node(tree, "[no launch recorded]", "softmax")
    callees = callees_of(tree, int(tree.frame[leaf]))
    below, everywhere = [*collect(shown, tree, leaf)][-1], [*collect(shown, callees, 0)][-1]
    for facts in (below, everywhere):
        assert 0 < facts.latest < KEPT // 2
        assert sum(part.value for part in facts.on[Label.STREAMS].heaviest) == 5 * (LENGTH // 3)
    assert everywhere.everywhere and not below.everywhere


def test_what_is_kept_as_a_whole_says_nothing(feed: RecordingFeed) -> None:
    assert facts_of(feed.snapshot(LAST_10).profile).latest == 0
    last = Time((LENGTH - 20) * SECOND, None)
    facts = facts_of(feed.snapshot(ALL).profile, last)
    assert facts.latest == 0
    assert sum(part.value for part in facts.on[Label.STREAMS].heaviest) == 5 * 21


def test_the_time_line_begins_with_what_is_kept(feed: RecordingFeed) -> None:
    profile = feed.snapshot(ALL).profile
    shown = timeline(profile)
    assert profile.begin == 0
    assert shown.origin == profile.rows_begin == (LENGTH - 60) * SECOND - SECOND + 1
    assert shown.whole.high == profile.end - shown.origin
    assert int(shown.low[0]) == SECOND - 1
    assert timeline(feed.snapshot(LAST_10).profile).origin == profile.end - 10 * SECOND


def test_a_filter_by_time_says_since_when_there_is_anything_to_filter(feed: RecordingFeed) -> None:
    profile = feed.snapshot(ALL).profile
    assert describe(Time(0, 150 * SECOND), profile) == "time 0–150 s, kept since 139 s"
    assert describe(Time(None, 150 * SECOND), profile) == "time until 150 s, kept since 139 s"
    assert describe(Time(145 * SECOND, None), profile) == "time from 145 s"
    assert describe(Time(195 * SECOND, None), feed.snapshot(LAST_10).profile) == "time from 195 s"
