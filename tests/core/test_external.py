"""Programs: not looked for in the current folder; none is left behind, however early stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import psutil
import pytest

from flame.core import external
from flame.core.external import (
    ResourceLimits,
    find_program,
    find_reason,
    import_path,
    package_folders,
    read_head,
    run_limited,
    start_group,
)
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE, pid_runs, runs, wait_until


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_program_starts_ends_it(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def interrupted(*command: Any, **how: Any) -> subprocess.Popen[bytes]:
        started.append(start(*command, **how))
        os.kill(os.getpid(), number)
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    before = signal.signal(number, signal.default_int_handler)
    try:
        with (
            tempfile.TemporaryFile() as output,
            pytest.raises(KeyboardInterrupt),
            start_group(["sleep", "1000"], output, output),
        ):
            pytest.fail("was not interrupted")
    finally:
        assert signal.signal(number, before) is signal.default_int_handler
    wait_until(lambda: started[0].poll() is not None)
    assert started[0].returncode == -signal.SIGKILL


IS_INTERRUPTED = """
import os, signal, subprocess, sys
from flame.core.external import ResourceLimits, run_limited

def interrupt(frame, event, function):
    global seen
    if event == "c_return" and function.__name__ == "acquire" and frame.f_code in waiting:
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGTERM)

waiting = {subprocess.Popen._internal_poll.__code__, subprocess.Popen._wait.__code__}
signal.signal(signal.SIGTERM, signal.default_int_handler)
with open("/dev/null", "wb") as out:
    for at in range(1, 13):
        seen = 0
        sys.setprofile(interrupt)
        try:
            run_limited(["/bin/sleep", "1000"], out, out, ResourceLimits(1 << 20), lambda: None)
        except KeyboardInterrupt:
            sys.setprofile(None)
            print(seen, flush=True)
"""


def test_a_signal_as_popen_takes_its_lock_ends_the_program_all_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IS_INTERRUPTED],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        timeout=PATIENCE,
        check=True,
    )
    seen = [int(number) for number in done.stdout.split()]
    assert len(seen) == 12
    assert all(number >= at for at, number in enumerate(seen, 1))


def test_the_program_of_a_block_that_is_left_is_ended() -> None:
    with tempfile.TemporaryFile() as output:
        with start_group(["sleep", "1000"], output, output) as process:
            assert process.poll() is None
        assert process.returncode == -signal.SIGKILL


STARTS = """
import sys
from flame.core.external import start_group
with open(sys.argv[1], "wb") as out:
    with start_group(["/bin/sh", "-c", "sleep 1000 & echo $$ $!; wait"], out, out) as process:
        print(flush=True)
        process.wait()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_program_and_what_it_has_started_end_with_the_one_that_started_it(
    number: signal.Signals, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    with subprocess.Popen(
        [sys.executable, "-c", STARTS, said],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout and process.stdout.readline()
        wait_until(lambda: said.exists() and said.read_bytes().endswith(b"\n"))
        started = [psutil.Process(int(pid)) for pid in said.read_text().split()]
        process.send_signal(number)
    try:
        wait_until(lambda: not any(map(runs, started)))
    finally:
        for one in filter(runs, started):
            one.kill()


STARTS_AND_DIES = """
import os, signal, subprocess, sys
from flame.core.external import start_group
start, started = subprocess.Popen, []
def killed(*command, **how):
    process = start(*command, **how)
    started.append(process.pid)
    if len(started) == int(sys.argv[1]):
        print(*started, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    return process
subprocess.Popen = killed
with open("/dev/null", "wb") as out, start_group(["/bin/sleep", "1000"], out, out) as process:
    process.wait()
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_a_program_ends_with_one_that_is_killed_while_starting_it(processes: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTS_AND_DIES, str(processes)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout
        started = [int(pid) for pid in process.stdout.readline().split()]
    assert (process.returncode, len(started)) == (-signal.SIGKILL, processes)
    try:
        wait_until(lambda: not any(map(pid_runs, started)))
    finally:
        for pid in filter(pid_runs, started):
            os.kill(pid, signal.SIGKILL)


def test_a_program_gets_its_words_as_they_are_and_no_input() -> None:
    with tempfile.TemporaryFile() as output:
        command = ["/bin/sh", "-c", 'cat; echo "$1:$2"', "sh", "$(id) 'x\n", ""]
        with start_group(command, output, output) as process:
            assert process.wait(PATIENCE) == 0
        assert read_head(output) == "$(id) 'x\n:\n"


def test_a_program_that_cannot_be_run_says_why(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF of no machine")
    program.chmod(0o700)
    with tempfile.TemporaryFile() as output:
        with start_group([str(program)], output, output) as process:
            assert process.wait(PATIENCE) == 126
        assert f"{program}: Exec format error" in find_reason(read_head(output))
        with start_group([f"{program}s"], output, output) as process:
            assert process.wait(PATIENCE) == 127


def test_a_program_is_run_where_there_is_no_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external, "_SHELL", "/none/sh")
    with tempfile.TemporaryFile() as output:
        with start_group([sys.executable, "-c", "print(2)"], output, output) as process:
            assert process.wait(PATIENCE) == 0
        assert read_head(output) == "2\n"


def test_nothing_is_left_of_a_program_that_has_ended() -> None:
    with (
        tempfile.TemporaryFile() as output,
        start_group(["/bin/sh", "-c", "exit 3"], output, output) as process,
    ):
        assert process.wait() == 3
    assert psutil.Process().children() == []


def test_limits_hold_for_a_program(tmp_path: Path) -> None:
    script = "ulimit -f; ulimit -v"
    with tempfile.TemporaryFile() as output:
        limits = ResourceLimits(1 << 20)
        assert run_limited(["/bin/sh", "-c", script], output, output, limits, lambda: None) == 0
        assert read_head(output).split() == [str((1 << 20) // 512), "unlimited"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a program in it."""
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    monkeypatch.chdir(tmp_path)
    return program


@pytest.mark.parametrize("path", ["", ":", ".", ":/none", "/none:", "./", "bin:..", "../here"])
def test_a_program_of_the_current_folder_is_not_found(
    here: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("PATH", path)
    assert find_program("tool") is None


def test_a_program_on_path_is_found(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f":/none:{here.parent}")
    assert find_program("tool") == str(here)


def test_a_child_imports_from_absolute_folders_and_knows_flame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", ["", ".", "lib", "/lib"])
    assert import_path() == ["/lib", str(ROOT)]
    monkeypatch.setattr(sys, "path", [str(ROOT), ""])
    assert import_path() == [str(ROOT)]


def test_packages_are_where_pip_puts_them(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", str(here.parent), *sys.path])
    folders = package_folders()
    assert Path(pytest.__file__).parents[1] in folders
    assert external.HOME in folders
    assert here.parent not in folders
    assert all(folder.is_absolute() for folder in folders)
