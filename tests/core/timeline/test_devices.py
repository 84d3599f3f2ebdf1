"""When each GPU ran anything: rows by GPU, those without times left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.model.activities import has_times
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.timeline.devices import device_times, timed_rows
from tests.exporters.profiles import Row, profile_of

on_devices = st.lists(
    st.tuples(st.integers(-1, 5), st.sampled_from([Kind.KERNEL, Kind.GRAPH]), st.integers(0, 2)),
    max_size=12,
)


def profile_on(rows: list[tuple[int, Kind, int]]) -> Profile:
    """Activities on a device each, of a kind, that run so many ns; they begin at 0."""
    profile = profile_of([Row("k", length) for _, _, length in rows])
    device, kind, _ = (np.array([row[at] for row in rows], np.int32) for at in range(3))
    table = replace(
        profile.activities,
        device=device,
        kind=kind.astype(np.uint8),
        start=np.zeros(len(rows), np.int64),
    )
    return replace(profile, activities=table, devices=6 * profile.devices)


@given(on_devices)
def test_rows_of_a_gpu_are_those_that_have_times_there(rows: list[tuple[int, Kind, int]]) -> None:
    profile = profile_on(rows)
    table, timed = profile.activities, has_times(profile.activities)
    for device in range(-1, 6):
        expected = [at for at in range(len(rows)) if table.device[at] == device and timed[at]]
        assert timed_rows(profile, device).tolist() == expected
    used = sorted({int(table.device[at]) for at in range(len(rows)) if timed[at]})
    assert [one.device for one in device_times(profile)] == used
