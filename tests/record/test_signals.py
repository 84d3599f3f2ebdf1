"""``flame record`` between a command and whoever signals it; processes that are left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.conftest import PYTHON, Record
from tests.cli.programs import KERNELS, PATIENT
from tests.support.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.deep


def started(*words: str) -> subprocess.Popen[str]:
    run = [sys.executable, "-m", "flame", "record", *words]
    child = subprocess.Popen(
        run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert child.stdout and child.stdout.readline() == "ready\n"
    return child


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"])
def test_what_flame_alone_is_told_reaches_the_command_once(name: str, recorder: None) -> None:
    child = started(*PYTHON, PATIENT, name)
    child.send_signal(getattr(signal, name))
    out, err = child.communicate(timeout=PATIENCE)
    assert out == f"heard {name}\n"
    assert child.returncode == 9
    assert "nothing was recorded" in err


def test_a_script_that_signals_its_group_hears_no_echo(recorder: None) -> None:
    script = "trap 'echo trapped; kill 0; echo on' TERM; echo ready; while :; do sleep 0.05; done"
    once = script.replace("trap '", 'trap \'trap "" TERM; ')
    child = started("-q", "bash", "-c", once + "; :")
    child.send_signal(signal.SIGTERM)
    assert child.stdout and child.stdout.readline() == "trapped\n"
    assert child.stdout.readline() == "on\n"
    wait_until(lambda: not is_pending(child.pid, signal.SIGTERM))
    assert child.poll() is None, "the command ignores the signal, so flame waits for it"
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    out, _ = child.communicate(timeout=PATIENCE)
    assert out == ""


def is_pending(pid: int, number: int) -> bool:
    """Whether a process has still to take that signal."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    pending = next(line.split()[1] for line in lines if line.startswith("ShdPnd:"))
    return bool(int(pending, 16) >> (number - 1) & 1)


def test_processes_that_are_left_behind_are_told(record: Record, folder: Path) -> None:
    daemon = KERNELS + "\nimport os, time\nif os.fork(): os._exit(0)\n"
    daemon += "import nvtx\nwith nvtx.annotate('late'): pass\n"
    daemon += "open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    waiting = "while [ ! -s pid ]; do sleep 0.05; done"
    run = f'{sys.executable} -c "$0" </dev/null >/dev/null 2>&1 & {waiting}'
    done = record("bash", "-c", run, daemon)
    pid = int((folder / "pid").read_text())
    try:
        assert done.returncode == 0
        assert re.search(rf"still record \(pid .*\b{pid}\b", done.stderr), done.stderr
    finally:
        os.kill(pid, signal.SIGKILL)
