"""What the host did in idle gaps, compared with plain loops over what the trace says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given

from flame.core.analysis.gap_host import GapHost, gap_host
from flame.core.analysis.utilization import DeviceGaps, IdleGap, utilizations
from flame.core.loading.many import load
from flame.core.model.activities import ThreadPieces
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.filters import Time
from flame.core.timeline.intervals import timeline
from flame.core.timeline.lanes import Track
from tests.conftest import TRACES
from tests.support.generated.strategies import Script, scripts
from tests.support.tiers import examples
from tests.support.writers.nsysfile import NsysFile

random_traces = examples(0.4, [HealthCheck.too_slow])


def gaps_of(profile: Profile) -> list[IdleGap]:
    found = [DeviceGaps(profile, each) for each in utilizations(profile)]
    return [gaps.gap(number) for gaps in found for number in range(len(gaps))]


def naive_parts(pieces: ThreadPieces, thread: int, gap: IdleGap) -> Counter[int]:
    """Nanoseconds of ``gap`` by the frame of the deepest piece that is open."""
    parts: Counter[int] = Counter()
    own = [row for row in range(len(pieces)) if pieces.thread[row] == thread]
    for moment in range(gap.begin, gap.end):
        there = [row for row in own if pieces.start[row] <= moment < pieces.end[row]]
        if there:
            parts[int(pieces.frame[max(there, key=lambda row: pieces.depth[row])])] += 1
    return parts


def check(profile: Profile, gap: IdleGap, found: GapHost) -> None:
    table = profile.activities
    launched = [row for row in (gap.after, gap.before) if row >= 0 and table.launched[row]]
    assert found.thread == (table.thread[launched[0]] if launched else -1)
    assert found.launched_next == (launched[:1] == [gap.after])
    if found.launched_next:
        assert found.late == table.launch_start[gap.after] - gap.begin
    else:
        assert found.late is None
    for track, pieces in ((Track.RANGES, profile.ranges), (Track.CALLS, profile.calls)):
        assert pieces is not None
        has = found.thread >= 0 and found.thread in pieces.thread
        assert (track in found.parts) == has
        if has:
            parts = {part.frame: part.length for part in found.parts[track]}
            assert parts == naive_parts(pieces, found.thread, gap)
            lengths = [part.length for part in found.parts[track]]
            assert lengths == sorted(lengths, reverse=True)


@random_traces
@given(scripts())
def test_parts_are_those_of_each_nanosecond(trace_file: Path, script: Script) -> None:
    profile = load(script.write(trace_file), LoadOptions("raw"))
    time = timeline(profile)
    for gap in gaps_of(profile):
        check(profile, gap, gap_host(profile, time, gap))


@pytest.fixture
def waiting(tmp_path: Path) -> Path:
    """A gap of 1,000 ns: 300 in a synchronising call, 500 in a range, 200 in one within it."""
    with NsysFile(tmp_path / "waiting.sqlite") as trace:
        trace.gpu(0, "NVIDIA H100", pid=100)
        trace.process(100, "python")
        trace.thread(100, 100, "main")
        trace.api("cudaLaunchKernel", 0, 50, 1)
        trace.kernel("first", 100, 1_000, 1)
        trace.api("cudaDeviceSynchronize", 400, 1_300, 9)
        trace.nvtx("prepare", 1_100, 1_800)
        trace.nvtx("tokenize", 1_200, 1_400)
        trace.api("cudaLaunchKernel", 1_900, 1_950, 2)
        trace.kernel("second", 2_000, 3_000, 2)
    return tmp_path / "waiting.sqlite"


def test_a_gap_is_told_by_what_was_open_in_it(waiting: Path) -> None:
    profile = load(waiting)
    [gap] = gaps_of(profile)
    found = gap_host(profile, timeline(profile), gap)
    named = {
        track: [(profile.frames[part.frame].name, part.length) for part in parts]
        for track, parts in found.parts.items()
    }
    assert named == {
        Track.CALLS: [("cudaDeviceSynchronize", 300), ("cudaLaunchKernel", 50)],
        Track.RANGES: [("prepare", 500), ("tokenize", 200)],
    }
    assert (found.launched_next, found.late) == (True, 900)


def test_a_gap_that_a_window_cuts_off_is_told_by_who_launched_what_ran_before(
    waiting: Path,
) -> None:
    profile = load(waiting)
    [each] = utilizations(profile, (Time(500, 1_500),))
    gap = DeviceGaps(profile, each).gap(0)
    found = gap_host(profile, timeline(profile), gap)
    assert (gap.end, gap.after) == (1_500, -1)
    assert (found.launched_next, found.late) == (False, None)
    assert profile.frames[found.parts[Track.RANGES][0].frame].name in ("prepare", "tokenize")


def test_without_launches_nothing_is_said_of_the_host(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        for start in (0, 50):
            trace.kernel("gemm", start, start + 10, corr=None)
    profile = load(tmp_path / "t.sqlite")
    [gap] = gaps_of(profile)
    assert gap_host(profile, timeline(profile), gap) == GapHost(-1, False, {}, None)


def test_gaps_by_length_and_their_ranks(waiting: Path, nsys_trace: Callable[[str], Path]) -> None:
    for path in (waiting, nsys_trace("rtx3060_23k.sqlite"), nsys_trace("h100_2gpu_window.sqlite")):
        profile = load(path)
        for each in utilizations(profile):
            gaps = DeviceGaps(profile, each)
            lengths = (gaps.end - gaps.begin)[gaps.by_length]
            assert (lengths[1:] <= lengths[:-1]).all() and gaps.total == each.idle
            assert gaps.by_length[gaps.rank].tolist() == list(range(len(gaps)))


@pytest.mark.parametrize(
    "name",
    ["rtx3060_23k", "h100_2gpu_window", "a100_llm_nvtx", "two_processes_colliding_ids"],
)
def test_the_longest_gaps_of_real_traces(name: str, nsys_trace: Callable[[str], Path]) -> None:
    profile = load(nsys_trace(f"{name}.sqlite"))
    time = timeline(profile)
    for each in utilizations(profile):
        gaps = DeviceGaps(profile, each)
        for number in gaps.by_length[:20].tolist():
            gap = gaps.gap(number)
            found = gap_host(profile, time, gap)
            # That trace begins after some of its launches.
            assert found.thread >= 0 or name == "h100_2gpu_window"
            for track, pieces in time.pieces.items():
                if track in found.parts:
                    expected = overlaps(pieces, found.thread, gap)
                    assert sum(part.length for part in found.parts[track]) == expected


def overlaps(pieces: ThreadPieces, thread: int, gap: IdleGap) -> int:
    """How much of ``gap`` any outermost piece of ``thread`` covers."""
    total = 0
    for row in (pieces.thread == thread).nonzero()[0].tolist():
        if not pieces.depth[row]:
            part = min(int(pieces.end[row]), gap.end) - max(int(pieces.start[row]), gap.begin)
            total += max(part, 0)
    return total


@pytest.mark.parametrize("name", ["b200_eager_python", "h100_qwen_python"])
def test_python_and_operators_of_real_traces(name: str) -> None:
    path = TRACES / "kineto" / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"no real trace {path}")
    profile = load(path)
    time = timeline(profile)
    [each] = utilizations(profile)
    gaps = DeviceGaps(profile, each)
    for number in gaps.by_length[:10].tolist():
        gap = gaps.gap(number)
        found = gap_host(profile, time, gap)
        assert set(found.parts) == {Track.CALLS, Track.RANGES, Track.INNERMOST}
        functions = time.pieces[Track.FUNCTIONS]
        expected = overlaps(functions, found.thread, gap)
        assert sum(part.length for part in found.parts[Track.INNERMOST]) == expected
