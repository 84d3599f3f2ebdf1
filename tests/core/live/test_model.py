"""Live views of processes that run for minutes, held against plain loops over their records."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from flame.core.errors import NoMatchError
from flame.core.live import source as source_module
from flame.core.live.feed import RecordingFeed
from flame.core.live.snapshot import RecordingSnapshot
from flame.core.live.status import SourceState
from flame.core.live.sums import activity_store as store_module
from flame.core.live.sums import host_spans as spans_module
from flame.core.live.sums import pending_calls as calls_module
from flame.core.live.window import ALL, LAST_10, LAST_60, SINCE_MARK, LiveWindow
from flame.core.loading.many import load_all
from flame.core.model.frames import Frame, Kind
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.filters import (
    Devices,
    Filter,
    HideFrames,
    Kernel,
    NvtxRange,
    ShowStacks,
    Time,
)
from flame.exporters.dumps import copy_dumps
from tests.support.generated.live_program import SECOND, Process
from tests.support.profiles.live_model import METRICS, Moment, Row, Step, Sums, sums
from tests.support.profiles.project_tree import project_tree
from tests.support.tiers import deep_except
from tests.support.writers.fdumpfile import START

LENGTH = 150 * SECOND
MOMENTS = 8
PATIENCE = 2 * SECOND  # so long work waits for its call
GRIDS = (1, SECOND // 20, SECOND // 2)


FILTERS: tuple[tuple[Filter, ...], ...] = (
    (),
    (NvtxRange("layer"),),
    (Kernel("gemm"), Devices((0,))),
    (HideFrames("^attn$"), ShowStacks("step")),
)


def tree_of(profile: Profile, metric: str, *where: Filter) -> Sums:
    """(value, number) of each path that anything ends at."""
    try:
        tree = project_tree(profile, None, where, metric)
    except NoMatchError:
        return {}
    found = {}
    for node in range(len(tree)):
        if tree.own_count[node]:
            path = tuple(step(tree.frames[int(tree.frame[at])]) for at in tree.path(node)[1:])
            found[path] = int(tree.own[node]), int(tree.own_count[node])
    assert sum(value for value, _ in found.values()) == int(tree.total[0])
    return found


def step(frame: Frame) -> Step:
    """A frame as the model spells it."""
    captured = bool(frame.get("captured"))
    if frame.kind == Kind.PYTHON:
        return "python", frame.name, frame.file, frame.line, captured
    if frame.kind == Kind.NVTX:
        return "nvtx", frame.name, captured
    return frame.kind.title, frame.name


class Watch:
    """Processes of a recording and a feed that follows them, at the time ``now`` (ns)."""

    def __init__(self, folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.random = random = Random(seed)
        for module, name, sizes in (
            (store_module, "_SEGMENT", (2, 5, 50)),
            (spans_module, "_SEGMENT", (2, 5, 50)),
            (calls_module, "_PART", (2, 10)),
            (source_module, "_MOST", (1_000, 1 << 20)),
        ):
            monkeypatch.setattr(module, name, random.choice(sizes))
        self.grid, lost = random.choice(GRIDS), random.choice([0.0, 0.1])
        lives = [(0, LENGTH)]
        for _ in range(seed % 3):
            begin = random.randrange(LENGTH // 2)
            lives.append((begin, random.randrange(begin, LENGTH)))
        self.processes = [
            Process(random, folder, number, life, self.grid, lost)
            for number, life in enumerate(lives)
        ]
        self.now = self.mark = START
        self.feed = RecordingFeed(LoadOptions(), lambda: self.now)

    def go_on(self, time: int) -> None:
        """Let the processes run until ``time``, and read what they have written."""
        self.now = START + time
        for one in self.processes:
            if one.begin <= time:
                one.write(time)
                self.feed.add(one.path)
        while self.feed.update(60):
            pass

    @property
    def end(self) -> int:
        """When all windows end."""
        return self.now if self.feed.status().running else max(self.ends(self.now))

    def ends(self, now: int) -> list[int]:
        """Until when what is open in each dump lasts."""
        states = [one.state for one in self.feed.status().sources]
        said = [one.header.end_monotonic for one in self.feed.sources]
        pairs = zip(states, said, strict=True)
        return [now if state is SourceState.RUNNING else end for state, end in pairs]

    def model(self, patient: bool = True) -> Moment:
        """What has been written so far; ``patient``: without what waits for its call."""
        paths = [Path(one.path) for one in self.feed.sources]
        states = [one.state for one in self.feed.status().sources]
        running = [patient and one is SourceState.RUNNING for one in states]
        waits = [self.now - PATIENCE if one else None for one in running]
        shown = self.feed.snapshot(ALL).profile.sources
        labels = {Path(one.meta.path): one.label for one in shown}
        return Moment([(path, labels.get(path, "")) for path in paths], waits)


def check(watch: Watch, model: Moment, window: LiveWindow, begin: int | None) -> None:
    """What ``window`` shows is what the model says."""
    snapshot = watch.feed.snapshot(window)
    profile, rows = snapshot.profile, model.rows(begin)
    for metric in METRICS:
        assert tree_of(profile, metric) == sums(rows, metric), metric
    assert tree_of(profile, "host") == model.host(begin, watch.ends(watch.end))
    check_rows(snapshot, rows)
    if rows and window != ALL:
        check_a_part(snapshot, rows, watch.random)


def check_rows(snapshot: RecordingSnapshot, rows: list[Row]) -> None:
    """There is a row of all that is not too old, with the same times."""
    table, profile = snapshot.profile.activities, snapshot.profile
    if profile.rows_begin == profile.begin:
        assert len(table) == len(rows)
    columns = (table.start, table.duration, table.launch_share, table.idle)
    found = sorted(zip(*(one.tolist() for one in columns), strict=True))
    names = ("gpu", "launch", "idle")
    wanted = sorted((one.start - START, *(one.values[name] for name in names)) for one in rows)
    begin = profile.rows_begin
    assert [one for one in found if one[0] >= begin] == [one for one in wanted if one[0] >= begin]


def check_a_part(snapshot: RecordingSnapshot, rows: list[Row], random: Random) -> None:
    """A filter by time leaves what the model says; times are those of the profile."""
    first = max(random.choice(rows).start - START, snapshot.profile.rows_begin)
    part = [row for row in rows if first <= row.start - START < first + 5 * SECOND]
    if part:
        found = tree_of(snapshot.profile, "idle", Time(first, first + 5 * SECOND))
        assert found == sums(part, "idle")


def check_saved(watch: Watch, folder: Path) -> None:
    """A copy of the dumps holds what had been written, whole, and is read like any."""
    copy_dumps(watch.feed.sources, str(folder), lambda _: None)
    saved = load_all([folder])
    rows = [row for dump in watch.model(patient=False).dumps for row in dump.rows]
    assert saved.gpu_time == sum(row.values["gpu"] for row in rows)
    assert len(saved.activities) == len(rows)
    assert int(saved.activities.idle.sum()) == sum(row.values["idle"] for row in rows)


@pytest.mark.parametrize("seed", deep_except([0], range(6)))
def test_every_window_shows_at_every_moment_what_plain_loops_find(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(tmp_path, seed, monkeypatch)
    times = [watch.random.randrange(LENGTH) for _ in range(MOMENTS)]
    for time in [*sorted(one // watch.grid * watch.grid for one in times), 2 * LENGTH]:
        watch.go_on(time)
        model, end = watch.model(), watch.end
        begins = {LAST_10: end - LAST_10.length, LAST_60: end - LAST_60.length}
        for window, begin in {**begins, ALL: None, SINCE_MARK: watch.mark}.items():
            check(watch, model, window, begin)
        if watch.random.random() < 0.2:
            check_saved(watch, tmp_path / f"saved-{time}")
        if watch.random.random() < 0.4:
            watch.feed.mark()
            watch.mark = end
    assert not watch.feed.status().running
    loaded = load_all([one.path for one in watch.processes])
    whole = watch.feed.snapshot(ALL).profile
    for metric in (*METRICS, "host"):
        for where in FILTERS:
            assert tree_of(whole, metric, *where) == tree_of(loaded, metric, *where), metric
    watch.feed.close()
