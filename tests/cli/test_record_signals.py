"""``flame record`` between a command and whoever signals it; processes that are left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.conftest import PYTHON, Record
from tests.cli.programs import KERNELS, PATIENT


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
    out, err = child.communicate(timeout=60)
    assert out == f"heard {name}\n"
    assert child.returncode == 9
    assert "nothing was recorded" in err


def test_a_script_that_signals_its_group_hears_no_echo(recorder: None) -> None:
    script = "trap 'echo trapped; kill 0' TERM; echo ready; while :; do sleep 0.05; done"
    once = script.replace("trap '", 'trap \'trap "" TERM; ')
    child = started("-q", "bash", "-c", once + "; :")
    child.send_signal(signal.SIGTERM)
    time.sleep(1)
    assert child.poll() is None, "the command ignores the signal, so flame waits for it"
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    out, _ = child.communicate(timeout=60)
    assert out == "trapped\n"


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
