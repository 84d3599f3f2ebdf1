"""``flame record``: the command runs as it would without, and gets what the library reads."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import flame.record.command as command
from flame.record.plan import Plan
from tests.cli.conftest import PYTHON, Record, said, spawn
from tests.cli.programs import KERNELS, RANGES
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import meta

pytestmark = pytest.mark.deep


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
