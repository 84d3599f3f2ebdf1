"""Running the command line: in this process, or as one of its own, on a small trace."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from flame.cli.main import main
from tests.inject.conftest import OURS
from tests.inject.conftest import buildable as buildable
from tests.inject.conftest import fake as fake
from tests.inject.conftest import library as library
from tests.support import tiers
from tests.support.garbage import leaks_told as leaks_told
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE
from tests.support.writers.nsysfile import HTOD, NsysFile

Flame = Callable[..., "Result"]
Done = subprocess.CompletedProcess[str]
Record = Callable[..., Done]
Export = Callable[..., dict[str, int]]

PYTHON = (sys.executable, "-c")
DEMANGLED = "void gemm<float>(float*)"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Thin out the quick tier: a command reads a trace, or is a process of its own."""
    here = Path(__file__).parent
    tiers.thin_out(item for item in items if here in item.path.parents)


def write_batches(file: NsysFile) -> None:
    """Write four ranges `batch N`, with a kernel each."""
    for number in range(4):
        at = 1_000 * number
        file.nvtx(f"batch {number}", at, at + 900)
        file.api("cudaLaunchKernel_v7000", at + 100, at + 110, corr=number + 1)
        file.kernel("gemm", at + 200, at + 300 + number, corr=number + 1)


def without_limit(module: str, seconds: str) -> tuple[str, str]:
    """The command line for Python, for which that number of ``seconds`` never is over."""
    begin = f"import sys, {module} as limited; from flame.cli.main import main"
    return "-c", f"{begin}; limited.{seconds} = 1e9; sys.exit(main())"


WITHOUT_PROGRESS = without_limit("flame.console.progress", "DELAY")
"""The progress of a load moves the cursor, which is flame's own: here it is never slow enough."""


class Result:
    """What one run left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    def said(self) -> list[str]:
        """Lines on stderr, all of them flame's own."""
        return own_lines(self.err)

    def complaint(self) -> str:
        """The one line on stderr of a run that failed, without its prefix."""
        assert self.out == ""
        assert self.err.startswith("flame: ")
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1
        return self.err.removeprefix("flame: ").rstrip("\n")


@pytest.fixture
def flame(capfd: pytest.CaptureFixture[str]) -> Flame:
    """Runs the command line in this process."""

    def run(*args: str | Path) -> Result:
        capfd.readouterr()
        code = main([str(arg) for arg in args])
        out, err = capfd.readouterr()
        return Result(code, out, err)

    return run


def spawn(
    *args: str | Path,
    encoding: str = "utf-8",
    program: Sequence[str] = ("-m", "flame"),
    **kwargs: object,
) -> subprocess.CompletedProcess[str]:
    """Runs the command line, or another ``program`` of Python, as a process of its own."""
    command = [sys.executable, *program, *map(str, args)]
    settings: dict[str, object] = {"capture_output": True, "timeout": 2 * PATIENCE, **kwargs}
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        command, check=False, stdin=subprocess.DEVNULL, encoding=encoding, **settings
    )


def in_terminal(
    *args: str | Path, term: str = "xterm-256color", program: Sequence[str] = WITHOUT_PROGRESS
) -> tuple[int, str]:
    """Exit code of a run whose three streams are a terminal, and what that terminal received.

    ``program`` is what Python runs with ``args``.
    """
    terminal, other = pty.openpty()
    pid = os.fork()
    if pid == 0:
        os.login_tty(other)
        env = {**os.environ, "TERM": term}
        os.execve(sys.executable, [sys.executable, *program, *map(str, args)], env)
    # Until it has ended `other` stays open: Linux may say that the other side is closed, if it is,
    # before all that was written there has been read.
    received, ended = b"", os.pidfd_open(pid)
    while ended not in select.select([terminal, ended], [], [])[0]:
        received += os.read(terminal, 4096)
    os.set_blocking(terminal, False)
    with suppress(BlockingIOError):
        while True:
            received += os.read(terminal, 4096)
    for end in (terminal, other, ended):
        os.close(end)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), received.decode("utf-8", "replace")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, and a known width."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("FLAME_DEBUG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def recorder(library: Path, fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``flame record`` finds the library, and what it runs finds the double as its driver."""
    for name in os.environ:
        if name.startswith(OURS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("FLAME_LIBRARY", str(library))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake))


@pytest.fixture
def record(recorder: None) -> Record:
    """``flame record`` as a process, with the test double as its driver."""

    def run(*args: str | Path, **kwargs: object) -> Done:
        done = spawn("record", *args, **kwargs)  # type: ignore[arg-type]
        assert 'Traceback (most recent call last)\n  File "/' not in done.stderr
        return done

    return run


def said(done: Done) -> list[str]:
    """Lines on stderr, all of them flame's own."""
    return own_lines(done.stderr)


def own_lines(err: str) -> list[str]:
    """The lines of ``err``, which begin with flame's name, without it."""
    lines = err.splitlines()
    assert all(line.startswith("flame: ") for line in lines), err
    return [line.removeprefix("flame: ") for line in lines]


def interrupt(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    """The exit code of ``process`` after Ctrl-C, and what it says until it ends."""
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    return process.returncode, out, err


@pytest.fixture
def trace(folder: Path) -> Path:
    """Two processes on two GPUs: 100 + 30 ns of gemm, 50 ns of softmax, a copy of 20 ns."""
    path = folder / "run.sqlite"
    with NsysFile(path) as file:
        file.gpu(0, "NVIDIA Test")
        file.gpu(1, "NVIDIA Test")
        file.process(100, "trainer")
        file.process(200, "loader")
        file.nvtx("step, op_id = 7", 0, 100)
        file.nvtx("embed, op_id = 8, sizes = [[2, 3]]", 10, 40)
        file.nvtx("request", 0, 60, type=60)
        file.api("cudaLaunchKernel_v7000", 20, 25, corr=1)
        file.api("cudaLaunchKernel_v7000", 50, 55, corr=2)
        file.api("cudaMemcpyAsync_v3020", 60, 65, corr=3)
        file.api("cudaLaunchKernel_v7000", 70, 75, corr=1, pid=200, tid=201)
        gemm = partial(file.kernel, "gemm", demangled=DEMANGLED, mangled="_Z4gemmIfEvPf")
        gemm(1_000, 1_100, corr=1)
        file.kernel("softmax", 1_100, 1_150, corr=2, stream=9)
        file.memcpy(HTOD, 2_000, 2_020, corr=3)
        gemm(3_000, 3_030, corr=1, pid=200, device=1)
    return path


def folded(result: Result) -> dict[str, int]:
    """Stacks and values of a folded export."""
    pairs = (line.rpartition(" ") for line in result.lines)
    return {stack: int(value) for stack, _, value in pairs}


@pytest.fixture
def export(flame: Flame, trace: Path) -> Export:
    """Folded stacks of the trace under the options given."""

    def run(*options: str) -> dict[str, int]:
        result = flame("export", trace, "-f", "folded", "-o", "-", *options)
        assert result.code == 0, result.err
        return folded(result)

    return run
