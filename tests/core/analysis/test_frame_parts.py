"""What each frame weighs per device and per file adds up as a plain loop says."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.analysis.frame_parts import parts_by_device, parts_by_file, spread_of
from flame.core.analysis.frame_totals import frame_totals
from flame.core.loading.many import load_all
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, silent
from flame.core.projection.filters import Devices, Filter, HideStacks
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from tests.support.profiles.recorded import Recorded
from tests.support.writers.nsysfile import NsysFile

KERNELS = st.tuples(
    st.sampled_from("ab"), st.sampled_from("fg"), st.integers(0, 50), st.integers(0, 1)
)


def recorded(kernels: list[tuple[str, str, int, int]]) -> Profile:
    """Kernels below a range each, one after the other."""
    trace, at = Recorded(), 0
    for number, (around, name, duration, device) in enumerate(kernels, 1):
        trace.range(around, at, at + 10)
        trace.call("cudaLaunchKernel", at + 1, at + 2, number)
        trace.kernel(name, at + 3, at + 3 + duration, number, device=device)
        at += 100
    return trace.profile()


def by_name(profile: Profile, where: tuple[Filter, ...]) -> dict[str, list[int]]:
    tree = project(profile, Selection(("nvtx", "kernel"), where))
    frames = frame_totals(tree).frame
    found = parts_by_device(profile, tree, where, frames)
    assert found is not None
    assert found.names == ("GPU 0", "GPU 1")
    return {tree.text[frame]: found.total[:, at].tolist() for at, frame in enumerate(frames)}


@given(st.lists(KERNELS, min_size=1, max_size=12))
def test_parts_are_those_of_a_plain_loop(kernels: list[tuple[str, str, int, int]]) -> None:
    expected: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for around, name, duration, device in kernels:
        expected[around][device] += duration
        expected[name][device] += duration
    assert by_name(recorded(kernels), ()) == expected


def test_filters_leave_out_what_they_hide() -> None:
    profile = recorded([("a", "f", 5, 0), ("a", "g", 7, 1), ("b", "f", 11, 1)])
    assert by_name(profile, (HideStacks("b"),)) == {"a": [5, 7], "f": [5, 0], "g": [0, 7]}
    assert by_name(profile, (Devices((1,)),)) == {
        "a": [0, 7],
        "g": [0, 7],
        "b": [0, 11],
        "f": [0, 11],
    }


def test_one_device_and_one_file_have_no_parts(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "one.sqlite") as trace:
        trace.gpu(0, "H100", pid=100)
        trace.kernel("f", 0, 5)
    profile = load_all([tmp_path / "one.sqlite"], LoadOptions(), silent)
    tree = project(profile)
    frames = frame_totals(tree).frame
    assert parts_by_device(profile, tree, (), frames) is None
    assert parts_by_file(profile, tree, (), frames) is None


def test_each_file_is_a_part(tmp_path: Path) -> None:
    for rank, duration in enumerate((5, 8)):
        with NsysFile(tmp_path / f"rank{rank}.sqlite") as trace:
            trace.gpu(0, "H100", pid=100)
            trace.process(100, "python")
            trace.kernel("f", 0, duration)
    profile = load_all(sorted(tmp_path.iterdir()), LoadOptions(), silent)
    tree = project(profile, Selection(("kernel",)))
    frames = frame_totals(tree).frame
    files = parts_by_file(profile, tree, (), frames)
    devices = parts_by_device(profile, tree, (), frames)
    assert files
    assert devices
    assert (files.names, files.total.tolist()) == (("rank0", "rank1"), [[5], [8]])
    assert devices.names == ("rank0 GPU 0", "rank1 GPU 0")
    assert devices.total.tolist() == [[5], [8]]


def test_the_spread_is_the_largest_by_the_least() -> None:
    spread = spread_of(np.array([[4, 0, 0], [2, 3, 0], [8, 5, 0]]))
    assert spread.tolist() == [4.0, np.inf, 1.0]
