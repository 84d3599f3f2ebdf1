"""What ``flame record`` leaves of the sockets beside the dumps: those of processes that go on."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from flame.attach.library.control import Control
from flame.record.folder import remove_stale_sockets
from tests.cli.conftest import Record
from tests.cli.programs import RANGES

KILLED = f"""{RANGES}
import glob, os
while not glob.glob(f"{{os.environ['FLAME_DIR']}}/*.sock"): time.sleep(0.01)
os._exit(0)
"""
GOES_ON = RANGES + "print('ready', flush=True); time.sleep(60)"


def test_nothing_is_left_of_what_was_killed(record: Record, folder: Path) -> None:
    done = record("-o", "out", sys.executable, "-c", KILLED)
    assert done.returncode == 0
    (dump,) = (folder / "out").iterdir()
    assert dump.suffix == ".fdump"


def test_what_goes_on_after_the_command_can_be_attached_to(record: Record, folder: Path) -> None:
    (folder / "program.py").write_text(GOES_ON)
    command = f"{sys.executable} program.py >pipe 2>/dev/null & echo $! >pid; head -n 1 pipe"
    os.mkfifo(folder / "pipe")
    done = record("-o", "out", "bash", "-c", command)
    pid = int((folder / "pid").read_text())
    try:
        assert done.returncode == 0 and done.stdout == "ready\n"
        control = Control.open(next((folder / "out").glob(f"{pid}-*.fdump")))
        assert control is not None
        control.close()
    finally:
        os.kill(pid, signal.SIGKILL)


def test_only_sockets_that_nobody_listens_at_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("x" * 120)  # longer than an address
    folder.mkdir()
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as live, socket.socket(socket.AF_UNIX) as dead:
        live.bind("1-1a.sock")
        live.listen()
        dead.bind("2-2b.sock")
        dead.listen()
        os.link("2-2b.sock", "program.sock")
        Path("3-3c.sock").write_text("mine")
        Path("4-4d.sock").symlink_to("2-2b.sock")
        dead.close()
        remove_stale_sockets(folder)
    left = {"1-1a.sock", "program.sock", "3-3c.sock", "4-4d.sock"}
    assert {path.name for path in folder.iterdir()} == left


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    remove_stale_sockets(tmp_path / "none")
