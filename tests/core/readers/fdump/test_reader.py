"""What stands in a dump, record by record, and how it is shown."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from flame.core.loading.many import load
from flame.core.model.frames import Frame, Kind
from flame.core.model.launches import LaunchConfig
from flame.core.model.meta import Device, Process, Thread
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.readers.fdump.chunks import Chunks
from flame.core.readers.fdump.records import AT_ONCE
from tests.support.project_tree import project_tree
from tests.support.writers import fdumpfile
from tests.support.writers.fdumpfile import (
    API,
    CATEGORY,
    DEVICE,
    DOMAIN,
    SIZE,
    THREAD,
    UNIX,
    DumpFile,
    layouts,
)

SYMBOL = "_ZN4nccl6reduceIfEEvPT_"


OPEN_RANGE, COMMITTED_AT = 9, 16
"""A type of chunks; the place of a field in their headers."""


@pytest.fixture
def file() -> DumpFile:
    """A dump in which call 307 has a name."""
    dump = DumpFile()
    dump.name(API, 307, "cuLaunchKernel")
    return dump


def read(file: DumpFile, folder: Path, options: LoadOptions | None = None) -> Profile:
    return load(file.write(folder / "x.fdump"), options)


def stack(profile: Profile, column: str, row: int = 0) -> list[Frame]:
    table = profile.activities
    return [profile.frames[frame] for frame in table.stacks.path(int(getattr(table, column)[row]))]


def names(profile: Profile, column: str, row: int = 0) -> list[str]:
    return [frame.name for frame in stack(profile, column, row)]


def leaf(profile: Profile, row: int = 0) -> Frame:
    return profile.frames[profile.activities.frame[row]]


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


def test_marks_and_start_end_ranges_are_events(file: DumpFile, tmp_path: Path) -> None:
    file.name(THREAD, 7, "loader")
    file.launch(20, 30, 1, api=307)
    file.kernel(SYMBOL, 40, 50, 1)
    file.range(["Python GC"], 10, 50, kind=1)
    file.range(["epoch"], 15, 15, kind=2, tid=7)
    file.range(["step"], 0, 90)
    before = read(file, tmp_path)
    assert before.events is not None and not before.events.in_ranges
    found = before.events
    rows = zip(found.style.tolist(), found.name, found.thread, found.start, found.end, strict=True)
    assert [
        (style, *found.names[name], found.threads[thread].tid, int(start), int(end))
        for style, name, thread, start, end in rows
    ] == [(1, "Python GC", "", 100, 10, 50), (0, "epoch", "", 7, 15, 15)]
    threads = {thread.tid: thread for thread in found.threads}
    assert (threads[7].name, threads[7].thread, threads[100].thread) == ("loader", -1, 0)
    assert [thread.tid for thread in before.threads] == [100]
    both = read(file, tmp_path, LoadOptions(nvtx_start_end=True)).events
    assert both is not None and both.in_ranges


def test_without_marks_there_are_no_events(file: DumpFile, tmp_path: Path) -> None:
    file.range(["step"], 0, 90)
    assert read(file, tmp_path).events is None


def test_events_without_a_time_are_left_out(file: DumpFile, tmp_path: Path) -> None:
    file.range(["mark"], -file.start, 5, kind=2)
    file.range(["mark"], 7, 3, kind=1, tid=(1 << 32) - 1)
    found = read(file, tmp_path).events
    assert found is not None
    assert (found.start.tolist(), found.end.tolist()) == ([7], [7])


def test_marks_are_no_ranges_and_start_end_ranges_only_on_request(
    file: DumpFile, tmp_path: Path
) -> None:
    file.range(["free"], 10, 50, kind=1)
    file.range(["mark"], 15, 15, kind=2)
    file.launch(20, 22, 1, api=307)
    file.kernel("a", 30, 40, 1, tid=100)
    assert names(read(file, tmp_path), "nvtx") == []
    assert not read(file, tmp_path).host.nvtx.any()
    assert names(read(file, tmp_path, LoadOptions(nvtx_start_end=True)), "nvtx") == ["free"]


def test_an_open_range_is_not_taken_for_one_of_another_thread(
    file: DumpFile, tmp_path: Path
) -> None:
    file.range(["step"], 10, 50)
    file.open_range(["step"], 10, tid=101)
    file.launch(90, 91, 1)
    host = read(file, tmp_path).host
    assert int(host.duration[host.nvtx > 0].sum()) == 40 + 81


def test_a_range_that_ends_between_two_looks_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = DumpFile()
    file.ended = False
    file.open_range(["step"], 10)
    path, look = file.write(tmp_path / "x.fdump"), Chunks.update
    file.range(["step"], 10, 50)
    closed = bytearray(file.data())
    [place] = (at for at in range(SIZE, len(closed), SIZE) if closed[at + 4] == OPEN_RANGE)
    struct.pack_into("<I", closed, place + COMMITTED_AT, 0)

    def look_and_go_on(chunks: Chunks, beyond_tail: bool = False) -> None:
        look(chunks, beyond_tail)
        path.write_bytes(closed)

    monkeypatch.setattr(Chunks, "update", look_and_go_on)
    assert load(path).host.duration.tolist() == [40]


def test_no_chunk_is_left_out(tmp_path: Path) -> None:
    file, count = DumpFile(rows=1), 2 * AT_ONCE + 1
    for at in range(count):
        file.kernel("a", at, at + 1, 0)
    assert read(file, tmp_path).activities.start.tolist() == list(range(count))


def test_a_range_that_ended_while_the_dump_was_read_is_one(file: DumpFile, tmp_path: Path) -> None:
    file.range(["step"], 10, 50)
    file.open_range(["step"], 10)
    file.launch(90, 91, 1)
    host = read(file, tmp_path).host
    assert int(host.duration[host.nvtx > 0].sum()) == 40


@pytest.mark.parametrize(
    ("kind", "bits", "shown"),
    [
        (1, 7, "uint64 7"),
        (2, struct.unpack("<Q", struct.pack("<q", -7))[0], "int64 -7"),
        (3, struct.unpack("<Q", struct.pack("<d", 0.5))[0], "double 0.5"),
        (5, 0xFFFFFFFE, "int32 -2"),
        (6, struct.unpack("<I", struct.pack("<f", 1.5))[0], "float 1.5"),
    ],
)
def test_payloads_are_examples(
    file: DumpFile, tmp_path: Path, kind: int, bits: int, shown: str
) -> None:
    file.range(["r"], 0, 5, payload_type=kind, payload=bits)
    frames = read(file, tmp_path).frames
    assert list(frames.examples.values()) == [(shown,)]


def test_extended_payloads_are_examples(file: DumpFile, tmp_path: Path) -> None:
    file.range(["r"], 0, 5, payload_text=file.text('{"batch": 3}'))
    frames = read(file, tmp_path).frames
    assert list(frames.examples.values()) == [('{"batch": 3}',)]


def test_categories_belong_to_their_domain(file: DumpFile, tmp_path: Path) -> None:
    file.name(CATEGORY, 3, "io", scope=1)
    file.name(CATEGORY, 3, "other", scope=2)
    node = file.node(0, file.range_name("r", 1, 3), 1)
    file.kernel("a", 0, 1, 0, nvtx=node)
    assert stack(read(file, tmp_path), "nvtx")[0].get("category") == "io"


def test_process_threads_and_devices_are_named(tmp_path: Path) -> None:
    file = DumpFile(pid=4242)
    file.meta("process", "python3")
    file.name(THREAD, 101, "old")
    file.name(THREAD, 101, "loader")
    file.name(DEVICE, 1, "NVIDIA H100")
    file.launch(0, 1, 1, tid=4242)
    file.launch(2, 3, 2, tid=101)
    file.kernel("a", 5, 6, 1, tid=4242, device=1)
    profile = read(file, tmp_path)
    assert profile.processes == (Process(4242, "python3"),)
    assert set(profile.threads) == {Thread(0, 4242, "main"), Thread(0, 101, "loader")}
    assert profile.devices == (Device(1, "NVIDIA H100"),)


def test_facts_about_the_recording(file: DumpFile, tmp_path: Path) -> None:
    facts = {
        "library": "0.3.0",
        "process": "python3",
        "rank": "3",
        "boot_id": "b-1",
        "synthetic": "yes",
        "cupti": "13.0.1",
        "calls": "recorded",
        "python": "3.11.7",
        "note": "The weather is fine.",
    }
    for key, value in facts.items():
        file.meta(key, value)
    file.launch(0, 1, 1)
    profile = read(file, tmp_path)
    meta = profile.meta
    assert (meta.format, meta.schema_version, meta.origin, meta.rank) == ("fdump", "1", UNIX, 3)
    assert meta.producer == "flame 0.3.0, CUPTI 13.0.1, Python 3.11.7"
    assert (meta.synthetic, meta.label, meta.options) == (True, "python3 [100]", {})
    assert meta.clock == f"b-1 {UNIX - fdumpfile.START}"
    assert "The weather is fine." in profile.warnings


@pytest.mark.parametrize(
    ("fact", "reason"),
    [
        (("cupti", "not found"), "not found"),
        (("library", "0"), "the process did not start CUDA"),
    ],
)
def test_no_gpu_is_said_with_the_reason(
    file: DumpFile, tmp_path: Path, fact: tuple[str, str], reason: str
) -> None:
    file.meta(*fact)
    file.range(["r"], 0, 5)
    shows = "the host metric shows NVTX ranges and CUDA API calls"
    assert read(file, tmp_path).warnings == (f"no GPU activity in this trace ({reason}): {shows}",)


@pytest.mark.parametrize(
    ("process", "command", "executable", "name"),
    [
        (
            "python3",
            "python3 -u /home/me/train.py --config x.py",
            "/usr/bin/python3.11",
            "train.py",
        ),
        ("python3.12", "/venv/bin/python3.12 -m pkg.train a.py", "", "pkg.train"),
        ("python", "python -c from x import y a.py", "/usr/bin/python3.11", "python"),
        ("python", "", "", "python"),
        ("pt_data_worker", "python train.py", "/usr/bin/python3.11", "pt_data_worker"),
        ("a_program_with_", "./run", "/x/a_program_with_a_name", "a_program_with_a_name"),
        ("a_script_with_a", "/bin/python ./a_script_with_a_name", "", "a_script_with_a_name"),
        ("a_name_of_15_by", "/bin/python x", "/bin/python", "a_name_of_15_by"),
    ],
)
def test_a_process_is_called_what_it_runs(
    file: DumpFile, tmp_path: Path, process: str, command: str, executable: str, name: str
) -> None:
    for key, value in (("process", process), ("command", command), ("executable", executable)):
        file.meta(key, value)
    file.range(["r"], 0, 5)
    assert read(file, tmp_path).processes[0].name == name


@pytest.mark.parametrize(
    ("python", "line"),
    [
        ("no Python in this process", "no Python frames: no Python in this process"),
        ("3.15.0: no frames: cannot be read", "no Python frames: cannot be read"),
        ("3.13.1 (free-threaded)", "no Python frames: launched by threads that run no Python"),
    ],
)
def test_no_python_frames_are_said_with_the_reason(
    file: DumpFile, tmp_path: Path, python: str, line: str
) -> None:
    file.meta("python", python)
    file.kernel("a", 0, 5, 0)
    assert line in read(file, tmp_path).warnings


@pytest.mark.parametrize(
    ("flags", "ended", "says"),
    [
        (0, False, "GPU work of its last moments may be missing"),
        (1, True, "there was no more room"),
        (2, True, "as it was told to"),
    ],
)
def test_how_the_recording_ended_is_said(
    file: DumpFile, tmp_path: Path, flags: int, ended: bool, says: str
) -> None:
    file.flags, file.ended = flags, ended
    file.launch(0, 1, 1)
    assert [w for w in read(file, tmp_path).warnings if says in w]


def test_what_is_still_open_lasts_as_long_as_the_recording(file: DumpFile, tmp_path: Path) -> None:
    file.range(["done"], 0, 5)
    file.ended, file.end = False, 1000
    assert read(file, tmp_path).duration == 5
    file.open_range(["hangs"], 10)
    profile = read(file, tmp_path)
    assert profile.duration == 1000
    tree = project_tree(profile, "nvtx", metric="host")
    assert {tree.name(node): int(tree.total[node]) for node in range(1, len(tree))} == {
        "done": 5,
        "hangs": 990,
    }


def test_threads_are_called_what_the_program_calls_them(file: DumpFile, tmp_path: Path) -> None:
    by_program, by_system = 0, 1
    for tid in (100, 101, 102, 103):
        file.range(["r"], 0, 5, tid=tid)
    file.name(THREAD, 101, "pt_autograd_0", scope=by_system)
    file.name(THREAD, 102, "loader", scope=by_program)
    file.name(THREAD, 102, "python", scope=by_system)
    names = {one.tid: one.name for one in read(file, tmp_path).threads}
    assert names == {100: "main", 101: "pt_autograd_0", 102: "loader", 103: ""}


def test_forked_workers_that_used_no_gpu_may_end_as_they_like(
    file: DumpFile, tmp_path: Path
) -> None:
    file.ended = False
    file.meta("forked_from", "99")
    file.range(["r"], 0, 5)
    assert not [w for w in read(file, tmp_path).warnings if "ended without saying so" in w]
    file.launch(0, 1, 1)
    assert [w for w in read(file, tmp_path).warnings if "ended without saying so" in w]


def test_drops_are_said_by_cause(file: DumpFile, tmp_path: Path) -> None:
    file.dropped = 1011
    file.record("drop", cause=3, count=1000, type=6)
    file.record("drop", cause=99, count=4, type=6)
    file.record("drop", cause=3, count=5, type=6)
    lines = [w for w in read(file, tmp_path).warnings if "could not be written" in w]
    assert lines == [
        "1,005 records could not be written: CUPTI dropped them: its buffers were full",
        "6 records could not be written: the reason is not known",
    ]


def test_samples_that_were_lost_are_said(file: DumpFile, tmp_path: Path) -> None:
    file.dropped = 3
    file.record("drop", cause=6, count=2, type=15)
    file.record("drop", cause=6, count=1, type=15)
    warnings = read(file, tmp_path).warnings
    assert [one for one in warnings if "PC samples" in one or "record" in one] == [
        "PC samples are missing: 3 times CUPTI could give no more until sampling began anew; "
        "how many is not known"
    ]


def test_sampling_that_gave_nothing_is_said(file: DumpFile, tmp_path: Path) -> None:
    warning = "PC sampling had begun, but CUPTI gave no samples of any kernel"
    file.kernel("gemm", 0, 5, 1)
    assert warning not in read(file, tmp_path).warnings
    file.name(6, 1, "smsp__pcsamp_warps_issue_stalled_selected")
    assert warning in read(file, tmp_path).warnings
    file.record("sample", crc=1, samples=1, reason=1)
    assert warning not in read(file, tmp_path).warnings


def test_samples_are_counted(file: DumpFile, tmp_path: Path) -> None:
    file.record("sample", samples=3, offset=16)
    file.record("sample", samples=4, offset=32)
    assert [w for w in read(file, tmp_path).warnings if w.startswith("7 PC samples")]


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
