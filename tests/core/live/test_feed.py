"""Live recordings: dumps that grow, seen through snapshots."""

from __future__ import annotations

import gzip
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.errors import InputError, NoMatchError
from flame.core.live import feed as feed_module
from flame.core.live.feed import RecordingFeed
from flame.core.live.status import SourceState
from flame.core.live.sums import activity_store as store_module
from flame.core.live.sums import host_spans as spans_module
from flame.core.live.sums import pending_calls as calls_module
from flame.core.live.window import ALL, LAST_10, LAST_60, SECOND, SINCE_MARK
from flame.core.loading.many import load, load_all
from flame.core.model.frames import Kind
from flame.core.model.metrics import METRICS
from flame.core.model.profile import Profile
from flame.core.model.stack_joins import SEPARATING_MARKS
from flame.core.options import LoadOptions
from flame.core.projection.filters import Filter, Time
from flame.core.projection.labels import Naming
from flame.core.projection.number_folds import labels_of
from tests.inject.conftest import small_file_system
from tests.support.project_tree import project_tree
from tests.support.tiers import examples
from tests.support.waiting import wait_until
from tests.support.writers.fdumpfile import API, START, DumpFile
from tests.support.writers.fdumpscripts import Program, Step, scripts

Place = tuple[Kind, str, str, tuple[tuple[str, str], ...]]
Tree = dict[tuple[Place, ...], tuple[int, int]]
LAUNCH = 307


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def feed(clock: Clock) -> Iterator[RecordingFeed]:
    feed = RecordingFeed(LoadOptions(), clock)
    yield feed
    feed.close()


def tree_of(
    profile: Profile, metric: str, levels: str | None = None, where: tuple[Filter, ...] = ()
) -> Tree:
    """(own value, own number) of each place, by the frames from the root down to it."""
    try:
        tree = project_tree(profile, levels, where, metric)
    except NoMatchError:
        return {}
    found: Tree = {}
    if not tree.count[0]:
        return found
    for node in range(len(tree)):
        path: list[Place] = []
        at = node
        while at >= 0:
            frame = tree.frames[int(tree.frame[at])]
            # Ranges of several domains may be shown as one: which of them has come first differs.
            marks = tuple(pair for pair in frame.extra if pair in SEPARATING_MARKS)
            path.append((frame.kind, tree.text[int(tree.frame[at])], frame.file, marks))
            at = int(tree.parent[at])
        found[tuple(path[::-1])] = int(tree.own[node]), int(tree.own_count[node])
    return found


LEVELS = "rank,process,thread,device,stream,python,launch,nvtx,kernel"


def assert_same(live: Profile, loaded: Profile) -> None:
    """They show the same, frame by frame, whatever it is weighed by."""
    for metric in METRICS:
        if metric.table == "gpu" and (len(loaded.activities) or live.size):
            levels = LEVELS
            assert tree_of(live, metric.key, levels) == tree_of(loaded, metric.key, levels)
    assert live.gpu_time == loaded.gpu_time
    assert live.counts == loaded.counts
    assert live.coverage == loaded.coverage
    assert live.graph_nodes == loaded.graph_nodes
    assert live.size == len(loaded.activities)


def at(dump: DumpFile, *times: int, length: int = 10, first: int = 1, **fields: int) -> DumpFile:
    """``dump`` with a kernel that starts at each of ``times``, ns; its call began 5 ns before."""
    for number, start in enumerate(times, first):
        dump.launch(start - 5, start - 2, number, api=LAUNCH)
        dump.kernel("gemm", start, start + length, number, **fields)
    return dump


def running(pid: int = 100, start: int = START) -> DumpFile:
    """A dump that is still being written."""
    dump = DumpFile(pid, start=start)
    dump.ended = False
    dump.name(API, LAUNCH, "cuLaunchKernel")
    return dump


@given(scripts, st.lists(st.integers(0, 30), max_size=4), st.sampled_from([1, 2, None]))
@examples(0.6)
def test_all_of_a_dump_is_what_a_load_of_it_shows(
    tmp_path_factory: pytest.TempPathFactory, script: list[Step], cuts: list[int], rows: int | None
) -> None:
    path = tmp_path_factory.mktemp("live") / "100-1.fdump"
    dump = DumpFile(rows=rows)
    dump.ended = False
    program = Program(dump)
    feed = RecordingFeed(LoadOptions(), Clock())
    feed.add(dump.write(path))
    for at, (name, *values) in enumerate(script):
        getattr(program, name)(*values)
        if at in cuts:
            dump.write(path)
            feed.update()
            feed.snapshot(ALL)
    program.end()
    dump.ended = True
    dump.write(path)
    feed.update(60)
    assert_same(feed.snapshot(ALL).profile, load(path))
    feed.close()


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


