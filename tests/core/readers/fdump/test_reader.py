"""What stands in a dump, record by record, and how it is shown."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from flame.core.loading.many import load
from flame.core.model.frames import Frame, Kind
from flame.core.model.launches import LaunchConfig
from flame.core.options import LoadOptions
from tests.core.readers.fdump.read_dumps import SYMBOL, leaf, names, read, stack
from tests.support.writers.fdumpfile import API, DOMAIN, DumpFile, layouts


def test_a_kernel_has_the_stacks_of_its_launch(file: DumpFile, tmp_path: Path) -> None:
    python = file.python(("<module>", "train.py", 30), ("Net.forward", "/src/net.py", 12))
    nvtx = file.nvtx("step", ("attn", 4))
    file.name(DOMAIN, 4, "layers")
    file.launch(10, 14, 1, api=307, python=python, nvtx=nvtx)
    file.kernel(SYMBOL, 20, 50, 1, python=python, nvtx=nvtx, tid=100, stream=7)
    profile = read(file, tmp_path)
    assert stack(profile, "python") == [
        Frame(Kind.PYTHON, "<module>", "train.py", 30),
        Frame(Kind.PYTHON, "Net.forward", "/src/net.py", 12),
    ]
    assert stack(profile, "nvtx") == [
        Frame(Kind.NVTX, "step"),
        Frame(Kind.NVTX, "attn", extra=(("domain", "layers"),)),
    ]
    assert profile.frames[profile.activities.launch[0]] == Frame(Kind.LAUNCH, "cuLaunchKernel")
    assert leaf(profile).name == "reduce"
    assert leaf(profile).get("mangled") == SYMBOL
    assert leaf(profile).get("demangled") == "void nccl::reduce<float>(float*)"
    table = profile.activities
    assert (table.start[0], table.duration[0], table.stream[0]) == (20, 30, 7)
    assert (table.launch_start[0], table.launch_end[0]) == (10, 14)
    assert profile.warnings == ()


def test_a_kernel_whose_launch_is_lost_keeps_its_own_stacks(file: DumpFile, tmp_path: Path) -> None:
    file.kernel("a", 20, 50, 9, python=file.python(("f", "f.py", 1)), nvtx=file.nvtx("r"), tid=102)
    file.kernel("b", 60, 70, 10)
    profile = read(file, tmp_path)
    assert (names(profile, "python"), names(profile, "nvtx")) == (["f"], ["r"])
    assert profile.threads[profile.activities.thread[0]].tid == 102
    assert (names(profile, "python", 1), names(profile, "nvtx", 1)) == ([], [])
    assert profile.activities.thread[1] == -1
    assert not profile.activities.launched.any()
    assert [w for w in profile.warnings if "have no recorded launch" in w]


def test_a_kernel_unseen_by_the_library_is_joined_to_its_call(
    file: DumpFile, tmp_path: Path
) -> None:
    file.launch(10, 14, 1, api=307, python=file.python(("f", "f.py", 1)), nvtx=file.nvtx("r"))
    file.kernel("a", 20, 50, 1)
    profile = read(file, tmp_path)
    assert (names(profile, "python"), names(profile, "nvtx")) == (["f"], ["r"])


def test_replayed_kernels_show_the_code_that_captured_them(file: DumpFile, tmp_path: Path) -> None:
    made = file.python(("capture", "m.py", 3))
    file.graph_node(8, 0, 1, tid=101, python=made, nvtx=file.nvtx("layer"))
    file.graph_node(9, 8, 2, tid=101)
    launch = {"python": file.python(("replay", "m.py", 9)), "nvtx": file.nvtx("decode")}
    file.launch(10, 14, 1, api=307, **launch)
    for node in (9, 77):
        file.kernel("a", 20, 50, 1, tid=100, graph_node=node, **launch)
    profile = read(file, tmp_path)
    assert [(f.name, f.get("captured")) for f in stack(profile, "python")] == [
        ("replay", ""),
        ("capture", "yes"),
    ]
    assert [(f.name, f.get("captured")) for f in stack(profile, "nvtx")] == [
        ("decode", ""),
        ("layer", "yes"),
    ]
    assert (names(profile, "python", 1), names(profile, "nvtx", 1)) == (["replay"], ["decode"])
    assert (profile.graph_nodes.activities, profile.graph_nodes.captured) == (2, 1)


def test_a_node_that_is_told_as_made_and_as_a_clone_is_a_clone(
    file: DumpFile, tmp_path: Path
) -> None:
    file.graph_node(8, 0, 1, tid=101, nvtx=file.nvtx("layer"))
    file.graph_node(9, 0, 2, tid=101, nvtx=file.nvtx("instantiation"))
    file.graph_node(9, 8, 3, tid=101, nvtx=file.nvtx("instantiation"))
    file.launch(10, 14, 1, api=307)
    file.kernel("a", 20, 50, 1, tid=100, graph_node=9)
    assert names(read(file, tmp_path), "nvtx") == ["layer"]


def test_a_stack_that_was_too_deep_says_so_at_its_root(file: DumpFile, tmp_path: Path) -> None:
    python = file.python(("inner", "f.py", 1), ("leaf", "f.py", 2), cut=True)
    file.kernel("a", 20, 50, 0, python=python, tid=100)
    assert names(read(file, tmp_path), "python") == [
        "[outermost frames not recorded]",
        "inner",
        "leaf",
    ]


def test_names_of_ranges_are_cleaned_unless_they_are_wanted_raw(
    file: DumpFile, tmp_path: Path
) -> None:
    text = "aten::mul, seq = 5, op_id = 9, sizes = [[4], []]"
    file.kernel("a", 20, 50, 0, nvtx=file.nvtx(text), tid=100)
    assert stack(read(file, tmp_path), "nvtx") == [
        Frame(Kind.NVTX, "aten::mul", extra=(("shapes", "[[4], []]"),))
    ]
    raw = read(file, tmp_path, LoadOptions(nvtx_names="raw"))
    assert names(raw, "nvtx") == [text]


def test_texts_that_are_no_utf8_are_shown_as_far_as_they_are(
    file: DumpFile, tmp_path: Path
) -> None:
    file.kernel("gemm\udcff", 20, 50, 0)
    assert leaf(read(file, tmp_path)).name == "gemm\N{REPLACEMENT CHARACTER}"


def test_copies_and_sets(file: DumpFile, tmp_path: Path) -> None:
    file.memop(0, 5, 0, kind=0, copy_kind=1, bytes=4096)
    file.memop(5, 9, 0, kind=0, copy_kind=3)
    file.memop(9, 10, 0, kind=1, bytes=64)
    profile = read(file, tmp_path)
    assert [leaf(profile, row).name for row in range(3)] == ["memcpy HtoD", "memcpy", "memset"]
    assert profile.counts == {"kernel": 0, "memcpy": 2, "memset": 1, "graph": 0}
    assert profile.launches is not None
    assert profile.launches.bytes.tolist() == [4096, 0, 64]


def test_directions_of_copies(file: DumpFile, tmp_path: Path) -> None:
    # CUpti_ActivityMemcpyKind
    kinds = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
    for at, number in enumerate(kinds):
        file.memop(at, at + 1, 0, kind=0, copy_kind=number)
    profile = read(file, tmp_path)
    assert [leaf(profile, row).name for row in range(5)] == [f"memcpy {k}" for k in kinds.values()]


def test_geometry_of_kernels(file: DumpFile, tmp_path: Path) -> None:
    grid = {"grid_x": 4, "grid_y": 2, "grid_z": 1, "block_x": 128, "block_y": 1, "block_z": 1}
    known = {"registers": 32, "static_shared": 16, "dynamic_shared": 1024, "local": 8}
    file.kernel("a", 0, 1, 0, **grid, **known)
    file.kernel("b", 1, 2, 0, **grid, **known, cluster_x=2, cluster_y=1, cluster_z=1)
    file.memop(2, 3, 0, bytes=5)
    launches = read(file, tmp_path).launches
    assert launches is not None
    plain = LaunchConfig((4, 2, 1), (128, 1, 1), None, 32, 16, 1024, None, 8)
    assert [launches.configs[n] for n in launches.config[:2]] == [
        plain,
        LaunchConfig((4, 2, 1), (128, 1, 1), (2, 1, 1), 32, 16, 1024, None, 8),
    ]
    assert launches.config[2] == -1
    assert launches.bytes.tolist() == [-1, -1, 5]


def test_ranges_and_calls_are_there_without_a_gpu(file: DumpFile, tmp_path: Path) -> None:
    file.range(["step"], 10, 50)
    file.range(["step", "inner"], 20, 30)
    file.open_range(["late"], 60)
    file.launch(70, 75, 1, api=307)
    profile = read(file, tmp_path)
    host = profile.host
    shown = {
        tuple(profile.frames[f].name for f in host.stacks.path(int(stack))): int(own)
        for stack, own in zip(host.nvtx, host.duration, strict=True)
    }
    assert shown == {("step",): 30, ("step", "inner"): 10, ("late",): 5}
    assert (profile.begin, profile.end) == (10, 75)


def test_layouts_are_those_that_the_dump_describes(tmp_path: Path) -> None:
    changed = {key: (number, list(fields[::-1])) for key, (number, fields) in layouts().items()}
    changed["kernel"][1].insert(3, ("new_in_version_2", "u2"))
    changed["kernel"][1].remove(("cluster_x", "u1"))
    changed["new_kind"] = (77, [("id", "u8")])
    file = DumpFile(records=changed)
    file.name(API, 307, "cuLaunchKernel")
    python = file.python(("f", "f.py", 1))
    file.launch(10, 14, 1, api=307, python=python)
    file.kernel("a", 20, 50, 1, new_in_version_2=7, grid_x=4)
    file.record("new_kind", id=1)
    profile = read(file, tmp_path)
    assert names(profile, "python") == ["f"]
    assert profile.gpu_time == 30
    assert [w for w in profile.warnings if "new_kind" in w] == [
        "1 record is of kinds that this flame does not know (new_kind): left out"
    ]


def test_a_gzipped_dump_opens_too(file: DumpFile, tmp_path: Path) -> None:
    file.kernel("a", 20, 50, 0)
    path = tmp_path / "x.fdump.gz"
    path.write_bytes(gzip.compress(file.data()))
    assert load(path).gpu_time == 30


def test_many_chunks_are_one_table(tmp_path: Path) -> None:
    file = DumpFile()
    for row in range(3000):
        file.launch(2 * row, 2 * row + 1, row + 1, tid=100 + row % 3)
        file.kernel(f"k{row % 7}", 2 * row, 2 * row + 1, row + 1, tid=100 + row % 3)
    profile = read(file, tmp_path)
    table = profile.activities
    assert len(table) == 3000
    assert table.launched.all()
    assert np.array_equal(np.sort(table.start), 2 * np.arange(3000))
