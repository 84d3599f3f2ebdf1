"""The checks for machines with a GPU: none stops another, and all pass on the double."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmarks.gpu.bench import Bench
from benchmarks.gpu.check import FAIL, HANG, PASS, SKIP, Check, CheckSkippedError, Finding, Result
from benchmarks.gpu.checks import CHECKS
from benchmarks.gpu.checks.ends import is_stopped
from benchmarks.gpu.checks.recorded import recorded
from benchmarks.gpu.checks.sampled import opcodes, sampled
from benchmarks.gpu.command import FAILED, INTERRUPTED, chosen, main, parsed
from benchmarks.gpu.criteria import hold_graphs, hold_recording
from benchmarks.gpu.recording import Done, Recording
from benchmarks.gpu.results import Results
from tests.inject.conftest import buildable as buildable
from tests.inject.conftest import fake as fake
from tests.inject.conftest import library as library
from tests.inject.conftest import small_file_system
from tests.support.waiting import PATIENCE, wait_until
from tests.support.writers.fdumpfile import DumpFile

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, str(ROOT / "benchmarks" / "gpu_check.py")]
MISBEHAVING = [sys.executable, "-m", "tests.benchmarks.misbehaving_checks"]
SAMPLES = """
kernel gemm_kernel 20000
sample gemm_kernel 0 long_scoreboard 20
sample gemm_kernel 16 selected 5
kernel relu_kernel 3000
sample relu_kernel 0 long_scoreboard 2
kernel axpy_kernel 5000
sample axpy_kernel 16 wait 3
"""
NOT_ON_THE_DOUBLE = {"torch", "triton", "jax", "cupy", "hardware", "ncu", "cuobjdump"}


@pytest.fixture
def double(
    library: Path, fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The environment of programs that run on the double, and are recorded."""
    script = tmp_path / "samples.txt"
    script.write_text(SAMPLES)
    path = os.pathsep.join(filter(None, [str(fake), os.environ.get("LD_LIBRARY_PATH")]))
    monkeypatch.setenv("LD_LIBRARY_PATH", path)
    monkeypatch.setenv("FLAME_LIBRARY", str(library))
    monkeypatch.setenv("FAKE_SAMPLES", str(script))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    yield