def test_a_snapshot_stays_what_it_was(feed: RecordingFeed, clock: Clock, tmp_path: Path) -> None:
    dump, path = at(running(), 100, 400), tmp_path / "100-1.fdump"
    feed.add(dump.write(path))
    clock.now = START + SECOND
    feed.update()
    before = feed.snapshot(ALL)
    # This one began before those that are known, and ended after them.
    at(dump, 50, length=500, first=3).write(path)
    assert feed.update()
    after = feed.snapshot(ALL)
    assert before.version < after.version
    assert before.profile.gpu_time == 20 and after.profile.gpu_time == 520
    assert before.profile.activities.start.tolist() == [100, 400]
    assert before.profile.activities.idle.tolist() == [0, 290]
    assert after.profile.activities.start.tolist() == [50, 100, 400]
    assert after.profile.activities.idle.tolist() == [0, 0, 0]
    assert tree_of(before.profile, "idle")


def test_nothing_new_is_no_change(feed: RecordingFeed, clock: Clock, tmp_path: Path) -> None:
    feed.add(at(running(), 100).write(tmp_path / "100-1.fdump"))
    assert feed.update()
    clock.now += SECOND
    feed.update()
    assert not feed.update()
    assert feed.snapshot(ALL).version == feed.snapshot(LAST_10).version
    one, other = feed.snapshot(ALL).profile, feed.snapshot(ALL).profile
    assert one.frames is other.frames and one.grouping is other.grouping
    for naming in (Naming(), Naming(numbers=True)):
        labels = labels_of(one, naming, one.activities)
        assert labels_of(other, naming, other.activities) is labels


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


def test_api_calls_over_time_are_those_of_a_load(feed: RecordingFeed, tmp_path: Path) -> None:
    dump = DumpFile()
    dump.name(API, LAUNCH, "cuLaunchKernel")
    for number in range(5):
        start = 10 + 20 * number
        dump.launch(start, start + 10, number + 1, api=LAUNCH, nvtx=dump.nvtx("step"))
    dump.range(["step"], 5, 200)
    feed.add(dump.write(tmp_path / "100-1.fdump"))
    feed.update()
    live, loaded = feed.snapshot(ALL).profile, load(tmp_path / "100-1.fdump")
    assert live.functions is None
    for one in (live, loaded):
        calls = one.calls
        assert calls is not None
        assert calls.start.tolist() == list(range(10, 110, 20))
        assert calls.end.tolist() == list(range(20, 120, 20))
        assert {one.frames[frame].name for frame in calls.frame.tolist()} == {"cuLaunchKernel"}


def test_host_time_of_ended_ranges_is_that_of_a_load(feed: RecordingFeed, tmp_path: Path) -> None:
    dump = DumpFile()
    dump.name(API, LAUNCH, "cuLaunchKernel")
    dump.launch(20, 30, 1, api=LAUNCH, nvtx=dump.nvtx("step", "layer"))
    dump.range(["step", "layer"], 10, 40)
    dump.range(["step"], 5, 70)
    feed.add(dump.write(tmp_path / "100-1.fdump"))
    feed.update()
    loaded = load(tmp_path / "100-1.fdump")
    assert tree_of(feed.snapshot(ALL).profile, "host") == tree_of(loaded, "host")


def test_several_dumps_are_called_what_a_load_calls_them(
    feed: RecordingFeed, tmp_path: Path
) -> None:
    for rank in (1, 0):
        dump = at(DumpFile(100 + rank, start=START + rank), 100, 200 + rank)
        dump.meta("rank", str(rank))
        feed.add(dump.write(tmp_path / f"{100 + rank}-{START + rank:x}.fdump"))
    DumpFile(300).write(tmp_path / "300-1.fdump")
    feed.add(tmp_path / "300-1.fdump")
    feed.update()
    live, loaded = feed.snapshot(ALL).profile, load_all([tmp_path])
    assert [one.label for one in live.sources] == ["rank 0", "rank 1"]
    assert [one.label for one in loaded.sources] == ["rank 0", "rank 1"]
    assert [one.pid for one in live.processes] == [100, 101]
    for metric in ("gpu", "count", "launch", "queue", "idle"):
        assert tree_of(live, metric, LEVELS) == tree_of(loaded, metric, LEVELS)
    assert {path[1][1] for path in tree_of(live, "gpu") if path[1:]} == {"rank 0", "rank 1"}
    assert [one.pid for one in feed.status().sources] == [101, 100, 300]


