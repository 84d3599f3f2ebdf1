"""Why a process cannot be looked into, asked of processes that really cannot."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest

from flame.attach.discover import permission
from flame.attach.discover.permission import explain
from flame.attach.discover.proc import read_process
from tests.attach.conftest import NOBODY, Start, as_nobody, needs_root, wait_until
from tests.support.paths import ROOT

LIBC = ctypes.CDLL(None)
PR_SET_DUMPABLE, PR_SET_KEEPCAPS = 4, 8


@contextmanager
def nobody(*, keeps_capabilities: bool = False) -> Iterator[int]:
    """The pid of a process of ours that has become another user, and waits.

    The kernel protects its memory, as it may still know secrets; with capabilities it is that which
    protects it.
    """
    ready, pipe = os.pipe()
    child = os.fork()
    if not child:
        LIBC.prctl(PR_SET_KEEPCAPS, int(keeps_capabilities), 0, 0, 0)
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        if keeps_capabilities:
            LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        os.write(pipe, b".")
        threading.Event().wait(60)
        os._exit(0)
    os.read(ready, 1)
    yield child
    os.kill(child, 9)
    os.waitpid(child, 0)
    os.close(ready)
    os.close(pipe)


def test_nothing_is_in_the_way(start: Start) -> None:
    assert explain(start("sleep", "60").pid) == ""


@pytest.mark.parametrize("pid", [0, -1, -5, 1 << 22, 1 << 31, 1 << 70])
def test_there_is_no_such_process(pid: int) -> None:
    assert explain(pid) == "there is no such process"


def test_a_zombie_has_ended(start: Start) -> None:
    gone = start("true")
    wait_until(lambda: (found := read_process(gone.pid)) and found.is_zombie)
    assert explain(gone.pid) == "it has ended"


def test_a_thread_is_no_process() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert thread.native_id
        assert f"thread of the process {os.getpid()}" in explain(thread.native_id)
    finally:
        done.set()
        thread.join()


def test_a_kernel_thread_runs_no_program() -> None:
    found = read_process(2)
    if not found or not found.kernel:
        pytest.skip("no threads of the kernel are seen here")
    assert "belongs to the kernel" in explain(2)


@needs_root
def test_another_user_is_named_and_what_to_do(start: Start) -> None:
    pid = start("sleep", "60").pid
    assert as_nobody(lambda: explain(pid)) == ("it belongs to root: run flame as root")


@needs_root
def test_a_process_that_keeps_its_memory_to_itself() -> None:
    with nobody() as pid:
        assert "keeps its memory to itself" in as_nobody(lambda: explain(pid))
        assert explain(pid) == ""  # root may


@needs_root
@pytest.mark.parametrize(
    ("scope", "remedy"),
    [
        ("0", "start it with flame record"),
        ("1", "sudo sysctl kernel.yama.ptrace_scope=0"),
        ("2", "run flame as root"),
        ("3", "start it with flame record"),
        ("unreadable", "start it with flame record"),
    ],
)
def test_ptrace_scope(monkeypatch: pytest.MonkeyPatch, scope: str, remedy: str) -> None:
    # Forbidden it is by capabilities; a kernel with Yama cannot be had for a test.
    with NamedTemporaryFile("w") as file, nobody(keeps_capabilities=True) as pid:
        Path(file.name).chmod(0o644)
        file.write(f"{scope}\n")
        file.flush()
        monkeypatch.setattr(permission, "_SCOPE", Path(file.name))
        found = as_nobody(lambda: explain(pid))
    assert found.endswith(remedy)
    assert (f"ptrace_scope is {scope}" in found) == (scope in "123")


def told(*prefix: str, code: str = "", pid: int) -> str:
    """What another Python with that in front of its command line explains about ``pid``."""
    program = (
        f"import os, subprocess\nfrom flame.attach.discover.permission import explain\n{code}\n"
    )
    command = [*prefix, sys.executable, "-c", f"{program}print(explain({pid}))"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode and not done.stdout:
        pytest.skip(f"cannot be made here: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout.strip()


@needs_root
def test_root_without_the_right_to_trace(start: Start) -> None:
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv here")
    pid = start("sleep", "60").pid
    rights = ("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace")
    assert "--cap-add=SYS_PTRACE" in told(*rights, pid=pid)


@needs_root
def test_a_process_that_proc_hides(start: Start) -> None:
    pid = start("sleep", "60").pid
    hidden = (
        "subprocess.run('mount -t proc -o hidepid=2 proc /proc'.split(), check=True)\n"
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})"
    )
    assert "hidepid" in told("unshare", "--mount", code=hidden, pid=pid)
