"""Times of several profiles as one: one clock where there is one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flame.core.loading.merge.profiles import merge_profiles
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from tests.core.loading.merge.short_traces import trace
from tests.support.profiles.recorded import Recorded

HOUR = 3_600_000_000_000
SECOND = 1_000_000_000


def starts(profile: Profile) -> list[int]:
    found: list[int] = profile.activities.start.tolist()
    return found


def test_times_are_those_of_the_trace_that_began_first() -> None:
    whole = merge_profiles([trace(0, origin=SECOND + 40), trace(5, origin=SECOND)], ["a", "b"])
    assert starts(whole) == [70, 35]
    assert (whole.begin, whole.end, whole.meta.origin) == (5, 140, SECOND)
    assert whole.activities.launch_start.tolist() == [50, 15]
    assert whole.activities.launch_end.tolist() == [60, 25]
    assert whole.host.start.min() == 5
    assert whole.ranges is not None
    assert whole.ranges.start.tolist() == [40, 5]
    assert not any("aligned" in text for text in whole.warnings)


@pytest.mark.parametrize(
    ("origins", "reason"),
    [
        ((None, SECOND), "no time of day is known of a"),
        ((None, None), "no time of day is known of a, b"),
        ((0, HOUR), "a had ended when b began"),
        ((HOUR, 0), "b had ended when a began"),
    ],
)
def test_times_that_do_not_compare_all_begin_at_0(
    origins: tuple[int | None, int | None], reason: str
) -> None:
    whole = merge_profiles([trace(1_000, origins[0]), trace(2_000, origins[1])], ["a", "b"])
    assert starts(whole) == [30, 30]
    assert (whole.begin, whole.end, whole.meta.origin) == (0, 100, None)
    assert whole.warnings[0] == f"times are not aligned, each trace begins at 0: {reason}"


def test_many_files_without_a_time_are_not_all_named() -> None:
    whole = merge_profiles([trace(0, None)] * 7, [f"rank {number}" for number in range(7)])
    assert whole.warnings[0].endswith("is known of rank 0, rank 1, rank 2, rank 3 and 3 more")


def test_a_chain_of_overlaps_is_one_recording() -> None:
    profiles = [trace(0, origin) for origin in (0, 90, 180)]
    assert starts(merge_profiles(profiles, ["a", "b", "c"])) == [30, 120, 210]


def test_traces_within_the_time_of_another_are_one_recording() -> None:
    shorter = [trace(begin, origin=0) for begin in (200, 500)]
    whole = merge_profiles([replace(trace(), end=1_000), *shorter], ["a", "b", "c"])
    assert (whole.meta.origin, starts(whole)) == (0, [30, 230, 530])


def test_a_trace_without_anything_has_no_say_in_the_clock() -> None:
    whole = merge_profiles([trace(0, 90), Recorded().profile(), trace(0, 0)], ["a", "b", "c"])
    assert starts(whole) == [120, 30]


def test_graphs_without_times_stay_without() -> None:
    recorded = Recorded()
    recorded.kernel("graph", 0, 0, kind=Kind.GRAPH)
    recorded.kernel("gemm", 10, 20)
    one = recorded.profile()
    whole = merge_profiles(
        [replace(one, meta=replace(one.meta, origin=5)), trace(0, 0)], ["a", "b"]
    )
    assert starts(whole) == [0, 15, 30]
