"""Windows of live recordings: which activities, calls and ranges are in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flame.core.live import feed as feed_module
from flame.core.live.feed import RecordingFeed
from flame.core.live.sums import activity_store as store_module
from flame.core.live.sums import host_spans as spans_module
from flame.core.live.sums import pending_calls as calls_module
from flame.core.live.window import ALL, LAST_10, LAST_60, SECOND, SINCE_MARK
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.projection.filters import Time
from tests.core.live.recordings import LAUNCH, LEVELS, Clock, at, running, tree_of
from tests.support.profiles.project_tree import project_tree
from tests.support.writers.fdumpfile import START, DumpFile


def test_every_window_is_what_a_filter_by_time_leaves(
    feed: RecordingFeed, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_SEGMENT", 20)
    dump, path = running(), tmp_path / "100-1.fdump"
    feed.add(dump.write(path))
    for second in range(1, 150):
        start = second * SECOND
        dump.launch(start, start + 100, second, api=LAUNCH, nvtx=dump.nvtx("step", f"{second % 7}"))
        for number in range(3):
            dump.kernel("gemm", start + 10 * number, start + 10 * number + 5, second, device=1)
        if second == 40:
            feed.mark()
        if second % 10 == 0:
            dump.end = start + SECOND // 2  # It says that it goes on.
            clock.now = START + dump.end
            dump.write(path)
            feed.update(60)
            loaded = load(path)
            for window, begin in (
                (ALL, None),
                (LAST_10, start - 9 * SECOND - SECOND // 2),
                (LAST_60, start - 59 * SECOND - SECOND // 2),
                (SINCE_MARK, (30 * SECOND + SECOND // 2) if second >= 40 else 0),
            ):
                kept = () if begin is None else (Time(begin),)
                live = feed.snapshot(window)
                for metric in ("gpu", "count", "launch", "queue", "idle"):
                    wanted = tree_of(loaded, metric, LEVELS, kept)
                    assert tree_of(live.profile, metric, LEVELS) == wanted, (second, window, metric)
                assert live.end == start + SECOND // 2
                assert live.begin == max(begin or 0, 0)
    assert feed.snapshot(ALL).profile.rows_begin > 60 * SECOND


def test_rows_of_a_window_are_those_of_the_trace(
    feed: RecordingFeed, clock: Clock, tmp_path: Path
) -> None:
    dump = at(running(), 100, 300, 20 * SECOND, 20 * SECOND + 50, device=2)
    dump.memop(20 * SECOND + 80, 20 * SECOND + 90, 9, bytes=77, device=2)
    dump.ended, dump.end = True, 25 * SECOND
    feed.add(dump.write(tmp_path / "100-1.fdump"))
    feed.update()
    live, loaded = feed.snapshot(LAST_10).profile, load(tmp_path / "100-1.fdump")
    table, other = live.activities, loaded.activities
    assert len(table) == 3 and live.size == 3
    for name in ("start", "duration", "launch_start", "launch_end", "launch_share", "idle"):
        np.testing.assert_array_equal(getattr(table, name), getattr(other, name)[2:], name)
    for name in ("kind", "launched", "process", "thread", "device", "stream"):
        np.testing.assert_array_equal(getattr(table, name), getattr(other, name)[2:], name)
    assert live.launches is not None and live.launches.bytes.tolist() == [-1, -1, 77]
    assert feed.snapshot(ALL).profile.launches is not None
    assert feed.snapshot(ALL).profile.activities.start.tolist() == other.start.tolist()


def test_a_filter_by_time_works_on_the_rows_of_a_window(
    feed: RecordingFeed, tmp_path: Path
) -> None:
    feed.add(at(DumpFile(), 100, 200, 300).write(tmp_path / "100-1.fdump"))
    feed.update()
    assert project_tree(feed.snapshot(ALL).profile, where=(Time(150, 250),)).total[0] == 10


def test_work_that_comes_minutes_late_is_in_the_sums_of_all(
    feed: RecordingFeed, clock: Clock, tmp_path: Path
) -> None:
    dump, path = at(running(), 100 * SECOND, 170 * SECOND), tmp_path / "100-1.fdump"
    feed.add(dump.write(path))
    clock.now = START + 171 * SECOND
    feed.update()
    at(dump, SECOND, length=160 * SECOND, first=9).write(path)
    feed.update()
    assert feed.snapshot(ALL).profile.gpu_time == 160 * SECOND + 20
    assert feed.snapshot(LAST_60).profile.gpu_time == 10
    assert feed.snapshot(SINCE_MARK).profile.size == 3


def _long_kernel_among_others(feed: RecordingFeed, clock: Clock, path: Path) -> None:
    """A kernel runs for 100 s beside a short one every second, and 9 more of these."""
    dump = running()
    dump.launch(0, 10, 1000, api=LAUNCH)
    for second in range(1, 111):
        at(dump, second * SECOND, length=SECOND // 2, first=second)
        if second == 101:
            dump.kernel("long", SECOND // 2, 101 * SECOND, 1000, stream=9)
        dump.end = second * SECOND + SECOND // 2
        clock.now = START + dump.end
        dump.write(path)
        feed.add(path)
        feed.update(60)


def test_a_kernel_of_minutes_has_its_call_and_has_kept_its_gpu_busy(
    feed: RecordingFeed, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_SEGMENT", 2)
    monkeypatch.setattr(calls_module, "_PART", 4)
    monkeypatch.setattr(calls_module, "_MOST_WAITING", 1)
    _long_kernel_among_others(feed, clock, tmp_path / "100-1.fdump")
    everything = feed.snapshot(ALL).profile
    assert set(labels_of_leaves(everything, "queue")) == {
        ("cuLaunchKernel", "gemm", 110 * 2),
        ("cuLaunchKernel", "long", SECOND // 2 - 10),
    }
    # The GPU was idle for half a second before each of those after the long one.
    assert labels_of_leaves(feed.snapshot(LAST_60).profile, "idle") == [
        ("cuLaunchKernel", "gemm", 9 * SECOND // 2)
    ]
    (said,) = [one for one in everything.warnings if "more than a minute after" in one]
    assert said.startswith("1 GPU activity came more than a minute after it began")


def test_calls_that_nothing_comes_of_are_forgotten_but_for_the_latest(
    feed: RecordingFeed, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls_module, "_PART", 4)
    monkeypatch.setattr(calls_module, "_MOST_WAITING", 10)
    dump, path = running(), tmp_path / "100-1.fdump"
    for second in range(1, 300):
        dump.launch(second * SECOND, second * SECOND + 5, second, api=LAUNCH)
        dump.end = second * SECOND
        clock.now = START + dump.end
        if second % 20 == 0:
            feed.add(dump.write(path))
            feed.update(60)
            assert len(feed._sources[0].store.calls) <= 60 + 20 + 10 + 4
    at_last = 290 * SECOND
    dump.kernel("gemm", at_last, at_last + 7, 235)
    dump.write(path)
    feed.update(60)
    queued = at_last - 235 * SECOND - 5
    assert labels_of_leaves(feed.snapshot(ALL).profile, "queue") == [
        ("cuLaunchKernel", "gemm", queued)
    ]


def labels_of_leaves(profile: Profile, metric: str) -> list[tuple[str, str, int]]:
    """(call, kernel, value) of each."""
    return [
        (path[-2][1], path[-1][1], own)
        for path, (own, count) in tree_of(profile, metric, "launch,kernel").items()
        if count and own
    ]


@pytest.mark.parametrize(
    ("end", "gpu_time"), [(12 * SECOND, 20), (15 * SECOND, 10), (15 * SECOND + 1, 0)]
)
def test_what_starts_just_when_a_window_begins_is_in_it(
    end: int, gpu_time: int, feed: RecordingFeed, tmp_path: Path
) -> None:
    dump = at(DumpFile(), 2 * SECOND, 5 * SECOND)
    dump.end = end
    feed.add(dump.write(tmp_path / "100-1.fdump"))
    feed.update()
    live = feed.snapshot(LAST_10)
    assert (live.end - live.begin, live.profile.gpu_time) == (10 * SECOND, gpu_time)


def test_open_ranges_last_until_now(feed: RecordingFeed, clock: Clock, tmp_path: Path) -> None:
    dump = running()
    dump.open_range(["step"], 5 * SECOND)
    dump.open_range(["step", "layer"], 25 * SECOND)
    dump.open_range(["step", "layer", "new"], 30 * SECOND)
    dump.launch(26 * SECOND, 27 * SECOND, 1, api=LAUNCH, nvtx=dump.nvtx("step", "layer"))
    feed.add(dump.write(tmp_path / "100-1.fdump"))
    clock.now = START + 30 * SECOND
    feed.update()
    live = feed.snapshot(LAST_10).profile
    assert live.default_metric == "host"
    by_name = {path[-1][1]: own for path, (own, _) in tree_of(live, "host").items()}
    assert by_name["step"] == 5 * SECOND
    assert by_name["layer"] == 4 * SECOND
    assert by_name["cuLaunchKernel"] == SECOND
    assert "new" not in by_name
    pieces = live.ranges
    assert pieces is not None
    assert pieces.start.tolist() == [5 * SECOND, 25 * SECOND]
    assert pieces.end.tolist() == [30 * SECOND] * 2
    calls = live.calls
    assert calls is not None
    assert (calls.start.tolist(), calls.end.tolist()) == ([26 * SECOND], [27 * SECOND])
    assert live.frames[int(calls.frame[0])].name == "cuLaunchKernel"


def test_with_too_many_rows_windows_are_shorter_and_sums_of_all_are_whole(
    feed: RecordingFeed, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "MOST_ROWS", 50)
    monkeypatch.setattr(store_module, "_SEGMENT", 10)
    monkeypatch.setattr(spans_module, "_SEGMENT", 10)
    seconds = [at * SECOND // 10 for at in range(1, 101)]
    dump = running()
    feed.add(at(dump, *seconds).write(tmp_path / "100-1.fdump"))
    clock.now = START + 10 * SECOND
    feed.update(60)
    live = feed.snapshot(LAST_10)
    assert 5 * SECOND <= live.begin < 6 * SECOND
    assert live.profile.size == sum(start >= live.begin for start in seconds)
    assert feed.snapshot(ALL).profile.size == 100
    assert feed.snapshot(SINCE_MARK).profile.size == 100
    assert any("windows show the last 5 s" in note for note in feed.status().notes)