def test_no_level_for_ranks_before_a_second_process_has_done_anything(
    feed: RecordingFeed, clock: Clock, tmp_path: Path
) -> None:
    feed.add(at(running(), 100).write(tmp_path / "100-1.fdump"))
    second, path = running(200), tmp_path / "200-2.fdump"
    feed.add(second.write(path))
    clock.now += SECOND
    feed.update()
    assert len(feed.snapshot(ALL).profile.sources) == 1
    at(second, 50).write(path)
    feed.update()
    assert len(feed.snapshot(ALL).profile.sources) == 2


def test_a_dump_is_followed_once(feed: RecordingFeed, tmp_path: Path) -> None:
    path = at(DumpFile(), 100).write(tmp_path / "100-1.fdump")
    feed.add(path)
    (tmp_path / "other.fdump").hardlink_to(path)
    feed.add(tmp_path / "other.fdump")
    with path.open("rb") as file:
        feed.add(path, file.fileno())
    feed.update()
    assert len(feed.sources) == 1 and feed.snapshot(ALL).profile.size == 1


def test_what_is_no_dump_is_refused_and_may_become_one(feed: RecordingFeed, tmp_path: Path) -> None:
    path = tmp_path / "100-1.fdump"
    with pytest.raises(InputError, match="100-1"):
        feed.add(path)
    path.write_bytes(b"")
    with pytest.raises(InputError, match="100-1"):
        feed.add(path)
    feed.add(at(DumpFile(), 100).write(path))
    feed.update()
    assert feed.snapshot(ALL).profile.size == 1


def test_what_others_have_put_there_is_neither_unpacked_nor_followed(
    feed: RecordingFeed, tmp_path: Path
) -> None:
    path = at(DumpFile(), 100).write(tmp_path / "100-1.fdump")
    (tmp_path / "link.fdump").symlink_to(path)
    (tmp_path / "packed.fdump").write_bytes(gzip.compress(path.read_bytes()))
    for name, reason in (("link", "not a regular file"), ("packed", "packed")):
        with pytest.raises(InputError, match=reason):
            feed.add(tmp_path / f"{name}.fdump")
    with (
        (tmp_path / "packed.fdump").open("rb") as file,
        pytest.raises(InputError, match="packed"),
    ):
        feed.add(path, file.fileno())
    assert not feed.sources


def test_a_feed_of_nothing(feed: RecordingFeed) -> None:
    assert not feed.update()
    profile = feed.snapshot(LAST_10).profile
    assert profile.size == 0 and profile.gpu_time == 0
    assert feed.status().sources == () and feed.status().elapsed == 0


def test_times_of_centuries_end_the_reading_of_that_dump_only(
    feed: RecordingFeed, tmp_path: Path
) -> None:
    dump = DumpFile()
    for number in range(200):
        dump.kernel("gemm", number, number + (1 << 52) + (1 << 51), number + 1)
    feed.add(dump.write(tmp_path / "100-1.fdump"))
    feed.add(at(DumpFile(200), 100).write(tmp_path / "200-1.fdump"))
    feed.update()
    assert feed.snapshot(ALL).profile.size == 1
    (note,) = feed.status().notes
    assert "100-1.fdump" in note and "century" in note


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


