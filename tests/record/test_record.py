"""``flame record``: the command runs as it would without, and what it did is in a new folder."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import flame.record.command as command
from flame.core.loading.many import load_all
from flame.core.model.profile import Profile
from flame.record.plan import Plan
from tests.attach.conftest import needs_root
from tests.cli.conftest import PYTHON, Flame, Record, said, spawn
from tests.cli.programs import FLUSHED, KERNELS, MEMORY, RANGES
from tests.support.project_tree import project_tree
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import meta

pytestmark = pytest.mark.deep

FORKED = (
    KERNELS
    + """
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # CPython 3.12: of forks beside threads
if os.fork() == 0:
    import nvtx
    with nvtx.annotate("child"):
        pass
    os._exit(0)
os.wait()
"""
)


def only_recording(folder: Path) -> Path:
    (found,) = folder.glob("*.flame")
    return found


def kernels_of(folder: Path) -> dict[str, int]:
    profile: Profile = load_all([folder])
    tree = project_tree(profile, "kernel", metric="count")
    return {tree.name(node): int(tree.own[node]) for node in range(1, len(tree))}


# what is recorded


def test_every_kernel_is_there_and_summed_up(record: Record, folder: Path) -> None:
    done = record("--", *PYTHON, KERNELS)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    target = only_recording(folder)
    assert kernels_of(target) == {"gemm": 10, "softmax": 10}
    lines = said(done)
    assert lines[0].startswith(f"recorded {target.name}: 1 process, 20 kernels, ")
    assert lines[1].startswith("GPU time 1.20 ms in 20 activities")
    assert lines[2] == "most of it: gemm 83.3 %, softmax 16.7 %"
    assert lines[3].startswith("coverage of GPU time: launch 100.0 %")
    assert lines[-1] == f"see it with: flame view {target.name}"


def test_ranges_need_no_gpu(record: Record, folder: Path) -> None:
    done = record(*PYTHON, RANGES, env={**os.environ, "LD_LIBRARY_PATH": ""})
    assert done.returncode == 0
    lines = said(done)
    assert "1 process, 4 ranges" in lines[0]
    assert lines[1].startswith("nothing ran on a GPU; host time")
    assert lines[2].startswith("most of it: inner 9")


def test_all_processes_are_recorded(record: Record, folder: Path) -> None:
    program = folder / "program.py"
    program.write_text(KERNELS)
    done = record(
        "-o",
        "both",
        "bash",
        "-c",
        f"{sys.executable} program.py & {sys.executable} program.py; wait",
    )
    assert done.returncode == 0
    assert said(done)[0].startswith("recorded both: 2 processes, 40 kernels")
    assert kernels_of(folder / "both") == {"gemm": 20, "softmax": 20}


def test_ranks_are_one_recording(record: Record, folder: Path) -> None:
    (folder / "program.py").write_text(KERNELS)
    one = f"RANK=$rank {sys.executable} program.py &"
    done = record("bash", "-c", f"for rank in 0 1 2 3 4 5 6 7; do {one} done; wait")
    assert "8 processes, 160 kernels" in said(done)[0]
    profile = load_all([only_recording(folder)])
    assert [one.label for one in profile.sources] == [f"rank {rank}" for rank in range(8)]
    ranks = project_tree(profile, "rank", metric="gpu").root.children
    assert [node.total for node in ranks] == [1_200_000] * 8


def test_a_fork_has_a_dump_of_its_own(record: Record, folder: Path) -> None:
    assert "2 processes, 20 kernels, 1 range" in said(record(*PYTHON, FORKED))[0]


def test_an_exec_goes_on_in_a_new_dump(record: Record, folder: Path) -> None:
    (folder / "program.py").write_text(KERNELS)
    # What CUPTI still holds would be lost as in a crash.
    again = f"{KERNELS}{FLUSHED}os.execv({sys.executable!r}, [{sys.executable!r}, 'program.py'])"
    assert "2 processes, 40 kernels" in said(record(*PYTHON, again))[0]


def test_without_python_frames(record: Record, folder: Path) -> None:
    assert record("--no-python", "-o", "plain", *PYTHON, KERNELS).returncode == 0
    assert load_all([folder / "plain"]).coverage["python"].ns == 0


def test_recording_stops_and_the_program_runs_on(record: Record) -> None:
    more = "\nfrom flame.attach.discover.finished import RUNNING, read_header\n"
    more += "while read_header(dump).state == RUNNING: time.sleep(0.01)\n"
    more += "for _ in range(7): launch(gemm)\nprint('to the end')"
    done = record("--duration", "3s", *PYTHON, KERNELS + FLUSHED + more)
    assert done.stdout == "to the end\n"
    assert "1 process, 20 kernels" in said(done)[0]
    assert "stopped as told" in said(done)[0]


def test_a_full_recording_says_what_it_lost(record: Record) -> None:
    more = "for _ in range(40_000): launch(gemm)"
    done = record("-q", "--max-size", "1MB", *PYTHON, KERNELS + more)
    assert done.returncode == 0
    (line,) = said(done)
    lost = re.search(r"is not all: .*, ([\d,]+) dropped, no room for more", line)
    assert lost, line
    assert int(lost[1].replace(",", "")) > 10_000


# the command is itself


@pytest.mark.parametrize(
    ("code", "expected", "told"),
    [
        ("raise SystemExit(0)", 0, ""),
        ("raise SystemExit(7)", 7, ""),
        ("import os; os.kill(os.getpid(), 9)", 137, f"{sys.executable}: Killed"),
        ("import os, signal; signal.signal(2, signal.SIG_DFL); os.kill(os.getpid(), 2)", 130, ""),
    ],
)
def test_the_exit_code_is_the_commands(code: str, expected: int, told: str, record: Record) -> None:
    done = record("-q", *PYTHON, code)
    assert done.returncode == expected
    assert [line for line in said(done) if "nothing was recorded" not in line] == [told] * bool(
        told
    )


def test_a_parent_that_ignores_ended_children_changes_nothing(recorder: None) -> None:
    ignoring = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
    ignoring += "os.execv(sys.executable, [sys.executable, '-m', 'flame', *sys.argv[1:]])"
    command = [*PYTHON, ignoring, "record", "-q", *PYTHON, "raise SystemExit(7)"]
    assert subprocess.run(command, timeout=PATIENCE, check=False).returncode == 7


def test_what_cannot_be_run_ends_as_in_a_shell(record: Record, folder: Path) -> None:
    (folder / "text").write_text("no program")
    (folder / "script").write_text("#!/no/such/interpreter\n")
    (folder / "script").chmod(0o755)
    for words, code, reason in [
        (["no-such-command"], 127, "no-such-command: no such command on PATH"),
        (["./gone"], 127, "./gone: no such program"),
        (["./script"], 127, "./script: the interpreter that its first line names is not there"),
        (["./text"], 126, "./text: cannot be run: permission denied"),
        (["./"], 126, "./: cannot be run: permission denied"),
    ]:
        done = record("--", *words)
        assert (done.returncode, said(done)) == (code, [reason])
    assert not list(folder.glob("*.flame"))


def test_the_streams_are_the_commands(recorder: None) -> None:
    code = "import sys; print(sys.stdin.read()[::-1]); print('complaint', file=sys.stderr)"
    run = [sys.executable, "-m", "flame", "record", "-q", *PYTHON, code]
    done = subprocess.run(run, input="abc", capture_output=True, text=True, check=False)
    assert done.stdout == "cba\n"
    assert done.stderr.startswith("complaint\n")


def test_options_behind_the_command_are_the_commands(record: Record) -> None:
    words = ["--time", "-5", "--quiet", "-o", "x", "--", "-h", "--version"]
    for first in ([], ["--"]):
        done = record("-q", *first, *PYTHON, "import sys; print(sys.argv[1:])", *words)
        assert done.stdout == f"{words}\n"


def test_python_finds_the_usual_signals(record: Record) -> None:
    code = "import signal; print(signal.pthread_sigmask(0, []), signal.getsignal(2).__name__)"
    assert record("-q", *PYTHON, code).stdout == "set() default_int_handler\n"
    trap = (
        "trap 'echo piped' PIPE; kill -PIPE $$"  # A shell cannot trap what it was told to ignore.
    )
    assert record("-q", "sh", "-c", trap).stdout == "piped\n"


def test_a_full_disk_for_messages_changes_no_exit_code(recorder: None) -> None:
    with Path("/dev/full").open("wb") as full:
        done = spawn("record", *PYTHON, "raise SystemExit(7)", capture_output=False, stderr=full)
    assert done.returncode == 7


def test_the_summary_never_hides_the_exit_code(record: Record) -> None:
    spoil = "import os, pathlib\nfolder = pathlib.Path(os.environ['FLAME_DIR'])\n"
    spoil += "next(folder.glob('*.fdump')).write_bytes(b'FLAMEDMP' + bytes(70))\nos._exit(5)"
    done = record(*PYTHON, KERNELS + spoil)
    assert done.returncode == 5
    said(done)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (KeyboardInterrupt(), "flame: interrupted: the rest of the summary is left out"),
        (ZeroDivisionError("by zero"), "flame: no summary: by zero"),
    ],
)
def test_a_summary_that_fails_is_one_line(
    error: BaseException,
    line: str,
    recorder: None,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def fail(*args: object) -> None:
        raise error

    monkeypatch.setattr("flame.record.finish.report_recording", fail)
    assert command.record(Plan((sys.executable, "-c", "raise SystemExit(3)"))) == 3
    assert capfd.readouterr().err == f"{line}\n"


def test_secrets_of_the_command_line_are_masked_unless_wanted(record: Record, folder: Path) -> None:
    for option, told in (("--quiet", "***"), ("--keep-secrets", "secret")):
        assert record("-o", told, option, *PYTHON, RANGES, "--token", "secret").returncode == 0
        (dump,) = (folder / told).glob("*.fdump")
        assert meta(dump)["command"][0].endswith(f" --token {told}")


# memory


def test_whose_memory_it_was_is_seen_at_the_peak(
    record: Record, flame: Flame, folder: Path
) -> None:
    done = record("--memory", "-o", "x", "--", *PYTHON, MEMORY)
    lines = said(done)
    assert "20 kernels, 6 memory events, " in lines[0]
    assert lines[-2] == "whose memory it was at the peak: flame view x --metric peak"
    peak = flame("view", "x", "--print", "--metric", "peak")
    assert peak.code == 0 and "memory at the peak 4.00 MB" in peak.out
    [weights] = [line for line in peak.lines if "load_weights" in line]
    [buffers] = [line for line in peak.lines if "activations" in line]
    assert weights.split()[:3] == ["75.0", "3.00", "MB"]
    assert buffers.split()[:3] == ["25.0", "1.00", "MB"]
    told = json.loads(flame("info", "--json", "x").out)["memory"]["devices"][0]
    assert (told["peak"], told["live_end"]) == (4_000_000, 3_000_000)
    report = flame("report", "x", "--section", "memory", "--fail-on", "memory.peak > 3MB")
    assert report.code == 5 and "load_weights" in report.out
    assert record("-q", "-o", "y", "--", *PYTHON, MEMORY).returncode == 0
    assert "memory" in flame("view", "y", "--print", "--metric", "peak").complaint()


# the environment


def test_the_command_gets_what_the_library_reads(
    record: Record, folder: Path, library: Path
) -> None:
    stale = {"FLAME_DIR": "/old", "FLAME_DURATION_MS": "1", "FLAME_MAX_MB": "2", "FLAME_CLOCK": "3"}
    shown = "import os; print(*(f'{k}={v}' for k, v in os.environ.items() if '_' in k), sep='\\n')"
    options = ("-q", "-o", "x", "--pc", "serialized:12", "--max-size", "3GiB", "--no-calls")
    graphs = ("--graphs", "whole", "--memory")
    done = record(
        *options, *graphs, *PYTHON, shown, env={**os.environ, **stale, "FLAME_FLUSH_MS": "50"}
    )
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert seen["CUDA_INJECTION64_PATH"] == seen["NVTX_INJECTION64_PATH"] == str(library)
    assert seen["FLAME_DIR"] == str(folder.resolve() / "x")
    assert seen["FLAME_PC"] == "serialized:12"
    assert (seen["FLAME_PYTHON"], seen["FLAME_CALLS"]) == ("1", "0")
    assert (seen["FLAME_GRAPHS"], seen["FLAME_MEMORY_EVENTS"]) == ("whole", "1")
    assert seen["FLAME_MAX_MB"] == "3072"
    assert seen["FLAME_FLUSH_MS"] == "50"
    assert "FLAME_DURATION_MS" not in seen
    now = time.time_ns() - time.monotonic_ns()
    assert abs(int(seen["FLAME_CLOCK"]) - now) < 1_000_000_000


def test_another_tool_that_is_replaced_is_named(record: Record) -> None:
    tool = "/opt/nvidia/nsight-systems/2025.3/libToolsInjection64.so"
    environment = {**os.environ, "CUDA_INJECTION64_PATH": tool, "NVTX_INJECTION64_PATH": tool}
    lines = said(record("-q", *PYTHON, KERNELS, env=environment))
    names = "CUDA_INJECTION64_PATH and NVTX_INJECTION64_PATH"
    assert lines == [
        f"{names} named Nsight Systems ({tool}): replaced, it gets nothing of this run"
    ]


def test_a_recording_within_a_recording_belongs_to_the_inner_one(
    record: Record, folder: Path
) -> None:
    inner = (sys.executable, "-m", "flame", "record", "-o", "inner", "--")
    done = record("-o", "outer", *inner, *PYTHON, KERNELS)
    assert done.returncode == 0
    assert any("named another flame record" in line for line in said(done))
    assert kernels_of(folder / "inner") == {"gemm": 10, "softmax": 10}
    assert not (folder / "outer").exists()


# the folder


def test_the_folder_is_private_and_new_each_time(record: Record, folder: Path) -> None:
    (folder / "train.py").write_text(KERNELS)
    for _ in range(3):
        assert record("-q", sys.executable, "train.py").returncode == 0
    found = sorted(folder.glob("*.flame"))
    assert [path.name for path in found] == ["train.2.flame", "train.3.flame", "train.flame"]
    assert {path.stat().st_mode & 0o777 for path in found} == {0o700}


def test_an_existing_folder_is_taken_only_if_it_is_empty(record: Record, folder: Path) -> None:
    (folder / "run").mkdir()
    assert record("-q", "-o", "run", *PYTHON, "pass").returncode == 0
    assert (folder / "run").is_dir()
    (folder / "run" / "notes").write_text("precious")
    done = record("-o", "run", "touch", "ran")
    assert (done.returncode, said(done)) == (2, ["-o run: is there already; name a new folder"])
    assert not (folder / "ran").exists()


def test_a_folder_that_cannot_be_made(record: Record, folder: Path) -> None:
    for place, reason in (("/proc/x", "no such file"), ("no/such/x", "no such file")):
        done = record("-o", place, "touch", "ran")
        assert done.returncode == 3
        assert reason in said(done)[0]
        assert "-o" in said(done)[0]
    assert not (folder / "ran").exists()


@needs_root
def test_root_does_not_record_into_the_folder_of_another_user(record: Record, folder: Path) -> None:
    (folder / "theirs").mkdir()
    os.chown(folder / "theirs", 64001, 64001)
    done = record("-o", "theirs", "touch", "ran")
    assert done.returncode == 3
    reason = "belongs to another user, who could change it; name another folder with -o"
    assert said(done) == [f"theirs: {reason}"]
    assert not (folder / "ran").exists()


def test_a_folder_that_is_put_in_its_place_is_not_read(record: Record, folder: Path) -> None:
    swap = "mv run was; mkdir -p run/cubins; mkfifo run/1-1.fdump; exit 4"
    done = record("-o", "run", "bash", "-c", f"{sys.executable} -c '{RANGES}'; {swap}")
    assert done.returncode == 4
    assert said(done) == ["run: something else is there now than what was recorded to: not read"]
    assert len(list((folder / "was").glob("*.fdump"))) == 1


def test_nothing_recorded_leaves_nothing_behind(record: Record, folder: Path) -> None:
    done = record("true")
    assert done.returncode == 0
    (line,) = said(done)
    assert line.startswith("nothing was recorded: no process of the command called CUDA or NVTX")
    assert "flame doctor" in line
    assert not list(folder.iterdir())


def test_what_found_no_room_is_not_called_idle(record: Record) -> None:
    many = "\nfor _ in range(20_000):\n    nvtx.push_range('r'); nvtx.pop_range()"
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({200 << 10},) * 2)"
    (line,) = said(record("-o", "run", *PYTHON, f"{limited}{RANGES}{many}"))
    assert line == "nothing was recorded: there was no room for it in run"


def test_what_goes_on_is_not_summed_up_before_it_has_begun(record: Record) -> None:
    detach = "import nvtx, os, time\nbegun, begin = os.pipe()\n"
    detach += "if os.fork(): os.read(begun, 1); os._exit(0)\n"
    detach += "os.close(1); os.close(2)\n"
    detach += "with nvtx.annotate('late'): os.write(begin, b'x'); time.sleep(600)"
    first, second = said(record("-o", "run", *PYTHON, detach))
    assert first == "nothing was recorded so far"
    left = re.match(r"processes that the command left behind still record \(pid (\d+)", second)
    assert left, second
    os.kill(int(left[1]), signal.SIGKILL)


def test_programs_that_drop_the_environment_are_known(record: Record, folder: Path) -> None:
    (folder / "sudo").write_text('#!/bin/sh\nexec env -i "$@"\n')
    (folder / "sudo").chmod(0o755)
    (line,) = said(record("./sudo", *PYTHON, RANGES))
    assert "'sudo flame record …'" in line


# mistakes


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "name a command to record: flame record -- CMD"),
        (["--"], "name a command to record"),
        (["--nope", "true"], "unknown: --nope (see flame record --help)"),
        (["-o"], "expected one argument"),
        (["-o", "", "true"], "-o: no folder given"),
        (["--pc", "often", "true"], "--pc 'often': choose continuous, serialized or off"),
        (["--pc", "continuous:4", "true"], "choose a period from 5 to 31"),
        (["--duration", "soon", "true"], "--duration: 'soon' is not a time"),
        (["--duration", "0s", "true"], "nothing would be recorded"),
        (["--max-size", "big", "true"], "--max-size: 'big' is not an amount of data"),
        (["--max-size", "0MB", "true"], "nothing could be recorded"),
    ],
)
def test_usage_errors(words: list[str], reason: str, flame: Flame, folder: Path) -> None:
    result = flame("record", *words)
    assert result.code == 2
    assert reason in result.complaint()
    assert not list(folder.iterdir())


def test_a_library_that_is_not_there(
    flame: Flame, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLAME_LIBRARY", "gone.so")
    result = flame("record", "true")
    assert result.code == 2
    assert result.complaint() == "gone.so: no such library (FLAME_LIBRARY names it)"
    monkeypatch.delenv("FLAME_LIBRARY")
    monkeypatch.setattr("flame.record.environment._PACKAGE", folder / "flame")
    result = flame("record", "true")
    assert result.code == 2
    assert "libflameinject.so was not built" in result.complaint()
    assert not list(folder.iterdir())
