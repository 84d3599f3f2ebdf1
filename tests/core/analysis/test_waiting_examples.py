"""Whose code GPUs waited for in a few short traces, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from flame.core.loading.many import load
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.model.frames import NO_LAUNCH
from flame.core.model.profile import Profile
from flame.core.projection.filter_options import where
from flame.core.projection.filters import Time
from tests.support.profiles.project_tree import project_tree
from tests.support.writers.kinetofile import KinetoFile
from tests.support.writers.nsysfile import NsysFile


def paths(profile: Profile, levels: str | None = None, **named: object) -> dict[str, int]:
    tree = project_tree(profile, levels, metric="waiting", **named)
    nodes = np.flatnonzero(tree.own).tolist()
    return {" > ".join(tree.names(node)): int(tree.own[node]) for node in nodes}


def loop(path: Path) -> Profile:
    """Data loading, then a launch that takes long, of a kernel that waits."""
    with NsysFile(path) as file:
        file.kernel("first", 0, 100, corr=None)
        file.nvtx("load", 150, 300)
        file.nvtx("train", 300, 500)
        file.api("cudaMalloc_v3020", 310, 330, corr=7)
        file.api("cudaLaunchKernel_v7000", 350, 400, corr=1)
        file.kernel("gemm", 450, 500, corr=1)
    return load(path)


def test_a_gap_is_divided_by_what_its_thread_did(tmp_path: Path) -> None:
    assert paths(loop(tmp_path / "trace.sqlite"), "cause,nvtx,launch") == {
        "host code": 50,
        "host code > load": 150,
        "host code > train": 30,
        "alloc > train > cudaMalloc": 20,
        "in launch > train > cudaLaunchKernel": 50,
        "after launch > train > cudaLaunchKernel": 50,
    }


def test_filters_choose_by_what_waited_and_by_what_for(tmp_path: Path) -> None:
    profile = loop(tmp_path / "trace.sqlite")
    assert paths(profile, "nvtx", where=where(nvtx="load")) == {"load": 150}
    assert sum(paths(profile, "kernel", where=where(kernel="gemm")).values()) == 350
    assert paths(profile, "kernel") == {"gemm": 350}
    assert paths(profile, "nvtx", where=where(show_stacks="^train$")) == {"train": 150}


def test_a_window_cuts_what_reaches_beyond_it(tmp_path: Path) -> None:
    profile = loop(tmp_path / "trace.sqlite")
    window = (Time(profile.begin + 140, profile.begin + 320),)
    assert paths(profile, "cause,nvtx", where=window) == {
        "host code": 10,
        "host code > load": 150,
        "host code > train": 10,
        "alloc > train": 10,
    }
    assert sum(paths(profile).values()) == 350, "the trace itself is not cut"


def test_what_has_no_launch_stays_visible(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("first", 0, 10, corr=None)
        file.kernel("second", 40, 50, corr=None)
    profile = load(tmp_path / "trace.sqlite")
    assert paths(profile) == {f"unknown > {NO_LAUNCH}": 30}
    window = (Time(None, profile.end + 100),)
    assert sum(paths(profile, where=window).values()) == 30


def test_functions_stand_where_they_were_called(tmp_path: Path) -> None:
    file = KinetoFile()
    file.python("train.py(3): train", 0, 100)
    file.python("data.py(5): load", 20, 60)
    file.op("aten::mm", 65, 90)
    file.launch(1, (1, 2), (3, 10))
    file.launch(2, (70, 80), (95, 99))
    profile = load(file.write(tmp_path / "trace.json"))
    found = paths(profile, "python,nvtx,launch")
    assert found == {
        "train": 15,
        "train > load": 40,
        "train > aten::mm": 5,
        "train > aten::mm > cudaLaunchKernel": 25,
    }
    assert paths(profile, "nested,launch") == found


def test_frames_before_a_launch_are_those_that_two_launches_share(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("first", 10, 20, corr=1)
        file.kernel("second", 60, 70, corr=2)
        file.kernel("third", 100, 110, corr=3)
        file.kernel("last", 110, 120, corr=4)
        launches = ((1, 0, "forward"), (2, 40, "optimizer"), (3, 62, "copy"), (4, 80, "print"))
        for corr, start, caller in launches:
            call = "cudaLaunchKernel"
            file.api(f"{call}_v7000", start, start + 10, corr=corr)
            file.api(call, start - 1, start + 11, corr=corr, event_class=67, chain=corr)
            symbols = ("0x7f", call, caller, "step", "main")
            file.chain(corr, [(symbol, "/app", False) for symbol in symbols])
    assert paths(load(tmp_path / "trace.sqlite"), "native,cause") == {
        "main > step > host code": 20,
        "main > step > optimizer > in launch": 10,
        "main > step > optimizer > after launch": 10,
        "main > step > copy > in launch": 2,
        "main > step > copy > after launch": 28,
    }


def test_of_several_files_each_has_its_own(tmp_path: Path) -> None:
    one, two = tmp_path / "rank0.sqlite", tmp_path / "rank1.sqlite"
    for path, start in ((one, 40), (two, 70)):
        with NsysFile(path) as file:
            file.kernel("first", 0, 10, corr=None)
            file.nvtx("load", 20, 30)
            file.api("cudaLaunchKernel_v7000", 30, 35, corr=1)
            file.kernel("second", start, start + 5, corr=1)
    whole = merge_profiles([load(one), load(two)], ["rank0", "rank1"])
    found = paths(whole, "rank,cause,nvtx")
    assert found == {
        **{f"{rank} > host code": 10 for rank in ("rank0", "rank1")},
        **{f"{rank} > host code > load": 10 for rank in ("rank0", "rank1")},
        **{f"{rank} > in launch": 5 for rank in ("rank0", "rank1")},
        "rank0 > after launch": 5,
        "rank1 > after launch": 35,
    }