def test_rates_of_the_last_minute(feed: RecordingFeed, clock: Clock, tmp_path: Path) -> None:
    dump = running(start=0)
    at(dump, 2 * SECOND, length=SECOND)
    at(dump, 2 * SECOND + SECOND // 4, length=SECOND // 2, first=2)  # Busy already.
    at(dump, 3 * SECOND + SECOND // 4, length=SECOND // 4, first=3)
    clock.now = 5 * SECOND + 17  # Of the last second not all is known yet.
    feed.add(dump.write(tmp_path / "100-1.fdump"))
    feed.update()
    rates = feed.status().rates
    assert rates.step == SECOND // 2 and len(rates.busy) == len(rates.launches) == 120
    assert rates.busy[-5:].tolist() == [0, 1, 1, 0.5, 0]
    assert rates.launches[-5:].tolist() == [1, 1, 0, 1, 0]
    assert rates.number == 8


def test_a_gpu_is_as_busy_as_before_when_its_process_is_started_again(
    feed: RecordingFeed, clock: Clock, tmp_path: Path
) -> None:
    for pid, begin in ((100, 0), (101, 2 * SECOND)):
        dump = at(running(pid, START + begin), 5, length=2 * SECOND - 10)
        dump.ended, dump.end = True, 2 * SECOND - 10
        feed.add(dump.write(tmp_path / f"{pid}-1.fdump"))
    feed.update()
    clock.now = START + 4 * SECOND
    feed.update()
    assert feed.status().rates.busy[-7:] == pytest.approx([1] * 7, abs=1e-6)


# How a recording is doing


def test_states(feed: RecordingFeed, clock: Clock, tmp_path: Path) -> None:
    for number, (ended, flags) in enumerate([(True, 0), (True, 1), (True, 2), (False, 0)], 1):
        dump = at(DumpFile(number << 22), 100)  # A pid that no process has.
        dump.ended, dump.flags, dump.dropped = ended, flags, number
        feed.add(dump.write(tmp_path / f"{number}.fdump"))
    feed.update()
    status = feed.status()
    assert [one.state for one in status.sources] == [
        SourceState.ENDED,
        SourceState.FULL,
        SourceState.STOPPED,
        SourceState.RUNNING,
    ]
    assert status.dropped == 10 and status.running == 1 and status.behind == 0 and status.lag == 0
    clock.now += 4 * SECOND
    feed.update()
    assert feed.status().sources[-1].state is SourceState.KILLED
    assert feed.snapshot(ALL).end == 110


def test_a_recording_lasts_until_its_last_word(
    feed: RecordingFeed, clock: Clock, tmp_path: Path
) -> None:
    dump = at(DumpFile(), 100)
    dump.end = 5 * SECOND
    feed.add(dump.write(tmp_path / "100-1.fdump"))
    clock.now += 100 * SECOND
    feed.update()
    assert feed.status().elapsed == feed.snapshot(LAST_10).end == 5 * SECOND
    assert feed.snapshot(LAST_10).profile.gpu_time == 10


HOLD = """
import mmap, os, sys, time
file = os.open(sys.argv[1], os.O_RDWR)
held = mmap.mmap(file, 4096)
print("held", flush=True)
sys.stdin.readline()
os.execlp("sleep", "sleep", "60")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_file_of_the_same_number_on_another_device_is_another_dump(tmp_path: Path) -> None:
    clock = Clock()
    clock.now = feed_module.monotonic()
    feed = RecordingFeed(LoadOptions(), clock)
    with small_file_system(tmp_path / "a", 1) as a, small_file_system(tmp_path / "b", 1) as b:
        paths = [folder / "1.fdump" for folder in (a, b)]
        for path in paths:
            path.write_bytes(bytes(mmap.PAGESIZE))
        command = [sys.executable, "-c", HOLD, str(paths[0])]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == b"held\n"
                for path in paths:
                    dump = running(process.pid, start=feed_module.monotonic() + SECOND)
                    dump.write(path)
                    feed.add(path)
                assert paths[0].stat().st_ino == paths[1].stat().st_ino
                feed.update()
                clock.now += 20 * SECOND
                feed.update()
                states = [one.state for one in feed.status().sources]
                assert states == [SourceState.RUNNING, SourceState.KILLED]
            finally:
                process.kill()
        feed.close()


def test_a_process_that_is_there_and_says_nothing_is_running_until_an_exec(
    feed: RecordingFeed, tmp_path: Path
) -> None:
    path = tmp_path / "1.fdump"
    clock = Clock()
    clock.now = feed_module.monotonic()
    feed = RecordingFeed(LoadOptions(), clock)
    path.write_bytes(b"x")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            dump = running(process.pid, start=feed_module.monotonic() + SECOND)
            dump.write(path)
            assert process.stdout is not None and process.stdin is not None
            assert process.stdout.readline() == "held\n"
            feed.add(path)
            assert state_after(feed, clock, 20) is SourceState.RUNNING
            process.stdin.write("\n")
            process.stdin.flush()
            wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n")
            assert state_after(feed, clock, 20) is SourceState.KILLED
        finally:
            process.kill()
    feed.close()


def state_after(feed: RecordingFeed, clock: Clock, seconds: int) -> SourceState:
    """The state once ``seconds`` have passed without a word."""
    feed.update()
    clock.now += seconds * SECOND
    feed.update()
    return feed.status().sources[0].state
