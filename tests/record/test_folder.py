"""The folder of ``flame record`` is new and private, and gone where nothing was recorded."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.attach.conftest import needs_root
from tests.cli.conftest import PYTHON, Record, said
from tests.cli.programs import KERNELS, RANGES

pytestmark = pytest.mark.deep


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
