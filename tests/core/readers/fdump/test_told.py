"""What a dump tells of its process, threads and devices, and of the recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.model.meta import Device, Process, Thread
from tests.core.readers.fdump.read_dumps import read
from tests.support.profiles.project_tree import project_tree
from tests.support.writers import fdumpfile
from tests.support.writers.fdumpfile import DEVICE, THREAD, UNIX, DumpFile


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