def run(command: list[str], out: Path, *more: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the checks of the file of results by name."""
    words = [*command, "--out", str(out), *more]
    code = subprocess.run(words, cwd=ROOT, timeout=20 * PATIENCE, check=False).returncode
    found = json.loads((out / "results.json").read_text("utf-8"))
    return code, {one["name"]: one for one in found["checks"]}


# The runner


def test_no_check_stops_another(tmp_path: Path) -> None:
    names = "fails,hangs,raises,dies,ends_early,leaves_a_child,lacks,passes"
    code, found = run(MISBEHAVING, tmp_path, "--only", names)
    verdicts = {name: one["verdict"] for name, one in found.items()}
    assert verdicts == {
        "fails": FAIL,
        "hangs": HANG,
        "raises": FAIL,
        "dies": FAIL,
        "ends_early": FAIL,
        "leaves_a_child": PASS,
        "lacks": SKIP,
        "passes": PASS,
    }
    assert code == FAILED
    assert found["fails"]["said"] == "kernels: 3 of 4"
    assert found["raises"]["said"] == "ValueError: meant"
    assert "SIGSEGV" in found["dies"]["said"]
    assert "exit code 3" in found["ends_early"]["said"]
    for stacks in ((tmp_path / "hangs" / "stacks.txt").read_text(), found["hangs"]["stacks"]):
        assert "misbehaving_checks hangs" in stacks and "thread" in stacks
    assert found["leaves_a_child"]["left_behind"] == 1
    child = int((tmp_path / "leaves_a_child" / "child").read_text("ascii"))
    assert not psutil.pid_exists(child)


def test_ctrl_c_ends_all_and_keeps_what_there_is(tmp_path: Path) -> None:
    words = [*MISBEHAVING, "--out", str(tmp_path), "--only", "fails,waits"]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        wait_until(lambda: (tmp_path / "waits" / "begun").exists())
        below = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == INTERRUPTED
    assert below and not any(child.is_running() for child in below)
    assert out.splitlines()[-1].startswith("interrupted: 0 PASS, 1 FAIL")
    found = json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert found["interrupted"] and [one["name"] for one in found["checks"]] == ["fails"]


def test_a_full_disk_is_told_and_stops_nothing(tmp_path: Path) -> None:
    with small_file_system(tmp_path / "small", 1) as small:
        words = [*MISBEHAVING, "--out", str(small), "--only", "fills_the_disk,passes"]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("FAIL  fills_the_disk") and "No space left" in lines[0]
    assert lines[1].startswith(("PASS  passes", "FAIL  passes")) and len(lines) == 3
    assert "No space left" in done.stderr and "Traceback" not in done.stderr
    assert done.returncode == FAILED


def test_a_folder_in_use_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").touch()
    assert main(["--out", str(tmp_path)]) == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_which_checks_run() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    assert all(check.quick for check in picked("--quick"))
    assert {check.run for check in picked("--full")} == {1, 2, 3}
    assert [check for part in "123" for check in picked("--run", part)] == picked("--full")
    assert [check.name for check in picked("--only", "soak")] == ["soak"]


def picked(*words: str) -> list[Check]:
    return chosen(CHECKS, parsed(words, CHECKS))


def test_a_budget_that_is_over_leaves_checks_out(tmp_path: Path) -> None:
    code, found = run(MISBEHAVING, tmp_path, "--budget", "0", "--only", "hangs,passes")
    assert code == 0
    assert {one["verdict"] for one in found.values()} == {SKIP}


def test_results_tell_neither_host_nor_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setattr("socket.gethostname", lambda: "gpu-box")
    monkeypatch.setattr("socket.getfqdn", lambda: "gpu-box.example.org")
    monkeypatch.setattr("getpass.getuser", lambda: "somebody")
    results = Results(tmp_path, {"out": "/home/somebody/out"})
    log = "somebody@gpu-box:/home/somebody/flame on gpu-box.example.org, not gpu-boxes"
    results.add(Result("one", "machine", FAIL, log=log, numbers={"path": ["/home/somebody/x"]}))
    text = (tmp_path / "results.json").read_text("utf-8")
    assert "USER@HOST:~/flame on HOST, not gpu-boxes" in text
    assert "somebody" not in text and "example" not in text
    assert os.environ.get("PATH", "") not in text


# On the double


@pytest.fixture(scope="module")
def probe_built(buildable: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compiles the probe: its object files are kept for all."""
    folder = tmp_path_factory.mktemp("probe") / "check"
    folder.mkdir()
    Bench(folder, quick=True).probe_library()


@pytest.mark.usefixtures("double")
def test_some_checks_pass_on_the_double(tmp_path: Path) -> None:
    names = "recorded,memory,end-exit,attached-late"
    code, found = run(COMMAND, tmp_path / "out", "--only", names)
    assert {name: one["verdict"] for name, one in found.items()} == dict.fromkeys(
        names.split(","), PASS
    ), [one["said"] for one in found.values()]
    assert code == 0


@pytest.mark.deep
@pytest.mark.usefixtures("double", "probe_built")
def test_the_quick_tier_passes_on_the_double(tmp_path: Path) -> None:
    code, found = run(COMMAND, tmp_path / "out", "--quick", "--budget", "3600")
    wrong = {name: one["said"] for name, one in found.items() if one["verdict"] in (FAIL, HANG)}
    assert (wrong, code) == ({}, 0)
    left_out = {name for name, one in found.items() if one["verdict"] == SKIP}
    lacking = {one.name for one in picked("--quick") if NOT_ON_THE_DOUBLE & set(one.needs)}
    assert left_out <= lacking


@pytest.mark.deep
@pytest.mark.usefixtures("double", "probe_built")
def test_checks_of_the_full_tier_pass_on_the_double(tmp_path: Path) -> None:
    """As many as need no GPU and no time: with the sizes of the quick tier."""
    names = "plain,child-forkserver,switch-graphs-whole,probe-continuous-kernel-0,long-graphs"
    code, found = run(COMMAND, tmp_path / "out", "--quick", "--budget", "3600", "--only", names)
    assert {one["verdict"] for one in found.values()} == {PASS}, found
    assert code == 0


# What a check sees


def dump(correlations: int = 1000) -> DumpFile:
    """One process whose kernels all begin 10 ns after their launch, from Python."""
    file = DumpFile()
    node = file.python(("train", "train.py", 3))
    for one in range(correlations):
        file.launch(100 * one, 100 * one + 5, one, python=node)
        file.kernel("gemm", 100 * one + 10, 100 * one + 50, one, tid=100)
    return file


def wrong(look: Callable[[Finding, Recording], None], folder: Path, *dumps: DumpFile) -> set[str]:
    """The criteria that recordings with these dumps do not hold."""
    for number, file in enumerate(dumps):
        file.write(folder / f"{number}.fdump")
    found = Finding()
    look(found, Recording(folder, Done(0, "", "", 0.0)))
    return {one.name for one in found.criteria if not one.ok}


def test_a_healthy_recording_of_several_processes(tmp_path: Path) -> None:
    late = DumpFile(pid=2)
    late.launch(10**9, 10**9 + 5, 1, python=late.python(("train", "train.py", 3)))
    late.kernel("gemm", 10**9 + 10, 10**9 + 20, 1, tid=100)
    assert wrong(hold_recording, tmp_path, dump(), late) == set()


def test_one_kernel_in_a_thousand_may_lack_its_launch(tmp_path: Path) -> None:
    file = dump()
    file.kernel("gemm", 10, 20, 10**6)
    assert wrong(hold_recording, tmp_path, file) == set()
    file.kernel("gemm", 10, 20, 10**6)
    assert wrong(hold_recording, tmp_path, file) == {"launch"}


def test_threads_without_any_python_frame_need_none(tmp_path: Path) -> None:
    file = dump(95)
    for one in range(5):
        file.launch(10**6, 10**6 + 1, 10**6 + one, tid=100)
    file.launch(10**6, 10**6 + 1, 10**7, tid=200)
    assert wrong(hold_recording, tmp_path, file) == set()
    file.launch(10**6, 10**6 + 1, 10**6 + 5, tid=100)
    assert wrong(hold_recording, tmp_path, file) == {"python"}


def test_kernels_begin_after_their_launch(tmp_path: Path) -> None:
    file = dump(100)
    file.kernel("gemm", 0, 1, 99, tid=100)
    assert wrong(hold_recording, tmp_path, file) == {"after launch"}


def test_what_was_lost_fails(tmp_path: Path) -> None:
    file = dump()
    file.record("drop", time=0, count=3, cause=3, type=6)
    assert wrong(hold_recording, tmp_path, file) == {"nothing lost"}


def test_work_of_graphs_leads_to_its_capture(tmp_path: Path) -> None:
    file = dump(1)
    graph, clone = 7 << 32, 9 << 32
    file.graph_node(graph | 1, 0, 5)
    file.graph_node(clone | 1, 0, 6)  # told of as made, and as a clone
    file.graph_node(clone | 1, graph | 1, 6)
    file.kernel("gemm", 10, 20, 0, tid=100, graph=9, graph_node=clone | 1)
    assert wrong(hold_graphs, tmp_path, file) == set()
    file.kernel("gemm", 10, 20, 0, tid=100, graph=11, graph_node=11 << 32 | 1)
    assert wrong(hold_graphs, tmp_path, file) == {"graph nodes"}
    file.record("graph_exec", exec=11, graph=7)
    assert wrong(hold_graphs, tmp_path, file) == set()


def test_opcodes_of_a_listing() -> None:
    listing = """
    Function : _Z4gemmPf
        /*0000*/                   LDC R1, c[0x0][0x28] ;   /* 0x00000a00ff017b82 */
                                                            /* 0x000fc00000000a00 */
        /*0010*/              @!P0 EXIT ;                   /* 0x000000000000894d */
    Function : other
        /*0000*/                   NOP;                     /* 0x0000000000007918 */
    """
    assert opcodes(listing) == {
        ("_Z4gemmPf", 0): "LDC",
        ("_Z4gemmPf", 16): "@!P0",
        ("other", 0): "NOP",
    }


def test_counters_of_processes_are_added_up(tmp_path: Path) -> None:
    for number, (calls, most) in enumerate(((3, 10), (4, 8))):
        file = DumpFile(pid=number)
        file.meta("counters", json.dumps({"calls": calls, "most_buffers": most}))
        file.write(tmp_path / f"{number}.fdump")
    recording = Recording(tmp_path, Done(0, "", "", 0.0))
    assert recording.counters() == {"calls": 7, "most_buffers": 10}


def test_a_dump_without_its_header_has_not_ended(tmp_path: Path) -> None:
    dump = tmp_path / "1.fdump"
    dump.write_bytes(b"")
    assert not is_stopped(dump)


@pytest.mark.deep
@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("faults", "names"),
    [
        ("drop:10", {"nothing lost", "count"}),
        ("no_subscriber", {"kernels", "launch", "python", "graph nodes"}),
        ("shuffle", set()),
    ],
)
def test_a_fault_of_cupti_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: str, names: set[str]
) -> None:
    monkeypatch.setenv("FAKE_CUPTI", faults)
    found = recorded(Bench(tmp_path, quick=True))
    assert {one.name for one in found.criteria if not one.ok} == names


@pytest.mark.deep
@pytest.mark.usefixtures("double")
def test_sampling_that_is_not_permitted_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CUPTI", "no_pc_permission")
    with pytest.raises(CheckSkippedError, match="permission"):
        sampled(Bench(tmp_path, quick=True), "continuous")
